//! `/healthz`, `/readyz`, `/metrics`.

use super::conditional::unkept;
use super::directory::Listing;
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
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::yield_now;
use tokio::time::sleep;

const TEXT: &str = "text/plain; charset=utf-8";
/// The most feeds that are counted anew for each scrape, before it is answered.
const FEW_FEEDS: usize = 10_000;
/// So many feeds are counted before others have their turn.
const COUNTED_IN_A_ROW: usize = 1000;
/// How long a count of more than [`FEW_FEEDS`] rests then: a million take 50 seconds of rest.
const COUNT_PAUSE: Duration = Duration::from_millis(50);

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

/// `GET /metrics`. What the store cannot say just now stays as it was said last; so does what is counted of many
/// feeds, until their next count is over.
pub(super) async fn metrics(
    State(room): State<SharedState>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    warn_uncounted(measure_feeds(&room).await);
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

/// Counts feeds, where they are few. Where they are many, has them counted while this scrape and those to come are
/// told what was counted last: a scrape costs the same however many feeds there are.
async fn measure_feeds(room: &SharedState) -> Result<(), OperatorError> {
    let listing = room.directory.listing().await?;
    if listing.len() <= FEW_FEEDS {
        let _turn = room.metrics.counting().lock_owned().await;
        return count_feeds(room, &listing).await;
    }
    if let Ok(turn) = room.metrics.counting().try_lock_owned() {
        let room = Arc::clone(room);
        tokio::spawn(async move {
            tokio::select! {
                () = room.closing.cancelled() => {}
                counted = count_feeds(&room, &listing) => warn_uncounted(counted),
            }
            drop(turn);
        });
    }
    Ok(())
}

/// Says that feeds could not be counted; a store that has stopped has said so itself.
fn warn_uncounted(counted: Result<(), OperatorError>) {
    if let Err(error) = counted
        && !matches!(error, OperatorError::Stopped(_))
    {
        tracing::warn!(%error, "feeds could not be counted for the metrics");
    }
}

/// Counts how the polling of the feeds that this gateway polls stands, and, unless another gateway writes the store,
/// what is stored of all feeds: how they stand, and their items in conflict.
async fn count_feeds(room: &AppState, listing: &Listing) -> Result<(), OperatorError> {
    let is_writer = room.store.condition().owner.is_none();
    let contested = match is_writer {
        true => room.store.contested_feeds().await?,
        false => BTreeSet::new(),
    };
    let (mut ahead, mut counts) = (TicksAhead::default(), FeedCounts::default());
    for (place, (name, record)) in listing.iter().enumerate() {
        if place > 0 && place % COUNTED_IN_A_ROW == 0 {
            match listing.len() > FEW_FEEDS {
                true => sleep(COUNT_PAUSE).await,
                false => yield_now().await,
            }
        }
        let now = room.clock.now();
        if let Some(summary) = room.operator.own_summary(name) {
            counts.add_polling(record, &summary, now);
        }
        if !is_writer {
            continue;
        }
        let state = room.store.state(name).await?;
        ahead.note(name, state.as_ref().and_then(|state| state.tick), now);
        let contested = match &state {
            Some(state) if record.standing != FeedStanding::Gone && contested.contains(name) => {
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
