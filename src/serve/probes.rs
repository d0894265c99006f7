//! `/healthz`, `/readyz`, `/metrics`.

use super::conditional::unkept;
use super::problem::{Problem, RETRY_SOON};
use super::{AppState, SharedState};
use crate::model::FeedStanding;
use crate::status::TicksAhead;
use crate::store::StoreError;
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;

const TEXT: &str = "text/plain; charset=utf-8";
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// `GET /healthz`: whoever answers is alive.
pub(super) async fn alive() -> Response {
    unkept(TEXT, "ok\n")
}

/// `GET /readyz`: whether the store answers and feeds are polled; not while shutting down. Where the
/// file system has too little space, it answers 200 and says so.
pub(super) async fn ready(State(room): State<SharedState>) -> Result<Response, Problem> {
    if room.closing.is_cancelled() {
        return Err(Problem::later("the gateway is shutting down", RETRY_SOON));
    }
    room.operator.ready().map_err(|why| Problem::later(why, RETRY_SOON))?;
    let condition = room.store.condition();
    if let Some(stop) = &condition.stop {
        return Err(Problem::later(stop.to_string(), RETRY_SOON));
    }
    room.directory.checked().await?;
    // Reading goes on, so that this is no reason to send readers elsewhere.
    if let Err(why) = condition.check_intake() {
        return Ok(unkept(TEXT, format!("ready to be read from: {why}\n")));
    }
    Ok(unkept(TEXT, "ready\n"))
}

/// `GET /metrics`. What the store cannot say just now stays as it was said last.
pub(super) async fn metrics(State(room): State<SharedState>) -> Result<Response, Problem> {
    if let Err(error) = measure_feeds(&room).await
        && !matches!(error, StoreError::Stopped(_))
    {
        tracing::warn!(%error, "feeds could not be counted for the metrics");
    }
    room.metrics.store(&room.store.condition());
    room.metrics.totals(room.operator.totals());
    room.metrics.load(&room.load);
    room.metrics.memory(resident().await).await;
    if let Some(hub) = &room.hub {
        room.metrics.hub(hub.totals());
    }
    match room.metrics.text() {
        Ok(text) => Ok(unkept(OPEN_METRICS, text)),
        Err(_) => {
            let said = "the metrics could not be written";
            Err(Problem::new(StatusCode::INTERNAL_SERVER_ERROR, said))
        }
    }
}

/// The bytes of memory that the process has, where the system says so as Linux does.
async fn resident() -> Option<u64> {
    let status = tokio::fs::read_to_string("/proc/self/status").await.ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kibibytes.saturating_mul(1024))
}

/// The feeds whose ticks are ahead of the clock.
pub(super) async fn ticks_ahead(room: &AppState) -> Result<TicksAhead, StoreError> {
    let (now, mut ahead) = (room.clock.now(), TicksAhead::default());
    for name in room.directory.listing().await?.keys() {
        let state = room.store.state(name).await?;
        ahead.note(name, state.and_then(|state| state.tick), now);
    }
    Ok(ahead)
}

/// Counts feeds by standing, and items in conflict.
async fn measure_feeds(room: &AppState) -> Result<(), StoreError> {
    let listing = room.directory.listing().await?;
    for standing in [FeedStanding::Active, FeedStanding::Paused, FeedStanding::Gone] {
        let number = listing.values().filter(|record| record.standing == standing).count();
        room.metrics.feeds(standing.name(), number);
    }
    room.metrics.ticks_ahead(&ticks_ahead(room).await?);
    let mut contested = 0_u32;
    for record in listing.values().filter(|record| record.standing != FeedStanding::Gone) {
        contested = contested.saturating_add(room.contested.count(&record.name).await?);
    }
    room.metrics.contested(contested);
    Ok(())
}
