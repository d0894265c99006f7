//! The titles of feeds in the list of subscriptions: what their own documents say.

use super::followers::goes_on;
use super::maintenance::PASSED_OVER;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::clock::Clock;
use tidegate_core::model::{Enrolment, FeedName, FeedRecord, FeedStanding, Revision, Tick, Time};
use tidegate_poll::owns_feed;
use tidegate_serve::Operator;
use tidegate_store::{Epoch, Select, Store, StoreError};
use tokio::task::yield_now;
use tokio_util::sync::CancellationToken;

/// What lies between two looks at least, so that many titles are written together.
const SETTLE: Duration = Duration::from_secs(2);
/// How often the titles of all feeds are looked at: one can change while no item does.
const ALL_EVERY: Duration = Duration::from_secs(3600);
/// The most epochs of the change log that are read at once; where more is new, all are looked at.
const EPOCHS: usize = 1_000;

/// Keeps the titles in the list of subscriptions up to date, until it is cancelled.
pub(super) async fn maintain_titles(
    store: &Store,
    clock: &dyn Clock,
    desk: &Operator,
    cancel: &CancellationToken,
) {
    let (mut read, mut epochs) = (ReadTitles::default(), store.watch_epochs());
    let (mut seen, mut all_at) = (None, clock.now());
    loop {
        let now = clock.now();
        let after = seen.filter(|_| now < all_at);
        if after.is_none() {
            all_at = now.plus(ALL_EVERY);
        }
        let updating = cancel.run_until_cancelled(read.update(store, desk, after));
        let Some(updated) = updating.await else { return };
        let done = updated.map(|newest| seen = Some(newest));
        if !goes_on("titles", done, (SETTLE, ALL_EVERY), &mut epochs, cancel).await {
            return;
        }
    }
}

/// The feeds whose titles were read and written, as they were then.
#[derive(Default)]
struct ReadTitles(HashMap<FeedName, (Arc<FeedRecord>, Revision)>);

impl ReadTitles {
    /// Looks at the feeds that changed after an epoch, at all of them where there is none, and reads those that changed
    /// since they were read. Answers the epoch that was reached. Where it fails, what was found is read again.
    async fn update(
        &mut self,
        store: &Store,
        desk: &Operator,
        after: Option<Epoch>,
    ) -> Result<Epoch, StoreError> {
        let newest = *store.watch_epochs().borrow();
        let changed = match after {
            Some(after) => changed_feeds(store, after).await?,
            None => None,
        };
        let feeds = store.feed_list().await?;
        let looked_at: Vec<Arc<FeedRecord>> = match changed {
            Some(names) => names.iter().filter_map(|name| feeds.get(name)).cloned().collect(),
            None => {
                self.0.retain(|name, _| feeds.contains_key(name));
                feeds.values().cloned().collect()
            }
        };
        drop(feeds);
        let (mut titles, mut read) = (BTreeMap::new(), Vec::new());
        for (place, record) in looked_at.into_iter().enumerate() {
            if place % PASSED_OVER == 0 {
                yield_now().await;
            }
            if record.standing == FeedStanding::Gone || !owns_feed(store, &record) {
                continue;
            }
            let name = &record.name;
            let state = store.state(name).await?;
            let now = (Arc::clone(&record), state.map(|state| state.revision).unwrap_or_default());
            if self.0.get(name) == Some(&now) {
                continue;
            }
            let title = title(store, name).await?;
            let other = title.filter(|title| record.enrolment.title.as_ref() != Some(title));
            titles.extend(other.map(|title| (name.clone(), title)));
            read.push((name.clone(), now));
        }
        if !titles.is_empty() {
            desk.update_titles(titles).await?;
        }
        self.0.extend(read);
        Ok(newest)
    }
}

/// The feeds that changed after an epoch; `None` where that is not known of all.
async fn changed_feeds(
    store: &Store,
    after: Epoch,
) -> Result<Option<BTreeSet<FeedName>>, StoreError> {
    let epochs = store.epochs_after(after, EPOCHS).await?;
    let is_whole = epochs.len() < EPOCHS
        && epochs.first().is_none_or(|first| first.epoch.0 == after.0.saturating_add(1));
    let changes = epochs.into_iter().flat_map(|closed| closed.changes);
    Ok(is_whole.then(|| changes.map(|change| change.feed).collect()))
}

/// The title of a feed's last document.
async fn title(store: &Store, feed: &FeedName) -> Result<Option<String>, StoreError> {
    // No item has a later tick: this is the document around them alone.
    let view = store.view(feed, Select::After(Tick::at(Time::MAX))).await?;
    Ok(view.and_then(|view| Enrolment::title(&view.skeleton.title)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::gateway::tests::operator_of;
    use tidegate_config::Config;
    use tidegate_core::model::testing::skeleton;
    use tidegate_core::model::{FeedState, Format};
    use tidegate_poll::testing::double::{NOW, StoreFault, name, store_of};
    use tidegate_poll::testing::gateway::{Gateway, Publisher};
    use tidegate_store::testing::ScriptedFeed;

    /// Looks at all feeds. Answers whether what was found is written, and the feeds that were read.
    async fn pass(gateway: &Gateway, titles: &mut ReadTitles) -> (bool, Vec<String>) {
        let desk = operator_of(gateway, &Config::default());
        let is_written = titles.update(&gateway.store, &desk, None).await.is_ok();
        (is_written, gateway.store.take_reads("frames"))
    }

    fn read(feeds: &[&str]) -> (bool, Vec<String>) {
        (true, feeds.iter().map(ToString::to_string).collect())
    }

    #[tokio::test]
    async fn titles_are_read_where_feeds_changed_and_again_where_they_were_not_written() {
        let store = store_of(&["a", "b"]);
        for feed in ["a", "b"] {
            let skeleton = Some(skeleton(Format::Atom10, &format!("The title of {feed}")));
            let state = FeedState::untouched(Format::Atom10, NOW);
            let (order, items, events) = Default::default();
            let feed_of_title = ScriptedFeed { state, skeleton, order, items, events };
            store.set_feed(&name(feed), &feed_of_title);
        }
        let gateway = Gateway::start(&store, &Publisher::gated("")).await;
        let mut visits = ReadTitles::default();
        store.fault(StoreFault::Writes("feeds"));
        let (is_written, _) = pass(&gateway, &mut visits).await;
        assert!(!is_written);
        store.mend();
        assert_eq!(pass(&gateway, &mut visits).await, read(&["a", "b"]));
        let feeds = store.feed_list().await.unwrap();
        let titles = feeds.values().map(|it| it.enrolment.title.as_deref());
        assert!(titles.eq([Some("The title of a"), Some("The title of b")]));
        // The records are others now.
        assert_eq!(pass(&gateway, &mut visits).await, read(&["a", "b"]));
        assert_eq!(pass(&gateway, &mut visits).await, read(&[]));
        let mut state = store.state_of("b");
        state.revision.0 += 1;
        store.set_state(&name("b"), state, None);
        assert_eq!(pass(&gateway, &mut visits).await, read(&["b"]));
    }
}
