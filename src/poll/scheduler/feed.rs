//! What the scheduler keeps of each feed. There may be a million, so that what is seldom there has a place of
//! its own.

use super::CommandReply;
use super::announced::PushTriggers;
use super::departure::Departure;
use super::errands::ErrandState;
use crate::allowance::Allowance;
use crate::memory::Memory;
use crate::politeness::PoliteHost;
use crate::reason::PlannedPoll;
use std::num::NonZeroU64;
use std::sync::Arc;
use tidegate_core::model::{Backfill, FeedRecord, HubSubscription, Time, ToldChange};
use tidegate_core::websub::subscriber::Requests;
use tidegate_judge::probe::ProbePlan;
use tokio::sync::oneshot;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub(super) struct ScheduledFeed {
    pub(super) record: Arc<FeedRecord>,
    /// Where it is read; `None` until that is asked for.
    pub(super) host: Option<PoliteHost>,
    /// Fingerprint of the address that this is the host of, once it was read there.
    pub(super) host_of_address: Option<NonZeroU64>,
    /// `None` while a round has it.
    pub(super) memory: Option<Box<Memory>>,
    pub(super) due: Option<Time>,
    /// How far within its second its first poll after a start begins, in milliseconds.
    pub(super) offset: u16,
    /// When something that is pending can be decided.
    pub(super) pending: Option<Time>,
    /// Whether it stands in its host's line.
    pub(super) in_line: bool,
    pub(super) running: Option<Box<RunningErrand>>,
    after_round: Option<Box<AfterRound>>,
    pub(super) hearing: PushTriggers,
    /// What was asked about its missing items within the hour.
    pub(super) asked: Option<Box<Allowance>>,
    /// When it was last looked through for items that have long been in doubt.
    pub(super) doubts_looked: Option<Time>,
    /// What is to be asked about its missing items.
    pub(super) probe_plan: Option<Box<ProbePlan>>,
    pub(super) probing: ErrandState,
    /// The walk through its publisher's older documents, and where its next step is.
    pub(super) walk: Option<Box<Backfill>>,
    pub(super) walking: ErrandState,
    /// The subscription to its hub, and where the next request to that is.
    pub(super) subscription: Option<Box<HubSubscription>>,
    pub(super) subscribing: ErrandState,
    /// The requests for the subscription that it had last.
    pub(super) hub_requests: Option<Box<Requests>>,
    /// Whether the walk or the subscription has still to be written down.
    pub(super) aside_is_unsaved: bool,
}

/// What is done when the round in flight is over.
#[derive(Default)]
pub(super) struct AfterRound {
    /// Callers for whom a round has still to begin.
    pub(super) waiting: Vec<CommandReply>,
    /// What is to become of it.
    pub(super) successor: Option<Arc<FeedRecord>>,
    /// Whether its publisher is asked with something else since the round in flight began.
    pub(super) asked_otherwise: bool,
    /// How it leaves polling, if it does.
    pub(super) leaving: Option<Departure>,
    /// Who waits for the end of the round.
    pub(super) left: Vec<oneshot::Sender<()>>,
}

pub(super) struct RunningErrand {
    pub(super) cancel: CancellationToken,
    /// Callers that this round answers.
    pub(super) answers: Vec<CommandReply>,
    /// Whether it holds a place at its host.
    pub(super) in_turn: bool,
    /// The poll that was planned when it began.
    pub(super) planned: Option<PlannedPoll>,
    pub(super) at: Time,
    pub(super) since: Instant,
    /// What it was begun for, where a change was told of.
    pub(super) told: ToldChange,
}

impl ScheduledFeed {
    /// Whether a record differs from that of the feed in nothing that polling follows.
    pub(super) fn follows_alike(&self, record: &FeedRecord) -> bool {
        let own = &self.record;
        own.url == record.url && own.options == record.options && own.access == record.access
    }

    /// A feed that polling begins with.
    pub(super) fn new(record: Arc<FeedRecord>, mut memory: Memory) -> Self {
        // These are written down with what polling remembers, and kept here.
        let (walk, subscription) =
            memory.poll.rare.change(|rare| (rare.backfill.take(), rare.subscription.take()));
        Self {
            record,
            host: None,
            host_of_address: None,
            memory: Some(Box::new(memory)),
            due: None,
            offset: 0,
            pending: None,
            in_line: false,
            running: None,
            after_round: None,
            hearing: PushTriggers::default(),
            asked: None,
            doubts_looked: None,
            probe_plan: None,
            probing: ErrandState::None,
            walk,
            walking: ErrandState::None,
            subscription,
            subscribing: ErrandState::None,
            hub_requests: None,
            aside_is_unsaved: false,
        }
    }

    /// What is done when the round in flight is over.
    pub(super) fn after_round(&mut self) -> &mut AfterRound {
        self.after_round.get_or_insert_default()
    }

    /// The round in flight is over: what is done now.
    pub(super) fn end_round(&mut self) -> Option<Box<AfterRound>> {
        self.after_round.take()
    }

    /// How many callers a round has still to begin for.
    pub(super) fn waiting(&self) -> usize {
        self.after_round.as_ref().map_or(0, |after| after.waiting.len())
    }

    /// Whether it leaves polling when the round in flight is over.
    pub(super) fn is_leaving(&self) -> bool {
        self.after_round.as_ref().is_some_and(|after| after.leaving.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// There may be a million.
    #[test]
    fn a_feed_takes_few_bytes() {
        let sizes = [size_of::<ScheduledFeed>(), size_of::<ErrandState>()];
        assert!(sizes[0] <= 224 && sizes[1] <= 16, "{sizes:?}");
    }
}
