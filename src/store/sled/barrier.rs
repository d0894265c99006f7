//! The moment from which on something may be acknowledged.

use std::fs::File;
use std::io;
use std::path::Path;

/// sled's blocking flush, which returns once its log is durable (`sync.c`), and then a sync of our own: a write that
/// failed is reported once to each who has the file open, and sled's own thread does not pass it on. Never
/// `flush_async`, which deadlocks beside transactions (sled issue 1308).
pub(super) struct FlushAndSync {
    db: ::sled::Db,
    file: File,
}

impl FlushAndSync {
    /// The barrier of the store in `folder`.
    pub(super) fn new(db: ::sled::Db, folder: &Path) -> io::Result<Self> {
        let file = File::options().read(true).write(true).open(folder.join("db"))?;
        Ok(Self { db, file })
    }

    /// Returns when everything written before the call would survive a loss of power.
    pub(super) fn pass(&mut self) -> io::Result<()> {
        self.db.flush().map_err(|error| match error {
            ::sled::Error::Io(error) => error,
            other => io::Error::other(other.to_string()),
        })?;
        self.file.sync_data()
    }
}
