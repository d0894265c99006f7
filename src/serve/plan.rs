//! What a view of a feed shows, decided from its state alone (SSE 1.0 section 4.2). Pure.

use super::problem::Problem;
use std::time::Duration;
use tidegate_core::model::{FeedState, Item, Tick, Time};
use tidegate_format::render::ViewKind;
use tidegate_store::Select;

/// What to read and what `sx:sharing` says of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum ReadPlan {
    /// The reader view: current items; `since` and `until` are not for it.
    Reader,
    /// The window, or the part of it after a tick.
    Window {
        /// The lower bound, exclusive (READINGS 1, row 26).
        since: Option<Tick>,
    },
    /// The subscriber knows a later tick than we do: we were restored from an older copy. It is
    /// told a `since` greater than the one it cached, so that by section 4.1.2 step 2 it finds
    /// itself out of sync and reads the complete feed.
    StartAgain {
        /// `since` and `until` of the answer.
        at: Tick,
    },
    /// Everything kept.
    Complete,
}

impl ReadPlan {
    /// The plan of a view for a subscriber who has seen `seen`.
    pub(super) fn new(
        kind: ViewKind,
        seen: Option<Tick>,
        state: &FeedState,
    ) -> Result<Self, Problem> {
        match (kind, seen) {
            (ViewKind::Reader, _) => Ok(Self::Reader),
            (ViewKind::Complete, _) => Ok(Self::Complete),
            (ViewKind::Sync, None) => Ok(Self::Window { since: state.window_start }),
            (ViewKind::Sync, Some(seen)) if Some(seen) > state.tick => {
                let at = Tick::at(seen.time().plus(Duration::from_secs(1)));
                if at > seen {
                    Ok(Self::StartAgain { at })
                } else {
                    Err(Problem::parameter("since", "no gateway ever gave the last tick there is"))
                }
            }
            // A value before the window is answered with the whole window, whose `since` shows
            // the subscriber that it was away too long.
            (ViewKind::Sync, seen) => Ok(Self::Window { since: seen.max(state.window_start) }),
        }
    }

    /// Which items to read. Nothing has a tick after that of a subscriber who starts again.
    pub(super) fn select(self) -> Select {
        match self {
            Self::Reader => Select::Current,
            Self::Window { since } => Select::After(since.unwrap_or(Tick::at(Time::MIN))),
            Self::StartAgain { at } => Select::After(at),
            Self::Complete => Select::All,
        }
    }

    /// `since` and `until`: both or neither (section 2.2).
    pub(super) fn bounds(self, state: &FeedState) -> (Option<Tick>, Option<Tick>) {
        let since = match self {
            Self::Reader => None,
            Self::Window { since } => since,
            Self::StartAgain { at } => return (Some(at), Some(at)),
            Self::Complete => state.complete_start,
        };
        match (since, state.tick) {
            (Some(since), Some(until)) => (Some(since), Some(until)),
            _ => (None, None),
        }
    }

    /// `expires`: when the oldest of these items leaves the window. A function of what is stored,
    /// never of the time of the request.
    pub(super) fn expires(self, items: &[Item], window: Duration) -> Option<Time> {
        match self {
            Self::Window { .. } => {
                items.iter().map(|item| item.tick).min().map(|oldest| oldest.time().plus(window))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tidegate_core::model::{Format, Revision};

    fn state(bounds: Option<(i64, i64)>) -> FeedState {
        let tick = |seconds| Tick::at(Time::from_unix(seconds));
        FeedState {
            revision: Revision(1),
            tick: bounds.map(|(_, until)| tick(until)),
            window_start: bounds.map(|(since, _)| tick(since)),
            complete_start: bounds.map(|(since, _)| tick(since - 1000)),
            render_revision: 1,
            ..FeedState::untouched(Format::Atom10, Time::from_unix(0))
        }
    }

    proptest! {
        /// SSE 1.0 section 4.1.2: a subscriber who merges what it is given and caches `until` has
        /// missed nothing, or is told by `since` that it has.
        #[test]
        fn a_subscriber_misses_nothing_or_is_told(
            window in 0_i64..50,
            length in 0_i64..50,
            seen in -60_i64..120,
        ) {
            let (since, until) = (window, window + length);
            let state = state(Some((since, until)));
            let seen = Tick::at(Time::from_unix(seen));
            let plan = ReadPlan::new(ViewKind::Sync, Some(seen), &state).unwrap();
            let (told_since, told_until) = plan.bounds(&state);
            let (told_since, told_until) = (told_since.unwrap(), told_until.unwrap());
            let told_out_of_sync = told_since > seen;
            let gap = seen < state.window_start.unwrap() || seen > state.tick.unwrap();
            prop_assert_eq!(told_out_of_sync, gap);
            let Select::After(shown) = plan.select() else { panic!("a window is read by ticks") };
            // What is shown is exactly what `since` promises.
            prop_assert_eq!(shown, told_since);
            prop_assert!(told_since <= told_until);
            if !told_out_of_sync {
                prop_assert_eq!(told_until, state.tick.unwrap());
                prop_assert_eq!(shown, seen);
            }
        }

        #[test]
        fn bounds_are_both_there_or_neither(
            known in proptest::option::of((0_i64..50, 0_i64..50)),
            seen in proptest::option::of(-60_i64..120),
        ) {
            let state = state(known.map(|(since, length)| (since, since + length)));
            let seen = seen.map(|seen| Tick::at(Time::from_unix(seen)));
            for kind in [ViewKind::Reader, ViewKind::Sync, ViewKind::Complete] {
                let plan = ReadPlan::new(kind, seen, &state).unwrap();
                let (since, until) = plan.bounds(&state);
                prop_assert_eq!(since.is_some(), until.is_some());
                prop_assert!(kind != ViewKind::Reader || since.is_none());
            }
        }
    }

    #[test]
    fn only_the_sync_view_listens_to_since() {
        let state = state(Some((10, 20)));
        let seen = Some(Tick::at(Time::from_unix(15)));
        for kind in [ViewKind::Reader, ViewKind::Complete] {
            assert_eq!(ReadPlan::new(kind, seen, &state), ReadPlan::new(kind, None, &state));
        }
        assert_ne!(
            ReadPlan::new(ViewKind::Sync, seen, &state),
            ReadPlan::new(ViewKind::Sync, None, &state)
        );
    }
}
