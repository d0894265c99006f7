//! How many requests are passed on at a time, and how many are answered for other gateways.

use super::super::address::CLOUD_PATH;
use super::super::client::Client;
use super::super::problem::{Problem, RETRY_SOON};
use super::super::shares::{FairShares, Share};
use super::super::{API, SharedState};
use axum::response::Response;
use http::HeaderMap;
use http_body::Body as _;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};
use tokio::time::{Instant, timeout_at};

/// The most requests of each kind that are passed on at a time, and of a client those that are no operator's.
const AT_ONCE: usize = 16;
const OF_CLIENT: u32 = 4;
/// The most of each kind that the gateway that writes answers at a time, for all others.
const ANSWERED_AT_ONCE: usize = 32;
/// How long a request waits for its client's share and for a place, together.
const PLACE_TIME: Duration = Duration::from_secs(5);
/// The largest answer, in bytes.
pub(super) const ANSWER_LIMIT: usize = 64 << 20;
/// The answers to other gateways that are under way at a time, in KiB, until each is in the database: two of the
/// largest. One of at most [`SHORT_ANSWER`] bytes does not count.
const ANSWERS_KIB: usize = 2 * ANSWER_LIMIT / 1024;
const SHORT_ANSWER: usize = 64 << 10;
/// What paths of the hub and of callbacks begin with.
const HUB_PATHS: &str = "/websub";

/// Whose requests have places of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RelayKind {
    /// Administration: with the token, or by who has signed in.
    Operator,
    /// Hubs, publishers and subscribers.
    Hub,
    Other,
}

impl RelayKind {
    /// Of a request to a path, from whoever sent these headers.
    pub(super) fn of(room: &SharedState, path: &str, headers: &HeaderMap) -> Self {
        if path == CLOUD_PATH || path.starts_with(HUB_PATHS) {
            Self::Hub
        } else if path.starts_with(API) || room.sessions.is_open(headers) {
            Self::Operator
        } else {
            Self::Other
        }
    }
}

/// Places for requests, of which each kind has its own.
pub(crate) struct RelayQuota {
    operators: Arc<Semaphore>,
    hubs: Arc<Semaphore>,
    pub(crate) others: Arc<Semaphore>,
}

impl RelayQuota {
    fn new(each: usize) -> Self {
        let [operators, hubs, others] = [each; 3].map(|each| Arc::new(Semaphore::new(each)));
        Self { operators, hubs, others }
    }

    const fn places(&self, kind: RelayKind) -> &Arc<Semaphore> {
        match kind {
            RelayKind::Operator => &self.operators,
            RelayKind::Hub => &self.hubs,
            RelayKind::Other => &self.others,
        }
    }
}

/// The places of requests that are passed on, and of those that are answered for other gateways.
pub(crate) struct RelayPlaces {
    passed: RelayQuota,
    clients: FairShares<Client>,
    pub(crate) answered: RelayQuota,
    /// KiB of answers.
    pub(crate) answers: Arc<Semaphore>,
}

impl RelayPlaces {
    pub(crate) fn new() -> Self {
        Self {
            passed: RelayQuota::new(AT_ONCE),
            clients: FairShares::new(OF_CLIENT),
            answered: RelayQuota::new(ANSWERED_AT_ONCE),
            answers: Arc::new(Semaphore::new(ANSWERS_KIB)),
        }
    }

    /// Waits for the client's share and then for a place; an error where there is none soon, and at once where too many of
    /// the client wait. Who waits for a share has no place that another client could have.
    pub(super) async fn take(
        &self,
        kind: RelayKind,
        client: Client,
    ) -> Result<(SemaphorePermit<'_>, Option<Share<Client>>), Problem> {
        let busy = || Problem::later("too many requests are being passed on", RETRY_SOON);
        let until = Instant::now() + PLACE_TIME;
        let share = match kind {
            RelayKind::Operator => None,
            RelayKind::Hub | RelayKind::Other => {
                Some(self.clients.acquire_by(&client, 1, until).await.ok_or_else(busy)?)
            }
        };
        let place = timeout_at(until, self.passed.places(kind).acquire()).await;
        let place = place.ok().and_then(Result::ok).ok_or_else(busy)?;
        Ok((place, share))
    }

    /// A place for what another gateway passed on; an error where there is none. Nothing waits for one: what waits would
    /// take up what writes of other gateways need.
    pub(super) fn answer(&self, kind: RelayKind) -> Result<OwnedSemaphorePermit, Problem> {
        let place = Arc::clone(self.answered.places(kind)).try_acquire_owned();
        let said = "the gateway that writes answers too many such requests for other gateways";
        place.map_err(|_| Problem::later(said, RETRY_SOON))
    }

    /// Room for an answer to another gateway; an error where too much is under way.
    pub(super) fn hold(
        &self,
        response: &Response,
    ) -> Result<Option<OwnedSemaphorePermit>, Problem> {
        let size = response.body().size_hint().upper().map(usize::try_from);
        let size = size.and_then(Result::ok).map_or(ANSWER_LIMIT, |size| size.min(ANSWER_LIMIT));
        if size <= SHORT_ANSWER {
            return Ok(None);
        }
        let kib = u32::try_from(size.div_ceil(1024)).unwrap_or(u32::MAX);
        let room = Arc::clone(&self.answers).try_acquire_many_owned(kib);
        let said = "the answers of the gateway that writes to other gateways are too many bytes";
        room.map(Some).map_err(|_| Problem::later(said, RETRY_SOON))
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::shares::WAITING;
    use super::*;
    use futures_util::future::poll_immediate;

    #[tokio::test(start_paused = true)]
    async fn a_client_waits_for_its_share_without_a_place_of_others() {
        let places = RelayPlaces::new();
        let ask = |last: u8| places.take(RelayKind::Hub, Client::at([192, 0, 2, last].into()));
        let (mut held, mut waiting) = (Vec::new(), Vec::new());
        for _ in 0..OF_CLIENT {
            held.push(ask(1).await.unwrap());
        }
        let begun = Instant::now();
        for _ in 0..WAITING {
            let mut one = Box::pin(ask(1));
            assert!(poll_immediate(one.as_mut()).await.is_none());
            waiting.push(one);
        }
        assert_eq!(places.passed.hubs.available_permits(), AT_ONCE - held.len());
        assert!(ask(2).await.is_ok());
        assert!(ask(1).await.is_err(), "too many wait");
        held.pop();
        held.push(waiting.remove(0).await.unwrap());
        assert_eq!(begun.elapsed(), Duration::ZERO);
        for late in waiting {
            assert!(late.await.is_err());
        }
        assert_eq!(begun.elapsed().as_secs(), PLACE_TIME.as_secs());
        // Once everything is over, nothing is remembered.
        held.clear();
        assert_eq!(places.clients.keys(), 0);
        assert_eq!(places.passed.hubs.available_permits(), AT_ONCE);
    }

    #[tokio::test(start_paused = true)]
    async fn a_share_and_a_place_are_waited_for_together() {
        let places = RelayPlaces::new();
        let ask = |last: u8| places.take(RelayKind::Other, Client::at([192, 0, 2, last].into()));
        let mut held = Vec::new();
        for _ in 0..OF_CLIENT {
            held.push(ask(0).await.unwrap());
        }
        let others = places.passed.others.available_permits();
        let _others =
            places.passed.others.try_acquire_many(u32::try_from(others).unwrap()).unwrap();
        let begun = Instant::now();
        let share_is_free = async {
            tokio::time::sleep(PLACE_TIME / 2).await;
            // The place stays taken.
            held.pop().unwrap().0.forget();
        };
        let (late, ()) = tokio::join!(ask(0), share_is_free);
        assert!(late.is_err());
        assert_eq!(begun.elapsed().as_secs(), PLACE_TIME.as_secs());
    }
}
