//! What a callback's answer means to the hub (WebSub sections 5.3 and 7).

use std::time::Duration;

/// What came of a call of a callback.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallbackAnswer {
    /// 2xx: the challenge came back, or what was delivered has arrived.
    Taken,
    /// The subscriber did not ask for this, says that it is gone (410), or the callback is of no use; says why.
    Refused(String),
    /// It may go better another time.
    Failed {
        why: String,
        /// How long the callback asks to be left alone.
        after: Option<Duration>,
    },
}

impl CallbackAnswer {
    /// Reads the answer to a verification whose challenge was `challenge`; `whole`: whether `body`
    /// is all of the answer's body.
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

    /// Reads the answer to a delivery. Everything but 2xx and 410 is a failure (section 7); a redirect too.
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
