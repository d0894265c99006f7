//! What is known of the node that has a shard: whether its lease has run out.

use super::ask::get;
use super::connect::SqlError;
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

/// Looks that are farther apart than this part of the lease say nothing of the time between them: the database may
/// have been away, and the owner with it.
const GAP_PART: u32 = 3;
/// For this part of the lease an owner whose lease has run out by the database's clock must have said nothing by this
/// process's own, in which it says twice that it lives. The database's clock may have been set forward: then a lease
/// seems to have run out between two signs of life.
const SILENT_PART: u32 = 3;

/// What was seen of a shard's owner, from the first look on.
#[derive(Debug, Default)]
pub(super) struct LeaseWatch {
    /// Who had it, and when that node had lived last.
    first: Option<(Option<i64>, Option<i64>)>,
    /// The same at the last look at which that was another, or before which there was a gap; and when that was by
    /// this process's own clock.
    last: Option<(Option<i64>, Option<i64>, Instant)>,
    /// When the last look was.
    looked: Option<Instant>,
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
        let had_gap = self.looked.replace(at).is_some_and(|looked| at - looked > lease / GAP_PART);
        let is_same = |last: &&(_, _, Instant)| (last.0, last.1) == (seen.owner, seen.beat);
        let silent = match self.last.as_ref().filter(|_| !had_gap).filter(is_same) {
            Some(last) => at - last.2,
            None => {
                self.last = Some((seen.owner, seen.beat, at));
                Duration::ZERO
            }
        };
        // One that lives says so again meanwhile, also where the database was away for longer.
        let has_run_out = left <= 0 && (seen.beat.is_none() || silent >= lease / SILENT_PART);
        // The database's clock may have been set back: a whole lease without a word is enough.
        if seen.owner.is_none_or(|owner| owner == node) || has_run_out || silent > lease {
            return LeaseState::Free;
        }
        let first = *self.first.get_or_insert((seen.owner, seen.beat));
        let has_moved = first != (seen.owner, seen.beat);
        LeaseState::Held {
            left: Duration::from_millis(u64::try_from(left).unwrap_or_default()),
            has_moved,
        }
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
        let (begun, node) = (Instant::now(), (1, LEASE));
        let mut watch = LeaseWatch::default();
        // The database's clock goes as this process's own.
        let mut note = |seen: &Ownership| {
            watch.note(seen, node, begun + Duration::from_millis(seen.now.unsigned_abs()))
        };
        let held =
            |left, has_moved| LeaseState::Held { left: Duration::from_millis(left), has_moved };
        assert_eq!(note(&seen(Some(2), 1_000, 2_000)), held(14_000, false));
        assert_eq!(note(&seen(Some(2), 1_000, 3_000)), held(13_000, false));
        assert_eq!(note(&seen(Some(2), 3_500, 4_000)), held(14_500, true));
        for now in (8_000..18_500).step_by(500) {
            assert!(matches!(note(&seen(Some(2), 3_500, now)), LeaseState::Held { .. }), "{now}");
        }
        assert_eq!(note(&seen(Some(2), 3_500, 18_500)), LeaseState::Free);
        assert_eq!(note(&seen(Some(3), 18_400, 19_000)), held(14_400, true));
        assert_eq!(note(&seen(None, 0, 20_000)), LeaseState::Free);
        assert_eq!(note(&seen(Some(1), 20_000, 20_000)), LeaseState::Free);
        let forgotten = Ownership { beat: None, ..seen(Some(2), 0, 20_000) };
        assert_eq!(note(&forgotten), LeaseState::Free);
    }

    /// The database was away for longer than a lease, and the first to look at it again is not its owner.
    #[test]
    fn an_owner_may_say_that_it_lives_once_the_database_is_back() {
        let begun = Instant::now();
        let mut watch = LeaseWatch::default();
        let mut note = |beat: i64, now: i64| {
            let at = begun + Duration::from_millis(now.unsigned_abs());
            watch.note(&seen(Some(2), beat, now), (1, LEASE), at) == LeaseState::Free
        };
        assert!(!note(1_000, 2_000) && !note(1_000, 2_250));
        assert!(!note(1_000, 40_000) && !note(1_000, 42_400) && !note(1_000, 44_900));
        assert!(!note(44_950, 45_000) && !note(44_950, 48_000));
        // Away again; this time it is gone.
        assert!(!note(44_950, 90_000) && !note(44_950, 92_400));
        assert!(!note(44_950, 94_900) && note(44_950, 95_000));
        // Who looks for the first time.
        watch = LeaseWatch::default();
        let mut note = |now: i64| {
            let at = begun + Duration::from_millis(now.unsigned_abs());
            watch.note(&seen(Some(2), 0, now), (1, LEASE), at) == LeaseState::Free
        };
        assert!(!note(40_000) && !note(42_400) && !note(44_900) && note(45_000));
    }

    /// The owner says a bit late that it lives, each time.
    #[test]
    fn an_owner_lives_though_the_databases_clock_is_set_forward() {
        let (begun, node) = (Instant::now(), (1, LEASE));
        let mut watch = LeaseWatch::default();
        let by_database = |at: i64| if at < 20_000 { at } else { at + 3_600_000 };
        for at in (0..60_000).step_by(250) {
            let seen = seen(Some(2), by_database(at - at % 2_750), by_database(at));
            let state = watch.note(&seen, node, begun + Duration::from_millis(at.unsigned_abs()));
            assert!(matches!(state, LeaseState::Held { .. }), "{at}: {state:?}");
        }
    }

    #[test]
    fn who_says_nothing_for_a_whole_lease_is_gone_whatever_the_clocks_say() {
        let begun = Instant::now();
        let mut watch = LeaseWatch::default();
        let mut after = |mut seconds: std::ops::RangeInclusive<u64>, beat| {
            seconds.any(|seconds| {
                let at = begun + Duration::from_secs(seconds);
                watch.note(&seen(Some(2), beat, 0), (1, LEASE), at) == LeaseState::Free
            })
        };
        assert!(!after(0..=15, 600_000));
        assert!(!after(15..=30, 601_000));
        assert!(after(31..=31, 601_000));
    }
}
