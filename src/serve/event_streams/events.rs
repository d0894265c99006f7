//! `GET /events`: the change log as server-sent events (HTML Living Standard, section 9.2).

use super::{ChangeEvent, EPOCHS, Position, StreamQuery, enter};
use crate::SharedState;
use crate::audience::Audience;
use crate::client::Client;
use crate::conditional::unkept;
use crate::directory::Listing;
use crate::log::LogAfter;
use crate::openapi::{BadRequest, Gone};
use crate::problem::Problem;
use axum::body::{Body, Bytes};
use axum::extract::{RawQuery, State};
use axum::response::Response;
use futures_util::StreamExt as _;
use futures_util::stream::poll_fn;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use std::convert::Infallible;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;
use tidegate_status::schema;
use tidegate_store::{ClosedEpoch, in_words};
use tokio::sync::mpsc;
use tokio::time::Instant;

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
    let asked = StreamQuery::read(&room, audience, query.as_deref()).await?;
    let last = headers.get(LAST_EVENT_ID).filter(|value| !value.is_empty());
    let begin = match last {
        Some(value) => {
            let text = value.to_str().unwrap_or_default();
            Position::read(text).map_err(|_| {
                Problem::parameter(
                    "Last-Event-ID",
                    "Last-Event-ID is an id of this stream's events",
                )
            })?
        }
        None => asked.after.unwrap_or_else(|| Position::behind(&room.log, room.log.newest())),
    };
    let place = match enter(&room.doors.streams, client, "event streams") {
        Ok(place) => place,
        Err(why) => {
            let later = format!("retry: {RETRY_LATER}\nid: {begin}\n: {why}\n\n");
            return Ok(streaming(later.into()));
        }
    };
    let (pieces, mut stream) = mpsc::channel(PIECES);
    let sent = Instant::now();
    let writer =
        EventWriter { room: Arc::clone(&room), asked, at: begin, said: begin, sent, pieces };
    tokio::spawn(async move {
        writer.run().await;
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

/// Writes one stream.
struct EventWriter {
    room: SharedState,
    asked: StreamQuery,
    at: Position,
    /// The id that the client knows.
    said: Position,
    /// When something was last sent.
    sent: Instant,
    pieces: mpsc::Sender<Bytes>,
}

impl EventWriter {
    async fn run(mut self) {
        let end = Instant::now() + LIFE;
        // The client knows where it is from the first line on, should nothing happen at all.
        let hello = format!("retry: {RETRY}\nid: {}\n\n", self.at);
        if self.send(hello).await.is_err() {
            return;
        }
        let mut sealed = self.room.log.watch();
        let mut revoked = std::pin::pin!(self.asked.audience.ended());
        // Its client comes back where it was.
        if let Err(error) = self.room.log.until_reached(self.at.begun()).await {
            tracing::debug!(%error, "an event stream ends whose place may be ahead of this gateway");
            return;
        }
        if !self.at.is_of(&self.room.log) && self.reset("this log has never had it").await.is_err()
        {
            return;
        }
        loop {
            sealed.mark_unchanged();
            match self.send_changes().await {
                Err(Ended) => return,
                Ok(true) => continue,
                Ok(false) => {}
            }
            let closing = self.room.closing.clone();
            let silent = tokio::select! {
                () = closing.cancelled() => return,
                () = &mut revoked => return,
                () = self.pieces.closed() => return,
                () = tokio::time::sleep_until(end) => return,
                () = tokio::time::sleep_until(self.sent + HEARTBEAT) => true,
                changed = sealed.changed() => match changed {
                    Ok(()) => false,
                    Err(_) => return,
                },
            };
            if silent && self.heartbeat().await.is_err() {
                return;
            }
        }
    }

    /// Sends what follows; says whether there may be more at once.
    async fn send_changes(&mut self) -> Result<bool, Ended> {
        let after = match self.room.log.after(self.at.whole(), EPOCHS).await {
            Ok(after) => after,
            Err(error) => {
                tracing::warn!(
                    error = in_words(&error),
                    "an event stream could not read the change log"
                );
                return Err(Ended);
            }
        };
        let epochs = match after {
            LogAfter::Epochs(epochs) => epochs,
            LogAfter::Gone { oldest } => {
                let said = format!("the oldest epoch kept is {}", oldest.0);
                return self.reset(&said).await.map(|()| true);
            }
            LogAfter::Ahead => return self.reset("this log has never had it").await.map(|()| true),
        };
        if epochs.is_empty() {
            return Ok(false);
        }
        let Ok(listing) = self.room.directory.listing().await else { return Err(Ended) };
        for sealed in &epochs {
            self.epoch(sealed, &listing).await?;
        }
        Ok(true)
    }

    async fn epoch(&mut self, sealed: &ClosedEpoch, listing: &Listing) -> Result<(), Ended> {
        let mut piece = String::new();
        let given = self.at.given(sealed.epoch);
        let behind = Position::behind(&self.room.log, sealed.epoch);
        for (place, change) in sealed.changes.iter().enumerate().skip(given) {
            if !self.asked.wants(&change.feed, listing) {
                continue;
            }
            let id = match place + 1 == sealed.changes.len() {
                true => behind,
                false => behind.within(place + 1),
            };
            let single = ChangeEvent::new(self.asked.audience.site(), sealed, change);
            // Texts and numbers always serialise, and JSON of one line is data of one line.
            let data = serde_json::to_string(&single).unwrap_or_default();
            let _ = write!(piece, "event: change\nid: {id}\ndata: {data}\n\n");
            self.said = id;
            if piece.len() > PIECE_BYTES {
                self.send(std::mem::take(&mut piece)).await?;
            }
        }
        self.at = behind;
        if piece.is_empty() { Ok(()) } else { self.send(piece).await }
    }

    /// Says that what followed the client's id cannot be given, and goes on from the newest.
    async fn reset(&mut self, why: &str) -> Result<(), Ended> {
        let newest = Position::behind(&self.room.log, self.room.log.newest());
        let data = serde_json::json!({
            "after": self.at.to_string(),
            "newest": newest.to_string(),
            "reason": format!("what followed {} is not there: {why}; read the feeds anew", self.at),
        });
        (self.at, self.said) = (newest, newest);
        self.send(format!("event: reset\nid: {newest}\ndata: {data}\n\n")).await
    }

    /// A comment; with an id where other feeds' changes moved the place on, so that a client of a
    /// quiet feed does not come back with one that is too old. Where the database of several gateways cannot be seen,
    /// the stream ends instead: its client goes on at a gateway that sees it.
    async fn heartbeat(&mut self) -> Result<(), Ended> {
        let seen = tokio::select! {
            () = self.room.closing.cancelled() => return Err(Ended),
            seen = self.room.store.catch_up() => seen,
        };
        if let Err(error) = seen {
            tracing::debug!(%error, "an event stream ends that would not be told of changes");
            return Err(Ended);
        }
        let beat = if self.said == self.at {
            ": still here\n\n".to_owned()
        } else {
            self.said = self.at;
            format!(": still here\nid: {}\n\n", self.at)
        };
        self.send(beat).await
    }

    /// Sends a piece to a client that takes it in time.
    async fn send(&mut self, piece: String) -> Result<(), Ended> {
        match tokio::time::timeout(STALL, self.pieces.send(piece.into())).await {
            Ok(Ok(())) => {
                self.sent = Instant::now();
                Ok(())
            }
            Ok(Err(_)) => Err(Ended),
            Err(_) => {
                tracing::debug!("an event stream whose client took nothing was cut");
                Err(Ended)
            }
        }
    }
}
