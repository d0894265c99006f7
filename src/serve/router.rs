//! What a listener answers: what HTTP asks of every request, what is an origin's, the routes by who may ask (`routes.rs`), and
//! what goes around all of them.
//!
//! Answers over a database that other gateways write as well are no older than it allows: where what is in memory was not
//! compared with the database lately, the request waits for a look, or is refused.

use super::observe::RequestFacts;
use super::ready::ReadyAnswers;
use super::routes::{Access, ROUTES};
use super::{
    API, AppState, Listener, Peer, Problem, REQUEST_BODY_LIMIT, SharedState, audience, auth,
    client, event_streams, observe, origins, query, routes, shown_pages,
};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, Request};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use http::uri::Authority;
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, Version, header};
use http_body::Body as _;
use http_body_util::BodyExt as _;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::model::mask_token;
use tidegate_store::StoreCondition;
use tower::service_fn;

/// How many characters of an unknown path are said back.
const PATH_SHOWN: usize = 200;

/// The site, as one listener answers it.
#[derive(Clone)]
pub(super) struct ListenerSite {
    pub(super) app: SharedState,
    pub(super) listener: Listener,
    /// Our own routes, for requests whose audience is known.
    pub(super) routes: Router,
    pub(super) ready: Arc<ReadyAnswers>,
}

impl ListenerSite {
    /// That of a listener.
    pub(super) fn new(app: SharedState, listener: Listener) -> Self {
        let routes = own_routes(&app, listener);
        let ready = Arc::new(ReadyAnswers::new(app.config.server.memory));
        Self { app, listener, routes, ready }
    }

    /// Answers any request: one for an origin through `origins`, all others through [`Self::answer_own`]. Answers of
    /// origins pass none of the middleware around our own routes.
    pub(super) async fn answer(&self, mut request: Request) -> Response {
        let method = request.method().clone();
        if let Some(peer) = request.extensions().get().copied() {
            let client = client::asking(&self.app, peer, request.headers());
            request.extensions_mut().insert(client);
        }
        wait_for_store(&self.app, &mut request).await;
        // What is refused is counted and logged with our own routes.
        let is_own = self.listener == Listener::Operators || is_refused(&request);
        let answer = match is_own {
            true => self.answer_own(request).await,
            false => origins::enter(&self.app, request, self).await,
        };
        finish_answer(answer, &method)
    }

    /// Answers a request for one of our own routes, with all the middleware in its order. Repeated answers (`ready`)
    /// bypass it.
    pub(super) async fn answer_own(&self, request: Request) -> Response {
        let facts = RequestFacts::new(&request);
        let checked = check_host(&request);
        let page = checked.is_ok().then(|| shown_pages::way_back(&request)).flatten();
        let mut answer = match checked {
            Ok(()) => audience::enter(self, request).await,
            Err(problem) => problem.into_response(),
        };
        if let Some(way_back) = &page {
            answer = shown_pages::show_problem(answer, Some(way_back));
        }
        shown_pages::prefix_headers_with_path(&mut answer);
        answer = observe::compress(&self.app, &facts, answer).await;
        answer = observe::hold_body(&self.app, &facts, answer).await;
        observe::record_answer(&self.app, &facts, &mut answer);
        // For HEAD the routes remove the body before its length is set, so a length of 0 may be wrong.
        let headers = answer.headers_mut();
        if facts.is_head() && headers.get(header::CONTENT_LENGTH).is_some_and(|it| it == "0") {
            headers.remove(header::CONTENT_LENGTH);
        }
        answer
    }

    /// The same as a router.
    pub(super) fn into_router(self) -> Router {
        Router::new().fallback_service(service_fn(move |request| {
            let site = self.clone();
            async move { Ok::<_, Infallible>(site.answer(request).await) }
        }))
    }
}

/// Finishes an answer as an axum router would, since not all come from one: sets a known `Content-Length`, and removes
/// the body of an answer to HEAD. For HEAD a length of 0 is not set, because the body may have been removed before.
fn finish_answer(mut answer: Response, method: &Method) -> Response {
    let is_head = *method == Method::HEAD;
    if let Some(length) = answer.body().size_hint().exact()
        && !(is_head && length == 0)
        && !answer.headers().contains_key(header::CONTENT_LENGTH)
    {
        answer.headers_mut().insert(header::CONTENT_LENGTH, length.into());
    }
    if is_head {
        *answer.body_mut() = Body::empty();
    }
    answer
}

/// The routes of a listener. One that is not for this listener answers 404, like one that does not exist.
fn own_routes(app: &SharedState, listener: Listener) -> Router {
    let operators = match listener {
        Listener::Everybody | Listener::Operators => routes::router(Access::Operator)
            .merge(routes::router(Access::Form))
            .nest(API, administration(app)),
        Listener::Readers => {
            let forms = ROUTES.iter().filter(|route| route.access == Access::Form);
            forms.fold(Router::new(), |router, form| router.route(&form.path, post(unknown)))
        }
    };
    let readable = routes::router(Access::Anywhere)
        .method_not_allowed_fallback(wrong_method)
        .route_layer(from_fn(allow_any_origin));
    let pages = routes::router(Access::Page)
        .route_layer(from_fn_with_state(Arc::clone(app), audience::guard_pages));
    Router::new()
        .merge(readable)
        .merge(pages)
        .merge(operators)
        .merge(routes::router(Access::Everybody))
        .fallback(unknown)
        .method_not_allowed_fallback(wrong_method)
        .layer(DefaultBodyLimit::max(REQUEST_BODY_LIMIT))
        .layer(from_fn(observe::routed))
        .with_state(Arc::clone(app))
}

/// What is below the address of administration. Whatever is asked there, the token is asked for first.
fn administration(app: &SharedState) -> Router<SharedState> {
    routes::router(Access::Api)
        .fallback(unknown_administration)
        .method_not_allowed_fallback(wrong_method)
        .layer(from_fn(query::known_only))
        .layer(from_fn_with_state(Arc::clone(app), auth::require))
}

async fn unknown(request: Request) -> Result<Response, Problem> {
    let elsewhere = redirect_without_slash(&request);
    elsewhere.ok_or_else(|| nothing_at(request.uri().path()))
}

/// The same below the administration's address, which the routes there do not see.
async fn unknown_administration(uri: Uri) -> Problem {
    nothing_at(&format!("{API}{}", if uri.path() == "/" { "" } else { uri.path() }))
}

/// The 404 for a path without a route.
pub(super) fn nothing_at(path: &str) -> Problem {
    let path: String = mask_token(path).chars().take(PATH_SHOWN).collect();
    Problem::not_found(format!("there is nothing at {path}"))
}

async fn wrong_method(method: Method) -> Problem {
    let detail = match query::known_method(&method) {
        Some(method) => format!("{method} is not for this address; see the header Allow"),
        None => "this method is not for this address; see the header Allow".to_owned(),
    };
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, detail)
}

/// How much of a body that nobody reads is read and dropped, in bytes: a client that is still writing
/// when the connection closes never sees the answer.
const DRAIN_BYTES: usize = 16 * 1024 * 1024;
/// How long that may take.
pub(super) const DRAIN_TIME: Duration = Duration::from_secs(10);

/// Refuses a request of HTTP/1.1 that does not name one host (RFC 9112 section 3.2).
pub(super) fn check_host(request: &Request) -> Result<(), Problem> {
    // What did not come over a socket has no version of its own.
    let came = request.extensions().get::<Peer>().is_some();
    if came && request.version() == Version::HTTP_11 && !names_one_host(request.headers()) {
        let detail = "a request of HTTP/1.1 has exactly one header Host";
        return Err(Problem::new(StatusCode::BAD_REQUEST, detail));
    }
    Ok(())
}

/// Whether one header names a host, with or without a port.
fn names_one_host(headers: &HeaderMap) -> bool {
    let mut hosts = headers.get_all(header::HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else { return false };
    let is_host = |host: &str| !host.contains('@') && host.parse::<Authority>().is_ok();
    host.to_str().is_ok_and(|host| host.is_empty() || is_host(host))
}

/// Reads on, within bounds, what nobody read of a request's body.
pub(super) async fn drain(mut body: impl http_body::Body<Data = Bytes> + Unpin) {
    let mut read = 0;
    while let Some(Ok(frame)) = body.frame().await {
        read += frame.data_ref().map_or(0, Bytes::len);
        if read > DRAIN_BYTES {
            return;
        }
    }
}

/// Request headers that scripts of other origins may send.
const ALLOWED_HEADERS: HeaderValue = HeaderValue::from_static(
    "A-IM, Accept, Cache-Control, If-Modified-Since, If-None-Match, Last-Event-ID",
);
const ALLOWED_METHODS: HeaderValue = HeaderValue::from_static("GET, HEAD");
/// Answer headers that they may read, unless the answer lists its own.
const EXPOSED: HeaderValue = HeaderValue::from_static("ETag, Link, Retry-After");
/// How long a browser may cache the preflight answer: a day, in seconds.
const PREFLIGHT_AGE: HeaderValue = HeaderValue::from_static("86400");

/// CORS middleware for what feed readers in browsers read: any origin may read it, errors included. Answers preflight
/// requests (Fetch standard).
pub(super) async fn allow_any_origin(request: Request, next: Next) -> Response {
    match preflight(&request) {
        Some(answer) => add_cors_headers(answer),
        None => add_cors_headers(next.run(request).await),
    }
}

/// The answer to a CORS preflight request; `None` for any other request.
fn preflight(request: &Request) -> Option<Response> {
    let headers = request.headers();
    let asks = request.method() == Method::OPTIONS
        && headers.contains_key(header::ORIGIN)
        && headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
    let allowed = [
        (header::ACCESS_CONTROL_ALLOW_METHODS, ALLOWED_METHODS),
        (header::ACCESS_CONTROL_ALLOW_HEADERS, ALLOWED_HEADERS),
        (header::ACCESS_CONTROL_MAX_AGE, PREFLIGHT_AGE),
    ];
    asks.then(|| (StatusCode::NO_CONTENT, allowed).into_response())
}

/// Adds the CORS headers for any origin, unless the answer has its own.
fn add_cors_headers(mut response: Response) -> Response {
    let anybody = HeaderValue::from_static("*");
    let headers = response.headers_mut();
    headers.entry(header::ACCESS_CONTROL_ALLOW_ORIGIN).or_insert(anybody);
    headers.entry(header::ACCESS_CONTROL_EXPOSE_HEADERS).or_insert(EXPOSED);
    response
}

/// Where an address of a feed leads that has a slash at its end: to the same without it. The answer
/// is relative, so that it is right behind a proxy that cuts off a prefix too. Browsers follow it for
/// pages from anywhere only where it may be read there itself.
pub(super) fn redirect_without_slash(request: &Request) -> Option<Response> {
    let leads = without_slash(request.uri())?;
    Some(add_cors_headers(preflight(request).unwrap_or(leads)))
}

fn without_slash(uri: &Uri) -> Option<Response> {
    let path = uri.path().strip_suffix('/')?.trim_end_matches('/');
    let (_, last) = path.strip_prefix("/feeds/").map(|_| path)?.rsplit_once('/')?;
    let cut = uri.path().len() - path.len();
    let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    let to = format!("{}{last}{query}", "../".repeat(cut));
    let to = HeaderValue::from_str(&to).ok()?;
    Some((StatusCode::PERMANENT_REDIRECT, [(header::LOCATION, to)]).into_response())
}

/// What is answered whatever is known of the database.
const ALWAYS: [&str; 2] = ["/healthz", "/metrics"];
/// What says why the store has stopped, or for how long its database is silent.
const READY: &str = "/readyz";
/// What is answered once the database is not followed any more.
const ENDED: &str = "this gateway reads its database no more until its operator has mended that (/readyz says why); ask \
    another gateway, if there is one";

/// Why a request is refused: what was durable when it came cannot be seen. An extension of the request.
#[derive(Clone)]
struct UnseenDatabase(Problem);

/// Waits until this gateway has seen what was committed when a request came. One that came when that cannot be seen is
/// refused from then on.
async fn wait_for_store(app: &AppState, request: &mut Request) {
    let (path, store) = (request.uri().path(), &app.store);
    let knows_why =
        |condition: StoreCondition| condition.stop.is_some() || condition.unanswered.is_some();
    let says_why = || path == READY && knows_why(store.condition());
    if store.answers_from_memory() || ALWAYS.contains(&path) || says_why() {
        return;
    }
    let Err(error) = store.catch_up().await else { return };
    // The store itself has logged why, once.
    let has_ended = store.condition().stop.is_some_and(|stop| stop.next_try.is_none());
    let problem = if has_ended { Problem::later(ENDED) } else { Problem::from(error) };
    request.extensions_mut().insert(UnseenDatabase(problem));
}

/// Whether [`wait_for_store`] refused a request.
pub(super) fn is_refused<B>(request: &http::Request<B>) -> bool {
    request.extensions().get::<UnseenDatabase>().is_some()
}

/// The answer to what [`wait_for_store`] refused: behind what counts and logs answers.
pub(super) fn refusal(request: &Request) -> Option<Response> {
    let UnseenDatabase(problem) = request.extensions().get().cloned()?;
    Some(match event_streams::is_event_source(request) {
        // Any other status than 200 would be the end.
        true => event_streams::ended("ask another gateway"),
        false => problem.into_response(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slash_at_the_end_leads_to_the_address_without_it() {
        let to = |uri: &str| {
            let answer = without_slash(&uri.parse().unwrap())?;
            Some(answer.headers()[header::LOCATION].to_str().unwrap().to_owned())
        };
        for (from, expected) in [
            ("/feeds/a/", "/feeds/a"),
            ("/feeds/a//", "/feeds/a"),
            ("/feeds/a/sync/?since=x", "/feeds/a/sync?since=x"),
            ("/feeds/javascript:x/", "/feeds/javascript:x"),
        ] {
            let base = url::Url::parse(&format!("http://x{from}")).unwrap();
            let to = base.join(&to(from).unwrap()).unwrap();
            assert_eq!(to.as_str(), format!("http://x{expected}"), "{from}");
        }
        for none in ["/feeds/a", "/feeds/", "/feeds//", "/", "/x/", "//feeds/a/"] {
            assert_eq!(to(none), None, "{none}");
        }
    }
}
