//! What is passed on to an origin, and what comes back.

use super::super::client::Peer;
use super::super::problem::Problem;
use super::super::session::COOKIE;
use super::super::{SharedState, auth};
use super::first::{FirstLook, Look, LookResult, NoFeedKind};
use super::service::{AdmittedSite, NotMade, PassError};
use super::{Again, OriginRequest, PassOutcome, feed, host, later, pages};
use crate::config::PassMode;
use crate::origin::{
    BodyError, ForwardedFor, OwnCookie, PassAnswer, PassRequest, PassedBody, Proto, WholeAnswer,
    is_for_everybody, may_be_feed, may_make_feed, says_page, to_client, to_origin,
};
use axum::body::Body;
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use bytes::{Bytes, BytesMut};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use http_body::Body as _;
use http_body_util::{BodyExt as _, Full};
use std::net::{IpAddr, Ipv4Addr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::timeout;
use url::Url;

/// The largest document that may become a feed at its first request, in bytes as it comes over the wire.
const DOCUMENT_LIMIT: usize = 16 * 1024 * 1024;
/// How long the rest of such a document may take.
const DOCUMENT_TIME: Duration = Duration::from_secs(30);
/// Our cookie, which no origin sees and none sets.
const OURS: OwnCookie = OwnCookie(COOKIE);

/// To where the origin itself has it.
pub(super) fn redirect(url: &Url) -> (Response, PassOutcome) {
    let Ok(to) = HeaderValue::from_str(url.as_str()) else {
        return super::refused(Problem::new(
            StatusCode::BAD_REQUEST,
            "the address is not of ASCII",
        ));
    };
    let headers =
        [(header::LOCATION, to), (header::CACHE_CONTROL, HeaderValue::from_static("no-store"))];
    ((StatusCode::TEMPORARY_REDIRECT, headers).into_response(), PassOutcome::Redirected)
}

/// Passes a request on, and its answer back. Where the answer may be a feed, it is looked at.
pub(super) async fn pass(
    room: &SharedState,
    asked: &OriginRequest,
    request: Request,
    next: Next,
) -> (Response, PassOutcome) {
    let (parts, body) = request.into_parts();
    let answer = match send(room, asked, &parts, body).await {
        Ok(answer) => answer,
        Err(problem) => return (problem.into_response(), PassOutcome::Failed),
    };
    let is_known = room.origins.looks.no_feed(&asked.url) == Some(NoFeedKind::Document);
    if !is_known
        && super::may_make(room, asked, &parts.method, &parts.headers)
        && may_be(room, asked, &answer)
    {
        let again = Request::from_parts(parts, Body::empty());
        return match room.origins.looks.begin(&asked.url) {
            Look::First(look) => Box::pin(document(room, asked, (look, answer), again, next)).await,
            Look::Another(look) => {
                Box::pin(super::found(room, asked, (look, Again::Yes), again, next)).await
            }
        };
    }
    // What a page announces to one client is for that client.
    match may_make_feed(&parts.method, &parts.headers) {
        true => passed(asked, pages::noticing(room, asked, answer)),
        false => passed(asked, answer),
    }
}

async fn send(
    room: &SharedState,
    asked: &OriginRequest,
    parts: &Parts,
    body: Body,
) -> Result<PassAnswer, Problem> {
    let service = room.origins.service()?;
    let mut headers = to_origin(&parts.headers, OURS, &forwarded(room, parts));
    if is_our_authorization(room, &parts.headers) {
        headers.remove(header::AUTHORIZATION);
    }
    let has_body = !body.is_end_stream();
    let body = has_body.then(|| body.map_err(BodyError::from).boxed_unsync());
    let (method, url) = (parts.method.clone(), asked.url.clone());
    let passing = service.pass(PassRequest { method, url, headers, body });
    passing.await.map_err(|error| {
        let status = match error {
            PassError::TimedOut => StatusCode::GATEWAY_TIMEOUT,
            PassError::Unreachable | PassError::Refused => StatusCode::BAD_GATEWAY,
        };
        Problem::new(status, error.to_string())
    })
}

/// Whether an answer may be a feed. Most JSON is none, so that it has to be announced as one.
fn may_be(room: &SharedState, asked: &OriginRequest, answer: &PassAnswer) -> bool {
    let is_json = answer.headers.get(header::CONTENT_TYPE).is_some_and(is_plain_json);
    may_be_feed(answer.status, &answer.headers)
        && (!is_json || room.origins.pages.is_announced(&asked.url))
}

/// Whether credentials are for this gateway, which no origin is to see.
fn is_our_authorization(room: &SharedState, headers: &HeaderMap) -> bool {
    room.settings.load().admin_token.admits(headers)
        || auth::password(headers).is_some_and(|password| room.readers.find(&password).is_some())
}

fn forwarded(room: &SharedState, parts: &Parts) -> ForwardedFor {
    let peer: Option<Peer> = parts.extensions.get().copied();
    let peer = peer.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |peer| peer.0);
    let is_https = room.site.at("").starts_with("https:");
    ForwardedFor {
        peer,
        is_trusted: room.settings.load().proxies.are_trusted(peer),
        host: host(&parts.uri, &parts.headers).map(str::to_owned),
        proto: if is_https { Proto::Https } else { Proto::Http },
    }
}

/// An answer of the origin, as the client gets it.
fn passed(asked: &OriginRequest, answer: PassAnswer) -> (Response, PassOutcome) {
    let mut headers = to_client(&answer.headers, OURS);
    for name in [header::LOCATION, header::CONTENT_LOCATION] {
        let leads = headers.get(&name).and_then(|value| value.to_str().ok());
        let here = leads.and_then(|leads| asked.site.redirected(leads, &asked.url));
        if let Some(here) = here.and_then(|here| HeaderValue::from_str(&here).ok()) {
            headers.insert(name, here);
        }
    }
    let mut response = Response::new(Body::new(answer.body));
    *response.status_mut() = answer.status;
    *response.headers_mut() = headers;
    (response, PassOutcome::Passed)
}

/// Sends the first request for an address, and makes a feed of what answers as one.
pub(super) async fn look(
    room: &SharedState,
    asked: &OriginRequest,
    look: FirstLook,
    request: Request,
    next: Next,
) -> (Response, PassOutcome) {
    let config = asked.site.config();
    // What is passed on is no request of ours.
    let turn = match config.passes {
        PassMode::Through => None,
        PassMode::Redirect => {
            match room.origins.looks.turn(config.url.as_str(), config.first_wait).await {
                Ok(turn) => Some(turn),
                Err(problem) => return (problem.into_response(), PassOutcome::Failed),
            }
        }
    };
    let (parts, body) = request.into_parts();
    let answer = match send(room, asked, &parts, body).await {
        Ok(answer) => answer,
        Err(problem) => return (problem.into_response(), PassOutcome::Failed),
    };
    if may_be(room, asked, &answer) {
        let again = Request::from_parts(parts, Body::empty());
        let made = document(room, asked, (look, answer), again, next).await;
        drop(turn);
        return made;
    }
    // A failure says nothing of what is there at other times.
    if !answer.status.is_server_error() && answer.status != StatusCode::TOO_MANY_REQUESTS {
        look.tell(LookResult::NoFeed(NoFeedKind::Headers));
    }
    no_feed(room, asked, answer).await
}

/// Reads what may be a feed, and makes one of it.
async fn document(
    room: &SharedState,
    asked: &OriginRequest,
    (look, answer): (FirstLook, PassAnswer),
    again: Request,
    next: Next,
) -> (Response, PassOutcome) {
    let wait = asked.site.config().first_wait;
    let _turn = match room.origins.looks.document(wait).await {
        Ok(turn) => turn,
        Err(problem) => return (problem.into_response(), PassOutcome::Failed),
    };
    let PassAnswer { status, headers, body } = answer;
    match timeout(DOCUMENT_TIME, collect(body)).await {
        Ok(Ok(Collected::Whole(body))) => {
            made(room, asked, (look, WholeAnswer { headers, body }), again, next).await
        }
        Ok(Ok(Collected::Part(body))) => {
            look.tell(LookResult::NoFeed(NoFeedKind::Document));
            no_feed(room, asked, PassAnswer { status, headers, body }).await
        }
        Ok(Err(_)) | Err(_) => {
            let said = "the site broke off before the whole document had arrived";
            let problem = Problem::new(StatusCode::BAD_GATEWAY, said);
            (problem.into_response(), PassOutcome::Failed)
        }
    }
}

/// Makes a feed of a document, which goes on where the client leaves or the time is over.
async fn made(
    room: &SharedState,
    asked: &OriginRequest,
    (look, whole): (FirstLook, WholeAnswer),
    again: Request,
    next: Next,
) -> (Response, PassOutcome) {
    let wait = asked.site.config().first_wait;
    let service = match room.origins.service() {
        Ok(service) => Arc::clone(service),
        Err(problem) => return (problem.into_response(), PassOutcome::Failed),
    };
    let (site, url, given) =
        (AdmittedSite::of_origin(&asked.site), asked.url.clone(), whole.clone());
    let directory = Arc::clone(&room.directory);
    let making = tokio::spawn(async move {
        let made = service.make_feed(&site, &url, Some(given)).await;
        directory.changed();
        look.tell(match &made {
            Ok(name) => LookResult::Feed(name.clone()),
            Err(NotMade::NoFeed | NotMade::Full { .. }) => LookResult::NoFeed(NoFeedKind::Document),
            Err(NotMade::Later { why, .. }) => LookResult::Later(why.clone()),
        });
        made
    });
    let answer = |whole: WholeAnswer| PassAnswer {
        status: StatusCode::OK,
        headers: whole.headers,
        body: Full::new(whole.body).map_err(|never| match never {}).boxed_unsync(),
    };
    match timeout(wait, making).await {
        Ok(Ok(Ok(name))) => feed(room, asked, &name, again, next).await,
        Ok(Ok(Err(NotMade::NoFeed | NotMade::Full { .. }))) => {
            no_feed(room, asked, answer(whole)).await
        }
        Ok(Ok(Err(NotMade::Later { keeps_ids: true, .. }))) => passed(asked, answer(whole)),
        Ok(Ok(Err(NotMade::Later { why, .. }))) => later(why),
        Ok(Err(_)) | Err(_) => later("the feed is new, and its first document is being judged"),
    }
}

/// What is no feed: passed back, or left to the origin. What a page announces is noted either way.
async fn no_feed(
    room: &SharedState,
    asked: &OriginRequest,
    answer: PassAnswer,
) -> (Response, PassOutcome) {
    if asked.site.config().passes == PassMode::Through {
        return passed(asked, pages::noticing(room, asked, answer));
    }
    let leads = answer.headers.get(header::LOCATION).and_then(|value| value.to_str().ok());
    let here = leads.and_then(|leads| asked.site.redirected(leads, &asked.url));
    if here.is_some() && answer.status.is_redirection() {
        return passed(asked, answer);
    }
    let is_page = says_page(&answer.headers) && is_for_everybody(&answer.headers);
    if answer.status == StatusCode::OK && is_page {
        let (room, asked, headers) = (Arc::clone(room), asked.clone(), answer.headers.clone());
        tokio::spawn(async move {
            let read = timeout(DOCUMENT_TIME, pages::whole(answer.body)).await;
            if let Ok(Some(body)) = read {
                pages::read(&room, &asked, WholeAnswer { headers, body }).await;
            }
        });
    }
    redirect(&asked.url)
}

/// Whether a media type is that of any JSON, most of which is no feed.
fn is_plain_json(value: &HeaderValue) -> bool {
    value.as_bytes().starts_with(b"application/json")
}

/// A body, as far as it is kept.
enum Collected {
    Whole(Bytes),
    /// It is larger than the limit: what was read, and the rest.
    Part(PassedBody),
}

async fn collect(mut body: PassedBody) -> Result<Collected, BodyError> {
    let mut all = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        all.extend_from_slice(&data);
        if all.len() > DOCUMENT_LIMIT {
            return Ok(Collected::Part(continued(all.freeze(), body)));
        }
    }
    Ok(Collected::Whole(all.freeze()))
}

/// A body whose beginning was read.
fn continued(beginning: Bytes, rest: PassedBody) -> PassedBody {
    BegunBody { beginning: Some(beginning), rest }.boxed_unsync()
}

struct BegunBody {
    beginning: Option<Bytes>,
    rest: PassedBody,
}

impl http_body::Body for BegunBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>, BodyError>>> {
        match self.beginning.take() {
            Some(bytes) => Poll::Ready(Some(Ok(http_body::Frame::data(bytes)))),
            None => Pin::new(&mut self.rest).poll_frame(context),
        }
    }
}
