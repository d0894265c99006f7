//! sled as the store's database: one tree per class of value, since sixteen neighbours share a leaf and
//! are written together, whatever their size. Large values stand in pieces in a tree of their own.

use super::barrier::FlushAndSync;
use super::watchdog::Watchdog;
use crate::StoreError;
use crate::engine::{Class, Engine, KeyOrder, KeyRange, PORTION_BYTES, Portion, Writes};
use ::sled::transaction::{ConflictableTransactionError, TransactionError};
use ::sled::{Db, IVec, Transactional, Tree};
use bytes::Bytes;
use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The longest value in one entry of a tree, in bytes. Sixteen of them make the largest leaf, which
/// so stays below the 128 KiB from which on sled 0.34 leaks space.
pub(super) const PIECE: usize = 7_000;
/// The most pieces of one value.
const PIECES_LIMIT: usize = u16::MAX as usize;
/// The value stands whole behind this byte.
const WHOLE: u8 = 0;
/// The size of a value in pieces stands behind this byte.
const IN_PIECES: u8 = 1;
/// How often in a row another value may take the place of one while its pieces are read.
const REPLACED_LIMIT: usize = 64;
/// sled's page cache, in bytes. Its default is 1 GiB.
const CACHE: u64 = 64 * 1024 * 1024;
/// How often sled flushes by itself, in milliseconds; its garbage collection runs then.
const FLUSH_EVERY: u64 = 500;
/// How often, and how far apart, sled's own lock is tried again: our lock is held already, so it
/// can only be that of a store that this process has just closed.
const LOCK_TRIES: u32 = 50;
const LOCK_PAUSE: Duration = Duration::from_millis(50);

/// A tree: that of a class, or one that only the engine knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Place {
    Of(Class),
    /// Pieces of large values of all classes.
    Pieces,
}

impl Place {
    /// All trees of values.
    pub(super) fn all() -> impl Iterator<Item = Self> {
        Class::ALL.iter().map(|class| Self::Of(*class)).chain([Self::Pieces])
    }

    /// Its name.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Of(class) => class.name(),
            Self::Pieces => "pieces",
        }
    }
}

/// Entries of trees to set and to remove.
pub(super) type TreeWrites = BTreeMap<(Place, Vec<u8>), Option<Vec<u8>>>;

/// A sled database.
pub(crate) struct SledEngine {
    path: String,
    trees: HashMap<Place, Tree>,
    barrier: Mutex<FlushAndSync>,
    /// The database's file, opened before the engine had it, until the first barrier: the system tells of
    /// what was lost once to each who had the file open then, and the engine does not pass it on.
    opened_before: Mutex<Option<File>>,
    watchdog: Watchdog,
}

/// How the names of sled's snapshots begin: what it has read of its log, so that it need not again.
const SNAPSHOT: &str = "snap.";
/// How the names of those end that it is still writing.
const UNFINISHED: &str = ".generating";

/// Whether a file of the folder is a snapshot that was not written to its end.
fn is_unfinished_snapshot(name: &str) -> bool {
    name.starts_with(SNAPSHOT) && name.ends_with(UNFINISHED)
}

/// Removes the snapshots that an end by force left unfinished. sled 0.34 takes such a file for its newest
/// snapshot, and so the store for damaged; the log and the snapshot before have all that it would have.
fn remove_unfinished_snapshots(path: &Path) -> io::Result<()> {
    let entries = match fs::read_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        if is_unfinished_snapshot(&entry.file_name().to_string_lossy()) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Opens sled in the folder `path` of a data folder.
pub(super) fn open(data_folder: &Path, path: &Path) -> Result<SledEngine, StoreError> {
    remove_unfinished_snapshots(path).map_err(|source| StoreError::Io {
        doing: "remove a snapshot that was not written to its end",
        source,
    })?;
    // A new database has none yet.
    let opened_before = File::options().read(true).write(true).open(path.join("db")).ok();
    // What a process that was killed had written need not be durable: sled takes it for that, and overwrites what
    // it takes the place of.
    let synced = opened_before.as_ref().map_or(Ok(()), File::sync_all);
    synced.map_err(|source| StoreError::Io { doing: "make its database durable", source })?;
    let opened_before = Mutex::new(opened_before);
    let config =
        ::sled::Config::new().path(path).cache_capacity(CACHE).flush_every_ms(Some(FLUSH_EVERY));
    let shown = data_folder.display().to_string();
    let mut tries = 0;
    loop {
        // sled 0.34 panics on some damaged files where it should answer an error.
        let opened = catch_unwind(AssertUnwindSafe(|| {
            let db = config.open()?;
            Ok((open_trees(&db)?, db))
        }));
        match opened {
            Ok(Ok((trees, db))) => {
                let barrier = sync_beside(path)
                    .and_then(|()| FlushAndSync::new(db.clone(), path))
                    .map_err(|source| StoreError::Io { doing: "open its database", source })?;
                let barrier = Mutex::new(barrier);
                let waking = db.clone();
                // What it answers is no barrier's answer.
                let watchdog = Watchdog::new(move || drop(waking.flush()))
                    .map_err(|source| StoreError::Io { doing: "open its database", source })?;
                return Ok(SledEngine { path: shown, trees, barrier, opened_before, watchdog });
            }
            Ok(Err(error)) if is_locked(&error) => {
                tries += 1;
                if tries > LOCK_TRIES {
                    return Err(StoreError::InUse { path: shown });
                }
                std::thread::sleep(LOCK_PAUSE);
            }
            Ok(Err(error)) => return Err(failed(&shown, "open its database", error)),
            Err(panic) => {
                let what = format!("the engine broke off while opening it: {}", message(&*panic));
                return Err(StoreError::Damaged { path: shown, what });
            }
        }
    }
}

/// Makes durable what sled does not sync: its settings, and the names of its files.
fn sync_beside(path: &Path) -> io::Result<()> {
    File::open(path.join("conf"))?.sync_all()?;
    File::open(path)?.sync_all()
}

fn open_trees(db: &Db) -> ::sled::Result<HashMap<Place, Tree>> {
    Place::all().map(|place| Ok((place, db.open_tree(place.name())?))).collect()
}

/// sled tells only in words that its lock is taken.
fn is_locked(error: &::sled::Error) -> bool {
    matches!(error, ::sled::Error::Io(error) if error.to_string().contains("could not acquire lock"))
}

fn message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("without a word").chars().filter(|c| !c.is_control()).collect()
}

impl SledEngine {
    /// A tree.
    pub(super) fn tree(&self, place: Place) -> Result<&Tree, StoreError> {
        // There is one for every place.
        self.trees.get(&place).ok_or_else(|| self.damaged(place, &[], "there is no such tree"))
    }

    /// Removes one entry of a tree; not durable yet.
    fn remove(&self, place: Place, key: &[u8]) -> Result<(), StoreError> {
        let removed = self.tree(place)?.remove(key);
        removed.map(drop).map_err(|error| self.failed("write", error))
    }

    /// What an error of the engine means.
    pub(super) fn failed(&self, doing: &'static str, error: ::sled::Error) -> StoreError {
        failed(&self.path, doing, error)
    }

    /// An entry that cannot be right.
    pub(super) fn damaged(&self, place: Place, key: &[u8], what: &str) -> StoreError {
        let what = format!("in {} at {}: {what}", place.name(), key.escape_ascii());
        StoreError::Damaged { path: self.path.clone(), what }
    }

    fn root(&self, class: Class, key: &[u8]) -> Result<Option<IVec>, StoreError> {
        self.tree(Place::Of(class))?.get(key).map_err(|error| self.failed("read", error))
    }

    /// The value whose root entry is `root`; `None` where it was removed meanwhile. Where another value takes its place
    /// meanwhile, pieces are missing, and that one is read.
    fn whole(&self, class: Class, key: &[u8], root: &IVec) -> Result<Option<Bytes>, StoreError> {
        let mut root = root.clone();
        for _ in 0..REPLACED_LIMIT {
            let Some(pieces) = ValuePieces::of(&root) else {
                let value = root.split_first().filter(|(first, _)| **first == WHOLE);
                let value = value.map(|(_, value)| Bytes::copy_from_slice(value));
                let damaged = || self.damaged(Place::Of(class), key, "it has no head");
                return value.ok_or_else(damaged).map(Some);
            };
            if let Some(value) = self.joined(class, key, pieces)? {
                return Ok(Some(value));
            }
            match self.root(class, key)? {
                None => return Ok(None),
                Some(now) if now == root => break,
                Some(now) => root = now,
            }
        }
        Err(self.damaged(Place::Of(class), key, "a piece is missing"))
    }

    /// The value of these pieces; `None` where one is missing.
    fn joined(
        &self,
        class: Class,
        key: &[u8],
        pieces: ValuePieces,
    ) -> Result<Option<Bytes>, StoreError> {
        let tree = self.tree(Place::Pieces)?;
        let mut value = Vec::new();
        for key in pieces.keys(class, key) {
            let piece = tree.get(key).map_err(|error| self.failed("read", error))?;
            let Some(piece) = piece else { return Ok(None) };
            value.extend_from_slice(&piece);
        }
        Ok(Some(value.into()))
    }

    /// The entries of trees that make these writes: a large value is a root and its pieces, and what was
    /// there before goes with its own.
    fn tree_writes(&self, writes: Writes) -> Result<TreeWrites, StoreError> {
        let mut made = TreeWrites::new();
        for ((class, key), value) in writes {
            let before = self.root(class, &key)?;
            let old = before.as_deref().and_then(ValuePieces::of);
            if let Some(old) = old {
                made.extend(old.keys(class, &key).map(|key| ((Place::Pieces, key), None)));
            }
            let root = match value {
                None if before.is_none() => continue,
                None => None,
                Some(value) if value.len() < PIECE => Some([&[WHOLE], value.as_slice()].concat()),
                Some(value) => {
                    let too_large = || StoreError::TooLarge {
                        what: format!("the value {} of {}", key.escape_ascii(), class.name()),
                        size: value.len(),
                        limit: PIECE * PIECES_LIMIT,
                    };
                    let size = u32::try_from(value.len()).map_err(|_| too_large())?;
                    let turn = old.map_or(0, |old| old.turn.wrapping_add(1));
                    let new = ValuePieces { size, turn };
                    if new.count() > PIECES_LIMIT {
                        return Err(too_large());
                    }
                    for (key, part) in new.keys(class, &key).zip(value.chunks(PIECE)) {
                        made.insert((Place::Pieces, key), Some(part.to_vec()));
                    }
                    Some(new.root())
                }
            };
            made.insert((Place::Of(class), key), root);
        }
        Ok(made)
    }

    /// Sets and removes entries as one transaction; not durable yet.
    pub(super) fn transact(&self, writes: &TreeWrites) -> Result<(), StoreError> {
        let mut places: Vec<Place> = writes.keys().map(|(place, _)| *place).collect();
        places.dedup();
        let touched: Vec<&Tree> =
            places.iter().map(|place| self.tree(*place)).collect::<Result<_, _>>()?;
        if touched.is_empty() {
            return Ok(());
        }
        let applied = touched.as_slice().transaction(|views| {
            for ((place, key), value) in writes {
                let view = places.iter().zip(views).find(|(touched, _)| *touched == place);
                match (view, value) {
                    (Some((_, view)), Some(value)) => {
                        view.insert(key.as_slice(), value.as_slice())?;
                    }
                    (Some((_, view)), None) => {
                        view.remove(key.as_slice())?;
                    }
                    (None, _) => {}
                }
            }
            Ok::<(), ConflictableTransactionError<()>>(())
        });
        applied.map_err(|error| match error {
            TransactionError::Storage(error) => self.failed("write", error),
            TransactionError::Abort(()) => {
                self.failed("write", ::sled::Error::Unsupported("aborted".to_owned()))
            }
        })
    }
}

impl Engine for SledEngine {
    fn path(&self) -> &str {
        &self.path
    }

    fn is_compact(&self) -> bool {
        true
    }

    fn get(&self, class: Class, key: &[u8]) -> Result<Option<Bytes>, StoreError> {
        let root = self.root(class, key)?;
        Ok(root.map(|root| self.whole(class, key, &root)).transpose()?.flatten())
    }

    fn portion(
        &self,
        class: Class,
        range: &KeyRange,
        order: KeyOrder,
        limit: usize,
    ) -> Result<Portion, StoreError> {
        let mut found = self.tree(Place::Of(class))?.range::<Vec<u8>, _>(range.clone());
        let (mut entries, mut bytes) = (Vec::new(), 0_usize);
        while entries.len() < limit && bytes < PORTION_BYTES {
            let entry = match order {
                KeyOrder::Ascending => found.next(),
                KeyOrder::Descending => found.next_back(),
            };
            let Some(entry) = entry else { return Ok(Portion { entries, has_more: false }) };
            let (key, root) = entry.map_err(|error| self.failed("read", error))?;
            let Some(value) = self.whole(class, &key, &root)? else { continue };
            bytes = bytes.saturating_add(key.len()).saturating_add(value.len());
            entries.push((key.to_vec(), value));
        }
        Ok(Portion { entries, has_more: true })
    }

    fn sizes(
        &self,
        class: Class,
        range: &KeyRange,
        limit: usize,
    ) -> Result<Vec<(Vec<u8>, u64)>, StoreError> {
        let found = self.tree(Place::Of(class))?.range::<Vec<u8>, _>(range.clone());
        let mut sizes = Vec::new();
        for entry in found.take(limit) {
            let (key, root) = entry.map_err(|error| self.failed("read", error))?;
            let size = match ValuePieces::of(&root) {
                Some(pieces) => pieces.size.into(),
                None => root.len().saturating_sub(1).try_into().unwrap_or(u64::MAX),
            };
            sizes.push((key.to_vec(), size));
        }
        Ok(sizes)
    }

    fn apply(&self, writes: Writes) -> Result<(), StoreError> {
        self.transact(&self.tree_writes(writes)?)
    }

    fn clear(&self, class: Class, prefix: &[u8], limit: usize) -> Result<bool, StoreError> {
        let tree = self.tree(Place::Of(class))?;
        let mut cleared = 0;
        for entry in tree.scan_prefix(prefix).take(limit) {
            let (key, root) = entry.map_err(|error| self.failed("read", error))?;
            if let Some(pieces) = ValuePieces::of(&root) {
                for piece in pieces.keys(class, &key) {
                    self.remove(Place::Pieces, &piece)?;
                }
            }
            self.remove(Place::Of(class), &key)?;
            cleared += 1;
        }
        Ok(cleared == limit)
    }

    fn pass(&self) -> Result<(), StoreError> {
        let mut barrier = self.barrier.lock().unwrap_or_else(PoisonError::into_inner);
        let watched = self.watchdog.watch();
        let passed = barrier.pass().and_then(|()| {
            let mut before = self.opened_before.lock().unwrap_or_else(PoisonError::into_inner);
            before.take().map_or(Ok(()), |file| file.sync_data())
        });
        drop(watched);
        passed.map_err(|source| {
            let source = io::Error::new(source.kind(), format!("{}: {source}", self.path));
            StoreError::Io { doing: "make a write durable", source }
        })
    }

    fn wake(&self) {
        if let Some(tree) = self.trees.values().next() {
            drop(tree.flush());
        }
    }
}

/// The pieces of a large value.
#[derive(Debug, Clone, Copy)]
struct ValuePieces {
    /// The bytes of the value.
    size: u32,
    /// Another one for each value at a key, so that nobody reads pieces of two of them as one.
    turn: u8,
}

impl ValuePieces {
    /// Those behind a root entry, where it has any.
    fn of(root: &[u8]) -> Option<Self> {
        let (turn, size) = root.strip_prefix(&[IN_PIECES])?.split_last()?;
        Some(Self { size: u32::from_be_bytes(size.try_into().ok()?), turn: *turn })
    }

    /// The root entry.
    fn root(self) -> Vec<u8> {
        [&[IN_PIECES], self.size.to_be_bytes().as_slice(), &[self.turn]].concat()
    }

    /// How many there are.
    fn count(self) -> usize {
        usize::try_from(self.size).unwrap_or(usize::MAX).div_ceil(PIECE)
    }

    /// Their keys: the value's own key, the turn, the piece's number, and the class.
    fn keys(self, class: Class, key: &[u8]) -> impl Iterator<Item = Vec<u8>> {
        let key = key.to_vec();
        let key = move |number: u16| {
            [key.as_slice(), &[self.turn], number.to_be_bytes().as_slice(), &[class as u8]].concat()
        };
        (0..=u16::MAX).take(self.count()).map(key)
    }
}

/// What an error of the engine means for the store in `path`.
fn failed(path: &str, doing: &'static str, error: ::sled::Error) -> StoreError {
    match error {
        ::sled::Error::Io(source) => {
            let source = io::Error::new(source.kind(), format!("{path}: {source}"));
            StoreError::Io { doing, source }
        }
        // Its Display would print the engine's own wording; only the place matters here.
        ::sled::Error::Corruption { at, .. } => StoreError::Damaged {
            path: path.to_owned(),
            what: at.map_or_else(
                || "the engine found corrupted data".to_owned(),
                |at| format!("the engine found corrupted data at {at}"),
            ),
        },
        other => StoreError::Damaged { path: path.to_owned(), what: other.to_string() },
    }
}
