//! Opening a store: whose it is, whether it is whole, and everything that is kept in memory.

use super::barrier::Barrier;
use super::committer::CommittedFeed;
use super::folder::{Mark, StoreFolder};
use super::keys;
use super::purge;
use super::read::last_logged;
use super::redo;
use super::trees::{Class, Trees, failed};
use crate::model::{EndpointId, FeedName, SupIdBasis, Time};
use crate::store::purge_mark::PurgeMark;
use crate::store::record::{FloorRecord, IdentityRecord, StateRecord, decode, encode};
use crate::store::{Epoch, StoreError, endpoint};
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::Duration;

/// The format that is written, and the newest that is read.
const FORMAT: u32 = 1;
/// Where the format's number stands in the default tree: four bytes, the greatest first.
const FORMAT_KEY: &[u8] = b"\0tidegate";
/// Where it stands in stores from before 0.1.0.
const UNRELEASED_KEY: &[u8] = b"\0format";
/// Where the identity stands in the default tree.
const IDENTITY_KEY: &[u8] = b"\0identity";
/// sled's page cache, in bytes. Its default is 1 GiB.
const CACHE: u64 = 64 * 1024 * 1024;
/// How often sled flushes by itself, in milliseconds; its garbage collection runs then.
const FLUSH_EVERY: u64 = 500;
/// How often, and how far apart, sled's own lock is tried again: our lock is held already, so it
/// can only be that of a store that this process has just closed.
const LOCK_TRIES: u32 = 50;
const LOCK_PAUSE: Duration = Duration::from_millis(50);
/// What a store holds in memory from its start.
pub(super) struct Opened {
    pub(super) endpoint: EndpointId,
    pub(super) sup_ids: SupIdBasis,
    pub(super) fence: u64,
    pub(super) held: HashMap<FeedName, CommittedFeed>,
    pub(super) floors: HashMap<FeedName, PurgeMark>,
    pub(super) sealed: (Epoch, Time),
}

/// What was found in a store that is whole.
pub(super) struct OpenedStore {
    /// Whose store it is; `None` where it is new.
    identity: Option<IdentityRecord>,
    held: HashMap<FeedName, CommittedFeed>,
    floors: HashMap<FeedName, PurgeMark>,
    /// Purged feeds whose data was not all removed.
    sweeping: Vec<(FeedName, PurgeMark)>,
    sealed: (Epoch, Time),
}

/// Opens sled in the folder `path` and carries out what is in its redo log; messages speak of the
/// folder `shown`.
pub(super) fn engine(path: &Path, shown: &Path) -> Result<Trees, StoreError> {
    let config =
        ::sled::Config::new().path(path).cache_capacity(CACHE).flush_every_ms(Some(FLUSH_EVERY));
    let path = shown.display().to_string();
    let mut tries = 0;
    loop {
        // sled 0.34 panics on some damaged files where it should answer an error.
        let opened =
            catch_unwind(AssertUnwindSafe(|| config.open().and_then(|db| Trees::open(&db, &path))));
        match opened {
            Ok(Ok(trees)) => return redo::carry_out(&trees).map(|()| trees),
            Ok(Err(error)) if locked(&error) => {
                tries += 1;
                if tries > LOCK_TRIES {
                    return Err(StoreError::InUse { path });
                }
                std::thread::sleep(LOCK_PAUSE);
            }
            Ok(Err(error)) => return Err(failed(&path, "open its database", error)),
            Err(panic) => {
                let what = format!("the engine broke off while opening it: {}", said(&*panic));
                return Err(StoreError::Damaged { path, what });
            }
        }
    }
}

/// sled tells only in words that its lock is taken.
fn locked(error: &::sled::Error) -> bool {
    matches!(error, ::sled::Error::Io(error) if error.to_string().contains("could not acquire lock"))
}

fn said(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("without a word").chars().filter(|c| !c.is_control()).collect()
}

/// Reads what is kept in memory, and checks that the store has everything up to its mark and up to
/// `reached`. Writes nothing.
pub(super) fn inspect(
    trees: &Trees,
    mark: Option<&Mark>,
    reached: Epoch,
) -> Result<OpenedStore, StoreError> {
    let identity = identity(trees, mark)?;
    let sealed = last_logged(trees)?.unwrap_or((Epoch(0), Time::MIN));
    if let (Some(mark), Some(IdentityRecord { endpoint, fence, .. })) = (mark, &identity) {
        let behind = *fence < mark.fence || sealed.0 < mark.epoch.max(reached);
        if behind || *endpoint != mark.endpoint {
            return Err(damaged(trees, "what is stored is older than what the store had reached"));
        }
    }
    let (floors, sweeping) = floors(trees)?;
    Ok(OpenedStore { identity, held: states(trees)?, floors, sweeping, sealed })
}

/// Decides whose store it is, raises the fence and mends an unfinished purge. Durable on return.
pub(super) fn open(
    folder: &StoreFolder,
    trees: &Trees,
    barrier: &mut dyn Barrier,
    found: OpenedStore,
    configured: Option<EndpointId>,
    new_sup_ids: Option<SupIdBasis>,
) -> Result<Opened, StoreError> {
    let OpenedStore { identity, held, floors, sweeping, sealed } = found;
    let used = !(held.is_empty() && floors.is_empty() && sealed.0 == Epoch(0));
    // An id that was chosen is chosen again for a store that is made anew.
    let of_new = if configured.is_some() { SupIdBasis::Endpoint } else { SupIdBasis::Name };
    let (stored, fence, sup_ids) = match identity {
        Some(IdentityRecord { endpoint, fence, sup_ids }) => (Some(endpoint), fence + 1, sup_ids),
        None => (None, 1, new_sup_ids.unwrap_or(of_new)),
    };
    let endpoint = match (stored, configured) {
        (Some(stored), Some(wanted)) if stored != wanted && used => {
            return Err(StoreError::Endpoint { stored, wanted });
        }
        (_, Some(wanted)) => wanted,
        (Some(stored), None) => stored,
        (None, None) => endpoint::random()?,
    };
    let mut pass = || {
        let doing = "make its opening durable";
        barrier.pass().map_err(|source| StoreError::Io { doing, source })
    };
    redo::clear(trees, &mut pass)?;
    for (feed, floor) in sweeping {
        purge::sweep(trees, &feed, &floor)?;
    }
    write_identity(trees, &IdentityRecord { endpoint: endpoint.clone(), fence, sup_ids })?;
    pass()?;
    let mark = Mark { endpoint, fence, epoch: sealed.0, digest: None };
    folder.set_mark(&mark)?;
    Ok(Opened { endpoint: mark.endpoint, sup_ids, fence, held, floors, sealed })
}

/// Whose store it is; `None` where it is new.
pub(super) fn identity(
    trees: &Trees,
    mark: Option<&Mark>,
) -> Result<Option<IdentityRecord>, StoreError> {
    let get = |key| trees.db().get(key).map_err(|error| trees.failed("read", error));
    let Some(format) = get(FORMAT_KEY)? else {
        if get(UNRELEASED_KEY)?.is_some() {
            return Err(StoreError::Unreleased { path: trees.path().to_owned() });
        }
        let empty = Class::ALL.iter().all(|class| trees.tree(*class).is_empty());
        return match (mark, empty && trees.db().is_empty()) {
            (None, true) => Ok(None),
            (Some(_), _) => Err(damaged(trees, "the store was used, and is empty now")),
            (None, false) => Err(damaged(trees, "it has data and no format number")),
        };
    };
    let format = format.as_ref().try_into().map(u32::from_be_bytes);
    match format.map_err(|_| damaged(trees, "the format number is no number"))? {
        FORMAT => {}
        found if found > FORMAT => {
            return Err(StoreError::Newer { path: trees.path().to_owned(), found, known: FORMAT });
        }
        _ => return Err(damaged(trees, "the format number is none that was ever written")),
    }
    let record = get(IDENTITY_KEY)?.ok_or_else(|| damaged(trees, "it has no identity"))?;
    let wrong = |error| damaged(trees, &format!("the identity cannot be read: {error}"));
    Ok(Some(decode(&record).map_err(wrong)?))
}

pub(super) fn write_identity(trees: &Trees, record: &IdentityRecord) -> Result<(), StoreError> {
    let record =
        encode(record).map_err(|error| trees.unwritable("the identity".to_owned(), error))?;
    let mut batch = ::sled::Batch::default();
    batch.insert(FORMAT_KEY, &FORMAT.to_be_bytes());
    batch.insert(IDENTITY_KEY, record);
    trees.db().apply_batch(batch).map_err(|error| trees.failed("write", error))
}

fn states(trees: &Trees) -> Result<HashMap<FeedName, CommittedFeed>, StoreError> {
    trees
        .scan::<StateRecord>(Class::States, Vec::new())
        .map(|entry| {
            let (key, record) = entry?;
            let StateRecord { state, next_event } = record;
            Ok((name(trees, Class::States, &key)?, CommittedFeed { state, next_event }))
        })
        .collect()
}

/// The marks of purged feeds, and those whose data was not all removed.
type Floors = (HashMap<FeedName, PurgeMark>, Vec<(FeedName, PurgeMark)>);

fn floors(trees: &Trees) -> Result<Floors, StoreError> {
    let (mut floors, mut sweeping) = (HashMap::new(), Vec::new());
    for entry in trees.scan::<FloorRecord>(Class::Floors, Vec::new()) {
        let (key, record) = entry?;
        let feed = name(trees, Class::Floors, &key)?;
        if record.sweeping {
            sweeping.push((feed.clone(), record.floor));
        }
        floors.insert(feed, record.floor);
    }
    Ok((floors, sweeping))
}

fn name(trees: &Trees, class: Class, key: &[u8]) -> Result<FeedName, StoreError> {
    keys::feed_name(key).ok_or_else(|| trees.damaged(class, key, "it names no feed"))
}

fn damaged(trees: &Trees, what: &str) -> StoreError {
    StoreError::Damaged { path: trees.path().to_owned(), what: what.to_owned() }
}
