//! `/websub/callback/TOKEN`: where hubs of upstreams call (WebSub sections 5.3 and 7).
//!
//! What a hub may ask back, and whether a push is believed, is for the side that subscribes to say;
//! nothing of a push is taken but that there was one.

use super::SharedState;
use super::conditional::unkept;
use super::feeds::unreadable;
use super::problem::{Problem, RETRY_SOON};
use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, RawQuery, State};
use axum::response::{IntoResponse, Response};
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, StatusCode};
use http_body_util::BodyExt as _;
use std::time::Duration;
use tidegate_core::websub::{SIGNATURE_HEADER, Verification};
use tidegate_status::PushResult;
use tidegate_store::SHARDS;
use tokio::sync::{Semaphore, SemaphorePermit as Place};
use tokio::time::{Instant, timeout_at};

/// The longest push, in bytes. A longer one cannot be checked, and counts as none.
pub const PUSH_LIMIT: usize = 8 * 1024 * 1024;

/// How many pushes longer than [`SHORT_PUSH`] are read at the same time.
pub const PUSHES_AT_ONCE: usize = 8;

/// The longest push that needs no place among these, in bytes: most are no longer, and are read
/// though slow ones hold every place.
pub const SHORT_PUSH: usize = 64 * 1024;

/// How long the body of a push may take, waiting for a place included.
pub const PUSH_TIME: Duration = Duration::from_secs(5);

/// The route, as it is counted and logged: its last step is a secret.
pub(super) const ROUTE: &str = "/websub/callback/{token}";

/// The longest token that is looked at, in bytes.
const TOKEN_LIMIT: usize = 64;

type CallbackToken = Result<Path<String>, PathRejection>;

/// `GET`: the hub asks whether a request was meant, or says no.
pub(super) async fn verify(
    State(room): State<SharedState>,
    token: CallbackToken,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let token = known(&room, token).ok_or_else(|| elsewhere(&room).unwrap_or_else(unasked))?;
    let said = Verification::read(&query.unwrap_or_default()).map_err(|_| unasked())?;
    let answer = room.operator.called(&token, said).await?.ok_or_else(unasked)?;
    // Never anything that a browser would show as a page.
    Ok(unkept("text/plain; charset=utf-8", answer))
}

/// `POST`: the hub delivers. Right or wrong, it is answered the same (section 7.1); a hub that
/// delivers for a subscription that is over may end it (410, section 7).
pub(super) async fn push(
    State(room): State<SharedState>,
    token: CallbackToken,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let token = known(&room, token).ok_or_else(|| elsewhere(&room).unwrap_or_else(over))?;
    // The other push may prove false, so that this one cannot be answered as taken because of it.
    let alone = room.pushing.try_take(&token, 1);
    let _alone =
        alone.ok_or_else(|| Problem::later("another push is being read here", RETRY_SOON))?;
    let (body, _place) = read(&room.pushes, body).await?;
    let signature = headers.get(SIGNATURE_HEADER).and_then(|value| value.to_str().ok());
    match room.operator.pushed(&token, signature.map(str::to_owned), body).await {
        PushResult::Unknown => Err(elsewhere(&room).unwrap_or_else(over)),
        PushResult::Busy => Err(Problem::later("too much waits to be polled", RETRY_SOON)),
        PushResult::Disbelieved | PushResult::Taken => Ok(StatusCode::ACCEPTED.into_response()),
    }
}

/// The token, where a callback has it.
fn known(room: &SharedState, token: CallbackToken) -> Option<String> {
    let token = token.map_err(unreadable).ok()?.0;
    (token.len() <= TOKEN_LIMIT && room.operator.is_callback(&token)).then_some(token)
}

/// Reads a push within [`PUSH_TIME`], with its place among the long ones where it is one. Only what
/// is long waits for a place: a slow sender that holds one keeps no short push out.
async fn read(places: &Semaphore, body: Body) -> Result<(Bytes, Option<Place<'_>>), Problem> {
    let until = Instant::now() + PUSH_TIME;
    let (mut body, mut read, mut place) = (body, BytesMut::new(), None);
    loop {
        let frame = timeout_at(until, body.frame()).await.map_err(|_| {
            let said = format!("a push takes {} seconds at most", PUSH_TIME.as_secs());
            Problem::new(StatusCode::REQUEST_TIMEOUT, said)
        })?;
        let Some(frame) = frame else { return Ok((read.freeze(), place)) };
        let frame =
            frame.map_err(|_| Problem::new(StatusCode::BAD_REQUEST, "the body broke off"))?;
        // Trailers say nothing here.
        let Ok(data) = frame.into_data() else { continue };
        let length = read.len().saturating_add(data.len());
        if length > PUSH_LIMIT {
            let said = format!("a push has {PUSH_LIMIT} bytes at most");
            return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, said));
        }
        if length > SHORT_PUSH && place.is_none() {
            let free = timeout_at(until, places.acquire()).await.ok().and_then(Result::ok);
            let later = || Problem::later("too many long pushes come at once", RETRY_SOON);
            place = Some(free.ok_or_else(later)?);
        }
        read.extend_from_slice(&data);
    }
}

/// What is said of an unknown callback while other gateways poll some of the feeds: the one that writes, which alone
/// subscribes, may not have that feed yet. A hub that were told that the subscription is over would end it.
fn elsewhere(room: &SharedState) -> Option<Problem> {
    let said = "the feed of this callback may be polled by another gateway just now";
    let is_shared = room.operator.totals().shards < u64::from(SHARDS);
    is_shared.then(|| Problem::later(said, RETRY_SOON))
}

fn unasked() -> Problem {
    Problem::not_found("nothing of the kind was asked of a hub")
}

fn over() -> Problem {
    Problem::new(StatusCode::GONE, "this subscription is over")
}
