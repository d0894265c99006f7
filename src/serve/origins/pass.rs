//! What is passed on to an origin, and what comes back; and what is led to the site instead.

use super::making::{begin_look, may_be};
use super::slots::SiteSlots;
use super::{OriginRequest, pages};
use crate::connections::ORIGIN_FILES_DIVISOR;
use crate::session::COOKIE;
use crate::site_service::{PolledFrame, WatchedBody};
use crate::{Client, Peer, Problem, ProblemCause, SharedState, auth, connections};
use axum::body::Body;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use http_body::Body as _;
use http_body_util::BodyExt as _;
use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use tidegate_net::fetch::FetchError;
use tidegate_net::origin::{
    BodyError, ForwardedFor, OriginPlace, OriginSite, OwnCookie, PassAnswer, PassRequest,
    PassedBody, PublicName, has_other_coding, may_make_feed, to_client, to_origin,
};

/// What became of a request for an origin, in the word of its metric.
pub(crate) type PassOutcome = &'static str;
pub(super) const FEED: PassOutcome = "feed";
const PASSED: PassOutcome = "passed";
/// Passed on, though it seems to be a feed: its client has had its share of new ones.
const UNMADE: PassOutcome = "unmade";
const REDIRECTED: PassOutcome = "redirected";

/// That of an error of the gateway's own: the site failed where it says so.
pub(super) fn outcome_of_error(problem: &Problem) -> PassOutcome {
    match problem.status {
        _ if problem.cause == ProblemCause::LateSite => "failed",
        StatusCode::BAD_GATEWAY | StatusCode::GATEWAY_TIMEOUT => "failed",
        // Too much of its client waits, or what is asked for is not there yet: no fault of the site's.
        StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS => "busy",
        _ => "refused",
    }
}

/// A site, and what counts its requests.
pub(super) struct ServedOrigin {
    pub(super) site: Arc<OriginSite>,
    pub(super) slots: Arc<SiteSlots>,
}

impl ServedOrigin {
    /// One of so many sites, which share the files that the process may open. `before`: the slots that requests for the site
    /// took under another configuration.
    pub(super) fn new(site: Arc<OriginSite>, sites: usize, before: Option<&SiteSlots>) -> Self {
        let files = connections::file_limit().unwrap_or(u64::MAX);
        let configured = site.config().requests;
        let requests = at_once(configured, files, sites);
        if requests < usize::try_from(configured).unwrap_or(usize::MAX) {
            tracing::warn!(
                origin = %site.config().name,
                requests,
                configured,
                files,
                "the site gets fewer requests at once than configured: all sites together have a quarter of the files \
                 that the process may open"
            );
        }
        Self { site, slots: Arc::new(SiteSlots::new(requests, before)) }
    }
}

/// How many requests each of so many sites gets at once: all of them together have a quarter of the files.
fn at_once(configured: u32, files: u64, sites: usize) -> usize {
    let all = usize::try_from(files / ORIGIN_FILES_DIVISOR).unwrap_or(usize::MAX);
    let most = (all / sites.max(1)).max(1);
    usize::try_from(configured).map_or(most, |configured| configured.min(most))
}

/// Headers that reach beyond the path of who sends them.
const OF_WHOLE_HOST: [HeaderName; 2] =
    [HeaderName::from_static("service-worker-allowed"), HeaderName::from_static("clear-site-data")];

/// Leads a client to the site, or to where the address was seen to lead here. Whether a feed is there is looked at
/// meanwhile, where that is not known.
pub(super) fn redirect(
    app: &SharedState,
    origin_request: &OriginRequest,
    request: &Request,
) -> Result<(Response, PassOutcome), Problem> {
    let client = Client::of(request.extensions());
    if may_make_feed(request.method(), request.headers()) {
        begin_look(app, origin_request, client);
    }
    let there = || {
        origin_request
            .target
            .as_ref()
            .map_or_else(|| origin_request.url.to_string(), Uri::to_string)
    };
    let known = app.origins.looks.lead(&origin_request.url);
    let (status, to) = known.unwrap_or_else(|| (StatusCode::TEMPORARY_REDIRECT, there()));
    let detail = "the address is not of ASCII";
    let to = HeaderValue::from_str(&to);
    let to = to.map_err(|_| Problem::new(StatusCode::BAD_REQUEST, detail))?;
    let unkept = (header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(((status, [(header::LOCATION, to), unkept]).into_response(), REDIRECTED))
}

/// Passes a request on, and its answer back. Of one that may be a feed, a feed is made meanwhile.
pub(super) async fn pass(
    app: &SharedState,
    origin_request: &OriginRequest,
    request: Request,
) -> Result<(Response, PassOutcome), Problem> {
    let (parts, body) = request.into_parts();
    let mut answer = send(app, origin_request, &parts, body).await?;
    let mut outcome = PASSED;
    // What a page announces to one client is for that client.
    if may_make_feed(&parts.method, &parts.headers) {
        if may_be(app, &origin_request.url, answer.status, &answer.headers) {
            let client = Client::of(&parts.extensions);
            app.operator.demand.note_client(origin_request.url.as_str(), client, app.clock.now());
            if !begin_look(app, origin_request, client) {
                outcome = UNMADE;
            }
        } else {
            answer = pages::watch_page(app, origin_request, answer);
        }
    }
    Ok((to_client_response(app, origin_request, &parts.method, answer), outcome))
}

/// An answer of the origin, as the client gets it.
fn to_client_response(
    app: &SharedState,
    origin_request: &OriginRequest,
    method: &Method,
    answer: PassAnswer,
) -> Response {
    let mut headers = to_client(answer.headers, OURS, &app.origins.via);
    for name in [header::LOCATION, header::CONTENT_LOCATION, header::REFRESH] {
        let leads = headers.get(&name);
        let here =
            leads.and_then(|leads| origin_request.site.led_here(&name, leads, &origin_request.url));
        if let Some(here) = here.and_then(|here| HeaderValue::from_str(&here).ok()) {
            headers.insert(name, here);
        }
    }
    // No length is that of what never comes (RFC 9110 section 8.6).
    if answer.status == StatusCode::NO_CONTENT {
        headers.remove(header::CONTENT_LENGTH);
    }
    if matches!(origin_request.site.config().place, OriginPlace::At(_)) {
        for name in OF_WHOLE_HOST {
            headers.remove(name);
        }
    }
    let has_no_body = *method == Method::HEAD
        || matches!(answer.status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
    // Its length is said by the headers, or not at all.
    let body = match has_no_body {
        true => Body::from_stream(stream::empty::<Result<Bytes, Infallible>>()),
        false => Body::new(answer.body),
    };
    let mut response = Response::new(body);
    *response.status_mut() = answer.status;
    *response.headers_mut() = headers;
    response
}

/// Our cookie, which no origin sees and none sets.
const OURS: OwnCookie = OwnCookie(COOKIE);

/// Sends a request to its site, once there is a slot for it. The answer has the slot until its body has been taken.
pub(super) async fn send(
    app: &SharedState,
    origin_request: &OriginRequest,
    parts: &Parts,
    body: Body,
) -> Result<PassAnswer, Problem> {
    let has_body = !body.is_end_stream();
    if has_body && matches!(parts.method, Method::GET | Method::HEAD) {
        let detail = "a GET or HEAD with a body is not passed on";
        return Err(Problem::new(StatusCode::BAD_REQUEST, detail));
    }
    let (body, _slow) = match has_body {
        true => {
            let body = body.map_err(BodyError::from).boxed_unsync();
            let (site, request) = (&origin_request.site.config().url, &parts.extensions);
            let (body, slow) = app.origins.uploads.read_ahead(site, request, body).await?;
            (Some(body), slow)
        }
        false => (None, None),
    };
    let slot = origin_request.slots.acquire(&parts.extensions, !parts.method.is_safe()).await?;
    let via = &app.origins.via;
    let forwarded = origin_request.site.public_name().map(|name| forwarded(app, parts, name));
    let mut headers =
        to_origin(&parts.headers, origin_request.site.host(), OURS, forwarded.as_ref(), via);
    if is_our_authorization(app, &parts.headers) {
        headers.remove(header::AUTHORIZATION);
    }
    let (method, url, target) =
        (parts.method.clone(), origin_request.url.clone(), origin_request.target.clone());
    let answer = app.operator.pass(PassRequest { method, url, target, headers, body }).await;
    let answer = answer.map_err(|error| problem_of(&error))?;
    if has_other_coding(&answer.headers) {
        let detail = "the site's answer has a transfer coding other than chunked";
        return Err(Problem::new(StatusCode::BAD_GATEWAY, detail));
    }
    let hold = move |_: &PassedBody, _: &PolledFrame<BodyError>| {
        let _held = &slot;
    };
    Ok(PassAnswer { body: WatchedBody::new(answer.body, hold).boxed_unsync(), ..answer })
}

/// Why a request could not be passed on. What is said names no address.
pub(super) fn problem_of(error: &FetchError) -> Problem {
    let (status, detail) = match error {
        FetchError::Unsent => (StatusCode::BAD_REQUEST, "the client broke off its request"),
        FetchError::Timeout { .. } => {
            (StatusCode::GATEWAY_TIMEOUT, "the site did not answer in time")
        }
        FetchError::Refused { .. } | FetchError::Client { .. } | FetchError::NoRoots => {
            (StatusCode::BAD_GATEWAY, "the gateway may not ask the site; its log says why")
        }
        _ => (StatusCode::BAD_GATEWAY, "the site cannot be reached"),
    };
    Problem::new(status, detail)
}

/// Whether credentials are for this gateway, which no origin is to see.
fn is_our_authorization(app: &SharedState, headers: &HeaderMap) -> bool {
    let is_ours = || {
        app.config.admin_token.admits(headers)
            || auth::password(headers).is_some_and(|password| app.readers.find(&password).is_some())
    };
    headers.contains_key(header::AUTHORIZATION) && is_ours()
}

fn forwarded<'n>(app: &SharedState, parts: &Parts, name: &'n PublicName) -> ForwardedFor<'n> {
    let peer: Option<Peer> = parts.extensions.get().copied();
    let peer = peer.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |peer| peer.0);
    ForwardedFor { peer, is_trusted: app.proxies.are_trusted(peer), name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_site_did_not_answer_failed() {
        let of = |status| {
            let problem = Problem::new(StatusCode::from_u16(status).unwrap(), "");
            outcome_of_error(&problem)
        };
        assert_eq!([502, 504].map(of), ["failed"; 2]);
        assert_eq!([503, 429].map(of), ["busy"; 2], "a client's own share may be used up");
        assert_eq!([400, 405, 501, 508].map(of), ["refused"; 4]);
        // Sites leave files for others.
        let of = [(524_288, 1), (524_288, 1_000), (1_024, 1), (1_024, 4), (1_024, 1_000)];
        let each = of.map(|(files, sites)| at_once(256, files, sites));
        assert_eq!(each, [256, 131, 256, 64, 1]);
    }
}
