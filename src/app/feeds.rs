//! The feeds of the configuration and those of the store, and what becomes of them with time.

use super::maintenance::FeedMaintenance;
use super::operator::AdminService;
use super::visits::PASSED_OVER;
use super::{AppError, names, titles};
use crate::clock::Clock;
use crate::config::{self, Config};
use crate::model::{FeedRecord, FeedSource, FeedStanding, Time};
use crate::status::TicksAhead;
use crate::store::{FeedList, FreeSpace, Store, StoreError};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::yield_now;
use tokio_util::sync::CancellationToken;

/// How often feeds are looked at for changes that have been in the window long enough.
const AGE_EVERY: Duration = Duration::from_secs(3600);
/// How soon after a start it is looked at first, so that what is often restarted is looked at too.
const AGE_FIRST: Duration = Duration::from_secs(60);

/// Writes the configuration's feeds to the store. Feeds of the file win over the API's; one that
/// left the file is paused and still served. Answers the records that changed.
pub(super) async fn reconcile(
    store: &dyn Store,
    config: &Config,
    now: Time,
) -> Result<Vec<FeedRecord>, AppError> {
    let failed = |error: StoreError| AppError::run("the feeds could not be stored", error);
    let stored = store.feed_list().await.map_err(failed)?;
    let (config, left_out) = names::assigned(config, &stored);
    for sentence in left_out {
        tracing::warn!("{sentence}");
    }
    let when = FeedRecord::next_change(stored.values().map(Arc::as_ref), now);
    let mut stored = FeedList::clone(&stored);
    let (mut changed, mut written) = (Vec::new(), Vec::new());
    let feeds = config.feeds.iter().map(config::FeedConfig::record);
    for mut record in feeds.chain(config.aggregates.iter().map(config::Aggregate::record)) {
        if record.follow(stored.remove(&record.name).as_deref(), when, store.endpoint()) {
            written.push(record.clone());
            changed.push(record);
        }
    }
    for (_, before) in stored {
        let mut record = FeedRecord::clone(&before);
        let configured = matches!(record.source, FeedSource::File | FeedSource::CommandLine);
        let left = configured && record.standing == FeedStanding::Active;
        if left {
            record.standing = FeedStanding::Paused;
            tracing::info!(feed = %record.name, "left the configuration: paused, and still served");
        }
        if record.follow(Some(&before), when, store.endpoint()) {
            written.push(record.clone());
        }
        if left {
            changed.push(record);
        }
    }
    store.put_feeds(&written).await.map_err(failed)?;
    Ok(changed)
}

/// Lets changes leave the sync views in time, also of feeds that never change.
pub(super) async fn run_maintenance(
    store: Arc<dyn Store>,
    (clock, running): (Arc<dyn Clock>, Arc<dyn Clock>),
    (desk, space): (Arc<AdminService>, Option<Arc<FreeSpace>>),
    cancel: CancellationToken,
) {
    tokio::join!(
        titles::maintain_titles(&store, running.as_ref(), &desk, &cancel),
        age(&store, (clock.as_ref(), running.as_ref()), (&desk, space.as_deref()), &cancel),
    );
}

async fn age(
    store: &Arc<dyn Store>,
    (clock, running): (&dyn Clock, &dyn Clock),
    (desk, space): (&Arc<AdminService>, Option<&FreeSpace>),
    cancel: &CancellationToken,
) {
    let mut maintenance = FeedMaintenance::new(Arc::clone(store), Arc::clone(desk));
    let store = store.as_ref();
    let mut wait = AGE_FIRST;
    loop {
        tokio::select! {
            () = cancel.cancelled() => return note(store, running.now()).await,
            () = tokio::time::sleep(wait) => {}
            () = near_limit(space) => maintenance.visit_all(),
        }
        wait = AGE_EVERY;
        report_ticks(store, clock.now()).await;
        let now = running.now();
        note(store, now).await;
        tokio::select! {
            () = cancel.cancelled() => return note(store, running.now()).await,
            kept = maintenance.run_pass(now) => if let Err(error) = kept {
                tracing::warn!(%error, "what need not be kept could not be let go of");
            }
        }
    }
}

/// Waits until the data folder comes near the limit on its size; for ever where none is watched.
async fn near_limit(space: Option<&FreeSpace>) {
    match space {
        Some(space) => space.near_limit().await,
        None => std::future::pending().await,
    }
}

/// Says which feeds have ticks far ahead of the clock.
async fn report_ticks(store: &dyn Store, now: Time) {
    let mut ahead = TicksAhead::default();
    let feeds = store.feed_list().await.unwrap_or_default();
    for (place, feed) in feeds.keys().enumerate() {
        if place % PASSED_OVER == 0 {
            yield_now().await;
        }
        let state = store.state(feed).await.ok().flatten();
        ahead.note(feed, state.and_then(|state| state.tick), now);
    }
    if !ahead.is_empty() {
        tracing::warn!(ahead = ahead.lead().as_secs(), "{ahead}");
    }
}

/// Notes where the running time stands: a restart goes on from there.
async fn note(store: &dyn Store, now: Time) {
    if let Err(error) = store.note_running_time(now).await {
        tracing::warn!(%error, "the running time could not be noted");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::poll::tests::double::StoreDouble;
    use crate::poll::tests::gateway::{Gateway, Publisher, eventually};
    use crate::store::SpaceLimits;

    #[tokio::test(start_paused = true)]
    async fn near_the_limit_every_feed_is_pruned_at_once() {
        let (folder, cancel) = (tempfile::tempdir().unwrap(), CancellationToken::new());
        let space = FreeSpace::of_folder(folder.path().to_owned(), 0);
        space.set_limits(SpaceLimits { min_free: 0, max_size: Some(100_000) });
        let gateway = Gateway::start(&StoreDouble::new(&["a", "b"]), &Publisher::gated("")).await;
        let desk = Arc::new(AdminService::of_gateway(&gateway, &Config::default()));
        let store: Arc<dyn Store> = gateway.store.clone();
        let pruned = || gateway.store.shelf.lock().unwrap().pruned.len();
        let fill = async {
            tokio::time::sleep(AGE_FIRST).await;
            eventually(|| pruned() == 2).await;
            std::fs::write(folder.path().join("file"), [7; 90_000]).unwrap();
            space.measure_used();
            eventually(|| pruned() == 4).await;
            cancel.cancel();
        };
        let clocks: (&dyn Clock, &dyn Clock) = (&gateway.clock, &gateway.clock);
        tokio::join!(age(&store, clocks, (&desk, Some(&space)), &cancel), fill);
    }
}
