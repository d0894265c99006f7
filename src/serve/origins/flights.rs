//! Requests that origins have not begun to answer: a limit for each origin, and a share for each client.

use super::super::client::Client;
use super::super::problem::Problem;
use crate::model::FeedName;
use crate::origin::OriginSite;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// Requests to one origin.
const SITE_LIMIT: usize = 512;
/// Requests of one client, to all origins.
const CLIENT_LIMIT: usize = 64;
/// How long a request waits for its turn.
const WAIT: Duration = Duration::from_secs(5);
/// How soon to ask again.
const AGAIN: Duration = Duration::from_secs(2);

type ClientCounts = Arc<Mutex<HashMap<Client, usize>>>;

/// The requests in flight.
pub(super) struct OriginFlights {
    sites: HashMap<FeedName, Arc<Semaphore>>,
    clients: ClientCounts,
}

/// A request in flight, until it is dropped.
pub(super) struct Flight {
    client: Client,
    clients: ClientCounts,
    /// Given back with it.
    turn: Option<OwnedSemaphorePermit>,
}

impl Drop for Flight {
    fn drop(&mut self) {
        drop(self.turn.take());
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Entry::Occupied(mut count) = clients.entry(self.client) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }
}

impl OriginFlights {
    pub(super) fn new(sites: &[Arc<OriginSite>]) -> Self {
        let new = |site: &Arc<OriginSite>| {
            (site.config().name.clone(), Arc::new(Semaphore::new(SITE_LIMIT)))
        };
        Self { sites: sites.iter().map(new).collect(), clients: ClientCounts::default() }
    }

    /// Begins a request of a client to an origin.
    pub(super) async fn begin(&self, site: &FeedName, client: Client) -> Result<Flight, Problem> {
        {
            let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
            let count = clients.entry(client).or_insert(0);
            if *count >= CLIENT_LIMIT {
                let said = format!("{CLIENT_LIMIT} requests of this client wait for answers");
                return Err(Problem::later(said, AGAIN));
            }
            *count += 1;
        }
        let clients = Arc::clone(&self.clients);
        let mut flight = Flight { client, clients, turn: None };
        let Some(turns) = self.sites.get(site) else { return Ok(flight) };
        if let Ok(turn) = Arc::clone(turns).try_acquire_owned() {
            flight.turn = Some(turn);
            return Ok(flight);
        }
        match timeout(WAIT, Arc::clone(turns).acquire_owned()).await {
            Ok(Ok(turn)) => {
                flight.turn = Some(turn);
                Ok(flight)
            }
            _ => Err(Problem::later("too many requests wait for this site", AGAIN)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_client_has_a_share_and_a_site_a_limit() {
        let name = FeedName::new("blog").unwrap();
        let turns = Arc::new(Semaphore::new(CLIENT_LIMIT + 1));
        let sites = HashMap::from([(name.clone(), turns)]);
        let flights = OriginFlights { sites, clients: ClientCounts::default() };
        let client = |last: u8| Client::at([192, 0, 2, last].into());
        let mut held = Vec::new();
        for _ in 0..CLIENT_LIMIT {
            held.push(flights.begin(&name, client(1)).await.unwrap());
        }
        assert!(flights.begin(&name, client(1)).await.is_err());
        let other = flights.begin(&name, client(2)).await.unwrap();
        assert!(flights.begin(&name, client(3)).await.is_err(), "the site has as many as it may");
        drop(other);
        assert!(flights.begin(&name, client(3)).await.is_ok());
        held.pop();
        assert!(flights.begin(&name, client(1)).await.is_ok());
        held.clear();
        assert!(flights.clients.lock().unwrap().is_empty());
    }
}
