//! How feeds stand: what this gateway knows of those that it polls, and what other gateways stored of the others.

use super::{Operator, OperatorError, list_feeds};
use crate::Cache;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tidegate_core::model::{
    FeedName, FeedOptions, FeedRecord, FeedStanding, FeedState, Hold, LedgerEntry, PollState,
    Revision,
};
use tidegate_judge::{self as judge, PENDING_SHOWN, PendingAbsence};
use tidegate_status::{FeedStatus, FeedSummary, HubNote, PollStatus};
use tidegate_store::FeedList;

impl Operator {
    /// How these feeds stand, in their order. `feeds`: all that there are.
    pub(super) async fn statuses_of(
        &self,
        records: &[Arc<FeedRecord>],
        feeds: &FeedList,
    ) -> Result<Vec<FeedStatus>, OperatorError> {
        let sources = records.iter().flat_map(|record| &record.options.sharing.sources);
        let names: BTreeSet<&FeedName> =
            records.iter().map(|record| &record.name).chain(sources).collect();
        let named_records = names.into_iter().filter_map(|name| feeds.get(name).cloned());
        let polling = self.polling_of(&named_records.collect::<Vec<_>>()).await?;
        let mut all = Vec::with_capacity(records.len());
        for record in records {
            all.push(self.standing(record, feeds, &polling).await?);
        }
        Ok(all)
    }

    /// How the polling of these feeds stands, of those of which that is known.
    pub(super) async fn polling_of(
        &self,
        records: &[Arc<FeedRecord>],
    ) -> Result<BTreeMap<FeedName, PollStatus>, OperatorError> {
        let own = |record: &Arc<FeedRecord>| {
            Some((record.name.clone(), self.poller.status(&record.name)?))
        };
        let mut all: BTreeMap<FeedName, PollStatus> = records.iter().filter_map(own).collect();
        if self.store.gateways().is_none() {
            return Ok(all);
        }
        // Of the others another gateway may know it.
        let elsewhere = records.iter().filter(|record| {
            let is_kept = record.has_upstream() && record.standing != FeedStanding::Gone;
            is_kept && !all.contains_key(&record.name)
        });
        let elsewhere: Vec<Arc<FeedRecord>> = elsewhere.map(Arc::clone).collect();
        let mut stored = self.stored_states(&elsewhere).await?;
        for record in elsewhere {
            if let Some(state) = stored.remove(&record.name) {
                all.insert(record.name.clone(), PollStatus::from_stored(&record, &state));
            }
        }
        Ok(all)
    }

    /// What is stored of the polling of these feeds, read at once.
    async fn stored_states(
        &self,
        records: &[Arc<FeedRecord>],
    ) -> Result<BTreeMap<FeedName, PollState>, OperatorError> {
        if records.is_empty() {
            return Ok(BTreeMap::new());
        }
        let names: Vec<FeedName> = records.iter().map(|record| record.name.clone()).collect();
        let states = self.store.poll_states_of(&names).await?;
        Ok(states.into_iter().map(|state| (state.feed.clone(), state)).collect())
    }

    /// The same in short, of each of them.
    pub(crate) async fn stored_summaries(
        &self,
        records: &[Arc<FeedRecord>],
    ) -> Result<BTreeMap<FeedName, FeedSummary>, OperatorError> {
        let stored = self.stored_states(records).await?;
        let summary = |record: &Arc<FeedRecord>| {
            let state = stored.get(&record.name);
            (record.name.clone(), FeedSummary::from_stored(record, state))
        };
        Ok(records.iter().map(summary).collect())
    }

    /// How a feed stands. `polling`: how its polling stands, and that of its sources.
    async fn standing(
        &self,
        record: &Arc<FeedRecord>,
        feeds: &FeedList,
        polling: &BTreeMap<FeedName, PollStatus>,
    ) -> Result<FeedStatus, OperatorError> {
        let mut polled = polling.get(&record.name).cloned().unwrap_or_default();
        let state = self.store.state(&record.name).await?;
        let polled_by = self.poller.polled_elsewhere(record);
        if let (Some(next), Err(why)) = (&mut polled.next, self.store.condition().check_intake()) {
            next.reason = format!("it waits: {why}");
        }
        let held = state.as_ref().and_then(|s| s.hold.as_ref()).map(Hold::describe);
        let (pending, all) = self.pending(record, state.as_ref(), polled.same).await?;
        let feeds_of_list = self.list_note(record, feeds);
        let list = list_feeds::member_note(record, feeds);
        let gathered = self.gathering(record, feeds, polling).await?;
        let hub = polled.hub.as_ref();
        let hub = hub.map(|hub| HubNote::new(hub, self.clock.now(), record.options.secret));
        Ok(FeedStatus {
            record: Arc::clone(record),
            polling: polled,
            held,
            pending,
            pending_absences: u32::try_from(all).unwrap_or(u32::MAX),
            hub,
            polled_by,
            gathered,
            feeds_of_list,
            list,
        })
    }
}

/// How many items are remembered in all, at most [`PENDING_SHOWN`] of a feed.
const REMEMBERED: u64 = 16 * 1024;

/// The cache key of the missing items of a feed.
type PendingKey = (FeedName, Revision, FeedOptions);
/// The missing items that are shown, in the order of their decisions, and how many there are.
type PendingItems = (Vec<LedgerEntry>, usize);

/// The missing items that were found in ledgers.
pub(super) type AbsentItems = Cache<PendingKey, PendingItems>;

/// Nothing was found yet.
pub(super) fn new_absent_items_cache() -> AbsentItems {
    Cache::with_weigher(REMEMBERED, |waiting: &PendingItems| {
        u32::try_from(waiting.0.len()).unwrap_or(u32::MAX).saturating_add(1)
    })
}

impl Operator {
    /// What is to come of an item of a feed, where it is missing.
    pub(crate) async fn pending_absence(
        &self,
        feed: &FeedName,
        known: &LedgerEntry,
    ) -> Result<Option<PendingAbsence>, OperatorError> {
        let record = Arc::new(self.record(feed).await?);
        let polling = self.polling_of(std::slice::from_ref(&record)).await?;
        let same = polling.get(feed).map_or(0, |polling| polling.same);
        Ok(PendingAbsence::new(known, &record.options, same))
    }

    /// What waits in a feed, and how many do; `same` full observations agreed since the last commit.
    pub(super) async fn pending(
        &self,
        record: &FeedRecord,
        state: Option<&FeedState>,
        same: u32,
    ) -> Result<(Vec<PendingAbsence>, usize), OperatorError> {
        let Some(state) = state.filter(|state| state.next_decision_at.is_some()) else {
            return Ok((Vec::new(), 0));
        };
        let key = (record.name.clone(), state.revision, record.options.clone());
        let waiting = match self.absent.get(&key) {
            Some(waiting) => waiting,
            None => {
                let snapshot = self.store.snapshot(&record.name).await?;
                let Some(snapshot) = snapshot else { return Ok((Vec::new(), 0)) };
                let key = (record.name.clone(), snapshot.state.revision, record.options.clone());
                let waiting = Arc::new(judge::absent(&snapshot, &record.options, PENDING_SHOWN));
                self.absent.insert(key, Arc::clone(&waiting));
                waiting
            }
        };
        let (known, all) = &*waiting;
        let of = |known| PendingAbsence::new(known, &record.options, same);
        Ok((known.iter().filter_map(of).collect(), *all))
    }
}
