//! `/healthz`, `/readyz`, `/metrics`.

use super::SharedState;
use super::problem::{Problem, RETRY_SOON};
use crate::model::FeedStanding;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderName, HeaderValue, StatusCode, header};

const TEXT: &str = "text/plain; charset=utf-8";
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

const fn plain(media_type: &'static str) -> [(HeaderName, HeaderValue); 2] {
    [
        (header::CONTENT_TYPE, HeaderValue::from_static(media_type)),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ]
}

/// `GET /healthz`: whoever answers is alive.
pub(super) async fn alive() -> Response {
    (plain(TEXT), "ok\n").into_response()
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
    Ok((plain(TEXT), "ready\n").into_response())
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
        Ok(text) => Ok((plain(OPEN_METRICS), text).into_response()),
        Err(_) => {
            let said = "the metrics could not be written";
            Err(Problem::new(StatusCode::INTERNAL_SERVER_ERROR, said))
        }
    }
}
