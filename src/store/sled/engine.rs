//! The engine over sled: one tree, whose keys begin with the class. Sixteen neighbours share a leaf, which is written
//! whole; so large values are split into pieces, after all classes.

use super::barrier::FlushAndSync;
use crate::StoreError;
use crate::engine::{
    Class, Engine, KeyOrder, KeyRange, PORTION_BYTES, Portion, RecordKey, Writes, beginning_with,
};
use ::sled::{Batch, Db, IVec};
use bytes::Bytes;
use std::fs::{self, File};
use std::io;
use std::ops::Bound;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The longest value in one entry of a tree, in bytes. Sixteen of them make the largest leaf, which
/// so stays below the 128 KiB from which on sled 0.34 leaks space.
const PIECE: usize = 7_000;
/// The most pieces of one value.
const PIECES_LIMIT: usize = u16::MAX as usize;
/// The first byte of a whole value.
const WHOLE: u8 = 0;
/// The first byte of the root of a value in pieces; the size follows.
const IN_PIECES: u8 = 1;
/// The first byte of the keys of pieces, instead of a class.
const PIECES: u8 = u8::MAX;
/// sled's page cache, in bytes. Its default is 1 GiB.
const CACHE: u64 = 64 * 1024 * 1024;
/// How often sled flushes by itself, in milliseconds; its garbage collection runs then.
const FLUSH_EVERY: u64 = 500;
/// How often, and how far apart, sled's own lock is tried again: our lock is held already, so it
/// can only be that of a store that this process has just closed.
const LOCK_TRIES: u32 = 50;
const LOCK_PAUSE: Duration = Duration::from_millis(50);

/// The key of an entry in the tree.
fn tree_key(class: Class, key: &[u8]) -> Vec<u8> {
    [&[class as u8], key].concat()
}

/// A range of a class in the tree.
fn tree_range(class: Class, (begin, end): &KeyRange) -> KeyRange {
    let key = |key: &Vec<u8>| tree_key(class, key);
    let begin = match begin {
        Bound::Unbounded => Bound::Included(tree_key(class, &[])),
        begin => begin.as_ref().map(key),
    };
    let end = match end {
        Bound::Unbounded => beginning_with(&[class as u8]).1,
        end => end.as_ref().map(key),
    };
    (begin, end)
}

/// A sled database.
pub(crate) struct SledEngine {
    path: String,
    db: Db,
    barrier: Mutex<FlushAndSync>,
}

/// The prefix of sled's snapshots of its log.
const SNAPSHOT: &str = "snap.";
/// The suffix of snapshots that are being written.
const UNFINISHED: &str = ".generating";

/// Removes snapshots that a killed process left unfinished. sled 0.34 would read such a file as its newest snapshot,
/// and take the store for damaged; the log and the snapshot before it have all the data.
fn remove_unfinished_snapshots(path: &Path) -> io::Result<()> {
    let entries = match fs::read_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with(SNAPSHOT) && name.ends_with(UNFINISHED) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Prepares the files of the engine before sled opens them; answers the file of the database, where there is one.
fn prepare(path: &Path) -> Result<Option<File>, StoreError> {
    remove_unfinished_snapshots(path).map_err(|source| StoreError::Io {
        doing: "remove a snapshot that was not written to its end",
        source,
    })?;
    // A new database has none yet.
    let opened_before = File::options().read(true).write(true).open(path.join("db")).ok();
    // A killed process may have left writes that are not durable: sled trusts them, and overwrites what they replace.
    let synced = opened_before.as_ref().map_or(Ok(()), File::sync_all);
    synced.map_err(|source| StoreError::Io { doing: "make its database durable", source })?;
    Ok(opened_before)
}

/// Opens sled in a folder; messages name the data folder.
fn open_sled(path: &Path, shown: &str) -> Result<Db, StoreError> {
    let config =
        ::sled::Config::new().path(path).cache_capacity(CACHE).flush_every_ms(Some(FLUSH_EVERY));
    for _ in 0..LOCK_TRIES {
        // sled 0.34 panics on some damaged files where it should answer an error.
        match catch_unwind(AssertUnwindSafe(|| config.open())) {
            Ok(Ok(db)) => return Ok(db),
            Ok(Err(error)) if is_locked(&error) => std::thread::sleep(LOCK_PAUSE),
            Ok(Err(error)) => return Err(failed(shown, "open its database", error)),
            Err(panic) => {
                let what = format!("the engine broke off while opening it: {}", message(&*panic));
                return Err(StoreError::Damaged { path: shown.to_owned(), what });
            }
        }
    }
    Err(StoreError::InUse { path: shown.to_owned() })
}

/// sled reports a taken lock only in the message.
fn is_locked(error: &::sled::Error) -> bool {
    matches!(error, ::sled::Error::Io(error) if error.to_string().contains("could not acquire lock"))
}

fn message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("without a word").chars().filter(|c| !c.is_control()).collect()
}

impl SledEngine {
    /// Opens the database in the folder `path`, or makes one; messages name the data folder. Writes that were never
    /// durable may be lost; other missing data is an error.
    pub(crate) fn open(data_folder: &Path, path: &Path) -> Result<Self, StoreError> {
        let (shown, opened_before) = (data_folder.display().to_string(), prepare(path)?);
        let db = open_sled(path, &shown)?;
        let barrier = || {
            // sled does not sync its settings and the names of its files.
            File::open(path.join("conf"))?.sync_all()?;
            File::open(path)?.sync_all()?;
            FlushAndSync::new(db.clone(), path, opened_before)
        };
        let barrier = barrier();
        let barrier =
            barrier.map_err(|source| StoreError::Io { doing: "open its database", source })?;
        Ok(Self { path: shown, db, barrier: Mutex::new(barrier) })
    }

    /// The error of a damaged entry.
    fn damaged(&self, key: &[u8], what: &str) -> StoreError {
        let (class, key) = key.split_first().unwrap_or((&0, &[]));
        let known = Class::ALL.iter().find(|known| **known as u8 == *class);
        let class = known.map_or("pieces", |class| class.name());
        let what = format!("in {class} at {}: {what}", key.escape_ascii());
        StoreError::Damaged { path: self.path.clone(), what }
    }

    fn root(&self, key: &[u8]) -> Result<Option<IVec>, StoreError> {
        self.db.get(key).map_err(|error| failed(&self.path, "read", error))
    }

    /// The value of the root entry `root`. The caller excludes writers.
    fn whole(&self, key: &[u8], root: &IVec) -> Result<Bytes, StoreError> {
        let Some(size) = size_in_pieces(root) else {
            let value = root.split_first().filter(|(first, _)| **first == WHOLE);
            let value = value.map(|(_, value)| Bytes::copy_from_slice(value));
            return value.ok_or_else(|| self.damaged(key, "it has no head"));
        };
        let mut value = Vec::new();
        for piece in piece_keys(key, size) {
            let missing = || self.damaged(key, "a piece is missing");
            value.extend_from_slice(&self.root(&piece)?.ok_or_else(missing)?);
        }
        Ok(value.into())
    }

    /// Plans setting or removing an entry: a large value is a root and its pieces; the pieces of the old value are
    /// removed.
    fn write(
        &self,
        batch: &mut Batch,
        key: &[u8],
        value: Option<Vec<u8>>,
    ) -> Result<(), StoreError> {
        let before = self.root(key)?;
        let old = before.as_deref().and_then(size_in_pieces);
        old.into_iter().flat_map(|old| piece_keys(key, old)).for_each(|key| batch.remove(key));
        match value {
            None => batch.remove(key),
            Some(value) if value.len() < PIECE => {
                batch.insert(key, [&[WHOLE], value.as_slice()].concat());
            }
            Some(value) => {
                let limit = PIECE * PIECES_LIMIT;
                let size = u32::try_from(value.len()).ok().filter(|_| value.len() <= limit);
                let size = size.ok_or_else(|| StoreError::TooLarge {
                    what: format!("the value {}", key.escape_ascii()),
                    size: value.len(),
                    limit,
                })?;
                for (key, piece) in piece_keys(key, size).zip(value.chunks(PIECE)) {
                    batch.insert(key, piece);
                }
                batch.insert(key, [&[IN_PIECES], size.to_be_bytes().as_slice()].concat());
            }
        }
        Ok(())
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
        let key = tree_key(class, key);
        self.root(&key)?.map(|root| self.whole(&key, &root)).transpose()
    }

    fn portion(
        &self,
        class: Class,
        range: &KeyRange,
        order: KeyOrder,
        limit: usize,
    ) -> Result<Portion, StoreError> {
        let mut found = self.db.range::<Vec<u8>, _>(tree_range(class, range));
        let (mut entries, mut bytes) = (Vec::new(), 0_usize);
        while entries.len() < limit && bytes < PORTION_BYTES {
            let entry = match order {
                KeyOrder::Ascending => found.next(),
                KeyOrder::Descending => found.next_back(),
            };
            let Some(entry) = entry else { return Ok(Portion { entries, has_more: false }) };
            let (key, root) = entry.map_err(|error| failed(&self.path, "read", error))?;
            let value = self.whole(&key, &root)?;
            bytes = bytes.saturating_add(key.len()).saturating_add(value.len());
            entries.push((without_class(&key), value));
        }
        Ok(Portion { entries, has_more: true })
    }

    fn sizes(
        &self,
        ranges: &[(Class, KeyRange)],
        limit: usize,
    ) -> Result<Vec<(RecordKey, u64)>, StoreError> {
        let mut sizes = Vec::new();
        for (class, range) in ranges {
            for entry in self.db.range::<Vec<u8>, _>(tree_range(*class, range)).take(limit) {
                let (key, root) = entry.map_err(|error| failed(&self.path, "read", error))?;
                let whole = root.len().saturating_sub(1) as u64;
                let size = size_in_pieces(&root).map_or(whole, u64::from);
                sizes.push(((*class, without_class(&key)), size));
            }
        }
        Ok(sizes)
    }

    fn apply(&self, writes: Writes) -> Result<(), StoreError> {
        let mut batch = Batch::default();
        for ((class, key), value) in writes {
            self.write(&mut batch, &tree_key(class, &key), value)?;
        }
        self.db.apply_batch(batch).map_err(|error| failed(&self.path, "write", error))
    }

    fn pass(&self) -> Result<(), StoreError> {
        let mut barrier = self.barrier.lock().unwrap_or_else(PoisonError::into_inner);
        let failed = |error| StoreError::at("make a write durable", &self.path, &error);
        barrier.pass().map_err(failed)
    }

    fn wake(&self) {
        drop(self.db.flush());
    }
}

fn without_class(key: &[u8]) -> Vec<u8> {
    key.get(1..).unwrap_or_default().to_vec()
}

/// The size of the value behind a root entry, where that is in pieces.
fn size_in_pieces(root: &[u8]) -> Option<u32> {
    let size = root.strip_prefix(&[IN_PIECES])?.try_into().ok()?;
    Some(u32::from_be_bytes(size))
}

/// The keys of the pieces of a value of `size` bytes: the key of its root, and the piece's number.
fn piece_keys(root: &[u8], size: u32) -> impl Iterator<Item = Vec<u8>> + use<> {
    let prefix = [&[PIECES], root].concat();
    let count = (size as usize).div_ceil(PIECE);
    let key = move |number: u16| [prefix.as_slice(), &number.to_be_bytes()].concat();
    (0..=u16::MAX).take(count).map(key)
}

/// Converts an error of the engine for the store in `path`.
fn failed(path: &str, doing: &'static str, error: ::sled::Error) -> StoreError {
    match error {
        ::sled::Error::Io(error) => StoreError::at(doing, path, &error),
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

#[cfg(test)]
mod tests {
    use super::*;

    /// No piece of a value is left behind that was overwritten or removed.
    #[test]
    fn pieces_go_with_their_value() {
        let folder = tempfile::tempdir().unwrap();
        let engine = SledEngine::open(folder.path(), &folder.path().join("db")).unwrap();
        let pieces = || engine.db.scan_prefix([PIECES]).count();
        // In pieces from `PIECE` bytes on.
        let key = (Class::Texts, b"key".to_vec());
        let put = |value| engine.apply(Writes::from([(key.clone(), value)])).unwrap();
        let sizes = [3 * PIECE, 3 * PIECE + 1, 2 * PIECE - 1, PIECE, PIECE - 1, 5 * PIECE, 0];
        for (size, expected) in sizes.into_iter().zip([3, 4, 2, 1, 0, 5, 0]) {
            let value = vec![7; size];
            put(Some(value.clone()));
            assert_eq!(pieces(), expected, "of {size} bytes");
            assert_eq!(engine.get(Class::Texts, b"key").unwrap().unwrap(), value);
            let range = (Class::Texts, beginning_with(&[]));
            assert_eq!(engine.sizes(&[range], 9).unwrap(), [(key.clone(), size as u64)]);
            assert!(engine.db.iter().values().all(|entry| entry.unwrap().len() <= PIECE));
        }
        put(Some(vec![7; PIECE]));
        put(None);
        assert_eq!(engine.db.iter().count(), 0);
    }
}
