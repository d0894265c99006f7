//! What a view said at some time: `?as-of=` on the reader, the sync and the complete view.
//!
//! The answer is marked as one of the past: it is an archive document to feed readers (`fh:archive`,
//! its `self` is its own address, `current` leads to the feed as it is) and a memento to everybody
//! else (RFC 7089). All times between two changes have one and the same document of the reader and
//! the complete view. That of the sync view changes also where something left its window.

mod window;

use super::AppState;
use super::address::{DocumentForm, Site};
use super::admission::{Admission, Overloaded, Work, WorkKind};
use super::client::Client;
use super::conditional::not_modified;
use super::metrics::Metrics;
use super::negotiate::encoding;
use super::problem::{Problem, RETRY_SOON};
use super::rendition::{About, Rendition, made};
use super::rendition_cache::{Renderer, ViewRequest};
use super::single_flight::{SingleFlightCache, WorkRequest};
use crate::model::{FeedName, FeedRecord, Revision, ShownAddress, Tick, Time};
use crate::render::{ArchiveDocument, Container, Dialect, HistoryPlace, LinkForms, Page, ViewKind};
use crate::store::{Past, PastSelect, Store, StoreError, View};
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use std::sync::Arc;
use std::time::Duration;
use window::PastWindow;

/// Bytes of renditions of the past kept, all feeds together; anybody can ask for any number.
const PAST_BYTES: u64 = 8 * 1024 * 1024;
/// Until a time is so far back, a change that was seen before it may still be on its way into the
/// store.
const SETTLED: Duration = Duration::from_secs(300);
/// The past changes by redaction only, so it may be kept for a day, as archives may.
const SETTLED_FRESH: HeaderValue = HeaderValue::from_static("public, max-age=86400");
const UNSETTLED_FRESH: HeaderValue = HeaderValue::from_static("public, no-cache");
/// RFC 7089 section 2.1.1.
const MEMENTO_DATETIME: HeaderName = HeaderName::from_static("memento-datetime");

/// What a rendition is a function of. Whatever takes text out of the past raises the revision.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct PastKey {
    feed: FeedName,
    upstream: ShownAddress,
    kind: ViewKind,
    dialect: Dialect,
    /// What was asked for.
    container: Option<Container>,
    seen: Option<Tick>,
    at: Time,
    revision: Revision,
}

/// A document of the past.
struct Memento {
    rendition: Rendition,
    /// Its own address, absolute.
    own: String,
    form: DocumentForm,
}

/// Why there is none.
#[derive(Debug, thiserror::Error)]
enum NoPastDocument {
    #[error("{}", .0.detail())]
    Told(Problem),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Overloaded(#[from] Overloaded),
    #[error("rendering failed: {0}")]
    Render(String),
}

/// The cache, and what it takes to fill it.
pub(super) struct Pasts {
    store: Arc<dyn Store>,
    site: Site,
    window: Duration,
    renderer: Renderer,
    admission: Arc<Admission>,
    mementos: SingleFlightCache<PastKey, Memento, NoPastDocument>,
}

impl Pasts {
    /// Nothing rendered yet.
    pub(super) fn new(
        store: Arc<dyn Store>,
        site: Site,
        window: Duration,
        renderer: Renderer,
        admission: Arc<Admission>,
        metrics: Metrics,
    ) -> Arc<Self> {
        let weigh = |memento: &Memento| memento.rendition.weight();
        let mementos = SingleFlightCache::new(PAST_BYTES, weigh, Arc::clone(&admission), metrics);
        Arc::new(Self { store, site, window, renderer, admission, mementos })
    }

    async fn memento(
        self: &Arc<Self>,
        record: &FeedRecord,
        (wish, client): (ViewRequest, Client),
        at: Time,
    ) -> Result<Arc<Memento>, Arc<NoPastDocument>> {
        let state = self.store.state(&record.name).await.map_err(NoPastDocument::from)?;
        let Some(state) = state else {
            let said = "no document of this feed has been taken in yet";
            return Err(Arc::new(NoPastDocument::Told(Problem::later(said, RETRY_SOON))));
        };
        let key = PastKey {
            feed: record.name.clone(),
            upstream: record.shown(),
            kind: wish.kind,
            dialect: wish.dialect,
            container: wish.container,
            seen: wish.seen,
            at,
            revision: state.revision,
        };
        let make = || {
            let (pasts, record) = (Arc::clone(self), record.clone());
            async move { pasts.made(&record, wish, at).await }
        };
        // The past may have had any number of items; as many as there are now is the best guess.
        let items = u64::from(state.living) + u64::from(state.tombstones);
        let work = Work::new(&record.name, WorkKind::Past(wish.kind));
        let cost = self.admission.cost_of(&work, items);
        let ask = WorkRequest { client, work, cost, tells: true };
        self.mementos.get(key, ask, make).await
    }

    async fn made(
        &self,
        record: &FeedRecord,
        wish: ViewRequest,
        at: Time,
    ) -> Result<Memento, NoPastDocument> {
        let select = match wish.kind {
            ViewKind::Complete | ViewKind::Sync => PastSelect::All,
            ViewKind::Reader => PastSelect::Current,
        };
        match self.store.past(&record.name, select, at).await? {
            Some(Past::Then(view)) => self.build(record, wish, at, *view).await,
            Some(Past::Unknown { back_to }) => Err(NoPastDocument::Told(unknown(at, back_to))),
            None => Err(NoPastDocument::Told(unknown(at, None))),
        }
    }

    async fn build(
        &self,
        record: &FeedRecord,
        wish: ViewRequest,
        at: Time,
        view: View,
    ) -> Result<Memento, NoPastDocument> {
        let form = wish.form(&view.state);
        let container = form.container(view.state.format);
        let addresses = self.site.addresses(record, form, view.skeleton.link.as_deref());
        let PastWindow { view, deleted, since, until } = match wish.kind {
            ViewKind::Sync => {
                // A list is told whole, so that everything stands where it stood.
                let whole = (container == Container::Opml).then(|| view.items.clone());
                let mut shown =
                    window::at(view, at, self.window, wish.seen).map_err(NoPastDocument::Told)?;
                shown.view.items = whole.unwrap_or(shown.view.items);
                shown
            }
            ViewKind::Reader | ViewKind::Complete => PastWindow::all(view),
        };
        // The address says when the document came to be, so that all times at which it was in force
        // have the same bytes.
        let from = if wish.kind == ViewKind::Sync { at } else { view.state.updated_at };
        let own = self.site.past(&record.name, wish.kind, form, from, wish.seen);
        let history = HistoryPlace {
            forms: LinkForms::default(),
            archive: Some(ArchiveDocument { own: own.clone(), next: None }),
            ..HistoryPlace::default()
        };
        let (renderer, window) = (self.renderer, self.window);
        let make = move || {
            let page = Page {
                read_collection: crate::parse::collection::first_entry,
                kind: wish.kind,
                container,
                dialect: wish.dialect,
                addresses: &addresses,
                state: &view.state,
                skeleton: &view.skeleton,
                items: &view.items,
                deleted: &deleted,
                history: &history,
                since,
                until,
                expires: None,
                window: Some(window),
            };
            let about = About {
                media_type: container.media_type(),
                shown: view.state.updated_at,
                revision: view.state.revision,
                token: None,
            };
            Rendition::build(renderer(&page), about)
        };
        let rendition = made(make).await.map_err(NoPastDocument::Render)?;
        Ok(Memento { rendition, own, form })
    }
}

fn unknown(at: Time, back_to: Option<Time>) -> Problem {
    Problem::not_found(match back_to {
        Some(back_to) => format!(
            "what this feed said at {at} is not kept, or it said nothing yet; it can be read back \
             to {back_to}"
        ),
        None => format!("what this feed said at {at} is not kept"),
    })
}

/// The answer to `?as-of=`.
pub(super) async fn answer(
    room: &AppState,
    record: &FeedRecord,
    (wish, client): (ViewRequest, Client),
    (at, vary): (Time, HeaderValue),
    asked: &HeaderMap,
) -> Result<Response, Problem> {
    let now = room.clock.now();
    if at > now {
        let said = format!("as-of, {at}, is in the future: it is {now}");
        return Err(Problem::parameter("as-of", said));
    }
    let memento = match room.pasts.memento(record, (wish, client), at).await {
        Ok(memento) => memento,
        Err(missing) => return Err(past_problem(record, &missing)),
    };
    let Memento { rendition, own, form } = &*memento;
    let encoding = encoding(asked);
    let body = rendition.body(encoding);
    let mut headers = HeaderMap::new();
    let settled = at < now.minus(SETTLED);
    let fresh = if settled { SETTLED_FRESH } else { UNSETTLED_FRESH };
    headers.insert(header::CACHE_CONTROL, fresh);
    headers.insert(header::VARY, vary);
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    headers.insert(header::ETAG, body.etag.value());
    let current = room.site.view(&record.name, wish.kind, *form);
    let shown = rendition.shown.rfc822();
    for (name, value) in [
        (header::LAST_MODIFIED, shown.clone()),
        (MEMENTO_DATETIME, shown),
        (header::CONTENT_LOCATION, own.clone()),
        (header::LINK, format!("<{own}>; rel=\"self\"")),
        (header::LINK, format!("<{current}>; rel=\"original latest-version current\"")),
    ] {
        // Addresses of ours are made of a checked URL, a checked name and a time.
        if let Ok(value) = HeaderValue::from_str(&value) {
            headers.append(name, value);
        }
    }
    // An earlier date says nothing here: after a redaction the same past has other bytes.
    if not_modified(asked, &body.etag, None) {
        return Ok((StatusCode::NOT_MODIFIED, headers).into_response());
    }
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(rendition.media_type));
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(body.bytes.len()));
    if let Some(token) = encoding.token() {
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(token));
    }
    Ok((headers, body.bytes.clone()).into_response())
}

fn past_problem(record: &FeedRecord, missing: &NoPastDocument) -> Problem {
    match missing {
        NoPastDocument::Told(problem) => problem.clone(),
        NoPastDocument::Overloaded(why) => (*why).into(),
        NoPastDocument::Store(_) | NoPastDocument::Render(_) => {
            tracing::error!(
                feed = %record.name,
                error = missing as &dyn std::error::Error,
                "a document of the past could not be rendered"
            );
            Problem::later("the gateway could not render this document just now", RETRY_SOON)
        }
    }
}
