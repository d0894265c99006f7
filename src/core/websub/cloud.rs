//! rssCloud over `http-post` (RSS 2.0, element `cloud`; the rssCloud walkthrough), the predecessor of WebSub. A reader
//! registers for some feeds and answers a challenge for each. For 25 hours it then receives the address, not the
//! content, of each feed that changes.

use super::form::{ADDRESS_LIMIT, FormError, FormFields, HubRequest, Intent, shown};
use std::time::Duration;
use url::{Url, form_urlencoded};

/// How long a registration lasts.
pub const CLOUD_LEASE: Duration = Duration::from_secs(25 * 3600);

/// The most feeds of one registration.
pub const FEEDS_LIMIT: usize = 10;

/// Parses a registration into one request per feed (`url1` and so on). `domain` is required, because the address that a
/// request came from may be that of a proxy or of somebody else.
pub fn read_registration(body: &[u8]) -> Result<Vec<HubRequest>, FormError> {
    let form = FormFields::read(body)?;
    // If a parameter is repeated, the last one counts.
    let needed = |name| {
        let given = form.0.iter().rev().find(|(key, _)| key == name).map(|(_, value)| &**value);
        given.filter(|value| !value.is_empty()).ok_or_else(|| FormError::missing(name))
    };
    let scheme = match needed("protocol")? {
        "http-post" => "http",
        "https-post" => "https",
        other => {
            let words = format!("protocol is http-post or https-post here, not {:?}", shown(other));
            return Err(FormError::new("protocol", words));
        }
    };
    let (domain, port) = (needed("domain")?, needed("port")?);
    let callback = callback(scheme, domain, port, needed("path")?)?;
    let number = |key: &str| key.strip_prefix("url")?.parse::<u32>().ok();
    let mut topics: Vec<_> =
        form.0.iter().filter_map(|(key, value)| Some((number(key)?, &**value))).collect();
    topics.sort_unstable();
    if topics.is_empty() {
        return Err(FormError::missing("url1"));
    }
    if topics.len() > FEEDS_LIMIT {
        let words = format!("a registration names at most {FEEDS_LIMIT} feeds");
        return Err(FormError::new("url1", words));
    }
    if let Some((_, long)) = topics.iter().find(|(_, topic)| topic.len() > ADDRESS_LIMIT) {
        let found = long.len();
        let words =
            format!("the address of a feed is {found} bytes long, the limit is {ADDRESS_LIMIT}");
        return Err(FormError::new("url1", words));
    }
    let asked = topics.into_iter().map(|(_, topic)| HubRequest {
        intent: Intent::Subscribe,
        topic: topic.to_owned(),
        callback: callback.clone(),
        lease: None,
        secret: None,
    });
    Ok(asked.collect())
}

fn callback(scheme: &str, domain: &str, port: &str, path: &str) -> Result<Url, FormError> {
    let joint = if path.starts_with('/') { "" } else { "/" };
    let text = format!("{scheme}://{domain}:{port}{joint}{path}");
    let host =
        domain.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '.' | '[' | ']' | ':'));
    let number = port.parse::<u16>().ok().filter(|port| *port > 0);
    let url = Url::parse(&text).ok().map(|mut url| {
        url.set_fragment(None);
        url
    });
    // No part may smuggle in another port or an overlong address.
    let is_meant = |url: &Url| {
        host && url.port_or_known_default() == number && url.as_str().len() <= ADDRESS_LIMIT
    };
    url.filter(is_meant).ok_or_else(|| {
        let shown = shown(&text);
        let words = format!("domain, port and path make no address of the web: {shown:?}");
        FormError::new("domain", words)
    })
}

/// Returns the address that verifies a registration; the answer must be the challenge.
pub fn challenged(callback: &Url, topic: &str, challenge: &str) -> Url {
    let mut address = callback.clone();
    address.query_pairs_mut().append_pair("url", topic).append_pair("challenge", challenge);
    address
}

/// Builds the body of a change notification.
pub fn changed(topic: &str) -> String {
    form_urlencoded::Serializer::new(String::new()).append_pair("url", topic).finish()
}

#[cfg(test)]
mod tests;
