//! Requests that only the gateway which writes can answer, where several gateways share a store: administration, what
//! changes something, hub requests and callbacks. A gateway that does not write passes them on through the store, and
//! passes the answer back. Who asks notices nothing but the time.
//!
//! A person who has signed in is known to the gateway that writes: a page that is asked for with the cookie of an open
//! session comes from there. Each gateway checks that cookie itself, since all have the administration token.

mod places;

pub(super) use places::RelayPlaces;

use super::audience::Audience;
use super::client::{Client, Peer};
use super::observe;
use super::origins::{FeedTraits, make_for_other};
use super::problem::{Problem, RETRY_SOON};
use super::{API, Listener, SharedState, callback, html, routes, site_router};
use async_trait::async_trait;
use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use places::{ANSWER_LIMIT, RelayKind};
use serde::{Deserialize, Serialize};
use std::net::IpAddr;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tidegate_core::model::{FeedName, Time};
use tidegate_store::{AnswerQuestions, DatabaseOwner, GatewayAnswer, StoreError, in_words};
use tokio::runtime::Handle;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;
use url::Url;

/// How long a body may take that is no operator's: as long as a push may take at the gateway that writes. Its request has
/// a place meanwhile, and a few clients that send slowly would have them all.
const BODY_TIME: Duration = callback::PUSH_TIME;
/// How much longer an answer is waited for than the gateway that writes takes for it.
const PASSING_TIME: Duration = Duration::from_secs(5);
/// What every gateway answers itself, though it is of operators.
const OWN: [&str; 3] = ["/metrics", "/healthz", "/readyz"];
/// What reads and is still for the gateway that writes.
const OF_WRITER: [&str; 6] =
    [callback::ROUTE, "/add", "/add/list", "/session", "/subscribe", "/feeds/{name}/edit"];
/// What looks different to a person who has signed in, and only reads: pages, and what there is of private feeds.
pub(super) const READ_PAGES: [&str; 10] = [
    "/feeds/{name}",
    "/feeds/{name}/sync",
    "/feeds/{name}/complete",
    "/feeds/{name}/archive/{id}",
    "/feeds/{name}/changes",
    "/subscriptions.opml",
    "/sup.json",
    "/",
    "/recent",
    "/feeds/{name}/items",
];
/// Further pages of that kind, to which forms are sent.
const FORM_PAGES: [&str; 3] =
    ["/feeds/{name}/items/{id}", "/feeds/{name}/conflicts", "/feeds/{name}/about"];
/// What only reads, and is every gateway's own whoever asks.
pub(super) const READ_ALONE: [&str; 5] =
    ["/events", "/changes", "/assets/style.css", html::ICON, "/favicon.ico"];
/// The whole state as a stream, which is not passed on.
const EXPORT: &str = "/api/v1/export";
/// The headers that are of the connection, or that are set anew.
const OF_CONNECTION: [HeaderName; 8] = [
    header::CONNECTION,
    header::TE,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    header::EXPECT,
    header::CONTENT_LENGTH,
    header::ACCEPT_ENCODING,
    HeaderName::from_static("keep-alive"),
];

/// How soon after the start, and how often, it is reported which feeds were asked for.
const REPORT_TIMES: (Duration, Duration) = (Duration::from_secs(60), Duration::from_secs(3600));
/// How long the answer to that is waited for.
const REPORT_TIME: Duration = Duration::from_secs(10);
/// How long a feed is waited for that the gateway makes that writes.
const MAKING_TIME: Duration = Duration::from_secs(60);

/// What a gateway asks the one that writes.
#[derive(Serialize, Deserialize)]
enum RelayedQuestion {
    Request(Box<RelayedRequest>),
    /// These feeds were asked for, of those that requests made, by so many clients each.
    AskedFor(Vec<(FeedName, usize)>),
    /// A request of a client found a feed at an address of an origin.
    MakeFeed {
        url: String,
        traits: FeedTraits,
        client: Option<IpAddr>,
    },
}

/// A request as it is passed on.
#[derive(Serialize, Deserialize)]
struct RelayedRequest {
    listener: u8,
    peer: Option<IpAddr>,
    method: String,
    target: String,
    headers: Vec<(String, Vec<u8>)>,
    body: Vec<u8>,
}

/// Its answer.
#[derive(Serialize, Deserialize)]
struct RelayedResponse {
    status: u16,
    headers: Vec<(String, Vec<u8>)>,
    body: Vec<u8>,
}

/// Marks a request that another gateway passed on: it goes no further.
#[derive(Clone, Copy)]
pub(super) struct IsRelayed;

const LISTENERS: [Listener; 3] = [Listener::Everybody, Listener::Readers, Listener::Operators];

/// Passes a request on to the gateway that writes, where only that one can answer it.
pub(super) async fn relay(
    State((room, listener)): State<(SharedState, Listener)>,
    request: Request,
    next: Next,
) -> Result<Response, Problem> {
    if room.store.answers_from_memory() || !is_of_writer(&room, &request) {
        return Ok(next.run(request).await);
    }
    let Some(owner) = room.store.condition().owner else { return Ok(next.run(request).await) };
    let route = request.extensions().get::<MatchedPath>().map_or("", MatchedPath::as_str);
    if route == EXPORT {
        let said = format!(
            "the whole state is exported by the gateway that writes alone: {owner}; {}",
            owner.advice()
        );
        return Err(Problem::later(said, RETRY_SOON));
    }
    if owner.is_gone || request.extensions().get::<IsRelayed>().is_some() {
        return Err(StoreError::Standby { owner }.into());
    }
    let answer_time = observe::time_limit_of(&request);
    let limit = answer_time.saturating_add(PASSING_TIME);
    let client = request.extensions().get().copied().unwrap_or(Client::Own);
    let kind = RelayKind::of(&room, request.uri().path(), request.headers());
    let body = match kind {
        // A long list may come over a slow line, and takes no place but of operators.
        RelayKind::Operator => (routes::body_limit(route), answer_time),
        RelayKind::Hub | RelayKind::Other => (routes::body_limit(route), BODY_TIME),
    };
    // Before its body is read.
    let _place = room.relays.take(kind, client).await?;
    let passing = pass_on(&room, listener, (request, body), &owner, limit);
    timeout(limit, passing).await.unwrap_or_else(|_| Err(unanswered(&owner, "it took too long")))
}

/// Whether only the gateway that writes can answer a request. One that has no right to what it asks for is refused here.
fn is_of_writer(room: &SharedState, request: &Request) -> bool {
    let Some(route) = request.extensions().get::<MatchedPath>() else { return false };
    let route = route.as_str();
    if OWN.contains(&route) {
        return false;
    }
    if route.starts_with(API) {
        let client = request.extensions().get().copied().unwrap_or(Client::Own);
        return room.admits(client, request.headers());
    }
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
    let is_read_page = READ_PAGES.contains(&route);
    if !is_read && (is_read_page || READ_ALONE.contains(&route)) {
        // No gateway has such a method there, so each refuses it.
        return false;
    }
    let is_page = is_read_page || FORM_PAGES.contains(&route);
    let is_signed_in = || is_page && room.sessions.is_open(request.headers());
    !is_read || OF_WRITER.contains(&route) || is_signed_in()
}

fn unanswered(owner: &DatabaseOwner, why: &str) -> Problem {
    let said = format!(
        "the gateway {} writes, and did not answer ({why}); whether it did what was asked is unknown",
        owner.name
    );
    Problem::later(said, RETRY_SOON)
}

/// Passes a request on, with a body of so many bytes at most that comes within so much time; its answer comes within
/// `limit`.
async fn pass_on(
    room: &SharedState,
    listener: Listener,
    (request, (body_limit, body_time)): (Request, (usize, Duration)),
    owner: &DatabaseOwner,
    limit: Duration,
) -> Result<Response, Problem> {
    let (parts, body) = request.into_parts();
    let body = timeout(body_time, to_bytes(body, body_limit)).await.map_err(|_| {
        let said =
            format!("a body that is passed on takes {} seconds at most", body_time.as_secs());
        Problem::new(StatusCode::REQUEST_TIMEOUT, said)
    })?;
    let body = body.map_err(|_| {
        let said = format!("the body is not whole, or longer than {body_limit} bytes");
        Problem::new(StatusCode::PAYLOAD_TOO_LARGE, said)
    })?;
    let mut headers = fields(&parts.headers);
    // HTTP/2 names the host elsewhere.
    if let (Some(authority), false) =
        (parts.uri.authority(), parts.headers.contains_key(header::HOST))
    {
        headers.push((header::HOST.to_string(), authority.as_str().as_bytes().to_vec()));
    }
    let target = parts.uri.path_and_query().map_or("/", |target| target.as_str());
    // The gateway that writes finds the reader by the token, which was taken off the path.
    let audience: Option<&Audience> = parts.extensions.get();
    let below = audience.map_or("", |audience| audience.token_path(room));
    let target = format!("{below}{target}");
    let listener = LISTENERS.iter().position(|known| *known == listener);
    let relayed = RelayedRequest {
        listener: u8::try_from(listener.unwrap_or_default()).unwrap_or_default(),
        peer: parts.extensions.get::<Peer>().map(|Peer(address)| *address),
        method: parts.method.to_string(),
        target,
        headers,
        body: Vec::from(body),
    };
    let failed = |why: &dyn std::fmt::Display| unanswered(owner, &why.to_string());
    let question = RelayedQuestion::Request(Box::new(relayed));
    let question = postcard::to_stdvec(&question).map(|sent| (sent, drop(question)));
    let (question, ()) = question.map_err(|error| failed(&error))?;
    let answer = room.store.ask_writer(question, limit).await;
    let answer = answer.map_err(|error| failed(&in_words(&error)))?;
    let Some(answer) = answer else {
        return Err(StoreError::Standby { owner: owner.clone() }.into());
    };
    let answer: RelayedResponse = postcard::from_bytes(&answer).map_err(|error| failed(&error))?;
    let mut response = Response::new(Body::from(answer.body));
    *response.status_mut() = StatusCode::from_u16(answer.status).map_err(|error| failed(&error))?;
    *response.headers_mut() = header_map(answer.headers);
    response.extensions_mut().insert(IsRelayed);
    // What this gateway knows of the store is as new as the answer.
    let _ = room.store.catch_up().await;
    Ok(response)
}

/// Has the gateway that writes make a feed of an address of an origin; whether it has a document then.
pub(super) async fn have_feed_made(
    room: &SharedState,
    url: &Url,
    traits: FeedTraits,
    client: Client,
) -> bool {
    let (url_text, client) = (url.to_string(), client.address());
    let question = RelayedQuestion::MakeFeed { url: url_text, traits, client };
    let Ok(question) = postcard::to_stdvec(&question) else { return false };
    if let Err(error) = room.store.ask_writer(question, MAKING_TIME).await {
        tracing::debug!(error = %in_words(&error), "the gateway that writes made no feed");
        return false;
    }
    // What this gateway knows of the store is as new as the answer.
    let _ = room.store.catch_up().await;
    let Ok(feeds) = room.directory.listing().await else { return false };
    match feeds.places().feed_of(url) {
        Some(name) => matches!(room.store.state(name).await, Ok(Some(_))),
        None => false,
    }
}

/// The headers of a message that are not of its connection.
fn fields(headers: &HeaderMap) -> Vec<(String, Vec<u8>)> {
    let passed = headers.iter().filter(|(name, _)| !OF_CONNECTION.contains(name));
    passed.map(|(name, value)| (name.to_string(), value.as_bytes().to_vec())).collect()
}

fn header_map(fields: Vec<(String, Vec<u8>)>) -> HeaderMap {
    let read = fields.into_iter().filter_map(|(name, value)| {
        let name = name.parse::<HeaderName>().ok()?;
        Some((name, HeaderValue::from_bytes(&value).ok()?))
    });
    let mut headers = HeaderMap::new();
    for (name, value) in read {
        headers.append(name, value);
    }
    headers
}

/// Reports to the gateway that writes which feeds were asked for here, so that they are not let go, until `ends`.
pub(super) async fn report_asked(room: SharedState, ends: CancellationToken) {
    let (mut wait, mut reported) = (REPORT_TIMES.0, Time::MIN);
    loop {
        tokio::select! {
            () = ends.cancelled() => return,
            () = tokio::time::sleep(wait) => wait = REPORT_TIMES.1,
            () = room.asked.wanted() => {}
        }
        let now = room.clock.now();
        let asked = room.asked.all().into_iter().filter(|(_, at)| *at >= reported);
        let Ok(feeds) = room.directory.listing().await else { continue };
        let with_clients = |(name, _)| {
            let feed = feeds.get(&name);
            let clients = feed.map_or(0, |feed| room.asked.clients(&feed.url, now));
            (name, clients)
        };
        let asked: Vec<_> = asked.map(with_clients).collect();
        if asked.is_empty() {
            continue;
        }
        let Ok(question) = postcard::to_stdvec(&RelayedQuestion::AskedFor(asked)) else { continue };
        match room.store.ask_writer(question, REPORT_TIME).await {
            Ok(_) => reported = now,
            Err(error) => {
                let error = in_words(&error);
                tracing::debug!(%error, "which feeds were asked for is reported later");
                wait = REPORT_TIMES.0;
            }
        }
    }
}

/// What a gateway answers to others over the same store.
pub(super) struct RelayedSite {
    room: SharedState,
    routers: [Router; 3],
}

impl RelayedSite {
    pub(super) fn new(room: &SharedState) -> Arc<Self> {
        let routers = LISTENERS.map(|listener| site_router(Arc::clone(room), listener));
        Arc::new(Self { room: Arc::clone(room), routers })
    }

    /// Answers for as long as the site is there.
    pub(super) fn answers(self: &Arc<Self>) -> Arc<dyn AnswerQuestions> {
        Arc::new(RelayAnswers { site: Arc::downgrade(self), runtime: Handle::current() })
    }

    /// The answer to a request, and what it takes up here until it was sent.
    async fn answer(
        &self,
        relayed: RelayedRequest,
    ) -> (RelayedResponse, Vec<OwnedSemaphorePermit>) {
        let mut permits = Vec::new();
        let response = self.response(relayed, &mut permits).await;
        (whole(response.unwrap_or_else(Problem::into_response)).await, permits)
    }

    async fn response(
        &self,
        relayed: RelayedRequest,
        permits: &mut Vec<OwnedSemaphorePermit>,
    ) -> Result<Response, Problem> {
        let RelayedRequest { listener, peer, method, target, headers, body } = relayed;
        let wrong = |what: &str| {
            Problem::new(
                StatusCode::BAD_REQUEST,
                format!("a request that was passed on has {what}"),
            )
        };
        let router = self.routers.get(usize::from(listener)).ok_or_else(|| wrong("no listener"))?;
        let mut request = Request::new(Body::from(Bytes::from(body)));
        *request.method_mut() = method.parse().map_err(|_| wrong("no method"))?;
        *request.uri_mut() = target.parse().map_err(|_| wrong("no address"))?;
        *request.headers_mut() = header_map(headers);
        if let Some(peer) = peer {
            request.extensions_mut().insert(Peer(peer));
        }
        request.extensions_mut().insert(IsRelayed);
        let kind = RelayKind::of(&self.room, request.uri().path(), request.headers());
        permits.push(self.room.relays.answer(kind)?);
        let is_action = !request.method().is_safe();
        let Ok(response) = router.clone().oneshot(request).await;
        match self.room.relays.hold(&response) {
            Ok(room) => permits.extend(room),
            // It was carried out, or refused: "ask again soon" would be untrue.
            Err(_) if is_action => {}
            Err(problem) => return Err(problem),
        }
        Ok(response)
    }
}

/// An answer with its whole body.
async fn whole(response: Response) -> RelayedResponse {
    let (parts, body) = response.into_parts();
    match to_bytes(body, ANSWER_LIMIT).await {
        Ok(body) => RelayedResponse {
            status: parts.status.as_u16(),
            headers: fields(&parts.headers),
            body: body.to_vec(),
        },
        Err(_) => RelayedResponse {
            status: StatusCode::SERVICE_UNAVAILABLE.as_u16(),
            headers: Vec::new(),
            body: b"the answer broke off, or is too long to be passed on\n".to_vec(),
        },
    }
}

struct RelayAnswers {
    site: Weak<RelayedSite>,
    /// Where requests are answered; what asks has threads of its own for the database.
    runtime: Handle,
}

#[async_trait]
impl AnswerQuestions for RelayAnswers {
    async fn answer_question(&self, question: Vec<u8>) -> GatewayAnswer {
        let Some(site) = self.site.upgrade() else { return GatewayAnswer::default() };
        match postcard::from_bytes(&question) {
            Ok(RelayedQuestion::Request(relayed)) => {
                let answering = async move { site.answer(*relayed).await };
                let answered = self.runtime.spawn(answering).await.ok();
                let sent = answered.and_then(|(answer, permits)| {
                    let bytes = postcard::to_stdvec(&answer).ok()?;
                    Some(GatewayAnswer { bytes, permits })
                });
                sent.unwrap_or_default()
            }
            Ok(RelayedQuestion::AskedFor(feeds)) => {
                let now = site.room.clock.now();
                let note = |(feed, clients)| site.room.asked.want_elsewhere(&feed, clients, now);
                feeds.into_iter().for_each(note);
                GatewayAnswer::default()
            }
            Ok(RelayedQuestion::MakeFeed { url, traits, client }) => {
                if let Ok(url) = Url::parse(&url) {
                    let client = client.map_or(Client::Own, Client::At);
                    let making =
                        async move { make_for_other(&site.room, &url, traits, client).await };
                    let _ = self.runtime.spawn(making).await;
                }
                GatewayAnswer::default()
            }
            Err(_) => GatewayAnswer::default(),
        }
    }
}
