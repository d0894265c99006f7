//! The parameters `hub.*`, as `application/x-www-form-urlencoded` (WebSub sections 5.1 to 5.3).
//!
//! A subscriber sends a [`HubRequest`] in the body of a POST; the hub asks back with a [`Verification`]
//! in the query of a GET of the callback. What either does not know is ignored (section 5.1).

use super::signature::{SECRET_LIMIT, Secret, SignatureError};
use std::borrow::Cow;
use url::Url;
use url::form_urlencoded;

/// The longest form that is read, in bytes.
pub const FORM_LIMIT: usize = 16 * 1024;

/// The most parameters of a form, unknown ones included.
pub const PARAMETERS_LIMIT: usize = 64;

/// The longest `hub.topic` and `hub.callback`, in bytes.
pub const ADDRESS_LIMIT: usize = 2048;

/// The longest `hub.challenge` that is answered, in bytes.
pub const CHALLENGE_LIMIT: usize = 1024;

/// How much of a `hub.reason` is read, in characters.
pub const REASON_LIMIT: usize = 256;

/// How much of a wrong value an error shows, in characters.
const SHOWN: usize = 64;

/// Why a form is not understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FormError {
    /// It is longer than the limit.
    #[error("the form is {found} bytes long, the limit is {FORM_LIMIT}")]
    Long {
        /// Its length in bytes.
        found: usize,
    },
    /// It has too many parameters.
    #[error("the form has more than {PARAMETERS_LIMIT} parameters")]
    Parameters,
    /// A parameter that is needed is not there, or empty.
    #[error("{0} is missing")]
    Missing(&'static str),
    /// A parameter is given more than once.
    #[error("{0} is given twice")]
    Twice(&'static str),
    /// A value is longer than the limit.
    #[error("{name} is {found} bytes long, the limit is {limit}")]
    Value {
        /// The parameter.
        name: &'static str,
        /// Its length in bytes.
        found: usize,
        /// The most.
        limit: usize,
    },
    /// A mode that this side does not know.
    #[error("hub.mode is {found:?}, and not {known}")]
    Mode {
        /// What it is.
        found: String,
        /// What it may be, in words.
        known: &'static str,
    },
    /// `hub.callback` is not an absolute address of the web.
    #[error("hub.callback is no absolute http or https address: {0:?}")]
    Callback(String),
    /// `hub.callback` bears a name or a password.
    #[error("hub.callback bears a user name or a password, which is not accepted")]
    Credentials,
    /// `hub.lease_seconds` is no number of seconds.
    #[error("hub.lease_seconds is a whole number of seconds, not {0:?}")]
    Lease(String),
}

impl FormError {
    /// The parameter that is wrong, where it is one.
    pub const fn parameter(&self) -> Option<&'static str> {
        match self {
            Self::Long { .. } | Self::Parameters => None,
            Self::Missing(name) | Self::Twice(name) | Self::Value { name, .. } => Some(name),
            Self::Mode { .. } => Some("hub.mode"),
            Self::Callback(_) | Self::Credentials => Some("hub.callback"),
            Self::Lease(_) => Some("hub.lease_seconds"),
        }
    }
}

/// What a subscriber, or a publisher, asks of a hub (section 5.1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HubRequest {
    /// `hub.mode=subscribe`: to be told of the topic at the callback, or to go on being told.
    Subscribe {
        /// The address of the feed, as the feed gives it (`rel=self`).
        topic: String,
        /// Where the hub asks and delivers: absolute, http or https, its query as it was given.
        callback: Url,
        /// For how many seconds, where the subscriber says so. Nought is the hub's choice.
        lease: Option<u64>,
        /// The secret of the signatures.
        secret: Option<Secret>,
    },
    /// `hub.mode=unsubscribe`: not to be told any more.
    Unsubscribe {
        /// The topic, as it was subscribed to.
        topic: String,
        /// The callback, as it was subscribed with.
        callback: Url,
    },
    /// `hub.mode=publish`: a publisher says that something changed. The recommendation leaves this
    /// to publisher and hub (section 6).
    Publish,
}

impl HubRequest {
    /// Reads the body of a request. An unknown parameter is ignored, a known one may stand once.
    pub fn read(body: &[u8]) -> Result<Self, FormError> {
        let form = FormFields::read(body)?;
        match form.needed("hub.mode")? {
            "subscribe" => Ok(Self::Subscribe {
                topic: form.address("hub.topic")?.to_owned(),
                callback: callback(form.address("hub.callback")?)?,
                lease: form.lease()?.filter(|seconds| *seconds > 0),
                secret: form.secret()?,
            }),
            "unsubscribe" => Ok(Self::Unsubscribe {
                topic: form.address("hub.topic")?.to_owned(),
                callback: callback(form.address("hub.callback")?)?,
            }),
            "publish" => Ok(Self::Publish),
            other => {
                Err(FormError::Mode { found: shown(other), known: "subscribe or unsubscribe" })
            }
        }
    }

    /// The body of this request.
    pub fn write(&self) -> String {
        let mut form = form_urlencoded::Serializer::new(String::new());
        match self {
            Self::Subscribe { topic, callback, lease, secret } => {
                form.append_pair("hub.mode", "subscribe");
                form.append_pair("hub.topic", topic);
                form.append_pair("hub.callback", callback.as_str());
                if let Some(seconds) = lease {
                    form.append_pair("hub.lease_seconds", &seconds.to_string());
                }
                if let Some(secret) = secret {
                    form.append_pair("hub.secret", secret.reveal());
                }
            }
            Self::Unsubscribe { topic, callback } => {
                form.append_pair("hub.mode", "unsubscribe");
                form.append_pair("hub.topic", topic);
                form.append_pair("hub.callback", callback.as_str());
            }
            Self::Publish => {
                form.append_pair("hub.mode", "publish");
            }
        }
        form.finish()
    }
}

/// What a verification is of (section 5.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Intent {
    /// Of a subscription, or of its renewal.
    Subscribe,
    /// Of its end.
    Unsubscribe,
}

impl Intent {
    /// Its `hub.mode`.
    pub const fn mode(self) -> &'static str {
        match self {
            Self::Subscribe => "subscribe",
            Self::Unsubscribe => "unsubscribe",
        }
    }
}

/// What a hub says in the query of a GET of the callback.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verification {
    /// Did the subscriber ask for this? It answers 2xx with the challenge as its body, or 404
    /// (section 5.3).
    Intent {
        /// Which of both.
        intent: Intent,
        /// The topic of the request.
        topic: String,
        /// What the answer must be, byte for byte.
        challenge: String,
        /// For how many seconds from now the hub will deliver: of a subscription only, where it
        /// must be there (section 5.3).
        lease: Option<u64>,
    },
    /// `hub.mode=denied`: the hub does not, or no longer, tell of the topic (section 5.2).
    Denied {
        topic: String,
        /// Why, in the hub's words.
        reason: Option<String>,
    },
}

impl Verification {
    /// Reads the query of a request to a callback; `query` is without its question mark. A
    /// parameter that is the callback's own is ignored.
    pub fn read(query: &str) -> Result<Self, FormError> {
        let form = FormFields::read(query.as_bytes())?;
        let intent = match form.needed("hub.mode")? {
            "subscribe" => Intent::Subscribe,
            "unsubscribe" => Intent::Unsubscribe,
            "denied" => {
                let reason = form.get("hub.reason")?.map(|said| clipped(said, REASON_LIMIT));
                return Ok(Self::Denied { topic: form.address("hub.topic")?.to_owned(), reason });
            }
            other => {
                let known = "subscribe, unsubscribe or denied";
                return Err(FormError::Mode { found: shown(other), known });
            }
        };
        let challenge = form.bounded("hub.challenge", CHALLENGE_LIMIT)?.to_owned();
        let lease = match intent {
            Intent::Subscribe => {
                Some(form.lease()?.ok_or(FormError::Missing("hub.lease_seconds"))?)
            }
            Intent::Unsubscribe => None,
        };
        let topic = form.address("hub.topic")?.to_owned();
        Ok(Self::Intent { intent, topic, challenge, lease })
    }

    /// The address to ask: the callback, with its own query first and as it was given (section 5.3:
    /// the hub appends to it).
    pub fn address(&self, callback: &Url) -> Url {
        let mut form = form_urlencoded::Serializer::new(String::new());
        match self {
            Self::Intent { intent, topic, challenge, lease } => {
                form.append_pair("hub.mode", intent.mode());
                form.append_pair("hub.topic", topic);
                form.append_pair("hub.challenge", challenge);
                if let Some(seconds) = lease {
                    form.append_pair("hub.lease_seconds", &seconds.to_string());
                }
            }
            Self::Denied { topic, reason } => {
                form.append_pair("hub.mode", "denied");
                form.append_pair("hub.topic", topic);
                if let Some(reason) = reason {
                    form.append_pair("hub.reason", reason);
                }
            }
        }
        let added = form.finish();
        let mut address = callback.clone();
        address.set_fragment(None);
        let query = match callback.query() {
            Some(own) if !own.is_empty() => format!("{own}&{added}"),
            _ => added,
        };
        address.set_query(Some(&query));
        address
    }
}

/// A callback: absolute, of the web, without credentials; a fragment is dropped.
fn callback(text: &str) -> Result<Url, FormError> {
    let wrong = || FormError::Callback(shown(text));
    let mut url = Url::parse(text).map_err(|_| wrong())?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none_or(str::is_empty) {
        return Err(wrong());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(FormError::Credentials);
    }
    url.set_fragment(None);
    // What is not ASCII has become longer.
    let found = url.as_str().len();
    if found > ADDRESS_LIMIT {
        return Err(FormError::Value { name: "hub.callback", found, limit: ADDRESS_LIMIT });
    }
    Ok(url)
}

/// The parameters of a form that a side may ask for.
struct FormFields<'a>(Vec<(Cow<'a, str>, Cow<'a, str>)>);

impl<'a> FormFields<'a> {
    fn read(bytes: &'a [u8]) -> Result<Self, FormError> {
        if bytes.len() > FORM_LIMIT {
            return Err(FormError::Long { found: bytes.len() });
        }
        let mut pairs = Vec::new();
        for (at, pair) in form_urlencoded::parse(bytes).enumerate() {
            if at >= PARAMETERS_LIMIT {
                return Err(FormError::Parameters);
            }
            if pair.0.starts_with("hub.") {
                pairs.push(pair);
            }
        }
        Ok(Self(pairs))
    }

    /// The value of a parameter; an empty one is none.
    fn get(&self, name: &'static str) -> Result<Option<&str>, FormError> {
        let mut found = self.0.iter().filter(|(key, _)| key == name).map(|(_, value)| &**value);
        let first = found.next();
        if found.next().is_some() {
            return Err(FormError::Twice(name));
        }
        Ok(first.filter(|value| !value.is_empty()))
    }

    fn needed(&self, name: &'static str) -> Result<&str, FormError> {
        self.get(name)?.ok_or(FormError::Missing(name))
    }

    fn bounded(&self, name: &'static str, limit: usize) -> Result<&str, FormError> {
        let value = self.needed(name)?;
        if value.len() > limit {
            return Err(FormError::Value { name, found: value.len(), limit });
        }
        Ok(value)
    }

    fn address(&self, name: &'static str) -> Result<&str, FormError> {
        self.bounded(name, ADDRESS_LIMIT)
    }

    fn lease(&self) -> Result<Option<u64>, FormError> {
        let Some(text) = self.get("hub.lease_seconds")? else { return Ok(None) };
        let digits = text.bytes().all(|b| b.is_ascii_digit());
        let seconds = text.parse::<u64>().ok().filter(|_| digits);
        seconds.map(Some).ok_or_else(|| FormError::Lease(shown(text)))
    }

    fn secret(&self) -> Result<Option<Secret>, FormError> {
        let Some(text) = self.get("hub.secret")? else { return Ok(None) };
        match Secret::new(text) {
            Ok(secret) => Ok(Some(secret)),
            Err(SignatureError::Secret { found }) => {
                Err(FormError::Value { name: "hub.secret", found, limit: SECRET_LIMIT })
            }
            Err(_) => Err(FormError::Missing("hub.secret")),
        }
    }
}

fn clipped(text: &str, limit: usize) -> String {
    text.chars().take(limit).collect()
}

fn shown(text: &str) -> String {
    clipped(text, SHOWN)
}

#[cfg(test)]
mod tests;
