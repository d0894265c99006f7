//! Closing a store: what is left to do, and in which order.

use super::folder::Mark;
use super::shared::StoreShared;
use super::{OpenFolder, SledStore, recovery_check};
use crate::store::Epoch;
use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;

/// Waits for the committer, lets go of the engine and notes what the store has reached. Blocks.
fn settle(
    committer: Option<JoinHandle<()>>,
    open: OpenFolder,
    shared: &StoreShared,
    mut mark: Mark,
) {
    let OpenFolder { requests, trees, folder } = open;
    drop(requests);
    let ended = committer.is_some_and(|thread| thread.join().is_ok());
    // A reader that is still at work lets the engine write after this; then the files as they
    // stand prove nothing.
    let last = Arc::into_inner(trees).map(drop).is_some();
    if !ended || shared.health().is_err() {
        return;
    }
    mark.epoch = *shared.sealed.borrow();
    mark.digest = if last { recovery_check::digest(folder.path()).ok() } else { None };
    if let Err(error) = folder.set_mark(&mark) {
        // The mark of the start still stands; the next start tries its recovery on a copy.
        tracing::warn!(error = %error, "the store could not note where it ended");
    }
}

impl SledStore {
    /// Takes what goes when the store is closed: the rest is to be run where blocking is allowed.
    pub(super) fn take(&self) -> Option<impl FnOnce() + Send + 'static + use<>> {
        let open = self.open.write().unwrap_or_else(PoisonError::into_inner).take()?;
        let committer = self.committer.lock().unwrap_or_else(PoisonError::into_inner).take();
        let shared = Arc::clone(&self.shared);
        let (endpoint, fence) = (self.endpoint.clone(), self.fence);
        let mark = Mark { endpoint, fence, epoch: Epoch(0), digest: None };
        Some(move || settle(committer, open, &shared, mark))
    }
}

impl Drop for SledStore {
    fn drop(&mut self) {
        if let Some(rest) = self.take() {
            rest();
        }
    }
}
