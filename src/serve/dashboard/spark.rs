//! How often a feed changed lately, as a small picture.

use maud::{Markup, html};
use std::fmt::Write as _;
use std::time::Duration;
use tidegate_core::model::{Event, EventKind, Time, counted};

/// How many bars there are, and the time of each.
const BARS: usize = 30;
const BAR: Duration = Duration::from_secs(86_400);
/// The width of a bar with the space behind it, and the height of the picture, in its own units.
const PITCH: usize = 4;
const HEIGHT: u32 = 24;
/// From so many changes a day on, a bar is as high as can be.
const FULL: u32 = 12;

/// Changes of a feed a day, the last day at the right. `events`: newest first; where there are `most` of
/// them, there may have been more.
pub(super) fn sparkline(events: &[Event], most: usize, now: Time) -> Markup {
    let bars = bars(events, now);
    let all: u32 = bars.iter().sum();
    let is_cut = events.len() >= most && events.last().is_some_and(|last| age(last, now) < BARS);
    let at_least = if is_cut { "at least " } else { "" };
    let words = format!("{at_least}{} in {BARS} days", counted(all, "change"));
    html! {
        svg.spark viewBox={ "0 0 " (BARS * PITCH) " " (HEIGHT) } role="img" aria-label=(words) {
            title { (words) }
            path.none d={ "M0 " (HEIGHT - 1) "h" (BARS * PITCH) } {}
            @if all > 0 { path d=(path(&bars)) {} }
        }
    }
}

/// How many bars an event is behind the last one.
fn age(event: &Event, now: Time) -> usize {
    usize::try_from(now.since(event.at).as_secs() / BAR.as_secs()).unwrap_or(usize::MAX)
}

/// The number of changes in each of the bars, the oldest first.
fn bars(events: &[Event], now: Time) -> [u32; BARS] {
    let mut bars = [0_u32; BARS];
    for event in events.iter().filter(|event| is_change(event.kind)) {
        let at = BARS.checked_sub(age(event, now) + 1);
        if let Some(bar) = at.and_then(|at| bars.get_mut(at)) {
            *bar += 1;
        }
    }
    bars
}

/// Whether readers have something new by it.
const fn is_change(kind: EventKind) -> bool {
    !matches!(
        kind,
        EventKind::Retired | EventKind::Returned | EventKind::Backfilled | EventKind::Discarded
    )
}

/// The outline of all bars.
fn path(bars: &[u32; BARS]) -> String {
    let mut path = String::new();
    for (number, count) in bars.iter().enumerate().filter(|(_, count)| **count > 0) {
        let height = 3 + count.min(&FULL) * (HEIGHT - 3) / FULL;
        let (x, width) = (number * PITCH, PITCH - 1);
        // Writing to a string cannot fail.
        let _ = write!(path, "M{x} {HEIGHT}v-{height}h{width}v{height}z");
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_core::model::SyncId;

    fn event(kind: EventKind, at: Time) -> Event {
        Event {
            kind,
            id: SyncId::new("a").unwrap(),
            native_id: "a".to_owned(),
            old_native_id: None,
            title: String::new(),
            tick: None,
            reason: String::new(),
            at,
            seen_gone: None,
        }
    }

    #[test]
    fn changes_stand_on_their_days_and_what_scrolled_off_on_none() {
        let now = Time::from_unix(100 * 86_400);
        let ago = |days: u32| now.minus(BAR * days);
        let events = [
            event(EventKind::Created, now),
            event(EventKind::Retired, now),
            event(EventKind::Updated, ago(1)),
            event(EventKind::Deleted, ago(1)),
            event(EventKind::Created, ago(29)),
            event(EventKind::Created, ago(30)),
        ];
        let bars = bars(&events, now);
        assert_eq!((bars[29], bars[28], bars[0]), (1, 2, 1));
        assert_eq!(bars.iter().sum::<u32>(), 4);
        let drawn = sparkline(&events, 100, now).into_string();
        assert!(drawn.contains("aria-label=\"4 changes in 30 days\""), "{drawn}");
        assert_eq!(drawn.matches("<path").count(), 2);
        // The last event is older than what is drawn, so nothing is missing.
        assert!(!sparkline(&events, 6, now).into_string().contains("at least"));
        assert!(sparkline(&events[..5], 5, now).into_string().contains("at least 4 changes"));
        let none = sparkline(&[], 100, now).into_string();
        assert!(none.contains("0 changes") && none.matches("<path").count() == 1, "{none}");
    }

    #[test]
    fn a_bar_is_seen_and_no_higher_than_the_picture() {
        let mut bars = [0; BARS];
        (bars[0], bars[1]) = (1, 1_000_000);
        assert_eq!(path(&bars), "M0 24v-4h3v4zM4 24v-24h3v24z");
    }
}
