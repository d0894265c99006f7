//! `/websub/callback/TOKEN`: where hubs of upstreams call (WebSub sections 5.3 and 7).
//!
//! What a hub may ask back, and whether a push is believed, is for the side that subscribes to say;
//! nothing of a push is taken but that there was one.

use super::Shared;
use super::feeds::unreadable;
use super::operator::PushOutcome;
use super::problem::{Problem, RETRY_SOON};
use crate::websub::{SIGNATURE_HEADER, Verification};
use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, RawQuery, State};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};

/// The longest push, in bytes. A longer one cannot be checked, and counts as none.
pub const PUSH_LIMIT: usize = 8 * 1024 * 1024;

/// How many pushes are read at the same time.
pub const PUSHES_AT_ONCE: usize = 8;

/// The route, as it is counted and logged: its last step is a secret.
pub(super) const ROUTE: &str = "/websub/callback/{token}";

/// The longest token that is looked at, in bytes.
const TOKEN_LIMIT: usize = 64;

type Token = Result<Path<String>, PathRejection>;

/// `GET`: the hub asks whether a request was meant, or says no.
pub(super) async fn verify(
    State(room): State<Shared>,
    token: Token,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let token = known(&room, token).ok_or_else(unasked)?;
    let said = Verification::read(&query.unwrap_or_default()).map_err(|_| unasked())?;
    let answer = room.operator.called(&token, said).await?.ok_or_else(unasked)?;
    // Never anything that a browser would show as a page.
    let text = HeaderValue::from_static("text/plain; charset=utf-8");
    let fresh = HeaderValue::from_static("no-store");
    Ok(([(header::CONTENT_TYPE, text), (header::CACHE_CONTROL, fresh)], answer).into_response())
}

/// `POST`: the hub delivers. Right or wrong, it is answered the same (section 7.1); a hub that
/// delivers for a subscription that is over may end it (410, section 7).
pub(super) async fn push(
    State(room): State<Shared>,
    token: Token,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let token = known(&room, token).ok_or_else(over)?;
    let later = || Problem::later("too many pushes come at once", RETRY_SOON);
    let _room = room.pushes.try_acquire().map_err(|_| later())?;
    let body = read(body).await?;
    let signature = headers.get(SIGNATURE_HEADER).and_then(|value| value.to_str().ok());
    match room.operator.pushed(&token, signature.map(str::to_owned), body).await {
        PushOutcome::Unknown => Err(over()),
        PushOutcome::Busy => Err(Problem::later("too much waits to be polled", RETRY_SOON)),
        PushOutcome::Disbelieved | PushOutcome::Taken => Ok(StatusCode::ACCEPTED.into_response()),
    }
}

/// The token, where a callback has it.
fn known(room: &Shared, token: Token) -> Option<String> {
    let token = token.map_err(unreadable).ok()?.0;
    (token.len() <= TOKEN_LIMIT && room.operator.is_callback(&token)).then_some(token)
}

async fn read(body: Body) -> Result<Bytes, Problem> {
    let read = Limited::new(body, PUSH_LIMIT).collect().await;
    read.map(|body| body.to_bytes()).map_err(|error| {
        if error.downcast_ref::<LengthLimitError>().is_some() {
            let said = format!("a push has {PUSH_LIMIT} bytes at most");
            return Problem::new(StatusCode::PAYLOAD_TOO_LARGE, said);
        }
        Problem::new(StatusCode::BAD_REQUEST, "the body broke off")
    })
}

fn unasked() -> Problem {
    Problem::not_found("nothing of the kind was asked of a hub")
}

fn over() -> Problem {
    Problem::new(StatusCode::GONE, "this subscription is over")
}
