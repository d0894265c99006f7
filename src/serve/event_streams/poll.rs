//! `GET /changes?after=EPOCH`: one line of JSON for each epoch, and a wait where there is none.

use super::{ChangeLine, EPOCHS, EpochLine, Position, StreamQuery, enter};
use crate::audience::{Audience, MASKED_PATH};
use crate::client::Client;
use crate::conditional::unkept;
use crate::log::LogAfter;
use crate::openapi::{BadRequest, Gone};
use crate::problem::{Problem, RETRY_SOON};
use crate::{AppState, SharedState};
use axum::extract::{RawQuery, State};
use axum::response::Response;
use http::{HeaderName, HeaderValue, StatusCode, header};
use std::time::Duration;
use tidegate_status::schema;
use tidegate_store::Epoch;
use tokio::time::Instant;

/// How long a request waits where it does not say.
const WAIT: Duration = Duration::from_secs(20);
/// The longest wait: within the time that an answer may take.
const WAIT_LIMIT: Duration = Duration::from_secs(25);
/// How soon a request is answered, however little the store answers: that much after its wait, and not before the second.
const LATE: Duration = Duration::from_secs(5);
const LATEST: Duration = Duration::from_secs(18);
/// The most changes of one answer; the epoch that passes it is still whole.
const CHANGES_LIMIT: usize = 4096;
/// Where the next request goes on.
const X_AFTER: HeaderName = HeaderName::from_static("x-tidegate-after");

/// Changes as lines of JSON, with long poll.
///
/// Each line is a whole epoch; the next request asks `after` the id of the last line, or where
/// there was none after the same as before. Without `after` the answer is the place where the log
/// stands now. What is too old, or was never there, is 410: everything is to be read anew. Where that is not known now,
/// since the store does not answer, it is 503.
#[utoipa::path(get, path = "/changes", operation_id = "changes",
    params(
        ("feed" = Option<Vec<schema::FeedName>>, Query, description = "Only changes of these feeds.",
            explode, max_items = 100),
        ("after" = Option<String>, Query, description = "What came behind this place: the `id` of a line or an event."),
        ("wait" = Option<u64>, Query, maximum = 25,
            description = "How many seconds to wait for a change; 20 where it is absent."),
    ),
    responses(
        (status = 200, description = "A line for each epoch, a ChangeLine; none where nothing changed in time.",
            body = String, content_type = "application/x-ndjson",
            headers(("X-Tidegate-After", description = "Where the next request goes on."))),
        BadRequest,
        Gone,
    ))]
pub(crate) async fn changes(
    State(room): State<SharedState>,
    (audience, client): (Audience, Client),
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let begun = Instant::now();
    let asked = StreamQuery::read(&room, audience, query.as_deref()).await?;
    let wait = asked.wait.map_or(WAIT, Duration::from_secs).min(WAIT_LIMIT);
    let latest = begun + wait.saturating_add(LATE).max(LATEST);
    let answered = tokio::time::timeout_at(latest, changes_after(&room, client, &asked, wait));
    let late = |_| Err(Problem::later("the changes could not be read in time", RETRY_SOON));
    answered.await.unwrap_or_else(late)
}

async fn changes_after(
    room: &AppState,
    client: Client,
    asked: &StreamQuery,
    wait: Duration,
) -> Result<Response, Problem> {
    let Some(after) = asked.after else {
        let newest = Position::behind(&room.log, room.log.newest());
        let mut body = String::new();
        EpochLine::place(newest).push(&mut body);
        return Ok(answer(newest, body));
    };
    room.log.until_reached(after.begun()).await?;
    if !after.is_of(&room.log) {
        return Err(never_had(room, after));
    }
    let begin = after;
    let mut after = after.whole();
    let until = Instant::now() + wait;
    let mut sealed = room.log.watch();
    let mut waiting = None;
    let mut revoked = std::pin::pin!(asked.audience.ended());
    loop {
        // What comes from here on wakes this request up again.
        sealed.mark_unchanged();
        let (found, body) = read(room, asked, after).await?;
        // An epoch of other feeds only moves the place; it is no reason to answer.
        if !body.is_empty() {
            return Ok(answer(Position::behind(&room.log, found), body));
        }
        let moved = found > after;
        after = found;
        if moved {
            continue;
        }
        if Instant::now() >= until || room.closing.is_cancelled() {
            // That nothing came is said by a gateway that would have seen it.
            if waiting.is_some() && !room.closing.is_cancelled() {
                room.store.catch_up().await?;
            }
            let mut body = String::new();
            let at = match begin.whole() == after {
                true => begin,
                false => Position::behind(&room.log, after),
            };
            if at != begin {
                EpochLine::place(at).push(&mut body);
            }
            return Ok(answer(at, body));
        }
        if waiting.is_none() {
            let place = enter(&room.doors.waiting, client, "waiting requests");
            waiting = Some(place.map_err(|why| Problem::later(why, RETRY_SOON))?);
        }
        tokio::select! {
            () = room.closing.cancelled() => {}
            // As if it had never been a token.
            () = &mut revoked => return Err(crate::router::nothing_at(MASKED_PATH)),
            changed = tokio::time::timeout_at(until, sealed.changed()) => {
                // A store that is closed wakes nobody up again.
                if let Ok(Err(_)) = changed {
                    tokio::time::sleep_until(until).await;
                }
            }
        }
    }
}

/// The lines of what follows an epoch, and the last epoch that was looked at.
async fn read(
    room: &AppState,
    asked: &StreamQuery,
    after: Epoch,
) -> Result<(Epoch, String), Problem> {
    let epochs = match room.log.after(after, EPOCHS).await? {
        LogAfter::Epochs(epochs) => epochs,
        LogAfter::Gone { oldest } => {
            let said = format!(
                "what followed epoch {} is not kept any more, the oldest epoch kept is {}: read \
                 the feeds anew and go on from the newest",
                after.0, oldest.0
            );
            let newest = Position::behind(&room.log, room.log.newest()).to_string();
            let gone = Problem::new(StatusCode::GONE, said);
            return Err(gone.with("oldest", oldest.0).with("newest", newest));
        }
        LogAfter::Ahead => {
            return Err(never_had(room, Position::behind(&room.log, after)));
        }
    };
    let mut body = String::new();
    let listing = room.directory.listing().await?;
    let (mut last, mut count) = (after, 0);
    for sealed in &epochs {
        if count >= CHANGES_LIMIT {
            break;
        }
        last = sealed.epoch;
        let wanted = sealed.changes.iter().filter(|change| asked.wants(&change.feed, &listing));
        let changes: Vec<ChangeLine> =
            wanted.map(|change| ChangeLine::new(asked.audience.site(), change)).collect();
        count += changes.len();
        if !changes.is_empty() {
            let id = Position::behind(&room.log, sealed.epoch);
            EpochLine::new(sealed, id, changes).push(&mut body);
        }
    }
    Ok((last, body))
}

/// What a client is told whose place this log never gave out: another one did, or this one before it
/// went back to a copy.
fn never_had(room: &AppState, after: Position) -> Problem {
    let newest = Position::behind(&room.log, room.log.newest()).to_string();
    let said = format!(
        "this log has never had {after}, the newest is {newest}: read the feeds anew and go on from \
         the newest"
    );
    Problem::new(StatusCode::GONE, said).with("newest", newest)
}

fn answer(newest: Position, body: String) -> Response {
    let mut response = unkept("application/x-ndjson", body);
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    headers.insert(
        header::ACCESS_CONTROL_EXPOSE_HEADERS,
        HeaderValue::from_static("X-Tidegate-After"),
    );
    if let Ok(newest) = HeaderValue::try_from(newest.to_string()) {
        headers.insert(X_AFTER, newest);
    }
    response
}
