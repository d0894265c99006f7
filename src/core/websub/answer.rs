//! What a callback's answer means to the hub (WebSub sections 5.3 and 7).

use std::time::Duration;

/// What came of a verification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VerificationResult {
    /// 2xx, and the challenge came back.
    Agreed,
    /// The subscriber did not ask for this, or the callback is of no use; says why.
    Refused(String),
    /// It may go better another time.
    Failed {
        why: String,
        /// How long the callback asks to be left alone.
        after: Option<Duration>,
    },
}

impl VerificationResult {
    /// Reads the answer to a verification whose challenge was `challenge`; `whole`: whether `body`
    /// is all of the answer's body.
    pub fn from_answer(
        (status, after): (u16, Option<Duration>),
        body: &[u8],
        whole: bool,
        challenge: &str,
    ) -> Self {
        match status {
            200..=299 if whole && body == challenge.as_bytes() => Self::Agreed,
            200..=299 => Self::Refused("the callback did not answer with the challenge".to_owned()),
            404 => Self::Refused("the callback does not want this (404)".to_owned()),
            429 | 500..=599 => {
                Self::Failed { why: format!("the callback answered {status}"), after }
            }
            300..=399 => Self::Refused(format!(
                "the callback answered with a redirect ({status}), which is not followed"
            )),
            _ => Self::Refused(format!("the callback answered {status}")),
        }
    }
}

/// What came of a delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Push {
    /// 2xx: it arrived.
    Taken,
    /// 410: the subscriber says that it is gone.
    Gone,
    /// Everything else is a failure (section 7); a redirect too.
    Failed {
        why: String,
        /// How long the callback asks to be left alone.
        after: Option<Duration>,
    },
}

impl Push {
    /// The same, where a callback cannot end what it is told.
    pub fn as_failure(self) -> Self {
        match self {
            Self::Gone => Self::Failed { why: "the callback answered 410".to_owned(), after: None },
            other => other,
        }
    }

    /// Reads the answer to a delivery.
    pub fn from_status(status: u16, after: Option<Duration>) -> Self {
        match status {
            200..=299 => Self::Taken,
            410 => Self::Gone,
            300..=399 => Self::Failed {
                why: format!(
                    "the callback answered with a redirect ({status}), which is not followed"
                ),
                after: None,
            },
            _ => Self::Failed { why: format!("the callback answered {status}"), after },
        }
    }
}
