//! What is passed on to an origin, and what comes back; and what is led to the site instead.

use super::super::SharedState;
use super::super::client::Client;
use super::super::problem::Problem;
use super::making::{begin_look, may_be};
use super::send::{OURS, send};
use super::{OriginRequest, PassOutcome, pages};
use axum::body::Body;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;
use http::{HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use std::convert::Infallible;
use tidegate_net::origin::{OriginPlace, PassAnswer, may_make_feed, to_client};

/// Headers that reach beyond the path of who sends them.
const OF_WHOLE_HOST: [HeaderName; 2] =
    [HeaderName::from_static("service-worker-allowed"), HeaderName::from_static("clear-site-data")];

pub(super) fn failed(problem: Problem) -> (Response, PassOutcome) {
    let outcome = PassOutcome::of_error(&problem);
    (problem.into_response(), outcome)
}

/// Leads a client to the site, or to where the address was seen to lead here. Whether a feed is there is looked at
/// meanwhile, where that is not known.
pub(super) fn redirect(
    room: &SharedState,
    asked: &OriginRequest,
    request: &Request,
) -> (Response, PassOutcome) {
    let client = request.extensions().get().copied().unwrap_or(Client::Own);
    if may_make_feed(request.method(), request.headers()) {
        begin_look(room, asked, client);
    }
    let there = || asked.target.as_ref().map_or_else(|| asked.url.to_string(), Uri::to_string);
    let known = room.origins.looks.lead(&asked.url);
    let (status, to) = known.unwrap_or_else(|| (StatusCode::TEMPORARY_REDIRECT, there()));
    let Ok(to) = HeaderValue::from_str(&to) else {
        let said = "the address is not of ASCII";
        return super::refused(Problem::new(StatusCode::BAD_REQUEST, said));
    };
    let unkept = (header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    ((status, [(header::LOCATION, to), unkept]).into_response(), PassOutcome::Redirected)
}

/// Passes a request on, and its answer back. Of one that may be a feed, a feed is made meanwhile.
pub(super) async fn pass(
    room: &SharedState,
    asked: &OriginRequest,
    request: Request,
) -> (Response, PassOutcome) {
    let (parts, body) = request.into_parts();
    let answer = match send(room, asked, &parts, body).await {
        Ok(answer) => answer,
        Err(problem) => return failed(problem),
    };
    // What a page announces to one client is for that client.
    if !may_make_feed(&parts.method, &parts.headers) {
        return (passed(room, asked, &parts.method, answer), PassOutcome::Passed);
    }
    if !may_be(room, &asked.url, answer.status, &answer.headers) {
        let answer = pages::noticing(room, asked, answer);
        return (passed(room, asked, &parts.method, answer), PassOutcome::Passed);
    }
    let client = parts.extensions.get().copied().unwrap_or(Client::Own);
    room.asked.note_client(asked.url.as_str(), client, room.clock.now());
    let outcome = match begin_look(room, asked, client) {
        true => PassOutcome::Passed,
        false => PassOutcome::Unmade,
    };
    (passed(room, asked, &parts.method, answer), outcome)
}

/// An answer of the origin, as the client gets it.
fn passed(
    room: &SharedState,
    asked: &OriginRequest,
    method: &Method,
    answer: PassAnswer,
) -> Response {
    let mut headers = to_client(answer.headers, OURS, &room.origins.via);
    for name in [header::LOCATION, header::CONTENT_LOCATION, header::REFRESH] {
        let leads = headers.get(&name);
        let here = leads.and_then(|leads| asked.site.led_here(&name, leads, &asked.url));
        if let Some(here) = here.and_then(|here| HeaderValue::from_str(&here).ok()) {
            headers.insert(name, here);
        }
    }
    // No length is that of what never comes (RFC 9110 section 8.6).
    if answer.status == StatusCode::NO_CONTENT {
        headers.remove(header::CONTENT_LENGTH);
    }
    if matches!(asked.site.config().place, OriginPlace::At(_)) {
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
