//! `GET /events`: the change log as server-sent events (HTML Living Standard, section 9.2).

use super::{ChangeLine, LogFollower, LogParams, QUERY_LIMIT, enter, wait};
use crate::log::Position;
use crate::{
    Audience, BadRequest, Client, Connection, Gone, HeldBudget, Problem, Query, SharedState, unkept,
};
use axum::Extension;
use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::response::Response;
use futures_util::StreamExt as _;
use futures_util::stream::poll_fn;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use serde::Serialize;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::model::Time;
use tidegate_store::ClosedEpoch;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

/// How often a silent stream says that it is there.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// How long a client may take nothing of its stream before its place is another's.
const STALL: Duration = Duration::from_secs(30);
/// How long a stream lasts; its client comes back and goes on where it was.
const LIFE: Duration = Duration::from_secs(10 * 60);
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
        LogParams,
        ("Last-Event-ID" = Option<String>, Header, description = "The `id` of the last event that came."),
    ),
    responses(
        (status = 200, description = "A stream that does not end by itself.", body = String,
            content_type = "text/event-stream"),
        BadRequest,
        Gone,
    ))]
pub(crate) async fn events(
    State(app): State<SharedState>,
    (audience, client): (Audience, Client),
    RawQuery(query): RawQuery,
    connection: Option<Extension<Arc<Connection>>>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let query = Query::within(QUERY_LIMIT, query.as_deref().unwrap_or_default())?;
    let connection = connection.map(|Extension(connection)| connection);
    let (mut log, _) = LogFollower::new(&app, (audience, connection), &query).await?;
    wait(&query)?;
    if let Some(last) = headers.get(LAST_EVENT_ID).filter(|value| !value.is_empty()) {
        let detail = "Last-Event-ID is an id of this stream's events";
        let last = Position::read(last.to_str().unwrap_or_default());
        log.at = last.map_err(|_| Problem::parameter("Last-Event-ID", detail))?;
    }
    let place = match enter(&app.event_streams.streams, client, "event streams") {
        Ok(place) => place,
        Err(why) => {
            let later = format!("retry: {RETRY_LATER}\nid: {}\n: {why}\n\n", log.at);
            return Ok(streaming(later.into()));
        }
    };
    // The client knows where it is from the first line on, should nothing happen at all.
    let begin = format!("retry: {RETRY}\nid: {}\n\n", log.at);
    let (sender, mut pieces) = mpsc::channel(1);
    let stream =
        EventStream { sent_id: log.at, sent: Instant::now(), log, epochs: VecDeque::new() };
    let over = CancellationToken::new();
    tokio::spawn(stream.run(begin, (sender, over.clone()), place));
    let pieces = poll_fn(move |context| pieces.poll_recv(context));
    // A piece that waits for its client does not go out then.
    let pieces = pieces.take_until(over.cancelled_owned());
    Ok(streaming(Body::from_stream(pieces.map(Ok::<_, Infallible>))))
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

/// A change with its place, as the data of an event.
#[derive(Debug, Serialize)]
struct ChangeEvent {
    epoch: u64,
    at: Time,
    #[serde(flatten)]
    change: ChangeLine,
}

/// What a stream goes on from. At most one piece of it is made that its client has not taken.
struct EventStream {
    log: LogFollower,
    /// Epochs that were read, of which not everything was sent.
    epochs: VecDeque<Arc<ClosedEpoch>>,
    /// The id that the client knows.
    sent_id: Position,
    /// When something was last sent.
    sent: Instant,
}

impl EventStream {
    /// Sends pieces until the stream has lasted for its life, nothing more may be told, or its client takes no more. It
    /// has its place until then: the body itself is with the connection for as long as that may last.
    async fn run(
        mut self,
        begin: String,
        (pieces, end): (mpsc::Sender<String>, CancellationToken),
        _place: HeldBudget,
    ) {
        let over = self.log.clone().until_over();
        tokio::select! {
            biased;
            () = over => end.cancel(),
            () = sleep(LIFE) => {}
            () = pieces.closed() => {}
            () = self.send_pieces(begin, &pieces) => {}
        }
    }

    async fn send_pieces(&mut self, begin: String, pieces: &mpsc::Sender<String>) {
        let mut begin = Some(begin);
        while let Ok(Ok(slot)) = timeout(STALL, pieces.reserve()).await {
            let piece = match begin.take() {
                Some(begin) => Some(begin),
                None => self.next_piece().await,
            };
            let Some(piece) = piece else { return };
            slot.send(piece);
        }
    }

    /// The next piece, as soon as there is something to say; `None`: the stream ends.
    async fn next_piece(&mut self) -> Option<String> {
        loop {
            if !self.log.follow_reload().await.is_ok_and(|may_go_on| may_go_on) {
                return None;
            }
            let piece = match self.epochs.front().cloned() {
                Some(sealed) => self.write_epoch(&sealed).await?,
                None => self.follow().await?,
            };
            if !piece.is_empty() {
                self.sent = Instant::now();
                return Some(piece);
            }
        }
    }

    /// Reads the epochs that follow, or waits for them; what is to be said meanwhile.
    async fn follow(&mut self) -> Option<String> {
        match self.log.next().await {
            Ok(epochs) => self.epochs = epochs.into(),
            Err(problem) => return self.reset(&problem),
        }
        if !self.epochs.is_empty() {
            return Some(String::new());
        }
        tokio::select! {
            () = self.log.interrupted() => Some(String::new()),
            () = sleep_until(self.sent + HEARTBEAT) => self.heartbeat().await,
            changed = self.log.newest.changed() => changed.ok().map(|()| String::new()),
        }
    }

    /// What the client is told of an epoch, or of the rest of it: as much as fits into a piece.
    async fn write_epoch(&mut self, sealed: &ClosedEpoch) -> Option<String> {
        let listing = self.log.app.directory.listing().await.ok()?;
        let behind = Position::behind(self.log.log(), sealed.epoch);
        let (mut piece, mut sent_id, mut at) = (String::new(), self.sent_id, behind);
        for (place, change) in self.log.wanted(sealed, &listing) {
            if piece.len() > PIECE_BYTES {
                at = sent_id;
                break;
            }
            let is_last = place + 1 == sealed.changes.len();
            sent_id = if is_last { behind } else { behind.within(place + 1) };
            let change = ChangeLine::new(&self.log.audience.site, change);
            let single = ChangeEvent { epoch: sealed.epoch.0, at: sealed.at, change };
            // Texts and numbers always serialise, and JSON of one line is data of one line.
            let data = serde_json::to_string(&single).unwrap_or_default();
            let _ = write!(piece, "event: change\nid: {sent_id}\ndata: {data}\n\n");
        }
        (self.sent_id, self.log.at) = (sent_id, at);
        if at == behind {
            self.epochs.pop_front();
        }
        Some(piece)
    }

    /// Says that what followed the client's id cannot be given, and goes on from the newest. Where that is not known now,
    /// the stream ends: its client comes back where it was.
    fn reset(&mut self, why: &Problem) -> Option<String> {
        if why.status != StatusCode::GONE {
            let why = &why.detail;
            tracing::debug!(why, "an event stream ends that could not read the change log");
            return None;
        }
        let newest = Position::newest(self.log.log());
        let data = serde_json::json!({
            "after": self.log.at.to_string(),
            "newest": newest.to_string(),
            "reason": why.detail,
        });
        (self.log.at, self.sent_id) = (newest, newest);
        Some(format!("event: reset\nid: {newest}\ndata: {data}\n\n"))
    }

    /// A comment; with an id where other feeds' changes moved the place on, so that a client of a
    /// quiet feed does not come back with one that is too old. Where the database of several gateways cannot be seen,
    /// the stream ends instead: its client goes on at a gateway that sees it.
    async fn heartbeat(&mut self) -> Option<String> {
        if let Err(error) = self.log.app.store.catch_up().await {
            tracing::debug!(%error, "an event stream ends that would not be told of changes");
            return None;
        }
        let mut beat = ": still here\n".to_owned();
        if self.sent_id != self.log.at {
            self.sent_id = self.log.at;
            let _ = writeln!(beat, "id: {}", self.sent_id);
        }
        Some(beat + "\n")
    }
}
