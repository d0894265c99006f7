//! Compacts a store: writes it anew, without the space of removed data.
//!
//! An engine marks removed data as free, or as removed, and reuses the space later, or never. So a compaction copies
//! all records to a new store within the data folder, reads them back and compares, and replaces the old store
//! ([`super::swap`]).

use super::files::folder_bytes;
use super::folder::StoreFolder;
use super::{FreshStore, StoreOpener};
use crate::embedded::{OpenRequest, Store};
use crate::portable::{ExportDigest, ExportRecord, ImportMessage};
use crate::{CommitError, FreeSpace, StoreError, in_words};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tidegate_core::clock::Clock;
use tidegate_core::model::EndpointId;
use tokio::sync::mpsc;

/// The most records that wait to be stored, each as large as an entry or document may be.
const WAITING: usize = 4;

/// The settings of a compaction.
pub struct CompactRequest {
    /// The data folder.
    pub path: PathBuf,
    /// The endpoint id as configured.
    pub endpoint: Option<EndpointId>,
    /// The bytes that must stay free (`store.min_free`).
    pub min_free: u64,
    pub clock: Arc<dyn Clock>,
}

/// The progress of a compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompactProgress {
    /// Items that were copied, and those that were read back.
    pub done: u64,
    /// The final value of [`Self::done`].
    pub total: u64,
}

/// The result of a compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compacted {
    /// Items that are kept, tombstones included.
    pub items: u64,
    /// The bytes of the engine's files before.
    pub before: u64,
    /// The bytes of the engine's files now.
    pub after: u64,
}

/// The reason why a store was not compacted.
#[derive(Debug, thiserror::Error)]
pub enum CompactError {
    /// The store cannot be opened, read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The store is as it was.
    #[error("{0}; nothing was changed")]
    Unchanged(String),
    /// The copy is whole, but was not put in its place.
    #[error(
        "the copy of the store could not be put in its place; nothing is lost: the next start of the gateway, or the same command, goes on with it"
    )]
    Unplaced(#[source] io::Error),
}

/// Compacts a store. Its content and identity stay the same. It can be killed at any moment: before the copy is
/// whole, the store is as it was; after that, the next opening of the folder puts the copy in place.
pub async fn compact(
    request: CompactRequest,
    mut progress: impl FnMut(CompactProgress) + Send,
) -> Result<Compacted, CompactError> {
    let CompactRequest { path, endpoint, min_free, clock } = request;
    let taking = path.clone();
    let (folder, before) = blocking(move || {
        let folder = StoreFolder::take(&taking)?;
        let before = bytes(&folder)?;
        Ok((Arc::new(folder), before))
    })
    .await?;
    check_room(&path, before, min_free)?;
    let (opener, opening) = (StoreOpener::new(Arc::clone(&folder)), Arc::clone(&clock));
    let request = OpenRequest { endpoint, sup_ids: None };
    let old = blocking(move || Ok(opener.open(request, opening)?)).await?;
    let fresh = FreshStore::within(Arc::clone(&folder));
    let copied = copy(&old, fresh.clone(), clock, &mut progress).await;
    let closed = old.close().await;
    let items = match copied.and_then(|items| Ok(closed.map(|()| items)?)) {
        Ok(items) => items,
        Err(error) => {
            // The next start removes what is left as well.
            let discarded = blocking(move || {
                fresh.discard();
                Ok(())
            });
            return discarded.await.and(Err(error));
        }
    };
    blocking(move || {
        fresh.put_in_place().map_err(CompactError::Unplaced)?;
        Ok(Compacted { items, before, after: bytes(&folder)? })
    })
    .await
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, CompactError> + Send + 'static,
) -> Result<T, CompactError> {
    let ended = tokio::task::spawn_blocking(work).await;
    ended.unwrap_or_else(|error| Err(StoreError::failed("be compacted", error).into()))
}

fn bytes(folder: &StoreFolder) -> Result<u64, StoreError> {
    let database = folder.database();
    // A new store has none yet.
    let found = if database.exists() { folder_bytes(&database) } else { Ok(0) };
    found.map_err(|source| StoreError::Io { doing: "look at its files", source })
}

fn check_room(path: &Path, size: u64, min_free: u64) -> Result<(), CompactError> {
    let space = FreeSpace::of_folder(path.to_owned(), min_free);
    space.measure();
    // If the space is unknown, try it.
    let Some(last) = space.status().free else { return Ok(()) };
    let needed = size.saturating_add(last.limit);
    let free = last.bytes;
    if free >= needed {
        return Ok(());
    }
    Err(CompactError::Unchanged(format!(
        "{needed} bytes must be free for a copy of the store, and {free} are: free some space"
    )))
}

/// Copies all records, and reads them back; answers the number of items.
async fn copy(
    old: &Store,
    fresh: FreshStore,
    clock: Arc<dyn Clock>,
    progress: &mut (dyn FnMut(CompactProgress) + Send),
) -> Result<u64, CompactError> {
    let mut items = 0_u64;
    for feed in old.feed_list().await?.keys() {
        let state = old.state(feed).await?;
        let count = state.map_or(0, |state| state.living.saturating_add(state.tombstones));
        items = items.saturating_add(u64::from(count));
    }
    let mut progress = ItemCounter { done: 0, total: items.saturating_mul(2), tell: progress };
    let sup_ids = Some(old.sup_ids());
    let request = OpenRequest { endpoint: Some(old.endpoint().clone()), sup_ids };
    let new = blocking(move || Ok(fresh.open(request, clock)?)).await?;
    let (to, from) = mpsc::channel(WAITING);
    let (handed, taken) = tokio::join!(read(old, Some(to), &mut progress), new.import(from, false));
    let uncopied = |error: CommitError| {
        CompactError::Unchanged(format!("the store could not be copied: {}", in_words(&error)))
    };
    let copied = match handed.and_then(|digest| taken.map(|()| digest).map_err(uncopied)) {
        Ok(written) => read(&new, None, &mut progress).await.map(|read| (written, read)),
        Err(error) => Err(error),
    };
    let closed = new.close().await;
    let (written, read) = copied?;
    closed?;
    if written.value() == read.value() {
        // Each was counted twice.
        return Ok(progress.done / 2);
    }
    let what = "the copy of the store does not read as the store does, by a fault of the program or of the disk";
    Err(CompactError::Unchanged(what.to_owned()))
}

struct ItemCounter<'a> {
    done: u64,
    total: u64,
    tell: &'a mut (dyn FnMut(CompactProgress) + Send),
}

impl ItemCounter<'_> {
    fn note(&mut self, piece: &ExportRecord) {
        if matches!(piece, ExportRecord::Item(..)) {
            self.done += 1;
            (self.tell)(CompactProgress { done: self.done, total: self.total.max(self.done) });
        }
    }
}

/// Reads a whole store, sends the records where there is a receiver, and answers their fingerprint.
async fn read(
    store: &Store,
    to: Option<mpsc::Sender<ImportMessage>>,
    progress: &mut ItemCounter<'_>,
) -> Result<ExportDigest, CompactError> {
    let (sender, mut pieces) = mpsc::channel(WAITING);
    let reading = async move {
        let mut digest = ExportDigest::default();
        while let Some(piece) = pieces.recv().await {
            digest.put(&piece)?;
            progress.note(&piece);
            if let Some(to) = &to
                && to.send(ImportMessage::Record(piece)).await.is_err()
            {
                break;
            }
        }
        Ok::<_, StoreError>((digest, to))
    };
    let (exported, read) = tokio::join!(store.export(sender), reading);
    exported?;
    let (digest, to) = read?;
    if let Some(to) = to {
        let _ = to.send(ImportMessage::End).await;
    }
    Ok(digest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_must_fit_beside_the_store() {
        let folder = tempfile::tempdir().unwrap();
        assert!(check_room(folder.path(), 1, 0).is_ok());
        let refused = check_room(folder.path(), u64::MAX / 2, 0);
        assert!(matches!(refused, Err(CompactError::Unchanged(_))), "{refused:?}");
        assert!(check_room(&folder.path().join("none"), u64::MAX, 0).is_ok());
    }
}
