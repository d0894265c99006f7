//! Bands over the times in which a feed did not go on as usual: one for all that would touch.

use crate::html::text;
use maud::{Markup, html};
use tidegate_core::model::{Interruption, InterruptionKind, Interruptions, Time, counted};
use tidegate_judge as judge;

/// The least width of a band: what was seen once is one, too.
const LEAST_WIDTH: f64 = 2.0;
/// Bands that are closer to each other are one, in units of the picture: a pixel where it is as wide.
const CLOSE: f64 = 1.0;

/// A band of the picture.
#[derive(Debug, PartialEq)]
pub(super) struct Band<'a> {
    kind: InterruptionKind,
    left: f64,
    right: f64,
    /// What it shows: of one kind, in the order of time, at least one.
    shown: Vec<&'a Interruption>,
}

/// The bands of what was not over when the picture begins. `x`: where a time is, `None` at the right end.
pub(super) fn bands(
    all: &Interruptions,
    from: Time,
    x: impl Fn(Option<Time>) -> f64,
) -> Vec<Band<'_>> {
    let mut bands: Vec<Band<'_>> = Vec::new();
    for one in all.iter().filter(|one| one.until.is_none_or(|until| until > from)) {
        let left = x(Some(one.since));
        let right = x(one.until).max(left + LEAST_WIDTH);
        let last = bands.iter_mut().rev().find(|band| band.kind == one.kind);
        match last.filter(|last| left - last.right < CLOSE) {
            Some(last) => {
                last.right = last.right.max(right);
                last.shown.push(one);
            }
            None => bands.push(Band { kind: one.kind, left, right, shown: vec![one] }),
        }
    }
    bands
}

impl Band<'_> {
    /// The band as a shape of this height, with what it shows in words.
    pub(super) fn draw(&self, height: &str) -> Markup {
        let [left, width] = [self.left, self.right - self.left].map(|at| format!("{at:.1}"));
        html! {
            rect class={ "band " (class(self.kind)) } x=(left) y="0" width=(width) height=(height) {
                title { (text(&in_words(&self.shown))) }
            }
        }
    }
}

/// The class of what shows an interruption.
pub(super) const fn class(kind: InterruptionKind) -> &'static str {
    match kind {
        InterruptionKind::Failed => "failed",
        InterruptionKind::Held => "held",
    }
}

/// What interruptions of one kind were, the last one's reason among it, in a sentence without its full stop.
pub(super) fn in_words(all: &[&Interruption]) -> String {
    let [first, ..] = all else { return String::new() };
    let last = all.last().unwrap_or(first);
    let times = match all.len() {
        1 => String::new(),
        times => format!("{}, ", counted(times, "time")),
    };
    let lasting = match last.until {
        Some(until) => format!("from {} to {until}", first.since),
        None => format!("since {}", first.since),
    };
    let reason = match last.kind {
        InterruptionKind::Held => judge::hold_reason(&last.reason),
        InterruptionKind::Failed => &last.reason,
    };
    format!("{} {times}{lasting}: {reason}", last.kind.name())
}

/// How often each kind is among the interruptions, in words; empty where there are none.
pub(super) fn counts(all: &Interruptions) -> String {
    let kinds = [InterruptionKind::Held, InterruptionKind::Failed];
    let count = |kind| (kind, all.iter().filter(|one| one.kind == kind).count());
    let told = kinds.map(count).into_iter().filter(|(_, count)| *count > 0);
    let told = told.map(|(kind, count)| format!("{} {}", kind.name(), counted(count, "time")));
    told.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use InterruptionKind::{Failed, Held};

    fn at(seconds: i64) -> Time {
        Time::from_unix(1_800_000_000 + seconds)
    }

    fn one(kind: InterruptionKind, since: i64, until: Option<i64>) -> Interruption {
        Interruption {
            kind,
            since: at(since),
            until: until.map(at),
            reason: format!("no. {since}"),
        }
    }

    /// A unit is ten seconds, and the right end is at 100.
    fn x(time: Option<Time>) -> f64 {
        time.map_or(100.0, |time| time.since(at(0)).as_secs_f64() / 10.0)
    }

    fn drawn(all: &Interruptions) -> Vec<(InterruptionKind, f64, f64, usize)> {
        let bands = bands(all, at(0), x);
        bands.iter().map(|band| (band.kind, band.left, band.right, band.shown.len())).collect()
    }

    #[test]
    fn a_band_is_over_the_time_that_it_lasted() {
        let all = [one(Held, 100, Some(300)), one(Failed, 200, None)].into_iter().collect();
        assert_eq!(drawn(&all), [(Held, 10.0, 30.0, 1), (Failed, 20.0, 100.0, 1)]);
    }

    #[test]
    fn what_would_touch_is_one_band_with_both_in_its_words() {
        let all = [
            one(Failed, 100, Some(101)),
            one(Held, 110, Some(300)),
            one(Failed, 125, Some(130)),
            one(Failed, 400, Some(450)),
        ];
        let all: Interruptions = all.into_iter().collect();
        let expected = [(Failed, 10.0, 14.5, 2), (Held, 11.0, 30.0, 1), (Failed, 40.0, 45.0, 1)];
        assert_eq!(drawn(&all), expected);
        let bands = bands(&all, at(0), x);
        let words = in_words(&bands[0].shown);
        assert_eq!(
            words,
            "failing 2 times, from 2027-01-15T08:01:40Z to 2027-01-15T08:02:10Z: no. 125"
        );
        assert_eq!(counts(&all), "held 1 time, failing 3 times");
    }

    #[test]
    fn what_was_over_before_the_picture_begins_is_not_in_it() {
        let all: Interruptions =
            [one(Failed, -100, Some(-50)), one(Failed, -20, Some(50))].into_iter().collect();
        assert_eq!(drawn(&all), [(Failed, 0.0, 5.0, 1)]);
    }

    #[test]
    fn a_reason_is_text() {
        let hostile = Interruption { reason: "</title><script>".to_owned(), ..one(Held, 0, None) };
        let all: Interruptions = [hostile].into_iter().collect();
        let drawn = bands(&all, at(0), x)[0].draw("60.0").into_string();
        assert!(
            drawn.contains("since 2027-01-15T08:00:00Z: &lt;/title&gt;&lt;script&gt;"),
            "{drawn}"
        );
    }
}
