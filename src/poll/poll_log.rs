//! The last polls of a feed in a compact encoding: most found nothing new and need few bytes.

use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::time::Duration;
use tidegate_core::model::Time;
use tidegate_status::{EventCounts, FinishedPoll, POLLS_KEPT, PollEnding, PollFailure};

/// The last polls of a feed, at most [`POLLS_KEPT`].
#[derive(Debug, Default)]
pub(super) struct PollLog {
    /// The polls, oldest first, as [`PackedPoll`]s in postcard encoding.
    polls: Vec<u8>,
    /// When the newest poll began.
    last: Option<Time>,
    /// The notes of the newest poll; older ones are dropped to save memory.
    notes: Box<[String]>,
    /// The number of polls.
    kept: usize,
}

#[derive(Serialize, Deserialize)]
struct PackedPoll {
    /// Seconds since the previous poll.
    since: i64,
    millis: u32,
    bytes: u64,
    outcome: PollEnding,
    details: Option<PollDetails>,
}

/// Details that most polls lack.
#[derive(Default, PartialEq, Eq, Serialize, Deserialize)]
struct PollDetails {
    asked_for: bool,
    committed: bool,
    is_apart: bool,
    entries: Option<usize>,
    rewritten: u32,
    counts: EventCounts,
    failure: Option<PollFailure>,
}

impl PollLog {
    /// Adds a poll, replacing the oldest one if there are [`POLLS_KEPT`].
    pub(super) fn push(&mut self, note: FinishedPoll) {
        if self.kept >= POLLS_KEPT
            && let Ok((_, rest)) = postcard::take_from_bytes::<PackedPoll>(&self.polls)
        {
            let oldest = self.polls.len() - rest.len();
            self.polls.drain(..oldest);
            self.kept -= 1;
        }
        self.kept += 1;
        let FinishedPoll { asked_for, committed, is_apart, entries, rewritten, .. } = note;
        let (counts, failure) = (note.counts, note.failure);
        let details =
            PollDetails { asked_for, committed, is_apart, entries, rewritten, counts, failure };
        let last = self.last.replace(note.at).unwrap_or(note.at);
        let packed = PackedPoll {
            since: note.at.unix().saturating_sub(last.unix()),
            millis: u32::try_from(note.took.as_millis()).unwrap_or(u32::MAX),
            bytes: note.bytes,
            outcome: note.outcome,
            details: Some(details).filter(|details| *details != PollDetails::default()),
        };
        // Writing to memory does not fail.
        self.polls =
            postcard::to_extend(&packed, std::mem::take(&mut self.polls)).unwrap_or_default();
        self.polls.shrink_to_fit();
        self.notes = note.notes.into();
    }

    /// Returns when the newest poll began.
    pub(super) const fn last(&self) -> Option<Time> {
        self.last
    }

    /// Returns the polls, newest first.
    pub(super) fn polls(&self) -> VecDeque<FinishedPoll> {
        let (mut packed, mut rest) = (Vec::with_capacity(POLLS_KEPT), self.polls.as_slice());
        while let Ok((poll, left)) = postcard::take_from_bytes::<PackedPoll>(rest) {
            packed.push(poll);
            rest = left;
        }
        let mut at = self.last.map_or(0, Time::unix);
        let mut notes = self.notes.to_vec();
        let newest_first = packed.into_iter().rev().map(|poll| {
            let details = poll.details.unwrap_or_default();
            let began = Time::from_unix(at);
            at = at.saturating_sub(poll.since);
            FinishedPoll {
                at: began,
                took: Duration::from_millis(u64::from(poll.millis)),
                outcome: poll.outcome,
                asked_for: details.asked_for,
                bytes: poll.bytes,
                committed: details.committed,
                is_apart: details.is_apart,
                entries: details.entries,
                rewritten: details.rewritten,
                counts: details.counts,
                failure: details.failure,
                notes: std::mem::take(&mut notes),
            }
        });
        newest_first.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use tidegate_core::model::EventKind;

    fn quiet(n: u32) -> FinishedPoll {
        FinishedPoll {
            took: Duration::from_millis(3),
            asked_for: n.is_multiple_of(7),
            bytes: u64::from(n),
            ..FinishedPoll::new(Time::from_unix(i64::from(n)), PollEnding::NotModified)
        }
    }

    fn loud(n: u32) -> FinishedPoll {
        FinishedPoll {
            outcome: PollEnding::Changed,
            committed: true,
            is_apart: true,
            entries: Some(3),
            counts: BTreeMap::from([(EventKind::Created, 2)]),
            notes: vec![format!("note {n}")],
            ..quiet(n)
        }
    }

    #[test]
    fn the_newest_polls_come_back_as_they_were() {
        let mut log = PollLog::default();
        let note = |n: u32| if n.is_multiple_of(3) { loud(n) } else { quiet(n) };
        for n in 0..52 {
            log.push(note(n));
        }
        let mut expected: Vec<_> = (32..52).rev().map(note).collect();
        // Only the newest poll has its notes.
        expected.iter_mut().skip(1).for_each(|poll| poll.notes = Vec::new());
        assert_eq!(Vec::from(log.polls()), expected);
        assert_eq!(log.polls().len(), POLLS_KEPT);
    }

    #[test]
    fn what_is_too_large_is_the_most() {
        let mut log = PollLog::default();
        log.push(FinishedPoll { bytes: u64::MAX, took: Duration::MAX, ..quiet(1) });
        let [poll] = log.polls().into_iter().collect::<Vec<_>>().try_into().unwrap();
        assert_eq!((poll.bytes, poll.outcome), (u64::MAX, PollEnding::NotModified));
        assert_eq!(poll.took.as_millis(), u128::from(u32::MAX));
    }

    #[test]
    fn usual_polls_take_a_few_bytes_and_clocks_may_leap() {
        let mut log = PollLog::default();
        let at = |n: u32| Time::from_unix(1_795_191_605 + 660 * i64::from(n));
        let usual = |at| FinishedPoll { at, asked_for: false, ..quiet(0) };
        (0..100).for_each(|n| log.push(usual(at(n))));
        assert!(log.polls.capacity() <= 160, "{}", log.polls.capacity());
        for leap in [i64::MAX, i64::MIN, 0] {
            log.push(usual(Time::from_unix(leap)));
            assert_eq!(log.polls()[0].at, Time::from_unix(leap));
        }
    }
}
