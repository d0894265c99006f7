//! `X-Hub-Signature`: an HMAC of the body under the subscriber's secret (WebSub section 7.1).

use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};
use ring::hmac;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The longest secret in bytes: it "MUST be less than 200 bytes" (section 5.1).
pub const SECRET_LIMIT: usize = 199;

/// The longest accepted header in bytes: `sha512=` and 128 digits, with some margin.
const HEADER_LIMIT: usize = 256;

/// The methods of signing (section 7.1): old hubs use SHA-1; this one uses SHA-256.
static METHODS: [(&str, &hmac::Algorithm); 4] = [
    ("sha1", &hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY),
    ("sha256", &hmac::HMAC_SHA256),
    ("sha384", &hmac::HMAC_SHA384),
    ("sha512", &hmac::HMAC_SHA512),
];

/// Why a secret or a signature is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    /// The secret is empty or too long.
    #[error("a secret has 1 to {SECRET_LIMIT} bytes, not {found}")]
    Secret { found: usize },
    /// The header is not a method and hexadecimal digits.
    #[error("the signature is not of the form method=digits")]
    Form,
    /// The method is not one of the recommendation.
    #[error("the signature's method is none of sha1, sha256, sha384 and sha512")]
    Method,
    /// The signature does not match the body and the secret.
    #[error("the signature does not match the body")]
    Wrong,
}

/// A subscriber's secret: 1 to [`SECRET_LIMIT`] bytes. It is never shown; only the store serializes it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Box<str>", into = "Box<str>")]
pub struct Secret(Box<str>);

impl TryFrom<Box<str>> for Secret {
    type Error = SignatureError;

    fn try_from(text: Box<str>) -> Result<Self, SignatureError> {
        Self::new(&text)
    }
}

impl From<Secret> for Box<str> {
    fn from(secret: Secret) -> Self {
        secret.0
    }
}

impl Secret {
    /// Checks a secret.
    pub fn new(text: &str) -> Result<Self, SignatureError> {
        if (1..=SECRET_LIMIT).contains(&text.len()) {
            return Ok(Self(text.into()));
        }
        Err(SignatureError::Secret { found: text.len() })
    }

    /// Returns the secret itself, for the store and for the hub to which we subscribe.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    fn key(&self, algorithm: &hmac::Algorithm) -> hmac::Key {
        hmac::Key::new(*algorithm, self.0.as_bytes())
    }

    /// Returns the `X-Hub-Signature` of a body: `sha256=` and hexadecimal digits.
    pub fn sign(&self, body: &[u8]) -> String {
        let tag = hmac::sign(&self.key(&hmac::HMAC_SHA256), body);
        format!("sha256={}", HEXLOWER.encode(tag.as_ref()))
    }

    /// Verifies the `X-Hub-Signature` of a body in constant time, with any of the four methods. A push with a wrong
    /// signature must be ignored (section 7.1).
    pub fn verify(&self, header: &str, body: &[u8]) -> Result<(), SignatureError> {
        let header = header.trim();
        if header.len() > HEADER_LIMIT {
            return Err(SignatureError::Form);
        }
        let (name, digits) = header.split_once('=').ok_or(SignatureError::Form)?;
        let known = METHODS.iter().find(|(method, _)| method.eq_ignore_ascii_case(name));
        let (_, algorithm) = known.ok_or(SignatureError::Method)?;
        let tag =
            HEXLOWER_PERMISSIVE.decode(digits.as_bytes()).map_err(|_| SignatureError::Form)?;
        hmac::verify(&self.key(algorithm), body, &tag).map_err(|_| SignatureError::Wrong)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

#[cfg(test)]
mod tests;
