//! Requests that origins have not begun to answer: a limit for each origin, and a share for each client.

use super::super::client::Client;
use super::super::problem::Problem;
use super::super::shares::{FairShares, Share};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::model::FeedName;
use tidegate_net::origin::OriginSite;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

/// Requests to one origin.
const SITE_LIMIT: usize = 512;
/// Requests of one client, to all origins.
const CLIENT_LIMIT: u32 = 64;
/// How long a request waits for its turn.
const WAIT: Duration = Duration::from_secs(5);
/// How soon to ask again.
const AGAIN: Duration = Duration::from_secs(2);

/// The requests in flight.
pub(super) struct OriginFlights {
    sites: HashMap<FeedName, Arc<Semaphore>>,
    clients: FairShares<Client>,
}

/// A request in flight, until it is dropped.
pub(super) struct Flight {
    _share: Share<Client>,
    _turn: Option<OwnedSemaphorePermit>,
}

impl OriginFlights {
    pub(super) fn new(sites: &[Arc<OriginSite>]) -> Self {
        let new = |site: &Arc<OriginSite>| {
            (site.config().name.clone(), Arc::new(Semaphore::new(SITE_LIMIT)))
        };
        Self { sites: sites.iter().map(new).collect(), clients: FairShares::new(CLIENT_LIMIT) }
    }

    /// Begins a request of a client to an origin, once there is room for it.
    pub(super) async fn begin(&self, site: &FeedName, client: Client) -> Result<Flight, Problem> {
        let until = Instant::now() + WAIT;
        // One that is over its own share takes no turn of the site from others.
        let share = self.clients.acquire_by(&client, 1, until).await.ok_or_else(|| {
            let said = format!("{CLIENT_LIMIT} requests of this client wait for answers");
            Problem::later(said, AGAIN)
        })?;
        let Some(turns) = self.sites.get(site) else {
            return Ok(Flight { _share: share, _turn: None });
        };
        let turn = match Arc::clone(turns).try_acquire_owned() {
            Ok(turn) => turn,
            Err(_) => match timeout_at(until, Arc::clone(turns).acquire_owned()).await {
                Ok(Ok(turn)) => turn,
                _ => {
                    let said = "too many requests wait for this site";
                    return Err(Problem::site_is_late(said, AGAIN));
                }
            },
        };
        Ok(Flight { _share: share, _turn: Some(turn) })
    }
}

#[cfg(test)]
mod tests {
    use super::super::PassOutcome;
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_client_has_a_share_and_a_site_a_limit() {
        let name = FeedName::new("blog").unwrap();
        let limit = usize::try_from(CLIENT_LIMIT).unwrap();
        let turns = Arc::new(Semaphore::new(limit + 1));
        let sites = HashMap::from([(name.clone(), turns)]);
        let flights = OriginFlights { sites, clients: FairShares::new(CLIENT_LIMIT) };
        let client = |last: u8| Client::at([192, 0, 2, last].into());
        let mut held = Vec::new();
        for _ in 0..CLIENT_LIMIT {
            held.push(flights.begin(&name, client(1)).await.unwrap());
        }
        let refused = async |last: u8| {
            let problem = flights.begin(&name, client(last)).await.err().unwrap();
            PassOutcome::of_error(&problem)
        };
        assert_eq!(refused(1).await, PassOutcome::Busy);
        let other = flights.begin(&name, client(2)).await.unwrap();
        // The site has as many as it may, and has answered none.
        assert_eq!(refused(3).await, PassOutcome::Failed);
        drop(other);
        assert!(flights.begin(&name, client(3)).await.is_ok());
        held.pop();
        held.push(flights.begin(&name, client(1)).await.unwrap());
        // Who is over his share waits for what is over soon.
        let begun = Instant::now();
        let soon = async {
            tokio::time::sleep(WAIT / 2).await;
            held.pop();
        };
        let (one, ()) = tokio::join!(flights.begin(&name, client(1)), soon);
        assert!(one.is_ok() && begun.elapsed() < WAIT);
        drop(one);
        held.clear();
        assert_eq!(flights.clients.keys(), 0);
    }
}
