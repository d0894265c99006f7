//! The feed documents: reader, sync and complete view, and the headers of all feed documents
//! (CONTRACT, Addresses).

use super::conditional::{add, describe, tags};
use super::delta::{DELTA_BASE, Delta, IM};
use super::negotiate::container;
use super::openapi::{CompleteDocument, Delta as Changes, ReaderDocument, SyncDocument};
use super::query::{CONTAINERS, DIALECTS};
use super::ready::IsCurrent;
use super::views::RequestedView;
use super::{
    AppState, Audience, Client, Gone, LastModified, Later, NotFound, Problem, ServedFeed,
    SharedState, Unchanged, ViewQuery, ViewRequest, delta, past, reading,
};
use axum::extract::State;
use axum::response::Response;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use std::sync::Arc;
use tidegate_core::model::{FeedRecord, Revision};
use tidegate_core::sup::RELATION;
use tidegate_format::render::{Addresses, Container, HistoryPlace, ViewKind};
use tidegate_status::describe;
use tidegate_status::schema::{text, words};
use utoipa::IntoParams;
use utoipa::openapi::schema::{KnownFormat, SchemaFormat};

/// Of what can change: who was told of a change (by SUP, the hub or the change log) must not get what an
/// intermediary kept from before, and a 304 is cheap.
const FRESH: HeaderValue = HeaderValue::from_static("public, no-cache");
/// An archive changes only where text is taken out of it, which is to be seen within a day; the newest one once more, when
/// the next one comes to be linked.
const ARCHIVE_FRESH: HeaderValue = HeaderValue::from_static("public, max-age=86400");
/// A delta is no answer for anybody else: only caches that know what `IM` means may keep it, which
/// `im` tells them in spite of `no-store` (RFC 3229 section 10.8.2).
const DELTA_FRESH: HeaderValue = HeaderValue::from_static("no-store, im, no-cache");
/// What an answer of the past or of an archive depends on beside its address, and where that does not name the container.
const VARY_PLAIN: HeaderValue = HeaderValue::from_static("Accept-Encoding");
const VARY_CHOSEN_PLAIN: HeaderValue = HeaderValue::from_static("Accept, Accept-Encoding");
pub(super) const X_SUP_ID: HeaderName = HeaderName::from_static("x-sup-id");
/// Answer headers that scripts of other origins may read (CORS).
const EXPOSED: HeaderValue = HeaderValue::from_static("Delta-Base, ETag, IM, Link, X-SUP-ID");

/// A path that does not decode to text names nothing.
pub(super) fn unreadable<T>(_: T) -> Problem {
    Problem::not_found("the address does not decode to UTF-8, so it names nothing here")
}

/// What a view is made of.
type ViewInput = (State<SharedState>, (Audience, Client), ServedFeed, Uri, Method, HeaderMap);

describe! {
    /// A container.
    pub(super) ContainerWord: words(CONTAINERS.map(|(word, _)| word));
    /// A container, or the page.
    ReaderForm: words(CONTAINERS.map(|(word, _)| word).into_iter().chain(["html"]));
    /// A dialect.
    DialectWord: words(DIALECTS.map(|(word, _)| word));
    /// A time.
    Moment: text().format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)));
}

/// How a feed document is written.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "see ViewQuery, which reads it")]
pub(super) struct ContainerParams {
    /// The container; by default the upstream's family.
    #[param(rename = "as", inline)]
    container: Option<ContainerWord>,
    /// The dialect of the sync markup.
    #[param(rename = "sx", inline)]
    dialect: Option<DialectWord>,
}

/// The reader view: what a feed reader is pointed at.
#[utoipa::path(get, path = "/feeds/{name}", operation_id = "readerView",
    params(
        ("as" = inline(Option<ReaderForm>), Query, description = "The container; by default the upstream's family."),
        ("sx" = inline(Option<DialectWord>), Query, description = "The dialect of the sync markup."),
        ("as-of" = inline(Option<Moment>), Query, description = "The view as it was then."),
    ),
    responses(ReaderDocument, Unchanged, Changes, NotFound, Gone, Later))]
pub(super) async fn reader_view(input: ViewInput) -> Result<Response, Problem> {
    view(ViewKind::Reader, input).await
}

/// The sync view: the partial feed of SSE.
#[utoipa::path(get, path = "/feeds/{name}/sync", operation_id = "syncView",
    params(
        ContainerParams,
        ("as-of" = inline(Option<Moment>), Query, description = "The view as it was then."),
        ("since" = Option<String>, Query, description = "Only what came after this `until` of an earlier answer.",
            pattern = "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$"),
    ),
    responses(SyncDocument, Unchanged, Changes, NotFound, Gone, Later))]
pub(super) async fn sync_view(input: ViewInput) -> Result<Response, Problem> {
    view(ViewKind::Sync, input).await
}

/// Every item that lives, and every tombstone that is kept.
#[utoipa::path(get, path = "/feeds/{name}/complete", operation_id = "completeView",
    params(ContainerParams, ("as-of" = inline(Option<Moment>), Query, description = "The view as it was then.")),
    responses(CompleteDocument, Unchanged, NotFound, Gone, Later))]
pub(super) async fn complete_view(input: ViewInput) -> Result<Response, Problem> {
    view(ViewKind::Complete, input).await
}

async fn view(
    kind: ViewKind,
    (State(app), (audience, client), record, uri, method, headers): ViewInput,
) -> Result<Response, Problem> {
    let (headers, query) = (&headers, uri.query().unwrap_or_default());
    if kind == ViewKind::Reader && reading::is_asked_for(query, headers)? {
        return Box::pin(reading::page(&app, (&audience, client), &record, headers)).await;
    }
    app.note_reader(&record, client);
    let view_query = ViewQuery::read(kind, query)?;
    let state = app.store.shown_state(&record.name).await?.ok_or_else(Problem::unread_feed)?;
    let own = Container::of(state.format);
    let chosen = || Some(container(headers, own)).filter(|chosen| *chosen != own);
    let form = app.site.form(view_query.dialect, view_query.container.or_else(chosen));
    let request = ViewRequest { kind, form, seen: view_query.since };
    let view = RequestedView::new(&record, request, &state, client)?;
    let is_named = view_query.container.is_some();
    if let Some(at) = view_query.as_of {
        let vary = if is_named { VARY_PLAIN } else { VARY_CHOSEN_PLAIN };
        return Box::pin(past::answer_past(&app, &view, (at, vary), headers)).await;
    }
    let rendition = app.view(&view).await?;
    let modified = LastModified::seen(rendition.shown, app.clock.now());
    let again =
        (Arc::downgrade(&rendition), Some(view.key(None).0), is_current(&record, state.revision));
    let mut response = rendition.answer(headers, Some(modified), Some(again));
    response.headers_mut().insert(header::VARY, vary(&app, kind, is_named));
    // "The server has fulfilled a GET request" is what 226 says (RFC 3229 section 10.4.1).
    if response.status() == StatusCode::OK
        && method == Method::GET
        && delta::is_wanted(headers)
        && let Some(delta) = Box::pin(app.delta(&view, &rendition, tags(headers))).await
    {
        return Ok(changes(response, &delta, headers));
    }
    Ok(response)
}

/// A view is current while its feed has the same revision. Each use is recorded: the reader of an on-demand feed, and a
/// hit.
fn is_current(record: &ServedFeed, revision: Revision) -> IsCurrent {
    let (name, is_made) = (record.name.clone(), record.on_demand.is_some());
    Arc::new(move |app, listing, client| {
        let is_same = app.store.revision(&name) == Some(revision);
        if is_same
            && is_made
            && let Some(record) = listing.get(&name)
        {
            app.note_asked_for(record);
            app.note_reader(record, client);
        }
        if is_same {
            app.metrics.hits.inc();
        }
        is_same
    })
}

impl AppState {
    /// Notes who reads a feed that a request made.
    fn note_reader(&self, record: &FeedRecord, client: Client) {
        if record.on_demand.is_some() {
            self.operator.demand.note_client(&record.url, client, self.clock.now());
        }
    }
}

/// What an answer with a view depends on beside its address. A browser gets the reader view as a page. `is_named`: the
/// address names the container.
fn vary(app: &AppState, kind: ViewKind, is_named: bool) -> HeaderValue {
    let is_page_too = kind == ViewKind::Reader;
    HeaderValue::from_static(match (is_named, app.has_deltas(kind), is_page_too) {
        (true, false, _) => return VARY_PLAIN,
        (true, true, _) => "A-IM, Accept-Encoding",
        (false, false, false) => return VARY_CHOSEN_PLAIN,
        (false, false, true) => "Accept, Accept-Encoding, Sec-Fetch-Dest",
        (false, true, false) => "A-IM, Accept, Accept-Encoding",
        (false, true, true) => "A-IM, Accept, Accept-Encoding, Sec-Fetch-Dest",
    })
}

/// The answer that carries a delta (RFC 3229 section 10.4.1). `whole`: that which carries the whole
/// document, whose validators they are: the client has it once it has merged the delta.
fn changes(whole: Response, delta: &Delta, request_headers: &HeaderMap) -> Response {
    let mut headers = whole.into_parts().0.headers;
    let encoding = delta.rendition.encoding(request_headers);
    let body = delta.rendition.body(encoding);
    // The whole document may be there in an encoding in which the delta is not.
    headers.remove(header::CONTENT_ENCODING);
    describe(&mut headers, body, delta.rendition.media_type, encoding);
    headers.insert(header::CACHE_CONTROL, DELTA_FRESH);
    headers.insert(IM, HeaderValue::from_static(delta::FEED));
    add(&mut headers, DELTA_BASE, &delta.base);
    body.answer(StatusCode::IM_USED, headers)
}

/// The headers of every answer with a document: a view of this kind, or an archive. `sup`: the feed's address in SUP.
pub(super) fn head(
    kind: ViewKind,
    container: Container,
    (addresses, history): (&Addresses, &HistoryPlace),
    sup: Option<&str>,
) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let kind = Some(kind).filter(|_| history.archive.is_none());
    // An archive that another one follows does not change any more.
    let is_fixed = history.archive.as_ref().is_some_and(|archive| archive.next.is_some());
    headers.insert(header::CACHE_CONTROL, if is_fixed { ARCHIVE_FRESH } else { FRESH });
    headers.insert(header::VARY, VARY_PLAIN);
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
    let media_type = container.media_range();
    let mut links = Vec::new();
    let mut link = |address: &str, rel: &str| {
        links.push(format!("<{address}>; rel=\"{rel}\"; type=\"{media_type}\""));
    };
    let own = match kind {
        Some(ViewKind::Reader) => Some(&addresses.reader),
        Some(ViewKind::Sync) => Some(&addresses.sync),
        Some(ViewKind::Complete) => Some(&addresses.complete),
        None => history.archive.as_ref().map(|archive| &archive.own),
    };
    own.into_iter().for_each(|own| link(own, "self"));
    if matches!(kind, Some(ViewKind::Reader | ViewKind::Complete)) {
        link(&addresses.sync, "related");
    }
    if kind != Some(ViewKind::Complete) {
        link(&addresses.complete, "complete");
    }
    for (relation, address) in history.links(&addresses.reader) {
        link(address, relation);
    }
    if let Some(sup) = &addresses.sup {
        let parameters = "type=\"application/json\"; title=\"Updates Feed\"";
        links.push(format!("<{sup}>; rel=\"{RELATION}\"; {parameters}"));
    }
    // An archive is nothing to subscribe to.
    if let (Some(hub), Some(_)) = (&addresses.hub, kind) {
        links.push(format!("<{hub}>; rel=\"hub\""));
    }
    // One field for all (RFC 8288 section 3): each field more costs every answer.
    add(&mut headers, header::LINK, &links.join(", "));
    if let Some(sup) = sup {
        add(&mut headers, X_SUP_ID, sup);
    }
    headers
}
