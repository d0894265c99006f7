//! Requests for the sites that the gateway stands in front of (`[[origin]]`), and for feeds at a path of their
//! own: a feed is answered as its reader view, everything else is passed on or redirected.
//!
//! None of our own pages is below an origin's place, and no answer of an origin has our headers.

mod body;
mod first;
mod flights;
mod pages;
mod places;
mod service;
mod through;

pub use self::body::whole_body;
pub(super) use self::places::{FeedPlaces, PlaceRules};
pub use self::service::{
    AdmittedSite, AskedFeeds, FeedTraits, FoundAddress, NotMade, OriginService, OriginSettings,
    PassError,
};

use self::first::{FirstLooks, Look, LookPermit, LookResult};
use self::flights::OriginFlights;
use self::pages::PagesSeen;
use super::client::Peer;
use super::metrics::Metrics;
use super::problem::Problem;
use super::reading::FETCH_DEST;
use super::site_service::ListenerSite;
use super::{SharedState, request_rules};
use crate::config::{AllowConfig, OriginPlace, PassMode};
use crate::model::{FeedName, FeedStanding};
use crate::origin::{OriginSite, Via, is_usual, may_make_feed};
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use prometheus_client::metrics::counter::Counter;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::time::Instant;
use url::Url;

/// How often a new feed is looked for while its first document is judged.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// How soon to ask again for a feed whose first document is being judged.
const FIRST_AGAIN: Duration = Duration::from_secs(5);

/// The sites, and what is known of their answers.
pub(super) struct Origins {
    sites: Vec<ServedOrigin>,
    allow: Vec<AllowConfig>,
    has_paths: bool,
    service: Option<Arc<dyn OriginService>>,
    looks: FirstLooks,
    flights: OriginFlights,
    pages: PagesSeen,
    via: Via,
}

/// A site, and what counts its requests.
struct ServedOrigin {
    site: Arc<OriginSite>,
    /// By [`PassOutcome`]; there is none until a request has it.
    counters: [OnceLock<Counter>; PassOutcome::NUMBER],
}

impl ServedOrigin {
    fn new(site: Arc<OriginSite>) -> Self {
        Self { site, counters: Default::default() }
    }

    fn count(&self, metrics: &Metrics, outcome: PassOutcome) {
        if let Some(counter) = self.counters.get(outcome as usize) {
            counter.get_or_init(|| metrics.passed(&self.site.config().name, outcome)).inc();
        }
    }
}

/// A request for an origin: which one, and what it asks for.
#[derive(Clone)]
struct OriginRequest {
    site: Arc<OriginSite>,
    /// The address there.
    url: Url,
    /// The same with path and query as the client wrote them.
    target: Option<Uri>,
}

/// What a request asks for.
enum OriginAsked<'o, 'r> {
    /// An origin, and the rest of the path.
    Site(&'o ServedOrigin, &'r str),
    /// The place of an origin without the slash at its end.
    WithoutSlash,
}

impl Origins {
    /// `name`: what tells this gateway from others.
    pub(super) fn new(settings: &OriginSettings, name: &str) -> Self {
        let mut sites = settings.sites.clone();
        // A host is its origin's alone, whatever the path.
        sites.sort_by_key(|site| matches!(site.config().place, OriginPlace::At(_)));
        Self {
            sites: sites.into_iter().map(ServedOrigin::new).collect(),
            allow: settings.allow.clone(),
            has_paths: !settings.paths.is_empty(),
            service: settings.service.clone(),
            looks: FirstLooks::new(&settings.sites),
            flights: OriginFlights::new(&settings.sites),
            pages: PagesSeen::default(),
            via: Via::new(name),
        }
    }

    /// Whether there is anything that readers may subscribe to by `/subscribe`.
    pub(super) fn admits_any(&self) -> bool {
        self.service.is_some() && !(self.sites.is_empty() && self.allow.is_empty())
    }

    /// Whether a request may be one for an origin, so that no answer of our own is ready for it.
    pub(super) fn may_be_for<B>(&self, request: &http::Request<B>) -> bool {
        !self.sites.is_empty() && self.find(request).is_some()
    }

    fn find<'o, 'r, B>(&'o self, request: &'r http::Request<B>) -> Option<OriginAsked<'o, 'r>> {
        let path = request.uri().path();
        let host = host(request.uri(), request.headers());
        for origin in &self.sites {
            if let Some(rest) = origin.site.rest(host, path) {
                return Some(OriginAsked::Site(origin, rest));
            }
            if origin.site.is_place_without_slash(path) {
                return Some(OriginAsked::WithoutSlash);
            }
        }
        None
    }

    /// The site that admits an address, and the address there: one of an origin, or of the list of those that
    /// readers may subscribe to. An address of ours that is an origin's is that of the origin.
    pub(super) fn admitted(&self, url: &Url) -> Option<(AdmittedSite, Url)> {
        let of_origin = |origin: &ServedOrigin| {
            Some((AdmittedSite::of_origin(&origin.site), origin.site.there(url)?))
        };
        if let Some(found) = self.sites.iter().find_map(of_origin) {
            return Some(found);
        }
        let allowed =
            self.allow.iter().find(|allowed| crate::origin::is_below(url, &allowed.url))?;
        Some((AdmittedSite::allowed(allowed), url.clone()))
    }

    /// The address here of one of an origin.
    pub(super) fn place_of(&self, url: &Url) -> Option<String> {
        self.sites.iter().find_map(|origin| origin.site.public_address(url))
    }

    /// Notes that a feed at an address of an origin may be made, since it was found.
    pub(super) fn announce(&self, url: &Url) {
        self.pages.announce(url);
    }

    /// What makes feeds and passes requests on.
    pub(super) fn service(&self) -> Result<&Arc<dyn OriginService>, Problem> {
        let none = || Problem::not_found("this gateway stands in front of no site");
        self.service.as_ref().ok_or_else(none)
    }

    /// Leave to look at an address of an admitted site; see [`FirstLooks::turn`].
    pub(super) async fn turn(&self, site: &AdmittedSite) -> Result<LookPermit, Problem> {
        self.looks.turn(site.url.as_str(), LOOK_WAIT).await
    }
}

/// How long `/subscribe` waits for its turn.
const LOOK_WAIT: Duration = Duration::from_secs(5);

/// The host that a request names; that of its target goes before the header (RFC 9112 section 3.2.2).
fn host<'r>(uri: &'r Uri, headers: &'r HeaderMap) -> Option<&'r str> {
    let target = uri.authority().map(http::uri::Authority::as_str);
    let named = || headers.get(header::HOST).and_then(|host| host.to_str().ok());
    target.or_else(named)
}

/// The answer to any request: what is an origin's is answered here, all else by `next`.
pub(super) async fn enter(room: &SharedState, request: Request, next: &ListenerSite) -> Response {
    match room.origins.find(&request) {
        None if room.origins.has_paths => at_path(room, request, next).await,
        None => next.route(request).await,
        Some(asked) => {
            let came = request.extensions().get::<Peer>().is_some();
            if came && !request_rules::has_one_host(&request) {
                return request_rules::not_one_host().into_response();
            }
            match asked {
                OriginAsked::WithoutSlash => with_slash(request.uri()),
                OriginAsked::Site(origin, rest) => {
                    let (config, rest) = (origin.site.config(), rest.to_owned());
                    let (begun, method) = (Instant::now(), request.method().clone());
                    let request = match config.passes {
                        PassMode::Through => request,
                        PassMode::Redirect => request_rules::without_body(request),
                    };
                    let (answer, outcome) =
                        answer(room, (&origin.site, &rest), request, next).await;
                    origin.count(&room.metrics, outcome);
                    tracing::debug!(
                        origin = %config.name,
                        %method,
                        status = answer.status().as_u16(),
                        outcome = outcome.name(),
                        milliseconds = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX),
                        "answered"
                    );
                    answer
                }
            }
        }
    }
}

/// A feed at a path of its own.
async fn at_path(room: &SharedState, request: Request, next: &ListenerSite) -> Response {
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
    let listing = match is_read {
        true => room.directory.listing().await.ok(),
        false => None,
    };
    let name = listing.and_then(|all| all.places().feed_at_path(request.uri().path()).cloned());
    let Some(name) = name else { return next.route(request).await };
    let query = request.uri().query().map(|query| format!("?{query}")).unwrap_or_default();
    next.route(as_feed(request, &name, &query)).await
}

/// Where the place of an origin leads whose slash was left out.
fn with_slash(uri: &Uri) -> Response {
    let last = uri.path().rsplit('/').next().unwrap_or_default();
    let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    // Relative, so that it is right behind a proxy that cuts off a prefix too.
    match HeaderValue::from_str(&format!("{last}/{query}")) {
        Ok(to) => (StatusCode::PERMANENT_REDIRECT, [(header::LOCATION, to)]).into_response(),
        Err(_) => {
            Problem::new(StatusCode::BAD_REQUEST, "the query is not of ASCII").into_response()
        }
    }
}

/// The same request, as one for the reader view of a feed, by whoever it is.
fn as_feed(mut request: Request, name: &FeedName, query: &str) -> Request {
    if let Ok(uri) = format!("/feeds/{name}{query}").parse() {
        *request.uri_mut() = uri;
    }
    let headers = request.headers_mut();
    // They are the origin's, and our page would not be at home there.
    for name in [header::COOKIE, header::AUTHORIZATION, FETCH_DEST] {
        headers.remove(name);
    }
    request
}

/// What became of a request for an origin, for its metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PassOutcome {
    Feed,
    Passed,
    Redirected,
    Refused,
    Failed,
}

impl PassOutcome {
    /// How many there are.
    const NUMBER: usize = 5;

    /// The word for it.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Feed => "feed",
            Self::Passed => "passed",
            Self::Redirected => "redirected",
            Self::Refused => "refused",
            Self::Failed => "failed",
        }
    }
}

fn refused(problem: Problem) -> (Response, PassOutcome) {
    (problem.into_response(), PassOutcome::Refused)
}

async fn answer(
    room: &SharedState,
    (site, rest): (&Arc<OriginSite>, &str),
    request: Request,
    next: &ListenerSite,
) -> (Response, PassOutcome) {
    let method = request.method();
    if matches!(*method, Method::CONNECT | Method::TRACE) {
        let said = format!("{method} is not passed on");
        return refused(Problem::new(StatusCode::METHOD_NOT_ALLOWED, said));
    }
    if !request.uri().path().starts_with('/') {
        return refused(Problem::new(StatusCode::BAD_REQUEST, "the request names no path"));
    }
    if room.origins.via.is_in(request.headers()) {
        let said = "the request came through this gateway before: the origin's url leads back here";
        return refused(Problem::new(StatusCode::LOOP_DETECTED, said));
    }
    let url = match site.upstream(rest, request.uri().query()) {
        Ok(url) => url,
        Err(fault) => return refused(Problem::new(StatusCode::BAD_REQUEST, fault.to_string())),
    };
    let target = site.target(rest, request.uri().query());
    let asked = OriginRequest { site: Arc::clone(site), url, target };
    let is_read = matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS);
    if is_read {
        match known_feed(room, &asked.url).await {
            Ok(Some(name)) => return Box::pin(feed(room, &asked, &name, request, next)).await,
            Ok(None) => {}
            Err(problem) => return (problem.into_response(), PassOutcome::Failed),
        }
    }
    let is_through = asked.site.config().passes == PassMode::Through;
    let has_no_feed = room.origins.looks.no_feed(&asked.url).is_some();
    if has_no_feed || !may_make(room, &asked, method, request.headers()) {
        return match is_through {
            true => through::pass(room, &asked, (request, Waited::No), next).await,
            false => through::redirect(&asked.url),
        };
    }
    // In boxes, so that what is passed on has not to be moved with their room.
    match room.origins.looks.begin(&asked.url) {
        Look::First(look) => Box::pin(through::look(room, &asked, look, request, next)).await,
        Look::Another(look) => {
            Box::pin(follow_look(room, &asked, (look, Waited::No), request, next)).await
        }
    }
}

/// Whether the answer to a request may make a feed.
fn may_make(
    room: &SharedState,
    asked: &OriginRequest,
    method: &Method,
    headers: &HeaderMap,
) -> bool {
    let is_announced = || room.origins.pages.is_announced(&asked.url);
    // Where nothing is passed on, the gateway asks by itself.
    let is_everybodys = asked.site.config().passes == PassMode::Redirect || is_usual(headers);
    // One that is known and has no document yet is polled already.
    let is_unknown = room.site.places.load().feed_of(&asked.url).is_none();
    may_make_feed(method, headers)
        && is_unknown
        && is_everybodys
        && (asked.url.query().is_none() || is_announced())
}

/// Whether somebody who waited for another's look did so before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Waited {
    No,
    Yes,
}

/// What somebody else's look finds.
async fn follow_look(
    room: &SharedState,
    asked: &OriginRequest,
    (look, again): (first::OtherLook, Waited),
    request: Request,
    next: &ListenerSite,
) -> (Response, PassOutcome) {
    let is_through = asked.site.config().passes == PassMode::Through;
    match look.result(asked.site.config().first_wait).await {
        LookResult::Feed(name) => feed(room, asked, &name, request, next).await,
        LookResult::Later(why) => later(why),
        LookResult::NoFeed(_) if !is_through => through::redirect(&asked.url),
        LookResult::Unknown if again == Waited::Yes => later(BEING_LOOKED_AT),
        // Nothing is known where who looked left, or the origin is slow: the answer will tell.
        LookResult::NoFeed(_) | LookResult::Unknown if is_through => {
            Box::pin(through::pass(room, asked, (request, Waited::Yes), next)).await
        }
        LookResult::NoFeed(_) | LookResult::Unknown => match room.origins.looks.begin(&asked.url) {
            Look::First(look) => Box::pin(through::look(room, asked, look, request, next)).await,
            Look::Another(look) => {
                Box::pin(follow_look(room, asked, (look, Waited::Yes), request, next)).await
            }
        },
    }
}

/// What is said while somebody else's request for an address has no answer.
const BEING_LOOKED_AT: &str = "this address is new, and what is there is being looked at";

fn later(why: impl Into<String>) -> (Response, PassOutcome) {
    (Problem::later(why, FIRST_AGAIN).into_response(), PassOutcome::Failed)
}

/// The feed that is at an address of an origin. One of the operator's that has no document yet is none: what the
/// origin answers is as good.
async fn known_feed(room: &SharedState, url: &Url) -> Result<Option<FeedName>, Problem> {
    let listing = room.directory.listing().await?;
    let Some(name) = listing.places().feed_of(url).cloned() else { return Ok(None) };
    let record = listing.get(&name);
    let is_served = match record.map(|record| (record.standing, &record.on_demand)) {
        None => false,
        Some((FeedStanding::Gone, _)) => true,
        Some((_, made)) => {
            let now = room.clock.now();
            let is_new = made.as_ref().is_some_and(|made| now.since(made.asked) < FIRST_TRIES);
            is_new || room.store.state(&name).await?.is_some()
        }
    };
    if !is_served && let Some(record) = record {
        room.directory.note_asked_for(record);
    }
    Ok(is_served.then_some(name))
}

/// How long a feed that a request made is waited for whose first polls fail.
const FIRST_TRIES: Duration = Duration::from_secs(600);

/// The reader view of a feed at its publisher's address. One whose first document is not judged yet is waited for.
async fn feed(
    room: &SharedState,
    asked: &OriginRequest,
    name: &FeedName,
    request: Request,
    next: &ListenerSite,
) -> (Response, PassOutcome) {
    let listing = room.directory.listing().await.ok();
    let standing = listing.as_ref().and_then(|all| all.get(name)).map(|record| record.standing);
    let until = Instant::now() + asked.site.config().first_wait;
    while standing.is_none_or(|standing| standing == FeedStanding::Active) {
        match room.store.state(name).await {
            Ok(None) if Instant::now() >= until => {
                return later("the feed is new, and its first document is being judged");
            }
            Ok(None) => tokio::time::sleep(LOOK_EVERY).await,
            // Where the store fails, an answer may be kept; otherwise it says so.
            Ok(Some(_)) | Err(_) => break,
        }
    }
    let is_json = room.site.places.load().is_json(name);
    let query = if is_json { "?as=jsonfeed" } else { "" };
    (next.route(as_feed(request, name, query)).await, PassOutcome::Feed)
}

#[cfg(test)]
mod tests;
