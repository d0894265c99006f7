//! The feeds of the configuration and those of the store, and what becomes of them with time.

use super::maintenance::{FeedMaintenance, PASSED_OVER};
use super::{AppError, ErrorContext, names, titles};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;
use tidegate_config::Config;
use tidegate_core::clock::Clock;
use tidegate_core::model::{FeedName, FeedRecord, FeedSource, FeedStanding, Time};
use tidegate_serve::Operator;
use tidegate_status::TicksAhead;
use tidegate_store::{AppliedOrigins, FeedList, FreeSpace, Store, StoreError, in_words};
use tokio::task::yield_now;
use tokio_util::sync::CancellationToken;

/// How often feeds are looked at for changes that have been in the window long enough.
const AGE_EVERY: Duration = Duration::from_secs(3600);
/// How soon after a start it is looked at first, so that what is often restarted is looked at too.
const AGE_FIRST: Duration = Duration::from_secs(60);

/// What the store is to have of the configuration's feeds, where that is another than it has.
struct FeedChanges {
    /// What is to be written: feeds of the configuration, those that left it, and those that move with their sites.
    written: Vec<FeedRecord>,
    /// A sentence for each feed that is left out.
    left_out: Vec<String>,
    /// Feeds whose site has another address, and whether they stay, since there is a feed at their new one.
    moved: Vec<(FeedName, bool)>,
}

/// How often feeds are compared anew that another gateway changes.
const RECONCILED: u32 = 20;

/// What failed where feeds cannot be read or written.
const UNSTORED: &str = "the feeds could not be stored";

/// Has the store have the configuration's feeds, whichever it had. Feeds of the file win over the API's; one that
/// left the file is paused and still served. Answers the records that changed.
pub(super) async fn reconcile(
    store: &Store,
    config: &Config,
    now: Time,
) -> Result<Vec<FeedRecord>, AppError> {
    let sites = config.origins.iter().map(|site| (site.name.clone(), site.url.to_string()));
    let origins = AppliedOrigins(sites.collect());
    let mut tries = 0..RECONCILED;
    let FeedChanges { written, left_out, moved } = loop {
        let applied = store.applied().await.context(UNSTORED)?;
        let stored = store.feed_list().await.context(UNSTORED)?;
        let changes = compare(store, (config, &stored), &applied, now);
        if changes.written.is_empty() && applied == origins {
            break changes;
        }
        match store.apply_feeds(&changes.written, &stored, Some(origins.clone())).await {
            // Another gateway that starts, with the same configuration perhaps.
            Err(StoreError::FeedChanged { .. }) if tries.next().is_some() => {
                store.catch_up().await.context(UNSTORED)?;
            }
            done => {
                done.context(UNSTORED)?;
                break changes;
            }
        }
    };
    for sentence in left_out {
        tracing::warn!("{sentence}");
    }
    for (feed, stays) in moved {
        if stays {
            tracing::warn!(%feed, "its site has another address now, and there is a feed at its new one");
        } else {
            tracing::info!(%feed, "its site has another address now: it moves there with its history");
        }
    }
    let is_paused = |record: &&FeedRecord| record.standing == FeedStanding::Paused;
    for record in written.iter().filter(is_paused).filter(|record| is_configured(record)) {
        tracing::info!(feed = %record.name, "left the configuration: paused, and still served");
    }
    Ok(written)
}

/// Whether a feed is or was the configuration's.
fn is_configured(record: &FeedRecord) -> bool {
    matches!(record.source, FeedSource::File | FeedSource::CommandLine)
}

fn compare(
    store: &Store,
    (config, stored): (&Config, &FeedList),
    sites: &AppliedOrigins,
    now: Time,
) -> FeedChanges {
    let (feeds, left_out) = names::assigned(config, stored);
    let when = FeedRecord::next_change(stored.values().map(Arc::as_ref), now);
    let sites = moved_sites(sites, config);
    let known: HashSet<String> = match sites.is_empty() {
        true => HashSet::new(),
        false => stored.values().map(|record| record.url.clone()).collect(),
    };
    let mut stored = stored.clone();
    let (mut written, mut moved) = (Vec::new(), Vec::new());
    for mut record in feeds {
        if record.follow(stored.remove(&record.name).as_deref(), when, store.endpoint()) {
            written.push(record);
        }
    }
    for (_, before) in stored {
        let mut record = FeedRecord::clone(&before);
        if is_configured(&record) && record.standing == FeedStanding::Active {
            record.standing = FeedStanding::Paused;
        }
        if sites.iter().any(|(from, to)| record.move_with_site(from, to)) {
            let stays = known.contains(&record.url);
            moved.push((record.name.clone(), stays));
            if stays {
                record = FeedRecord::clone(&before);
            }
        }
        if record.follow(Some(&before), when, store.endpoint()) {
            written.push(record);
        }
    }
    FeedChanges { written, left_out, moved }
}

/// The sites of a configuration that have another address than they had, with the one before and the one now; not where
/// another site was at the same one and is there still.
fn moved_sites(applied: &AppliedOrigins, config: &Config) -> Vec<(String, String)> {
    let is_there = |url: &String| {
        let stays = |site: &tidegate_net::origin::OriginConfig| {
            site.url.as_str() == url && applied.0.get(&site.name) == Some(url)
        };
        config.origins.iter().any(stays)
    };
    let moved = config.origins.iter().filter_map(|site| {
        let before = applied.0.get(&site.name)?;
        (before != site.url.as_str() && !is_there(before))
            .then(|| (before.clone(), site.url.to_string()))
    });
    moved.collect()
}

/// Lets changes leave the sync views in time, also of feeds that never change.
pub(super) async fn run_maintenance(
    store: Arc<Store>,
    (clock, running): (Arc<dyn Clock>, Arc<dyn Clock>),
    (desk, space): (Arc<Operator>, Option<Arc<FreeSpace>>),
    cancel: CancellationToken,
) {
    tokio::join!(
        titles::maintain_titles(store.as_ref(), running.as_ref(), &desk, &cancel),
        age(&store, (clock.as_ref(), running.as_ref()), (&desk, space.as_deref()), &cancel),
    );
}

async fn age(
    store: &Arc<Store>,
    (clock, running): (&dyn Clock, &dyn Clock),
    (desk, space): (&Arc<Operator>, Option<&FreeSpace>),
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
                tracing::warn!(error = in_words(&error), "what need not be kept could not be let go of");
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
async fn report_ticks(store: &Store, now: Time) {
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
async fn note(store: &Store, now: Time) {
    if let Err(error) = store.note_running_time(now).await {
        tracing::warn!(error = in_words(&error), "the running time could not be noted");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::gateway::tests::operator_of;
    use crate::app::maintenance::tests::gateway;
    use tidegate_core::clock::ManualClock;
    use tidegate_core::model::testing::{at, name};
    use tidegate_poll::testing::gateway::eventually;
    use tidegate_store::{SpaceLimits, Store};

    #[tokio::test]
    async fn feeds_that_requests_made_move_with_their_site() {
        let clock = Arc::new(ManualClock::at(at(0)));
        let store = Store::in_memory(None, clock).unwrap();
        let reconcile = async |sites: &[(&str, &str)]| {
            let table = |(name, url): &(&str, &str)| {
                format!("[[origin]]\nname = {name:?}\nat = \"/{name}/\"\nurl = {url:?}\n")
            };
            let text = sites.iter().map(table).collect::<String>();
            let config = tidegate_config::check("t.toml", &text).unwrap().config;
            reconcile(&store, &config, at(100)).await.unwrap();
        };
        let put = async |feed: &str, url: &str, site: &str| {
            let mut record = FeedRecord::on_demand(name(feed), url, site, at(1));
            record.follow(None, at(1), store.endpoint());
            store.put_feed(&record).await.unwrap();
        };
        let urls = async || {
            let feeds = store.feed_list().await.unwrap();
            feeds.values().map(|record| record.url.clone()).collect::<Vec<_>>()
        };
        let (blog, wiki) = (("blog", "http://b.example:81/"), ("wiki", "http://w.example/"));
        reconcile(&[blog, wiki]).await;
        put("a", "http://b.example:81/feed", blog.1).await;
        put("b", "http://w.example/feed", wiki.1).await;
        put("c", "http://elsewhere.example/feed", "http://elsewhere.example/").await;
        let elsewhere = "http://elsewhere.example/feed";
        // Its name may change, or its address.
        reconcile(&[("news", blog.1), wiki]).await;
        assert_eq!(urls().await, ["http://b.example:81/feed", "http://w.example/feed", elsewhere]);
        reconcile(&[("news", "https://b.example/x/"), wiki]).await;
        assert_eq!(urls().await, ["https://b.example/x/feed", "http://w.example/feed", elsewhere]);
        // What left is where it was, and one that is there keeps its place.
        put("d", "http://b.example:82/feed", "http://b.example:82/").await;
        reconcile(&[("news", "http://b.example:82/")]).await;
        let stay = ["https://b.example/x/feed", "http://w.example/feed", elsewhere];
        assert_eq!(urls().await[..3], stay);
        reconcile(&[("news", "http://b.example:83/")]).await;
        assert_eq!(urls().await[..3], stay);
        assert_eq!(urls().await[3], "http://b.example:83/feed");
        // Another site stays where both were.
        let mirror = ("mirror", "http://b.example:83/");
        reconcile(&[("news", mirror.1), mirror]).await;
        reconcile(&[("news", "http://b.example:84/"), mirror]).await;
        assert_eq!(urls().await[3], "http://b.example:83/feed");
    }

    #[tokio::test(start_paused = true)]
    async fn near_the_limit_every_feed_is_pruned_at_once() {
        let (folder, cancel) = (tempfile::tempdir().unwrap(), CancellationToken::new());
        let space = FreeSpace::of_folder(folder.path().to_owned(), 0);
        space.set_limits(SpaceLimits { min_free: 0, max_size: Some(100_000) });
        let (gateway, _) = gateway().await;
        let desk = Arc::new(operator_of(&gateway, &Config::default()));
        let store = gateway.store.real();
        let pruned = || gateway.store.reads_of("texts");
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
