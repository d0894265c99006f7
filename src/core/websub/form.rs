//! The parameters `hub.*` as `application/x-www-form-urlencoded` (WebSub sections 5.1 to 5.3).
//!
//! A subscriber sends a [`HubRequest`] in the body of a POST. The hub verifies it with a [`Verification`] in the query
//! of a GET to the callback. Unknown parameters are ignored (section 5.1).

use super::clipped;
use super::signature::{SECRET_LIMIT, Secret};
use std::borrow::Cow;
use url::{Url, form_urlencoded};

/// The longest form, in bytes.
pub const FORM_LIMIT: usize = 16 * 1024;

/// The most parameters of a form, unknown ones included.
pub const PARAMETERS_LIMIT: usize = 64;

/// The longest `hub.topic` and `hub.callback`, in bytes.
pub const ADDRESS_LIMIT: usize = 2048;

/// The longest `hub.challenge`, in bytes.
pub const CHALLENGE_LIMIT: usize = 1024;

/// How much of an invalid value an error shows, in characters.
const SHOWN: usize = 64;

/// Why a form is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{words}")]
pub struct FormError {
    /// The invalid parameter; `None` if the form as a whole is invalid.
    pub parameter: Option<&'static str>,
    words: String,
}

impl FormError {
    pub(super) const fn new(parameter: &'static str, words: String) -> Self {
        Self { parameter: Some(parameter), words }
    }

    pub(super) fn missing(name: &'static str) -> Self {
        Self::new(name, format!("{name} is missing"))
    }

    fn long(name: &'static str, found: usize, limit: usize) -> Self {
        Self::new(name, format!("{name} is {found} bytes long, the limit is {limit}"))
    }

    fn mode(found: &str, known: &str) -> Self {
        Self::new("hub.mode", format!("hub.mode is {:?}, and not {known}", shown(found)))
    }
}

/// A subscriber's request to a hub (section 5.1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HubRequest {
    /// `hub.mode`: to subscribe or renew, or to unsubscribe.
    pub intent: Intent,
    /// The topic: the feed's own address (`rel=self`).
    pub topic: String,
    /// The callback: absolute, http or https, with its query verbatim.
    pub callback: Url,
    /// The requested lease in seconds; `None`, or 0 in the form: the hub decides.
    pub lease: Option<u64>,
    /// The secret for signing deliveries.
    pub secret: Option<Secret>,
}

impl HubRequest {
    /// Parses the body of a request. Unknown parameters are ignored; a known one must not be repeated.
    pub fn read(body: &[u8]) -> Result<Self, FormError> {
        let form = FormFields::read(body)?;
        let intent = match form.needed("hub.mode")? {
            "subscribe" => Intent::Subscribe,
            "unsubscribe" => Intent::Unsubscribe,
            // The recommendation leaves publishing to publishers and hubs (section 6).
            "publish" => {
                let why =
                    "hub.mode=publish is not needed here: this hub asks the publishers itself";
                return Err(FormError::new("hub.mode", why.to_owned()));
            }
            other => return Err(FormError::mode(other, "subscribe or unsubscribe")),
        };
        let topic = form.address("hub.topic")?.to_owned();
        let callback = callback(form.address("hub.callback")?)?;
        let (lease, secret) = match intent {
            Intent::Subscribe => (form.lease()?.filter(|seconds| *seconds > 0), form.secret()?),
            Intent::Unsubscribe => (None, None),
        };
        Ok(Self { intent, topic, callback, lease, secret })
    }

    /// Builds the body of this request.
    pub fn write(&self) -> String {
        let mut form = form_urlencoded::Serializer::new(String::new());
        form.extend_pairs([
            ("hub.mode", self.intent.mode()),
            ("hub.topic", &self.topic),
            ("hub.callback", self.callback.as_str()),
        ]);
        form.extend_pairs(self.lease.map(|seconds| ("hub.lease_seconds", seconds.to_string())));
        form.extend_pairs(self.secret.iter().map(|secret| ("hub.secret", secret.reveal())));
        form.finish()
    }
}

/// What a verification confirms (section 5.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Intent {
    /// A subscription or its renewal.
    Subscribe,
    /// The end of a subscription.
    Unsubscribe,
}

impl Intent {
    pub const fn mode(self) -> &'static str {
        match self {
            Self::Subscribe => "subscribe",
            Self::Unsubscribe => "unsubscribe",
        }
    }
}

/// A hub's GET request to a callback.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verification {
    /// Asks whether the subscriber requested this. It answers 2xx with the challenge as its body, or 404 (section 5.3).
    Intent {
        intent: Intent,
        topic: String,
        /// The required body of the answer.
        challenge: String,
        /// The lease in seconds from now; required for a subscription, absent otherwise (section 5.3).
        lease: Option<u64>,
    },
    /// `hub.mode=denied`: the subscription was refused or ended by the hub (section 5.2).
    Denied {
        topic: String,
        /// The hub's reason.
        reason: Option<String>,
    },
}

impl Verification {
    /// Parses the query of a request to a callback; `query` has no question mark. The callback's own parameters are
    /// ignored.
    pub fn read(query: &str) -> Result<Self, FormError> {
        let form = FormFields::read(query.as_bytes())?;
        let intent = match form.needed("hub.mode")? {
            "subscribe" => Intent::Subscribe,
            "unsubscribe" => Intent::Unsubscribe,
            "denied" => {
                let reason = form.get("hub.reason")?.map(clipped);
                return Ok(Self::Denied { topic: form.address("hub.topic")?.to_owned(), reason });
            }
            other => return Err(FormError::mode(other, "subscribe, unsubscribe or denied")),
        };
        let challenge = form.bounded("hub.challenge", CHALLENGE_LIMIT)?.to_owned();
        let lease = match intent {
            Intent::Subscribe => {
                Some(form.lease()?.ok_or_else(|| FormError::missing("hub.lease_seconds"))?)
            }
            Intent::Unsubscribe => None,
        };
        let topic = form.address("hub.topic")?.to_owned();
        Ok(Self::Intent { intent, topic, challenge, lease })
    }

    /// Returns the address to request: the callback with its own query first, verbatim (section 5.3: the hub appends).
    pub fn address(&self, callback: &Url) -> Url {
        let mut form = form_urlencoded::Serializer::new(String::new());
        match self {
            Self::Intent { intent, topic, challenge, lease } => {
                form.extend_pairs([
                    ("hub.mode", intent.mode()),
                    ("hub.topic", topic.as_str()),
                    ("hub.challenge", challenge.as_str()),
                ]);
                form.extend_pairs(lease.map(|seconds| ("hub.lease_seconds", seconds.to_string())));
            }
            Self::Denied { topic, reason } => {
                form.extend_pairs([("hub.mode", "denied"), ("hub.topic", topic.as_str())]);
                form.extend_pairs(reason.iter().map(|reason| ("hub.reason", reason)));
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

/// Parses a callback: an absolute web address without credentials; its fragment is dropped.
fn callback(text: &str) -> Result<Url, FormError> {
    let wrong = |why: String| FormError::new("hub.callback", why);
    let url = Url::parse(text).ok().filter(|url| {
        matches!(url.scheme(), "http" | "https") && url.host_str().is_some_and(|it| !it.is_empty())
    });
    let Some(mut url) = url else {
        let shown = shown(text);
        return Err(wrong(format!("hub.callback is no absolute http or https address: {shown:?}")));
    };
    if !url.username().is_empty() || url.password().is_some() {
        let why = "hub.callback bears a user name or a password, which is not accepted";
        return Err(wrong(why.to_owned()));
    }
    url.set_fragment(None);
    // Escaping may have made it longer.
    match url.as_str().len() {
        found if found > ADDRESS_LIMIT => {
            Err(FormError::long("hub.callback", found, ADDRESS_LIMIT))
        }
        _ => Ok(url),
    }
}

pub(super) struct FormFields<'a>(pub(super) Vec<(Cow<'a, str>, Cow<'a, str>)>);

impl<'a> FormFields<'a> {
    pub(super) fn read(bytes: &'a [u8]) -> Result<Self, FormError> {
        let of_form = |words| FormError { parameter: None, words };
        if bytes.len() > FORM_LIMIT {
            let found = bytes.len();
            return Err(of_form(format!(
                "the form is {found} bytes long, the limit is {FORM_LIMIT}"
            )));
        }
        let pairs: Vec<_> = form_urlencoded::parse(bytes).take(PARAMETERS_LIMIT + 1).collect();
        if pairs.len() > PARAMETERS_LIMIT {
            let words = format!("the form has more than {PARAMETERS_LIMIT} parameters");
            return Err(of_form(words));
        }
        Ok(Self(pairs))
    }

    /// Returns the value of a parameter; `None` if it is absent or empty.
    fn get(&self, name: &'static str) -> Result<Option<&str>, FormError> {
        let mut found = self.0.iter().filter(|(key, _)| key == name).map(|(_, value)| &**value);
        let first = found.next();
        if found.next().is_some() {
            return Err(FormError::new(name, format!("{name} is given twice")));
        }
        Ok(first.filter(|value| !value.is_empty()))
    }

    fn needed(&self, name: &'static str) -> Result<&str, FormError> {
        self.get(name)?.ok_or_else(|| FormError::missing(name))
    }

    fn bounded(&self, name: &'static str, limit: usize) -> Result<&str, FormError> {
        match self.needed(name)? {
            value if value.len() > limit => Err(FormError::long(name, value.len(), limit)),
            value => Ok(value),
        }
    }

    fn address(&self, name: &'static str) -> Result<&str, FormError> {
        self.bounded(name, ADDRESS_LIMIT)
    }

    fn lease(&self) -> Result<Option<u64>, FormError> {
        let name = "hub.lease_seconds";
        let Some(text) = self.get(name)? else { return Ok(None) };
        let digits = text.bytes().all(|b| b.is_ascii_digit());
        let seconds = text.parse::<u64>().ok().filter(|_| digits);
        seconds.map(Some).ok_or_else(|| {
            let shown = shown(text);
            FormError::new(name, format!("{name} is a whole number of seconds, not {shown:?}"))
        })
    }

    fn secret(&self) -> Result<Option<Secret>, FormError> {
        let name = "hub.secret";
        let secret = self.get(name)?.map(|text| {
            Secret::new(text).map_err(|_| FormError::long(name, text.len(), SECRET_LIMIT))
        });
        secret.transpose()
    }
}

pub(super) fn shown(text: &str) -> String {
    text.chars().take(SHOWN).collect()
}

#[cfg(test)]
mod tests;
