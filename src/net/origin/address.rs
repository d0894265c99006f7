//! Maps addresses between an origin and its place at this gateway.

use super::forwarded::PublicName;
use super::site::{OriginConfig, OriginPlace, PassMode};
use crate::fetch::MAX_URL_BYTES;
use http::uri::PathAndQuery;
use http::{HeaderName, HeaderValue, Uri, header};
use percent_encoding::{AsciiSet, percent_encode};
use std::borrow::Cow;
use std::sync::Arc;
use tidegate_core::model::ShownAddress;
use url::{Position, Url};

/// Whether a character may not occur in an address (RFC 3986 appendix A).
const fn is_foreign(character: u8) -> bool {
    !character.is_ascii_graphic()
        || matches!(character, b'"' | b'<' | b'>' | b'\\' | b'^' | b'`' | b'{' | b'|' | b'}')
}

/// An origin and its place at this gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OriginSite {
    config: OriginConfig,
    /// The prefix of its public addresses, up to the rest of the path.
    public: String,
    /// The same prefix without scheme and host, for redirects.
    below: String,
    /// The scheme and host of the origin, parsed once; `None` if no request can name them.
    server: Option<Uri>,
    /// The public name that the site is told; `None` if the site has its own names.
    name: Option<PublicName>,
    /// The `Host` of requests to it.
    host: Option<HeaderValue>,
}

/// Why a path is not passed on.
const DOTS: &str = "the path has a step . or .., which might lead out of the origin";
const CHARACTER: &str = "the path has a backslash or a control character";
const TOO_LONG: &str = "the address has more than 8192 bytes";
const OUTSIDE: &str = "the address does not lead to the origin";

impl OriginSite {
    /// Creates the origin of a gateway with this `public_url`.
    pub fn new(config: OriginConfig, public_url: &Url) -> Self {
        let public = public_url.as_str().trim_end_matches('/');
        let port = public_url.port().map(|port| format!(":{port}")).unwrap_or_default();
        let (public, below) = match &config.place {
            OriginPlace::At(at) => {
                let path = public_url.path().trim_end_matches('/');
                (format!("{public}{at}"), format!("{path}{at}"))
            }
            OriginPlace::Host(host) => {
                (format!("{}://{host}{port}/", public_url.scheme()), "/".to_owned())
            }
        };
        let authority = match &config.place {
            OriginPlace::At(_) => public_url[Position::BeforeHost..Position::AfterPort].to_owned(),
            OriginPlace::Host(host) => format!("{host}{port}"),
        };
        // A site to which readers are redirected is known by its own names.
        let name = match config.passes {
            PassMode::Through => {
                PublicName::new(public_url.scheme(), &authority, config.sends_host)
            }
            PassMode::Redirect => None,
        };
        let host = &config.url[Position::BeforeHost..Position::AfterPort];
        let server = format!("{}://{host}", config.url.scheme()).parse().ok();
        // HTTP/2, which may be used over TLS, has no `Host`.
        let is_http_1 = config.url.scheme() == "http";
        let host = is_http_1.then(|| HeaderValue::from_str(host).ok()).flatten();
        Self { config, public, below, server, name, host }
    }

    pub const fn config(&self) -> &OriginConfig {
        &self.config
    }

    /// Returns the public name that every request tells the site, whether passed on or the gateway's own; `None` if it
    /// is told none.
    pub const fn public_name(&self) -> Option<&PublicName> {
        self.name.as_ref()
    }

    /// Returns the rest of a path that belongs to this origin at `host`; `None` if it does not.
    pub fn rest<'p>(&self, host: Option<&str>, path: &'p str) -> Option<&'p str> {
        match &self.config.place {
            OriginPlace::At(at) => path.strip_prefix(at.as_str()),
            OriginPlace::Host(own) => {
                let is_name =
                    |host: &str| without_dot(without_port(host)).eq_ignore_ascii_case(own);
                let is_own = host.is_some_and(is_name);
                is_own.then(|| path.strip_prefix('/').unwrap_or(path))
            }
        }
    }

    /// Maps the rest of a public path and a query to the origin's address, normalized like [`spelled_below`].
    pub fn upstream(&self, rest: &str, query: Option<&str>) -> Result<Url, &'static str> {
        let base = &self.config.url;
        let length = base.as_str().len() + rest.len() + query.map_or(0, str::len);
        if length > MAX_URL_BYTES {
            return Err(TOO_LONG);
        }
        if rest.contains(|c: char| c == '\\' || c.is_control() || c == '#') {
            return Err(CHARACTER);
        }
        if has_dots(rest) {
            return Err(DOTS);
        }
        let url = normalize(self.as_written(rest, query), base);
        let is_below = url.path().starts_with(base.path());
        is_below.then_some(url).ok_or(OUTSIDE)
    }

    /// Maps the rest of a public path to the origin's address, in the client's spelling.
    fn as_written(&self, rest: &str, query: Option<&str>) -> Url {
        // Only path and query change; scheme and host stay parsed.
        let base = &self.config.url;
        let mut url = base.clone();
        let mut path = String::with_capacity(base.path().len() + rest.len());
        path.push_str(base.path());
        path.push_str(rest);
        url.set_path(&path);
        url.set_query(query);
        url
    }

    /// Like [`OriginSite::upstream`], but in the client's spelling; only invalid characters are escaped. `None` if HTTP
    /// cannot express it.
    pub fn target(&self, rest: &str, query: Option<&str>) -> Option<Uri> {
        let has_foreign = |text: &str| text.bytes().any(is_foreign);
        if has_foreign(rest) || query.is_some_and(has_foreign) {
            return self.as_written(rest, query).as_str().parse().ok();
        }
        let (mark, query) = query.map_or(("", ""), |query| ("?", query));
        let path = [self.config.url.path(), rest, mark, query].concat();
        let mut parts = self.server.clone()?.into_parts();
        parts.path_and_query = Some(PathAndQuery::try_from(path).ok()?);
        Uri::from_parts(parts).ok()
    }

    /// Returns the `Host` of requests to the origin, if they certainly have one.
    pub const fn host(&self) -> Option<&HeaderValue> {
        self.host.as_ref()
    }

    /// Whether a path is that of the origin's place without its final slash.
    pub fn is_place_without_slash(&self, path: &str) -> bool {
        matches!(&self.config.place, OriginPlace::At(at) if at.strip_suffix('/') == Some(path))
    }

    /// Maps one of our public addresses to the origin's; `None` if it is not this origin's.
    pub fn upstream_of(&self, ours: &Url) -> Option<Url> {
        let plain = strip_host_dot(ours);
        let ours = plain.as_ref().unwrap_or(ours);
        let whole = &ours[..Position::AfterPath];
        let rest = whole.strip_prefix(self.public.as_str())?;
        self.upstream(rest, ours.query()).ok()
    }

    /// Maps an address of the origin, public or its own, to its own, without fragment; `None` if it is neither.
    pub fn there(&self, url: &Url) -> Option<Url> {
        let url = self.without_our_host(url.clone());
        if self.holds(&url) { spelled_below(url, &self.config.url) } else { self.upstream_of(&url) }
    }

    /// Replaces our host by the origin's server, if the origin used our host with another scheme or port. A server does
    /// so that is told our host in `Host` but knows only its own port.
    fn without_our_host(&self, url: Url) -> Url {
        let OriginPlace::Host(host) = &self.config.place else { return url };
        let authority = &url[Position::BeforeHost..Position::AfterPort];
        let is_told = |name: &PublicName| url.port().is_none() || name.has_authority(authority);
        let is_ours = self.config.sends_host
            && url.host_str().map(without_dot) == Some(host.as_str())
            && matches!(url.scheme(), "http" | "https")
            && (self.name.as_ref().is_some_and(is_told)
                || url.port_or_known_default() == self.config.url.port_or_known_default())
            && !url.as_str().starts_with(self.public.as_str());
        if !is_ours {
            return url;
        }
        let mut there = self.config.url.clone();
        there.set_path(url.path());
        there.set_query(url.query());
        there.set_fragment(url.fragment());
        there
    }

    /// Whether `address` is a public address of the origin.
    pub fn is_public(&self, address: &str) -> bool {
        address.starts_with(self.public.as_str())
    }

    /// Whether `url` is the origin's own address.
    pub fn holds(&self, url: &Url) -> bool {
        is_below(url, &self.config.url)
    }

    /// Maps the origin's own address to its absolute public address.
    pub fn public_address(&self, url: &Url) -> Option<String> {
        Some(format!("{}{}", self.public, self.rest_of(url)?))
    }

    /// Whether the public address contains a key, which gives access to the document.
    pub fn shows_key(&self, url: &Url) -> bool {
        self.public_address(url).is_some_and(|here| ShownAddress::new(&here, None).is_masked())
    }

    /// Rewrites a redirect of the origin for the client, without scheme and host if it stays within the origin. `None`:
    /// unchanged. `asked`: the address that answered.
    pub fn redirected(&self, location: &str, asked: &Url) -> Option<String> {
        let to = self.without_our_host(asked.join(location).ok()?);
        let fragment = to.fragment().map(|part| format!("#{part}")).unwrap_or_default();
        let Some(rest) = self.rest_of(&to) else {
            // A relative address would be resolved against our host.
            let is_relative = Url::parse(location).is_err() && !location.starts_with("//");
            return is_relative.then(|| to.to_string());
        };
        let here = format!("{}{rest}{fragment}", self.below);
        // Two leading slashes would name a host.
        Some(if here.starts_with("//") { format!("/.{here}") } else { here })
    }

    /// Rewrites a header of the answer that contains an address, like [`Self::redirected`].
    pub fn led_here(&self, name: &HeaderName, value: &HeaderValue, asked: &Url) -> Option<String> {
        let leads = escaped(value);
        match *name {
            header::REFRESH => self.refreshed(&leads, asked),
            _ => self.redirected(&leads, asked),
        }
    }

    /// Rewrites a `Refresh`: seconds, followed by an address (HTML section 4.2.5.3).
    pub fn refreshed(&self, refresh: &str, asked: &Url) -> Option<String> {
        let (wait, target) = refresh.split_once([';', ','])?;
        let target = target.trim_ascii_start();
        let named =
            target.split_once('=').filter(|(key, _)| key.trim_ascii().eq_ignore_ascii_case("url"));
        let target = named.map_or(target, |(_, target)| target.trim_ascii_start());
        let quote = target.chars().next().filter(|c| matches!(c, '"' | '\''));
        let target = match quote {
            Some(quote) => target.split(quote).nth(1)?,
            None => target.trim_ascii_end(),
        };
        let here = self.redirected(target, asked)?;
        Some(format!("{wait};url={here}"))
    }

    /// Returns the part of an own address after the origin's path, with its query.
    fn rest_of<'u>(&self, url: &'u Url) -> Option<&'u str> {
        let whole = &url[Position::BeforePath..Position::AfterQuery];
        self.holds(url).then(|| whole.strip_prefix(self.config.url.path())).flatten()
    }
}

/// Normalizes an address below `base` (RFC 3986 section 6.2.2): after the base's path, needless escapes are decoded,
/// and others use upper case. The fragment is removed, because servers never receive it.
fn normalize(url: Url, base: &Url) -> Url {
    let mut url = url;
    url.set_fragment(None);
    let behind = url.path().strip_prefix(base.path());
    if let Some(behind) = behind.and_then(normalize_escapes) {
        url.set_path(&[base.path(), &behind].concat());
    }
    if let Some(query) = url.query().and_then(normalize_escapes) {
        url.set_query(Some(&query));
    }
    url
}

/// Normalizes an address below `base`. `None` if it is elsewhere, or would be for a server that treats an escaped slash
/// as a slash.
pub fn spelled_below(url: Url, base: &Url) -> Option<Url> {
    let leads_on = |behind: &str| !has_dots(behind);
    let is_there =
        is_below(&url, base) && url.path().strip_prefix(base.path()).is_some_and(leads_on);
    is_there.then(|| normalize(url, base))
}

/// Normalizes the escapes of a part; `None` if nothing changes, or a `%` is no escape.
fn normalize_escapes(text: &str) -> Option<String> {
    if !text.contains('%') {
        return None;
    }
    let mut pieces = text.split('%');
    let mut spelled = pieces.next()?.to_owned();
    for piece in pieces {
        let (digits, rest) = piece.split_at_checked(2)?;
        if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return None;
        }
        match u8::from_str_radix(digits, 16).ok()? {
            byte if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) => {
                spelled.push(char::from(byte));
            }
            _ => {
                spelled.push('%');
                spelled.push_str(&digits.to_ascii_uppercase());
            }
        }
        spelled.push_str(rest);
    }
    (spelled != text).then_some(spelled)
}

/// Returns the first site that contains an address; its place determines the public address.
pub fn site_of<'s>(sites: &'s [Arc<OriginSite>], url: &Url) -> Option<&'s Arc<OriginSite>> {
    sites.iter().find(|site| site.holds(url))
}

/// Returns the address at which readers have what a site with a host of its own here has at `url`.
pub fn address_at_host(sites: &[Arc<OriginSite>], url: &Url) -> Option<String> {
    let site = site_of(sites, url)?;
    matches!(site.config.place, OriginPlace::Host(_)).then(|| site.public_address(url))?
}

/// Whether an address is below `base`, whose path ends with a slash.
fn is_below(url: &Url, base: &Url) -> bool {
    let is_same_origin = url.scheme() == base.scheme()
        && url.host() == base.host()
        && url.port_or_known_default() == base.port_or_known_default();
    is_same_origin
        && url.path().starts_with(base.path())
        && url.username().is_empty()
        && url.password().is_none()
}

/// Returns a header's value with non-ASCII bytes escaped, as clients do regardless of encoding.
pub fn escaped(value: &HeaderValue) -> String {
    percent_encode(value.as_bytes(), &AsciiSet::EMPTY).to_string()
}

fn without_port(host: &str) -> &str {
    // An IPv6 address is in brackets and no host name.
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|c| c.is_ascii_digit()) => name,
        _ => host,
    }
}

/// Returns a host without its trailing dot, which makes no difference (RFC 1034 section 3.1).
fn without_dot(host: &str) -> &str {
    host.strip_suffix('.').unwrap_or(host)
}

/// Returns the address without the trailing dot of its host; `None` if it has none.
fn strip_host_dot(url: &Url) -> Option<Url> {
    let host = url.host_str()?.strip_suffix('.')?;
    let mut plain = url.clone();
    plain.set_host(Some(host)).ok()?;
    Some(plain)
}

/// Whether a path segment is `.` or `..` in any spelling, also for servers that treat an escaped slash or backslash as
/// a separator.
fn has_dots(path: &str) -> bool {
    let plain = match path.contains('%') {
        false => Cow::Borrowed(path),
        true => {
            let lower = path.to_ascii_lowercase().replace("%2e", ".");
            Cow::Owned(lower.replace("%2f", "/").replace("%5c", "/"))
        }
    };
    plain.split('/').any(|step| matches!(step.split(';').next(), Some("." | "..")))
}

#[cfg(test)]
pub(super) mod tests;
