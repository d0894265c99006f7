//! Who reads a feed as of which write, so that what they are to see stays until they are done.

use super::published::Published;
use crate::StoreError;
use crate::record::StateRecord;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// The readers of a feed; another set once the feed was purged and added again.
#[derive(Default)]
pub(super) struct Pins {
    readers: Mutex<Readers>,
    opened: Notify,
    is_purged: AtomicBool,
    is_outdated: AtomicBool,
}

#[derive(Default)]
struct Readers {
    /// How many read as of which write.
    by_write: BTreeMap<u64, usize>,
    /// The committer changes records in place: whoever comes waits.
    is_shut: bool,
}

impl Pins {
    fn readers(&self) -> MutexGuard<'_, Readers> {
        self.readers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets nobody in until [`Pins::open`], where nobody is in.
    pub(super) fn try_shut(&self) -> bool {
        let mut readers = self.readers();
        let is_free = readers.by_write.is_empty() && !readers.is_shut;
        readers.is_shut |= is_free;
        is_free
    }

    /// Lets readers in again.
    pub(super) fn open(&self) {
        self.readers().is_shut = false;
        self.opened.notify_waiters();
    }

    /// Waits until readers are let in; takes no thread meanwhile.
    pub(super) async fn wait(&self) {
        let mut opened = std::pin::pin!(self.opened.notified());
        // Whoever lets in after this look is heard.
        opened.as_mut().enable();
        if self.readers().is_shut {
            opened.await;
        }
    }

    /// The earliest write that somebody reads as of.
    pub(super) fn earliest(&self) -> Option<u64> {
        self.readers().by_write.keys().next().copied()
    }

    /// Notes that the feed is gone: what its readers still find may be incomplete.
    pub(super) fn purged(&self) {
        self.is_purged.store(true, Ordering::Release);
    }

    /// Notes that the store was opened again: what was kept for readers is gone. Lets those in that wait.
    pub(super) fn outdated(&self) {
        self.is_outdated.store(true, Ordering::Release);
        self.open();
    }
}

/// A feed as it was published, for as long as somebody reads it so.
pub(super) struct Pin {
    pub(super) head: StateRecord,
    pins: Arc<Pins>,
}

impl Pin {
    /// Reads a feed as it is published now; `None` where readers must wait.
    pub(super) fn try_new(published: &Published) -> Result<Option<Self>, StoreError> {
        let head = published.head()?;
        let mut readers = published.pins.readers();
        if readers.is_shut {
            return Ok(None);
        }
        *readers.by_write.entry(head.write).or_default() += 1;
        Ok(Some(Self { head, pins: Arc::clone(&published.pins) }))
    }

    /// An error where the store was opened again meanwhile.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        let is_outdated = self.pins.is_outdated.load(Ordering::Acquire);
        if is_outdated { Err(StoreError::Outdated) } else { Ok(()) }
    }

    /// Whether the feed was purged meanwhile, so that what was read is nothing.
    pub(super) fn is_purged(&self) -> bool {
        self.pins.is_purged.load(Ordering::Acquire)
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        let mut readers = self.pins.readers();
        if let Some(count) = readers.by_write.get_mut(&self.head.write) {
            *count -= 1;
            if *count == 0 {
                readers.by_write.remove(&self.head.write);
            }
            if readers.by_write.is_empty() {
                // An empty map would keep its last node, for each feed that was ever read.
                readers.by_write = BTreeMap::new();
            }
        }
    }
}
