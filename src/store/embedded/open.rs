//! Opening a store: whose it is, whether it is whole, and everything that is kept in memory.

use super::read::last_logged;
use super::records::Records;
use super::undo::{self, Cleaning, LAST};
use super::{keys, purge};
use crate::engine::{Class, KeyOrder, Writes, beginning_with};
use crate::purge_mark::PurgeMark;
use crate::record::{FloorRecord, IdentityRecord, LogAges, StateRecord};
use crate::{AppliedConfig, Epoch, StoreError, StoreOrigin, endpoint, lineage};
use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::time::Duration;
use tidegate_core::model::{EndpointId, FeedName, Lineage, SupIdBasis, Time};

/// The format that is written and read.
const FORMAT: u32 = 1;
/// Where the format's number stands in [`Class::Gateway`]: four bytes, the greatest first.
const FORMAT_KEY: &[u8] = b"format";
/// Where the identity stands.
const IDENTITY_KEY: &[u8] = b"identity";
/// Where the number of list writes stands: eight bytes, the greatest first.
const LIST_WRITES_KEY: &[u8] = b"list_writes";

/// Where it stands how old the change log is.
const LOG_AGES_KEY: &[u8] = b"log_ages";
/// Where it stands which feeds of a configuration were applied, and where its sites were.
const APPLIED_FEEDS_KEY: &[u8] = b"applied_feeds";
const APPLIED_ORIGINS_KEY: &[u8] = b"applied_origins";

/// What stands there while another store's state is taken in.
const IMPORTING_KEY: &[u8] = b"importing";

/// Notes that another store's state is being taken in, or that all of it was.
pub(super) fn note_importing(writes: &mut Writes, is_importing: bool) {
    let value = is_importing.then(Vec::new);
    writes.insert((Class::Gateway, IMPORTING_KEY.to_vec()), value);
}

/// What a store holds in memory from its start.
pub(crate) struct Opened {
    pub(crate) endpoint: EndpointId,
    pub(super) sup_ids: SupIdBasis,
    /// The opening itself.
    pub(crate) opening: Opening,
    pub(super) committed: HashMap<FeedName, StateRecord>,
    pub(super) floors: HashMap<FeedName, PurgeMark>,
    /// How often records outside the content of feeds were written.
    pub(super) list_writes: u64,
    /// The last closed epoch, and when it was closed.
    pub(crate) sealed: (Epoch, Time),
    /// Feeds of which is kept what records were before a write that was undone.
    pub(super) cleaning: BTreeMap<FeedName, Cleaning>,
}

/// What was found in a store that is whole.
pub(crate) struct Found {
    /// Whose store it is; `None` where it is new.
    pub(crate) identity: Option<IdentityRecord>,
    pub(super) committed: HashMap<FeedName, StateRecord>,
    pub(super) floors: HashMap<FeedName, PurgeMark>,
    /// Purged feeds whose data was not all removed.
    sweeping: Vec<(FeedName, PurgeMark)>,
    /// How often records outside the content of feeds were written.
    pub(super) list_writes: u64,
    /// The last closed epoch, and when it was closed.
    pub(crate) sealed: (Epoch, Time),
}

/// Reads what is kept in memory. Writes nothing.
pub(crate) fn inspect(records: &Records) -> Result<Found, StoreError> {
    let identity = identity(records)?;
    if records.contains(Class::Gateway, IMPORTING_KEY)? {
        return Err(StoreError::PartlyImported { path: records.engine().path().to_owned() });
    }
    let sealed = last_logged(records)?.unwrap_or((Epoch(0), Time::MIN));
    let (floors, sweeping) = floors(records)?;
    let (committed, list_writes) = (states(records)?, list_writes(records)?);
    Ok(Found { identity, committed, floors, sweeping, list_writes, sealed })
}

/// What is asked of a store when it is opened.
#[derive(Debug, Default)]
pub(crate) struct OpenRequest {
    /// The endpoint id as configured.
    pub(crate) endpoint: Option<EndpointId>,
    /// What the SUP ids of a store are made of that takes another's place; one that was used keeps its own.
    pub(crate) sup_ids: Option<SupIdBasis>,
}

/// Tells one opening of a store from all others.
pub(crate) struct Opening {
    /// The fence of its claim.
    pub(crate) fence: u64,
    /// Its mark, chosen at random.
    pub(crate) mark: u32,
    /// Which opening closed which epochs; this one last.
    pub(crate) lineage: Lineage,
}

/// Decides whose store it is, raises the fence, ends an unfinished purge and undoes unfinished writes.
/// Durable on return.
pub(crate) fn begin(
    records: &Records,
    found: Found,
    request: OpenRequest,
) -> Result<Opened, StoreError> {
    let OpenRequest { endpoint: configured, sup_ids: new_sup_ids } = request;
    let Found { identity, committed, floors, sweeping, list_writes, sealed } = found;
    let used = !(committed.is_empty() && floors.is_empty() && sealed.0 == Epoch(0));
    // An id that was chosen is chosen again for a store that is made anew.
    let of_new = if configured.is_some() { SupIdBasis::Endpoint } else { SupIdBasis::Name };
    let (stored, before) = match identity {
        Some(IdentityRecord { endpoint, fence, sup_ids, lineage, running }) => {
            // As its endpoint id: an earlier opening over nothing gave no ids to anybody.
            let is_unused = new_sup_ids.is_some() && !used && is_empty(records)?;
            let sup_ids = new_sup_ids.filter(|_| is_unused).unwrap_or(sup_ids);
            (Some(endpoint), (fence, sup_ids, lineage, running))
        }
        None => (None, (0, new_sup_ids.unwrap_or(of_new), Lineage::default(), None)),
    };
    let (fence, sup_ids, mut lineage, running) = before;
    let fence = fence.saturating_add(1);
    let chance = || std::io::Error::other("the system gives out no random numbers");
    let mark = lineage::mark().ok_or_else(chance);
    let mark = mark.map_err(|source| StoreError::Io { doing: "choose a mark", source })?;
    lineage.open(mark, sealed.0.0);
    let endpoint = match (stored, configured) {
        (Some(stored), Some(wanted)) if stored != wanted && used => {
            return Err(StoreError::Endpoint { stored, wanted });
        }
        (_, Some(wanted)) => wanted,
        (Some(stored), None) => stored,
        (None, None) => endpoint::random()?,
    };
    for (feed, floor) in sweeping {
        while !purge::sweep(records, &feed, &floor)? {}
    }
    let cleaning = undo_unfinished(records, &committed)?;
    let mut writes = Writes::new();
    let format = FORMAT.to_be_bytes().to_vec();
    writes.insert((Class::Gateway, FORMAT_KEY.to_vec()), Some(format));
    let identity = IdentityRecord {
        endpoint: endpoint.clone(),
        fence,
        sup_ids,
        lineage: lineage.clone(),
        running,
    };
    records.put(&mut writes, Class::Gateway, IDENTITY_KEY.to_vec(), &identity)?;
    records.engine().apply(writes)?;
    let doing = "make its opening durable";
    let engine = records.engine();
    engine.pass().and_then(|()| engine.close_epochs(true)).map_err(|error| match error {
        StoreError::Io { source, .. } => StoreError::Io { doing, source },
        StoreError::Away { why, source, .. } => StoreError::Away { doing, why, source },
        other => other,
    })?;
    let opening = Opening { fence, mark, lineage };
    Ok(Opened { endpoint, sup_ids, opening, committed, floors, list_writes, sealed, cleaning })
}

/// Undoes every write that was not finished, and takes out what records were before a write that is finished:
/// nobody reads as of before it. Answers the feeds of which more is kept.
///
/// Whoever follows this store from another process may have read a record as an unfinished write left it, and
/// looks next for what it was before. That stays until the feed's next write is finished, which such a reader
/// notices.
fn undo_unfinished(
    records: &Records,
    committed: &HashMap<FeedName, StateRecord>,
) -> Result<BTreeMap<FeedName, Cleaning>, StoreError> {
    let all = || beginning_with(&[]);
    while let Some((key, _)) = records.first(Class::Unfinished, all(), KeyOrder::Ascending)? {
        let feed = name(records, Class::Unfinished, &key)?;
        let last = committed.get(&feed).map_or(0, |head| head.write);
        tracing::info!(feed = %feed, "a change that was not finished is undone");
        undo::roll_back::<StoreError>(records, &feed, last, &mut |writes| {
            records.engine().apply(writes)
        })?;
    }
    let (mut rest, mut kept) = (all(), BTreeMap::new());
    while let Some((key, _)) = records.first(Class::Undo, rest.clone(), KeyOrder::Ascending)? {
        let feed = keys::feed_of(&key)
            .ok_or_else(|| records.damaged(Class::Undo, &key, "it names no feed"))?;
        // Of a feed that has no state, nobody reads content.
        let last = committed.get(&feed).map_or(LAST, |head| head.write);
        let mut cleaning = Cleaning::default();
        loop {
            let (writes, is_all) = cleaning.portion(records, &feed, last)?;
            records.engine().apply(writes)?;
            if is_all {
                break;
            }
        }
        let of_feed = beginning_with(&keys::feed(&feed));
        let end = of_feed.1.clone();
        if records.first(Class::Undo, of_feed, KeyOrder::Ascending)?.is_some() {
            cleaning.newest = last.saturating_add(1);
            kept.insert(feed, cleaning);
        }
        match end {
            Bound::Excluded(end) => rest.0 = Bound::Included(end),
            _ => break,
        }
    }
    Ok(kept)
}

/// How old the change log is.
pub(super) fn log_ages(records: &Records) -> Result<LogAges, StoreError> {
    Ok(records.record(Class::Gateway, LOG_AGES_KEY)?.unwrap_or_default())
}

/// The entries that note where the running time stands, and how old the change log is: the store was open
/// for `passed` since the last time.
pub(super) fn note_running(
    records: &Records,
    at: Time,
    (passed, newest): (Duration, Epoch),
) -> Result<Writes, StoreError> {
    let mut writes = reidentify(records, |identity| identity.running = Some(at))?;
    let mut ages = log_ages(records)?;
    ages.note(passed, newest);
    records.put(&mut writes, Class::Gateway, LOG_AGES_KEY.to_vec(), &ages)?;
    Ok(writes)
}

/// What of a configuration was applied.
pub(super) fn applied(records: &Records) -> Result<AppliedConfig, StoreError> {
    let feeds = records.record(Class::Gateway, APPLIED_FEEDS_KEY)?;
    let origins = records.record(Class::Gateway, APPLIED_ORIGINS_KEY)?.unwrap_or_default();
    Ok(AppliedConfig { feeds, origins })
}

/// The entries that note it.
pub(super) fn note_applied(
    records: &Records,
    AppliedConfig { feeds, origins }: &AppliedConfig,
    writes: &mut Writes,
) -> Result<(), StoreError> {
    if let Some(feeds) = feeds {
        records.put(writes, Class::Gateway, APPLIED_FEEDS_KEY.to_vec(), feeds)?;
    }
    records.put(writes, Class::Gateway, APPLIED_ORIGINS_KEY.to_vec(), origins)
}

/// Notes how often records outside the content of feeds were written.
pub(super) fn count_list_writes(writes: &mut Writes, count: u64) {
    let value = count.to_be_bytes().to_vec();
    writes.insert((Class::Gateway, LIST_WRITES_KEY.to_vec()), Some(value));
}

/// How often records outside the content of feeds were written.
pub(super) fn list_writes(records: &Records) -> Result<u64, StoreError> {
    let count = records.get(Class::Gateway, LIST_WRITES_KEY)?;
    count.map_or(Ok(0), |count| list_write_count(records, &count))
}

fn list_write_count(records: &Records, value: &[u8]) -> Result<u64, StoreError> {
    let count = <[u8; 8]>::try_from(value).map(u64::from_be_bytes);
    count.map_err(|_| records.damaged(Class::Gateway, LIST_WRITES_KEY, "it is no number"))
}

/// What an entry of [`Class::Gateway`] says of what is kept in memory.
#[derive(Default)]
pub(super) struct GatewayEntry {
    pub(super) identity: Option<IdentityRecord>,
    pub(super) list_writes: Option<u64>,
}

/// Reads an entry that another gateway wrote. An error where it takes in the state of a third.
pub(super) fn gateway_entry(
    records: &Records,
    key: &[u8],
    value: Option<&[u8]>,
) -> Result<GatewayEntry, StoreError> {
    let mut entry = GatewayEntry::default();
    match (key, value) {
        (IDENTITY_KEY, Some(value)) => {
            entry.identity = Some(records.decode(Class::Gateway, key, value)?);
        }
        (LIST_WRITES_KEY, Some(value)) => {
            entry.list_writes = Some(list_write_count(records, value)?);
        }
        (IMPORTING_KEY, Some(_)) => {
            return Err(StoreError::PartlyImported { path: records.engine().path().to_owned() });
        }
        _ => {}
    }
    Ok(entry)
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
pub(super) fn identity(records: &Records) -> Result<Option<IdentityRecord>, StoreError> {
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

/// The marks of purged feeds, and those whose data was not all removed.
pub(super) type Floors = (HashMap<FeedName, PurgeMark>, Vec<(FeedName, PurgeMark)>);

pub(super) fn floors(records: &Records) -> Result<Floors, StoreError> {
    let (mut floors, mut sweeping) = (HashMap::new(), Vec::new());
    for entry in records.scan::<FloorRecord>(Class::Floors, &[]) {
        let (key, record) = entry?;
        let feed = name(records, Class::Floors, &key)?;
        if record.sweeping {
            sweeping.push((feed.clone(), record.floor));
        }
        floors.insert(feed, record.floor);
    }
    Ok((floors, sweeping))
}

/// The feed in the key of what a feed has one of.
pub(super) fn name(records: &Records, class: Class, key: &[u8]) -> Result<FeedName, StoreError> {
    keys::feed_name(key).ok_or_else(|| records.damaged(class, key, "it names no feed"))
}

#[cfg(test)]
mod tests {
    use super::super::undo::Keep;
    use super::*;
    use crate::engine::MemoryEngine;
    use std::sync::Arc;
    use tidegate_core::model::{FeedState, Format};

    /// A gateway that follows the store read a record as an unfinished write left it; then another one takes the
    /// store and undoes that write; then the first one looks for what the record was.
    #[test]
    fn an_opening_keeps_what_whoever_follows_looks_for() {
        let records = Records::of(Arc::new(MemoryEngine::default()));
        let names = ["aaa", "news", "zzz"].map(|name| FeedName::new(name).unwrap());
        let key = |feed: &FeedName| [keys::feed(feed), b"it".to_vec()].concat();
        let set = |feed: &FeedName, write, keep, text: &str| {
            let value = Some(text.as_bytes().to_vec());
            let writes = [((Class::Latest, key(feed)), value)].into_iter().collect();
            records.write(writes, write, keep).unwrap();
        };
        let stored = |feed: &FeedName| records.engine().get(Class::Latest, &key(feed)).unwrap();
        for feed in &names {
            set(feed, 1, Keep::Nothing, "one");
            set(feed, 2, Keep::Before, "two");
        }
        let [finished, news, purged] = &names;
        let unfinished = (Class::Unfinished, keys::feed(news));
        records.engine().apply([(unfinished, Some(Vec::new()))].into_iter().collect()).unwrap();
        let read = stored(news).unwrap();
        let state = FeedState::untouched(Format::Atom10, Time::from_unix(7));
        let head = |write| StateRecord { state: state.clone(), next_event: 1, write };
        let committed = [(finished.clone(), head(2)), (news.clone(), head(1))];
        let kept = undo_unfinished(&records, &committed.into_iter().collect()).unwrap();
        let seen = records.at(1).seen(Class::Latest, &key(news), &read).unwrap();
        assert_eq!(seen.as_deref(), Some(&b"one"[..]));
        assert_eq!(kept.keys().collect::<Vec<_>>(), [news]);
        for feed in [finished, purged] {
            let of_feed = beginning_with(&keys::feed(feed));
            assert!(records.first(Class::Undo, of_feed, KeyOrder::Ascending).unwrap().is_none());
        }
        // It goes once the next write is finished.
        let mut cleaning = kept.into_values().next().unwrap();
        assert!(!cleaning.is_due(1) && cleaning.is_due(2));
        let (writes, is_all) = cleaning.portion(&records, news, 2).unwrap();
        assert!(is_all && writes.len() == 1);
    }
}
