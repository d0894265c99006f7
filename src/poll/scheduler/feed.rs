//! What the scheduler keeps of each feed that it polls, beside what is known of it. There may be a million, so that what
//! is seldom there has a place of its own.

use super::CommandReply;
use super::announced::PushTriggers;
use super::departure::Departure;
use super::errands::ErrandState;
use crate::allowance::Allowance;
use crate::feeds::FeedCell;
use crate::host_queue::HostSlot;
use crate::reason::PlannedPoll;
use std::sync::Arc;
use tidegate_core::model::{FeedRecord, Time, ToldChange};
use tidegate_core::websub::subscriber::Requests;
use tokio::sync::oneshot;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub(super) struct ScheduledFeed {
    pub(super) record: Arc<FeedRecord>,
    /// What is known of it.
    pub(super) cell: Arc<FeedCell>,
    pub(super) due: Option<Time>,
    /// How far within its second its first poll after a start begins, in milliseconds.
    pub(super) offset: u16,
    /// Its ticket, while it stands in its host's line.
    pub(super) in_line: Option<Arc<()>>,
    pub(super) running: Option<Box<RunningErrand>>,
    after_round: Option<Box<AfterRound>>,
    pub(super) hearing: PushTriggers,
    /// What was asked about its missing items within the hour.
    pub(super) asked: Option<Box<Allowance>>,
    /// When it was last looked through for items that have long been in doubt.
    pub(super) doubts_looked: Option<Time>,
    pub(super) probing: ErrandState,
    pub(super) walking: ErrandState,
    pub(super) subscribing: ErrandState,
    /// The requests for the subscription that it had last.
    pub(super) hub_requests: Option<Box<Requests>>,
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
    /// Its slot at its host; `None`: it was asked for, and goes past the line.
    pub(super) slot: Option<HostSlot>,
    /// The address that is read.
    pub(super) address: Box<str>,
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
    pub(super) fn new(record: Arc<FeedRecord>, cell: Arc<FeedCell>) -> Self {
        Self {
            record,
            cell,
            due: None,
            offset: 0,
            in_line: None,
            running: None,
            after_round: None,
            hearing: PushTriggers::default(),
            asked: None,
            doubts_looked: None,
            probing: ErrandState::None,
            walking: ErrandState::None,
            subscribing: ErrandState::None,
            hub_requests: None,
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
