//! Which feeds have changed lately, for whoever keeps up something that follows from all of them.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tidegate_core::model::FeedName;

/// How many feeds are remembered. Who is further behind looks at all feeds.
const REMEMBERED: usize = 65_536;

/// The feeds that have changed lately, each with the number of its last change.
#[derive(Debug, Default)]
pub struct ChangedFeeds(Mutex<NumberedChanges>);

#[derive(Debug, Default)]
struct NumberedChanges {
    newest: u64,
    /// Up to this number changes are forgotten.
    forgotten: u64,
    feeds: HashMap<FeedName, u64>,
    /// The same by number, so that who is little behind is told fast.
    numbers: BTreeMap<u64, FeedName>,
}

impl ChangedFeeds {
    /// Notes that a feed has changed. What it is now can be read already.
    pub fn note(&self, feed: &FeedName) {
        let mut all = self.lock();
        all.newest += 1;
        let newest = all.newest;
        if let Some(before) = all.feeds.insert(feed.clone(), newest) {
            all.numbers.remove(&before);
        }
        all.numbers.insert(newest, feed.clone());
        if all.feeds.len() > REMEMBERED
            && let Some((oldest, feed)) = all.numbers.pop_first()
        {
            all.forgotten = oldest;
            all.feeds.remove(&feed);
        }
    }

    /// Notes that any feed may have changed.
    pub fn note_all(&self) {
        let mut all = self.lock();
        all.newest += 1;
        all.forgotten = all.newest;
        all.feeds.clear();
        all.numbers.clear();
    }

    /// The number of the newest change, and the feeds that have changed after `seen`; `None`: any may have.
    pub fn after(&self, seen: u64) -> (u64, Option<Vec<FeedName>>) {
        let all = self.lock();
        if seen < all.forgotten {
            return (all.newest, None);
        }
        let later = all.numbers.range(seen.saturating_add(1)..);
        (all.newest, Some(later.map(|(_, feed)| feed.clone()).collect()))
    }

    fn lock(&self) -> MutexGuard<'_, NumberedChanges> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_behind_is_told_what_changed_since_and_who_is_far_behind_that_anything_may_have() {
        let name = |text: &str| FeedName::new(text).unwrap();
        let changed = ChangedFeeds::default();
        assert_eq!(changed.after(0), (0, Some(Vec::new())));
        ["a", "b", "a"].map(name).iter().for_each(|feed| changed.note(feed));
        let (newest, mut feeds) = changed.after(0);
        feeds.as_mut().unwrap().sort();
        assert_eq!((newest, feeds), (3, Some(["a", "b"].map(name).to_vec())));
        assert_eq!(changed.after(2), (3, Some(vec![name("a")])));
        assert_eq!(changed.after(3), (3, Some(Vec::new())));
        changed.note_all();
        assert_eq!((changed.after(3), changed.after(4)), ((4, None), (4, Some(Vec::new()))));
        (0..=REMEMBERED).for_each(|number| changed.note(&name(&format!("f{number}"))));
        let newest = 5 + u64::try_from(REMEMBERED).unwrap();
        assert_eq!(changed.after(4), (newest, None));
        assert_eq!(changed.after(newest - 1).1, Some(vec![name(&format!("f{REMEMBERED}"))]));
    }
}
