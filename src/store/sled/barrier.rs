//! The moment from which on something may be acknowledged.

use std::fs::File;
use std::io;
use std::path::Path;

/// Makes everything written so far durable. The one seam through which tests let it fail.
pub(super) trait Barrier: Send {
    /// Returns when everything written before the call would survive a loss of power.
    fn pass(&mut self) -> io::Result<()>;
}

/// sled's blocking flush, and then a sync of our own: sled 0.34 does not sync on Linux, where its
/// flush ends in `sync_file_range`. Never `flush_async`, which deadlocks beside transactions
/// (sled issue 1308).
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
}

impl Barrier for FlushAndSync {
    fn pass(&mut self) -> io::Result<()> {
        self.db.flush().map_err(|error| match error {
            ::sled::Error::Io(error) => error,
            other => io::Error::other(other.to_string()),
        })?;
        self.file.sync_data()
    }
}
