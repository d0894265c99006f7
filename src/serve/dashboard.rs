//! `/`: what the gateway does, at a glance: sums, problems, and the feeds, page by page.

mod list;
mod table;

pub(super) use list::FeedFilter;

use self::list::{DashboardQuery, FeedOrder, ListTotals, OverviewFeed};
use super::conflicts::CONTESTED_WITHIN;
use super::html::{self, ago, text};
use super::paging::PAGE;
use super::readers::KnownReader;
use super::{
    Admission, AppState, Audience, AudienceKey, Cache, Client, LastMade, Listing, Problem,
    RETRY_SOON, Reply, SharedState, SingleFlight, TypedQuery, Viewer, Work, WorkKind, WorkRequest,
    item_page, subscribe,
};
use maud::{Markup, html};
use std::cmp::Reverse;
use std::sync::Arc;
use tidegate_core::model::{Event, EventKind, FeedName, FeedRecord, FeedStanding, Time, counted};
use tidegate_status::TicksAhead;
use tidegate_store::{Epoch, KnownGateway, StoreStop};
use tokio::task::yield_now;
use tokio::time::Instant;

/// How many pages are kept of what is known of all feeds.
const PAGES_KEPT: u64 = 64;
/// How many feeds are named while the store is closed.
const NAMED: usize = 500;
/// How many events of each feed on a page are read.
const EVENTS_READ: usize = 100;
/// After so many feeds others have their turn.
const LOOKED_AT_IN_A_ROW: usize = 500;
/// What a feed takes that is looked at, and one that is shown, in bytes.
const LOOK: u64 = 1024;
const ROW: u64 = 64 * 1024;

/// What is said where the store never told which feeds have items in conflict.
const CONFLICTS_UNKNOWN: &str = "conflicts are not known just now";

/// What pages about all feeds are made of. All feeds are looked at once for all who ask at the same time, and what
/// everybody sees is shown again for a while.
pub(super) struct Overview {
    flights: SingleFlight<(AudienceKey, usize), OverviewFeeds>,
    everybodys: LastMade<OverviewFeeds>,
}

impl Overview {
    /// Not made yet.
    pub(super) fn new(admission: Arc<Admission>) -> Self {
        Self { flights: SingleFlight::new(admission), everybodys: LastMade::default() }
    }
}

/// What is known of all feeds.
struct OverviewFeeds {
    /// In the order of the reader's list.
    feeds: Vec<OverviewFeed>,
    /// Whether it is known which have items in conflict.
    knows_conflicts: bool,
    /// When it was put together.
    now: Time,
    totals: ListTotals,
    ahead: TicksAhead,
    /// What was made of it.
    pages: Cache<DashboardQuery, Markup>,
}

impl OverviewFeeds {
    /// Looks at all feeds that an audience sees.
    async fn gather(
        room: &AppState,
        listing: &Listing,
        audience: &Audience,
    ) -> Result<Self, Problem> {
        let in_conflict = room.contested.feeds(CONTESTED_WITHIN).await;
        let mut summaries = room.operator.summaries().await?;
        let now = room.clock.now();
        let (mut feeds, mut ahead) = (Vec::with_capacity(listing.len()), TicksAhead::default());
        for record in listing.seen_by(audience) {
            let state = room.store.state(&record.name).await?;
            let contested = in_conflict.as_ref().and_then(|all| all.get(&record.name).copied());
            let summary = summaries.remove(&record.name).unwrap_or_default();
            // An aggregate may be private for one of its sources.
            let record = (&**record, listing.private().contains(&record.name));
            let contested = contested.unwrap_or_default();
            let feed = OverviewFeed::new(record, summary, state.as_ref(), contested, now);
            ahead.note(&feed.name, feed.changed, now);
            feeds.push(feed);
            if feeds.len() % LOOKED_AT_IN_A_ROW == 0 {
                yield_now().await;
            }
        }
        list::place(&mut feeds, listing.seen_by(audience).map(|record| &**record));
        let totals = ListTotals::new(&feeds, now);
        let (knows_conflicts, pages) = (in_conflict.is_some(), Cache::of(PAGES_KEPT));
        Ok(Self { feeds, knows_conflicts, now, totals, ahead, pages })
    }
}

/// Looks at all feeds.
async fn look(
    room: &SharedState,
    audience: &Audience,
    client: Client,
) -> Result<Arc<OverviewFeeds>, Problem> {
    let listing = room.directory.listing().await?;
    let kept = audience.is_public().then(|| room.overview.everybodys.get(listing.list()));
    if let Some(kept) = kept.flatten() {
        return Ok(kept);
    }
    let cost = u64::try_from(listing.len()).unwrap_or(u64::MAX).saturating_mul(LOOK);
    let work = Work::of_all(WorkKind::Standing);
    let ask = WorkRequest { client, work, cost, tells: false };
    let list = listing.id();
    let make = || {
        let (room, audience) = (Arc::clone(room), audience.clone());
        async move {
            let begun = Instant::now();
            let made = Arc::new(OverviewFeeds::gather(&room, &listing, &audience).await?);
            if audience.is_public() && made.knows_conflicts {
                room.overview.everybodys.keep(listing.list(), begun, &made);
            }
            Ok(made)
        }
    };
    let key = (audience.key(), list);
    room.overview.flights.get(&key, ask, make).await
}

/// Makes a page of what is known of all feeds.
async fn show<T: Send + 'static>(
    viewer: &Viewer,
    making: impl Future<Output = Result<T, Problem>> + Send + 'static,
) -> Result<T, Problem> {
    let cost = u64::try_from(PAGE).unwrap_or(u64::MAX).saturating_mul(ROW);
    let admission = &viewer.room.admission;
    admission.run(viewer.client, &Work::of_all(WorkKind::Standing), cost, making).await
}

/// `GET /`.
pub(super) async fn page(viewer: Viewer, TypedQuery(query): TypedQuery<DashboardQuery>) -> Reply {
    if let Some(reader) = viewer.audience.reader() {
        return own_page(&viewer, reader).await;
    }
    let Viewer { room, audience, .. } = &viewer;
    let condition = room.store.condition();
    if let Some(stop) = &condition.stop {
        return Ok(viewer.page("Feeds", &while_stopped(room, audience, stop).await));
    }
    let (known, making) = (look(room, audience, viewer.client).await?, Arc::clone(room));
    let page = match known.pages.get(&query) {
        Some(page) => page,
        None => show(&viewer, async move { made(&making, &known, query).await }).await?,
    };
    let content = html! {
        @if let Err(why) = condition.check_intake() { p.bad { (why) "." } }
        @if audience.is_operator() {
            @for difference in condition.differences() {
                p.bad { "Settings differ: " (difference) "." }
            }
            @if let Some(said) = condition.clock_difference() { p.bad { (said) "." } }
            (gateways(&condition.gateways, room.log.newest()))
        }
        (page)
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
async fn while_stopped(room: &AppState, audience: &Audience, stop: &StoreStop) -> Markup {
    let listing = room.directory.listing().await.unwrap_or_default();
    let served = listing.seen_by(audience).filter(|record| record.standing != FeedStanding::Gone);
    html! {
        p.bad { (stop) "." }
        p { "Feeds are served as they were made last, as far as that is in memory; nothing is polled." }
        ul { @for record in served.take(NAMED) {
            li { a href={ "/feeds/" (record.name) } { (record.name) } }
        } }
    }
}

/// The names of the feeds that are looked for, in their order; without a filter also those that were deleted. Fails
/// where that depends on which feeds have items in conflict and this is not known.
pub(super) async fn find(
    room: &SharedState,
    client: Client,
    search: &str,
    filter: Option<FeedFilter>,
) -> Result<Vec<FeedName>, Problem> {
    let known = look(room, &Audience::operator(room), client).await?;
    if !known.knows_conflicts && filter.is_some_and(FeedFilter::needs_conflicts) {
        return Err(Problem::later(CONFLICTS_UNKNOWN, RETRY_SOON));
    }
    let is_found = |feed: &&OverviewFeed| {
        filter.is_none_or(|filter| filter.admits(feed)) && feed.contains(search)
    };
    let mut names: Vec<FeedName> =
        known.feeds.iter().filter(is_found).map(|feed| feed.name.clone()).collect();
    names.sort();
    Ok(names)
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

async fn made(
    room: &AppState,
    known: &OverviewFeeds,
    query: DashboardQuery,
) -> Result<Arc<Markup>, Problem> {
    // Somebody else may have had it made meanwhile.
    if let Some(page) = known.pages.get(&query) {
        return Ok(page);
    }
    let list = list::select(&known.feeds, &query);
    let mut events = Vec::with_capacity(list.feeds.len());
    for feed in &list.feeds {
        events.push(room.store.events(&feed.name, EVENTS_READ).await?);
    }
    let polls = room.operator.poller.totals();
    let page = html! {
        @if !known.ahead.is_empty() { p.bad { (known.ahead) "." } }
        @if !known.knows_conflicts { p.bad { (CONFLICTS_UNKNOWN) "." } }
        (table::content(known, &query, &list, &events, &polls))
        @if room.origins.admits_any() { (bookmarklet(&room.site.at(subscribe::PATH))) }
    };
    let page = Arc::new(page);
    known.pages.insert(query, Arc::clone(&page));
    Ok(page)
}

// `/t/TOKEN/`: the feeds of one reader, with the addresses to give to a feed reader.

/// How many feeds are listed; the list of subscriptions has all.
const OWN_SHOWN: usize = 1_000;

/// The page of a reader.
async fn own_page(viewer: &Viewer, reader: &KnownReader) -> Reply {
    let (room, audience) = (&*viewer.room, &viewer.audience);
    let listing = room.directory.listing().await?;
    let served = |record: &&Arc<FeedRecord>| record.standing != FeedStanding::Gone;
    let (mut rows, mut more) = (Vec::new(), 0_usize);
    for record in listing.seen_by(audience).filter(served) {
        if rows.len() >= OWN_SHOWN {
            more += 1;
            continue;
        }
        let shown = room.store.state(&record.name).await?.map(|state| state.updated_at);
        let address = format!("/feeds/{}", record.name);
        rows.push(html! { tr {
            td { a href={ (address) "/about" } { (text(&record.shown_title())) } }
            td { @match shown { Some(at) => (ago(at, room.clock.now())), None => "not read yet" } }
            td { a href=(address) { code { (audience.site().at(&address)) } } }
        } });
    }
    let content = html! {
        p { "What " (reader.name()) " may read here. The addresses are a key to these feeds: whoever has one \
            can read the feed. Give each to your feed reader, or all of them as "
            a href="/subscriptions.opml" { "a list of subscriptions (OPML)" } "." }
        @if rows.is_empty() { p.empty { "There is no feed for this token yet." } }
        @else {
            (html::table(&["Feed", "Last change", "Address"], &html! { @for row in &rows { (row) } }))
        }
        @if more > 0 { p.quiet { (more) " more are in the list of subscriptions." } }
        @if room.origins.admits_any() { (bookmarklet(&audience.site().at(subscribe::PATH))) }
    };
    Ok(viewer.page("Your feeds", &content))
}

// `/recent`: what changed lately in all feeds.

/// How many changes are shown, and how many of one feed at most, so that a busy one hides no other.
const RECENT_SHOWN: usize = 100;
const RECENT_EACH: usize = 10;

/// `GET /recent`.
pub(super) async fn recent(viewer: Viewer) -> Reply {
    let (known, making) =
        (look(&viewer.room, &viewer.audience, viewer.client).await?, Arc::clone(&viewer.room));
    let content = show(&viewer, async move { make_recent(&making, &known.feeds).await }).await?;
    Ok(viewer.page("Recent changes", &content))
}

async fn make_recent(room: &AppState, feeds: &[OverviewFeed]) -> Result<Markup, Problem> {
    let order = FeedOrder::Changed;
    let newest = list::select(feeds, &DashboardQuery { order, ..DashboardQuery::default() });
    let (mut lines, now) = (Vec::new(), room.clock.now());
    for feed in &newest.feeds {
        let events = room.store.events(&feed.name, RECENT_EACH + 1).await?;
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
fn recent_line(feed: &OverviewFeed, event: &Event, has_more: bool, now: Time) -> Markup {
    let about = format!("/feeds/{}/about", feed.name);
    html! { li {
        span.when { (ago(event.at, now)) }
        (pill(event.kind))
        div {
            a.title href=(item_page(&feed.name, &event.id)) {
                @if event.title.is_empty() { (event.id) } @else { (text(&event.title)) }
            }
            " " span.quiet { "in " a href=(about) { (text(&feed.title)) } }
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
