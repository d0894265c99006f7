//! `/healthz`, `/readyz`, `/metrics`.

use super::conditional::unkept;
use super::metrics::{FeedCounts, MetricsFormat};
use super::negotiate::wants_open_metrics;
use super::problem::{Problem, RETRY_SOON};
use super::{AppState, SharedState};
use crate::model::FeedStanding;
use crate::serve::operator::OperatorError;
use crate::status::TicksAhead;
use axum::extract::State;
use axum::response::Response;
use http::{HeaderMap, HeaderValue, StatusCode, header};

const TEXT: &str = "text/plain; charset=utf-8";

/// `GET /healthz`: whoever answers is alive.
pub(super) async fn alive() -> Response {
    unkept(TEXT, "ok\n")
}

/// `GET /readyz`: whether the store answers and feeds are polled; not while shutting down, nor while its
/// database does not answer. A standby, and a
/// gateway whose file system has too little space, answer 200 and say so.
pub(super) async fn ready(State(room): State<SharedState>) -> Result<Response, Problem> {
    if room.closing.is_cancelled() {
        return Err(Problem::later("the gateway is shutting down", RETRY_SOON));
    }
    room.operator.ready().map_err(|why| Problem::later(why, RETRY_SOON))?;
    let condition = room.store.condition();
    if let Some(stop) = &condition.stop {
        return Err(Problem::later(stop.to_string(), RETRY_SOON));
    }
    if let Some(unanswered) = condition.unanswered {
        let seconds = unanswered.as_secs();
        let why = format!("the database has not answered for {seconds} seconds");
        return Err(Problem::later(why, RETRY_SOON));
    }
    room.directory.checked().await?;
    if let Some(owner) = &condition.owner {
        return Ok(unkept(TEXT, format!("standby: the gateway {} has the feeds\n", owner.name)));
    }
    // Reading goes on, so that this is no reason to send readers elsewhere.
    if let Err(why) = condition.check_intake() {
        return Ok(unkept(TEXT, format!("ready to be read from: {why}\n")));
    }
    Ok(unkept(TEXT, "ready\n"))
}

/// `GET /metrics`. What the store cannot say just now stays as it was said last.
pub(super) async fn metrics(
    State(room): State<SharedState>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    if let Err(error) = measure_feeds(&room).await
        && !matches!(error, OperatorError::Stopped(_))
    {
        tracing::warn!(%error, "feeds could not be counted for the metrics");
    }
    room.metrics.store(&room.store.condition());
    room.metrics.totals(room.operator.totals());
    room.metrics.load(&room.load);
    room.metrics.traces(&room.traces);
    room.metrics.measure().await;
    if let Some(hub) = &room.hub {
        room.metrics.hub(hub.totals());
    }
    let format = match wants_open_metrics(&headers) {
        true => MetricsFormat::OpenMetrics,
        false => MetricsFormat::Prometheus,
    };
    match room.metrics.text(format) {
        Ok(text) => {
            let mut answer = unkept(format.media_type(), text);
            answer.headers_mut().append(header::VARY, HeaderValue::from_static("Accept"));
            Ok(answer)
        }
        Err(_) => {
            let said = "the metrics could not be written";
            Err(Problem::new(StatusCode::INTERNAL_SERVER_ERROR, said))
        }
    }
}

/// Counts how the polling of the feeds that this gateway polls stands, and, unless another gateway writes the store,
/// what is stored of all feeds: how they stand, and their items in conflict.
async fn measure_feeds(room: &AppState) -> Result<(), OperatorError> {
    let listing = room.directory.listing().await?;
    let summaries = room.operator.own_summaries();
    let is_writer = room.store.condition().owner.is_none();
    let (now, mut ahead) = (room.clock.now(), TicksAhead::default());
    let mut counts = FeedCounts::default();
    for (name, record) in listing.iter() {
        if let Some(summary) = summaries.get(name) {
            counts.add_polling(record, summary, now);
        }
        if !is_writer {
            continue;
        }
        let state = room.store.state(name).await?;
        ahead.note(name, state.as_ref().and_then(|state| state.tick), now);
        let contested = match &state {
            Some(state) if record.standing != FeedStanding::Gone => {
                room.contested.count_at(name, state.revision).await?
            }
            _ => 0,
        };
        counts.add_stored(record, state.is_some_and(|state| state.hold.is_some()), contested);
    }
    room.metrics.feeds(&counts);
    room.metrics.ticks_ahead(&ahead);
    Ok(())
}
