//! What is known of the node that has a shard: whether its lease has run out.

use super::connect::SqlError;
use super::session::get;
use std::time::Duration;
use tokio::time::Instant;
use tokio_postgres::Row;

/// Who has a shard at one look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ownership {
    pub(super) owner: Option<i64>,
    /// As the owner calls itself.
    pub(super) name: String,
    /// When it lived last, and the time, by the database's clock in milliseconds.
    pub(super) beat: Option<i64>,
    pub(super) now: i64,
}

impl Ownership {
    /// From four columns of a row: owner, name, beat, now.
    pub(super) fn read(row: &Row, [owner, name, beat, now]: [usize; 4]) -> Result<Self, SqlError> {
        let name = get::<Option<String>>(row, name)?.unwrap_or_default();
        Ok(Self { owner: get(row, owner)?, name, beat: get(row, beat)?, now: get(row, now)? })
    }
}

/// Whether a shard may be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LeaseState {
    /// Nobody lives that has it.
    Free,
    Held {
        /// For how long, as far as is known.
        left: Duration,
        /// Whether somebody else has it than at the first look, or its node has said since that it lives.
        has_moved: bool,
    },
}

/// What was seen of a shard's owner, from the first look on.
#[derive(Debug, Default)]
pub(super) struct LeaseWatch {
    /// Who had it, and when that node had lived last.
    first: Option<(Option<i64>, Option<i64>)>,
    /// The same at the last look at which that was another, and when that was by this process's own clock.
    last: Option<(Option<i64>, Option<i64>, Instant)>,
}

impl LeaseWatch {
    /// Notes what was seen at `at`; `node`: this process's own.
    pub(super) fn note(
        &mut self,
        seen: &Ownership,
        (node, lease): (i64, Duration),
        at: Instant,
    ) -> LeaseState {
        let length = i64::try_from(lease.as_millis()).unwrap_or(i64::MAX);
        let left = seen.beat.map_or(0, |b| b.saturating_add(length).saturating_sub(seen.now));
        let is_same = |last: &(_, _, Instant)| (last.0, last.1) == (seen.owner, seen.beat);
        // The database's clock may have been set back: a whole lease without a word is enough.
        let is_silent = self.last.as_ref().is_some_and(|last| is_same(last) && at - last.2 > lease);
        if seen.owner.is_none_or(|owner| owner == node) || left <= 0 || is_silent {
            return LeaseState::Free;
        }
        if !self.last.as_ref().is_some_and(is_same) {
            self.last = Some((seen.owner, seen.beat, at));
        }
        let first = *self.first.get_or_insert((seen.owner, seen.beat));
        let has_moved = first != (seen.owner, seen.beat);
        LeaseState::Held { left: Duration::from_millis(left.unsigned_abs()), has_moved }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Duration = Duration::from_secs(15);

    fn seen(owner: Option<i64>, beat: i64, now: i64) -> Ownership {
        Ownership { owner, name: String::new(), beat: owner.map(|_| beat), now }
    }

    #[test]
    fn a_lease_is_free_when_it_was_given_back_or_has_run_out() {
        let (at, node) = (Instant::now(), (1, LEASE));
        let mut watch = LeaseWatch::default();
        let mut note = |seen: &Ownership| watch.note(seen, node, at);
        let held =
            |left, has_moved| LeaseState::Held { left: Duration::from_millis(left), has_moved };
        assert_eq!(note(&seen(Some(2), 1_000, 2_000)), held(14_000, false));
        assert_eq!(note(&seen(Some(2), 1_000, 3_000)), held(13_000, false));
        assert_eq!(note(&seen(Some(2), 3_500, 4_000)), held(14_500, true));
        assert_eq!(note(&seen(Some(2), 3_500, 18_500)), LeaseState::Free);
        assert_eq!(note(&seen(Some(3), 3_500, 4_000)), held(14_500, true));
        assert_eq!(note(&seen(None, 0, 4_000)), LeaseState::Free);
        assert_eq!(note(&seen(Some(1), 4_000, 4_000)), LeaseState::Free);
    }

    #[test]
    fn who_says_nothing_for_a_whole_lease_is_gone_whatever_the_clocks_say() {
        let begun = Instant::now();
        let mut watch = LeaseWatch::default();
        let mut after = |seconds, beat| {
            let at = begun + Duration::from_secs(seconds);
            watch.note(&seen(Some(2), beat, 0), (1, LEASE), at) == LeaseState::Free
        };
        assert!(!after(0, 600_000) && !after(15, 600_000));
        assert!(!after(15, 601_000) && !after(30, 601_000));
        assert!(after(31, 601_000));
    }
}
