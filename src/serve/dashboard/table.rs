//! The dashboard as a page: sums and problems first, then the feeds.

use super::list::{DashboardQuery, FeedFilter, FeedOrder, ListPage, ListTotals};
use super::{EVENTS_READ, IndexedFeed};
use crate::html::{self, ago, text};
use crate::{explain, paging};
use maud::{Markup, html};
use std::fmt::Write as _;
use std::time::Duration;
use tidegate_core::model::{Event, EventKind, FeedStanding, Time, counted};
use tidegate_status::PollTotals;

/// How many further folders of a feed are shown.
const PLACES_SHOWN: usize = 4;
/// How many feeds with problems are named above all others.
const PROBLEMS_SHOWN: usize = 8;

/// The page within its frame. `problems`: the feeds that somebody should look at; `events`: of each feed of the list,
/// newest first.
pub(super) fn content<'a>(
    totals: &ListTotals,
    problems: impl Iterator<Item = &'a IndexedFeed>,
    query: &DashboardQuery,
    list: &ListPage<'_>,
    events: &[Vec<Event>],
    polls: &PollTotals,
    now: Time,
) -> Markup {
    html! {
        @if totals.shown_by(FeedFilter::All) == 0 && totals.shown_by(FeedFilter::Gone) == 0 { (none_yet()) } @else {
            (numbers(totals, polls))
            // Who filters has them in the table.
            @if query.filter == FeedFilter::All && query.page == 1 { (needs_a_look(problems, totals, now)) }
            section aria-labelledby="feeds" {
                h2 #feeds { "Feeds" }
                (search(query, totals))
                @if list.feeds.is_empty() {
                    p.empty { "No feed matches. " a href="/" { "Show all feeds" } }
                } @else {
                    (table(&list.feeds, events, query.order == FeedOrder::List, now))
                }
                (list.place.links("feeds", |number| {
                    DashboardQuery { page: number, ..query.clone() }.address()
                }))
            }
        }
    }
}

fn none_yet() -> Markup {
    html! {
        div.empty {
            p { "There are no feeds yet." }
            p { a href="/add" { "Add one by the address of its site" } ", or name it in the configuration file." }
        }
    }
}

fn numbers(totals: &ListTotals, polls: &PollTotals) -> Markup {
    let card = |filter: FeedFilter, label: &str| {
        let query = DashboardQuery { filter, ..DashboardQuery::default() };
        let count = totals.shown_by(filter);
        html! {
            a.figure.problem[count > 0 && filter != FeedFilter::All] href=(query.address()) {
                strong { (count) } span { (label) }
            }
        }
    };
    html! {
        div.figures {
            (card(FeedFilter::All, if totals.shown_by(FeedFilter::All) == 1 { "feed" } else { "feeds" }))
            (card(FeedFilter::Failing, "failing"))
            (card(FeedFilter::Held, "held"))
            (card(FeedFilter::Conflicts, "in conflict"))
            (card(FeedFilter::Gaps, "with gaps"))
        }
        p.quiet {
            (counted(totals.current, "current item")) ", " (totals.living) " kept, "
            (counted(totals.tombstones, "tombstone")) ". "
            (counted(totals.changed_today, "feed")) " changed within a day. "
            (counted(polls.polls(), "poll")) " since the start, "
            (polls.changed) " with a change, " (polls.failed) " failed."
        }
    }
}

/// Feeds that somebody should look at, each with what is wrong.
fn needs_a_look<'a>(
    feeds: impl Iterator<Item = &'a IndexedFeed>,
    totals: &ListTotals,
    now: Time,
) -> Markup {
    let filter = FeedFilter::Problems;
    let all = totals.shown_by(filter);
    let query = DashboardQuery { filter, ..DashboardQuery::default() };
    html! {
        @if all > 0 {
            section.problems aria-labelledby="problems" {
                h2 #problems { "Needs a look" }
                ul { @for feed in feeds.take(PROBLEMS_SHOWN) {
                    li {
                        a href={ "/feeds/" (feed.name()) "/about" } { (text(&feed.title())) } " "
                        (trouble(feed, now))
                    }
                } }
                @if all > PROBLEMS_SHOWN {
                    p { a href=(query.address()) { "and " (counted(all - PROBLEMS_SHOWN, "more feed")) } }
                }
            }
        }
    }
}

/// What is wrong with a feed.
fn trouble(feed: &IndexedFeed, now: Time) -> Markup {
    let about = |anchor: &str| format!("/feeds/{}/about{anchor}", feed.name());
    html! {
        @if feed.is_failing() {
            span.pill.bad { "failing" } span.quiet {
                " " (feed.polling.failures) " in a row"
                @if let Some(error) = &feed.polling.error { ": " (text(error)) }
            } " "
        }
        @if let Some(held) = &feed.figures.held {
            a.pill.warn href=(about("#held")) { "held" } span.quiet { " " (text(held)) } " "
        }
        @if feed.figures.contested > 0 {
            a.pill.bad href={ "/feeds/" (feed.name()) "/conflicts" } {
                (feed.figures.contested) " in conflict"
            } " "
        }
        @if let Some(gap) = feed.polling.gaps.lately(now) {
            a.pill.warn href=(about("")) { "items may have been missed" } " "
            span.quiet { (ago(gap, now)) } " "
        }
        @if feed.polling.is_hub_distrusted { a.pill.warn href=(about("#hub")) { "its hub is not believed" } " " }
        @let ungathered = feed.ungathered();
        @if !ungathered.is_empty() {
            a.pill.warn href=(about("#sources")) { "incomplete" }
            span.quiet { " " (text(&ungathered.join("; "))) } " "
        }
    }
}

fn search(query: &DashboardQuery, totals: &ListTotals) -> Markup {
    let shown = |filter| format!(" ({})", totals.shown_by(filter));
    let choices = html! {
        (paging::select("show", "Show", query.filter, shown))
        (paging::select("sort", "Order", query.order, |_| String::new()))
    };
    paging::search_form("/", &query.search, "Title, name, address, folder", &choices)
}

fn table(feeds: &[&IndexedFeed], events: &[Vec<Event>], is_by_folder: bool, now: Time) -> Markup {
    let folders: Vec<String> =
        feeds.iter().map(|feed| feed.folders().next().unwrap_or_default()).collect();
    // A heading stands before a feed whose folder is another one than that of the feed before.
    let before = std::iter::once("").chain(folders.iter().map(String::as_str));
    let folders = folders.iter().zip(before);
    html! {
        table.feeds {
            thead { tr {
                th scope="col" { "Feed" } th scope="col" { "State" }
                th scope="col" { "Changes, 30 days" } th scope="col" { "Last change" }
                th scope="col" { "Polled" } th.number scope="col" { "Items" }
            } }
            tbody { @for ((feed, events), (folder, before)) in feeds.iter().zip(events).zip(folders) {
                @if is_by_folder && folder != before {
                    tr.folder { th.folder colspan="6" scope="colgroup" {
                        @if folder.is_empty() { "In no folder" } @else { (text(folder)) }
                    } }
                }
                (row(feed, events, now))
            } }
        }
    }
}

fn row(feed: &IndexedFeed, events: &[Event], now: Time) -> Markup {
    let (name, title, address) = (feed.name(), feed.title(), feed.address());
    let IndexedFeed { record, figures, polling, .. } = feed;
    html! { tr {
        td.feed {
            (html::monogram(&title))
            div {
                a.title href={ "/feeds/" (name) "/about" } { (text(&title)) }
                div.quiet {
                    a href={ "/feeds/" (name) } { "feed" } " · "
                    a href={ "/feeds/" (name) "/sync" } { "sync" } " · "
                    a href={ "/feeds/" (name) "/complete" } { "complete" }
                    @if title != name.as_str() { " · " (name) }
                }
                @if let Some(words) = explain::describe_origin(record) {
                    div.quiet { (text(&words)) }
                }
                @if !address.is_empty() { div.quiet { (text(&address)) } }
                @if let Some(moved) = feed.moved_to() { div.quiet { "moved to " (text(&moved)) } }
                @for folder in feed.folders().skip(1).take(PLACES_SHOWN) {
                    div.quiet { "also in "
                        @if folder.is_empty() { "no folder" } @else { (text(&folder)) } }
                }
            }
        }
        td.state {
            @match record.standing {
                FeedStanding::Active if !feed.has_problem(now) => span.pill.good { "active" },
                FeedStanding::Active => {},
                other => span.pill { (other.name()) },
            }
            @if feed.is_private { " " a.pill href={ "/feeds/" (name) "/about" } { "private" } " " }
            (trouble(feed, now))
            @if let Some(decides) = figures.decides {
                div.quiet { a href={ "/feeds/" (name) "/about#missing" } { "something is decided" }
                    " " (ago(decides, now)) }
            }
        }
        td data-label="Changes, 30 days" { (sparkline(events, EVENTS_READ, now)) }
        td data-label="Last change" {
            @match figures.changed { Some(tick) => (ago(tick.time(), now)), None => span.quiet { "none yet" } }
        }
        td data-label="Polled" {
            @match (polling.last_poll, polling.next_poll) {
                (None, None) if address.is_empty() => span.quiet { "–" },
                (None, None) if polling.is_elsewhere => span.quiet { "by another gateway" },
                (None, None) => span.quiet { "never" },
                (last, next) => {
                    @match last { Some(at) => (ago(at, now)), None => "not yet" }
                    @if let Some(at) = next { div.quiet { "next " (ago(at, now)) } }
                }
            }
        }
        td.number data-label="Items" {
            (figures.current) " current"
            div.quiet { (figures.living) " kept, " (figures.tombstones) " deleted" }
        }
    } }
}

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
    use tidegate_poll::testing::double;

    fn event(kind: EventKind, at: Time) -> Event {
        Event { at, ..double::event(kind, None) }
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
        // A bar is seen, and no higher than the picture.
        let mut bars = [0; BARS];
        (bars[0], bars[1]) = (1, 1_000_000);
        assert_eq!(path(&bars), "M0 24v-4h3v4zM4 24v-24h3v24z");
    }
}
