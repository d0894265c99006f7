//! `/healthz`, `/readyz`, `/metrics`.

use super::metrics::{MetricsFormat, feed_figures};
use super::negotiate::wants_open_metrics;
use super::{Later, Problem, Reply, SharedState, make_on_thread, unkept};
use axum::extract::State;
use axum::response::Response;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use std::sync::Arc;
use tidegate_poll::owns_feed;

const TEXT: &str = "text/plain; charset=utf-8";
/// Whether a path asks whether the gateway is alive.
pub(super) fn is_probe(path: &str) -> bool {
    matches!(path, "/healthz" | "/readyz")
}

/// Whether the gateway answers.
#[utoipa::path(get, path = "/healthz", operation_id = "alive",
    responses((status = 200, description = "It does.", body = String)))]
pub(super) async fn alive() -> Response {
    unkept(TEXT, "ok\n")
}

/// Whether the store answers and feeds are polled.
///
/// Not while the gateway shuts down, nor while its database does not answer. One whose file system has too little space
/// answers 200 and says so.
#[utoipa::path(get, path = "/readyz", operation_id = "ready",
    responses((status = 200, description = "They are.", body = String), Later))]
pub(super) async fn ready(State(app): State<SharedState>) -> Reply {
    if app.is_ending() {
        return Err(Problem::later("the gateway is shutting down"));
    }
    let condition = app.store.condition();
    if let Some(stop) = &condition.stop {
        return Err(Problem::later(stop.to_string()));
    }
    if let Some(unanswered) = condition.unanswered {
        let seconds = unanswered.as_secs();
        let why = format!("the database has not answered for {seconds} seconds");
        return Err(Problem::later(why));
    }
    app.directory.listing_or_error().await?;
    // Reading goes on, so that this is no reason to send readers elsewhere.
    if let Err(why) = condition.check_intake() {
        return Ok(unkept(TEXT, format!("ready to be read from: {why}\n")));
    }
    Ok(unkept(TEXT, "ready\n"))
}

/// Counters for Prometheus.
///
/// What the store cannot say stays as it was said last.
#[utoipa::path(get, path = "/metrics", operation_id = "metrics", responses(
    (status = 200, description = "In the text format of Prometheus or in OpenMetrics.", content(
        (String = "text/plain"),
        (String = "application/openmetrics-text"),
    )),
))]
pub(super) async fn metrics(State(app): State<SharedState>, headers: HeaderMap) -> Reply {
    // The store itself has said why.
    if let Err(problem) = count_feeds(&app).await {
        tracing::debug!(?problem, "feeds could not be counted for the metrics");
    }
    app.metrics.store(&app.store.condition());
    app.metrics.totals(app.operator.poller.totals());
    app.metrics.measure(app.documents.size(), app.tls.as_deref()).await;
    if let Some(hub) = &app.hub {
        app.metrics.hub(hub.count());
    }
    let format = match wants_open_metrics(&headers) {
        true => MetricsFormat::OpenMetrics,
        false => MetricsFormat::Prometheus,
    };
    let text = app.metrics.text(format).map_err(|_| {
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "the metrics could not be written")
    })?;
    let mut answer = unkept(format.media_type(), text);
    answer.headers_mut().append(header::VARY, HeaderValue::from_static("Accept"));
    Ok(answer)
}

/// Counts the feeds that this gateway owns, so that the sum over several gateways is right.
async fn count_feeds(app: &SharedState) -> Result<(), Problem> {
    let (index, store, now) = (app.index().await?, Arc::clone(&app.store), app.clock.now());
    let counting = make_on_thread("the count of feeds", move || {
        let owned = index.feeds().filter(|feed| owns_feed(&store, &feed.record));
        Ok(feed_figures(owned, now))
    });
    app.metrics.feeds(counting.await?);
    Ok(())
}
