//! The feed documents: reader, sync and complete view, and the headers of all feed documents
//! (CONTRACT, Addresses).

use super::audience::{Audience, ServedFeed};
use super::client::Client;
use super::conditional::{Representation, add, describe, tags};
use super::delta::{self, DELTA_BASE, Delta, IM};
use super::negotiate::container;
use super::openapi::{
    CompleteDocument, Delta as Changes, Gone, Later, NotFound, ReaderDocument, SyncDocument,
    Unchanged,
};
use super::problem::Problem;
use super::query::{self, CONTAINERS, DIALECTS, ViewQuery};
use super::ready::{AnswerBasis, PlainRead};
use super::rendition::Rendition;
use super::rendition_cache::{RenditionCache, ViewRequest};
use super::{AppState, SharedState, past, reading};
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::Response;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use std::sync::Arc;
use tidegate_core::model::ArchivePlace;
use tidegate_core::sup::RELATION;
use tidegate_format::render::{Addresses, Container, HistoryPlace, ViewKind};
use tidegate_status::describe;
use tidegate_status::schema::{text, words};
use utoipa::IntoParams;
use utoipa::openapi::schema::{KnownFormat, SchemaFormat};

/// The name of a feed in an address, before it is checked.
pub(super) type NameInPath = Result<Path<String>, PathRejection>;

/// Of what can change: who was told of a change (by SUP, the hub or the change log) must not get what an
/// intermediary kept from before, and a 304 is cheap.
const FRESH: HeaderValue = HeaderValue::from_static("public, no-cache");
/// An archive changes only where text is taken out of it, which is to be seen within a day.
const ARCHIVE_FRESH: HeaderValue = HeaderValue::from_static("public, max-age=86400");
/// A delta is no answer for anybody else: only caches that know what `IM` means may keep it, which
/// `im` tells them in spite of `no-store` (RFC 3229 section 10.8.2).
const DELTA_FRESH: HeaderValue = HeaderValue::from_static("no-store, im, no-cache");
/// What an answer of the past or of an archive depends on beside its address, and where that does not name the container.
const VARY_PLAIN: HeaderValue = HeaderValue::from_static("Accept-Encoding");
const VARY_CHOSEN_PLAIN: HeaderValue = HeaderValue::from_static("Accept, Accept-Encoding");
const X_SUP_ID: HeaderName = HeaderName::from_static("x-sup-id");
/// What scripts of other sites may read beside the body.
const EXPOSED: HeaderValue = HeaderValue::from_static("Delta-Base, ETag, IM, Link, X-SUP-ID");

/// A path that does not decode to text names nothing.
pub(super) fn unreadable<T>(_: T) -> Problem {
    Problem::not_found("the address does not decode to UTF-8, so it names nothing here")
}

/// What a view is made of.
type ViewInput = (State<SharedState>, (Audience, Client), NameInPath, Uri, Method, HeaderMap);

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
    (State(state), (audience, client), name, uri, method, headers): ViewInput,
) -> Result<Response, Problem> {
    let (room, headers) = (&*state, &headers);
    let route = match kind {
        ViewKind::Sync => "/feeds/{name}/sync",
        ViewKind::Complete => "/feeds/{name}/complete",
        ViewKind::Reader => "/feeds/{name}",
    };
    let name = name.map_err(unreadable)?.0;
    if kind == ViewKind::Reader && reading::is_asked_for(uri.query().unwrap_or_default(), headers)?
    {
        let record = room.directory.served(&name, &audience).await?;
        return reading::page(&state, (&audience, client), &record).await;
    }
    // As it was before anything was read: what changes meanwhile is seen by it.
    let listing = room.directory.listing().await?;
    let forgotten = room.shelf.forgotten();
    let record = room.directory.served(&name, &audience).await?;
    if record.on_demand.is_some() {
        room.asked.note_client(&record.url, client, room.clock.now());
    }
    let state = room.store.watch_state(&record.name);
    let asked = ViewQuery::read(kind, uri.query().unwrap_or_default())?;
    let container = match asked.container {
        Some(named) => Some(named),
        None => chosen(room, &record, headers).await?,
    };
    let wish = ViewRequest {
        kind,
        dialect: room.site.dialect(asked.dialect, container),
        container,
        seen: asked.since,
    };
    let is_named = asked.container.is_some();
    if let Some(at) = asked.as_of {
        let vary = if is_named { VARY_PLAIN } else { VARY_CHOSEN_PLAIN };
        return past::answer_past(room, &record, (wish, client), (at, vary), headers).await;
    }
    let rendition = room.shelf.rendition(&record, wish, client).await?;
    let which = Resource::View { kind, is_named };
    let mut response = answer(room, which, &rendition, headers);
    // "The server has fulfilled a GET request" is what 226 says (RFC 3229 section 10.4.1).
    if response.status() == StatusCode::OK && method == Method::GET && delta::is_wanted(headers) {
        let delta = room.shelf.delta(&record, wish, &rendition, tags(headers), client).await;
        if let Some(delta) = delta {
            return Ok(changes(response, &delta, headers));
        }
    }
    let shown = rendition.shown;
    let own = if is_named { Some(None) } else { own_container(&rendition).map(Some) };
    if let (Some(state), Some(own)) = (state, own)
        && let Some(encoding) = rendition.encoding_answered(response.headers())
        && is_plain(&uri, &name)
        // Not one whose date is not its own.
        && state.revision() == rendition.revision
        && shown <= room.clock.now()
        // What is ready is for everybody.
        && audience.is_public()
    {
        response.extensions_mut().insert(PlainRead {
            target: uri.to_string(),
            route,
            rendition: Arc::downgrade(&rendition),
            encoding,
            basis: AnswerBasis::View {
                state,
                listing: Arc::downgrade(&listing),
                forgotten,
                own,
                shown,
            },
        });
    }
    Ok(response)
}

/// Whether an address is one of the few that lead to a view as it now is: other spellings of it are as many
/// as anybody likes.
fn is_plain(uri: &Uri, name: &str) -> bool {
    let path = uri.path().strip_prefix("/feeds/").and_then(|path| path.strip_prefix(name));
    uri.authority().is_none()
        && path.is_some_and(|path| matches!(path, "" | "/sync" | "/complete"))
        && uri.query().is_none_or(query::is_plain)
}

/// The container of a rendition in the feed's own one.
fn own_container(rendition: &Rendition) -> Option<Container> {
    let own = [Container::Atom, Container::Rss, Container::JsonFeed, Container::Opml];
    let is_own = rendition.form.container.is_none();
    own.into_iter().find(|own| is_own && own.media_type() == rendition.media_type)
}

/// The container that the client's `Accept` chooses, where it is not the feed's own.
async fn chosen(
    room: &AppState,
    record: &ServedFeed,
    headers: &HeaderMap,
) -> Result<Option<Container>, Problem> {
    if !headers.contains_key(header::ACCEPT) {
        return Ok(None);
    }
    // Without a state there is no document, which is what the shelf will say.
    let Some(state) = room.store.state(&record.name).await? else { return Ok(None) };
    let own = Container::of(state.format);
    Ok(Some(container(headers, own)).filter(|chosen| *chosen != own))
}

/// The answer that carries a rendition, or the 304 that says that the client has it.
pub(super) fn answer(
    room: &AppState,
    which: Resource<'_>,
    rendition: &Rendition,
    asked: &HeaderMap,
) -> Response {
    let now = room.clock.now();
    let mut represented = rendition.represented(asked);
    represented.headers.insert(header::CACHE_CONTROL, which.fresh());
    represented.headers.insert(header::VARY, which.vary(&room.shelf));
    Representation {
        // What a tick in the future changed was changed by now, as far as HTTP is concerned.
        modified: Some(rendition.shown.min(now)),
        // While the state is ahead of the clock, several documents have this same date, so that it says
        // nothing of which one the client has.
        is_dated: rendition.shown <= now,
        ..represented
    }
    .answer(asked)
}

/// Which document of a feed is answered.
#[derive(Debug, Clone, Copy)]
pub(super) enum Resource<'a> {
    View {
        /// Which one.
        kind: ViewKind,
        /// Whether the address names the container.
        is_named: bool,
    },
    Archive(&'a ArchivePlace),
}

impl Resource<'_> {
    /// How long it may be kept without asking.
    const fn fresh(self) -> HeaderValue {
        match self {
            Self::View { .. } => FRESH,
            // The newest archive changes once more: when the next one comes to be linked.
            Self::Archive(place) if place.next.is_none() => FRESH,
            Self::Archive(_) => ARCHIVE_FRESH,
        }
    }

    /// What the answer depends on beside the address. A browser gets the reader view as a page.
    fn vary(self, shelf: &RenditionCache) -> HeaderValue {
        let Self::View { kind, is_named } = self else { return VARY_PLAIN };
        let names = [
            ("A-IM, ", shelf.has_deltas(kind)),
            ("Accept, ", !is_named),
            ("Accept-Encoding", true),
            (", Sec-Fetch-Dest", kind == ViewKind::Reader && !is_named),
        ];
        let names: String = names.into_iter().filter(|(_, is)| *is).map(|(name, _)| name).collect();
        HeaderValue::try_from(names).unwrap_or(VARY_PLAIN)
    }
}

/// The answer that carries a delta (RFC 3229 section 10.4.1). `whole`: that which carries the whole
/// document, whose validators they are: the client has it once it has merged the delta.
fn changes(whole: Response, delta: &Delta, asked: &HeaderMap) -> Response {
    let mut headers = whole.into_parts().0.headers;
    let encoding = delta.rendition.encoding(asked);
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
    kind: Option<ViewKind>,
    container: Container,
    (addresses, history): (&Addresses, &HistoryPlace),
    sup: Option<&str>,
) -> HeaderMap {
    let mut headers = HeaderMap::new();
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
