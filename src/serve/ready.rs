//! Answers that are ready: of a plain read that the router has answered, the headers are kept beside the
//! document, so that whoever reads it next is answered without the router, the store or a header that is
//! formatted anew.
//!
//! They stand in a table of one place for each hash, read without a lock; what comes takes the place of what
//! was there. An answer is used while the router would give the same: while the feed's state is the one that
//! it shows, the list of feeds is the same, and the document is kept. Once a second at most
//! the router answers again, so that caches see what is asked for.

use super::client::Peer;
use super::conditional::{describe, known};
use super::delta::A_IM;
use super::directory::Listing;
use super::negotiate::{Encoding, container, encoding};
use super::reading::{FETCH_DEST, NAVIGATION};
use super::rendition::{BodyContent, Rendition};
use super::{AppState, client, observe, router};
use arc_swap::ArcSwapOption;
use axum::body::Body;
use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode, Version, header};
use prometheus_client::metrics::counter::Counter;
use std::sync::{Arc, OnceLock, Weak};
use tidegate_core::model::Time;
use tidegate_format::render::Container;
use tidegate_store::StateWatch;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// How many answers are kept.
const PLACES: usize = 1024;
/// The largest body that is handed over whole, in bytes. Such a body is not counted among those on their
/// way: a connection of HTTP/1 has one at most, and the system takes more than that ahead of its client.
const WHOLE: u64 = 64 * 1024;

/// The answer to a plain read as the router gave it; an extension of the response until it is kept.
#[derive(Clone)]
pub(super) struct PlainRead {
    /// Path and query, as they were written.
    pub(super) target: String,
    pub(super) route: &'static str,
    pub(super) rendition: Weak<Rendition>,
    pub(super) encoding: Encoding,
    pub(super) basis: AnswerBasis,
}

/// What a document is made from, which says how long it is the answer.
#[derive(Clone)]
pub(super) enum AnswerBasis {
    View {
        state: StateWatch,
        listing: Weak<Listing>,
        /// What [`super::rendition_cache::RenditionCache::forgotten`] was.
        forgotten: u64,
        /// The feed's container, where `Accept` may choose another.
        own: Option<Container>,
        /// When what is shown last changed.
        shown: Time,
    },
    /// The SUP document of a period.
    Sup(u32),
}

struct ReadyAnswer {
    read: PlainRead,
    whole: ReadyHead,
    not_modified: ReadyHead,
}

/// The headers of an answer, and what counts such answers.
struct ReadyHead {
    headers: HeaderMap,
    counter: OnceLock<Counter>,
}

impl From<HeaderMap> for ReadyHead {
    fn from(headers: HeaderMap) -> Self {
        Self { headers, counter: OnceLock::new() }
    }
}

/// The answers that are ready.
pub(super) struct ReadyAnswers(Box<[ArcSwapOption<ReadyAnswer>]>);

impl ReadyAnswers {
    /// None yet.
    pub(super) fn new() -> Self {
        Self(std::iter::repeat_with(ArcSwapOption::empty).take(PLACES).collect())
    }

    fn place(&self, target: &str, encoding: Encoding) -> Option<&ArcSwapOption<ReadyAnswer>> {
        let hash = xxh3_64_with_seed(target.as_bytes(), encoding as u64);
        let places = u64::try_from(self.0.len()).unwrap_or(1);
        self.0.get(usize::try_from(hash % places).unwrap_or(0))
    }

    /// The answer to whoever asks for this, in this encoding.
    fn find(&self, target: &str, encoding: Encoding) -> Option<Arc<ReadyAnswer>> {
        let found = self.place(target, encoding)?.load_full()?;
        (found.read.target == target && found.read.encoding == encoding).then_some(found)
    }

    /// Keeps an answer, where it is one to a plain read.
    pub(super) fn keep<B>(&self, response: &mut Response<B>) {
        let Some(read) = response.extensions_mut().remove::<PlainRead>() else { return };
        let (status, Some(rendition)) = (response.status(), read.rendition.upgrade()) else {
            return;
        };
        if status != StatusCode::OK && status != StatusCode::NOT_MODIFIED {
            return;
        }
        let mut headers = response.headers().clone();
        for name in [header::CONTENT_TYPE, header::CONTENT_LENGTH, header::CONTENT_ENCODING] {
            headers.remove(name);
        }
        let not_modified = headers.clone().into();
        let body = rendition.body(read.encoding);
        describe(&mut headers, body, rendition.media_type, read.encoding);
        // hyper writes it, which is less than to copy it each time.
        headers.remove(header::CONTENT_LENGTH);
        if let Some(place) = self.place(&read.target, read.encoding) {
            let whole = headers.into();
            place.store(Some(Arc::new(ReadyAnswer { read, whole, not_modified })));
        }
    }
}

/// Whether a request is a plain read, whose answer may be ready.
fn is_plain<B: http_body::Body>(request: &Request<B>) -> bool {
    let (version, headers) = (request.version(), request.headers());
    let is_http_1 = version == Version::HTTP_11 || version == Version::HTTP_10;
    // Somebody who goes to the address in a browser may get a page, and the router says what a host is.
    let is_routed = headers.contains_key(A_IM)
        || headers.get(FETCH_DEST).is_some_and(|dest| dest == NAVIGATION)
        || !router::has_one_host(request)
        // Each answer has a line in the log.
        || observe::logs_every_answer()
        // Where the whole address was written, the router looks at it.
        || request.uri().authority().is_some();
    request.method() == Method::GET && is_http_1 && request.body().is_end_stream() && !is_routed
}

/// The answer to a request that came over a connection, where it is ready and what is in memory is not too old.
pub(super) fn answer<B: http_body::Body>(
    room: &AppState,
    peer: Peer,
    request: &Request<B>,
) -> Option<Response<Body>> {
    let (headers, target) = (request.headers(), request.uri().path_and_query()?);
    let standing = |encoding: Encoding| {
        let ready = room.ready.find(target.as_str(), encoding)?;
        let (rendition, modified) = ready.read.standing(room, headers)?;
        Some((ready, rendition, modified))
    };
    if !is_plain(request) {
        return None;
    }
    let best = encoding(headers, true);
    let (ready, rendition, modified) = match standing(best) {
        // What is too large for memory has no zstd.
        None if best == Encoding::Zstd => standing(encoding(headers, false))?,
        found => found?,
    };
    let encoding = ready.read.encoding;
    let content = &rendition.body(encoding).content;
    let (status, head, bytes) = match (known(headers, &rendition, encoding, modified), content) {
        (Some(known), _) if known == encoding => {
            (StatusCode::NOT_MODIFIED, &ready.not_modified, Bytes::new())
        }
        (None, BodyContent::Memory(bytes)) if encoding == best && content.len() <= WHOLE => {
            (StatusCode::OK, &ready.whole, bytes.clone())
        }
        // One that names another representation is the router's.
        _ => return None,
    };
    client::note_unnamed_proxy(room, peer, headers);
    if modified.is_some() {
        room.metrics.hits.inc();
    }
    let counter = || room.metrics.answers(&Method::GET, ready.read.route, status.as_u16());
    head.counter.get_or_init(counter).inc();
    room.metrics.sent(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
    let mut response = Response::new(Body::from(bytes));
    *response.status_mut() = status;
    *response.headers_mut() = head.headers.clone();
    Some(response)
}

impl PlainRead {
    /// The document, where the router would answer with it to who asks with these headers, and the date that stands
    /// for it.
    fn standing(
        &self,
        room: &AppState,
        asked: &HeaderMap,
    ) -> Option<(Arc<Rendition>, Option<Time>)> {
        match &self.basis {
            AnswerBasis::View { state, listing, forgotten, own, shown } => {
                let is_own = own.is_none_or(|own| container(asked, own) == own);
                let stands = is_own
                    && state.is_current()
                    && room.shelf.forgotten() == *forgotten
                    && room.directory.known().is_some_and(|it| Arc::as_ptr(&it) == listing.as_ptr())
                    // No date is in the future, also where the clock was set back.
                    && *shown <= room.clock.now();
                let rendition = self.rendition.upgrade().filter(|_| stands)?;
                Some((rendition, Some(*shown)))
            }
            AnswerBasis::Sup(period) => {
                let rendition = room.sup.newest(*period)?;
                let is_same = Arc::as_ptr(&rendition) == self.rendition.as_ptr();
                is_same.then_some((rendition, None))
            }
        }
    }
}
