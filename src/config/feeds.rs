//! The keys of `[[feed]]` and `[[aggregate]]`: what is polled, and what is gathered from it.

use super::access::{self, basic_login, headers, proxy_address, secret, secret_value};
use super::declare::*;
use super::feed_tables::feed_path;
use super::polling::{INTERVALS, user_agent};
use super::publish::ITEMS;
use super::value::{ConfigNode, Value};
use super::web::feed_address;
use std::ops::Deref;
use std::str::FromStr;
use tidegate_core::model::{
    ConflictPolicy, Deletions, FeedAccess, FeedName, FeedOptions, FeedRecord, IGNORE_LIMIT, Ignore,
    Order, Probing, ProxyAddress, ProxyRoute, SecretSource, SharingOptions, UserPassword,
};
use url::Url;

/// The most feeds in one file.
pub const FEED_LIMIT: usize = 100_000;
/// The most aggregates in one file.
pub const AGGREGATE_LIMIT: usize = 1_000;
/// The most sources of one aggregate.
pub const SOURCE_LIMIT: usize = 10_000;

/// What a table says of a feed, or of an aggregate.
#[derive(Debug, Default)]
pub struct FeedSettings {
    pub(super) name: Option<FeedName>,
    /// The upstream's address.
    pub url: Option<Url>,
    /// What the operator says of it.
    pub options: FeedOptions,
    /// What its publisher is asked with; with the credentials once all keys were read.
    pub access: FeedAccess,
    /// Whether only readers with a token may read it, where that is said.
    pub private: Option<bool>,
    /// Whether it is a list whose feeds are added.
    pub adds_feeds: bool,
    /// The path of its reader view beside `/feeds/NAME`; the API has none.
    pub(super) path: Option<String>,
    basic: Option<UserPassword>,
    bearer: Option<SecretSource>,
    pub(super) webhook: Option<WebhookConfig>,
}

impl FeedSettings {
    /// Puts the credentials in their place; what goes against each other, with its key.
    pub(super) fn join_access(&mut self) -> Result<(), (&'static str, String)> {
        let credentials = (self.basic.take(), self.bearer.take());
        let access = std::mem::take(&mut self.access);
        self.access = access::joined(access, credentials, self.url.as_mut())?;
        Ok(())
    }
}

/// A feed of the configuration, or several as one: an aggregate, which names the feeds that it gathers in its options.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FeedConfig {
    /// What the store is to have of it.
    pub record: FeedRecord,
    /// Where its changes are delivered.
    pub webhook: Option<WebhookConfig>,
    /// The path of its reader view here, beside `/feeds/NAME`.
    pub path: Option<String>,
}

impl From<FeedRecord> for FeedConfig {
    /// A feed of which nothing else is said.
    fn from(record: FeedRecord) -> Self {
        Self { record, webhook: None, path: None }
    }
}

impl Deref for FeedConfig {
    type Target = FeedRecord;

    fn deref(&self) -> &FeedRecord {
        &self.record
    }
}

/// How documents run, in words.
const ORDERS: &[(&str, Order)] = &[
    (Order::Auto.name(), Order::Auto),
    (Order::NewestFirst.name(), Order::NewestFirst),
    (Order::OldestFirst.name(), Order::OldestFirst),
    (Order::Updated.name(), Order::Updated),
    (Order::None.name(), Order::None),
];
/// Names, in words.
const NAMES: &str = "a list of feed names";
/// Names of feeds here.
fn names(limit: usize) -> Kind<Vec<FeedName>> {
    list(limit, NAMES, FeedName::new)
}

pub(super) const FEED_KEYS: KeyTable<FeedSettings> = keys! {
    FeedSettings;
    /// The feed's address here, `/feeds/NAME`.
    name = parsed("1 to 64 of `a-z`, `0-9`, `-`", FeedName::new).optional(),
        Words("required", "\"news\"");
    /// Atom, RSS, RDF, JSON Feed, a collection of FeedSync, or a subscription list (OPML).
    ///
    /// Credentials in it (`https://me:password@…`) count as `basic` and are not shown.
    url = parsed("a web address", feed_address).optional(),
        Words("required, unless `local`", "\"https://example.org/atom.xml\"");
    /// The document lists every item, so an absent one was deleted.
    complete => options.complete = flag(), Preset("false");
    /// When an absent item is deleted: `"safe"` (confirmed in time and polls), `"eager"` (at once),
    /// `"off"` (never).
    ///
    /// At once means with the first full document that has the evidence.
    deletions => options.deletions = one_of(&[
        ("safe", Deletions::Safe),
        ("eager", Deletions::Eager),
        ("off", Deletions::Off),
    ]), Preset("\"safe\"");
    /// How the document runs: `"newest-first"`, `"oldest-first"`, `"updated"` (by change), `"none"`
    /// (by rank or by hand), `"auto"` (as seen).
    ///
    /// The first two run by when items were published. With "updated" items jump when they are
    /// changed; with "none" no item can be missing from the middle.
    order => options.order = one_of(ORDERS), Preset("\"auto\"");
    /// Whose address is asked whether the item is gone: `"doubts"` (long in doubt), `true` (any that
    /// is missing), `false` (none).
    ///
    /// 404 and 410 confirm that a missing item was deleted, 200 that it was not. Only addresses of the
    /// feed's own domain are asked. With "doubts" two a day are, once they were in doubt for two days,
    /// and none of a feed that has credentials or a secret address. With true a few are each hour.
    probe => options.probe = word_or_flag(("doubts", Probing::Doubts), Probing::All, Some(Probing::Off)),
        Preset("\"doubts\"");
    /// The publisher's older documents are read once.
    ///
    /// Where its feed leads to any (archives, pages, the numbered pages of WordPress), they are read
    /// slowly, and taken in as items that were never new.
    backfill => options.backfill = flag(), Preset("false");
    /// The upstream's address is not shown: `***` on pages, in errors and in logs.
    ///
    /// This is for private podcasts and calendars. Documents then have no rel=via, and references are
    /// relative to the channel's page. Where nothing is written, an address is secret when a value of
    /// its query or a part of its path looks like a key.
    secret => options.secret = flag().optional(), Words("by its looks", "false");
    /// Further headers, each a secret: a text, `{ file = "…" }` or `{ env = "…" }`.
    ///
    /// Headers and credentials go to the origin of url alone (its scheme, host and port), over no
    /// redirect to another one. A file and a variable of the environment are read whenever the feed is
    /// polled. No page, message or export shows a secret.
    headers => access.headers = headers(), Words("none", "{ \"X-Api-Key\" = { env = \"NEWS_KEY\" } }");
    /// The cookie that is sent, a secret.
    cookie => access.cookie = secret_value().optional(),
        Words("none", "{ file = \"/run/secrets/news-cookie\" }");
    /// The credentials of basic authentication, or a bearer token; one of the two.
    basic = basic_login().optional(),
        Words("none", "{ user = \"me\", password = { file = \"/run/secrets/news\" } }");
    bearer = secret_value().optional(), Words("", "{ env = \"NEWS_TOKEN\" }");
    /// How the gateway names itself to this publisher.
    user_agent => access.user_agent = parsed("1 to 256 visible ASCII characters", user_agent).optional(),
        Words("that of `[polling]`", "\"Mozilla/5.0 (compatible; our reader)\"");
    /// The proxy that this publisher is reached by; `"none"`: directly.
    proxy => access.route = proxy_address().map(route).optional(),
        Words("that of `[polling]`", "\"socks5://127.0.0.1:9050\"");
    /// Where changes are delivered as JSON, `{ url = …, secret = … }`; the secret signs them.
    ///
    /// Each edit, deletion and new item is delivered once it is durable, and again until it is answered with
    /// 2xx. A private address is called only where polling.allow_private names its host and port.
    webhook = webhook().optional(),
        Words("none", "{ url = \"https://example.org/hook\", secret = { env = \"NEWS_HOOK\" } }");
    /// What makes no version: fields, or `{ field = "description", pattern = "[0-9]+ views" }`.
    ///
    /// Fields are named as the reasons of updates name them ("media:keywords",
    /// "media:group/media:description", "category@term"), and what is below them is meant too. A
    /// pattern is a regular expression for the parts of a field's text that do not count. The newest
    /// text is served all the same.
    ignore => options.ignore = ignored_fields(), Preset("[]");
    /// The most items in its complete view, where it differs from `publish.items`.
    items => options.items = number(ITEMS).optional(), Words("that of `[publish]`", "20000");
    /// How far apart polls are at least and at most.
    min_interval => options.min_interval = lasting(INTERVALS).optional(),
        Words("those of `[polling]`", "\"1h\"");
    max_interval => options.max_interval = lasting(INTERVALS).optional(), Words("", "\"7d\"");
    /// The feed's items are made here, through the administration API.
    ///
    /// It needs no url then. Where it has one, what that shares is merged into the same items.
    local => options.sharing.local = flag(), Preset("false");
    /// What a local feed or an aggregate is called.
    title => options.sharing.title = parsed("1 to 500 bytes", SharingOptions::title).optional(),
        Words("its name", "\"What we read\"");
    /// The feeds here that may change its items, and whose items it may change.
    shares_with => options.sharing.shares_with = names(SharingOptions::SHARES_LIMIT), Preset("[]");
    /// Only a reader with a token may read it.
    ///
    /// It is in no public list, stream, document or page, and its public address answers 404, as that
    /// of a feed which does not exist.
    private = flag().optional(), Preset("false");
    /// What becomes of conflicts: `"keep"`, `"winner"`, `"prefer:ENDPOINT"`.
    ///
    /// Conflicts are versions that remain beside the winning one after a merge. With "keep" a person
    /// resolves them, at /feeds/NAME/conflicts. With "winner" the winning version is kept, with
    /// "prefer:ENDPOINT" what that endpoint says.
    conflicts => options.sharing.conflicts =
        parsed("one of the three", <ConflictPolicy as FromStr>::from_str), Preset("\"keep\"");
    /// The feeds of the subscription list at url are feeds here, and follow it.
    ///
    /// What the list adds is added, with its folders and names, what it renames or moves is, and what it
    /// deletes is paused once the deletion is confirmed. Feeds of this file, and those that were added or
    /// changed by hand, stay as they are. The feeds of a private list are private.
    add_feeds => adds_feeds = flag(), Preset("false");
    /// A further address of its reader view here, beside `/feeds/NAME`: a path.
    ///
    /// A proxy in front may then send just that path to the gateway. It is not below an address of the gateway.
    path = parsed("a path like `/atom.xml`", feed_path).optional(),
        Words("none", "\"/atom.xml\"");
};

pub(super) const AGGREGATE_KEYS: KeyTable<FeedSettings> = keys! {
    FeedSettings;
    /// As of a feed.
    name = parsed("as of a feed", FeedName::new).optional(), Words("required", "\"everything\"");
    /// Feeds and other aggregates of this file.
    sources => options.sharing.sources = names(SOURCE_LIMIT), Words("required", "[\"news\"]");
    /// As of a feed.
    title => options.sharing.title = parsed("as of a feed", SharingOptions::title).optional(),
        Words("its name", "\"Everything\"");
    /// As of a feed.
    webhook = webhook().optional(),
        Words("none", "{ url = \"https://example.org/hook\", secret = { env = \"ALL_HOOK\" } }");
    /// As of a feed.
    shares_with => options.sharing.shares_with = names(SharingOptions::SHARES_LIMIT), Preset("[]");
    conflicts => options.sharing.conflicts =
        parsed("", <ConflictPolicy as FromStr>::from_str), Preset("\"keep\"");
    /// As of a feed; required where a source is private.
    private = flag().optional(), Preset("false");
};

/// The route of a feed, where one is written.
fn route(proxy: Option<ProxyAddress>) -> ProxyRoute {
    proxy.map_or(ProxyRoute::Direct, ProxyRoute::Proxy)
}

/// Reads the settings of a feed as the administration API has them: the keys of `[[feed]]` in JSON,
/// without the name. What is wrong comes with its key.
pub fn feed_settings(
    settings: &serde_json::Map<String, serde_json::Value>,
) -> Result<FeedSettings, (String, String)> {
    let mut table = FeedSettings::default();
    for (written, value) in settings {
        // The webhook has an address of its own; a path stands in the file alone.
        let mut keys =
            FEED_KEYS.iter().filter(|(row, _)| !["name", "webhook", "path"].contains(&row.name));
        let Some((_, read)) = keys.find(|(row, _)| row.name == written) else {
            let key: String = written.chars().take(64).collect();
            let message = format!("the key {key:?} is unknown");
            return Err((key, message));
        };
        let mut mistakes = Mistakes::new();
        read(&ConfigNode::from_json(value, 0), &mut mistakes, &mut table);
        if let Some((entry, message)) = mistakes.into_iter().next() {
            let place = if entry > 0 { format!("entry {entry} of ") } else { String::new() };
            return Err((written.clone(), format!("{place}{written}: {message}")));
        }
    }
    let FeedOptions { min_interval, max_interval, .. } = &table.options;
    if min_interval.zip(*max_interval).is_some_and(|(least, most)| least > most) {
        let message = "min_interval is longer than max_interval".to_owned();
        return Err(("min_interval".to_owned(), message));
    }
    table.join_access().map_err(|(key, said)| (key.to_owned(), format!("{key} {said}")))?;
    Ok(table)
}

/// What is to be written.
const WEBHOOK: &str = "{ url = \"https://example.org/hook\", secret = { file = \"…\" } }";

/// Where changes of a feed are delivered as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct WebhookConfig {
    pub url: Url,
    /// What deliveries are signed with; read at the start and whenever the configuration is.
    pub secret: SecretSource,
}

/// `{ url = …, secret = … }`.
pub(super) fn webhook() -> Kind<WebhookConfig> {
    Kind::new("`{ url, secret }`, an address and a secret", read_webhook)
}

fn read_webhook(node: &ConfigNode<'_>) -> Result<WebhookConfig, String> {
    let [Some(url), Some(signing)] = node.keys(["url", "secret"], WEBHOOK)? else {
        return Err(format!("needs both url and secret; write {WEBHOOK}"));
    };
    let text = url.text().map_err(|_| format!("has a url that {}", url.refusal(WEBHOOK)))?;
    let url = feed_address(text).map_err(|error| format!("has a url that is none: {error}"))?;
    let secret = secret(signing, false).map_err(|said| format!("has a secret that {said}"))?;
    Ok(WebhookConfig { url, secret })
}

const WANTED: &str = "a list of fields, each a text or { field = …, pattern = … }";

/// A list of fields, or of patterns in fields; an entry with a mistake is a fault at its own place.
pub(super) fn ignored_fields() -> Kind<Vec<Ignore>> {
    elements(format!("a list of at most {IGNORE_LIMIT}"), IGNORE_LIMIT, WANTED, entry)
}

fn entry(node: &ConfigNode<'_>) -> Result<Ignore, String> {
    let [field, pattern] = match node.value {
        Value::Text(field) => return Ignore::new(field, None).map_err(|error| error.to_string()),
        Value::Table(_) => node.keys(["field", "pattern"], WANTED)?,
        _ => return Err(format!("has a {}; write {WANTED}", node.kind())),
    };
    let field = text("field", field)?.ok_or_else(|| "has an entry without a field".to_owned())?;
    Ignore::new(field, text("pattern", pattern)?).map_err(|error| error.to_string())
}

/// The text of a key, where it is written.
fn text<'d>(key: &str, node: Option<&ConfigNode<'d>>) -> Result<Option<&'d str>, String> {
    node.map(|node| node.text().map_err(|said| format!("{key} {said}"))).transpose()
}
