//! The token that administration must bring along (RFC 6750 section 2.1).

use super::SharedState;
use super::client::Client;
use super::guesses::demand;
use super::problem::Problem;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use http::{HeaderMap, header};
use sha2::{Digest, Sha256};
use std::fmt;
use subtle::ConstantTimeEq;

/// The longest user and password that are read, in bytes as they are sent.
const PASSWORD_LIMIT: usize = 1024;

/// The administration token. Only its hash is kept, and it is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct AdminToken([u8; 32]);

/// Why a text is no [`AdminToken`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// It is empty.
    #[error("the admin token is empty; leave it out to have a random one made")]
    Empty,
    /// It could not be sent in a header.
    #[error("the admin token holds a character other than visible ASCII")]
    Unsendable,
}

impl AdminToken {
    /// Checks and takes a token: visible ASCII, so that it fits into a header.
    pub fn new(token: &str) -> Result<Self, TokenError> {
        if token.is_empty() {
            return Err(TokenError::Empty);
        }
        if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(TokenError::Unsendable);
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
    /// (`guesses`).
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
    State(room): State<SharedState>,
    client: Client,
    request: Request,
    next: Next,
) -> Result<Response, Problem> {
    let presented = bearer(request.headers()).ok_or_else(Problem::unauthorized)?;
    demand(&room, client, presented, Problem::unauthorized).await?;
    Ok(next.run(request).await)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn tokens_are_checked_and_never_shown() {
        assert_eq!(AdminToken::new("").unwrap_err(), TokenError::Empty);
        assert_eq!(AdminToken::new("long enough").unwrap_err(), TokenError::Unsendable);
        let token = AdminToken::new("correct-horse").unwrap();
        assert!(!format!("{token:?}").contains("horse"));
    }

    #[test]
    fn only_the_whole_token_admits() {
        let token = AdminToken::new("correct-horse").unwrap();
        for (value, admitted) in [
            ("Bearer correct-horse", true),
            ("bearer  correct-horse", true),
            ("Bearer correct-horse2", false),
            ("Bearer correct-hors", false),
            ("Bearer ", false),
            ("Bearer", false),
            ("Basic correct-horse", false),
            ("correct-horse", false),
            ("", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::AUTHORIZATION, HeaderValue::from_static(value));
            assert_eq!(token.admits(&headers), admitted, "{value:?}");
        }
        let mut twice = HeaderMap::new();
        for _ in 0..2 {
            twice.append(header::AUTHORIZATION, HeaderValue::from_static("Bearer correct-horse"));
        }
        assert!(!token.admits(&twice));
        assert!(!token.admits(&HeaderMap::new()));
    }
}
