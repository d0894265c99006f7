//! `[[feed]]` and `[[aggregate]]`: what is polled, and what is gathered from it.

use super::External;
use super::access::{self, basic_login, headers, proxy_address, secret_value};
use super::feed_config::{Aggregate, FeedConfig};
use super::feed_paths::{FeedPaths, PATHS, feed_path};
use super::ignore::ignored_fields;
use super::keys::{
    KeyTable,
    Preset::{Value as Preset, Words},
    keys,
};
use super::kinds::{Kind, Mistakes, flag, lasting, list, number, one_of, parsed, word_or_flag};
use super::polling::{INTERVALS, Polling, in_order, user_agent};
use super::publish::ITEMS;
use super::section::Section;
use super::sharing::{circles, known};
use super::sheet::Sheet;
use super::value::ConfigNode;
use super::web::feed_address;
use super::webhook::{WebhookConfig, webhook};
use super::websub::Websub;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::str::FromStr;
use tidegate_core::model::{
    ConflictPolicy, Deletions, FeedAccess, FeedName, FeedOptions, FeedSource, Order, Probing,
    ProxyAddress, ProxyRoute, SecretSource, SharingOptions, UserPassword,
};
use tidegate_net::origin::OriginConfig;
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
    name: Option<FeedName>,
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
    path: Option<String>,
    basic: Option<UserPassword>,
    bearer: Option<SecretSource>,
    webhook: Option<WebhookConfig>,
}

impl FeedSettings {
    /// Puts the credentials in their place; what goes against each other, with its key.
    fn join_access(&mut self) -> Result<(), (&'static str, String)> {
        let credentials = (self.basic.take(), self.bearer.take());
        let access = std::mem::take(&mut self.access);
        self.access = access::joined(access, credentials, self.url.as_mut())?;
        Ok(())
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
        Words("none", "\"/atom.xml\""), at restart;
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
        let Some((_, field)) = keys.find(|(row, _)| row.name == written) else {
            let key: String = written.chars().take(64).collect();
            let message = format!("the key {key:?} is unknown");
            return Err((key, message));
        };
        let mut mistakes = Mistakes::new();
        (field.read)(&ConfigNode::from_json(value, 0), &mut mistakes, &mut table);
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

/// The feeds and aggregates that stood the check, and every name that is taken, with the line where
/// it is.
#[derive(Default)]
pub(super) struct Feeds {
    pub(super) checked: Vec<FeedConfig>,
    pub(super) aggregates: Vec<Aggregate>,
    pub(super) names: BTreeMap<FeedName, usize>,
    /// Where the sources of each aggregate are.
    places: BTreeMap<FeedName, usize>,
}

impl Feeds {
    /// The names of private feeds and aggregates.
    pub(super) fn private_names(&self) -> BTreeSet<FeedName> {
        let polled = self.checked.iter().filter(|feed| feed.private).map(|feed| &feed.name);
        let gathered = self.aggregates.iter().filter(|one| one.private).map(|one| &one.name);
        polled.chain(gathered).cloned().collect()
    }
}

/// The names that a table refers to with their places, to be looked up when all are known.
struct Refers {
    /// Its own name, where that is good.
    name: Option<FeedName>,
    shares_with: Vec<(usize, FeedName)>,
    sources: Vec<(usize, FeedName)>,
}

impl Refers {
    fn new(
        section: &Section<'_, '_, '_>,
        name: Option<&FeedName>,
        sharing: &SharingOptions,
    ) -> Self {
        let places = |key: &str, names: &[FeedName]| {
            // Of what is written twice, the first is meant.
            let written: HashMap<&str, usize> =
                section.texts(key).into_iter().rev().map(|(at, text)| (text, at)).collect();
            let place = |name: &FeedName| written.get(name.as_str()).copied().unwrap_or_default();
            names.iter().map(|name| (place(name), name.clone())).collect()
        };
        Self {
            name: name.cloned(),
            shares_with: places("shares_with", &sharing.shares_with),
            sources: places("sources", &sharing.sources),
        }
    }
}

pub(super) fn read(
    top: &mut Section<'_, '_, '_>,
    polling: &Polling,
    websub: &Websub,
    origins: &[OriginConfig],
) -> Feeds {
    let mut feeds = Feeds::default();
    let mut refers = Vec::new();
    let mut paths = FeedPaths::new(origins);
    top.tables("feed", &FEED_KEYS, FEED_LIMIT, |section, mut table| {
        let name = section.take_name(table.name.take(), &mut feeds.names);
        let local = table.options.sharing.local;
        // Who meant to say it and slipped is told of that slip alone.
        if !local && (section.is_read("local") || !section.has("local")) {
            let meant =
                "each [[feed]] has its own url, or local = true where its items are made here";
            section.demand("url", meant);
        }
        if local && !section.has("url") {
            warn_of_polling(section);
        }
        let FeedOptions { min_interval, max_interval, .. } = table.options;
        let least = min_interval.unwrap_or(polling.min_interval);
        in_order(section, least, max_interval.unwrap_or(polling.max_interval));
        refers.push(Refers::new(section, name.as_ref(), &table.options.sharing));
        if let Err((key, said)) = table.join_access() {
            section.fault(key, said);
        }
        access::note_sources(section, table.access.secrets(), External::Secret);
        check_webhook(section, table.webhook.as_ref(), websub);
        paths.check(section, table.path.as_deref());
        let (Some(name), true) = (name, local || table.url.is_some()) else { return };
        feeds.checked.push(FeedConfig {
            options: table.options,
            access: table.access.or_none(),
            webhook: table.webhook,
            private: table.private.unwrap_or_default(),
            adds_feeds: table.adds_feeds,
            path: table.path,
            ..FeedConfig::new(name, table.url, FeedSource::File)
        });
    });
    top.note_restart(paths.first, PATHS);
    top.tables("aggregate", &AGGREGATE_KEYS, AGGREGATE_LIMIT, |section, mut table| {
        let name = section.take_name(table.name.take(), &mut feeds.names);
        if !section.has("sources") {
            let message = "is missing; each [[aggregate]] names the feeds that it gathers";
            section.fault("sources", message);
        }
        if section.is_empty_list("sources") {
            section.fault("sources", "is empty; an aggregate gathers one feed at least");
        }
        let (sharing, webhook) = (table.options.sharing, table.webhook);
        refers.push(Refers::new(section, name.as_ref(), &sharing));
        check_webhook(section, webhook.as_ref(), websub);
        let Some(name) = name else { return };
        feeds.places.insert(name.clone(), section.offset("sources"));
        let private = table.private.unwrap_or_default();
        feeds.aggregates.push(Aggregate { name, sharing, webhook, private });
    });
    look_up(top.sheet, &mut feeds, refers);
    feeds
}

/// Notes where the secret of a webhook is; a fault where there is no hub that delivers.
fn check_webhook(
    section: &mut Section<'_, '_, '_>,
    webhook: Option<&WebhookConfig>,
    websub: &Websub,
) {
    let Some(webhook) = webhook else { return };
    if !websub.hub {
        section.fault("webhook", "is delivered by the hub, which websub.hub = false takes away");
    }
    let secrets = vec![("webhook".to_owned(), &webhook.secret)];
    access::note_sources(section, secrets, External::Secret);
}

/// Puts the feeds that are meant in the place of names, where there are such feeds.
fn look_up(sheet: &mut Sheet<'_>, feeds: &mut Feeds, refers: Vec<Refers>) {
    let mut found = BTreeMap::new();
    let private = feeds.private_names();
    for Refers { name, shares_with, sources } in refers {
        if let Some(name) = name.as_ref().filter(|name| !private.contains(*name)) {
            for (at, source) in sources.iter().filter(|(_, source)| private.contains(source)) {
                let message = format!(
                    "{:?} is private, and {:?} would show it to everybody; write private = true here \
                     as well",
                    source.as_str(),
                    name.as_str()
                );
                sheet.fault(*at, "aggregate.private", message);
            }
        }
        let is_aggregate = name.as_ref().is_some_and(|name| feeds.places.contains_key(name));
        let key = if is_aggregate { "aggregate.shares_with" } else { "feed.shares_with" };
        let shares_with = known(sheet, key, shares_with, feeds, name.as_ref());
        let sources = known(sheet, "aggregate.sources", sources, feeds, None);
        found.extend(name.map(|name| (name, (shares_with, sources))));
    }
    let polled = feeds.checked.iter_mut().map(|feed| (&feed.name, &mut feed.options.sharing));
    let gathered = feeds.aggregates.iter_mut().map(|one| (&one.name, &mut one.sharing));
    for (name, sharing) in polled.chain(gathered) {
        (sharing.shares_with, sharing.sources) = found.remove(name).unwrap_or_default();
    }
    let sources = feeds.aggregates.iter().map(|a| (&a.name, a.sharing.sources.as_slice()));
    for path in circles(&sources.collect()) {
        let at = path.first().and_then(|name| feeds.places.get(name)).copied().unwrap_or_default();
        let path = path.iter().map(FeedName::as_str).collect::<Vec<_>>().join(" > ");
        let message = format!("an aggregate cannot gather itself: {path}");
        sheet.fault(at, "aggregate.sources", message);
    }
}

/// Names what does nothing in a feed that has no upstream: what is not also said of aggregates.
fn warn_of_polling(section: &mut Section<'_, '_, '_>) {
    let counts = |key: &str| {
        let is_of_all = AGGREGATE_KEYS.rows.iter().any(|row| row.name == key);
        is_of_all || ["url", "local", "path"].contains(&key)
    };
    for row in FEED_KEYS.rows.iter().filter(|row| !counts(row.name)) {
        if section.has(row.name) {
            let said = "does nothing: a feed with local = true and no url has no upstream to poll";
            section.warn(row.name, said.to_owned());
        }
    }
}
