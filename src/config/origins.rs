//! `[[origin]]` and `[[allow]]`: sites whose feeds become feeds of this gateway when somebody asks for them.

use super::keys::{
    KeyTable,
    Preset::{Value as Preset, Words},
    keys,
};
use super::kinds::{Flag, Lasting, Maybe, Number, Parsed, TrueOr};
use super::section::Section;
use super::server::ServerSection;
use super::web::{WebError, bare_address};
use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::time::Duration;
use tidegate_core::model::FeedName;
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
    "rsscloud",
    "session",
    "subscribe",
    "subscriptions.opml",
    "sup.json",
    "t",
    "websub",
];
/// The tables as keys that need a restart.
pub(super) const ORIGINS: &str = "origin";
pub(super) const ALLOWED: &str = "allow";
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

/// A site that the gateway stands in front of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OriginConfig {
    /// Its name in logs, metrics and the API.
    pub name: FeedName,
    /// Its address: no credentials, query or fragment; the path ends with a slash.
    pub url: Url,
    pub place: OriginPlace,
    pub passes: PassMode,
    /// Whether the site is told the gateway's host for it in `Host`, as a site is that redirects to its own name.
    pub sends_host: bool,
    /// How long the first answer of a new feed waits for the judged document.
    pub first_wait: Duration,
    /// After how long without a request its feeds are not polled any more.
    pub idle: Duration,
    /// The most feeds that it gets by itself.
    pub feeds: u32,
    /// The most requests that it has at once.
    pub requests: u32,
}

/// Where an origin is reached at this gateway.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum OriginPlace {
    /// Below a path that begins and ends with a slash.
    At(String),
    /// At a host name of its own, in lower case and without a port.
    Host(String),
}

/// What becomes of a request for what is no feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum PassMode {
    /// It is redirected to the origin.
    #[default]
    Redirect,
    /// It is passed on to the origin.
    Through,
}

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

/// A table `[[origin]]` of the file.
#[derive(Debug)]
pub(super) struct OriginTable {
    name: Option<FeedName>,
    url: Option<Url>,
    at: Option<String>,
    host: Option<String>,
    passes: PassMode,
    sends_host: bool,
    first_wait: Duration,
    idle: Duration,
    feeds: u32,
    requests: u32,
}

/// A table `[[allow]]` of the file.
#[derive(Debug)]
pub(super) struct AllowTable {
    url: Option<Url>,
    idle: Duration,
    feeds: u32,
}

pub(super) const ORIGIN_KEYS: KeyTable<OriginTable> = keys! {
    OriginTable;
    /// What logs, metrics and the API call it.
    name => name: Maybe(Parsed("1 to 64 of `a-z`, `0-9`, `-`", FeedName::new)),
        Words("required", "\"blog\""), at restart;
    /// The site's address: scheme, host, port and path.
    ///
    /// The path ends with a slash, which is added where it is missing.
    url => url: Maybe(Parsed("a web address", folder_address)),
        Words("required", "\"https://blog.example/\""), at restart;
    /// Where the gateway answers for the site: below a path of its own, or at a host of its own; one of the two.
    ///
    /// A path begins and ends with a slash, and is not below an address of the gateway. A host has no port, and
    /// is not that of server.public_url.
    at => at: Maybe(Parsed("a path like `/blog/`", origin_path)),
        Words("one of the two is required", "\"/blog/\""), at restart;
    host => host: Maybe(Parsed("a host name without a port", host_name)),
        Words("", "\"blog.gw.example\""), at restart;
    /// What becomes of requests for anything but a feed: `"redirect"` (to the site), `true` (passed on to it).
    ///
    /// true is for publishers in front of their own site. It needs a host, so that the site's scripts run at no
    /// page of the gateway. With server.admin_listen, and without readers and private feeds, at does as well.
    pass => passes: TrueOr("redirect", [PassMode::Through, PassMode::Redirect]),
        Preset("\"redirect\""), at restart;
    /// Whether the site gets `host` in `Host`, with the port of server.public_url; else it gets the host of `url`.
    ///
    /// For sites that redirect to their own name, whatever name they are asked by. It needs host, pass = true, and a
    /// url that no other origin has.
    send_host => sends_host: Flag, Preset("false"), at restart;
    /// How long answers of a new feed wait for the judged document; then they are the site's, or 503.
    first_wait => first_wait: Lasting(FIRST_WAITS), Preset("\"5s\""), at restart;
    /// After how long without a request its feeds are not polled any more. Their history is kept.
    idle => idle: Lasting(IDLE_TIMES), Preset("\"30d\""), at restart;
    /// The most feeds that it gets by itself.
    feeds => feeds: Number(FEEDS), Preset("1000"), at restart;
    /// The most requests that it has at once.
    ///
    /// A request counts until its answer has been taken. A client has a quarter of them, and 8 at least.
    requests => requests: Number(REQUESTS), Preset("256"), at restart;
};

pub(super) const ALLOW_KEYS: KeyTable<AllowTable> = keys! {
    AllowTable;
    /// Readers may subscribe to what is below this address: scheme, host, port and path.
    ///
    /// The path ends with a slash, which is added where it is missing.
    url => url: Maybe(Parsed("a web address", folder_address)),
        Words("required", "\"https://example.org/\""), at restart;
    /// As of an origin.
    idle => idle: Lasting(IDLE_TIMES), Preset("\"30d\""), at restart;
    /// The most feeds that readers add.
    feeds => feeds: Number(FEEDS), Preset("100"), at restart;
};

impl Default for OriginTable {
    fn default() -> Self {
        let mut preset = Self {
            name: None,
            url: None,
            at: None,
            host: None,
            passes: PassMode::default(),
            sends_host: false,
            first_wait: Duration::ZERO,
            idle: Duration::ZERO,
            feeds: 0,
            requests: 0,
        };
        ORIGIN_KEYS.preset(&mut preset);
        preset
    }
}

impl Default for AllowTable {
    fn default() -> Self {
        let mut preset = Self { url: None, idle: Duration::ZERO, feeds: 0 };
        ALLOW_KEYS.preset(&mut preset);
        preset
    }
}

/// The origins, and where those say `pass` whose scripts run at the gateway's own host.
pub(super) struct CheckedOrigins {
    pub(super) checked: Vec<OriginConfig>,
    pass_at_own_host: Vec<usize>,
}

/// Reads the origins.
pub(super) fn read(top: &mut Section<'_, '_, '_>, server: &ServerSection) -> CheckedOrigins {
    top.note_tables(ORIGINS);
    let mut pass_at_own_host = Vec::new();
    let public = server.public_url.as_deref().and_then(|url| Url::parse(url).ok());
    let mut origins = Vec::new();
    let mut names: HashMap<FeedName, usize> = HashMap::new();
    let mut places: Vec<(OriginPlace, usize)> = Vec::new();
    top.tables("origin", &ORIGIN_KEYS, ORIGIN_LIMIT, |section, table| {
        section.demand_name();
        section.demand("url", "each [[origin]] has its own");
        let OriginTable {
            name,
            url,
            at,
            host,
            passes,
            sends_host,
            first_wait,
            idle,
            feeds,
            requests,
        } = table;
        check_place(section, (host.as_deref(), passes), public.as_ref(), server);
        if passes == PassMode::Through && at.is_some() {
            pass_at_own_host.push(section.place("pass"));
        }
        if sends_host && !(section.has("host") && passes == PassMode::Through) {
            let message = "needs host and pass = true: only such a site has the gateway's name";
            section.fault("send_host", message.to_owned());
        }
        let place = match (at, host) {
            (Some(path), None) => Some(OriginPlace::At(path)),
            (None, Some(host)) => Some(OriginPlace::Host(host)),
            _ => None,
        };
        if let Some(place) = &place {
            if let Some((other, line)) = places.iter().find(|(other, _)| place.overlaps(other)) {
                let key = if matches!(place, OriginPlace::At(_)) { "at" } else { "host" };
                let message = format!(
                    "{:?} and {:?} of line {line} cover each other; each origin has its own",
                    place.text(),
                    other.text()
                );
                section.fault(key, message);
            }
            places.push((place.clone(), section.line()));
        }
        let Some(name) = name else { return };
        if let Some(line) = names.get(&name) {
            let message =
                format!("{:?} is taken by line {line}; each needs its own", name.as_str());
            return section.fault("name", message);
        }
        names.insert(name.clone(), section.line());
        let (Some(url), Some(place)) = (url, place) else { return };
        let config = OriginConfig {
            name,
            url,
            place,
            passes,
            sends_host,
            first_wait,
            idle,
            feeds,
            requests,
        };
        if let Some(other) = origins.iter().find(|other| config.shares_feeds(other)) {
            let message = format!(
                "{:?} is an address of the origin {:?} too, and with send_host an address has another feed at each \
                 host; give one of them an address with another host or port",
                config.url.as_str(),
                other.name.as_str()
            );
            section.fault("url", message);
        }
        origins.push(config);
    });
    CheckedOrigins { checked: origins, pass_at_own_host }
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
        top.sheet().fault(*place, "origin.pass".to_owned(), message.to_owned());
    }
}

/// Checks where an origin is, but for other origins.
fn check_place(
    section: &mut Section<'_, '_, '_>,
    (host, passes): (Option<&str>, PassMode),
    public: Option<&Url>,
    server: &ServerSection,
) {
    if section.has("at") && section.has("host") {
        section.fault("host", "stands beside at; write one of the two".to_owned());
    } else if !section.has("host") {
        section.demand("at", "each [[origin]] has a path, at = \"/…/\", or a host of its own");
    }
    let own = public.and_then(Url::host_str).map(|own| own.trim_end_matches('.'));
    if host.is_some() && host == own {
        let message =
            "is the host of server.public_url, where the gateway's own pages are; write another";
        section.fault("host", message.to_owned());
    }
    if passes == PassMode::Through && section.has("at") && server.admin_listen.is_none() {
        let message = "needs a host instead of at, or server.admin_listen: the site's scripts would run beside the \
                       forms of administration";
        section.fault("pass", message.to_owned());
    }
}

/// Reads the sites whose feeds readers may subscribe to.
pub(super) fn read_allowed(top: &mut Section<'_, '_, '_>) -> Vec<AllowConfig> {
    top.note_tables(ALLOWED);
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

impl OriginConfig {
    /// Whether a feed may be at one address in both and be another one, since one of them is told its host.
    fn shares_feeds(&self, other: &Self) -> bool {
        let (one, two) = (&self.url, &other.url);
        (self.sends_host || other.sends_host)
            && one.origin() == two.origin()
            && (one.path().starts_with(two.path()) || two.path().starts_with(one.path()))
    }

    /// Its path with its name, where it has one.
    pub(super) fn path(&self) -> Option<(&str, &FeedName)> {
        match &self.place {
            OriginPlace::At(path) => Some((path, &self.name)),
            OriginPlace::Host(_) => None,
        }
    }
}

impl OriginPlace {
    /// Whether some requests would be for both.
    fn overlaps(&self, other: &Self) -> bool {
        match (self, other) {
            // Both end with a slash.
            (Self::At(one), Self::At(other)) => one.starts_with(other) || other.starts_with(one),
            (Self::Host(one), Self::Host(other)) => one == other,
            _ => false,
        }
    }

    fn text(&self) -> &str {
        match self {
            Self::At(text) | Self::Host(text) => text,
        }
    }
}

/// Checks the address of a site, and has it end with a slash.
fn folder_address(text: &str) -> Result<Url, WebError> {
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
