//! Opening a store: whose it is, whether it is whole, and everything that is kept in memory.

use super::read::last_logged;
use super::records::Records;
use super::{keys, purge, redo};
use crate::engine::{Class, KeyOrder, Writes, beginning_with};
use crate::record::{FloorRecord, IdentityRecord, LogAges, StateRecord};
use crate::{AppliedOrigins, Epoch, FeedList, StoreError, as_list, endpoint};
use std::collections::HashMap;
use tidegate_core::model::{EndpointId, FeedName, Lineage, SupIdBasis, Time};

/// The format that is written and read.
const FORMAT: u32 = 1;
/// Where the format's number stands in [`Class::Gateway`]: four bytes, the greatest first.
const FORMAT_KEY: &[u8] = b"format";
/// Where the identity stands.
pub(crate) const IDENTITY_KEY: &[u8] = b"identity";
/// Where the number of list writes stands.
pub(super) const LIST_WRITES_KEY: &[u8] = b"list_writes";

/// Where it stands where the sites of the configuration were that was applied.
pub(super) const APPLIED_ORIGINS_KEY: &[u8] = b"applied_origins";

/// What stands there while another store's state is taken in.
const IMPORTING_KEY: &[u8] = b"importing";

/// Notes that another store's state is being taken in, or that all of it was.
pub(super) fn note_importing(writes: &mut Writes, is_importing: bool) {
    let value = is_importing.then(Vec::new);
    writes.insert((Class::Gateway, IMPORTING_KEY.to_vec()), value);
}

/// What was found in a store that is whole, and is kept in memory.
pub(crate) struct Found {
    /// Whose store it is; `None` where it is new.
    pub(crate) identity: Option<IdentityRecord>,
    pub(super) committed: HashMap<FeedName, StateRecord>,
    pub(super) feeds: FeedList,
    /// What is left of purged feeds.
    pub(super) floors: HashMap<FeedName, FloorRecord>,
    /// How often records outside the content of feeds were written.
    pub(super) list_writes: u64,
    /// The last closed epoch, and when it was closed.
    pub(crate) sealed: (Epoch, Time),
}

/// A store that is used: whose it is, with its opening, and what it has.
pub(crate) type Opened = (IdentityRecord, Found);

/// Reads what is kept in memory. Writes nothing.
pub(crate) fn inspect(records: &Records) -> Result<Found, StoreError> {
    let identity = identity(records)?;
    if records.contains(Class::Gateway, IMPORTING_KEY)? {
        return Err(StoreError::PartlyImported { path: records.engine().path().to_owned() });
    }
    let sealed = last_logged(records)?.unwrap_or((Epoch(0), Time::MIN));
    let list_writes = records.record(Class::Gateway, LIST_WRITES_KEY)?.unwrap_or_default();
    let (committed, feeds) = (states(records)?, as_list(records.list(Class::Feeds, &[])?));
    Ok(Found { identity, committed, feeds, floors: floors(records)?, list_writes, sealed })
}

/// What is asked of a store when it is opened.
#[derive(Debug, Default)]
pub(crate) struct OpenRequest {
    /// The endpoint id as configured.
    pub(crate) endpoint: Option<EndpointId>,
    /// What the SUP ids of a store are made of that takes another's place; one that was used keeps its own.
    pub(crate) sup_ids: Option<SupIdBasis>,
}

/// Decides whose store it is, and notes another opening of it, unless it `goes_on` as others have opened it. `used`:
/// something was committed to it.
pub(crate) fn identify(
    records: &Records,
    identity: Option<IdentityRecord>,
    (used, goes_on, reached): (bool, bool, Epoch),
    request: OpenRequest,
) -> Result<(IdentityRecord, Writes), StoreError> {
    let OpenRequest { endpoint: configured, sup_ids } = request;
    let is_new = identity.is_none();
    let mut identity = match identity {
        Some(stored) => stored,
        None => IdentityRecord {
            endpoint: configured.clone().map_or_else(endpoint::random, Ok)?,
            fence: 0,
            // An id that was chosen is chosen again for a store that is made anew.
            sup_ids: if configured.is_some() { SupIdBasis::Endpoint } else { SupIdBasis::Name },
            lineage: Lineage::default(),
            running: None,
            log_ages: LogAges::default(),
        },
    };
    if let Some(wanted) = configured.filter(|wanted| *wanted != identity.endpoint) {
        let path = records.engine().path().to_owned();
        match sup_ids {
            // It was to take the place of another store.
            Some(_) if used => return Err(StoreError::Occupied { path }),
            None if used => return Err(StoreError::Endpoint { stored: identity.endpoint, wanted }),
            _ => {}
        }
        identity.endpoint = wanted;
    }
    if let Some(sup_ids) = sup_ids {
        // As its endpoint id: an earlier opening over nothing gave no ids to anybody.
        if is_new || (!used && is_empty(records)?) {
            identity.sup_ids = sup_ids;
        }
    }
    if !goes_on || is_new {
        identity.fence = identity.fence.saturating_add(1);
        let none = || StoreError::failed("choose a mark", "the system gives out no random numbers");
        let mark = endpoint::random_mark().ok_or_else(none)?;
        identity.lineage.open(mark, reached.0);
    }
    let mut writes = Writes::new();
    let format = FORMAT.to_be_bytes().to_vec();
    writes.insert((Class::Gateway, FORMAT_KEY.to_vec()), Some(format));
    records.put(&mut writes, Class::Gateway, IDENTITY_KEY.to_vec(), &identity)?;
    Ok((identity, writes))
}

/// Begins to use a store of this process alone: notes the opening, ends unfinished purges and large changes. Durable on
/// return.
pub(crate) fn begin(
    records: &Records,
    mut found: Found,
    request: OpenRequest,
) -> Result<Opened, StoreError> {
    for (feed, FloorRecord { floor, .. }) in found.floors.iter().filter(|(_, it)| it.sweeping) {
        while !purge::sweep(records, feed, floor)? {}
    }
    redo::finish_all(records, &mut found)?;
    let (used, reached) = is_used(records)?;
    let identity = found.identity.take();
    let (identity, writes) = identify(records, identity, (used, false, reached), request)?;
    records.engine().apply(writes)?;
    records.engine().pass()?;
    Ok((identity, found))
}

/// Whether anything was committed to a database, and its last epoch.
pub(crate) fn is_used(records: &Records) -> Result<(bool, Epoch), StoreError> {
    let (reached, _) = last_logged(records)?.unwrap_or((Epoch(0), Time::MIN));
    for (class, prefix) in [(Class::States, &[][..]), (Class::Marks, keys::PURGED)] {
        if records.first(class, beginning_with(prefix), KeyOrder::Ascending)?.is_some() {
            return Ok((true, reached));
        }
    }
    Ok((reached > Epoch(0), reached))
}

/// What of a configuration was applied.
pub(super) fn applied(records: &Records) -> Result<AppliedOrigins, StoreError> {
    Ok(records.record(Class::Gateway, APPLIED_ORIGINS_KEY)?.unwrap_or_default())
}

/// Checks that the store has this program's format; whether there is one.
fn check_format(records: &Records) -> Result<bool, StoreError> {
    let Some(format) = records.get(Class::Gateway, FORMAT_KEY)? else { return Ok(false) };
    let damaged = |what| records.damaged(Class::Gateway, FORMAT_KEY, what);
    let format = <[u8; 4]>::try_from(&*format).map(u32::from_be_bytes);
    match format.map_err(|_| damaged("the format number is no number"))? {
        FORMAT => Ok(true),
        found => {
            let path = records.engine().path().to_owned();
            Err(StoreError::Format { path, found, known: FORMAT })
        }
    }
}

/// Whose store it is; `None` where it is new.
pub(crate) fn identity(records: &Records) -> Result<Option<IdentityRecord>, StoreError> {
    if check_format(records)? {
        return records.expected(Class::Gateway, IDENTITY_KEY).map(Some);
    }
    if is_empty(records)? {
        return Ok(None);
    }
    Err(records.damage("it has data and no format number".to_owned()))
}

/// The entry of an identity in which something is changed.
pub(super) fn reidentify(
    records: &Records,
    change: impl FnOnce(&mut IdentityRecord),
) -> Result<Writes, StoreError> {
    let mut writes = Writes::new();
    if let Some(mut found) = identity(records)? {
        change(&mut found);
        records.put(&mut writes, Class::Gateway, IDENTITY_KEY.to_vec(), &found)?;
    }
    Ok(writes)
}

/// Whether nothing was ever put into a database.
pub(super) fn is_empty(records: &Records) -> Result<bool, StoreError> {
    for class in Class::ALL.iter().filter(|class| **class != Class::Gateway) {
        if records.first(*class, beginning_with(&[]), KeyOrder::Ascending)?.is_some() {
            return Ok(false);
        }
    }
    Ok(true)
}

fn states(records: &Records) -> Result<HashMap<FeedName, StateRecord>, StoreError> {
    let states = records.scan(Class::States, &[]);
    states.map(|entry| entry.and_then(|(key, head)| Ok((name(records, &key)?, head)))).collect()
}

/// What is left of purged feeds.
pub(super) fn floors(records: &Records) -> Result<HashMap<FeedName, FloorRecord>, StoreError> {
    let floor = |entry: Result<(Vec<u8>, FloorRecord), StoreError>| {
        let (key, record) = entry?;
        Ok((records.of_key(Class::Marks, &key, keys::split_kind(&key))?.0, record))
    };
    records.scan(Class::Marks, keys::PURGED).map(floor).collect()
}

/// The feed in the key of a state.
pub(super) fn name(records: &Records, key: &[u8]) -> Result<FeedName, StoreError> {
    records.of_key(Class::States, key, keys::feed_name(key))
}
