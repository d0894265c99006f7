//! Keeps up to date what follows other feeds: aggregates take over what changes in their sources, and the feeds of
//! subscription lists (`add_feeds`) what a list says once its document was judged. A document that is held, cut off or
//! broken changes no item, and so no feed.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tidegate_core::model::{FeedName, FeedRecord, FeedStanding};
use tidegate_poll::owns_feed;
use tidegate_serve::{Gathered, Operator, SeenList};
use tidegate_store::{Epoch, FeedList, Store, StoreError, in_words};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// What lies between two looks at least, so that a burst of changes is taken over at once, and how long at most until a
/// change is seen that closes no epoch.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// Takes over what sources have and lists say, until it is told to end.
pub(super) async fn follow_sources(
    store: Arc<Store>,
    desk: Arc<Operator>,
    cancel: CancellationToken,
) {
    // Neither waits for the other, which may take long.
    let gathering = async {
        let (mut epochs, mut gathered) = (store.watch_epochs(), HashMap::new());
        let mut aggregates = FeedsOfKind::new(|record| {
            record.options.sharing.is_aggregate() && record.standing == FeedStanding::Active
        });
        loop {
            let done = gather(store.as_ref(), &desk, &mut aggregates, &mut gathered).await;
            if !goes_on("aggregates", done, PAUSES, &mut epochs, &cancel).await {
                return;
            }
        }
    };
    let following = async {
        let (mut epochs, mut seen) = (store.watch_epochs(), HashMap::new());
        let mut lists = FeedsOfKind::new(FeedRecord::is_followed);
        loop {
            let done = follow_lists(store.as_ref(), &desk, &mut lists, &mut seen).await;
            if !goes_on("the feeds of lists", done, PAUSES, &mut epochs, &cancel).await {
                return;
            }
        }
    };
    tokio::join!(gathering, following);
}

/// Tells what failed and waits until it is time to look again; `false`: it is time to end.
pub(super) async fn goes_on(
    what: &str,
    done: Result<(), StoreError>,
    (least, most): (Duration, Duration),
    epochs: &mut watch::Receiver<Epoch>,
    cancel: &CancellationToken,
) -> bool {
    if let Err(error) = done {
        let error = in_words(&error);
        tracing::warn!(error, "{what} could not be brought up to date");
    }
    let waiting = async {
        tokio::time::sleep(least).await;
        tokio::select! {
            biased;
            // Where nobody closes epochs any more, the store is closing.
            changed = epochs.changed() => changed.is_ok(),
            () = tokio::time::sleep(most) => true,
        }
    };
    cancel.run_until_cancelled(waiting).await.unwrap_or(false)
}

/// Takes over what the sources of aggregates have.
async fn gather(
    store: &Store,
    desk: &Operator,
    aggregates: &mut FeedsOfKind,
    known: &mut HashMap<FeedName, Gathered>,
) -> Result<(), StoreError> {
    let feeds = store.feed_list().await?;
    known.retain(|name, _| feeds.contains_key(name));
    desk.gathered.retain(|name| feeds.contains_key(name));
    for record in aggregates.find(&feeds).iter().filter(|record| owns_feed(store, record)) {
        let gathered = known.entry(record.name.clone()).or_default();
        // One aggregate that cannot be stored must not keep the others from it.
        if let Err(error) = desk.gather(record, &feeds, gathered).await
            && desk.gathered.failed(&record.name, error.to_string())
        {
            let error = in_words(&error);
            tracing::warn!(feed = %record.name, error, "an aggregate could not be stored");
        }
    }
    Ok(())
}

/// Takes over what lists say.
async fn follow_lists(
    store: &Store,
    desk: &Operator,
    lists: &mut FeedsOfKind,
    seen: &mut HashMap<FeedName, SeenList>,
) -> Result<(), StoreError> {
    let feeds = store.feed_list().await?;
    let is_list = |name: &FeedName| feeds.get(name).is_some_and(|record| record.is_followed());
    seen.retain(|name, _| is_list(name));
    desk.lists.retain(is_list);
    for record in lists.find(&feeds).iter().filter(|record| owns_feed(store, record)) {
        match desk.follow_list(&record.name, seen.get(&record.name)).await {
            Ok(now) => seen.extend(now.map(|now| (record.name.clone(), now))),
            // One list that cannot be taken over must not keep the others from it.
            Err(error) if desk.lists.failed(&record.name, error.to_string()) => {
                tracing::warn!(feed = %record.name, %error, "the feeds of a list could not be stored");
            }
            Err(_) => {}
        }
    }
    Ok(())
}

/// The feeds of one kind, looked for only where a record has changed: there may be a hundred thousand others.
struct FeedsOfKind {
    is_one: fn(&FeedRecord) -> bool,
    /// The list that they were found in. While it is kept here, none that differs has its address.
    list: Weak<FeedList>,
    found: Vec<Arc<FeedRecord>>,
}

impl FeedsOfKind {
    const fn new(is_one: fn(&FeedRecord) -> bool) -> Self {
        Self { is_one, list: Weak::new(), found: Vec::new() }
    }

    /// Those of a list.
    fn find(&mut self, feeds: &Arc<FeedList>) -> &[Arc<FeedRecord>] {
        if !std::ptr::eq(self.list.as_ptr(), Arc::as_ptr(feeds)) {
            let found = feeds.values().filter(|record| (self.is_one)(record));
            (self.found, self.list) = (found.cloned().collect(), Arc::downgrade(feeds));
        }
        &self.found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_core::model::testing::{name, record};

    fn list(names: &[&str]) -> FeedList {
        let record = |feed: &&str| {
            let private = feed.starts_with("one");
            (name(feed), Arc::new(FeedRecord { private, ..record(feed) }))
        };
        names.iter().map(record).collect()
    }

    fn names(found: &[Arc<FeedRecord>]) -> Vec<&str> {
        found.iter().map(|record| record.name.as_str()).collect()
    }

    /// As the store does: a list that nobody else has is changed in its place.
    #[test]
    fn feeds_of_a_kind_are_those_of_the_list_as_it_is_now() {
        let mut feeds = Arc::new(list(&["one-a", "other"]));
        let mut ones = FeedsOfKind::new(|record| record.private);
        assert_eq!(names(ones.find(&feeds)), ["one-a"]);
        let first = Arc::as_ptr(ones.find(&feeds).first().unwrap());
        assert_eq!(Arc::as_ptr(ones.find(&feeds).first().unwrap()), first);
        Arc::make_mut(&mut feeds).extend(list(&["one-b"]));
        assert_eq!(names(ones.find(&feeds)), ["one-a", "one-b"]);
        Arc::make_mut(&mut feeds).retain(|name, _| name.as_str() != "one-a");
        assert_eq!(names(ones.find(&feeds)), ["one-b"]);
        drop(feeds);
        assert_eq!(names(ones.find(&Arc::new(list(&["one-c"])))), ["one-c"]);
    }
}
