//! `[[origin]]` and `[[allow]]`: sites whose feeds become feeds of this gateway when somebody asks for them.

use super::declare::*;
use super::server::ServerSection;
use super::web::bare_address;
use std::collections::{BTreeMap, HashMap};
use std::ops::RangeInclusive;
use std::time::Duration;
use tidegate_core::model::FeedName;
use tidegate_net::origin::{OriginConfig, OriginPlace, PassMode};
use url::{Host, Url};

/// The most origins in one file.
pub const ORIGIN_LIMIT: usize = 1_000;
/// The most tables `[[allow]]` in one file.
pub const ALLOW_LIMIT: usize = 1_000;
/// The first steps of the paths that the gateway answers by itself. No origin and no `path` of a feed is below them.
pub const OWN_STEPS: &[&str] = &[
    "add",
    "api",
    "assets",
    "changes",
    "events",
    "favicon.ico",
    "feeds",
    "healthz",
    "metrics",
    "openapi.json",
    "readyz",
    "recent",
    "robots.txt",
    "rsscloud",
    "session",
    "subscribe",
    "subscriptions.opml",
    "sup.json",
    "t",
    "websub",
];
/// How long the first answer of a new feed may wait, in seconds.
const FIRST_WAITS: RangeInclusive<u64> = 1..=60;
/// After how long without a request feeds may be let go, in seconds.
const IDLE_TIMES: RangeInclusive<u64> = 86_400..=3650 * 86_400;
/// How many feeds a site may get by itself.
const FEEDS: RangeInclusive<u32> = 1..=100_000;
/// How many requests a site may have at once.
const REQUESTS: RangeInclusive<u32> = 1..=100_000;
/// The longest path of ours, in bytes.
const PATH_LIMIT: usize = 1024;
/// The longest host name, and the longest label of one, in bytes (RFC 1035 section 2.3.4).
const HOST_NAME_LIMIT: usize = 253;
const LABEL_LIMIT: usize = 63;

/// A site whose feeds readers may subscribe to by `/subscribe`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowConfig {
    /// Its feeds have addresses below this one: no credentials, query or fragment; the path ends with a slash.
    pub url: Url,
    /// After how long without a request its feeds are not polled any more.
    pub idle: Duration,
    /// The most feeds that readers add.
    pub feeds: u32,
}

section! {
    /// A table `[[origin]]` of the file.
    pub struct OriginTable with ORIGIN_KEYS {
        /// What logs, metrics and the API call it.
        name: Option<FeedName> = parsed("1 to 64 of `a-z`, `0-9`, `-`", FeedName::new).optional(),
            Words("required", "\"blog\"");
        /// The site's address: scheme, host, port and path.
        ///
        /// The path ends with a slash, which is added where it is missing.
        url: Option<Url> = parsed("a web address", folder_address).optional(),
            Words("required", "\"https://blog.example/\"");
        /// Where the gateway answers for the site: below a path of its own, or at a host of its own; one of the two.
        ///
        /// A path begins and ends with a slash, and is not below an address of the gateway. A host has no port, and
        /// is not that of server.public_url.
        at: Option<String> = parsed("a path like `/blog/`", origin_path).optional(),
            Words("one of the two is required", "\"/blog/\"");
        host: Option<String> = parsed("a host name without a port", host_name).optional(),
            Words("", "\"blog.gw.example\"");
        /// What becomes of requests for anything but a feed: `"redirect"` (to the site), `true` (passed on to it).
        ///
        /// true is for publishers in front of their own site. It needs a host, so that the site's scripts run at no
        /// page of the gateway. With server.admin_listen, and without readers and private feeds, at does as well.
        pass: PassMode = word_or_flag(("redirect", PassMode::Redirect), PassMode::Through, None),
            Preset("\"redirect\"");
        /// Whether the site gets `host` in `Host`, with the port of server.public_url; else it gets the host of `url`.
        ///
        /// For sites that redirect to their own name, whatever name they are asked by. It needs host, pass = true, and a
        /// url that no other origin has.
        send_host: bool = flag(), Preset("false");
        /// How long a request waits for a feed that is being made; then it gets what the site answers.
        first_wait: Duration = lasting(FIRST_WAITS), Preset("\"5s\"");
        /// After how long without a request its feeds are not polled any more. Their history is kept.
        idle: Duration = lasting(IDLE_TIMES), Preset("\"30d\"");
        /// The most feeds that it gets by itself.
        feeds: u32 = number(FEEDS), Preset("1000");
        /// The most requests that it has at once.
        ///
        /// A request counts until its answer has been taken. A client has a quarter of them, and 8 at least.
        requests: u32 = number(REQUESTS), Preset("256");
    }
}

section! {
    /// A table `[[allow]]` of the file.
    pub struct AllowTable with ALLOW_KEYS {
        /// Readers may subscribe to what is below this address: scheme, host, port and path.
        ///
        /// The path ends with a slash, which is added where it is missing.
        url: Option<Url> = parsed("a web address", folder_address).optional(),
            Words("required", "\"https://example.org/\"");
        /// As of an origin.
        idle: Duration = lasting(IDLE_TIMES), Preset("\"30d\"");
        /// The most feeds that readers add.
        feeds: u32 = number(FEEDS), Preset("100");
    }
}

/// The origins, and where those say `pass` whose scripts run at the gateway's own host.
pub(super) struct CheckedOrigins {
    pub(super) checked: Vec<OriginConfig>,
    pass_at_own_host: Vec<usize>,
}

/// Reads the origins.
pub(super) fn read(top: &mut Section<'_, '_, '_>, server: &ServerSection) -> CheckedOrigins {
    let public = server.public_url.as_deref().and_then(|url| Url::parse(url).ok());
    let mut origins = CheckedOrigins { checked: Vec::new(), pass_at_own_host: Vec::new() };
    let mut names: BTreeMap<FeedName, usize> = BTreeMap::new();
    let mut places: Vec<(OriginPlace, usize)> = Vec::new();
    top.tables("origin", &ORIGIN_KEYS, ORIGIN_LIMIT, |section, mut table| {
        let name = section.take_name(table.name.take(), &mut names);
        section.demand("url", "each [[origin]] has its own");
        check_place(section, &table, public.as_ref(), server);
        if table.pass == PassMode::Through && table.at.is_some() {
            origins.pass_at_own_host.push(section.offset("pass"));
        }
        let place = match (table.at, table.host) {
            (Some(path), None) => Some(OriginPlace::At(path)),
            (None, Some(host)) => Some(OriginPlace::Host(host)),
            _ => None,
        };
        if let Some(place) = &place {
            if let Some((other, line)) = places.iter().find(|(other, _)| place.overlaps(other)) {
                let key = if matches!(place, OriginPlace::At(_)) { "at" } else { "host" };
                let (own, other) = (place.text(), other.text());
                section.fault(key, format!("{own:?} and {other:?} of line {line} cover each other; each origin has its own"));
            }
            places.push((place.clone(), section.line()));
        }
        let (Some(name), Some(url), Some(place)) = (name, table.url, place) else { return };
        let config = OriginConfig {
            name,
            url,
            place,
            passes: table.pass,
            sends_host: table.send_host,
            first_wait: table.first_wait,
            idle: table.idle,
            feeds: table.feeds,
            requests: table.requests,
        };
        if let Some(other) = origins.checked.iter().find(|other| config.shares_feeds(other)) {
            let message = format!(
                "{:?} is an address of the origin {:?} too, and with send_host an address has another feed at each \
                 host; give one of them an address with another host or port",
                config.url.as_str(),
                other.name.as_str()
            );
            section.fault("url", message);
        }
        origins.checked.push(config);
    });
    origins
}

/// Checks that no script of a site runs at a host where readers send their tokens as passwords: a browser sends
/// those of its reader along with whatever the script asks for.
pub(super) fn check_readers(
    top: &mut Section<'_, '_, '_>,
    origins: &CheckedOrigins,
    has_private: bool,
) {
    if !has_private && !top.has("reader") {
        return;
    }
    for place in &origins.pass_at_own_host {
        let message = "needs a host instead of at where there are readers or private feeds: the site's scripts would \
                       read with the password of whoever visits the site";
        top.sheet.fault(*place, "origin.pass", message.to_owned());
    }
}

/// Checks where an origin is, and what becomes of its requests, but for other origins.
fn check_place(
    section: &mut Section<'_, '_, '_>,
    table: &OriginTable,
    public: Option<&Url>,
    server: &ServerSection,
) {
    let passes = table.pass == PassMode::Through;
    let (at, host) = (section.has("at"), section.has("host"));
    if at && host {
        section.fault("host", "stands beside at; write one of the two");
    } else if !host {
        section.demand("at", "each [[origin]] has a path, at = \"/…/\", or a host of its own");
    }
    let own = public.and_then(Url::host_str).map(|own| own.trim_end_matches('.'));
    if table.host.is_some() && table.host.as_deref() == own {
        let message =
            "is the host of server.public_url, where the gateway's own pages are; write another";
        section.fault("host", message);
    }
    if passes && at && server.admin_listen.is_none() {
        let message = "needs a host instead of at, or server.admin_listen: the site's scripts would run beside the \
                       forms of administration";
        section.fault("pass", message);
    }
    if table.send_host && !(host && passes) {
        let message = "needs host and pass = true: only such a site has the gateway's name";
        section.fault("send_host", message);
    }
}

/// Reads the sites whose feeds readers may subscribe to.
pub(super) fn read_allowed(top: &mut Section<'_, '_, '_>) -> Vec<AllowConfig> {
    let mut allowed = Vec::new();
    let mut lines: HashMap<Url, usize> = HashMap::new();
    top.tables("allow", &ALLOW_KEYS, ALLOW_LIMIT, |section, AllowTable { url, idle, feeds }| {
        section.demand("url", "each [[allow]] has its own");
        let Some(url) = url else { return };
        if let Some(line) = lines.get(&url) {
            let message = format!("{:?} is that of line {line}; write it once", url.as_str());
            return section.fault("url", message);
        }
        lines.insert(url.clone(), section.line());
        allowed.push(AllowConfig { url, idle, feeds });
    });
    allowed
}

/// Checks the address of a site, and has it end with a slash.
fn folder_address(text: &str) -> Result<Url, String> {
    let mut url = bare_address(text)?;
    if !url.path().ends_with('/') {
        let path = format!("{}/", url.path());
        url.set_path(&path);
    }
    Ok(url)
}

/// Checks a path of ours that an origin gets.
fn origin_path(text: &str) -> Result<String, String> {
    if text.len() < 2 || !text.starts_with('/') || !text.ends_with('/') {
        return Err(format!(
            "{text:?} does not begin and end with a slash around a name; write one like \"/blog/\""
        ));
    }
    free_path(text)
}

/// Checks that a path has one form alone, and that the gateway does not answer there by itself.
pub(super) fn free_path(text: &str) -> Result<String, String> {
    if text.len() > PATH_LIMIT {
        return Err(format!("the path is {} bytes long, the limit is {PATH_LIMIT}", text.len()));
    }
    let Some(steps) = text.strip_prefix('/') else {
        return Err(format!("{text:?} is no path; write one that begins with a slash"));
    };
    // The characters of a step (RFC 3986 section 3.3) but for the percent sign: with it a path has several forms.
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@/".contains(&b);
    if let Some(other) = text.chars().find(|c| !u8::try_from(*c).is_ok_and(is_plain)) {
        return Err(format!(
            "{text:?} has {other:?}; write only letters, digits and -._~!$&'()*+,;=:@ between slashes"
        ));
    }
    if text.contains("//") {
        return Err(format!("{text:?} has two slashes in a row; write one"));
    }
    if steps.split('/').any(|step| step == "." || step == "..") {
        return Err(format!("{text:?} has a step of dots alone; write the path that it leads to"));
    }
    match steps.split('/').next().and_then(|first| OWN_STEPS.iter().find(|own| **own == first)) {
        Some(own) => {
            Err(format!("{text:?} is the gateway's own, as all of \"/{own}\"; write another"))
        }
        None => Ok(text.to_owned()),
    }
}

/// A name of a host as requests have it: in lower case, international names in their form for DNS.
fn host_name(text: &str) -> Result<String, String> {
    let is_label = |label: &str| {
        let is_plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
        (1..=LABEL_LIMIT).contains(&label.len()) && label.bytes().all(is_plain)
    };
    match Host::parse(text.strip_suffix('.').unwrap_or(text)) {
        Ok(Host::Domain(name))
            if name.len() <= HOST_NAME_LIMIT && name.split('.').all(is_label) =>
        {
            Ok(name)
        }
        _ => Err(format!(
            "{text:?} is no name of a host; write one like \"blog.example.org\", without scheme and port"
        )),
    }
}

#[cfg(test)]
mod tests;
