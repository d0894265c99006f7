//! The picture as SVG within a page: shapes and classes alone, so that the style sheet colours it.

use super::{FeedLife, LifeLine, LineEnd, LineMark, MarkKind, in_words};
use crate::html::cut;
use crate::item_page;
use maud::{Markup, html};
use std::time::Duration;
use tidegate_core::model::{FeedName, Interruption, InterruptionKind, Time};

/// The width of the picture, in its own units.
const WIDTH: f64 = 1_000.0;
/// The width of the titles, where there is room for them.
const TITLES: f64 = 250.0;
/// The height of a line with its title.
const TITLED_LINE: f64 = 20.0;
/// Up to so many lines have titles.
const TITLED: usize = 60;
/// The height of all lines where there are more.
const LINES_HEIGHT: f64 = 720.0;
/// The height of the axis of time.
const AXIS: f64 = 24.0;
/// The least length of a line, and the least width of a band: what was seen once is one, too.
const LEAST_LENGTH: f64 = 2.0;
/// How far a line fades behind its end.
const FADE: f64 = 26.0;
/// Marks on the axis.
const TICKS: u32 = 5;
/// The most dots, crosses and diamonds.
const MARKS_SHOWN: usize = 1_500;
/// Characters of a title beside its line.
const TITLE_SHOWN: usize = 36;
/// A picture shows no less time than that.
const LEAST_SPAN: Duration = Duration::from_secs(60);
/// From so long a time on, the axis has days; else hours and minutes.
const DAYS: Duration = Duration::from_secs(2 * 86_400);
/// Below so long a time, it has seconds as well.
const SECONDS: Duration = Duration::from_secs(20 * 60);

/// The classes of what follows a line whose item scrolled off, and of one whose item is missing.
const FADED: &str = "line faded";
const MISSING: &str = "line missing";

/// Where times and lines are in the picture.
struct Scale {
    from: Time,
    to: Time,
    left: f64,
    /// From a line to the next.
    pitch: f64,
}

impl Scale {
    fn new(life: &FeedLife, now: Time) -> Self {
        let first = life.lines.iter().map(|line| line.begin).min().unwrap_or(now);
        let from = first.min(now.minus(LEAST_SPAN));
        let is_titled = life.lines.len() <= TITLED;
        let pitch = match is_titled {
            true => TITLED_LINE,
            false => LINES_HEIGHT / shown_number(life.lines.len()),
        };
        Self { from, to: now, left: if is_titled { TITLES } else { 0.0 }, pitch }
    }

    fn is_titled(&self) -> bool {
        self.left > 0.0
    }

    fn x(&self, at: Time) -> f64 {
        let all = self.to.since(self.from).as_secs_f64().max(1.0);
        let part = at.since(self.from).as_secs_f64() / all;
        let right = WIDTH - FADE;
        self.left + part.clamp(0.0, 1.0) * (right - self.left)
    }

    /// Where a line begins and ends.
    fn ends(&self, line: &LifeLine) -> (f64, f64) {
        let begin = self.x(line.begin);
        let end = line.left.map_or(self.to, |(_, at)| at);
        (begin, self.x(end).max(begin + LEAST_LENGTH))
    }

    /// The middle of a line.
    fn y(&self, line: usize) -> f64 {
        (shown_number(line) + 0.5) * self.pitch
    }

    /// The times at the marks of the axis.
    fn ticks(&self) -> impl Iterator<Item = Time> {
        let all = self.to.since(self.from);
        let part = all / TICKS;
        (0..=TICKS).map(move |n| self.from.plus(part * n))
    }

    /// A time as the axis shows it.
    fn label(&self, at: Time) -> String {
        let exact = at.to_string();
        let (day, time) = exact.split_once('T').unwrap_or((&exact, ""));
        match self.to.since(self.from) {
            all if all >= DAYS => day.to_owned(),
            all if all >= SECONDS => time.chars().take("18:50".len()).collect(),
            _ => time.chars().take("18:50:52".len()).collect(),
        }
    }
}

/// A count as a place in the picture.
fn shown_number(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

fn unit(value: f64) -> String {
    format!("{value:.1}")
}

/// The picture with what it shows in words; nothing where the feed has no items.
pub(crate) fn figure(feed: &FeedName, life: &FeedLife, now: Time) -> Markup {
    let scale = Scale::new(life, now);
    let (words, interruptions) = (life.words(), &life.interruptions);
    html! {
        @if !life.lines.is_empty() {
            figure.life {
                div.wide { (drawing(feed, life, &scale, &words)) }
                figcaption {
                    p { (words) "." }
                    p.quiet {
                        span.key.edit { "edit" } " " span.key.rename { "other id" } " "
                        span.key.missing { "missing" } " " span.key.faded { "scrolled off" } " "
                        span.key.gone { "deleted" }
                        @for kind in [InterruptionKind::Held, InterruptionKind::Failed] {
                            @if interruptions.iter().any(|it| it.kind == kind) {
                                " " span class={ "key band " (class(kind)) } { (kind.name()) }
                            }
                        }
                    }
                    @if !interruptions.is_empty() {
                        details {
                            summary { "When it was held or failing" }
                            ul.plain { @for one in interruptions.iter().rev() {
                                li { (in_words(one)) }
                            } }
                        }
                    }
                }
            }
        }
    }
}

/// The class of what shows an interruption.
const fn class(kind: InterruptionKind) -> &'static str {
    match kind {
        InterruptionKind::Failed => "failed",
        InterruptionKind::Held => "held",
    }
}

fn drawing(feed: &FeedName, life: &FeedLife, scale: &Scale, words: &str) -> Markup {
    let height = scale.pitch * shown_number(life.lines.len());
    let view = format!("0 0 {} {}", unit(WIDTH), unit(height + AXIS));
    html! {
        svg viewBox=(view) role="group" aria-label={ "The life of " (feed) ": " (words) } {
            @for one in life.interruptions.iter() { (band(one, scale, height)) }
            @for at in scale.ticks() { (tick(at, scale, height)) }
            @if scale.is_titled() {
                @for (at, line) in life.lines.iter().enumerate() { (titled(feed, line, at, scale)) }
            } @else {
                (all_lines(life, scale))
            }
            (marks(feed, life, scale))
        }
    }
}

/// A band over the time in which a feed did not go on as usual, where that was not over before the picture begins.
fn band(one: &Interruption, scale: &Scale, height: f64) -> Markup {
    let left = scale.x(one.since);
    // What lasts goes to the right end.
    let right = one.until.map_or(WIDTH, |until| scale.x(until)).max(left + LEAST_LENGTH);
    html! {
        @if one.until.is_none_or(|until| until > scale.from) {
            rect class={ "band " (class(one.kind)) } x=(unit(left)) y="0"
                width=(unit(right - left)) height=(unit(height)) { title { (in_words(one)) } }
        }
    }
}

fn tick(at: Time, scale: &Scale, height: f64) -> Markup {
    let x = scale.x(at);
    let anchor = if at <= scale.from {
        "start"
    } else if at >= scale.to {
        "end"
    } else {
        "middle"
    };
    html! {
        path.axis d={ "M" (unit(x)) " 0V" (unit(height)) } {}
        text.axis x=(unit(x)) y=(unit(height + AXIS - 8.0)) text-anchor=(anchor) { (scale.label(at)) }
    }
}

/// The strokes of a line: from its item's coming to its leaving; and what follows where that is open, with its class.
fn strokes(line: &LifeLine, at: usize, scale: &Scale) -> (String, Option<(&'static str, String)>) {
    let stroke = |from: f64, to: f64| format!("M{} {}H{}", unit(from), unit(scale.y(at)), unit(to));
    let (begin, end) = scale.ends(line);
    let rest = match line.left {
        Some((LineEnd::Retired, _)) => Some((FADED, (end + FADE).min(WIDTH))),
        Some((LineEnd::Missing, _)) => Some((MISSING, scale.x(scale.to).max(end))),
        _ => None,
    };
    (stroke(begin, end), rest.map(|(class, to)| (class, stroke(end, to))))
}

/// A line with its title, which leads to the item.
fn titled(feed: &FeedName, line: &LifeLine, at: usize, scale: &Scale) -> Markup {
    let (stroke, rest) = strokes(line, at, scale);
    html! {
        a href=(item_page(feed, &line.id)) {
            title { (line.title) }
            text x="0" y=(unit(scale.y(at) + 4.0)) { (cut(&line.title, TITLE_SHOWN)) }
        }
        path.line d=(stroke) stroke-width="2" {}
        @if let Some((class, rest)) = rest { path class=(class) d=(rest) stroke-width="2" {} }
    }
}

/// All lines as one shape for each class, for there are many.
fn all_lines(life: &FeedLife, scale: &Scale) -> Markup {
    let mut shapes = [("line", String::new()), (FADED, String::new()), (MISSING, String::new())];
    for (at, line) in life.lines.iter().enumerate() {
        let (stroke, rest) = strokes(line, at, scale);
        for (class, stroke) in [("line", stroke)].into_iter().chain(rest) {
            let shape = shapes.iter_mut().find(|(of, _)| *of == class);
            shape.into_iter().for_each(|(_, shape)| shape.push_str(&stroke));
        }
    }
    let width = unit((scale.pitch * 0.6).clamp(0.4, 4.0));
    html! {
        @for (class, shape) in shapes.iter().filter(|(_, shape)| !shape.is_empty()) {
            path class=(class) d=(shape) stroke-width=(width) {}
        }
    }
}

/// Dots, crosses and diamonds, each leading to what happened; of the newest items where there are too many.
fn marks(feed: &FeedName, life: &FeedLife, scale: &Scale) -> Markup {
    let lines = life.lines.iter().enumerate();
    let marks = lines.flat_map(|line| line.1.marks.iter().map(move |mark| (line, mark)));
    html! { @for (line, of) in marks.take(MARKS_SHOWN) { (mark(feed, line, of, scale)) } }
}

fn mark(feed: &FeedName, (at, line): (usize, &LifeLine), mark: &LineMark, scale: &Scale) -> Markup {
    let page = item_page(feed, &line.id) + &mark.query;
    let words = format!("{}: {}, {}", line.title, mark.words, mark.at);
    let (x, y, size) = (scale.x(mark.at), scale.y(at), (scale.pitch * 0.25).clamp(1.5, 4.5));
    let shape = match mark.kind {
        MarkKind::Edit => html! { circle.edit cx=(unit(x)) cy=(unit(y)) r=(unit(size)) {} },
        MarkKind::Rename => {
            let (left, half) = (x - size * 1.2, unit(size * 1.2));
            let begin = format!("M{} {}", unit(left), unit(y));
            html! { path.rename d={ (begin) "l" (half) " -" (half) "l" (half) " " (half) "l-" (half) " " (half) "Z" } {} }
        }
        MarkKind::Gone => {
            let (left, whole) = (scale.ends(line).1 - size, unit(size * 2.0));
            let begin = format!("M{} {}", unit(left), unit(y - size));
            html! { path.gone d={ (begin) "l" (whole) " " (whole) "m-" (whole) " 0l" (whole) " -" (whole) } {} }
        }
    };
    // Its item's page says the same: who goes by keyboard need not pass them all.
    html! { a href=(page) tabindex="-1" aria-label=(words) { title { (words) } (shape) } }
}

#[cfg(test)]
mod tests {
    use super::super::LINES_SHOWN;
    use super::*;
    use crate::tests::PageText as _;
    use tidegate_core::model::{Interruptions, SyncId};

    fn at(hours: i64) -> Time {
        Time::from_unix(1_800_000_000 + 3_600 * hours)
    }

    fn line(n: usize, begin: i64, left: Option<(LineEnd, Time)>) -> LifeLine {
        let (id, title) = (SyncId::new(&format!("x.{n}")).unwrap(), format!("Post {n}"));
        let gone = left.filter(|(how, _)| *how == LineEnd::Deleted);
        let gone = gone.map(|(_, at)| LineMark::new(MarkKind::Gone, at, "deleted"));
        LifeLine { id, title, begin: at(begin), left, marks: gone.into_iter().collect() }
    }

    fn life(lines: Vec<LifeLine>) -> FeedLife {
        FeedLife { items: lines.len(), lines, interruptions: Interruptions::default() }
    }

    fn drawn(life: &FeedLife) -> String {
        figure(&FeedName::new("news").unwrap(), life, at(20)).into_string()
    }

    #[test]
    fn what_happened_stands_where_it_happened() {
        let mut edited = line(1, 10, None);
        let first = LineMark::new(MarkKind::Edit, at(15), "version 2");
        edited.marks = vec![
            LineMark { query: "?diff=1..2".to_owned(), ..first },
            LineMark::new(MarkKind::Edit, at(20), "version 4"),
            LineMark::new(MarkKind::Rename, at(15), "under another id"),
        ];
        let ends = [(LineEnd::Retired, 10), (LineEnd::Deleted, 5), (LineEnd::Missing, 15)];
        let left = (2..).zip(ends).map(|(n, (end, hours))| line(n, 0, Some((end, at(hours)))));
        let mut life = life([edited].into_iter().chain(left).collect());
        life.interruptions.note(InterruptionKind::Failed, Some("it answered 503"), at(5));
        life.interruptions.note(InterruptionKind::Failed, None, at(10));
        life.interruptions.note(InterruptionKind::Held, Some("<too few>"), at(15));
        // From the end of the titles, 250, to where lines begin to fade, 974.
        insta::assert_snapshot!("picture", drawn(&life));
        // Many items are drawn in a bounded picture.
        let many = |n: usize| {
            let mut one = line(n, 0, Some((LineEnd::Retired, at(1))));
            one.marks = vec![LineMark::new(MarkKind::Edit, at(1), "version 2"); 3];
            one
        };
        let picture = drawn(&self::life((0..LINES_SHOWN).map(many).collect()));
        assert_eq!(picture.matches("<circle").count(), MARKS_SHOWN);
        assert_eq!(picture.matches("<path class=\"line").count(), 2);
        assert!(picture.len() < 500_000, "{}", picture.len());
        assert!(picture.contains("viewBox=\"0 0 1000.0 744.0\""));
        // A feed of any age has a picture, with an axis as exact as its length asks.
        for (begin, shown) in [(-100, ">2027-01-11<"), (0, ">08:00<"), (20, "H97"), (30, "H97")] {
            let mut one = line(1, begin, None);
            one.title = "</svg><script>alert(1)</script>\" onload=\"x".to_owned();
            let picture = drawn(&self::life(vec![one]));
            picture.assert_shows(&[shown, "&lt;/svg&gt;"]);
            picture.assert_lacks(&["<script", "\" onload"]);
        }
        assert_eq!(drawn(&self::life(Vec::new())), "");
    }
}
