//! Polls in as few bytes as may be: every feed has some, and nobody reads most of them. Pure.

use tidegate_core::model::Time;
use tidegate_status::POLLS_KEPT;

/// By how many bytes the room for a feed's polls grows.
const STEP: usize = 32;
/// How many numbers a poll has.
const NUMBERS: usize = 3;
/// In all bytes of a number but its last one, this bit is set.
const GOES_ON: u8 = 0x80;

/// A poll as three numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PackedPoll {
    pub(super) at: Time,
    pub(super) millis: u32,
    /// The outcome in the lowest two bits, whether it was asked for, whether anything was committed,
    /// whether the document was apart from the last one, and the bytes over the wire.
    pub(super) rest: u32,
}

/// The last polls of a feed, at most [`POLLS_KEPT`].
#[derive(Debug, Default)]
pub(super) struct PackedPolls {
    /// Of each poll, the oldest first: the seconds since the one before (twice, and one more where they are
    /// negative), the milliseconds that it took, and the rest. Each number has seven bits in a byte, the
    /// lowest first.
    bytes: Vec<u8>,
    /// When the newest began.
    last: Option<Time>,
}

impl PackedPolls {
    /// Takes in a poll, in the place of the oldest one where there are [`POLLS_KEPT`].
    pub(super) fn push(&mut self, poll: PackedPoll) {
        let mut ends = (1..).zip(&self.bytes).filter(|(_, byte)| **byte < GOES_ON);
        if let Some((oldest, _)) = ends.nth(NUMBERS - 1)
            && ends.count() >= NUMBERS * (POLLS_KEPT - 1)
        {
            self.bytes.drain(..oldest);
        }
        let since = poll.at.unix() - self.last.replace(poll.at).unwrap_or(poll.at).unix();
        let since = since.unsigned_abs() << 1 | u64::from(since.is_negative());
        for number in [since, poll.millis.into(), poll.rest.into()] {
            self.put(number);
        }
    }

    fn put(&mut self, number: u64) {
        let mut left = number;
        loop {
            let [low, ..] = left.to_le_bytes();
            left >>= 7;
            if self.bytes.len() == self.bytes.capacity() {
                self.bytes.reserve_exact(STEP);
            }
            if left == 0 {
                return self.bytes.push(low);
            }
            self.bytes.push(low | GOES_ON);
        }
    }

    /// When the newest began.
    pub(super) const fn last(&self) -> Option<Time> {
        self.last
    }

    /// The polls, newest first.
    pub(super) fn unpack(&self) -> Vec<PackedPoll> {
        let mut numbers: Vec<u64> = Vec::with_capacity(NUMBERS * POLLS_KEPT);
        let (mut number, mut shift) = (0, 0);
        for byte in &self.bytes {
            number |= u64::from(byte & !GOES_ON) << shift;
            shift += 7;
            if *byte < GOES_ON {
                numbers.push(number);
                (number, shift) = (0, 0);
            }
        }
        let mut at = self.last.map_or(0, Time::unix);
        let mut polls = Vec::with_capacity(POLLS_KEPT);
        for poll in numbers.rchunks_exact(NUMBERS) {
            let &[since, millis, rest] = poll else { continue };
            let small = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
            let (millis, rest) = (small(millis), small(rest));
            polls.push(PackedPoll { at: Time::from_unix(at), millis, rest });
            let by = (since >> 1).cast_signed();
            at = if since & 1 == 1 { at.saturating_add(by) } else { at.saturating_sub(by) };
        }
        polls
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_newest_polls_come_back(
            polls in proptest::collection::vec((any::<i64>(), any::<u32>(), any::<u32>()), 0..50),
        ) {
            let mut packed = PackedPolls::default();
            let mut expected = Vec::new();
            for (at, millis, rest) in polls {
                let poll = PackedPoll { at: Time::from_unix(at), millis, rest };
                packed.push(poll);
                expected.insert(0, poll);
            }
            expected.truncate(POLLS_KEPT);
            prop_assert_eq!(packed.last(), expected.first().map(|poll| poll.at));
            prop_assert_eq!(packed.unpack(), expected);
        }
    }

    #[test]
    fn usual_polls_take_a_few_bytes() {
        let mut packed = PackedPolls::default();
        for n in 0..100 {
            let at = Time::from_unix(1_795_191_605 + 660 * n);
            packed.push(PackedPoll { at, millis: 250, rest: 2 });
        }
        assert_eq!(packed.unpack().len(), POLLS_KEPT);
        assert!(packed.bytes.capacity() <= 128, "{}", packed.bytes.capacity());
    }
}
