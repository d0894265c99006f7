//! `tidegate reincarnate`: a store that was restored from a copy becomes a new incarnation, in its place.

use super::import::open;
use super::{AppError, ConfigSource, ErrorContext, disk};

/// Makes the store of this configuration a new incarnation; how many feeds begin a new window.
pub async fn reincarnate(settings: ConfigSource) -> Result<usize, AppError> {
    let config = settings.load()?.config;
    if let Some(request) = disk::on_disk(&config) {
        disk::check_folder(&request.path)?;
    }
    let store = open(&config).await?;
    let done = match disk::check_alone(&store) {
        Ok(()) => store.reincarnate().await.context(
            "the store may be a new incarnation only in part; run the command again before a gateway starts with it",
        ),
        Err(error) => Err(error),
    };
    let closed = store.close().await;
    let feeds = done?;
    closed.context("the store could not be closed")?;
    Ok(feeds)
}
