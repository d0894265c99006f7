//! Measures how much of a feed's document is replaced between two polls, and where items may have been missed in
//! between. Pure.

use std::time::Duration;
use tidegate_core::model::{EventKind, FeedState, Overlap, Time};
use tidegate_status::EventCounts;

/// How much of a whole document is new.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turnover {
    /// Items that are new.
    pub came: u32,
    /// All items.
    pub items: u32,
}

impl Turnover {
    /// Compares the states before and after a document with these events. `None` if it tells nothing about missed
    /// items: for a first document or another address; if the document lists every item, or changes only; and around a
    /// held document.
    pub fn between(before: &FeedState, after: &FeedState, counts: &EventCounts) -> Option<Self> {
        let lists_items = !after.says_complete && after.upstream_until.is_none();
        let is_held = before.hold.is_some() || after.hold.is_some();
        let came = counts.get(&EventKind::Created).copied().unwrap_or_default();
        let says = lists_items && !is_held && before.current > 0 && before.source == after.source;
        (says && came > 0).then_some(Self { came, items: after.current.max(1) })
    }

    /// Whether every item is new.
    pub const fn is_whole(self) -> bool {
        self.came >= self.items
    }
}

/// Updates the overlap by a document that arrived `since` after the last poll.
pub fn turned_over(known: Overlap, turnover: Turnover, since: Duration, now: Time) -> Overlap {
    let came = turnover.came.min(turnover.items).max(1);
    let half = since.saturating_mul(turnover.items) / 2 / came;
    // A feed that speeds up is followed at once, one that slows down gradually.
    let half_life = known.half_life.map_or(half, |before| half.min((before + half) / 2));
    let is_whole = turnover.is_whole();
    Overlap {
        half_life: Some(half_life),
        missed: known.missed.saturating_add(u32::from(is_whole)),
        last_missed: if is_whole { Some(now) } else { known.last_missed },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::double::{NOW, hold};
    use tidegate_core::model::Format;

    const HOUR: Duration = Duration::from_secs(3600);

    fn state(current: u32) -> FeedState {
        FeedState { current, ..FeedState::untouched(Format::Atom10, NOW) }
    }

    fn created(count: u32) -> EventCounts {
        [(EventKind::Created, count), (EventKind::Retired, 3)].into()
    }

    #[test]
    fn a_document_without_an_item_of_the_last_one_is_whole() {
        let of = |came| Turnover::between(&state(10), &state(10), &created(came));
        assert_eq!(of(0), None);
        assert_eq!(of(4).map(Turnover::is_whole), Some(false));
        assert_eq!(of(10).map(Turnover::is_whole), Some(true));
    }

    #[test]
    fn what_says_nothing_of_items_between_is_left_out() {
        let counts = created(10);
        let hold = Some(hold(NOW));
        for (before, after) in [
            (state(0), state(10)),
            (state(10), FeedState { says_complete: true, ..state(10) }),
            (state(10), FeedState { upstream_until: Some("x".to_owned()), ..state(10) }),
            (state(10), FeedState { source: 7, ..state(10) }),
            (FeedState { hold: hold.clone(), ..state(10) }, state(10)),
            (state(10), FeedState { hold, ..state(10) }),
        ] {
            assert_eq!(Turnover::between(&before, &after, &counts), None);
        }
    }

    #[test]
    fn half_of_the_window_at_the_pace_of_the_last_documents() {
        let tenth = Turnover { came: 1, items: 10 };
        let known = turned_over(Overlap::default(), tenth, HOUR, NOW);
        assert_eq!(known, Overlap { half_life: Some(5 * HOUR), missed: 0, last_missed: None });
        // First half of it at once, then gradually longer.
        let known = turned_over(known, Turnover { came: 5, items: 10 }, HOUR, NOW);
        assert_eq!(known.half_life, Some(HOUR));
        assert_eq!(turned_over(known, tenth, HOUR, NOW).half_life, Some(3 * HOUR));
        let later = NOW.plus(HOUR);
        let missed = turned_over(known, Turnover { came: 12, items: 10 }, HOUR, later);
        assert_eq!((missed.half_life, missed.missed), (Some(HOUR / 2), 1));
        assert_eq!(missed.last_missed, Some(later));
        assert_eq!(turned_over(missed, tenth, HOUR, later.plus(HOUR)).last_missed, Some(later));
    }
}
