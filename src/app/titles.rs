//! The titles of feeds in the list of subscriptions: what their own documents say.

use super::operator::AdminService;
use super::visits::FeedVisits;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tidegate_core::clock::Clock;
use tidegate_core::model::{Enrolment, FeedName, FeedRecord, FeedStanding, Tick, Time};
use tidegate_poll::owns_feed;
use tidegate_store::{CommitError, Epoch, Select, Store, StoreError, in_words};
use tokio_util::sync::CancellationToken;

/// How long after a change of feeds their titles are looked at, so that many are written together.
const SETTLE: Duration = Duration::from_secs(2);
/// How often the titles of all feeds are looked at: one can change while no item does.
const ALL_EVERY: Duration = Duration::from_secs(3600);
/// After how long the title of a feed is read again that stays as it is: it is of the feed's revision.
const NEVER: Duration = Duration::MAX;
/// The most epochs of the change log that are read at once; where more is new, all are looked at.
const EPOCHS: usize = 1_000;

/// Keeps the titles in the list of subscriptions up to date, until it is cancelled.
pub(super) async fn maintain_titles(
    store: &Arc<dyn Store>,
    clock: &dyn Clock,
    desk: &AdminService,
    cancel: &CancellationToken,
) {
    let mut visits = FeedVisits::default();
    let mut sealed = store.watch_epochs();
    let mut seen = *sealed.borrow_and_update();
    let mut all_at = clock.now();
    loop {
        let now = clock.now();
        let all = now >= all_at;
        let after = if all { None } else { Some(seen) };
        let updated = tokio::select! {
            () = cancel.cancelled() => return,
            updated = update_or_forget(store, desk, &mut visits, (now, after)) => updated,
        };
        match updated {
            Ok(newest) => seen = newest,
            Err(error) => tracing::warn!(
                error = in_words(&error),
                "the titles of feeds could not be looked at"
            ),
        }
        if all {
            all_at = now.plus(ALL_EVERY);
        }
        tokio::select! {
            () = cancel.cancelled() => return,
            changed = tokio::time::timeout(ALL_EVERY, sealed.changed()) => {
                // The store is closed.
                if matches!(changed, Ok(Err(_))) {
                    return;
                }
            }
        }
        tokio::select! {
            () = cancel.cancelled() => return,
            () = tokio::time::sleep(SETTLE) => {}
        }
        sealed.borrow_and_update();
    }
}

/// Does what [`update_changed`] does. Where that fails, what was found is not written, and all is read again.
async fn update_or_forget(
    store: &Arc<dyn Store>,
    desk: &AdminService,
    visits: &mut FeedVisits,
    when: (Time, Option<Epoch>),
) -> Result<Epoch, CommitError> {
    let updated = update_changed(store, desk, visits, when).await;
    if updated.is_err() {
        *visits = FeedVisits::default();
    }
    updated
}

/// Looks at the feeds that changed after the epoch `after`, at all of them where there is none, and reads those that
/// changed since their last visit. Answers the epoch that was reached.
async fn update_changed(
    store: &Arc<dyn Store>,
    desk: &AdminService,
    visits: &mut FeedVisits,
    (now, after): (Time, Option<Epoch>),
) -> Result<Epoch, CommitError> {
    let newest = *store.watch_epochs().borrow();
    let mut names = BTreeSet::new();
    let told = match after {
        Some(after) => {
            let epochs = store.epochs_after(after, EPOCHS).await?;
            let whole = epochs.len() < EPOCHS
                && epochs.first().is_none_or(|first| first.epoch.0 == after.0.saturating_add(1));
            names.extend(epochs.into_iter().flat_map(|sealed| sealed.changes).map(|c| c.feed));
            whole
        }
        None => false,
    };
    let feeds = store.feed_list().await?;
    let is_served = |record: &&Arc<FeedRecord>| {
        record.standing != FeedStanding::Gone && owns_feed(store.as_ref(), record)
    };
    let records: Vec<Arc<FeedRecord>> = match told {
        true => {
            names.iter().filter_map(|name| feeds.get(name)).filter(is_served).cloned().collect()
        }
        false => {
            visits.keep_only(&feeds);
            feeds.values().filter(is_served).cloned().collect()
        }
    };
    drop(feeds);
    let found: Arc<Mutex<BTreeMap<FeedName, String>>> = Arc::default();
    let visit = |record: Arc<FeedRecord>| {
        let (store, found) = (Arc::clone(store), Arc::clone(&found));
        async move {
            let title = title(store.as_ref(), &record.name).await?;
            if let Some(title) = title
                && record.enrolment.title.as_ref() != Some(&title)
            {
                let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
                found.insert(record.name.clone(), title);
            }
            Ok::<_, CommitError>(true)
        }
    };
    visits.visit_due(store.as_ref(), &records, (now, NEVER), visit).await?;
    let titles = std::mem::take(&mut *found.lock().unwrap_or_else(PoisonError::into_inner));
    if !titles.is_empty() {
        desk.update_titles(titles).await?;
    }
    Ok(newest)
}

/// The title of a feed's last document.
async fn title(store: &dyn Store, feed: &FeedName) -> Result<Option<String>, StoreError> {
    // No item has a later tick: this is the document around them alone.
    let view = store.view(feed, Select::After(Tick::at(Time::MAX))).await?;
    Ok(view.and_then(|view| Enrolment::title(&view.skeleton.title)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_config::Config;
    use tidegate_core::model::{Format, Snapshot};
    use tidegate_poll::testing::double::{NOW, StoreDouble, Trouble, name};
    use tidegate_poll::testing::gateway::{Gateway, Publisher};

    /// Looks at all feeds. Answers whether what was found is written, and the feeds that were read.
    async fn pass(gateway: &Gateway, visits: &mut FeedVisits) -> (bool, Vec<String>) {
        let store: Arc<dyn Store> = gateway.store.clone();
        let desk = AdminService::of_gateway(gateway, &Config::default());
        let is_written = update_or_forget(&store, &desk, visits, (NOW, None)).await.is_ok();
        let read = std::mem::take(&mut gateway.store.shelf.lock().unwrap().viewed);
        let mut read: Vec<String> = read.iter().map(ToString::to_string).collect();
        read.sort();
        (is_written, read)
    }

    fn read(feeds: &[&str]) -> (bool, Vec<String>) {
        (true, feeds.iter().map(ToString::to_string).collect())
    }

    #[tokio::test]
    async fn titles_are_read_where_feeds_changed_and_again_where_they_were_not_written() {
        let store = StoreDouble::new(&["a", "b"]);
        for feed in ["a", "b"] {
            let snapshot = Snapshot::untouched(Format::Atom10, NOW);
            store.shelf.lock().unwrap().snapshots.insert(name(feed), snapshot);
        }
        let gateway = Gateway::start(&store, &Publisher::gated("")).await;
        let mut visits = FeedVisits::default();
        store.shelf.lock().unwrap().trouble.push(Trouble::Unwritable);
        let (is_written, _) = pass(&gateway, &mut visits).await;
        assert!(!is_written);
        store.shelf.lock().unwrap().trouble.clear();
        assert_eq!(pass(&gateway, &mut visits).await, read(&["a", "b"]));
        let titles: Vec<_> = store
            .feed_list()
            .await
            .unwrap()
            .values()
            .map(|it| it.enrolment.title.clone())
            .collect();
        assert_eq!(titles, ["a", "b"].map(|feed| Some(format!("The title of {feed}"))));
        // The records are others now.
        assert_eq!(pass(&gateway, &mut visits).await, read(&["a", "b"]));
        assert_eq!(pass(&gateway, &mut visits).await, read(&[]));
        store.shelf.lock().unwrap().snapshots.get_mut(&name("b")).unwrap().state.revision.0 += 1;
        assert_eq!(pass(&gateway, &mut visits).await, read(&["b"]));
    }
}
