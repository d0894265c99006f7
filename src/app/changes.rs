//! Waits until something may have changed in the store, for what is derived from feeds.

use crate::store::Epoch;
use std::time::Duration;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// How long at most until a change is seen that closes no epoch.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// What lies between two looks at least, so that a burst of changes is taken over at once.
const REST: Duration = Duration::from_millis(100);

/// Waits for the next look; false where there is none, as all is ending.
pub(super) async fn wait_for_change(
    sealed: &mut watch::Receiver<Epoch>,
    cancel: &CancellationToken,
) -> bool {
    tokio::select! {
        biased;
        () = cancel.cancelled() => return false,
        () = tokio::time::sleep(REST) => {}
    }
    tokio::select! {
        biased;
        () = cancel.cancelled() => false,
        // Where nobody seals any more, the store is closing.
        changed = sealed.changed() => changed.is_ok(),
        () = tokio::time::sleep(LOOK_EVERY) => true,
    }
}
