//! Webhooks: changes of a feed as JSON, signed by the Standard Webhooks specification (version 1.0.0, "Signature
//! scheme"), for which verification libraries exist.

use super::{Secret, SignatureError};
use crate::model::{FeedName, Tick, Time};
use data_encoding::{BASE64, BASE64_NOPAD};
use ring::hmac;

/// The header of the message id, which stays the same when the same changes are delivered again.
pub const ID_HEADER: &str = "webhook-id";
/// The header of the sending time, in seconds since 1970.
pub const TIMESTAMP_HEADER: &str = "webhook-timestamp";
/// The header of the signature over id, time and body.
pub const SIGNATURE_HEADER: &str = "webhook-signature";
/// The prefix of a secret in Base64.
const PREFIX: &str = "whsec_";

/// Returns the id of a message with the changes of a feed after one tick and up to another.
pub fn message_id(feed: &FeedName, after: Option<Tick>, until: Tick) -> String {
    let after = after.map_or_else(|| "start".to_owned(), Tick::update_id);
    format!("{feed}.{after}.{}", until.update_id())
}

/// Returns the value of `webhook-signature`: `v1,` and an HMAC-SHA-256 in Base64.
pub fn sign(secret: &Secret, id: &str, at: Time, body: &[u8]) -> String {
    let mut context = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, &key(secret)));
    context.update(format!("{id}.{}.", at.unix()).as_bytes());
    context.update(body);
    format!("v1,{}", BASE64.encode(context.sign().as_ref()))
}

/// Returns the key bytes of a secret: decoded Base64 after the prefix, otherwise its text.
fn key(secret: &Secret) -> Vec<u8> {
    let text = secret.reveal();
    let written = text.strip_prefix(PREFIX).map(|text| text.trim_end_matches('='));
    let read = written.and_then(|text| BASE64_NOPAD.decode(text.as_bytes()).ok());
    read.unwrap_or_else(|| text.as_bytes().to_vec())
}

/// Creates a secret from Base64, the form that receivers expect.
pub fn secret_from(base64: &str) -> Result<Secret, SignatureError> {
    Secret::new(&format!("{PREFIX}{base64}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::testing::{name, tick};

    /// The example of the specification's reference libraries.
    #[test]
    fn the_signature_is_that_of_other_libraries() {
        let secret = Secret::new("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let at = Time::from_unix(1_614_265_330);
        let signed = sign(&secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", at, b"{\"test\": 2432232314}");
        assert_eq!(signed, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn a_secret_that_is_no_base64_is_taken_as_it_is() {
        let of = |text: &str| key(&Secret::new(text).unwrap());
        assert_eq!(of("whsec_YWJj"), b"abc");
        assert_eq!(of("whsec_YQ=="), b"a");
        assert_eq!(of("abc"), b"abc");
        assert_eq!(of("whsec_!"), b"whsec_!");
        assert_eq!(key(&secret_from(&BASE64.encode(b"ab")).unwrap()), b"ab");
    }

    #[test]
    fn the_id_names_what_is_delivered() {
        let id = |since, until| message_id(&name("news"), since, until);
        assert_eq!(id(None, tick(0)), "news.start.2026-11-20T16-20-05Z");
        assert_ne!(id(Some(tick(0)), tick(1)), id(Some(tick(1)), tick(1)));
    }
}
