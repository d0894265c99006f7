//! What a view of a feed shows, decided from its state alone (SSE 1.0 section 4.2). Pure.

use super::problem::Problem;
use crate::model::{FeedState, Item, Tick, Time};
use crate::render::ViewKind;
use crate::store::Select;
use std::time::Duration;

/// What to read and what `sx:sharing` says of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Plan {
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

impl Plan {
    /// The plan of a view for a subscriber who has seen `seen`.
    pub(super) fn of(
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
