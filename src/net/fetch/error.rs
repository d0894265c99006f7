//! Why a fetch failed, and who has to do something about it.

use super::guard::Refusal;
use super::redirect::MAX_REDIRECTS;
use crate::origin::NotForEverybody;
use std::error::Error;
use std::fmt;
use std::time::Duration;
use tidegate_core::model::ShownAddress;

/// What a publisher did not do in time, where nothing of an answer came.
pub(super) const ACCEPTING: &str = "accept a connection";
pub(super) const ANSWERING: &str = "answer";

/// Who is to blame for a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FetchBlame {
    /// The way between the gateway and the publisher.
    Network,
    /// The publisher.
    Upstream,
    /// The operator of this gateway: a setting has to change.
    Operator,
    /// The gateway itself.
    Gateway,
}

impl FetchBlame {
    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Network => "network",
            Self::Upstream => "upstream",
            Self::Operator => "operator",
            Self::Gateway => "gateway",
        }
    }
}

impl fmt::Display for FetchBlame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// When it makes sense to ask again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Retry {
    /// After a pause that grows with each failure.
    Backoff,
    /// The publisher is overloaded or limits us (429, 503): after a longer pause.
    Busy,
    /// Not before this much time has passed: the publisher said so.
    After(Duration),
    /// It will hardly ever succeed (410, a refused address): as seldom as the schedule allows.
    Seldom,
}

/// How long a host is left alone that takes so many requests and no more (429), and does not say for how long.
const REFUSED_PAUSE: Duration = Duration::from_secs(60);

/// A host asks to be left alone (429, or 503 with `Retry-After`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PauseRequest {
    /// The address that answered so.
    pub address: String,
    /// For how long.
    pub wait: Duration,
}

impl PauseRequest {
    /// What an answer of `address` asks for.
    pub fn from_status(status: u16, retry_after: Option<Duration>, address: &str) -> Option<Self> {
        let wait = match status {
            429 => retry_after.unwrap_or(REFUSED_PAUSE),
            503 => retry_after?,
            _ => return None,
        };
        Some(Self { address: address.to_owned(), wait })
    }
}

/// Why a document could not be fetched. Its text never holds credentials.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FetchError {
    /// The guard refused a hop.
    #[error("{}{refusal}", if *.hop > 0 { "a redirect was not followed: " } else { "" })]
    Refused {
        /// 0 for the address that was asked for, else the number of the redirect.
        hop: usize,
        /// Why.
        refusal: Refusal,
    },
    /// No connection came about.
    #[error("could not connect to {host}: {why}")]
    Connect {
        host: String,
        /// What was said.
        why: String,
    },
    /// The host's name leads to no address.
    #[error("the name {host} leads to no address: {why}")]
    Name {
        host: String,
        /// What the resolver said.
        why: String,
    },
    /// The publisher's certificate is not good.
    #[error("the certificate of {host} was not accepted: {why}")]
    Certificate {
        host: String,
        /// What was said.
        why: String,
    },
    /// This machine knows no root certificates.
    #[error(
        "no https address can be fetched, because this machine has no root certificates; install them (the package is often called ca-certificates) and start again"
    )]
    NoRoots,
    /// It took too long.
    #[error("the publisher did not {what} within {} s, which is the limit", limit.as_secs_f32())]
    Timeout {
        /// What it did not do.
        what: &'static str,
        limit: Duration,
    },
    /// The connection broke.
    #[error("the connection ended before the whole answer had arrived: {why}")]
    CutOff {
        /// What was said.
        why: String,
    },
    /// The body of a request that was passed on ended before its time.
    #[error("who sent the request broke it off")]
    Unsent,
    /// Not an answer with a document.
    #[error("the publisher answered {code}{}{}", meaning(*code), led(redirected_to.as_deref()))]
    Status {
        /// The status.
        code: u16,
        /// How long it asks to be left alone.
        retry_after: Option<Duration>,
        /// The address that answered, where redirects led to another one.
        redirected_to: Option<String>,
    },
    /// The challenge or the block of a service that protects the publisher.
    #[error(
        "the publisher answered {code} with the challenge of {service}, which protects it from \
         programs; ask the publisher to let this gateway's address or User-Agent pass, or set a \
         cookie or a user_agent for the feed that {service} lets pass"
    )]
    Challenge {
        /// What it is called.
        service: &'static str,
        /// The status.
        code: u16,
        /// How long it asks to be left alone.
        retry_after: Option<Duration>,
        /// The address that answered, where redirects led to another one.
        redirected_to: Option<String>,
    },
    /// Another origin wants credentials than the one that they are for.
    #[error(
        "a redirect of the publisher leads to {host}, which answered {code}; the credentials of this \
         feed go to {origin} alone: if that host is to have them, make its address the url of the feed"
    )]
    Withheld {
        /// The status.
        code: u16,
        /// How long it asks to be left alone.
        retry_after: Option<Duration>,
        /// The address that answered.
        redirected_to: String,
        host: String,
        /// Whose they are.
        origin: String,
    },
    /// 401 to the credentials of the feed.
    #[error(
        "the publisher answered 401 to the credentials of this feed: it does not take them; give the feed \
         those that hold now"
    )]
    WrongCredentials,
    /// A secret cannot be had.
    #[error("the secret {name} of the feed cannot be used: {why}")]
    Secret {
        /// The key of the configuration, and what of it.
        name: String,
        /// What is wrong, and what to do.
        why: String,
    },
    /// The proxy gave no connection.
    #[error("the proxy {proxy} gave no connection to {host}: {why}")]
    Proxy {
        /// Its address, without credentials.
        proxy: String,
        host: String,
        /// What was said.
        why: String,
    },
    /// A name that a proxy would be asked for cannot be looked up here.
    #[error(
        "the name {host} leads to no address here ({why}), so that nobody knows whether the proxy would \
         find a private one; say polling.proxy_resolves = true if only the proxy knows names"
    )]
    Unchecked {
        host: String,
        /// What the resolver said.
        why: String,
    },
    /// The answer is for one client, and the feed for everybody.
    #[error(transparent)]
    NotForEverybody(#[from] NotForEverybody),
    /// 304 to a request without validators.
    #[error("the publisher answered 304 to a request without validators")]
    Unasked304,
    /// A delta from another document.
    #[error(
        "the publisher answered with a delta from a document that is not the one that was named"
    )]
    DeltaBase,
    /// Too many redirects.
    #[error(
        "the publisher sent more than {MAX_REDIRECTS} redirects, which is the limit{}",
        if *.sets_cookies { ", and sets a cookie on the way" } else { "" }
    )]
    Redirects {
        /// Whether it may wait for a cookie to come back.
        sets_cookies: bool,
    },
    /// A redirect without a usable target.
    #[error("the publisher sent a redirect ({code}) without a usable location")]
    Location {
        /// The status.
        code: u16,
    },
    /// The header section is too large.
    #[error("the publisher sent header fields beyond the limit of {limit} {what}")]
    Headers {
        /// What is limited.
        what: &'static str,
        limit: usize,
    },
    /// The body is too large as it comes over the wire.
    #[error("the document has more than {limit} bytes, which is the limit")]
    TooLarge { limit: usize },
    /// The body cannot be decompressed.
    #[error("{why}")]
    Decode {
        /// What was said.
        why: String,
    },
    /// The client could not be made, or broke.
    #[error("the client could not {what}: {why}")]
    Client {
        /// What it could not do.
        what: &'static str,
        /// What was said.
        why: String,
    },
}

impl FetchError {
    /// Who is to blame.
    pub const fn blame(&self) -> FetchBlame {
        match self {
            Self::Refused { hop: 0, refusal } if !matches!(refusal, Refusal::Led(_)) => {
                FetchBlame::Operator
            }
            Self::NoRoots
            | Self::Secret { .. }
            | Self::Unchecked { .. }
            | Self::Withheld { .. }
            | Self::WrongCredentials
            | Self::Status { code: 407, .. } => FetchBlame::Operator,
            Self::Connect { .. }
            | Self::Proxy { .. }
            | Self::Name { .. }
            | Self::Timeout { .. }
            | Self::CutOff { .. } => FetchBlame::Network,
            Self::Client { .. } => FetchBlame::Gateway,
            _ => FetchBlame::Upstream,
        }
    }

    /// When to ask again.
    pub const fn retry(&self) -> Retry {
        match self {
            Self::Status { retry_after: Some(wait), .. }
            | Self::Challenge { retry_after: Some(wait), .. }
            | Self::Withheld { retry_after: Some(wait), .. } => Retry::After(*wait),
            Self::Status { code: 429 | 503, .. } | Self::Challenge { code: 429 | 503, .. } => {
                Retry::Busy
            }
            Self::Status { code: 410, .. } | Self::Refused { .. } => Retry::Seldom,
            _ => Retry::Backoff,
        }
    }

    /// Whether a host asks to be left alone; `asked`: the address that was asked for.
    pub fn pause(&self, asked: &str) -> Option<PauseRequest> {
        match self {
            Self::Status { code, retry_after, redirected_to }
            | Self::Challenge { code, retry_after, redirected_to, .. } => {
                let address = redirected_to.as_deref().unwrap_or(asked);
                PauseRequest::from_status(*code, *retry_after, address)
            }
            _ => None,
        }
    }

    /// The HTTP status that came instead of a document.
    pub const fn status(&self) -> Option<u16> {
        match self {
            Self::Status { code, .. }
            | Self::Challenge { code, .. }
            | Self::Withheld { code, .. }
            | Self::Location { code } => Some(*code),
            Self::WrongCredentials => Some(401),
            Self::Unasked304 => Some(304),
            _ => None,
        }
    }
}

/// Where redirects led, where they did.
fn led(to: Option<&str>) -> String {
    let shown = to.map(|to| ShownAddress::new(to, None).text().to_owned());
    shown.map(|shown| format!("; its redirects led to {shown}")).unwrap_or_default()
}

fn meaning(code: u16) -> &'static str {
    match code {
        204 | 205 => ", which carries no document",
        401 => ": it wants credentials",
        407 => ": the proxy wants credentials, or others",
        403 => ": it forbids this gateway to read the feed",
        404 => ": there is no such feed at present",
        410 => ": the feed is gone for good",
        429 => ": this gateway asks too often",
        500..=599 => ": it has trouble of its own",
        _ => "",
    }
}

/// What lies at the bottom of an error: layers of a client only say that they failed.
pub(super) fn root_cause(error: &(dyn Error + 'static)) -> String {
    /// The most layers that are looked through.
    const MAX_DEPTH: usize = 16;
    let mut deepest = error;
    for _ in 0..MAX_DEPTH {
        match deepest.source() {
            Some(below) => deepest = below,
            None => break,
        }
    }
    deepest.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_one_sentence_with_blame_and_advice() {
        let redirected_to = None;
        let status = |code, retry_after| FetchError::Status {
            code,
            retry_after,
            redirected_to: redirected_to.clone(),
        };
        let wait = Duration::from_secs(7);
        for (error, text, blame, retry) in [
            (
                status(503, Some(wait)),
                "the publisher answered 503: it has trouble of its own",
                FetchBlame::Upstream,
                Retry::After(wait),
            ),
            (
                status(429, None),
                "the publisher answered 429: this gateway asks too often",
                FetchBlame::Upstream,
                Retry::Busy,
            ),
            (
                status(410, None),
                "the publisher answered 410: the feed is gone for good",
                FetchBlame::Upstream,
                Retry::Seldom,
            ),
            (
                status(401, None),
                "the publisher answered 401: it wants credentials",
                FetchBlame::Upstream,
                Retry::Backoff,
            ),
            (
                FetchError::WrongCredentials,
                "the publisher answered 401 to the credentials of this feed: it does not take them; \
                 give the feed those that hold now",
                FetchBlame::Operator,
                Retry::Backoff,
            ),
            (
                FetchError::Challenge {
                    service: "AWS WAF",
                    code: 429,
                    retry_after: None,
                    redirected_to: None,
                },
                "the publisher answered 429 with the challenge of AWS WAF, which protects it from \
                 programs; ask the publisher to let this gateway's address or User-Agent pass, or set \
                 a cookie or a user_agent for the feed that AWS WAF lets pass",
                FetchBlame::Upstream,
                Retry::Busy,
            ),
            (
                FetchError::Proxy {
                    proxy: "http://p:3128".to_owned(),
                    host: "a.example".to_owned(),
                    why: "refused".to_owned(),
                },
                "the proxy http://p:3128 gave no connection to a.example: refused",
                FetchBlame::Network,
                Retry::Backoff,
            ),
            (
                FetchError::Timeout { what: "answer", limit: Duration::from_secs(60) },
                "the publisher did not answer within 60 s, which is the limit",
                FetchBlame::Network,
                Retry::Backoff,
            ),
            (
                FetchError::TooLarge { limit: 9 },
                "the document has more than 9 bytes, which is the limit",
                FetchBlame::Upstream,
                Retry::Backoff,
            ),
        ] {
            assert_eq!(error.to_string(), text);
            assert_eq!(error.blame(), blame, "{text}");
            assert_eq!(error.retry(), retry, "{text}");
        }
    }

    #[test]
    fn who_answered_asks_to_be_left_alone() {
        let wait = Duration::from_secs(7);
        let of = |code, retry_after, to: Option<&str>| {
            let redirected_to = to.map(str::to_owned);
            let error = FetchError::Status { code, retry_after, redirected_to };
            error.pause("https://a.example/feed").map(|pause| (pause.address, pause.wait))
        };
        let asked = |address: &str| Some((address.to_owned(), wait));
        assert_eq!(of(429, Some(wait), None), asked("https://a.example/feed"));
        let elsewhere = "https://b.example/x";
        assert_eq!(of(503, Some(wait), Some(elsewhere)), asked(elsewhere));
        assert_eq!(of(429, None, None).map(|(_, wait)| wait), Some(REFUSED_PAUSE));
        for (code, retry_after) in [(503, None), (500, Some(wait)), (404, Some(wait))] {
            assert_eq!(of(code, retry_after, None), None, "{code}");
        }
    }

    #[test]
    fn a_refused_address_is_the_operators_and_a_refused_redirect_the_publishers() {
        let refusal = Refusal::address("10.0.0.1", [10, 0, 0, 1].into());
        let first = FetchError::Refused { hop: 0, refusal: refusal.clone() };
        let later = FetchError::Refused { hop: 2, refusal };
        assert_eq!(first.blame(), FetchBlame::Operator);
        assert!(first.to_string().starts_with("10.0.0.1 has a private address; "));
        assert_eq!(later.blame(), FetchBlame::Upstream);
        assert!(later.to_string().starts_with("a redirect was not followed: 10.0.0.1 has"));
    }
}
