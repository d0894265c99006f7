//! Opening a store: whose it is, whether it is whole, and everything that is kept in memory.

use super::read::{feeds, last_logged};
use super::records::{RecordCodec, Records};
use super::{keys, purge, redo};
use crate::engine::{Class, KeyOrder, Writes, beginning_with};
use crate::record::{FloorRecord, IdentityRecord, LogAges, StateRecord};
use crate::{
    AppliedOrigins, Epoch, FeedList, LoggedChange, StoreError, StoreOrigin, as_list, endpoint,
    lineage,
};
use std::collections::HashMap;
use std::time::Duration;
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
const APPLIED_ORIGINS_KEY: &[u8] = b"applied_origins";

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
    let (committed, feeds) = (states(records)?, as_list(feeds(records)?));
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
    let OpenRequest { endpoint: configured, sup_ids: new_sup_ids } = request;
    // An id that was chosen is chosen again for a store that is made anew.
    let of_new = if configured.is_some() { SupIdBasis::Endpoint } else { SupIdBasis::Name };
    let (stored, before) = match identity {
        Some(IdentityRecord { endpoint, fence, sup_ids, lineage, running, log_ages }) => {
            // As its endpoint id: an earlier opening over nothing gave no ids to anybody.
            let is_unused = new_sup_ids.is_some() && !used && is_empty(records)?;
            let sup_ids = new_sup_ids.filter(|_| is_unused).unwrap_or(sup_ids);
            (Some(endpoint), (fence, sup_ids, lineage, running, log_ages))
        }
        None => {
            let (sup_ids, lineage) = (new_sup_ids.unwrap_or(of_new), Lineage::default());
            (None, (0, sup_ids, lineage, None, LogAges::default()))
        }
    };
    let (mut fence, sup_ids, mut lineage, running, log_ages) = before;
    if !goes_on || stored.is_none() {
        fence = fence.saturating_add(1);
        let chance = || std::io::Error::other("the system gives out no random numbers");
        let mark = lineage::mark().ok_or_else(chance);
        let mark = mark.map_err(|source| StoreError::Io { doing: "choose a mark", source })?;
        lineage.open(mark, reached.0);
    }
    let endpoint = match (stored, configured) {
        (Some(stored), Some(wanted)) if stored != wanted && used => {
            return Err(StoreError::Endpoint { stored, wanted });
        }
        (_, Some(wanted)) => wanted,
        (Some(stored), None) => stored,
        (None, None) => endpoint::random()?,
    };
    let mut writes = Writes::new();
    let format = FORMAT.to_be_bytes().to_vec();
    writes.insert((Class::Gateway, FORMAT_KEY.to_vec()), Some(format));
    let identity = IdentityRecord { endpoint, fence, sup_ids, lineage, running, log_ages };
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
    let reached = found.sealed.0;
    let used = !(found.committed.is_empty() && found.floors.is_empty() && reached == Epoch(0));
    let identity = found.identity.take();
    let (identity, writes) = identify(records, identity, (used, false, reached), request)?;
    records.engine().apply(writes)?;
    let doing = "make its opening durable";
    records.engine().pass().map_err(|error| match error {
        StoreError::Io { source, .. } => StoreError::Io { doing, source },
        other => other,
    })?;
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

/// Plans the entry of a change in the log: its epoch, its place in that, and when it is closed.
pub(super) fn log(
    codec: &RecordCodec,
    writes: &mut Writes,
    (epoch, place, at): (Epoch, u32, Time),
    change: &LoggedChange,
) -> Result<(), StoreError> {
    let mut value = at.unix().to_be_bytes().to_vec();
    value.extend(codec.encoded(change, || "a change in the log".to_owned())?);
    writes.insert((Class::Log, keys::log(epoch.0, place)), Some(value));
    Ok(())
}

/// The entry that notes where the running time stands, and how old the change log is: the store was open for `passed`
/// since the last time.
pub(super) fn note_running(
    records: &Records,
    at: Time,
    (passed, newest): (Duration, Epoch),
) -> Result<Writes, StoreError> {
    reidentify(records, |identity| {
        identity.running = Some(at);
        identity.log_ages.note(passed, newest);
    })
}

/// What of a configuration was applied.
pub(super) fn applied(records: &Records) -> Result<AppliedOrigins, StoreError> {
    Ok(records.record(Class::Gateway, APPLIED_ORIGINS_KEY)?.unwrap_or_default())
}

/// The entries that note it.
pub(super) fn note_applied(
    codec: &RecordCodec,
    origins: &AppliedOrigins,
    writes: &mut Writes,
) -> Result<(), StoreError> {
    codec.put(writes, Class::Gateway, APPLIED_ORIGINS_KEY.to_vec(), origins)
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

/// What another store goes on from, where this one is not new.
pub(super) fn origin(records: &Records, reached: Epoch) -> Result<Option<StoreOrigin>, StoreError> {
    let found = identity(records)?;
    Ok(found.map(|IdentityRecord { fence, lineage, running, .. }| StoreOrigin {
        fence,
        lineage,
        reached,
        running,
    }))
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
    records
        .scan::<StateRecord>(Class::States, &[])
        .map(|entry| {
            let (key, head) = entry?;
            Ok((name(records, Class::States, &key)?, head))
        })
        .collect()
}

/// What is left of purged feeds.
pub(super) fn floors(records: &Records) -> Result<HashMap<FeedName, FloorRecord>, StoreError> {
    let floor = |entry: Result<(Vec<u8>, FloorRecord), StoreError>| {
        let (key, record) = entry?;
        let (feed, _) = records.of_key(Class::Marks, &key, keys::split_kind(&key))?;
        Ok((feed, record))
    };
    records.scan::<FloorRecord>(Class::Marks, keys::PURGED).map(floor).collect()
}

/// The feed in the key of what a feed has one of.
pub(super) fn name(records: &Records, class: Class, key: &[u8]) -> Result<FeedName, StoreError> {
    records.of_key(class, key, keys::feed_name(key))
}
