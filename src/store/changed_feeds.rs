//! The feeds that changed lately, for caches that depend on all feeds.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tidegate_core::model::FeedName;

/// How many changes are remembered. A reader that is further behind checks all feeds.
const REMEMBERED: usize = 65_536;

/// The feeds that have changed lately.
#[derive(Debug, Default)]
pub struct ChangedFeeds(Mutex<NumberedChanges>);

#[derive(Debug, Default)]
struct NumberedChanges {
    /// The number of changes before the first of `feeds`.
    forgotten: u64,
    /// A feed for each change, oldest first.
    feeds: VecDeque<FeedName>,
}

impl NumberedChanges {
    fn newest(&self) -> u64 {
        self.forgotten + self.feeds.len() as u64
    }
}

impl ChangedFeeds {
    /// Notes a change of a feed, whose new state can be read already.
    pub fn note(&self, feed: &FeedName) {
        let mut all = self.lock();
        all.feeds.push_back(feed.clone());
        if all.feeds.len() > REMEMBERED {
            all.feeds.pop_front();
            all.forgotten += 1;
        }
    }

    /// Notes that any feed may have changed.
    pub fn note_all(&self) {
        let mut all = self.lock();
        all.forgotten = all.newest() + 1;
        all.feeds.clear();
    }

    /// The number of the newest change, and the feeds that have changed after `seen`; `None`: any may have.
    pub fn after(&self, seen: u64) -> (u64, Option<Vec<FeedName>>) {
        let all = self.lock();
        let known = seen.checked_sub(all.forgotten).map(|known| {
            let known = usize::try_from(known).unwrap_or(usize::MAX);
            let later: BTreeSet<FeedName> = all.feeds.iter().skip(known).cloned().collect();
            later.into_iter().collect()
        });
        (all.newest(), known)
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
