//! rssCloud over `http-post` (RSS 2.0, element `cloud`; the walkthrough of rssCloud): the hub's older
//! sister. A reader registers for some feeds, answers a challenge for each, and is then posted the
//! address of what has changed, without the document, for 25 hours.

use std::time::Duration;
use url::{Url, form_urlencoded};

/// How long a registration lasts.
pub const CLOUD_LEASE: Duration = Duration::from_secs(25 * 3600);

/// The longest form that is read, in bytes.
const FORM_LIMIT: usize = 16 * 1024;
/// The most parameters of a form.
const PARAMETERS_LIMIT: usize = 64;
/// The most feeds of one registration.
pub const FEEDS_LIMIT: usize = 10;
/// The longest address, of a feed or of a reader, in bytes.
const ADDRESS_LIMIT: usize = 2048;
/// How much of a wrong value an error shows, in characters.
const SHOWN: usize = 64;

/// Why a registration is not understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CloudError {
    /// It is longer, or has more parameters, than the limits allow.
    #[error("a registration has at most {FORM_LIMIT} bytes and {PARAMETERS_LIMIT} parameters")]
    Long,
    /// A parameter is missing.
    #[error("{0} is missing")]
    Missing(&'static str),
    /// The reader is to be called in a way that is not offered.
    #[error("protocol is http-post or https-post here, not {0:?}")]
    Protocol(String),
    /// Host, port and path make no address.
    #[error("domain, port and path make no address of the web: {0:?}")]
    Address(String),
    /// The address of a feed is too long.
    #[error("the address of a feed is {found} bytes long, the limit is {ADDRESS_LIMIT}")]
    Topic {
        /// Its length in bytes.
        found: usize,
    },
    /// Too many feeds.
    #[error("a registration names at most {FEEDS_LIMIT} feeds")]
    Feeds,
}

/// What a reader registers for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registration {
    /// The feeds, `url1` and so on.
    pub topics: Vec<String>,
    /// Where it is called.
    pub callback: Url,
}

impl Registration {
    /// Reads the body of a registration. `domain` must be there: the address that a request came from
    /// may be that of a proxy, or of somebody else.
    pub fn read(body: &[u8]) -> Result<Self, CloudError> {
        if body.len() > FORM_LIMIT {
            return Err(CloudError::Long);
        }
        let (mut domain, mut port, mut path, mut protocol) = (None, None, None, None);
        let mut topics: Vec<(u32, String)> = Vec::new();
        for (at, (key, value)) in form_urlencoded::parse(body).enumerate() {
            if at >= PARAMETERS_LIMIT {
                return Err(CloudError::Long);
            }
            match &*key {
                "domain" => domain = Some(value),
                "port" => port = Some(value),
                "path" => path = Some(value),
                "protocol" => protocol = Some(value),
                key => {
                    let number = key.strip_prefix("url").and_then(|rest| rest.parse().ok());
                    if let Some(number) = number {
                        if value.len() > ADDRESS_LIMIT {
                            return Err(CloudError::Topic { found: value.len() });
                        }
                        topics.push((number, value.into_owned()));
                    }
                }
            }
        }
        let given = |value: Option<std::borrow::Cow<'_, str>>, name| {
            let value = value.filter(|value| !value.is_empty());
            value.map(|value| value.into_owned()).ok_or(CloudError::Missing(name))
        };
        let scheme = match &*given(protocol, "protocol")? {
            "http-post" => "http",
            "https-post" => "https",
            other => return Err(CloudError::Protocol(other.chars().take(SHOWN).collect())),
        };
        let (domain, port) = (given(domain, "domain")?, given(port, "port")?);
        let path = given(path, "path")?;
        topics.sort();
        if topics.is_empty() {
            return Err(CloudError::Missing("url1"));
        }
        if topics.len() > FEEDS_LIMIT {
            return Err(CloudError::Feeds);
        }
        let topics = topics.into_iter().map(|(_, topic)| topic).collect();
        Ok(Self { topics, callback: callback(scheme, &domain, &port, &path)? })
    }
}

fn callback(scheme: &str, domain: &str, port: &str, path: &str) -> Result<Url, CloudError> {
    let joint = if path.starts_with('/') { "" } else { "/" };
    let text = format!("{scheme}://{domain}:{port}{joint}{path}");
    let wrong = || CloudError::Address(text.chars().take(SHOWN).collect());
    let host =
        domain.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '.' | '[' | ']' | ':'));
    let number = port.parse::<u16>().ok().filter(|port| *port > 0);
    let mut url = Url::parse(&text).map_err(|_| wrong())?;
    url.set_fragment(None);
    // Whatever a part held, the address has this port and is no longer than others may be.
    if !host || url.port_or_known_default() != number || url.as_str().len() > ADDRESS_LIMIT {
        return Err(wrong());
    }
    Ok(url)
}

/// The address to ask whether a registration is meant: the answer must be the challenge.
pub fn challenged(callback: &Url, topic: &str, challenge: &str) -> Url {
    let mut address = callback.clone();
    address.query_pairs_mut().append_pair("url", topic).append_pair("challenge", challenge);
    address
}

/// The body that says that a feed has changed.
pub fn changed(topic: &str) -> String {
    form_urlencoded::Serializer::new(String::new()).append_pair("url", topic).finish()
}

#[cfg(test)]
mod tests;
