//! `/`: what the gateway does, at a glance: sums, problems, and the feeds, page by page.

mod list;
mod table;

pub(super) use list::{DashboardQuery, FeedFilter};

use self::list::{FeedOrder, ListTotals};
use super::html::{self, ago, text};
use super::paging::PAGE;
use super::{
    AppState, Audience, DocumentKey, DocumentKind, FeedIndex, IndexedFeed, KnownReader, Problem,
    Reply, SharedState, TypedQuery, Viewer, Work, WorkKind, WorkRequest, item_page, subscribe,
};
use maud::{Markup, PreEscaped, html};
use std::cmp::Reverse;
use std::sync::Arc;
use tidegate_core::model::{Event, EventKind, FeedRecord, FeedStanding, Revision, Time, counted};
use tidegate_store::{Epoch, KnownGateway, StoreError, StoreStop};

/// How many feeds are named while the store is closed.
const NAMED: usize = 500;
/// How many events of each feed on a page are read.
const EVENTS_READ: usize = 100;
/// What a feed takes that is shown, in bytes.
const ROW: u64 = 64 * 1024;

/// A page over all feeds, made once for each audience and each state of the index.
async fn show<F: Future<Output = Result<Markup, StoreError>> + Send + 'static>(
    viewer: &Viewer,
    kind: DocumentKind,
    make: impl FnOnce(SharedState, Arc<FeedIndex>, Audience) -> F,
) -> Result<Markup, Problem> {
    let Viewer { app, audience, client, .. } = viewer;
    let index = app.whole_index().await?;
    let revision = Some(Revision(index.revision));
    let cost = u64::try_from(PAGE).unwrap_or(u64::MAX).saturating_mul(ROW);
    let work = Work::of_all(WorkKind::Standing);
    let work_request = WorkRequest { client: *client, work, cost, records_cost: false };
    let key = DocumentKey { audience: audience.key(), feed: None, kind };
    let making = || {
        let made = make(Arc::clone(app), index, audience.clone());
        async move { Ok::<String, Problem>(made.await?.into_string()) }
    };
    let page = app.documents.get(key, revision, work_request, making).await?.text();
    // It was written as text here.
    Ok(PreEscaped(String::from_utf8_lossy(&page).into_owned()))
}

/// `GET /`.
pub(super) async fn page(viewer: Viewer, TypedQuery(query): TypedQuery<DashboardQuery>) -> Reply {
    if let Some(reader) = viewer.audience.reader() {
        return own_page(&viewer, reader).await;
    }
    let Viewer { app, audience, .. } = &viewer;
    let condition = app.store.condition();
    if let Some(stop) = &condition.stop {
        return Ok(viewer.page("Feeds", &while_stopped(app, audience, stop).await));
    }
    let kind = DocumentKind::Overview(query.clone());
    let page = show(&viewer, kind, |app, index, audience| async move {
        overview(&app, &index, &audience, &query).await
    });
    let page = page.await?;
    let content = html! {
        @if let Err(why) = condition.check_intake() { p.bad { (why) "." } }
        @if audience.is_operator() {
            @for difference in condition.differences() {
                p.bad { "Settings differ: " (difference) "." }
            }
            @if let Some(difference) = condition.clock_difference() { p.bad { (difference) "." } }
            (gateways(&condition.gateways, app.log.newest()))
        }
        (page)
        // Not with what is kept: a reload may change it.
        @if app.origins.admits_any() { (bookmarklet(&app.site.at(subscribe::PATH))) }
    };
    Ok(viewer.page("Overview", &content))
}

/// The gateways over the same store, where there are several: what each does, when it was last heard of, and of this
/// one the newest epoch that it shows.
fn gateways(known: &[KnownGateway], newest: Epoch) -> Markup {
    html! {
        @if known.len() > 1 {
            h2 { "Gateways" }
            (html::table(&["Gateway", "Polls", "Heard of"], &html! { @for gateway in known { tr {
                th scope="row" { (gateway.name) @if gateway.is_this { " (this one)" } }
                td { @if gateway.polls { "its part of the feeds" } @else { "nothing" } }
                td {
                    (counted(gateway.beat_age.as_secs(), "second")) " ago"
                    @if gateway.is_this { "; it shows epoch " (newest.0) }
                }
            } } }))
        }
    }
}

/// What is said while the store is closed: why, and which feeds there are.
async fn while_stopped(app: &AppState, audience: &Audience, stop: &StoreStop) -> Markup {
    let listing = app.directory.listing().await.unwrap_or_default();
    let served = listing.seen_by(audience).filter(|record| record.standing != FeedStanding::Gone);
    html! {
        p.bad { (stop) "." }
        p { "Feeds are served as they were made last, as far as that is in memory; nothing is polled." }
        ul { @for record in served.take(NAMED) {
            li { a href={ "/feeds/" (record.name) } { (record.name) } }
        } }
    }
}

/// A link that is kept as a bookmark: it opens the page to subscribe for the site that one is looking at.
fn bookmarklet(page: &str) -> Markup {
    let quoted = serde_json::Value::from(page).to_string();
    let script = format!("location.href={quoted}+'?url='+encodeURIComponent(location.href)");
    // A browser decodes what is escaped in it before it runs it.
    let script = format!("javascript:{}", script.replace('%', "%25"));
    html! {
        p.quiet {
            "Keep this link as a bookmark to subscribe to the site that you are looking at: "
            a href=(script) { "Subscribe here" } "; or "
            a href=(subscribe::PATH) { "type an address" } "."
        }
    }
}

async fn overview(
    app: &AppState,
    index: &FeedIndex,
    audience: &Audience,
    query: &DashboardQuery,
) -> Result<Markup, StoreError> {
    let now = app.clock.now();
    let totals = ListTotals::new(index.seen_by(audience), now);
    let list = list::select(index.seen_by(audience), query, now);
    let mut events = Vec::with_capacity(list.feeds.len());
    for feed in &list.feeds {
        events.push(app.store.events(feed.name(), EVENTS_READ).await?);
    }
    let polls = app.operator.poller.totals();
    let problems = FeedFilter::Problems;
    let problems = index.seen_by(audience).filter(|feed| problems.admits(feed, now));
    Ok(html! {
        @if !totals.ahead.is_empty() { p.bad { (totals.ahead) "." } }
        (table::content(&totals, problems, query, &list, &events, &polls, now))
    })
}

// `/t/TOKEN/`: the feeds of one reader, with the addresses to give to a feed reader.

/// How many feeds are listed; the list of subscriptions has all.
const OWN_SHOWN: usize = 1_000;

async fn own_page(viewer: &Viewer, reader: &KnownReader) -> Reply {
    let (app, audience) = (&*viewer.app, &viewer.audience);
    let listing = app.directory.listing().await?;
    let served = |record: &&Arc<FeedRecord>| record.standing != FeedStanding::Gone;
    let (mut rows, mut more) = (Vec::new(), 0_usize);
    for record in listing.seen_by(audience).filter(served) {
        if rows.len() >= OWN_SHOWN {
            more += 1;
            continue;
        }
        let shown = app.store.state(&record.name).await?.map(|state| state.updated_at);
        let address = format!("/feeds/{}", record.name);
        rows.push(html! { tr {
            td { a href={ (address) "/about" } { (text(&record.shown_title())) } }
            td { @match shown { Some(at) => (ago(at, app.clock.now())), None => "not read yet" } }
            td { a href=(address) { code { (audience.site.at(&address)) } } }
        } });
    }
    let content = html! {
        p { "What " (reader.name()) " may read here. The addresses are a key to these feeds: everybody who \
            has one can read the feed. Give each to your feed reader, or all of them as "
            a href="/subscriptions.opml" { "a list of subscriptions (OPML)" } "." }
        @if rows.is_empty() { p.empty { "There is no feed for this token yet." } }
        @else {
            (html::table(&["Feed", "Last change", "Address"], &html! { @for row in &rows { (row) } }))
        }
        @if more > 0 { p.quiet { (more) " more are in the list of subscriptions." } }
        @if app.origins.admits_any() { (bookmarklet(&audience.site.at(subscribe::PATH))) }
    };
    Ok(viewer.page("Your feeds", &content))
}

// `/recent`: what changed lately in all feeds.

/// How many changes are shown, and how many of one feed at most, so that a busy one hides no other.
const RECENT_SHOWN: usize = 100;
const RECENT_EACH: usize = 10;

/// `GET /recent`.
pub(super) async fn recent(viewer: Viewer) -> Reply {
    let content = show(&viewer, DocumentKind::Recent, |app, index, audience| async move {
        recent_changes(&app, &index, &audience).await
    });
    Ok(viewer.page("Recent changes", &content.await?))
}

async fn recent_changes(
    app: &AppState,
    index: &FeedIndex,
    audience: &Audience,
) -> Result<Markup, StoreError> {
    let (mut lines, now) = (Vec::new(), app.clock.now());
    let query = DashboardQuery { order: FeedOrder::Changed, ..DashboardQuery::default() };
    for feed in list::select(index.seen_by(audience), &query, now).feeds {
        let events = app.store.events(feed.name(), RECENT_EACH + 1).await?;
        let is_cut = events.len() > RECENT_EACH;
        for (at, event) in events.iter().take(RECENT_EACH).enumerate() {
            let has_more = is_cut && at + 1 == RECENT_EACH;
            lines.push((event.at, recent_line(feed, event, has_more, now)));
        }
    }
    lines.sort_by_key(|(at, _)| Reverse(*at));
    Ok(html! {
        @if lines.is_empty() {
            p.empty { "Nothing has changed yet. " a href="/" { "See how the feeds are polled" } "." }
        } @else {
            ol.recent { @for (_, line) in lines.iter().take(RECENT_SHOWN) { (line) } }
        }
    })
}

/// A change of a feed; `has_more`: whether the feed has more changes behind this one than are shown here.
fn recent_line(feed: &IndexedFeed, event: &Event, has_more: bool, now: Time) -> Markup {
    let about = format!("/feeds/{}/about", feed.name());
    html! { li {
        span.when { (ago(event.at, now)) }
        (pill(event.kind))
        div {
            a.title href=(item_page(feed.name(), &event.id)) {
                @if event.title.is_empty() { (event.id) } @else { (text(&event.title)) }
            }
            " " span.quiet { "in " a href=(about) { (text(&feed.title())) } }
            div.quiet { (text(&event.reason)) }
            @if has_more {
                div.quiet { a href={ (about) "#happened" } { "and more in this feed" } }
            }
        }
    } }
}

/// What happened, as a word in its colour.
pub(super) fn pill(kind: EventKind) -> Markup {
    let colour = match kind {
        EventKind::Created | EventKind::Undeleted => "good",
        EventKind::Updated => "edit",
        EventKind::Deleted => "bad",
        EventKind::Rekeyed => "warn",
        _ => "",
    };
    html! { span class={ "pill " (colour) } { (kind.word()) } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bookmark_runs_with_the_address_as_it_is() {
        let link = bookmarklet("https://gw.example/a%22b&c/subscribe").into_string();
        let script = "javascript:location.href=&quot;https://gw.example/a%2522b&amp;c/subscribe&quot;\
                      +'?url='+encodeURIComponent(location.href)";
        assert!(link.contains(&format!("href=\"{script}\"")), "{link}");
    }
}
