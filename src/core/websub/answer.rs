//! Interprets a callback's answer for the hub (WebSub sections 5.3 and 7).

use std::time::Duration;

/// The result of a call to a callback.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallbackAnswer {
    /// 2xx: the challenge came back, or the delivery arrived.
    Taken,
    /// The subscriber did not request this, is gone (410), or its callback is unusable; the reason.
    Refused(String),
    /// The call failed but may succeed later.
    Failed {
        why: String,
        /// The pause that the callback asks for.
        after: Option<Duration>,
    },
}

impl CallbackAnswer {
    /// Interprets the answer to a verification with `challenge`. `whole`: `body` is the complete body.
    pub fn to_challenge(
        (status, after): (u16, Option<Duration>),
        body: &[u8],
        whole: bool,
        challenge: &str,
    ) -> Self {
        match status {
            200..=299 if whole && body == challenge.as_bytes() => Self::Taken,
            200..=299 => Self::Refused("the callback did not answer with the challenge".to_owned()),
            404 => Self::Refused("the callback does not want this (404)".to_owned()),
            429 | 500..=599 => Self::Failed { why: describe(status), after },
            _ => Self::Refused(describe(status)),
        }
    }

    /// Interprets the answer to a delivery. Everything except 2xx and 410 is a failure (section 7), including
    /// redirects.
    pub fn to_delivery(status: u16, after: Option<Duration>) -> Self {
        match status {
            200..=299 => Self::Taken,
            410 => Self::Refused(describe(status)),
            _ => Self::Failed { why: describe(status), after },
        }
    }
}

fn describe(status: u16) -> String {
    match status {
        300..=399 => {
            format!("the callback answered with a redirect ({status}), which is not followed")
        }
        _ => format!("the callback answered {status}"),
    }
}
