//! `/healthz`, `/readyz`, `/metrics`.

use super::SharedState;
use super::conditional::unkept;
use super::problem::{Problem, RETRY_SOON};
use crate::model::FeedStanding;
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;

const TEXT: &str = "text/plain; charset=utf-8";
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// `GET /healthz`: whoever answers is alive.
pub(super) async fn alive() -> Response {
    unkept(TEXT, "ok\n")
}

/// `GET /readyz`: whether the store answers and feeds are polled; not while shutting down.
pub(super) async fn ready(State(room): State<SharedState>) -> Result<Response, Problem> {
    if room.closing.is_cancelled() {
        return Err(Problem::later("the gateway is shutting down", RETRY_SOON));
    }
    room.operator.ready().map_err(|why| Problem::later(why, RETRY_SOON))?;
    // A store that has stopped (a full disk, say) is a reason to start this process again, though
    // what was rendered before is still served.
    room.directory.checked().await?;
    Ok(unkept(TEXT, "ready\n"))
}

/// `GET /metrics`.
pub(super) async fn metrics(State(room): State<SharedState>) -> Result<Response, Problem> {
    let listing = room.directory.listing().await?;
    for standing in [FeedStanding::Active, FeedStanding::Paused, FeedStanding::Gone] {
        let number = listing.values().filter(|record| record.standing == standing).count();
        room.metrics.feeds(standing.name(), number);
    }
    let mut contested = 0_u32;
    for record in listing.values().filter(|record| record.standing != FeedStanding::Gone) {
        contested = contested.saturating_add(room.contested.count(&record.name).await?);
    }
    room.metrics.contested(contested);
    room.metrics.totals(room.operator.totals());
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
