//! Requests on their way to a site.

use super::super::SharedState;
use super::super::auth;
use super::super::client::Peer;
use super::super::problem::Problem;
use super::super::session::COOKIE;
use super::super::watched_body::{PolledFrame, WatchedBody};
use super::OriginRequest;
use super::service::PassError;
use axum::body::Body;
use http::request::Parts;
use http::{HeaderMap, Method, StatusCode, header};
use http_body::Body as _;
use http_body_util::BodyExt as _;
use std::net::{IpAddr, Ipv4Addr};
use tidegate_net::origin::{
    BodyError, ForwardedFor, OwnCookie, PassAnswer, PassRequest, PassedBody, PublicName,
    has_other_coding, to_origin,
};

/// Our cookie, which no origin sees and none sets.
pub(super) const OURS: OwnCookie = OwnCookie(COOKIE);

/// Sends a request to its site, once there is a slot for it. The answer has the slot until its body has been taken.
pub(super) async fn send(
    room: &SharedState,
    asked: &OriginRequest,
    parts: &Parts,
    body: Body,
) -> Result<PassAnswer, Problem> {
    let service = room.origins.service()?;
    let has_body = !body.is_end_stream();
    if has_body && matches!(parts.method, Method::GET | Method::HEAD) {
        let said = "a GET or HEAD with a body is not passed on";
        return Err(Problem::new(StatusCode::BAD_REQUEST, said));
    }
    let (body, _slow) = match has_body {
        true => {
            let body = body.map_err(BodyError::from).boxed_unsync();
            let (site, request) = (&asked.site.config().url, &parts.extensions);
            let (body, slow) = room.origins.uploads.read_ahead(site, request, body).await?;
            (Some(body), slow)
        }
        false => (None, None),
    };
    let slot = asked.slots.acquire(&parts.extensions, !parts.method.is_safe()).await?;
    let via = &room.origins.via;
    let forwarded = asked.site.public_name().map(|name| forwarded(room, parts, name));
    let mut headers = to_origin(&parts.headers, asked.site.host(), OURS, forwarded.as_ref(), via);
    if is_our_authorization(room, &parts.headers) {
        headers.remove(header::AUTHORIZATION);
    }
    let (method, url, target) = (parts.method.clone(), asked.url.clone(), asked.target.clone());
    let answer = service.pass(PassRequest { method, url, target, headers, body }).await;
    let answer = answer.map_err(problem_of)?;
    if has_other_coding(&answer.headers) {
        let said = "the site's answer has a transfer coding other than chunked";
        return Err(Problem::new(StatusCode::BAD_GATEWAY, said));
    }
    let hold = move |_: &PassedBody, _: &PolledFrame<BodyError>| {
        let _held = &slot;
    };
    Ok(PassAnswer { body: WatchedBody::new(answer.body, hold).boxed_unsync(), ..answer })
}

pub(super) fn problem_of(error: PassError) -> Problem {
    let status = match error {
        PassError::TimedOut => StatusCode::GATEWAY_TIMEOUT,
        PassError::Unreachable | PassError::Refused => StatusCode::BAD_GATEWAY,
        PassError::Unsent => StatusCode::BAD_REQUEST,
    };
    Problem::new(status, error.to_string())
}

/// Whether credentials are for this gateway, which no origin is to see.
fn is_our_authorization(room: &SharedState, headers: &HeaderMap) -> bool {
    let is_ours = || {
        room.settings.load().admin_token.admits(headers)
            || auth::password(headers)
                .is_some_and(|password| room.readers.find(&password).is_some())
    };
    headers.contains_key(header::AUTHORIZATION) && is_ours()
}

fn forwarded<'n>(room: &SharedState, parts: &Parts, name: &'n PublicName) -> ForwardedFor<'n> {
    let peer: Option<Peer> = parts.extensions.get().copied();
    let peer = peer.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |peer| peer.0);
    ForwardedFor { peer, is_trusted: room.settings.load().proxies.are_trusted(peer), name }
}
