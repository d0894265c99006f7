//! `tidegate compact`: writes the store anew, without what was removed from it.

use super::import::unopened;
use super::{AppError, ConfigSource, disk};
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::sync::Arc;
use tidegate_core::clock::SystemClock;
use tidegate_store::{
    CompactError, CompactProgress, CompactRequest, Compacted, DiskRequest, compact as rewrite,
};

/// What `tidegate compact` is asked to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompactOptions {
    /// Where the configuration comes from.
    pub settings: ConfigSource,
}

/// Writes the store of a gateway anew.
pub async fn compact(options: CompactOptions) -> Result<Compacted, AppError> {
    let config = options.settings.load()?.config;
    let DiskRequest { path, endpoint, .. } = disk::on_disk(&config).ok_or_else(|| {
        AppError::Input(format!(
            "store.kind is {:?}, and only a store on disk is written anew; PostgreSQL gives space back by itself (VACUUM)",
            config.store.kind.name()
        ))
    })?;
    if !path.is_dir() {
        return Err(AppError::Input(format!("there is no data folder {}", path.display())));
    }
    let request = CompactRequest {
        path,
        endpoint,
        min_free: config.store.space.min_free,
        clock: Arc::new(SystemClock),
    };
    let bar = bar();
    let told = |CompactProgress { done, total }| {
        bar.set_length(total);
        bar.set_position(done);
    };
    let done = rewrite(request, told).await;
    bar.finish_and_clear();
    done.map_err(|error| match error {
        CompactError::Store(error) => unopened(error),
        error => AppError::run("the store was not compacted", error),
    })
}

/// A bar on a terminal, nothing elsewhere.
fn bar() -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{wide_bar} {percent} %, {eta} left");
    ProgressBar::new(0).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}
