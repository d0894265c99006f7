//! What a feed said before: its archives, and its views at some time.
//!
//! Archive documents are at `/feeds/NAME/archive/ID` (Feed History draft-05, RFC 5005). A rendition is a function of what
//! was sealed, of the archive after it and of the gateway's own addresses. It is kept under exactly that, so that a commit to
//! the feed leaves it alone.
//!
//! `?as-of=` asks the reader, the sync and the complete view what it said then. The answer is marked as one of the past: it is
//! an archive document to feed readers (`fh:archive`, its `self` is its own address, `current` leads to the feed as it is) and
//! a memento to everybody else (RFC 7089). All times between two changes have one and the same document of the reader and the
//! complete view. That of the sync view changes also where something left its window.

use super::conditional::add;
use super::feeds::{ContainerParams, unreadable};
use super::openapi::ArchivedDocument;
use super::{
    AppState, Audience, Client, DocumentForm, DocumentKind, Gone, LastModified, NotFound, Problem,
    ReadPlan, Rendition, RequestedView, ServedFeed, SharedState, Unchanged, UnwrittenDocument,
    ViewQuery, ViewRequest, Work, WorkKind, WorkRequest, kept_items,
};
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, RawQuery, State};
use axum::response::Response;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::model::{
    Archive, ArchiveId, ArchivePlace, Deletion, Family, FeedState, Format, Item, ShownAddress,
    Tick, Time,
};
use tidegate_format::render::{
    Addresses, ArchiveDocument, Container, HistoryPlace, LinkForms, ViewKind,
};
use tidegate_store::{Past, PastSelect, Select, View};

/// The age from which a time in the past is final. Before that, a change that was observed earlier may not be committed
/// yet.
const FINAL_AGE: Duration = Duration::from_secs(300);
/// The past changes by redaction only, so it may be kept for a day, as archives may.
const FINAL_CACHE_CONTROL: HeaderValue = HeaderValue::from_static("public, max-age=86400");
const RECENT_CACHE_CONTROL: HeaderValue = HeaderValue::from_static("public, no-cache");
/// RFC 7089 section 2.1.1.
const MEMENTO_DATETIME: HeaderName = HeaderName::from_static("memento-datetime");

impl AppState {
    async fn memento(
        self: &Arc<Self>,
        requested: &RequestedView<'_>,
        at: Time,
    ) -> Result<Arc<Rendition>, Problem> {
        let RequestedView { record, request, state, client, .. } = *requested;
        let kind = DocumentKind::Past { upstream: record.upstream_key(), request, at };
        let key = (record.key(kind), Some(state.revision));
        let is_list = state.format == Format::Opml;
        let make = move |app: Arc<Self>, record: ServedFeed| async move {
            app.build_memento(&record, request, at, is_list).await
        };
        // The past may have had any number of items; as many as there are now is the best guess.
        let items = kept_items(state);
        let work = Work::new(&record.name, WorkKind::Past(request.kind));
        let work_request =
            WorkRequest { records_cost: true, ..self.admission.request(client, work, items) };
        self.encoded(record, key, work_request, make).await
    }

    async fn build_memento(
        &self,
        record: &ServedFeed,
        request: ViewRequest,
        at: Time,
        is_list: bool,
    ) -> Result<Rendition, Problem> {
        let select = match request.kind {
            ViewKind::Sync if !is_list => {
                PastSelect::Since(Tick::at(at.minus(self.config.publish.window)))
            }
            ViewKind::Complete | ViewKind::Sync => PastSelect::All,
            ViewKind::Reader => PastSelect::Current,
        };
        let mut view = match self.store.past(&record.name, select, at).await? {
            Some(Past::Then(view)) => *view,
            Some(Past::Unknown { back_to }) => return Err(not_kept(at, back_to)),
            None => return Err(not_kept(at, None)),
        };
        // A list (OPML) is written whole, so that each outline keeps its position.
        let is_list = request.form.container(view.state.format) == Container::Opml;
        let whole = is_list.then(|| view.items.clone());
        let (deleted, bounds) = match request.kind {
            ViewKind::Sync => {
                cut_to_window(&mut view, at, self.config.publish.window, request.seen)?
            }
            ViewKind::Reader | ViewKind::Complete => PastWindow::default(),
        };
        view.items = whole.unwrap_or(view.items);
        let mut document = self.unwritten(record, request, view, &[]);
        (document.deleted, document.bounds) = (deleted, bounds);
        // The address says when the document came to be, so that all times at which it was in force
        // have the same bytes.
        let from = if request.kind == ViewKind::Sync { at } else { document.shown };
        let own = record.site.past(&record.name, request.kind, document.form, from, request.seen);
        document.history = HistoryPlace {
            forms: LinkForms::default(),
            archive: Some(ArchiveDocument { own: own.clone(), next: None }),
            ..HistoryPlace::default()
        };
        let mut head = HeaderMap::new();
        head.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
        add(&mut head, MEMENTO_DATETIME, &document.shown.rfc822());
        add(&mut head, header::CONTENT_LOCATION, &own);
        add(&mut head, header::LINK, &format!("<{own}>; rel=\"self\""));
        let current = record.site.view(&record.name, request.kind, document.form);
        let current = format!("<{current}>; rel=\"original latest-version current\"");
        add(&mut head, header::LINK, &current);
        document.head = head;
        self.write_document(document).await
    }
}

fn not_kept(at: Time, back_to: Option<Time>) -> Problem {
    Problem::not_found(match back_to {
        Some(back_to) => format!(
            "what this feed said at {at} is not kept, or it said nothing yet; it can be read back \
             to {back_to}"
        ),
        None => format!("what this feed said at {at} is not kept"),
    })
}

/// The answer to `?as-of=`.
pub(super) async fn answer_past(
    app: &SharedState,
    requested: &RequestedView<'_>,
    (at, vary): (Time, HeaderValue),
    headers: &HeaderMap,
) -> Result<Response, Problem> {
    let now = app.clock.now();
    if at > now {
        let detail = format!("as-of, {at}, is in the future: it is {now}");
        return Err(Problem::parameter("as-of", detail));
    }
    let rendition = app.memento(requested, at).await?;
    let is_final = at < now.minus(FINAL_AGE);
    // An earlier date says nothing here: after a redaction the same past has other bytes.
    let mut response = rendition.answer(headers, Some(LastModified::vague(rendition.shown)), None);
    let fresh = if is_final { FINAL_CACHE_CONTROL } else { RECENT_CACHE_CONTROL };
    response.headers_mut().insert(header::CACHE_CONTROL, fresh);
    response.headers_mut().insert(header::VARY, vary);
    Ok(response)
}

/// The deletions that a document of the past shows, and the `since` and `until` of its `sx:sharing`.
type PastWindow = (Vec<Deletion>, (Option<Tick>, Option<Tick>));

/// Cuts a view of every item and tombstone of then to the window that ended at `at`, or to what came in it after the tick
/// `seen`.
///
/// As in the present, the window starts at the greatest tick that has left it (SSE 1.0 section
/// 4.2.4).
fn cut_to_window(
    view: &mut View,
    at: Time,
    window: Duration,
    seen: Option<Tick>,
) -> Result<PastWindow, Problem> {
    let (state, cutoff) = (&view.state, Tick::at(at.minus(window)));
    let left = view.items.iter().map(|item| item.tick).filter(|tick| *tick < cutoff).max();
    let window_start = left.max(state.complete_start.filter(|_| state.tick.is_some()));
    let then = FeedState { window_start, ..state.clone() };
    let plan = ReadPlan::new(ViewKind::Sync, seen, &then)?;
    let Select::After(after) = plan.select() else { return Ok(PastWindow::default()) };
    let living = view.items.iter().filter(|item| !item.shared.winner.deleted);
    let borne: HashSet<String> = living.map(|item| item.published_id.clone()).collect();
    view.items.retain(|item| item.tick > after);
    let is_said = |item: &&Item| {
        item.shared.winner.deleted
            && then.format.family() == Family::Atom
            && !borne.contains(&item.published_id)
    };
    let deleted = view.items.iter().filter(is_said).map(Deletion::from).collect();
    Ok((deleted, plan.bounds(&then)))
}

/// How many times the size that it has on disk an archive takes in memory while it is rendered.
const COST_FACTOR: u64 = 8;

impl AppState {
    async fn archived(
        self: &Arc<Self>,
        record: &ServedFeed,
        place: &ArchivePlace,
        form: DocumentForm,
        client: Client,
    ) -> Result<Arc<Rendition>, Problem> {
        let secret = record.options.secret;
        let kind = DocumentKind::Archive { place: Box::new(place.clone()), form, secret };
        // What was sealed stays as it is whatever comes to the feed.
        let key = (record.key(kind), None);
        let read = place.clone();
        let make = move |app: Arc<Self>, record: ServedFeed| async move {
            let archive = app.store.archive(&record.name, &read.note.id).await?;
            let archive = archive.ok_or_else(dropped)?;
            app.write_document(document(&record, &read, archive, form)).await
        };
        // Its size on disk, with what is read and what is written of it.
        let cost = place.note.bytes.saturating_mul(COST_FACTOR);
        let work = Work::new(&record.name, WorkKind::Archive);
        let work_request = WorkRequest { client, work, cost, records_cost: false };
        self.encoded(record, key, work_request, make).await
    }
}

/// When the document last changed: when it was sealed, when the next archive came to be linked, or
/// when text was taken out of it.
fn shown(place: &ArchivePlace) -> Time {
    let next = place.next.as_ref().map(|(_, sealed)| *sealed);
    place.note.sealed.max(next.unwrap_or(Time::MIN)).max(place.note.redacted.unwrap_or(Time::MIN))
}

/// An archive document: what it has, what it names, and where it stands.
fn document(
    record: &ServedFeed,
    place: &ArchivePlace,
    archive: Archive,
    form: DocumentForm,
) -> UnwrittenDocument {
    let Archive { skeleton, items, deleted, upstream, .. } = archive;
    let site = &record.site;
    let form = form.within(skeleton.format);
    let at = |id: &ArchiveId| site.archive(&record.name, id, form);
    // The upstream's address as it was: where it moved to later changes nothing here.
    let address = ShownAddress::new(&upstream, record.options.secret);
    let site_page = skeleton.link.as_deref();
    let here = site.addresses(record, form, site_page);
    // A publisher's site is where its readers have it.
    let addresses = match site.places.load().base(&record.name) {
        Some(_) => here,
        None => {
            let (upstream, via) = (address.base(site_page), address.link().map(str::to_owned));
            Addresses { upstream, via, ..here }
        }
    };
    let history = HistoryPlace {
        forms: site.config.publish.history_links,
        complete: false,
        previous: place.note.previous.as_ref().map(at),
        archive: Some(ArchiveDocument {
            own: at(&place.note.id),
            next: place.next.as_ref().map(|(id, _)| at(id)),
        }),
    };
    let state = FeedState::untouched(skeleton.format, place.note.sealed);
    let (reader, view) = ((ViewKind::Reader, form), View { state, skeleton, items });
    let written = UnwrittenDocument::new(record, reader, view, (addresses, history));
    UnwrittenDocument { deleted, shown: shown(place), ..written }
}

/// A sealed part of the feed's history (Feed History).
#[utoipa::path(
    get,
    path = "/feeds/{name}/archive/{id}",
    operation_id = "archive",
    params(ContainerParams),
    responses(ArchivedDocument, Unchanged, NotFound, Gone)
)]
pub(super) async fn archive(
    State(app): State<SharedState>,
    (audience, client): (Audience, Client),
    path: Result<Path<(String, String)>, PathRejection>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let (name, id) = path.map_err(unreadable)?.0;
    let record = app.served_feed(&name, &audience).await?;
    let unknown =
        || Problem::not_found(format!("the feed {} has no archive of that id", record.name));
    let id = ArchiveId::new(&id).map_err(|_| unknown())?;
    let view_query = ViewQuery::read(ViewKind::Reader, query.as_deref().unwrap_or_default())?;
    if view_query.as_of.is_some() {
        let detail = "an archive is a fixed document that says the same at all times; as-of is for \
                    the reader, the sync and the complete view";
        return Err(Problem::parameter("as-of", detail));
    }
    let form = app.site.form(view_query.dialect, view_query.container);
    let place = app.store.archive_place(&record.name, &id).await?.ok_or_else(unknown)?;
    if place.note.dropped {
        return Err(dropped());
    }
    let rendition = app.archived(&record, &place, form, client).await?;
    let modified = LastModified::seen(rendition.shown, app.clock.now());
    Ok(rendition.answer(&headers, Some(modified), None))
}

fn dropped() -> Problem {
    let detail =
        "this archive is not kept any more; what lives of it is in later ones, or in the feed";
    Problem::new(StatusCode::GONE, detail)
}
