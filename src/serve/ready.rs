//! Answers that are given again: what the normal path answered to a plain read is kept as it went out, for whoever asks the
//! same while it is the answer still.
//!
//! Nothing is decided here. Requests are the same where everything is that answers may depend on: the address, and the
//! fields that they name in `Vary`; an answer that names another one is not kept. Whether it is the answer still, its handler
//! says ([`IsCurrent`]), and whether the client has it, `conditional`. Whatever is not plain goes the normal way.
//!
//! Of the headers, an answer keeps those that are its document's own, and shares all others. The document is kept in the
//! cache of documents alone, which is asked for it once a second: so it sees what is asked for.

use super::audience::may_identify;
use super::conditional::known;
use super::delta::A_IM;
use super::feeds::X_SUP_ID;
use super::negotiate::{Encoding, members};
use super::reading::FETCH_DEST;
use super::rendition::{BodyContent, Rendition};
use super::site_service::SentContent;
use super::{
    AppState, Audience, Client, Connection, DocumentKey, Listing, Metrics, Peer, client, locked,
    observe,
};
use axum::extract::MatchedPath;
use bytes::Bytes;
use foldhash::fast::RandomState;
use http::uri::{Authority, PathAndQuery};
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Version, header,
};
use prometheus_client::metrics::counter::Counter;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock, Weak};
use std::time::Duration;
use tidegate_core::model::Time;

/// One answer is kept for so many bytes of the memory for answers; each takes some 1000, and its request at most
/// [`REQUEST_LIMIT`].
const BYTES_EACH: u64 = 4 * 1024;
/// For how long an answer is given again.
const AGE: Duration = Duration::from_secs(60);
/// The longest address with the fields that choose, in bytes: strangers make it up.
const REQUEST_LIMIT: usize = 256;
/// How many sets of headers are shared: about one for each route, encoding and status.
const SHARED: usize = 64;
/// The largest body that is handed over whole, in bytes. On a connection of HTTP/1 it is not counted among those on their
/// way: there is one at most, and the system takes more than that ahead of its client.
const WHOLE: usize = 64 * 1024;

/// The fields of a request that choose among answers.
const CHOOSING: [HeaderName; 5] =
    [header::HOST, header::ACCEPT, header::ACCEPT_ENCODING, FETCH_DEST, A_IM];
/// The headers that are a document's own.
const OWN: [HeaderName; 4] = [header::ETAG, header::LAST_MODIFIED, header::LINK, X_SUP_ID];

/// Checks that a kept answer is still current. If it is, also records the use as its handler would (reader, demand,
/// hit).
pub(super) type IsCurrent = Arc<dyn Fn(&AppState, &Listing, Client) -> bool + Send + Sync>;

/// What an answer is made of that may be given again: an extension of it until it is kept.
#[derive(Clone)]
pub(super) struct RepeatableAnswer {
    pub(super) rendition: Weak<Rendition>,
    /// Its key, where the cache of documents has it.
    pub(super) document: Option<DocumentKey>,
    /// The encoding that the request chose.
    pub(super) encoding: Encoding,
    /// The date that stands for the document.
    pub(super) date: Option<Time>,
    pub(super) is_current: IsCurrent,
}

/// What all answers depend on.
pub(super) struct AnswerBasis {
    listing: Arc<Listing>,
    /// How often documents were let go of.
    forgotten: u64,
}

impl AnswerBasis {
    /// As it is now, where that is known without waiting.
    pub(super) fn now(app: &AppState) -> Option<Self> {
        Some(Self { listing: app.directory.current()?, forgotten: app.documents.forgotten() })
    }
}

/// A plain read.
pub(super) struct PlainRequest {
    /// The address, and the fields that choose.
    cache_key: Vec<u8>,
    is_conditional: bool,
    wants_delta: bool,
}

impl PlainRequest {
    /// Reads a request; `None` of one that is not plain.
    pub(super) fn read<B: http_body::Body>(request: &Request<B>) -> Option<Self> {
        let version = match request.version() {
            Version::HTTP_10 => 0,
            Version::HTTP_11 => 1,
            Version::HTTP_2 => 2,
            _ => return None,
        };
        if request.method() != Method::GET || !request.body().is_end_stream() {
            return None;
        }
        let mut cache_key = Vec::with_capacity(REQUEST_LIMIT);
        cache_key.push(version);
        let mut read = Self { cache_key, is_conditional: false, wants_delta: false };
        let uri = request.uri();
        let authority = uri.authority().map(Authority::as_str);
        let target = uri.path_and_query().map(PathAndQuery::as_str);
        for part in [uri.scheme_str(), authority, target] {
            read.note(part.unwrap_or_default().as_bytes());
        }
        for (name, value) in request.headers() {
            if may_identify(name) {
                return None;
            }
            read.is_conditional |=
                *name == header::IF_NONE_MATCH || *name == header::IF_MODIFIED_SINCE;
            read.wants_delta |= *name == A_IM;
            if let Some(number) = CHOOSING.iter().position(|it| it == name) {
                read.cache_key.push(u8::try_from(number).unwrap_or(u8::MAX));
                read.note(value.as_bytes());
            }
        }
        (read.cache_key.len() <= REQUEST_LIMIT).then_some(read)
    }

    /// Neither an address nor a field has the end of a line.
    fn note(&mut self, part: &[u8]) {
        self.cache_key.extend_from_slice(part);
        self.cache_key.push(b'\n');
    }
}

/// The headers of an answer, and what counts such answers.
struct ReadyHead {
    shared: Arc<HeaderMap>,
    own: Box<[(HeaderName, HeaderValue)]>,
    answers: Counter,
}

/// An answer that is kept: with its document, and that the client has that.
struct ReadyAnswer {
    of: RepeatableAnswer,
    /// What it depends on, as that was when it was asked for.
    listing: Weak<Listing>,
    forgotten: u64,
    made: Time,
    /// How old it was, in seconds, when the cache was last asked for the document.
    noted: AtomicU64,
    whole: OnceLock<ReadyHead>,
    unchanged: OnceLock<ReadyHead>,
}

impl ReadyAnswer {
    fn is_of(&self, basis: &AnswerBasis, now: Time) -> bool {
        let is_young = self.made <= now && now.since(self.made) < AGE;
        let is_same = self.listing.as_ptr() == Arc::as_ptr(&basis.listing);
        is_young && is_same && self.forgotten == basis.forgotten
    }

    fn head(&self, status: StatusCode) -> Option<&OnceLock<ReadyHead>> {
        match status {
            StatusCode::OK => Some(&self.whole),
            StatusCode::NOT_MODIFIED => Some(&self.unchanged),
            _ => None,
        }
    }
}

/// The answers that a listener gives again.
pub(super) struct ReadyAnswers {
    limit: usize,
    all: RwLock<HashMap<Box<[u8]>, Arc<ReadyAnswer>, RandomState>>,
    /// The headers that many of them have.
    shared: Mutex<Vec<Arc<HeaderMap>>>,
}

impl ReadyAnswers {
    /// None yet. `memory`: the bytes that there are for answers.
    pub(super) fn new(memory: u64) -> Self {
        let limit = usize::try_from(memory / BYTES_EACH).unwrap_or(usize::MAX);
        Self { limit, all: RwLock::default(), shared: Mutex::default() }
    }

    fn find(&self, plain_request: &PlainRequest) -> Option<Arc<ReadyAnswer>> {
        let all = self.all.read().unwrap_or_else(PoisonError::into_inner);
        all.get(&*plain_request.cache_key).cloned()
    }

    /// The answer to a request, where it is ready.
    pub(super) fn answer<B>(
        &self,
        app: &AppState,
        (peer, connection): (Peer, &Arc<Connection>),
        (plain_request, request): (&PlainRequest, &Request<B>),
    ) -> Option<Response<SentContent>> {
        let found = self.find(plain_request)?;
        let (version, of) = (request.version(), &found.of);
        // Each answer has a line in the log otherwise; or what others wrote is to be seen first.
        if observe::logs_every_answer() || !app.store.answers_from_memory() {
            return None;
        }
        let basis = AnswerBasis::now(app)?;
        let now = app.clock.now();
        if !found.is_of(&basis, now) {
            return None;
        }
        let rendition = of.rendition.upgrade()?;
        let known = || known(request.headers(), &rendition, of.encoding, of.date);
        let known = plain_request.is_conditional.then(known);
        let status = match known.flatten() {
            Some(encoding) if encoding == of.encoding => StatusCode::NOT_MODIFIED,
            // Of another encoding than what was kept; or a delta may be the answer.
            Some(_) => return None,
            None if plain_request.wants_delta => return None,
            None => StatusCode::OK,
        };
        let head = found.head(status)?.get()?;
        let client = client::asking(app, peer, request.headers());
        let bytes = match &rendition.body(of.encoding).content {
            _ if status == StatusCode::NOT_MODIFIED => Bytes::new(),
            BodyContent::Memory(bytes) => bytes.clone(),
            BodyContent::File(_) => return None,
        };
        let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        let body = if bytes.is_empty() || (version < Version::HTTP_2 && bytes.len() <= WHOLE) {
            SentContent::Whole(bytes)
        } else {
            let from = (client, Some(Arc::clone(connection)));
            SentContent::Made(observe::count_bytes(app, from, false, bytes).ok()?)
        };
        if !(of.is_current)(app, &basis.listing, client) {
            return None;
        }
        let age = now.since(found.made).as_secs();
        if found.noted.load(Ordering::Relaxed) != age {
            found.noted.store(age, Ordering::Relaxed);
            of.document.iter().for_each(|key| app.documents.note_use(key));
        }
        head.answers.inc();
        app.metrics.sent.inc_by(length);
        let mut headers = HeaderMap::clone(&head.shared);
        for (name, value) in &head.own {
            headers.insert(name, value.clone());
        }
        let mut answer = Response::new(body);
        (*answer.status_mut(), *answer.headers_mut()) = (status, headers);
        Some(answer)
    }

    /// Keeps an answer to a request, where it may be given again. `basis`: as it was before the answer was made.
    pub(super) fn keep<B>(
        &self,
        (metrics, now): (&Metrics, Time),
        (plain_request, basis): (PlainRequest, AnswerBasis),
        answer: &mut Response<B>,
    ) {
        let Some(of) = answer.extensions_mut().remove::<RepeatableAnswer>() else { return };
        if !is_for_everybody(answer) {
            return;
        }
        let kept = self.find(&plain_request).filter(|kept| {
            let has_same = kept.of.rendition.ptr_eq(&of.rendition);
            has_same && kept.of.encoding == of.encoding && kept.is_of(&basis, now)
        });
        let kept = kept.unwrap_or_else(|| {
            let (listing, forgotten) = (Arc::downgrade(&basis.listing), basis.forgotten);
            let (noted, whole, unchanged) = (AtomicU64::new(0), OnceLock::new(), OnceLock::new());
            Arc::new(ReadyAnswer { of, listing, forgotten, made: now, noted, whole, unchanged })
        });
        let Some(place) = kept.head(answer.status()) else { return };
        let Some(head) = self.head(metrics, answer) else { return };
        let _ = place.set(head);
        let mut all = self.all.write().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= self.limit && !all.contains_key(&*plain_request.cache_key) {
            all.retain(|_, it| now.since(it.made) < AGE && it.of.rendition.strong_count() > 0);
            // All are looked at only where that made room for many.
            if all.len() > self.limit / 10 * 9 {
                all.clear();
            }
        }
        all.insert(plain_request.cache_key.into(), kept);
    }

    fn head<B>(&self, metrics: &Metrics, answer: &Response<B>) -> Option<ReadyHead> {
        let mut shared = answer.headers().clone();
        // hyper says it, which is less than to copy it each time.
        shared.remove(header::CONTENT_LENGTH);
        let mut own = Vec::new();
        for name in OWN {
            let empty = HeaderValue::from_static("");
            let is_many = shared.get_all(&name).iter().nth(1).is_some();
            if let Some(value) = shared.get_mut(&name).filter(|_| !is_many) {
                own.push((name, std::mem::replace(value, empty)));
            }
        }
        let route = answer.extensions().get::<MatchedPath>()?;
        let answers = metrics.answers(&Method::GET, route.as_str(), answer.status().as_u16());
        Some(ReadyHead { shared: self.share(shared), own: own.into(), answers })
    }

    fn share(&self, headers: HeaderMap) -> Arc<HeaderMap> {
        let mut all = locked(&self.shared);
        if let Some(same) = all.iter().find(|it| ***it == headers) {
            return Arc::clone(same);
        }
        let headers = Arc::new(headers);
        if all.len() >= SHARED {
            all.retain(|it| Arc::strong_count(it) > 1);
        }
        if all.len() < SHARED {
            all.push(Arc::clone(&headers));
        }
        headers
    }
}

/// Whether an answer is the one to all who ask the same.
fn is_for_everybody<B>(answer: &Response<B>) -> bool {
    let chooses = |field: &str| CHOOSING.iter().any(|it| field.eq_ignore_ascii_case(it.as_str()));
    answer.extensions().get::<Audience>().is_some_and(Audience::is_public)
        && members(answer.headers(), &header::VARY).all(|(field, _)| chooses(field))
}
