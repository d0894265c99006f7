//! The token that administration must bring along (RFC 6750 section 2.1), and wrong ones.
//!
//! A client that sends too many different ones is not told for a while whether the next is right, not even the right
//! one: if only wrong ones were refused, a guesser would see the right one at once. While many clients guess, each has
//! fewer tries. No client waits for the guesses of others.

use super::readers::WRONG_TOKEN_PAUSE;
use super::{AppState, Cache, Client, Problem, Rate, RateLimiter, SharedState};
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use http::{HeaderMap, StatusCode, header};
use sha2::{Digest, Sha256};
use std::fmt;
use std::time::Duration;
use subtle::ConstantTimeEq;

/// The longest user and password that are read, in bytes as they are sent.
const PASSWORD_LIMIT: usize = 1024;

/// The administration token. Only its hash is kept, and it is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct AdminToken([u8; 32]);

/// Why a text is no [`AdminToken`], in a sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TokenError(&'static str);

impl AdminToken {
    /// Checks and takes a token: visible ASCII, so that it fits into a header.
    pub fn new(token: &str) -> Result<Self, TokenError> {
        if token.is_empty() {
            let detail = "the admin token is empty; leave it out to have a random one made";
            return Err(TokenError(detail));
        }
        if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(TokenError("the admin token holds a character other than visible ASCII"));
        }
        Ok(Self(Sha256::digest(token).into()))
    }

    /// Its hash: a key for what only who has the token may make.
    pub(super) const fn hash(&self) -> &[u8; 32] {
        &self.0
    }

    /// Whether this is the hash of the token. Hashes are compared, in constant time, so that the time tells
    /// nothing of the length or of how much was right.
    pub(super) fn has_hash(&self, presented: &[u8; 32]) -> bool {
        bool::from(self.0.ct_eq(presented))
    }

    /// Whether a request brings the token along. Who is told has to be asked first whether the client may guess
    /// (`Guesses`).
    pub(super) fn admits(&self, headers: &HeaderMap) -> bool {
        bearer(headers).is_some_and(|token| self.has_hash(&Sha256::digest(token).into()))
    }
}

impl fmt::Debug for AdminToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AdminToken(…)")
    }
}

/// What a request brings along by an authentication scheme.
fn credentials<'h>(headers: &'h HeaderMap, scheme: &str) -> Option<&'h str> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    // Two in one request are a mistake or an attack.
    let (Some(value), None) = (values.next(), values.next()) else { return None };
    let (named, credentials) = value.to_str().ok()?.split_once(' ')?;
    named.eq_ignore_ascii_case(scheme).then(|| credentials.trim())
}

/// The token that a request brings along.
pub(super) fn bearer(headers: &HeaderMap) -> Option<&str> {
    credentials(headers, "bearer")
}

/// The password of basic authentication (RFC 7617 section 2); the user may be anybody.
pub(super) fn password(headers: &HeaderMap) -> Option<String> {
    let encoded = credentials(headers, "basic").filter(|text| text.len() <= PASSWORD_LIMIT)?;
    let decoded = data_encoding::BASE64.decode(encoded.as_bytes()).ok()?;
    let text = String::from_utf8(decoded).ok()?;
    text.split_once(':').map(|(_, password)| password.to_owned())
}

/// Lets through only what brings the token along.
pub(super) async fn require(
    State(app): State<SharedState>,
    client: Client,
    request: Request,
    next: Next,
) -> Result<Response, Problem> {
    let presented = bearer(request.headers()).ok_or_else(Problem::unauthorized)?;
    demand(&app, client, presented, Problem::unauthorized).await?;
    Ok(next.run(request).await)
}

/// The rate at which different wrong tokens of one client are compared.
const CLIENT_RATE: Rate = Rate { burst: 8, each: Duration::from_millis(7_500) };
/// The same while all clients together exceed [`TOTAL_RATE`].
const CROWDED_CLIENT_RATE: Rate = Rate { burst: 2, each: Duration::from_secs(30) };
const TOTAL_RATE: Rate = Rate { burst: 64, each: Duration::from_millis(937) };
/// How long a wrong token is remembered, so that a client that repeats it uses up nothing.
const WINDOW: Duration = Duration::from_secs(60);
/// How many wrong tokens are remembered.
const REMEMBERED: u64 = 16 * 1024;

/// The wrong tokens that came lately, by their hashes, and how fast they come.
#[derive(Debug)]
pub(super) struct Guesses {
    wrong: Cache<(Client, [u8; 32]), ()>,
    clients: RateLimiter<Client>,
    all: RateLimiter<()>,
    log_limiter: RateLimiter<()>,
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
        let (clients, all, log_limiter) =
            (RateLimiter::default(), RateLimiter::default(), RateLimiter::default());
        Self { wrong: Cache::with_ttl(REMEMBERED, WINDOW), clients, all, log_limiter }
    }

    fn compare(&self, token: &AdminToken, client: Client, presented: &str) -> TokenComparison {
        let (hash, client): ([u8; 32], _) = (Sha256::digest(presented).into(), client.network());
        let is_right = token.has_hash(&hash);
        // A proxy may send a JSON Web Token of everybody's, another one each hour, for the gateway to tell who it is. One
        // of administration that looks so is too long to be guessed. A program that goes on with an old token learns
        // nothing either.
        if is_json_web_token(presented) || self.wrong.get(&(client, hash)).is_some() {
            let wrong = TokenComparison::Wrong { is_new: false };
            return if is_right { TokenComparison::Right } else { wrong };
        }
        let are_many = !self.all.wait(&(), TOTAL_RATE).is_zero();
        let rate = if are_many { CROWDED_CLIENT_RATE } else { CLIENT_RATE };
        if let Err(wait) = self.clients.take(&client, rate) {
            return TokenComparison::Held(wait);
        }
        if is_right {
            self.clients.give_back(&client, rate);
            return TokenComparison::Right;
        }
        self.wrong.insert((client, hash), ());
        let log_rate = Rate { burst: 1, each: WINDOW };
        if self.all.take(&(), TOTAL_RATE).is_err() && self.log_limiter.take(&(), log_rate).is_ok() {
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
            let compared = self.guesses.compare(&self.config.admin_token, client, presented);
            compared == TokenComparison::Right
        };
        bearer(headers).is_some_and(is_right)
    }
}

/// Refuses a token that is not that of administration, and holds back the answer where that says something new.
pub(super) async fn demand(
    app: &SharedState,
    client: Client,
    presented: &str,
    wrong: fn() -> Problem,
) -> Result<(), Problem> {
    let compared = app.guesses.compare(&app.config.admin_token, client, presented);
    match compared {
        TokenComparison::Right => Ok(()),
        TokenComparison::Wrong { is_new } if !is_new || app.readers.hold_back(client).await => {
            Err(wrong())
        }
        TokenComparison::Wrong { .. } => Err(too_many_tokens()),
        TokenComparison::Held(wait) => Err(too_many_tokens().after(wait)),
    }
}

/// What a client is told that guesses too fast.
pub(super) fn too_many_tokens() -> Problem {
    let detail = "too many tokens were sent that open nothing; wait a little";
    Problem::new(StatusCode::TOO_MANY_REQUESTS, detail).after(WRONG_TOKEN_PAUSE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::network_of_site;
    use tidegate_net::testing::headers;

    #[test]
    fn a_token_is_checked_never_shown_and_admits_as_a_whole_alone() {
        for (token, part) in [("", "is empty"), ("long enough", "other than visible ASCII")] {
            let said = AdminToken::new(token).unwrap_err().to_string();
            assert!(said.contains(part), "{said}");
        }
        let token = AdminToken::new("correct-horse").unwrap();
        assert!(!format!("{token:?}").contains("horse"));
        for (value, admitted) in [
            ("Bearer correct-horse", true),
            ("bearer  correct-horse", true),
            ("Bearer correct-horse2", false),
            ("Bearer correct-hors", false),
            ("Bearer", false),
            ("Basic correct-horse", false),
            ("correct-horse", false),
            ("", false),
        ] {
            let sent = headers(&[("authorization", value)]);
            assert_eq!(token.admits(&sent), admitted, "{value:?}");
        }
        let twice = headers(&[("authorization", "Bearer correct-horse"); 2]);
        assert!(!token.admits(&twice));
        assert!(!token.admits(&HeaderMap::new()));
    }

    fn client(n: u16) -> Client {
        let [high, low] = n.to_be_bytes();
        Client::at([198, 18, high, low].into())
    }

    #[tokio::test(start_paused = true)]
    async fn who_guesses_too_much_is_not_told_what_is_right_and_others_are() {
        let (guesses, token) = (Guesses::new(), AdminToken::new("correct-horse-staple").unwrap());
        let compare = |n, presented: &str| guesses.compare(&token, client(n), presented);
        let right = "correct-horse-staple";
        for n in 0..CLIENT_RATE.burst {
            assert_eq!(compare(1, right), TokenComparison::Right, "after {n} wrong ones");
            // One token again and again is one guess.
            for is_new in [true, false, false] {
                let wrong = compare(1, &format!("wrong-{n}"));
                assert_eq!(wrong, TokenComparison::Wrong { is_new });
            }
        }
        for presented in [right, "wrong-too"] {
            assert_eq!(compare(1, presented), TokenComparison::Held(CLIENT_RATE.each));
        }
        assert_eq!(compare(1, "wrong-0"), TokenComparison::Wrong { is_new: false });
        // Many clients together have fewer guesses, and none that is right waits for those of others.
        let is_told = |n, guess: u32| {
            compare(n, &guess.to_string()) == TokenComparison::Wrong { is_new: true }
        };
        let of_client = |n| (0..CLIENT_RATE.burst).filter(move |guess| is_told(n, *guess)).count();
        let told: usize = (2..1000).map(of_client).sum();
        assert!(told < 64 + 8 + 1000 * 2, "{told} of 8000");
        assert_eq!(compare(1000, right), TokenComparison::Right);
        tokio::time::advance(WINDOW).await;
        assert_eq!(compare(1, right), TokenComparison::Right);
        // Networks of a site guess as one client.
        let (guesses, token) = (Guesses::new(), AdminToken::new("correct-horse-staple").unwrap());
        let is_told = |n: &u16| {
            let wrong = guesses.compare(&token, network_of_site(*n), &format!("wrong-{n}"));
            wrong == TokenComparison::Wrong { is_new: true }
        };
        assert_eq!((0..1000).filter(is_told).count(), 8);
        // Tokens of a proxy in front are no guesses.
        let (guesses, token) = (Guesses::new(), AdminToken::new("correct-horse-staple").unwrap());
        let compare = |presented: &str| guesses.compare(&token, client(1), presented);
        for n in 0..1000 {
            let wrong = compare(&format!("eyJhbGciOiJub25lIn0.{n}.x"));
            assert_eq!(wrong, TokenComparison::Wrong { is_new: false });
        }
        assert_eq!(compare("correct-horse-staple"), TokenComparison::Right);
        let token = AdminToken::new("eyJhbGciOiJub25lIn0.own.x").unwrap();
        let right = guesses.compare(&token, client(1), "eyJhbGciOiJub25lIn0.own.x");
        assert_eq!(right, TokenComparison::Right);
    }
}
