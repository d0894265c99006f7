//! `GET /events`: the change log as server-sent events (HTML Living Standard, section 9.2).

use super::{ChangeLine, LogFollower, QUERY_LIMIT, enter, wait};
use crate::SharedState;
use crate::audience::Audience;
use crate::client::Client;
use crate::conditional::unkept;
use crate::log::Position;
use crate::openapi::{BadRequest, Gone};
use crate::problem::Problem;
use crate::query::Query;
use axum::body::{Body, Bytes};
use axum::extract::{RawQuery, State};
use axum::response::Response;
use futures_util::StreamExt as _;
use futures_util::stream::poll_fn;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use serde::Serialize;
use std::convert::Infallible;
use std::fmt::Write as _;
use std::time::Duration;
use tidegate_status::schema;
use tidegate_store::ClosedEpoch;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

/// How often a silent stream says that it is there.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// How long a client may take nothing of its stream before it is cut.
const STALL: Duration = Duration::from_secs(30);
/// How long a stream lasts; its client comes back and goes on where it was.
const LIFE: Duration = Duration::from_secs(10 * 60);
/// How many pieces wait to be sent: one epoch each, at most.
const PIECES: usize = 2;
/// How soon a client comes back, in milliseconds.
const RETRY: u32 = 2000;
/// How soon a client comes back that found no place, in milliseconds.
const RETRY_LATER: u32 = 20_000;
/// The most bytes of events of one piece, but that a single event is never cut.
const PIECE_BYTES: usize = 32 * 1024;

const MEDIA_TYPE: &str = "text/event-stream";
/// Where a client was that comes back (section 9.2.4).
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// Changes as server-sent events.
///
/// A stream begins where the log stands, or behind `Last-Event-ID` (or `after`). Every event bears
/// an id from which the next stream goes on, without a gap and without a change twice. Where what
/// followed that id is not kept any more, the first event is a `reset`: everything is to be read
/// anew, and the stream goes on from where the log stands.
///
/// A client for which there is no place gets a stream that ends at once: an `EventSource` comes back to
/// that, and goes on where it was, while any other status than 200 would be the end (section 9.2.3).
#[utoipa::path(get, path = "/events", operation_id = "events",
    params(
        ("feed" = Option<Vec<schema::FeedName>>, Query, description = "Only changes of these feeds.",
            explode, max_items = 100),
        ("after" = Option<String>, Query, description = "What came behind this place: the `id` of a line or an event."),
        ("Last-Event-ID" = Option<String>, Header, description = "The `id` of the last event that came."),
    ),
    responses(
        (status = 200, description = "A stream that does not end by itself.", body = String,
            content_type = "text/event-stream"),
        BadRequest,
        Gone,
    ))]
pub(crate) async fn events(
    State(room): State<SharedState>,
    (audience, client): (Audience, Client),
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let query = Query::within(QUERY_LIMIT, query.as_deref().unwrap_or_default())?;
    let (mut log, _) = LogFollower::new(&room, audience, &query).await?;
    wait(&query)?;
    if let Some(last) = headers.get(LAST_EVENT_ID).filter(|value| !value.is_empty()) {
        let said = "Last-Event-ID is an id of this stream's events";
        let last = Position::read(last.to_str().unwrap_or_default());
        log.at = last.map_err(|_| Problem::parameter("Last-Event-ID", said))?;
    }
    let place = match enter(&room.doors.streams, client, "event streams") {
        Ok(place) => place,
        Err(why) => {
            let later = format!("retry: {RETRY_LATER}\nid: {}\n: {why}\n\n", log.at);
            return Ok(streaming(later.into()));
        }
    };
    let (pieces, mut stream) = mpsc::channel(PIECES);
    let writer = EventWriter { said: log.at, log, sent: Instant::now(), pieces };
    tokio::spawn(async move {
        let Ended = writer.run().await;
        drop(place);
    });
    let stream = poll_fn(move |context| stream.poll_recv(context)).map(Ok::<_, Infallible>);
    Ok(streaming(Body::from_stream(stream)))
}

/// Whether an `EventSource` asks for a stream.
pub(crate) fn is_event_source<B>(request: &http::Request<B>) -> bool {
    let accept = request.headers().get(header::ACCEPT);
    request.uri().path() == "/events" && accept.is_some_and(|accept| accept == MEDIA_TYPE)
}

/// A stream that ends at once, for an `EventSource` that is to come back where it was.
pub(crate) fn ended(why: &str) -> Response {
    streaming(format!("retry: {RETRY_LATER}\n: {why}\n\n").into())
}

/// The answer whose body is a stream of events.
fn streaming(body: Body) -> Response {
    let mut response = unkept(MEDIA_TYPE, body);
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    // A proxy that collects answers before it sends them would hold the events back.
    headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    response
}

/// Why a stream ends.
struct Ended;

/// A change with its place, as the data of an event.
#[derive(Debug, Serialize)]
struct ChangeEvent {
    epoch: u64,
    at: String,
    #[serde(flatten)]
    change: ChangeLine,
}

/// Writes one stream.
struct EventWriter {
    log: LogFollower,
    /// The id that the client knows.
    said: Position,
    /// When something was last sent.
    sent: Instant,
    pieces: mpsc::Sender<Bytes>,
}

impl EventWriter {
    async fn run(mut self) -> Ended {
        let Err(ended) = self.write().await;
        ended
    }

    async fn write(&mut self) -> Result<Infallible, Ended> {
        let end = Instant::now() + LIFE;
        // The client knows where it is from the first line on, should nothing happen at all.
        self.send(format!("retry: {RETRY}\nid: {}\n\n", self.log.at)).await?;
        let closing = self.log.room.closing.clone();
        let mut revoked = std::pin::pin!(self.log.audience.ended());
        if let Err(problem) = self.log.check().await {
            self.reset(&problem).await?;
        }
        loop {
            match self.log.next().await {
                Err(problem) => {
                    self.reset(&problem).await?;
                    continue;
                }
                Ok(epochs) if !epochs.is_empty() => {
                    for sealed in epochs {
                        self.epoch(&sealed).await?;
                    }
                    continue;
                }
                Ok(_) => {}
            }
            tokio::select! {
                () = closing.cancelled() => return Err(Ended),
                () = &mut revoked => return Err(Ended),
                () = self.pieces.closed() => return Err(Ended),
                () = sleep_until(end) => return Err(Ended),
                () = sleep_until(self.sent + HEARTBEAT) => self.heartbeat().await?,
                changed = self.log.newest.changed() => changed.map_err(|_| Ended)?,
            }
        }
    }

    async fn epoch(&mut self, sealed: &ClosedEpoch) -> Result<(), Ended> {
        let mut piece = String::new();
        let behind = Position::behind(self.log.log(), sealed.epoch);
        for (place, change) in self.log.wanted(sealed).await.map_err(|_| Ended)? {
            let is_last = place + 1 == sealed.changes.len();
            let id = if is_last { behind } else { behind.within(place + 1) };
            let change = ChangeLine::new(self.log.audience.site(), change);
            let single = ChangeEvent { epoch: sealed.epoch.0, at: sealed.at.to_string(), change };
            // Texts and numbers always serialise, and JSON of one line is data of one line.
            let data = serde_json::to_string(&single).unwrap_or_default();
            let _ = write!(piece, "event: change\nid: {id}\ndata: {data}\n\n");
            self.said = id;
            if piece.len() > PIECE_BYTES {
                self.send(std::mem::take(&mut piece)).await?;
            }
        }
        self.log.at = behind;
        if piece.is_empty() { Ok(()) } else { self.send(piece).await }
    }

    /// Says that what followed the client's id cannot be given, and goes on from the newest. Where that is not known now,
    /// the stream ends: its client comes back where it was.
    async fn reset(&mut self, why: &Problem) -> Result<(), Ended> {
        if why.status() != StatusCode::GONE {
            tracing::debug!(
                why = why.detail(),
                "an event stream ends that could not read the change log"
            );
            return Err(Ended);
        }
        let newest = Position::newest(self.log.log());
        let data = serde_json::json!({
            "after": self.log.at.to_string(),
            "newest": newest.to_string(),
            "reason": why.detail(),
        });
        (self.log.at, self.said) = (newest, newest);
        self.send(format!("event: reset\nid: {newest}\ndata: {data}\n\n")).await
    }

    /// A comment; with an id where other feeds' changes moved the place on, so that a client of a
    /// quiet feed does not come back with one that is too old. Where the database of several gateways cannot be seen,
    /// the stream ends instead: its client goes on at a gateway that sees it.
    async fn heartbeat(&mut self) -> Result<(), Ended> {
        let seen = tokio::select! {
            () = self.log.room.closing.cancelled() => return Err(Ended),
            seen = self.log.room.store.catch_up() => seen,
        };
        if let Err(error) = seen {
            tracing::debug!(%error, "an event stream ends that would not be told of changes");
            return Err(Ended);
        }
        let mut beat = ": still here\n".to_owned();
        if self.said != self.log.at {
            self.said = self.log.at;
            let _ = writeln!(beat, "id: {}", self.said);
        }
        self.send(beat + "\n").await
    }

    /// Sends a piece to a client that takes it in time.
    async fn send(&mut self, piece: String) -> Result<(), Ended> {
        let sent = tokio::time::timeout(STALL, self.pieces.send(piece.into())).await;
        let taken = sent.inspect_err(|_| {
            tracing::debug!("an event stream whose client took nothing was cut");
        });
        taken.map_err(|_| Ended)?.map_err(|_| Ended)?;
        self.sent = Instant::now();
        Ok(())
    }
}
