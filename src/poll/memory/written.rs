//! What is written down of a feed, in as few bytes as tell whether it must be written anew. Pure.

use super::kept::KeptState;
use crate::resume::same_in_substance;
use std::hash::{DefaultHasher, Hash, Hasher as _};
use tidegate_core::model::{PollSchedule, Time};

/// What is written down of a feed.
#[derive(Debug, Clone)]
pub(super) struct Written {
    /// Fingerprint of the document's validators and what they belong to.
    document: u64,
    /// Fingerprint of the rest but for the schedule.
    rest: u64,
    schedule: WrittenSchedule,
}

/// The schedule that is written down.
#[derive(Debug, Clone)]
enum WrittenSchedule {
    None,
    /// That which polling follows, as of the poll that was answered, or failed, then.
    Same(Time),
    Other(Box<PollSchedule>),
}

impl Written {
    /// What is written down is `poll`, with the schedule that polling follows.
    pub(super) fn new(poll: &KeptState, polled: Option<Time>) -> Self {
        let schedule = polled.map_or(WrittenSchedule::None, WrittenSchedule::Same);
        Self { document: document(poll), rest: rest(poll), schedule }
    }

    /// Whether polling follows the schedule that is written down.
    pub(super) const fn is_followed(&self) -> bool {
        matches!(self.schedule, WrittenSchedule::Same(_))
    }

    /// The schedule that polling follows is about to become another one than `schedule`.
    pub(super) fn part(&mut self, schedule: PollSchedule) {
        if let WrittenSchedule::Same(polled) = self.schedule {
            self.schedule = WrittenSchedule::Other(Box::new(PollSchedule { polled, ..schedule }));
        }
    }

    /// Whether something is written that a restart should know otherwise. An unchanged poll changes
    /// nothing of that kind, even if its validators or its age did.
    pub(super) fn is_outdated(
        &self,
        poll: &KeptState,
        committed: bool,
        schedule: impl FnOnce() -> Option<PollSchedule>,
    ) -> bool {
        let is_other = match &self.schedule {
            WrittenSchedule::Same(_) => false,
            WrittenSchedule::None => schedule().is_some(),
            WrittenSchedule::Other(written) => {
                !same_in_substance(Some(written), schedule().as_ref())
            }
        };
        is_other || self.rest != rest(poll) || (committed && self.document != document(poll))
    }

    /// The schedule that is written down, where polling follows `current`.
    pub(super) fn schedule(&self, current: &PollSchedule) -> Option<PollSchedule> {
        match &self.schedule {
            WrittenSchedule::None => None,
            WrittenSchedule::Same(polled) => {
                Some(PollSchedule { polled: *polled, ..current.clone() })
            }
            WrittenSchedule::Other(written) => Some(written.as_ref().clone()),
        }
    }
}

fn document(poll: &KeptState) -> u64 {
    let KeptState { body, etag, last_modified, answered_by, .. } = poll;
    fingerprint(&(body, etag, last_modified, answered_by))
}

fn rest(poll: &KeptState) -> u64 {
    let (rare, size) = (&poll.rare, |failures: u32| failures.checked_ilog2());
    let rows = (size(poll.failures), size(rare.gone));
    let texts = (&rare.moved_to, &rare.last_error);
    fingerprint(&(texts, rare.not_before, rows, &rare.pause, poll.overlap, &poll.interruptions))
}

fn fingerprint(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}
