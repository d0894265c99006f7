//! `/healthz`, `/readyz`, `/metrics`.

use super::conflicts::CONTESTED_WITHIN;
use super::metrics::{FeedCounts, MetricsFormat};
use super::negotiate::wants_open_metrics;
use super::{AppState, Later, Listing, Problem, RETRY_SOON, Reply, SharedState, unkept};
use axum::extract::State;
use axum::response::Response;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use std::sync::Arc;
use std::time::Duration;
use tidegate_status::TicksAhead;
use tidegate_store::StoreError;
use tokio::task::yield_now;
use tokio::time::sleep;

const TEXT: &str = "text/plain; charset=utf-8";
/// The most feeds that are counted anew for each scrape, before it is answered.
const FEW_FEEDS: usize = 10_000;
/// After this number of feeds a count lets others have their turn.
const COUNTED_IN_A_ROW: usize = 1000;
/// How long a count of more than [`FEW_FEEDS`] rests then: those of polling and of the store, of a million feeds, take
/// 25 seconds of rest each.
const COUNT_PAUSE: Duration = Duration::from_millis(25);
/// How long such a count, which nobody waits for, waits at most to hear which feeds have items in conflict.
const COUNT_WITHIN: Duration = Duration::from_secs(60);

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
pub(super) async fn ready(State(room): State<SharedState>) -> Reply {
    if room.is_ending() {
        return Err(Problem::later("the gateway is shutting down", RETRY_SOON));
    }
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
    // Reading goes on, so that this is no reason to send readers elsewhere.
    if let Err(why) = condition.check_intake() {
        return Ok(unkept(TEXT, format!("ready to be read from: {why}\n")));
    }
    Ok(unkept(TEXT, "ready\n"))
}

/// Counters for Prometheus.
///
/// What the store cannot say soon stays as it was said last; so does what is counted of many feeds, until their next
/// count is over.
#[utoipa::path(get, path = "/metrics", operation_id = "metrics", responses(
    (status = 200, description = "In the text format of Prometheus or in OpenMetrics.", content(
        (String = "text/plain"),
        (String = "application/openmetrics-text"),
    )),
))]
pub(super) async fn metrics(State(room): State<SharedState>, headers: HeaderMap) -> Reply {
    note_uncounted(measure_feeds(&room).await);
    room.metrics.store(&room.store.condition());
    room.metrics.totals(room.operator.poller.totals());
    room.metrics.measure(room.documents.size()).await;
    if let Some(hub) = &room.hub {
        room.metrics.hub(hub.count());
    }
    let format = match wants_open_metrics(&headers) {
        true => MetricsFormat::OpenMetrics,
        false => MetricsFormat::Prometheus,
    };
    let text = room.metrics.text(format).map_err(|_| {
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "the metrics could not be written")
    })?;
    let mut answer = unkept(format.media_type(), text);
    answer.headers_mut().append(header::VARY, HeaderValue::from_static("Accept"));
    Ok(answer)
}

/// Counts feeds, where they are few. Where they are many, has them counted while this scrape and those to come are
/// told what was counted last: a scrape costs the same however many feeds there are.
async fn measure_feeds(room: &SharedState) -> Result<(), StoreError> {
    let listing = room.directory.listing().await?;
    let are_many = listing.len() > FEW_FEEDS;
    if !are_many {
        count_polling(room, &listing).await;
    }
    // A scrape that comes while another counts is told what was counted last.
    let Ok(turn) = Arc::clone(&room.metrics.counting).try_lock_owned() else { return Ok(()) };
    let room = Arc::clone(room);
    let counting = tokio::spawn(async move {
        let count = async {
            if are_many {
                count_polling(&room, &listing).await;
            }
            let within = if are_many { COUNT_WITHIN } else { CONTESTED_WITHIN };
            count_stored(&room, &listing, within).await
        };
        tokio::select! {
            () = room.closing.cancelled() => {}
            counted = count => note_uncounted(counted),
        }
        drop(turn);
    });
    if !are_many {
        let _ = counting.await;
    }
    Ok(())
}

/// Says that feeds could not be counted; the store itself has said why.
fn note_uncounted(counted: Result<(), StoreError>) {
    if let Err(error) = counted {
        tracing::debug!(%error, "feeds could not be counted for the metrics");
    }
}

/// Lets others have their turn now and then, where a count comes to a place in the list.
async fn take_pause(place: usize, listing: &Listing) {
    if place > 0 && place.is_multiple_of(COUNTED_IN_A_ROW) {
        match listing.len() > FEW_FEEDS {
            true => sleep(COUNT_PAUSE).await,
            false => yield_now().await,
        }
    }
}

/// Counts how the polling of the feeds that this gateway polls stands, which is in memory.
async fn count_polling(room: &AppState, listing: &Listing) {
    let mut counts = FeedCounts::default();
    for (place, (name, record)) in listing.iter().enumerate() {
        take_pause(place, listing).await;
        if let Some(summary) = room.operator.poller.summary(name) {
            counts.add_polling(record, &summary, room.clock.now());
        }
    }
    room.metrics.polling(&counts);
}

/// Counts what is stored of all feeds: how they stand, and their items in
/// conflict. These are as they were known last where the store does not tell within `limit`; where it never told, they
/// stay as they were said last.
async fn count_stored(
    room: &AppState,
    listing: &Listing,
    limit: Duration,
) -> Result<(), StoreError> {
    let (mut ahead, mut counts) = (TicksAhead::default(), FeedCounts::default());
    let in_conflict = room.contested.feeds(limit).await;
    let knows_conflicts = in_conflict.is_some();
    let in_conflict = in_conflict.unwrap_or_default();
    for (place, (name, record)) in listing.iter().enumerate() {
        take_pause(place, listing).await;
        let state = room.store.state(name).await?;
        let tick = state.as_ref().and_then(|state| state.tick);
        ahead.note(name, tick, room.clock.now());
        let contested = in_conflict.get(name).copied().unwrap_or_default();
        counts.add_stored(record, state.is_some_and(|state| state.hold.is_some()), contested);
    }
    room.metrics.stored(&counts, &ahead);
    if knows_conflicts {
        room.metrics.in_conflict(&counts);
    }
    Ok(())
}
