//! What clients look for by `/subscribe`: each has a few looks at a time, so that one who names slow pages takes no
//! site's places from everybody else.

use super::super::client::Client;
use super::super::problem::Problem;
use super::{FIRST_AGAIN, LOOK_WAIT};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// Looks of one client at the same time, at all sites.
const CLIENT_LOOKS: usize = 2;

/// The looks of each client.
#[derive(Default)]
pub(super) struct ClientLooks(Mutex<HashMap<Client, Arc<Semaphore>>>);

impl ClientLooks {
    /// Waits until a client has one look less than it may have.
    pub(super) async fn turn(&self, client: Client) -> Result<OwnedSemaphorePermit, Problem> {
        let turns = {
            let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            // Only who has a look, or waits for one, is remembered.
            all.retain(|_, turns| Arc::strong_count(turns) > 1);
            let new = || Arc::new(Semaphore::new(CLIENT_LOOKS));
            Arc::clone(all.entry(client).or_insert_with(new))
        };
        match timeout(LOOK_WAIT, turns.acquire_owned()).await {
            Ok(Ok(turn)) => Ok(turn),
            Ok(Err(_)) | Err(_) => {
                let said = format!("{CLIENT_LOOKS} addresses are being looked at for this client");
                Err(Problem::later(said, FIRST_AGAIN))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn one_client_takes_no_places_from_another() {
        let looks = ClientLooks::default();
        let client = |last: u8| Client::at([192, 0, 2, last].into());
        let mut held = Vec::new();
        for _ in 0..CLIENT_LOOKS {
            held.push(looks.turn(client(1)).await.unwrap());
        }
        assert!(looks.turn(client(1)).await.is_err());
        let other = looks.turn(client(2)).await.unwrap();
        held.pop();
        assert!(looks.turn(client(1)).await.is_ok());
        drop((held, other));
        drop(looks.turn(client(3)).await);
        assert_eq!(looks.0.lock().unwrap().len(), 1, "who has no look is forgotten");
    }
}
