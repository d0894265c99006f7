//! `/recent`: what changed lately in all feeds.

use super::list::{DashboardQuery, FeedFilter, FeedOrder, OverviewFeed};
use super::{list, look, show};
use crate::AppState;
use crate::address::item_page;
use crate::extract::Viewer;
use crate::html::{ago, text};
use crate::problem::Problem;
use axum::response::Response;
use maud::{Markup, html};
use std::cmp::Reverse;
use std::sync::Arc;
use tidegate_core::model::{Event, EventKind, Time};

/// How many changes are shown, and how many of one feed at most, so that a busy one hides no other.
const SHOWN: usize = 100;
const EACH: usize = 10;

/// A change of a feed.
struct RecentChange<'a> {
    feed: &'a OverviewFeed,
    event: Event,
    /// Whether this feed has more changes than are shown here, behind this one.
    more: bool,
}

/// `GET /recent`.
pub(crate) async fn recent(viewer: Viewer) -> Result<Response, Problem> {
    let (known, making) = (look(&viewer).await?, Arc::clone(&viewer.room));
    let content = show(&viewer, async move { made(&making, &known.feeds).await }).await?;
    Ok(viewer.page("Recent changes", &content))
}

async fn made(room: &AppState, feeds: &[OverviewFeed]) -> Result<Markup, Problem> {
    let query = DashboardQuery {
        order: FeedOrder::Changed,
        filter: FeedFilter::All,
        page: 1,
        ..DashboardQuery::default()
    };
    let newest = list::select(feeds, &query);
    let mut changes = Vec::new();
    for feed in &newest.feeds {
        let mut events = room.store.events(&feed.name, EACH + 1).await?;
        let is_cut = events.len() > EACH;
        events.truncate(EACH);
        let last = events.len().saturating_sub(1);
        let each = events.into_iter().enumerate();
        changes.extend(each.map(|(at, event)| RecentChange {
            feed,
            event,
            more: is_cut && at == last,
        }));
    }
    changes.sort_by_key(|change| Reverse(change.event.at));
    changes.truncate(SHOWN);
    Ok(content(&changes, room.clock.now()))
}

fn content(changes: &[RecentChange<'_>], now: Time) -> Markup {
    html! {
        @if changes.is_empty() {
            p.empty { "Nothing has changed yet. " a href="/" { "See how the feeds are polled" } "." }
        } @else {
            ol.recent { @for change in changes { (line(change, now)) } }
        }
    }
}

fn line(change: &RecentChange<'_>, now: Time) -> Markup {
    let RecentChange { feed, event, more } = change;
    let title = if event.title.is_empty() { event.id.as_str() } else { &event.title };
    html! { li {
        span.when { (ago(event.at, now)) }
        (pill(event.kind))
        div {
            a.title href=(item_page(&feed.name, &event.id)) { (text(title)) }
            " " span.quiet { "in " a href={ "/feeds/" (feed.name) "/about" } { (text(&feed.title)) } }
            div.quiet { (text(&event.reason)) }
            @if *more {
                div.quiet { a href={ "/feeds/" (feed.name) "/about#happened" } { "and more in this feed" } }
            }
        }
    } }
}

/// What happened, as a word in its colour.
pub(crate) fn pill(kind: EventKind) -> Markup {
    html! { span class={ "pill " (colour(kind)) } { (kind.word()) } }
}

/// What colour the word for what happened has.
const fn colour(kind: EventKind) -> &'static str {
    match kind {
        EventKind::Created | EventKind::Undeleted => "good",
        EventKind::Updated => "edit",
        EventKind::Deleted => "bad",
        EventKind::Rekeyed => "warn",
        EventKind::Retired | EventKind::Returned | EventKind::Backfilled | EventKind::Discarded => {
            ""
        }
    }
}
