//! `tidegate compact`: writes the store anew, without what was removed from it.

use super::{AppError, ConfigSource, disk, progress};
use std::sync::Arc;
use tidegate_core::clock::SystemClock;
use tidegate_store::{
    CompactError, CompactProgress, CompactRequest, Compacted, DiskRequest, compact as rewrite,
};

/// Writes the store of a gateway of this configuration anew.
pub async fn compact(settings: ConfigSource) -> Result<Compacted, AppError> {
    let config = settings.load()?.config;
    let DiskRequest { path, endpoint, .. } = disk::on_disk(&config).ok_or_else(|| {
        AppError::Input(format!(
            "store.kind is {:?}, and only a store on disk is written anew; PostgreSQL gives space back by itself (VACUUM)",
            config.store.kind.name()
        ))
    })?;
    disk::check_folder(&path)?;
    let request = CompactRequest {
        path,
        endpoint,
        min_free: config.store.space.min_free,
        clock: Arc::new(SystemClock),
    };
    let bar = progress::bar("{wide_bar} {percent} %, {eta} left", 0);
    let told = |CompactProgress { done, total }| {
        bar.set_length(total);
        bar.set_position(done);
    };
    let done = rewrite(request, told).await;
    bar.finish_and_clear();
    done.map_err(|error| match error {
        CompactError::Store(error) => disk::unopened(error),
        error => AppError::run("the store was not compacted", error),
    })
}
