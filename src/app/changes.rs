//! Waits until something may have changed in the store, for what is derived from feeds.

use std::sync::{Arc, Weak};
use std::time::Duration;
use tidegate_core::model::FeedRecord;
use tidegate_store::{Epoch, FeedList};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// How long at most until a change is seen that closes no epoch.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// What lies between two looks at least, so that a burst of changes is taken over at once.
const REST: Duration = Duration::from_millis(100);

/// The feeds of one kind, looked for only where a record has changed: there may be a hundred thousand others.
pub(super) struct FeedsOfKind {
    is_one: fn(&FeedRecord) -> bool,
    /// The list that they were found in. While it is kept here, none that differs has its address.
    list: Weak<FeedList>,
    found: Vec<Arc<FeedRecord>>,
}

impl FeedsOfKind {
    pub(super) const fn new(is_one: fn(&FeedRecord) -> bool) -> Self {
        Self { is_one, list: Weak::new(), found: Vec::new() }
    }

    /// Those of a list.
    pub(super) fn find(&mut self, feeds: &Arc<FeedList>) -> &[Arc<FeedRecord>] {
        if !std::ptr::eq(self.list.as_ptr(), Arc::as_ptr(feeds)) {
            let found = feeds.values().filter(|record| (self.is_one)(record));
            (self.found, self.list) = (found.cloned().collect(), Arc::downgrade(feeds));
        }
        &self.found
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_core::model::{FeedName, FeedSource};

    fn list(names: &[&str]) -> FeedList {
        let record = |name: &&str| {
            let name = FeedName::new(name).unwrap();
            let record = FeedRecord {
                private: name.as_str().starts_with("one"),
                ..FeedRecord::new(name.clone(), "https://example.org/", FeedSource::Api)
            };
            (name, Arc::new(record))
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
