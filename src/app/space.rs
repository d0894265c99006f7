//! Looks now and then how much space the file system of the data folder has left.

use super::disk;
use std::sync::Arc;
use std::time::Duration;
use tidegate_config::Config;
use tidegate_store::{EmbeddedStore, FreeSpace, SpaceLimits};
use tokio_util::sync::CancellationToken;

/// How often the free space is measured.
const MEASURE_EVERY: Duration = Duration::from_secs(3);
/// The files of the data folder are counted at the first of so many measurements: once a minute.
const COUNT_EVERY: usize = 20;
/// The same where there is a limit on what they take: every twelve seconds.
const COUNT_OFTEN: usize = 4;

/// The free space that a gateway watches; `given`: one from outside. A store in memory takes none.
pub(super) fn watched(config: &Config, given: Option<Arc<FreeSpace>>) -> Option<Arc<FreeSpace>> {
    let is_on_disk = disk::on_disk(config).is_some();
    let of_folder = || FreeSpace::of_folder(config.store.path.clone(), config.store.space.min_free);
    given.or_else(|| is_on_disk.then(|| Arc::new(of_folder())))
}

/// A store that takes nothing new in while space is low. Measures first. Blocks.
pub(super) fn limit(
    store: EmbeddedStore,
    space: Option<Arc<FreeSpace>>,
    limits: SpaceLimits,
) -> EmbeddedStore {
    let Some(space) = space else { return store };
    space.set_limits(limits);
    store.with_space(space)
}

/// Measures until it is told to end.
pub(super) async fn watch(space: Arc<FreeSpace>, cancel: CancellationToken) {
    for turn in (0..COUNT_EVERY).cycle() {
        tokio::select! {
            () = cancel.cancelled() => return,
            () = tokio::time::sleep(MEASURE_EVERY) => {}
        }
        let measured = Arc::clone(&space);
        // A file system that hangs keeps one thread waiting, and this task.
        let measuring = tokio::task::spawn_blocking(move || {
            measured.measure();
            if turn == 0 || (turn % COUNT_OFTEN == 0 && measured.has_size_limit()) {
                measured.measure_used();
            }
        });
        tokio::select! {
            () = cancel.cancelled() => return,
            _ = measuring => {}
        }
    }
}
