//! The addresses of an origin, here and there.

use crate::config::{OriginConfig, OriginPlace};
use http::uri::PathAndQuery;
use http::{HeaderValue, Uri};
use std::iter;
use url::{Position, Url};

/// The longest address that is passed on, in bytes.
const ADDRESS_LIMIT: usize = 8192;

/// Whether no address has a character (RFC 3986 appendix A).
const fn is_foreign(character: u8) -> bool {
    !character.is_ascii_graphic()
        || matches!(character, b'"' | b'<' | b'>' | b'\\' | b'^' | b'`' | b'{' | b'|' | b'}')
}

/// An origin, and where it is reached at this gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OriginSite {
    config: OriginConfig,
    /// What its addresses here begin with, up to what comes before the rest of the path.
    public: String,
    /// The same without scheme and host, for redirects.
    below: String,
    /// Scheme and host of its addresses there, read once for all requests; `None` where no request can name them.
    server: Option<Uri>,
    /// Its `Host`.
    host: Option<HeaderValue>,
}

/// Why a path is not passed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AddressFault {
    /// A step of it is `.` or `..`.
    #[error("the path has a step . or .., which might lead out of the origin")]
    Dots,
    #[error("the path has a backslash or a control character")]
    Character,
    #[error("the address has more than {ADDRESS_LIMIT} bytes")]
    TooLong,
    /// It does not lead below the origin's address.
    #[error("the address does not lead to the origin")]
    Outside,
}

impl OriginSite {
    /// An origin of a gateway that is reached at `public_url`.
    pub fn new(config: OriginConfig, public_url: &Url) -> Self {
        let public = public_url.as_str().trim_end_matches('/');
        let (public, below) = match &config.place {
            OriginPlace::At(at) => {
                let path = public_url.path().trim_end_matches('/');
                (format!("{public}{at}"), format!("{path}{at}"))
            }
            OriginPlace::Host(host) => {
                let port = public_url.port().map(|port| format!(":{port}")).unwrap_or_default();
                (format!("{}://{host}{port}/", public_url.scheme()), "/".to_owned())
            }
        };
        let host = &config.url[Position::BeforeHost..Position::AfterPort];
        let server = format!("{}://{host}", config.url.scheme()).parse().ok();
        // Over TLS it may be HTTP/2 that is spoken, which has none.
        let is_http_1 = config.url.scheme() == "http";
        let host = is_http_1.then(|| HeaderValue::from_str(host).ok()).flatten();
        Self { config, public, below, server, host }
    }

    /// What the configuration says of it.
    pub const fn config(&self) -> &OriginConfig {
        &self.config
    }

    /// The rest of a path that is this origin's at a host; `None` where it is not.
    pub fn rest<'p>(&self, host: Option<&str>, path: &'p str) -> Option<&'p str> {
        match &self.config.place {
            OriginPlace::At(at) => path.strip_prefix(at.as_str()),
            OriginPlace::Host(own) => {
                let is_own = host.is_some_and(|host| without_port(host).eq_ignore_ascii_case(own));
                is_own.then(|| path.strip_prefix('/').unwrap_or(path))
            }
        }
    }

    /// The address there of the rest of a path here, with a query.
    pub fn upstream(&self, rest: &str, query: Option<&str>) -> Result<Url, AddressFault> {
        let base = &self.config.url;
        let length = base.as_str().len() + rest.len() + query.map_or(0, str::len);
        if length > ADDRESS_LIMIT {
            return Err(AddressFault::TooLong);
        }
        if rest.contains(|c: char| c == '\\' || c.is_control() || c == '#') {
            return Err(AddressFault::Character);
        }
        if steps(rest).any(is_dots) {
            return Err(AddressFault::Dots);
        }
        // Scheme and host are read once for all, and stay as they are.
        let mut url = base.clone();
        let mut path = String::with_capacity(base.path().len() + rest.len());
        path.push_str(base.path());
        path.push_str(rest);
        url.set_path(&path);
        url.set_query(query);
        let is_below = url.path().starts_with(base.path());
        is_below.then_some(url).ok_or(AddressFault::Outside)
    }

    /// The address there of one that [`OriginSite::upstream`] takes, in the characters that the client chose; `None`
    /// where no address has these.
    pub fn target(&self, rest: &str, query: Option<&str>) -> Option<Uri> {
        let has_foreign = |text: &str| text.bytes().any(is_foreign);
        if has_foreign(rest) || query.is_some_and(has_foreign) {
            return None;
        }
        let (mark, query) = query.map_or(("", ""), |query| ("?", query));
        let path = [self.config.url.path(), rest, mark, query].concat();
        let mut parts = self.server.clone()?.into_parts();
        parts.path_and_query = Some(PathAndQuery::try_from(path).ok()?);
        Uri::from_parts(parts).ok()
    }

    /// The `Host` of requests to it, where it is known that they have one.
    pub const fn host(&self) -> Option<&HeaderValue> {
        self.host.as_ref()
    }

    /// Whether a path is that of its place without the slash at its end.
    pub fn is_place_without_slash(&self, path: &str) -> bool {
        matches!(&self.config.place, OriginPlace::At(at) if at.strip_suffix('/') == Some(path))
    }

    /// The address there of one of ours that is this origin's.
    fn upstream_of(&self, ours: &Url) -> Option<Url> {
        let whole = &ours[..Position::AfterPath];
        let rest = whole.strip_prefix(self.public.as_str())?;
        self.upstream(rest, ours.query()).ok()
    }

    /// The address there of one that is the origin's, there or here; `None` where it is neither.
    pub fn there(&self, url: &Url) -> Option<Url> {
        if self.holds(url) { Some(url.clone()) } else { self.upstream_of(url) }
    }

    /// Whether an address is one of the origin.
    pub fn holds(&self, url: &Url) -> bool {
        is_below(url, &self.config.url)
    }

    /// The address here of one of the origin, absolute.
    pub fn public_address(&self, url: &Url) -> Option<String> {
        Some(format!("{}{}", self.public, self.rest_of(url)?))
    }

    /// Where a redirect of the origin leads here: without scheme and host where that is below the origin; `None`
    /// where it stays as it is. `asked`: the address whose answer it is.
    pub fn redirected(&self, location: &str, asked: &Url) -> Option<String> {
        let to = asked.join(location).ok()?;
        let fragment = to.fragment().map(|part| format!("#{part}")).unwrap_or_default();
        let Some(rest) = self.rest_of(&to) else {
            // What names no host would lead to ours.
            let is_relative = Url::parse(location).is_err() && !location.starts_with("//");
            return is_relative.then(|| to.to_string());
        };
        let here = format!("{}{rest}{fragment}", self.below);
        // Two slashes would name a host.
        Some(if here.starts_with("//") { format!("/.{here}") } else { here })
    }

    /// What of an address comes after the origin's, with its query.
    fn rest_of<'u>(&self, url: &'u Url) -> Option<&'u str> {
        let whole = &url[Position::BeforePath..Position::AfterQuery];
        self.holds(url).then(|| whole.strip_prefix(self.config.url.path())).flatten()
    }
}

/// Whether an address is below another one, whose path ends with a slash.
pub fn is_below(url: &Url, base: &Url) -> bool {
    let is_same_origin = url.scheme() == base.scheme()
        && url.host() == base.host()
        && url.port_or_known_default() == base.port_or_known_default();
    is_same_origin
        && url.path().starts_with(base.path())
        && url.username().is_empty()
        && url.password().is_none()
}

/// A host without its port.
fn without_port(host: &str) -> &str {
    // An address of IPv6 is no host name, and stands in brackets.
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|c| c.is_ascii_digit()) => name,
        _ => host,
    }
}

/// The steps of a path, as a server has them that takes an escaped slash or backslash for one.
fn steps(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').flat_map(|part| {
        let mut rest = Some(part);
        // Each round ends behind an escape, or is the last.
        iter::from_fn(move || {
            let here = rest?;
            let mut cuts = here.match_indices('%').map(|(at, _)| here.split_at(at));
            let cut = cuts.find_map(|(step, from)| {
                let after = ESCAPED_SLASHES.iter().find_map(|slash| from.strip_prefix(slash))?;
                Some((step, after))
            });
            rest = cut.map(|(_, after)| after);
            Some(cut.map_or(here, |(step, _)| step))
        })
    })
}

/// A slash and a backslash, escaped.
const ESCAPED_SLASHES: [&str; 4] = ["%2f", "%2F", "%5c", "%5C"];
/// How a dot is written.
const DOTS: [&str; 3] = [".", "%2e", "%2E"];

/// Whether a step of a path is `.` or `..`, in whatever spelling.
fn is_dots(step: &str) -> bool {
    let step = step.split(';').next().unwrap_or(step);
    let Some(rest) = behind_dot(step) else { return false };
    rest.is_empty() || behind_dot(rest).is_some_and(str::is_empty)
}

fn behind_dot(text: &str) -> Option<&str> {
    DOTS.iter().find_map(|dot| text.strip_prefix(dot))
}

#[cfg(test)]
mod tests;
