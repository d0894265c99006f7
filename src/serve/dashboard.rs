//! `/`: what the gateway does, at a glance.

use super::address::shown;
use super::admission::{Admission, Work, WorkKind};
use super::client::Client;
use super::explain::{self, SOURCES_SHOWN};
use super::html::{self, moment, outward, text};
use super::probes::ticks_ahead;
use super::problem::Problem;
use super::shared_work::{SingleFlight, WorkRequest};
use super::{AppState, SharedState, keeping};
use crate::model::{
    EventKind, FeedName, FeedRecord, FeedStanding, FeedState, HubTrust, ListPlace, Revision,
    ShownAddress, counted, listed, shown_text,
};
use crate::status::{FeedStatus, FinishedPoll, PollEnding};
use crate::store::StoreStop;
use axum::extract::State;
use axum::response::Response;
use maud::{Markup, PreEscaped, html};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How many feeds the dashboard shows; the API lists all of them.
const FEEDS_SHOWN: usize = 500;
/// How many further folders of a feed it shows.
const PLACES_SHOWN: usize = 4;
/// What a feed takes that is listed, in bytes.
const ROW: u64 = 4 * 1024;

/// The dashboard, which is made once for all who ask for it at the same time, and one ledger after the
/// other.
pub(super) struct Overview {
    pages: SingleFlight<(), String, Problem>,
    /// The revisions of which it was made last: what it takes of their ledgers is remembered.
    seen: Mutex<HashMap<FeedName, Revision>>,
}

impl Overview {
    /// Not made yet.
    pub(super) fn new(admission: Arc<Admission>) -> Self {
        Self { pages: SingleFlight::new(admission), seen: Mutex::default() }
    }

    fn seen(&self) -> MutexGuard<'_, HashMap<FeedName, Revision>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What telling how these feeds stand takes: a row of each, and the largest of the ledgers that are to be
/// read, those that something waits in and that changed. Answers their revisions as well.
pub(super) async fn cost(room: &AppState) -> Result<(u64, HashMap<FeedName, Revision>), Problem> {
    let (mut rows, mut ledger, mut revisions) = (0_u64, 0_u64, HashMap::new());
    for record in room.directory.listing().await?.values() {
        rows = rows.saturating_add(ROW);
        let Some(state) = room.store.state(&record.name).await? else { continue };
        let is_read = room.overview.seen().get(&record.name) != Some(&state.revision);
        if is_read && state.next_decision_at.is_some() {
            let items = u64::from(state.living) + u64::from(state.tombstones);
            let work = Work::new(&record.name, WorkKind::Ledger);
            ledger = ledger.max(room.admission.cost_of(&work, items));
        }
        revisions.insert(record.name.clone(), state.revision);
    }
    Ok((rows.saturating_add(ledger), revisions))
}

/// `GET /`.
pub(super) async fn page(
    State(room): State<SharedState>,
    client: Client,
) -> Result<Response, Problem> {
    let condition = room.store.condition();
    if let Some(stop) = &condition.stop {
        return Ok(html::page("Feeds", &while_stopped(&room, stop).await));
    }
    let (cost, revisions) = cost(&room).await?;
    let ask = WorkRequest { client, work: Work::of_all(WorkKind::Standing), cost, tells: false };
    let make = || {
        let room = Arc::clone(&room);
        async move {
            let page = made(&room).await.map_err(Arc::new)?;
            *room.overview.seen() = revisions;
            Ok(Arc::new(page))
        }
    };
    let page = room.overview.pages.get(&(), ask, make).await?;
    let ahead = ticks_ahead(&room).await?;
    let content = html! {
        @if let Err(why) = condition.check_intake() { p.bad { (why) "." } }
        @if !ahead.is_empty() { p.bad { (ahead) "." } }
        (PreEscaped(page.as_str()))
    };
    Ok(html::page("Feeds", &content))
}

/// What is said while the store is closed: why, and which feeds there are.
async fn while_stopped(room: &AppState, stop: &StoreStop) -> Markup {
    let listing = room.directory.listing().await.unwrap_or_default();
    let served = listing.values().filter(|record| record.standing != FeedStanding::Gone);
    html! {
        p.bad { (stop) "." }
        p { "Feeds are served as they were made last, as far as that is in memory; nothing is polled." }
        ul { @for record in served.take(FEEDS_SHOWN) {
            li { a href={ "/feeds/" (record.name) } { (record.name) } }
        } }
        p.quiet { a href="/metrics" { "Metrics" } " · " a href="/readyz" { "Readiness" } }
    }
}

async fn made(room: &AppState) -> Result<String, Problem> {
    let feeds = room.operator.list().await?;
    let all = feeds.len();
    let listing = room.directory.listing().await?;
    let feeds = in_order(feeds, listing.values().map(|record| &**record));
    let mut rows = Vec::with_capacity(all.min(FEEDS_SHOWN));
    for (status, place) in feeds.into_iter().take(FEEDS_SHOWN) {
        let state = room.store.state(&status.name).await?;
        let contested = room.contested.count(&status.name).await?;
        rows.push(Row { status, state, contested, place });
    }
    Ok(table(&rows, all, room.operator.ready()).into_string())
}

/// A feed with what is said of it.
struct Row {
    status: FeedStatus,
    state: Option<FeedState>,
    /// How many of its items are in conflict.
    contested: u32,
    place: ListPlacement,
}

/// Where the reader's own list has a feed, and what it calls it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct ListPlacement {
    /// What it is called there.
    label: Option<String>,
    /// The folder that it stands in first.
    folder: String,
    /// The others.
    also: Vec<String>,
}

/// Feeds in the order of the list of subscriptions, each where it comes first.
fn in_order<'a>(
    feeds: Vec<FeedStatus>,
    records: impl Iterator<Item = &'a FeedRecord>,
) -> Vec<(FeedStatus, ListPlacement)> {
    let mut places: HashMap<&FeedName, (usize, ListPlacement)> = HashMap::new();
    for (at, (record, place)) in listed(records).into_iter().enumerate() {
        let folder = place.map(folder).unwrap_or_default();
        match places.entry(&record.name) {
            Entry::Vacant(first) => {
                let label = place.and_then(|place| place.label.name());
                let label = label.and_then(|_| record.shown_label(place).text);
                first.insert((at, ListPlacement { label, folder, also: Vec::new() }));
            }
            Entry::Occupied(mut known) => known.get_mut().1.also.push(folder),
        }
    }
    // What the list does not know yet comes last.
    let placed = feeds.into_iter().map(|status| {
        let (at, place) =
            places.remove(&status.name).unwrap_or((usize::MAX, ListPlacement::default()));
        (at, status, place)
    });
    let mut placed: Vec<_> = placed.collect();
    placed.sort_by_key(|(at, _, _)| *at);
    placed.into_iter().map(|(_, status, place)| (status, place)).collect()
}

/// The folders around a place, as a page shows them.
fn folder(place: &ListPlace) -> String {
    let names = place.folders.iter().map(|folder| {
        let name = folder.label.heading().map(|name| shown_text(name, None));
        name.unwrap_or_else(|| "(no name)".to_owned())
    });
    names.collect::<Vec<_>>().join(" / ")
}

/// The heading before a row: the folder, where it is another one than that of the row before.
fn heading(rows: &[Row], at: usize) -> Option<&str> {
    let folder = |at: usize| rows.get(at).map(|row| row.place.folder.as_str());
    let before = at.checked_sub(1).and_then(folder).unwrap_or_default();
    folder(at).filter(|folder| *folder != before)
}

fn table(rows: &[Row], all: usize, ready: Result<(), String>) -> Markup {
    html! {
        @if let Err(why) = ready { p.bad { "Not polling: " (why) } }
        @if rows.is_empty() {
            p { "There are no feeds yet. Add one with " code { "PUT /api/v1/feeds/NAME" }
                " or in the configuration file." }
        } @else {
            div.wide { table {
                thead { tr {
                    th { "Feed" } th { "State" } th { "Last poll" } th { "Next poll" }
                    th { "Current" } th { "Kept" } th { "Tombstones" } th { "Archives" } th { "Until" }
                } }
                tbody { @for (at, one) in rows.iter().enumerate() {
                    @if let Some(folder) = heading(rows, at) {
                        tr { th.folder colspan="9" {
                            @if folder.is_empty() { "In no folder" } @else { (text(folder)) }
                        } }
                    }
                    (row(one))
                } }
            } }
        }
        @if all > rows.len() {
            p.quiet { (rows.len()) " of " (all) " feeds are shown; the API lists all of them." }
        }
        p.quiet {
            a href="/subscriptions.opml" { "Subscriptions (OPML)" } " · "
            a href="/metrics" { "Metrics" }
        }
    }
}

fn row(row: &Row) -> Markup {
    let Row { status, state, contested, place } = row;
    let state = state.as_ref();
    let name = &status.name;
    html! { tr {
        td {
            a href={ "/feeds/" (name) } {
                @match &place.label { Some(label) => (text(label)), None => (name) }
            } " "
            @if place.label.is_some() { span.quiet { (name) } " " }
            span.quiet {
                a href={ "/feeds/" (name) "/sync" } { "sync" } " · "
                a href={ "/feeds/" (name) "/complete" } { "complete" } " · "
                a href={ "/feeds/" (name) "/conflicts" } { "conflicts" } " · "
                a href={ "/feeds/" (name) "/about" } { "why" }
            }
            br;
            span.quiet { (origin(status)) }
            @for folder in place.also.iter().take(PLACES_SHOWN) {
                br; span.quiet { "also in " @if folder.is_empty() { "no folder" } @else { (text(folder)) } }
            }
            @if let Some(moved) = &status.polling.moved_to {
                br; span.quiet { "moved to " (text(&shown(moved, status.options.secret))) }
            }
        }
        td {
            (standing(status, state))
            @if *contested > 0 {
                br; a.bad href={ "/feeds/" (name) "/conflicts" } { (contested) " in conflict" }
            }
        }
        @if status.url.is_empty() {
            td colspan="2" { @if let Some(words) = explain::made(status) { span.quiet { (text(&words)) } } }
        } @else {
            td { @match status.polling.polls.front() {
                Some(note) => (last(note)),
                None => span.quiet { "not yet" },
            } }
            td { @match &status.polling.next {
                Some(next) => { (moment(next.at)) br; span.quiet { (text(&next.reason)) } },
                None => span.quiet { "none" },
            } }
        }
        @match state {
            Some(state) => {
                td.number { (state.current) }
                td.number { (state.living) }
                td.number { (state.tombstones) }
                td.number { (keeping::archives(name, state)) }
                td { @if let Some(tick) = state.tick { (moment(tick.time())) } }
            },
            None => { td colspan="5" { span.quiet {
                @if status.url.is_empty() { "no items yet" } @else { "no document yet" }
            } } },
        }
    } }
}

/// Where a feed's items come from.
pub(super) fn origin(status: &FeedStatus) -> Markup {
    let sharing = &status.options.sharing;
    let upstream = ShownAddress::new(&status.url, status.options.secret);
    html! {
        @if sharing.is_aggregate() {
            "gathers "
            @for (at, source) in sharing.sources.iter().take(SOURCES_SHOWN).enumerate() {
                @if at > 0 { ", " }
                a href={ "/feeds/" (source) } { (source) }
            }
            @if sharing.sources.len() > SOURCES_SHOWN {
                " and " (sharing.sources.len() - SOURCES_SHOWN) " more"
            }
        } @else if status.url.is_empty() {
            "made here"
        } @else {
            @if sharing.local { "made here, and shared with " }
            (outward(upstream.link(), upstream.text()))
        }
    }
}

/// How a feed stands.
pub(super) fn standing(status: &FeedStatus, state: Option<&FeedState>) -> Markup {
    let held = status.held.as_deref();
    let held = held.or_else(|| state.and_then(|s| s.hold.as_ref()).map(|h| h.reason.as_str()));
    html! {
        @match status.standing {
            FeedStanding::Active if status.polling.failures == 0 => span.good { "active" },
            FeedStanding::Active => span.bad { "failing, " (status.polling.failures) " in a row" },
            other => span.quiet { (other.name()) },
        }
        @if let Some(held) = held { br; span.bad { "held: " (text(held)) } }
        @if status.hub.as_ref().is_some_and(|hub| hub.trust == HubTrust::Distrusted) {
            br; span.bad { "its hub is not believed" }
        }
        @if let Some(note) = &status.gathered {
            @if let Some(error) = &note.error { br; span.bad { "not up to date: " (text(error)) } }
            @if note.troubled > 0 {
                br; a.bad href={ "/feeds/" (status.name) "/about#sources" } {
                    "nothing new from " (note.troubled) " of " (status.options.sharing.sources.len())
                }
            }
            @if !note.left_out.is_empty() {
                br; a.bad href={ "/feeds/" (status.name) "/about#left-out" } {
                    (note.left_out.len()) " not taken over"
                }
            }
        }
        @if status.pending_absences > 0 {
            br; span.quiet { a href={ "/feeds/" (status.name) "/about#missing" } {
                (status.pending_absences) " missing, to be confirmed"
            } }
        }
    }
}

/// What came of a poll.
pub(super) fn last(note: &FinishedPoll) -> Markup {
    let word = |kind: EventKind| match kind {
        EventKind::Created => "new",
        EventKind::Updated => "changed",
        EventKind::Rekeyed => "re-keyed",
        other => other.name(),
    };
    let number = |kind| note.counts.get(&kind).copied().unwrap_or(0);
    let failure = note.failure.as_ref();
    html! {
        (moment(note.at)) " "
        @if note.outcome == PollEnding::Failed {
            span.bad { "failed" }
            @if let Some(failure) = failure { span.quiet { " (" (failure.blame) ")" } }
        } @else {
            (note.outcome.name().replace('_', " "))
        }
        @for kind in EventKind::ALL.into_iter().filter(|kind| number(*kind) > 0) {
            " · " (number(kind)) " " (word(kind))
        }
        @if let Some(failure) = failure { br; span.quiet { (text(&failure.error)) } }
        br;
        span.quiet { (note.took.as_millis()) " ms, " (counted(note.bytes, "byte")) }
    }
}
