//! What is to be taken over when this gateway gains shards, or when another gateway changed the list of feeds: read
//! apart from the scheduler, since the store may take its time.

use crate::shards::{is_polled, shard_of};
use std::collections::{BTreeMap, BTreeSet};
use std::iter::Peekable;
use std::sync::Arc;
use std::vec::IntoIter;
use tidegate_core::model::{Attempt, FeedName, FeedRecord, FeedStanding, PollState, Time};
use tidegate_store::{FeedList, Shard, Store, StoreError};
use tokio::task::spawn_blocking;

/// What the store knows of a feed that polling begins with.
pub(super) struct StoredFeed {
    pub(super) record: Arc<FeedRecord>,
    /// What polling remembers of it; what was learned of another address says nothing of this one.
    pub(super) state: Option<PollState>,
    /// When something that is pending can be decided, by the running time.
    pub(super) pending: Option<Time>,
}

impl StoredFeed {
    /// Reads what is pending in a feed.
    pub(super) async fn read(
        store: &dyn Store,
        record: Arc<FeedRecord>,
        states: &mut OrderedStates,
    ) -> Result<Self, StoreError> {
        let state = states.next_of(&record.name).filter(|state| state.url == record.url);
        let pending = match is_polled(&record) {
            true => store.next_decision(&record.name).await?,
            false => None,
        };
        Ok(Self { record, state, pending })
    }
}

/// Poll states that are asked for in the order of their feeds' names, so that there is no table of all.
pub(super) struct OrderedStates(Peekable<IntoIter<PollState>>);

impl OrderedStates {
    pub(super) fn new(mut states: Vec<PollState>) -> Self {
        // Stores answer them in this order.
        states.sort_by(|one, other| one.feed.cmp(&other.feed));
        Self(states.into_iter().peekable())
    }

    /// That of a feed, whose name comes after those that were asked for before.
    fn next_of(&mut self, feed: &FeedName) -> Option<PollState> {
        while self.0.next_if(|state| state.feed < *feed).is_some() {}
        self.0.next_if(|state| state.feed == *feed)
    }
}

/// What a survey is made of.
pub(super) struct SurveyBasis {
    pub(super) store: Arc<dyn Store>,
    /// Shards that this gateway has and whose feeds are not here yet, with their fences.
    pub(super) gained: BTreeMap<Shard, i64>,
    /// Feeds whose time has come.
    pub(super) postponed: BTreeSet<FeedName>,
    /// Shards whose feeds are here.
    pub(super) taken: BTreeSet<Shard>,
    /// The feeds as they were when they were last compared.
    pub(super) old: Option<Arc<FeedList>>,
}

/// What came of a survey.
pub(super) struct Survey {
    pub(super) gained: BTreeMap<Shard, i64>,
    /// The feeds as they were.
    pub(super) list: Arc<FeedList>,
    pub(super) changes: ListChanges,
    /// What is to be taken over.
    pub(super) feeds: Vec<StoredFeed>,
    /// Those of them that had to wait for it.
    pub(super) postponed: BTreeSet<FeedName>,
    /// The marks of large documents of what is to be taken over.
    pub(super) marks: Vec<Attempt>,
}

/// How the list of feeds differs from that before, as far as it is about shards whose feeds are here.
#[derive(Default)]
pub(super) struct ListChanges {
    /// Records that were added or are others.
    pub(super) changed: Vec<Arc<FeedRecord>>,
    /// Equal records in another place.
    pub(super) same: Vec<Arc<FeedRecord>>,
    /// What is in the list no more, or belongs to another gateway now.
    pub(super) left: Vec<FeedName>,
}

impl SurveyBasis {
    pub(super) async fn make(self) -> Result<Survey, StoreError> {
        let Self { store, gained, postponed, taken, old } = self;
        if !gained.is_empty() {
            // What the gateway that gave them up has written is seen here too.
            store.catch_up().await?;
        }
        let list = store.feed_list().await?;
        let is_same = old.as_ref().is_some_and(|old| Arc::ptr_eq(old, &list));
        let mut survey = Survey {
            gained,
            changes: ListChanges::default(),
            feeds: Vec::new(),
            postponed,
            marks: Vec::new(),
            list: Arc::clone(&list),
        };
        if is_same && survey.gained.is_empty() && survey.postponed.is_empty() {
            return Ok(survey);
        }
        // There may be a million.
        let compared = spawn_blocking(move || {
            let changes = old.map(|old| ListChanges::between(&old, &survey.list, &taken));
            survey.changes = changes.unwrap_or_default();
            let records = to_take_over(&list, &survey, &taken);
            (survey, records)
        });
        let (mut survey, records) = compared.await.map_err(|_| StoreError::Closed)?;
        if records.is_empty() {
            return Ok(survey);
        }
        let names: Vec<FeedName> = records.iter().map(|record| record.name.clone()).collect();
        let mut states = OrderedStates::new(store.poll_states_of(&names).await?);
        survey.marks = store.attempts().await?;
        // Both are in the order of their names.
        survey.marks.retain(|mark| names.binary_search(&mark.feed).is_ok());
        survey.feeds.reserve(records.len());
        for record in records {
            let stored = StoredFeed::read(store.as_ref(), record, &mut states).await?;
            survey.feeds.push(stored);
        }
        Ok(survey)
    }
}

/// The records whose feeds are to be taken over, by name: paused ones too, of which something is remembered.
fn to_take_over(list: &FeedList, survey: &Survey, taken: &BTreeSet<Shard>) -> Vec<Arc<FeedRecord>> {
    let is_kept =
        |record: &FeedRecord| record.has_upstream() && record.standing != FeedStanding::Gone;
    let records = |record: &&Arc<FeedRecord>| {
        if !is_kept(record) {
            return false;
        }
        let shard = shard_of(&record.url);
        survey.gained.contains_key(&shard)
            || (survey.postponed.contains(&record.name) && taken.contains(&shard))
    };
    if survey.gained.is_empty() {
        let postponed = survey.postponed.iter().filter_map(|name| list.get(name));
        return postponed.filter(records).map(Arc::clone).collect();
    }
    list.values().filter(records).map(Arc::clone).collect()
}

impl ListChanges {
    /// `taken`: the shards whose feeds are here.
    fn between(old: &FeedList, new: &FeedList, taken: &BTreeSet<Shard>) -> Self {
        let mut changes = Self::default();
        let is_here = |record: &FeedRecord| taken.contains(&shard_of(&record.url));
        let mut before = old.iter().peekable();
        let gone = |changes: &mut Self, name: &FeedName, record: &FeedRecord| {
            if is_here(record) {
                changes.left.push(name.clone());
            }
        };
        for (name, record) in new {
            while let Some((name, record)) = before.next_if(|(before, _)| *before < name) {
                gone(&mut changes, name, record);
            }
            let known = before.next_if(|(before, _)| *before == name).map(|(_, known)| known);
            if known.is_some_and(|known| Arc::ptr_eq(known, record)) {
                continue;
            }
            if is_here(record) {
                let is_same = known.is_some_and(|known| known == record);
                let list = if is_same { &mut changes.same } else { &mut changes.changed };
                list.push(Arc::clone(record));
            } else if let Some(known) = known {
                gone(&mut changes, name, known);
            }
        }
        for (name, record) in before {
            gone(&mut changes, name, record);
        }
        changes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_core::model::FeedSource;

    fn list(feeds: &[(&str, &str)]) -> FeedList {
        let record = |(name, url): &(&str, &str)| {
            let name = FeedName::new(name).unwrap();
            (name.clone(), Arc::new(FeedRecord::new(name, *url, FeedSource::Api)))
        };
        feeds.iter().map(record).collect()
    }

    #[test]
    fn only_changes_in_the_shards_of_this_gateway_are_seen() {
        let (here, there) = ("http://here.example/", "http://there.example/");
        let old = list(&[("a", here), ("b", here), ("c", there), ("d", here), ("e", there)]);
        let mut new = list(&[("a", there), ("c", here), ("d", here), ("f", here), ("g", there)]);
        let taken = BTreeSet::from([shard_of(here)]);
        let names = |records: &[Arc<FeedRecord>]| -> Vec<String> {
            records.iter().map(|record| record.name.to_string()).collect()
        };
        let changes = ListChanges::between(&old, &new, &taken);
        assert_eq!(names(&changes.changed), ["c", "f"]);
        assert_eq!(names(&changes.same), ["d"]);
        let left: Vec<_> = changes.left.iter().map(ToString::to_string).collect();
        assert_eq!(left, ["a", "b"]);
        // What is shared by both lists is not even compared.
        let shared = new.clone();
        let changes = ListChanges::between(&shared, &new, &taken);
        assert!(changes.changed.is_empty() && changes.same.is_empty() && changes.left.is_empty());
        new.clear();
        let changes = ListChanges::between(&shared, &new, &taken);
        assert_eq!(changes.left.len(), 3);
    }
}
