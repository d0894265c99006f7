//! Opens a store: checks its format, its identity and that it is whole, and reads the records that are kept in
//! memory.

use super::read::last_epoch;
use super::records::Records;
use super::{keys, purge, redo};
use crate::engine::{Class, KeyOrder, Writes, beginning_with};
use crate::record::{IdentityRecord, LogAges, PurgeRecord, StateRecord};
use crate::{AppliedOrigins, Epoch, FeedList, StoreError, as_list, endpoint};
use std::collections::HashMap;
use tidegate_core::model::{EndpointId, FeedName, Lineage, SupIdBasis, Time};

/// The format that is written and read.
const FORMAT: u32 = 1;
/// The key of the format number in [`Class::Gateway`]: four bytes, big-endian.
const FORMAT_KEY: &[u8] = b"format";
/// The key of the identity.
pub(crate) const IDENTITY_KEY: &[u8] = b"identity";
/// The key of the number of list writes.
pub(super) const LIST_WRITES_KEY: &[u8] = b"list_writes";

/// The key of the applied origins of the configuration.
pub(super) const APPLIED_ORIGINS_KEY: &[u8] = b"applied_origins";

/// The key of the note that an import is not finished.
const IMPORTING_KEY: &[u8] = b"importing";

/// Sets or removes the note that an import is not finished.
pub(super) fn note_importing(writes: &mut Writes, is_importing: bool) {
    let value = is_importing.then(Vec::new);
    writes.insert((Class::Gateway, IMPORTING_KEY.to_vec()), value);
}

/// The records of a store that are kept in memory.
pub(crate) struct Found {
    /// The identity of the store; `None` where it is new.
    pub(crate) identity: Option<IdentityRecord>,
    pub(super) committed: HashMap<FeedName, StateRecord>,
    pub(super) feeds: FeedList,
    /// The purge marks of purged feeds.
    pub(super) purged: HashMap<FeedName, PurgeRecord>,
    /// The number of writes outside the content of feeds.
    pub(super) list_writes: u64,
    /// The last closed epoch, and its closing time.
    pub(crate) newest: (Epoch, Time),
}

/// The identity of a store after this opening, and its records.
pub(crate) type Opened = (IdentityRecord, Found);

/// Reads the records that are kept in memory. Writes nothing.
pub(crate) fn inspect(records: &Records) -> Result<Found, StoreError> {
    let identity = identity(records)?;
    if records.contains(Class::Gateway, IMPORTING_KEY)? {
        return Err(StoreError::PartlyImported { path: records.engine().path().to_owned() });
    }
    let newest = last_epoch(records)?.unwrap_or((Epoch(0), Time::MIN));
    let list_writes = records.record(Class::Gateway, LIST_WRITES_KEY)?.unwrap_or_default();
    let (committed, feeds) = (read_states(records)?, as_list(records.list(Class::Feeds, &[])?));
    Ok(Found { identity, committed, feeds, purged: read_purged(records)?, list_writes, newest })
}

/// The settings of an opening.
#[derive(Debug, Default)]
pub(crate) struct OpenRequest {
    /// The endpoint id as configured.
    pub(crate) endpoint: Option<EndpointId>,
    /// The basis of SUP ids in a store that replaces another; a store that was used keeps its own.
    pub(crate) sup_ids: Option<SupIdBasis>,
}

/// Checks the identity against the request, or makes one, and counts this opening, unless `is_continued`: another
/// gateway has opened the store already. `used`: it has commits.
pub(crate) fn identify(
    records: &Records,
    identity: Option<IdentityRecord>,
    (used, is_continued, reached): (bool, bool, Epoch),
    request: OpenRequest,
) -> Result<(IdentityRecord, Writes), StoreError> {
    let OpenRequest { endpoint: configured, sup_ids } = request;
    let is_new = identity.is_none();
    let mut identity = match identity {
        Some(stored) => stored,
        None => IdentityRecord {
            endpoint: configured.clone().map_or_else(endpoint::random, Ok)?,
            fence: 0,
            // A configured id is configured again for a new store, a random one is not.
            sup_ids: if configured.is_some() { SupIdBasis::Endpoint } else { SupIdBasis::Name },
            lineage: Lineage::default(),
            running: None,
            log_ages: LogAges::default(),
        },
    };
    if let Some(wanted) = configured.filter(|wanted| *wanted != identity.endpoint) {
        let path = records.engine().path().to_owned();
        match sup_ids {
            // The store was to replace another one.
            Some(_) if used => return Err(StoreError::Occupied { path }),
            None if used => return Err(StoreError::Endpoint { stored: identity.endpoint, wanted }),
            _ => {}
        }
        identity.endpoint = wanted;
    }
    if let Some(sup_ids) = sup_ids {
        // An earlier opening of an empty store has given no SUP ids to subscribers.
        if is_new || (!used && is_empty(records)?) {
            identity.sup_ids = sup_ids;
        }
    }
    if !is_continued || is_new {
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

/// Opens a store of this process alone: counts the opening, and finishes purges and large changes. Durable on return.
pub(crate) fn begin(
    records: &Records,
    mut found: Found,
    request: OpenRequest,
) -> Result<Opened, StoreError> {
    for (feed, PurgeRecord { mark, .. }) in found.purged.iter().filter(|(_, it)| it.sweeping) {
        while !purge::sweep(records, feed, mark)? {}
    }
    redo::finish_all(records, &mut found)?;
    let (used, reached) = is_used(records)?;
    let identity = found.identity.take();
    let (identity, writes) = identify(records, identity, (used, false, reached), request)?;
    records.engine().apply(writes)?;
    records.engine().pass()?;
    Ok((identity, found))
}

/// Whether a store has commits, and its last epoch.
pub(crate) fn is_used(records: &Records) -> Result<(bool, Epoch), StoreError> {
    let (reached, _) = last_epoch(records)?.unwrap_or((Epoch(0), Time::MIN));
    for (class, prefix) in [(Class::States, &[][..]), (Class::Marks, keys::PURGED)] {
        if records.first(class, beginning_with(prefix), KeyOrder::Ascending)?.is_some() {
            return Ok((true, reached));
        }
    }
    Ok((reached > Epoch(0), reached))
}

/// The origins of the configuration that was applied last.
pub(super) fn applied_origins(records: &Records) -> Result<AppliedOrigins, StoreError> {
    Ok(records.record(Class::Gateway, APPLIED_ORIGINS_KEY)?.unwrap_or_default())
}

/// Checks the format number; answers whether there is one.
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

/// The identity of the store; `None` where it is new.
pub(crate) fn identity(records: &Records) -> Result<Option<IdentityRecord>, StoreError> {
    if check_format(records)? {
        return records.expected(Class::Gateway, IDENTITY_KEY).map(Some);
    }
    if is_empty(records)? {
        return Ok(None);
    }
    Err(records.damage("it has data and no format number".to_owned()))
}

/// The write that changes the identity.
pub(super) fn change_identity(
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

/// Whether a database has no entries but those of the store itself.
pub(super) fn is_empty(records: &Records) -> Result<bool, StoreError> {
    for class in Class::ALL.iter().filter(|class| **class != Class::Gateway) {
        if records.first(*class, beginning_with(&[]), KeyOrder::Ascending)?.is_some() {
            return Ok(false);
        }
    }
    Ok(true)
}

fn read_states(records: &Records) -> Result<HashMap<FeedName, StateRecord>, StoreError> {
    let states = records.scan(Class::States, &[]);
    states.map(|entry| entry.and_then(|(key, head)| Ok((name(records, &key)?, head)))).collect()
}

/// The purge marks of purged feeds.
pub(super) fn read_purged(records: &Records) -> Result<HashMap<FeedName, PurgeRecord>, StoreError> {
    let decode = |entry: Result<(Vec<u8>, PurgeRecord), StoreError>| {
        let (key, record) = entry?;
        Ok((records.read_key(Class::Marks, &key, keys::split_kind(&key))?.0, record))
    };
    records.scan(Class::Marks, keys::PURGED).map(decode).collect()
}

/// The feed in the key of a state.
pub(super) fn name(records: &Records, key: &[u8]) -> Result<FeedName, StoreError> {
    records.read_key(Class::States, key, keys::feed_name(key))
}
