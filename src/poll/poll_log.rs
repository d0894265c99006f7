//! The last polls of a feed in few bytes: most found nothing new, and there is nothing more to say.

mod packed;

use self::packed::{PackedPoll, PackedPolls};
use std::collections::VecDeque;
use std::time::Duration;
use tidegate_core::model::Time;
use tidegate_status::{EventCounts, FinishedPoll, POLLS_KEPT, PollEnding, PollFailure, PollTotals};

/// The most bytes of a body that are counted; bodies have a smaller limit.
const MAX_BYTES: u32 = (1 << 27) - 1;

/// The last polls of a feed, at most [`POLLS_KEPT`], and how many there were in all.
#[derive(Debug, Default)]
pub(super) struct PollLog {
    polls: PackedPolls,
    /// What else is to be said of polls, by their numbers, oldest first.
    details: Vec<(u32, Box<PollDetails>)>,
    /// The number of the next poll.
    next: u32,
    changed: u32,
    unchanged: u32,
    failed: u32,
}

/// What most polls have nothing of.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct PollDetails {
    entries: Option<usize>,
    rewritten: u32,
    counts: EventCounts,
    failure: Option<PollFailure>,
    notes: Vec<String>,
}

impl PackedPoll {
    fn new(note: &FinishedPoll) -> Self {
        let outcome = match note.outcome {
            PollEnding::Changed => 0,
            PollEnding::Unchanged => 1,
            PollEnding::NotModified => 2,
            PollEnding::Failed => 3,
        };
        let flags = u32::from(note.asked_for) << 2
            | u32::from(note.committed) << 3
            | u32::from(note.is_apart) << 4;
        let bytes = u32::try_from(note.bytes).unwrap_or(MAX_BYTES).min(MAX_BYTES);
        let millis = u32::try_from(note.took.as_millis()).unwrap_or(u32::MAX);
        Self { at: note.at, millis, rest: outcome | flags | bytes << 5 }
    }

    fn unpack(self, details: Option<&PollDetails>) -> FinishedPoll {
        let PollDetails { entries, rewritten, counts, failure, notes } =
            details.cloned().unwrap_or_default();
        FinishedPoll {
            at: self.at,
            took: Duration::from_millis(u64::from(self.millis)),
            outcome: match self.rest & 3 {
                0 => PollEnding::Changed,
                1 => PollEnding::Unchanged,
                2 => PollEnding::NotModified,
                _ => PollEnding::Failed,
            },
            asked_for: self.rest & 4 != 0,
            bytes: u64::from(self.rest >> 5),
            committed: self.rest & 8 != 0,
            is_apart: self.rest & 16 != 0,
            entries,
            rewritten,
            counts,
            failure,
            notes,
        }
    }
}

impl PollLog {
    /// Takes in a poll. Of thousands of feeds, only the newest remarks are kept.
    pub(super) fn push(&mut self, note: FinishedPoll) {
        match note.outcome {
            PollEnding::Changed => self.changed += 1,
            PollEnding::Unchanged => self.unchanged += 1,
            PollEnding::NotModified => {}
            PollEnding::Failed => self.failed += 1,
        }
        self.polls.push(PackedPoll::new(&note));
        let number = self.next;
        self.next = self.next.wrapping_add(1);
        if let Some((_, last)) = self.details.last_mut() {
            last.notes = Vec::new();
        }
        let kept = u32::try_from(POLLS_KEPT).unwrap_or(u32::MAX);
        self.details.retain(|(of, _)| self.next.wrapping_sub(*of) <= kept);
        let FinishedPoll { entries, rewritten, counts, failure, notes, .. } = note;
        let details = PollDetails { entries, rewritten, counts, failure, notes };
        if details != PollDetails::default() {
            self.details.reserve_exact(1);
            self.details.push((number, Box::new(details)));
        }
        self.details.shrink_to_fit();
    }

    /// When the last poll began.
    pub(super) fn last(&self) -> Option<Time> {
        self.polls.last()
    }

    /// The polls that are kept, newest first.
    pub(super) fn polls(&self) -> VecDeque<FinishedPoll> {
        let mut number = self.next;
        let newest = self.polls.unpack().into_iter().map(|poll| {
            number = number.wrapping_sub(1);
            let details = self.details.iter().find(|(of, _)| *of == number);
            poll.unpack(details.map(|(_, details)| details.as_ref()))
        });
        newest.collect()
    }

    /// How many polls there were of each outcome; other sums are not kept of a feed.
    pub(super) fn totals(&self) -> PollTotals {
        let others = [self.changed, self.unchanged, self.failed];
        let others = others.iter().fold(0, |sum: u32, count| sum.wrapping_add(*count));
        PollTotals {
            changed: u64::from(self.changed),
            unchanged: u64::from(self.unchanged),
            not_modified: u64::from(self.next.wrapping_sub(others)),
            failed: u64::from(self.failed),
            ..PollTotals::default()
        }
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
        for n in 0..50 {
            log.push(note(n));
        }
        let mut expected: Vec<_> = (30..50).rev().map(note).collect();
        expected.iter_mut().skip(1).for_each(|poll| poll.notes = Vec::new());
        // The newest is quiet, and remarks are those of the newest alone.
        assert_eq!(Vec::from(log.polls()), expected);
        let totals = log.totals();
        assert_eq!((totals.polls(), totals.changed, totals.not_modified), (50, 17, 33));
        assert!(log.details.len() <= POLLS_KEPT && log.polls.unpack().len() == POLLS_KEPT);
    }

    #[test]
    fn remarks_are_those_of_the_newest_poll() {
        let mut log = PollLog::default();
        (0..4).for_each(|n| log.push(loud(n)));
        let notes: Vec<_> = log.polls().into_iter().map(|poll| poll.notes).collect();
        assert_eq!(notes, [vec!["note 3".to_owned()], vec![], vec![], vec![]]);
    }

    #[test]
    fn what_is_too_large_is_the_most() {
        let mut log = PollLog::default();
        log.push(FinishedPoll { bytes: u64::MAX, took: Duration::MAX, ..quiet(1) });
        let [poll] = log.polls().into_iter().collect::<Vec<_>>().try_into().unwrap();
        assert_eq!((poll.bytes, poll.outcome), (u64::from(MAX_BYTES), PollEnding::NotModified));
        assert_eq!(poll.took.as_millis(), u128::from(u32::MAX));
    }
}
