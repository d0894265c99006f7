//! fjall as the store's database: a few trees ([`super::keyspaces`]) behind one journal. The first byte of a key is
//! the number of its class.
//!
//! Each write has a number, one more than the last, which is a record of its own in the same batch. The number of the
//! last write that passed a barrier stands in a note outside the database. An opening that finds
//! less than the note says has lost what was acknowledged.

use super::journal::{self, JournalError};
use super::keyspaces::{Keyspaces, TREES, WRITES_KEY, class_key, class_range};
use super::{FOLDER, PASSED, manifest};
use crate::StoreError;
use crate::disk::NumberNote;
use crate::engine::{
    Class, Engine, HEAD_BYTES, KeyOrder, KeyRange, PORTION_BYTES, Portion, RecordKey, ValueSize,
    Writes, beginning_with,
};
use ::fjall::{CompressionType, Database, Guard, Keyspace, PersistMode, Readable};
use bytes::Bytes;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// The file that a database has once it is made.
const VERSION: &str = "version";
/// The engine's cache of blocks, in bytes.
const CACHE: u64 = 32 << 20;
/// Bytes of journals from which on the oldest is made superfluous; the least that the engine takes.
const JOURNALS: u64 = 64 << 20;
/// The most open files of tables.
const OPEN_FILES: usize = 256;
/// The longest key.
const KEY_LIMIT: usize = u16::MAX as usize - 1;
/// The longest value, in bytes.
const VALUE_LIMIT: usize = 1 << 30;
/// How many memtables and new tables may wait to be sorted and merged. The engine itself waits where there are
/// 4 or 30, for ever where the thread that should do it has ended.
const MEMTABLE_BACKLOG: usize = 3;
const TABLE_BACKLOG: usize = 16;
/// How long a write waits for these, and how often it looks.
const BACKLOG_WAIT: Duration = Duration::from_secs(600);
const BACKLOG_LOOK: Duration = Duration::from_millis(10);
/// How often, and how far apart, the engine's own lock is tried again: our lock is held already, so it
/// can only be that of a store that this process has just closed.
const LOCK_TRIES: u32 = 20;
const LOCK_PAUSE: Duration = Duration::from_millis(50);

/// Whether tables are sorted and merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Workers {
    Run,
    /// The database is looked at, and not written.
    Rest,
}

/// A fjall database.
pub(crate) struct FjallEngine {
    path: String,
    keyspaces: Keyspaces,
    database: Database,
    /// The number of the last write; one write at a time.
    written: Mutex<u64>,
    passed: Mutex<NumberNote>,
}

/// Opens fjall in the data folder `path`; messages speak of the folder `shown`.
pub(super) fn open(path: &Path, shown: &Path, workers: Workers) -> Result<FjallEngine, StoreError> {
    let doing = "open its database";
    let (folder, shown) = (path.join(FOLDER), shown.display().to_string());
    let noted = NumberNote::open(&path.join(PASSED));
    let (passed, note) = noted.map_err(|source| StoreError::Io { doing, source })?;
    if !folder.join(VERSION).exists() {
        if passed > 0 {
            let what = "the store was used, and its database is gone".to_owned();
            return Err(StoreError::Damaged { path: shown, what });
        }
        clear(&folder).map_err(|source| StoreError::Io { doing, source })?;
    } else {
        let manifests = manifest::verify(&folder, (passed > 0).then_some(TREES));
        if let Some(what) = manifests.map_err(|source| StoreError::Io { doing, source })? {
            return Err(StoreError::Damaged { path: shown, what });
        }
        journal::verify_and_cut(&folder).map_err(|error| match error {
            JournalError::Io(source) => StoreError::Io { doing: "read its journals", source },
            JournalError::Damaged(what) => StoreError::Damaged { path: shown.clone(), what },
        })?;
    }
    let (database, keyspaces) = open_database(&folder, &shown, workers)?;
    let passed_note = Mutex::new(note);
    let written = Mutex::new(0);
    let engine = FjallEngine { path: shown, keyspaces, database, written, passed: passed_note };
    let stored = engine.get_at(&engine.keyspaces.feeds, WRITES_KEY)?;
    let number = |bytes: Bytes| bytes.as_ref().try_into().map(u64::from_be_bytes).ok();
    let found = stored.map_or(Some(0), number).filter(|found| *found >= passed);
    let Some(found) = found else {
        let what = format!("the write {passed} was durable, and is missing");
        return Err(StoreError::Damaged { path: engine.path, what });
    };
    *engine.written.lock().unwrap_or_else(PoisonError::into_inner) = found;
    Ok(engine)
}

/// Removes a database that was never made whole.
fn clear(folder: &Path) -> std::io::Result<()> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn open_database(
    folder: &Path,
    shown: &str,
    workers: Workers,
) -> Result<(Database, Keyspaces), StoreError> {
    let doing = "open its database";
    let mut tries = 0;
    loop {
        let opened = guarded(shown, || {
            // One thread: of two, one turns in circles while the other merges.
            let threads = usize::from(workers == Workers::Run);
            let database = Database::builder(folder)
                .cache_size(CACHE)
                .max_cached_files(Some(OPEN_FILES))
                .max_journaling_size(JOURNALS)
                // The engine would pack values of 4 KiB and more, and those are packed.
                .journal_compression(CompressionType::None)
                .manual_journal_persist(true)
                .worker_threads_unchecked(threads)
                .open()?;
            let keyspaces = Keyspaces::open(&database)?;
            Ok((database, keyspaces))
        })?;
        match opened {
            Ok(opened) => return Ok(opened),
            Err(::fjall::Error::Locked) if tries < LOCK_TRIES => {
                tries += 1;
                std::thread::sleep(LOCK_PAUSE);
            }
            Err(error) => return Err(failed(shown, doing, error)),
        }
    }
}

impl FjallEngine {
    /// Does something with the engine; it breaks off where it should answer an error on some damaged files.
    fn guarded<T>(
        &self,
        doing: &'static str,
        work: impl FnOnce() -> ::fjall::Result<T>,
    ) -> Result<T, StoreError> {
        guarded(&self.path, work)?.map_err(|error| failed(&self.path, doing, error))
    }

    fn get_at(&self, keyspace: &Keyspace, key: &[u8]) -> Result<Option<Bytes>, StoreError> {
        let found = self.guarded("read", || self.database.snapshot().get(keyspace, key))?;
        // A copy: the engine's would keep the block that it stands in.
        Ok(found.map(|value| Bytes::copy_from_slice(&value)))
    }

    /// Reads entries of a range, without the class in their keys, until `enough` has enough; whether there may
    /// be more.
    fn scan(
        &self,
        class: Class,
        range: &KeyRange,
        order: KeyOrder,
        mut enough: impl FnMut(Vec<u8>, &[u8]) -> bool,
    ) -> Result<bool, StoreError> {
        self.guarded("read", || {
            let mut found = self
                .database
                .snapshot()
                .range(self.keyspaces.of_class(class), class_range(class, range));
            loop {
                let entry: Option<Guard> = match order {
                    KeyOrder::Ascending => found.next(),
                    KeyOrder::Descending => found.next_back(),
                };
                let Some(entry) = entry else { return Ok(false) };
                let (key, value) = entry.into_inner()?;
                if enough(key.get(1..).unwrap_or_default().to_vec(), &value) {
                    return Ok(true);
                }
            }
        })
    }

    /// Waits until what was written before is sorted and merged far enough.
    fn wait_for_backlog(&self) -> Result<(), StoreError> {
        let begun = Instant::now();
        let doing = "write";
        loop {
            let is_free = self.guarded(doing, || {
                Ok(self.keyspaces.all().iter().all(|keyspace| {
                    keyspace.sealed_memtable_count() < MEMTABLE_BACKLOG
                        && keyspace.l0_table_count() < TABLE_BACKLOG
                }))
            })?;
            if is_free {
                return Ok(());
            }
            if begun.elapsed() > BACKLOG_WAIT {
                let source = std::io::ErrorKind::TimedOut.into();
                return Err(StoreError::Io { doing, source });
            }
            // An error where the thread that should do it has ended.
            self.guarded(doing, || self.database.persist(PersistMode::Buffer))?;
            std::thread::sleep(BACKLOG_LOOK);
        }
    }

    fn write(&self, writes: Vec<(RecordKey, Option<Vec<u8>>)>) -> Result<(), StoreError> {
        if writes.is_empty() {
            return Ok(());
        }
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        self.wait_for_backlog()?;
        let number = written.saturating_add(1);
        self.guarded("write", || {
            let mut batch = self.database.batch();
            for ((class, key), value) in writes {
                let (keyspace, key) = (self.keyspaces.of_class(class), class_key(class, &key));
                match value {
                    Some(value) => batch.insert(keyspace, key, value),
                    None => batch.remove(keyspace, key),
                }
            }
            batch.insert(&self.keyspaces.feeds, WRITES_KEY, number.to_be_bytes());
            batch.commit()
        })?;
        *written = number;
        Ok(())
    }
}

impl Engine for FjallEngine {
    fn path(&self) -> &str {
        &self.path
    }

    fn is_compact(&self) -> bool {
        true
    }

    fn get(&self, class: Class, key: &[u8]) -> Result<Option<Bytes>, StoreError> {
        self.get_at(self.keyspaces.of_class(class), &class_key(class, key))
    }

    fn contains(&self, class: Class, key: &[u8]) -> Result<bool, StoreError> {
        let (keyspace, key) = (self.keyspaces.of_class(class), class_key(class, key));
        self.guarded("read", || self.database.snapshot().contains_key(keyspace, key))
    }

    fn portion(
        &self,
        class: Class,
        range: &KeyRange,
        order: KeyOrder,
        limit: usize,
    ) -> Result<Portion, StoreError> {
        let (mut entries, mut bytes) = (Vec::new(), 0_usize);
        if limit == 0 {
            return Ok(Portion { entries, has_more: true });
        }
        let has_more = self.scan(class, range, order, |key, value| {
            bytes = bytes.saturating_add(key.len()).saturating_add(value.len());
            entries.push((key, Bytes::copy_from_slice(value)));
            entries.len() >= limit || bytes >= PORTION_BYTES
        })?;
        Ok(Portion { entries, has_more })
    }

    fn sizes(
        &self,
        class: Class,
        range: &KeyRange,
        limit: usize,
    ) -> Result<Vec<ValueSize>, StoreError> {
        let mut sizes = Vec::new();
        if limit > 0 {
            self.scan(class, range, KeyOrder::Ascending, |key, value| {
                let head = Bytes::copy_from_slice(value.get(..HEAD_BYTES).unwrap_or(value));
                sizes.push(ValueSize { key, size: value.len(), head });
                sizes.len() >= limit
            })?;
        }
        Ok(sizes)
    }

    fn apply(&self, writes: Writes) -> Result<(), StoreError> {
        let mut entries = Vec::with_capacity(writes.len());
        for ((class, key), value) in writes {
            let size = value.as_ref().map_or(0, Vec::len);
            for (what, size, limit) in [("key", key.len(), KEY_LIMIT), ("value", size, VALUE_LIMIT)]
            {
                if size > limit {
                    let what = format!("the {what} at {} of {}", key.escape_ascii(), class.name());
                    return Err(StoreError::TooLarge { what, size, limit });
                }
            }
            entries.push(((class, key), value));
        }
        self.write(entries)
    }

    fn clear(&self, class: Class, prefix: &[u8], limit: usize) -> Result<bool, StoreError> {
        let mut keys = Vec::new();
        if limit > 0 {
            self.scan(class, &beginning_with(prefix), KeyOrder::Ascending, |key, _| {
                keys.push(key);
                keys.len() >= limit
            })?;
        }
        let has_more = keys.len() == limit;
        self.write(keys.into_iter().map(|key| ((class, key), None)).collect())?;
        Ok(has_more)
    }

    fn pass(&self) -> Result<(), StoreError> {
        let written = *self.written.lock().unwrap_or_else(PoisonError::into_inner);
        let doing = "make a write durable";
        self.guarded(doing, || self.database.persist(PersistMode::SyncData))?;
        let mut passed = self.passed.lock().unwrap_or_else(PoisonError::into_inner);
        passed.write(written).map_err(|source| StoreError::Io { doing, source })
    }
}

/// Does something with an engine that breaks off where it should answer an error.
fn guarded<T>(path: &str, work: impl FnOnce() -> T) -> Result<T, StoreError> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        let text = text.unwrap_or("without a word");
        let text: String = text.chars().filter(|c| !c.is_control()).collect();
        let what = format!("the engine broke off: {text}");
        StoreError::Damaged { path: path.to_owned(), what }
    })
}

/// What an error of the engine means for the store in `path`.
fn failed(path: &str, doing: &'static str, error: ::fjall::Error) -> StoreError {
    use ::fjall::{Error, LsmError};
    let io = |source: std::io::Error| {
        let source = std::io::Error::new(source.kind(), format!("{path}: {source}"));
        StoreError::Io { doing, source }
    };
    let damaged = |what: &str| StoreError::Damaged { path: path.to_owned(), what: what.to_owned() };
    match error {
        Error::Io(source) | Error::Storage(LsmError::Io(source)) => io(source),
        Error::Poisoned => {
            io(std::io::Error::other("an earlier write or a merge of tables failed"))
        }
        Error::Locked => StoreError::InUse { path: path.to_owned() },
        Error::JournalRecovery(_) => damaged("a journal is not as it was written"),
        Error::InvalidVersion(_) | Error::Storage(LsmError::InvalidVersion(_)) => {
            damaged("its files have a version that this engine does not know")
        }
        Error::Unrecoverable | Error::Storage(LsmError::Unrecoverable) => {
            damaged("some of the engine's files are missing")
        }
        Error::Storage(LsmError::ChecksumMismatch { .. }) => {
            damaged("the checksum of a block of a table is wrong")
        }
        // Its Display would print the engine's own wording in any case.
        other => damaged(&format!("the engine found {other:?}")),
    }
}
