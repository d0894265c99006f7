//! Wrong administration tokens. A client that sends too many different ones is not told for a while whether the
//! next is right: that one could be told at once, so refusing wrong ones alone would not slow down who guesses.
//! Where many clients guess, each has fewer. No client waits for the guesses of others.

use super::auth::{AdminToken, bearer};
use super::cache::Cache;
use super::client::Client;
use super::pace::{Paces, Rate};
use super::problem::Problem;
use super::readers::WRONG_TOKEN_PAUSE;
use super::{AppState, SharedState};
use http::{HeaderMap, StatusCode};
use sha2::{Digest, Sha256};
use std::time::Duration;

/// How many different wrong tokens of one client are compared in [`WINDOW`], at once or as time goes by, and of all
/// clients before each has fewer.
const EACH: Rate = Rate { burst: 8, each: Duration::from_millis(7_500) };
const FEWER: Rate = Rate { burst: 2, each: Duration::from_secs(30) };
const ALL: Rate = Rate { burst: 64, each: Duration::from_millis(937) };
const WINDOW: Duration = Duration::from_secs(60);
/// How many wrong tokens are remembered.
const REMEMBERED: u64 = 16 * 1024;

/// The wrong tokens that came lately, by their hashes, and how fast they come.
#[derive(Debug)]
pub(super) struct Guesses {
    wrong: Cache<(Client, [u8; 32]), ()>,
    clients: Paces<Client>,
    all: Paces<()>,
    told: Paces<()>,
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

impl Guesses {
    /// Nobody has guessed.
    pub(super) fn new() -> Self {
        let (clients, all, told) = (Paces::default(), Paces::default(), Paces::default());
        Self { wrong: Cache::lasting(REMEMBERED, WINDOW), clients, all, told }
    }

    fn compare(&self, token: &AdminToken, client: Client, presented: &str) -> TokenComparison {
        let (hash, client): ([u8; 32], _) = (Sha256::digest(presented).into(), client.site());
        let is_right = token.has_hash(&hash);
        // A proxy may send a JSON Web Token of everybody's, another one each hour, for the gateway to tell who it is. One
        // of administration that looks so is too long to be guessed. A program that goes on with an old token learns
        // nothing either.
        if is_json_web_token(presented) || self.wrong.get(&(client, hash)).is_some() {
            let wrong = TokenComparison::Wrong { is_new: false };
            return if is_right { TokenComparison::Right } else { wrong };
        }
        let are_many = !self.all.wait(&(), ALL).is_zero();
        let rate = if are_many { FEWER } else { EACH };
        if let Err(wait) = self.clients.take(&client, rate) {
            return TokenComparison::Held(wait);
        }
        if is_right {
            self.clients.give_back(&client, rate);
            return TokenComparison::Right;
        }
        self.wrong.insert((client, hash), ());
        let told = Rate { burst: 1, each: WINDOW };
        if self.all.take(&(), ALL).is_err() && self.told.take(&(), told).is_ok() {
            tracing::warn!(
                "the administration token is being guessed, or many programs send wrong ones"
            );
        }
        TokenComparison::Wrong { is_new: true }
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
        for n in 0..EACH.burst {
            assert_eq!(compare(1, right), TokenComparison::Right, "after {n} wrong ones");
            // One token again and again is one guess.
            for is_new in [true, false, false] {
                let wrong = compare(1, &format!("wrong-{n}"));
                assert_eq!(wrong, TokenComparison::Wrong { is_new });
            }
        }
        for presented in [right, "wrong-too"] {
            assert_eq!(compare(1, presented), TokenComparison::Held(EACH.each));
        }
        assert_eq!(compare(1, "wrong-0"), TokenComparison::Wrong { is_new: false });
        // Many clients together have fewer guesses, and none that is right waits for those of others.
        let mut told = 0;
        for n in 2..1000 {
            told += (0..EACH.burst)
                .filter(|guess| {
                    compare(n, &format!("{guess}")) == TokenComparison::Wrong { is_new: true }
                })
                .count();
        }
        assert!(told < 64 + 8 + 1000 * 2, "{told} of 8000");
        assert_eq!(compare(1000, right), TokenComparison::Right);
        tokio::time::advance(WINDOW).await;
        assert_eq!(compare(1, right), TokenComparison::Right);
    }

    #[tokio::test(start_paused = true)]
    async fn networks_of_a_site_guess_as_one_client() {
        let (guesses, token) = (Guesses::new(), AdminToken::new("correct-horse-staple").unwrap());
        let network = |n: u16| Client::at(Ipv6Addr::new(0x2001, 0xdb8, 7, n, 0, 0, 0, 1).into());
        let is_told = |n: &u16| {
            let wrong = guesses.compare(&token, network(*n), &format!("wrong-{n}"));
            wrong == TokenComparison::Wrong { is_new: true }
        };
        assert_eq!((0..1000).filter(is_told).count(), 8);
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
