//! Bodies on their way: what clients asked for and have not taken yet.
//!
//! A body is one with the document that is kept, so that it takes no memory of its own while that is
//! kept and however many are sent it. But who asks for one document after the other and takes none, on
//! streams of HTTP/2 without a window say, would keep all of them for as long as the connection lasts. So
//! what is held is counted by document, of each client and of all, until its last byte has gone.
//!
//! A document in a file (`spool`) takes no memory but for the piece that is sent just now. What is counted
//! of those are the bytes on the disk, in a budget of their own: a file that nobody asks for any more stays
//! for as long as it is sent.

mod body;

use super::SharedState;
use super::budget::{Budget, BudgetEnd, BudgetHolder, BudgetShares};
use super::client::Client;
use super::connections::Connection;
use super::problem::{Problem, RETRY_SOON};
use super::spool::SpooledFile;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use body::Unsent;
use http::Method;
use http_body::Body as _;
use std::sync::Arc;
use std::time::Duration;

/// The parts of all bytes on their way that one client has, and its site; what is more goes out when its client has
/// nothing else on its way.
const CLIENT_PART: u64 = 4;
const SITE_PART: u64 = 2;
/// Bytes of files on their way in all, and of these those of one client.
const FILES: u64 = 1024 << 20;
const CLIENT_FILES: u64 = 512 << 20;
/// A connection on which nothing was taken for so long does not move: it goes first where room is needed.
const PATIENCE: Duration = Duration::from_secs(15);

/// The budget of bodies in memory: so many bytes.
pub(super) fn memory_budget(all: u64) -> Arc<Budget> {
    let shares = BudgetShares { all, each: all / CLIENT_PART, site: all / SITE_PART };
    Budget::new(shares, PATIENCE)
}

/// That of bodies that are read from files as they are sent.
pub(super) fn file_budget() -> Arc<Budget> {
    Budget::new(BudgetShares { all: FILES, each: CLIENT_FILES, site: CLIENT_FILES }, PATIENCE)
}

fn refused(end: BudgetEnd) -> Response {
    let said = match end {
        BudgetEnd::Share => {
            "answers are on their way to your address that it does not take; take them first"
        }
        BudgetEnd::All => "too many answers are on their way; ask again soon",
    };
    Problem::later(said, RETRY_SOON).into_response()
}

/// Answers, and counts the body of the answer. What comes bit by bit has bounds of its own.
pub(super) async fn count(
    State(room): State<SharedState>,
    request: Request,
    next: Next,
) -> Response {
    let client = request.extensions().get().copied().unwrap_or(Client::Own);
    let connection: Option<Connection> = request.extensions().get().cloned();
    let is_action = !request.method().is_safe();
    let is_head = request.method() == Method::HEAD;
    let mut response = next.run(request).await;
    let holder = |thing| BudgetHolder { client: Some(client), connection, thing, is_action };
    let file = response.extensions_mut().remove::<Arc<SpooledFile>>();
    if let Some(file) = file.filter(|_| !is_head) {
        return match room.file_bodies.take(holder((Arc::as_ptr(&file).addr(), file.len()))) {
            Ok(held) => response.map(|_| Body::new(Unsent::of_file(file, held))),
            Err(end) => refused(end),
        };
    }
    if response.body().size_hint().exact().unwrap_or(0) == 0 {
        return response;
    }
    let (parts, body) = response.into_parts();
    // It is whole and of a known size already, so it is handed over and not copied.
    let whole = to_bytes(body, usize::MAX).await.unwrap_or_default();
    let length = u64::try_from(whole.len()).unwrap_or(u64::MAX);
    let holder = holder((whole.as_ptr().addr(), length));
    // An action was carried out, or refused: "ask again soon" would be untrue.
    let held = match is_action {
        true => Ok(room.bodies.take_anyway(holder)),
        false => room.bodies.take(holder),
    };
    match held {
        Ok(held) => Response::from_parts(parts, Body::new(Unsent::of_memory(whole, held))),
        Err(end) => refused(end),
    }
}
