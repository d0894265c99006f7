//! Wrong administration tokens. A client that sends too many different ones is not told for a while whether the
//! next is right: that one could be told at once, so refusing wrong ones alone would not slow down who guesses.
//! Where many clients guess, each has fewer. No client waits for the guesses of others.

use super::auth::{AdminToken, bearer};
use super::client::Client;
use super::problem::Problem;
use super::readers::WRONG_TOKEN_PAUSE;
use super::{AppState, SharedState};
use http::{HeaderMap, StatusCode};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// How many different wrong tokens of one client are compared within the window: before so many of all clients were,
/// and afterwards.
const EACH: (usize, usize) = (8, 2);
const ALL: usize = 64;
const WINDOW: Duration = Duration::from_secs(60);
/// How many sites of clients are remembered.
const CLIENTS: usize = 16 * 1024;

/// The wrong tokens of a window, by their hashes.
#[derive(Debug)]
pub(super) struct Guesses(Mutex<GuessTable>);

#[derive(Debug)]
struct GuessTable {
    begun: Instant,
    all: usize,
    clients: HashMap<Client, Vec<[u8; 32]>>,
}

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TokenComparison {
    Right,
    Wrong {
        /// Whether the client has not sent it before.
        is_new: bool,
    },
    /// It was not compared, and is not for so long.
    Held(Duration),
}

impl GuessTable {
    fn new() -> Self {
        Self { begun: Instant::now(), all: 0, clients: HashMap::new() }
    }
}

impl Guesses {
    /// Nobody has guessed.
    pub(super) fn new() -> Self {
        Self(Mutex::new(GuessTable::new()))
    }

    fn compare(&self, token: &AdminToken, client: Client, presented: &str) -> TokenComparison {
        let (hash, client) = (Sha256::digest(presented).into(), client.site());
        // A proxy may send such a token of everybody's, another one each hour, for the gateway to tell who it is. One of
        // administration that looks so is too long to be guessed.
        if is_json_web_token(presented) {
            let is_right = token.has_hash(&hash);
            return if is_right {
                TokenComparison::Right
            } else {
                TokenComparison::Wrong { is_new: false }
            };
        }
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if table.begun.elapsed() >= WINDOW {
            *table = GuessTable::new();
        }
        let wrong = table.clients.get(&client).map_or(&[][..], Vec::as_slice);
        // A program that goes on with an old token learns nothing.
        let is_known = wrong.contains(&hash);
        let most = if table.all < ALL { EACH.0 } else { EACH.1 };
        if !is_known && wrong.len() >= most {
            return TokenComparison::Held(WINDOW.saturating_sub(table.begun.elapsed()));
        }
        if token.has_hash(&hash) {
            return TokenComparison::Right;
        }
        if !is_known {
            table.all += 1;
            if table.all == ALL {
                tracing::warn!(
                    tokens = ALL,
                    clients = table.clients.len(),
                    "the administration token is being guessed, or programs send wrong ones"
                );
            }
            if table.clients.len() >= CLIENTS
                && let Some(any) = table.clients.keys().next().copied()
            {
                table.clients.remove(&any);
            }
            table.clients.entry(client).or_default().push(hash);
        }
        TokenComparison::Wrong { is_new: !is_known }
    }
}

/// Whether a token is a JSON Web Token: parts with dots between them, of which the first is an object (RFC 7519 section 3).
fn is_json_web_token(presented: &str) -> bool {
    presented.starts_with("eyJ") && matches!(presented.split('.').count(), 3 | 5)
}

impl AppState {
    /// Whether a request brings the administration token along, as far as its client may ask.
    pub(super) fn admits(&self, client: Client, headers: &HeaderMap) -> bool {
        let is_right = |presented| {
            let settings = self.settings.load();
            self.guesses.compare(&settings.admin_token, client, presented) == TokenComparison::Right
        };
        bearer(headers).is_some_and(is_right)
    }
}

/// Refuses a token that is not that of administration, and holds back the answer where that says something new.
pub(super) async fn demand(
    room: &SharedState,
    client: Client,
    presented: &str,
    wrong: fn() -> Problem,
) -> Result<(), Problem> {
    let compared = room.guesses.compare(&room.settings.load().admin_token, client, presented);
    match compared {
        TokenComparison::Right => Ok(()),
        TokenComparison::Wrong { is_new } if !is_new || room.readers.hold_back(client).await => {
            Err(wrong())
        }
        TokenComparison::Wrong { .. } => Err(too_many_tokens()),
        TokenComparison::Held(wait) => Err(too_many_tokens().after(wait)),
    }
}

/// What a client is told that guesses too fast.
pub(super) fn too_many_tokens() -> Problem {
    let said = "too many tokens were sent that open nothing; wait a little";
    Problem::new(StatusCode::TOO_MANY_REQUESTS, said).after(WRONG_TOKEN_PAUSE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv6Addr;

    fn client(n: u16) -> Client {
        let [high, low] = n.to_be_bytes();
        Client::at([198, 18, high, low].into())
    }

    #[tokio::test(start_paused = true)]
    async fn who_guesses_too_much_is_not_told_what_is_right_and_others_are() {
        let (guesses, token) = (Guesses::new(), AdminToken::new("correct-horse-staple").unwrap());
        let compare = |n, presented: &str| guesses.compare(&token, client(n), presented);
        let right = "correct-horse-staple";
        for n in 0..EACH.0 {
            assert_eq!(compare(1, right), TokenComparison::Right, "after {n} wrong ones");
            // One token again and again is one guess.
            for is_new in [true, false, false] {
                let wrong = compare(1, &format!("wrong-{n}"));
                assert_eq!(wrong, TokenComparison::Wrong { is_new });
            }
        }
        tokio::time::advance(WINDOW / 4).await;
        for presented in [right, "wrong-too"] {
            assert_eq!(compare(1, presented), TokenComparison::Held(WINDOW * 3 / 4));
        }
        assert_eq!(compare(1, "wrong-0"), TokenComparison::Wrong { is_new: false });
        // Many clients together have fewer guesses, and none that is right waits for those of others.
        let mut told = 0;
        for n in 2..1000 {
            told += (0..EACH.0)
                .filter(|guess| {
                    compare(n, &format!("{guess}")) == TokenComparison::Wrong { is_new: true }
                })
                .count();
        }
        assert!(told < ALL + EACH.0 + 1000 * EACH.1, "{told} of {}", 1000 * EACH.0);
        assert_eq!(compare(1000, right), TokenComparison::Right);
        tokio::time::advance(WINDOW).await;
        assert_eq!(compare(1, right), TokenComparison::Right);
    }

    #[tokio::test(start_paused = true)]
    async fn networks_of_a_site_guess_as_one_client_and_sites_are_not_forgotten_all_at_once() {
        let (guesses, token) = (Guesses::new(), AdminToken::new("correct-horse-staple").unwrap());
        let network = |n: u16| Client::at(Ipv6Addr::new(0x2001, 0xdb8, 7, n, 0, 0, 0, 1).into());
        let told = (0..1000)
            .filter(|n| {
                let wrong = guesses.compare(&token, network(*n), &format!("wrong-{n}"));
                wrong == TokenComparison::Wrong { is_new: true }
            })
            .count();
        assert_eq!(told, EACH.0);
        for n in 0..=u16::try_from(CLIENTS).unwrap() {
            guesses.compare(&token, client(n), "wrong");
        }
        assert_eq!(guesses.0.lock().unwrap().clients.len(), CLIENTS);
    }

    #[tokio::test(start_paused = true)]
    async fn tokens_of_a_proxy_in_front_are_no_guesses() {
        let (guesses, token) = (Guesses::new(), AdminToken::new("correct-horse-staple").unwrap());
        let compare = |presented: &str| guesses.compare(&token, client(1), presented);
        for n in 0..1000 {
            assert_eq!(
                compare(&format!("eyJhbGciOiJub25lIn0.{n}.x")),
                TokenComparison::Wrong { is_new: false }
            );
        }
        assert_eq!(compare("correct-horse-staple"), TokenComparison::Right);
        let token = AdminToken::new("eyJhbGciOiJub25lIn0.own.x").unwrap();
        let right = guesses.compare(&token, client(1), "eyJhbGciOiJub25lIn0.own.x");
        assert_eq!(right, TokenComparison::Right);
    }
}
