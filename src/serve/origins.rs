//! Requests for the sites that the gateway stands in front of (`[[origin]]`), and for feeds at a path of their
//! own: a feed is answered as its reader view, everything else is passed on or redirected. So is the first request for a
//! feed, which is made meanwhile.
//!
//! None of our own pages is below an origin's place, and no answer of an origin has our headers.

mod admitted;
mod looks;
mod making;
mod pages;
mod pass;
mod places;
mod slots;

pub use self::admitted::OriginSettings;
pub(super) use self::admitted::{
    AdmittedSite, DiscoveredFeed, FeedTraits, FoundAddress, HeaderRule,
};
pub use self::places::FeedDemand;
pub(super) use self::places::{FeedPlaces, PlaceRules};

use self::looks::Looks;
use self::making::NewFeedShares;
use self::pages::PagesSeen;
pub(super) use self::pages::document_or_page;
pub(super) use self::pass::PassOutcome;
use self::pass::ServedOrigin;
use self::slots::{SiteSlots, Uploads};
use super::audience::OriginalPath;
use super::reading::FETCH_DEST;
use super::{ListenerSite, Problem, SharedState, prefers_html, router, shown_pages};
use axum::body::Body;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use std::sync::Arc;
use tidegate_config::AllowConfig;
use tidegate_core::model::{FeedName, FeedStanding};
use tidegate_format::render::Container;
use tidegate_net::origin::{
    OriginPlace, OriginSite, PassMode, Via, has_other_coding, is_definite, is_neutral,
};
use tidegate_store::StoreError;
use tokio::time::{Instant, timeout};
use url::Url;

/// The sites, and what is known of their answers.
pub(super) struct Origins {
    sites: Vec<ServedOrigin>,
    allow: Vec<AllowConfig>,
    pub(super) looks: Looks,
    uploads: Uploads,
    pub(super) pages: PagesSeen,
    pub(super) feed_shares: NewFeedShares,
    via: Via,
}

/// A request for an origin: which one, and what it asks for.
#[derive(Clone)]
struct OriginRequest {
    site: Arc<OriginSite>,
    /// The address there, by which a feed of it is known.
    url: Url,
    /// The same with path and query as the client wrote them, which is what the site is asked.
    target: Option<Uri>,
    /// The slots for what the site has at once.
    slots: Arc<SiteSlots>,
}

impl Origins {
    /// `name`: what tells this gateway from others. `before`: those of the configuration before, whose requests go on.
    pub(super) fn new(settings: &OriginSettings, name: &str, before: Option<&Self>) -> Self {
        let mut sites = settings.sites.clone();
        // A host is its origin's alone, whatever the path.
        sites.sort_by_key(|site| matches!(site.config().place, OriginPlace::At(_)));
        let served = |site: &Arc<OriginSite>| {
            let is_same = |of: &&ServedOrigin| of.site.config().name == site.config().name;
            let slots = before.and_then(|before| before.sites.iter().find(is_same));
            let slots = slots.map(|before| before.slots.as_ref());
            ServedOrigin::new(Arc::clone(site), sites.len(), slots)
        };
        Self {
            sites: sites.iter().map(served).collect(),
            allow: settings.allow.clone(),
            looks: Looks::new(),
            uploads: Uploads::new(),
            pages: PagesSeen::default(),
            feed_shares: NewFeedShares::default(),
            via: Via::new(name),
        }
    }

    /// Whether there is anything that readers may subscribe to by `/subscribe`.
    pub(super) fn admits_any(&self) -> bool {
        !(self.sites.is_empty() && self.allow.is_empty())
    }

    /// Whether a request may be one for an origin.
    pub(super) fn may_be_for<B>(&self, request: &http::Request<B>) -> bool {
        !self.sites.is_empty() && self.find(request).is_some()
    }

    /// The origin that a request is for, and the rest of its path; `None` where the slash at the end of the origin's
    /// place is left out.
    fn find<'o, 'r, B>(
        &'o self,
        request: &'r http::Request<B>,
    ) -> Option<(&'o ServedOrigin, Option<&'r str>)> {
        let path = request.uri().path();
        let host = host(request.uri(), request.headers());
        self.sites.iter().find_map(|origin| match origin.site.rest(host, path) {
            None if origin.site.is_place_without_slash(path) => Some((origin, None)),
            None => None,
            rest => Some((origin, rest)),
        })
    }

    /// The site that admits an address, and the address there, without its fragment: one of an origin, or of the list
    /// of those that readers may subscribe to. An address of ours that is an origin's is that of the origin.
    pub(super) fn admitted(&self, url: &Url) -> Option<(AdmittedSite, Url)> {
        let of_origin = |origin: &ServedOrigin| {
            Some((AdmittedSite::of_origin(&origin.site), origin.site.there(url)?))
        };
        if let Some(found) = self.sites.iter().find_map(of_origin) {
            return Some(found);
        }
        self.allow.iter().map(AdmittedSite::allowed).find_map(|site| {
            let there = site.there(url)?;
            Some((site, there))
        })
    }

    /// The address here of one of an origin.
    pub(super) fn place_of(&self, url: &Url) -> Option<String> {
        self.sites.iter().find_map(|origin| origin.site.public_address(url))
    }

    /// Whether a request for an address of an origin may make a feed, as far as the address says.
    pub(super) fn makes_feed_at(&self, url: &Url) -> bool {
        let is_open = |origin: &ServedOrigin| origin.site.holds(url) && !origin.site.shows_key(url);
        (is_definite(url) || self.pages.is_announced(url)) && self.sites.iter().any(is_open)
    }

    /// Whether a feed of an answer may replace what is at an address of an origin. Where requests choose between a page
    /// and a feed (RFC 9110 section 12.1), it does only if a page announces the address as that of a feed.
    pub(super) fn is_for_all_requests(&self, url: &Url, headers: &HeaderMap) -> bool {
        is_neutral(headers) || self.pages.is_announced(url)
    }
}

/// The host that a request names; that of its target goes before the header (RFC 9112 section 3.2.2).
fn host<'r>(uri: &'r Uri, headers: &'r HeaderMap) -> Option<&'r str> {
    let target = uri.authority().map(http::uri::Authority::as_str);
    let named = || headers.get(header::HOST).and_then(|host| host.to_str().ok());
    target.or_else(named)
}

/// The answer to any request: what is an origin's is answered here, all else by `next`.
pub(super) async fn enter(app: &SharedState, request: Request, next: &ListenerSite) -> Response {
    let found = app.origins.find(&request);
    let (origin, rest) = match found.map(|(origin, rest)| (origin, rest.map(str::to_owned))) {
        None if !app.directory.rules.paths.is_empty() => {
            return at_path(app, request, next).await;
        }
        None => return next.answer_own(request).await,
        Some(found) => found,
    };
    if let Err(problem) = router::check_host(&request) {
        return problem.into_response();
    }
    let Some(rest) = rest else { return with_slash(request.uri()) };
    let (config, begun, method) = (origin.site.config(), Instant::now(), request.method().clone());
    let is_page = shown_pages::is_page_wanted(&request);
    let request = match config.passes {
        PassMode::Through => request,
        PassMode::Redirect => request.map(|_| Body::empty()),
    };
    // In a box: what is none of a site would be moved about with all that this needs.
    let answered = Box::pin(answer(app, (origin, &rest), request, next)).await;
    let (answer, outcome) = answered.unwrap_or_else(|problem| {
        let outcome = pass::outcome_of_error(&problem);
        let answer = problem.into_response();
        (if is_page { shown_pages::show_problem(answer, None) } else { answer }, outcome)
    });
    app.metrics.passed(&config.name, outcome).inc();
    tracing::debug!(
        origin = %config.name,
        %method,
        status = answer.status().as_u16(),
        outcome,
        milliseconds = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX),
        "answered"
    );
    answer
}

/// A feed at a path of its own.
async fn at_path(app: &SharedState, request: Request, next: &ListenerSite) -> Response {
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
    let listing = match is_read {
        true => app.directory.listing().await.ok(),
        false => None,
    };
    let address = app.site.at(request.uri().path());
    let name = listing.and_then(|all| all.places.feed_at(&address).cloned());
    let Some(name) = name else { return next.answer_own(request).await };
    let query = request.uri().query().map(|query| format!("?{query}")).unwrap_or_default();
    next.answer_own(as_feed(request, &name, &query)).await
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
    let original_path = OriginalPath(request.uri().path().to_owned());
    request.extensions_mut().insert(original_path);
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

/// The answer to a request for an origin; a problem is one of the gateway's own.
async fn answer(
    app: &SharedState,
    (origin, rest): (&ServedOrigin, &str),
    request: Request,
    next: &ListenerSite,
) -> Result<(Response, PassOutcome), Problem> {
    let (method, site) = (request.method(), &origin.site);
    if matches!(*method, Method::CONNECT | Method::TRACE) {
        let detail = format!("{method} is not passed on");
        let problem = Problem::new(StatusCode::METHOD_NOT_ALLOWED, detail);
        let outcome = pass::outcome_of_error(&problem);
        return Ok((([(header::ALLOW, PASSED_METHODS)], problem).into_response(), outcome));
    }
    if !request.uri().path().starts_with('/') {
        return Err(Problem::new(StatusCode::BAD_REQUEST, "the request names no path"));
    }
    if has_other_coding(request.headers()) {
        let detail = "the request has a transfer coding other than chunked";
        return Err(Problem::new(StatusCode::NOT_IMPLEMENTED, detail));
    }
    if app.origins.via.is_in(request.headers()) {
        let detail =
            "the request came through this gateway before: the origin's url leads back here";
        return Err(Problem::new(StatusCode::LOOP_DETECTED, detail));
    }
    let url = site.upstream(rest, request.uri().query());
    let url = url.map_err(|fault| Problem::new(StatusCode::BAD_REQUEST, fault.to_string()))?;
    let target = site.target(rest, request.uri().query());
    let (site, slots) = (Arc::clone(site), Arc::clone(&origin.slots));
    let origin_request = OriginRequest { site, url, target, slots };
    if matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS) {
        let first_wait = origin_request.site.config().first_wait;
        app.origins.looks.wait_for_look(&origin_request.url, first_wait).await;
        if let Some(name) = served_feed(app, &origin_request).await? {
            let (parts, body) = request.into_parts();
            let reading = making::read_again(app, &origin_request, &name, &parts);
            // Whatever became of it, what there is is served.
            let _ = timeout(first_wait, Box::pin(reading)).await;
            let request = Request::from_parts(parts, body);
            return Ok(Box::pin(feed(app, &origin_request, &name, request, next)).await);
        }
    }
    match origin_request.site.config().passes {
        PassMode::Through => pass::pass(app, &origin_request, request).await,
        PassMode::Redirect => pass::redirect(app, &origin_request, &request),
    }
}

/// The feed at an address of an origin, where it has a document. One that was deleted hides nothing that is passed on.
async fn served_feed(
    app: &SharedState,
    OriginRequest { site, url, .. }: &OriginRequest,
) -> Result<Option<FeedName>, StoreError> {
    let listing = app.directory.listing().await?;
    let name = listing.places.feed_of(url);
    let Some(record) = name.and_then(|name| listing.get(name)) else { return Ok(None) };
    let is_gone = record.standing == FeedStanding::Gone;
    if is_gone && site.config().passes == PassMode::Through {
        return Ok(None);
    }
    if is_gone || app.store.state(&record.name).await?.is_some() {
        return Ok(Some(record.name.clone()));
    }
    app.note_asked_for(record);
    Ok(None)
}

/// The reader view of a feed at its publisher's address.
async fn feed(
    app: &SharedState,
    origin_request: &OriginRequest,
    name: &FeedName,
    request: Request,
    next: &ListenerSite,
) -> (Response, PassOutcome) {
    let is_json = app.site.places.load().is_json(name);
    let query = if is_json { "?as=jsonfeed" } else { "" };
    let is_publishers_own = matches!(origin_request.site.config().place, OriginPlace::Host(_));
    let is_shown = is_publishers_own && prefers_html(request.headers());
    let mut answer = next.answer_own(as_feed(request, name, query)).await;
    if is_shown {
        show_as_xml(answer.headers_mut());
    }
    (answer, pass::FEED)
}

/// A feed as a browser is to show it. One that calls itself a feed is saved to a file.
fn show_as_xml(headers: &mut HeaderMap) {
    let of_feeds = [Container::Atom.media_type(), Container::Rss.media_type()];
    let is_feed = headers
        .get(header::CONTENT_TYPE)
        .is_some_and(|sent| of_feeds.contains(&sent.to_str().unwrap_or_default()));
    if is_feed {
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(ANY_XML));
    }
}

/// What a site is asked, of the methods that are known.
const PASSED_METHODS: &str = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";

/// The media type of any XML (RFC 7303 section 9.1).
const ANY_XML: &str = "application/xml; charset=utf-8";

#[cfg(test)]
pub(super) mod tests;
