//! Polling status derived from stored poll states, of this gateway or of another one that polls the feed.

use super::{FeedSummary, HubReport, PollStatus, RejectedPushes};
use tidegate_core::model::{FeedRecord, FeedStanding, PollState};

impl From<&PollState> for PollStatus {
    fn from(state: &PollState) -> Self {
        let report = |subscription: &_| {
            let disbelieved = RejectedPushes::default();
            HubReport { subscription: Clone::clone(subscription), disbelieved }
        };
        Self {
            failures: state.failures,
            gaps: (&state.overlap).into(),
            interruptions: state.interruptions.clone(),
            moved_to: state.moved_to.clone(),
            backfill: state.backfill.as_deref().cloned(),
            hub: state.subscription.as_deref().map(report),
            ..Self::default()
        }
    }
}

impl From<&PollState> for FeedSummary {
    fn from(state: &PollState) -> Self {
        let trust = state.subscription.as_ref().map(|subscription| subscription.trust);
        Self {
            failures: state.failures,
            gaps: (&state.overlap).into(),
            moved_to: state.moved_to.clone(),
            is_hub_distrusted: trust.is_some_and(|trust| trust.distrusted_until.is_some()),
            ..Self::default()
        }
    }
}

impl PollStatus {
    /// Builds the status from another gateway's stored state. What is not stored is absent: single polls, the next
    /// poll, and the blame of a failure. A paused feed has only its past.
    pub fn from_stored(record: &FeedRecord, state: &PollState) -> Self {
        if state.url != record.url {
            return Self::default();
        }
        let stored = Self::from(state);
        if record.standing != FeedStanding::Active {
            let Self { failures, gaps, interruptions, .. } = stored;
            return Self { failures, gaps, interruptions, ..Self::default() };
        }
        let is_failing = state.failures > 0;
        // If the last poll failed, its time is not that of a successful reading.
        let read = state.schedule.as_ref().filter(|_| !is_failing).map(|schedule| schedule.polled);
        let stored_error = state.last_error.clone().filter(|_| is_failing);
        Self { stored_error, last_read: read, ..stored }
    }

    /// Returns the failure of the last poll; `None` if it succeeded.
    pub fn error(&self) -> Option<&str> {
        let own = self.failure.as_ref().map(|failure| failure.error.as_str());
        own.or(self.stored_error.as_deref())
    }
}

impl FeedSummary {
    /// Builds the summary from another gateway's stored state, if any.
    pub fn from_stored(record: &FeedRecord, state: Option<&PollState>) -> Self {
        let is_elsewhere = record.standing == FeedStanding::Active;
        let Some(state) = state.filter(|state| state.url == record.url) else {
            return Self { is_elsewhere, ..Self::default() };
        };
        let PollStatus { stored_error: error, last_read: read, moved_to, .. } =
            PollStatus::from_stored(record, state);
        let polled = state.schedule.as_ref().map(|schedule| schedule.polled);
        // Every failure is stored; after a success, later polls may not be.
        let last_poll = polled.filter(|_| error.is_some());
        let is_hub_distrusted = is_elsewhere && Self::from(state).is_hub_distrusted;
        Self { last_poll, read, is_elsewhere, error, moved_to, is_hub_distrusted, ..state.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PollGaps;
    use tidegate_core::model::testing::{self, at, name};
    use tidegate_core::model::{
        InterruptionKind, Interruptions, Overlap, PollSchedule, UpdateHints,
    };

    const URL: &str = "https://site.example/feed";

    fn record(standing: FeedStanding, url: &str) -> FeedRecord {
        FeedRecord { standing, url: url.to_owned(), ..testing::record("a") }
    }

    /// Polled at 100, and failing since 40 if `failures` is not 0.
    fn stored(failures: u32) -> PollState {
        let mut interruptions = Interruptions::default();
        if failures > 0 {
            interruptions.note(InterruptionKind::Failed, Some("it answered 503"), at(40));
        }
        let schedule = PollSchedule {
            noted: at(100),
            polled: at(100),
            hints: UpdateHints::default(),
            freshness: None,
            last_change: at(0),
            gap: None,
            retry: None,
        };
        PollState {
            moved_to: Some("https://moved.example/feed".to_owned()),
            failures,
            last_error: (failures > 0).then(|| "it answered 503".to_owned()),
            schedule: Some(Box::new(schedule)),
            overlap: Overlap { missed: 2, last_missed: Some(at(7)), ..Overlap::default() },
            interruptions,
            ..PollState::new(&name("a"), URL)
        }
    }

    #[test]
    fn failures_are_told_as_they_were_stored() {
        let record = record(FeedStanding::Active, URL);
        let status = PollStatus::from_stored(&record, &stored(3));
        assert_eq!((status.failures, status.error()), (3, Some("it answered 503")));
        assert_eq!((status.failing_since(), status.last_read), (Some(at(40)), None));
        assert_eq!(status.gaps, PollGaps { count: 2, last: Some(at(7)) });
        assert!(status.next.is_none() && status.polls.is_empty());
        let summary = FeedSummary::from_stored(&record, Some(&stored(3)));
        assert!(summary.is_failing(&record) && summary.is_elsewhere);
        assert_eq!((summary.last_poll, summary.next_poll), (Some(at(100)), None));
        assert_eq!(summary.error.as_deref(), Some("it answered 503"));
        assert_eq!(summary.moved_to.as_deref(), Some("https://moved.example/feed"));

        let status = PollStatus::from_stored(&record, &stored(0));
        assert_eq!((status.failing_since(), status.last_read), (None, Some(at(100))));
        let summary = FeedSummary::from_stored(&record, Some(&stored(0)));
        assert_eq!((summary.failures, summary.error, summary.last_poll), (0, None, None));
        let nothing = FeedSummary { is_elsewhere: true, ..FeedSummary::default() };
        assert_eq!(FeedSummary::from_stored(&record, None), nothing);
    }

    #[test]
    fn what_was_stored_of_another_address_or_before_a_pause_is_not_told_of_now() {
        let moved = record(FeedStanding::Active, "https://other.example/feed");
        assert_eq!(PollStatus::from_stored(&moved, &stored(3)), PollStatus::default());
        let summary = FeedSummary::from_stored(&moved, Some(&stored(3)));
        assert_eq!((summary.failures, summary.last_poll), (0, None));
        let paused = record(FeedStanding::Paused, URL);
        let status = PollStatus::from_stored(&paused, &stored(3));
        assert_eq!((status.failures, status.error(), status.last_read), (3, None, None));
        assert_eq!(status.gaps.count, 2);
        let summary = FeedSummary::from_stored(&paused, Some(&stored(3)));
        assert!(!summary.is_failing(&paused) && !summary.is_elsewhere);
    }
}
