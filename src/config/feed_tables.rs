//! `[[feed]]` and `[[aggregate]]`: reads the tables, and checks them against each other.

use super::access::note_sources;
use super::declare::*;
use super::feeds::{
    AGGREGATE_KEYS, AGGREGATE_LIMIT, FEED_KEYS, FEED_LIMIT, FeedConfig, FeedSettings, WebhookConfig,
};
use super::nearest::nearest;
use super::origins::free_path;
use super::polling::{Polling, in_order};
use super::sheet::Sheet;
use super::websub::Websub;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use tidegate_core::model::{FeedName, FeedOptions, FeedRecord, FeedSource};
use tidegate_net::origin::{OriginConfig, OriginPlace};

/// The feeds and aggregates that stood the check, and every name that is taken, with the line where
/// it is.
#[derive(Default)]
pub(super) struct Feeds {
    pub(super) checked: Vec<FeedConfig>,
    pub(super) names: BTreeMap<FeedName, usize>,
}

impl Feeds {
    /// The names of private feeds and aggregates.
    pub(super) fn private_names(&self) -> BTreeSet<FeedName> {
        let private = self.checked.iter().filter(|feed| feed.private);
        private.map(|feed| feed.name.clone()).collect()
    }

    /// Takes a table whose name, and whatever else it needs, is good.
    fn take(&mut self, name: Option<FeedName>, table: FeedSettings) {
        let url = table.url.map(String::from).unwrap_or_default();
        let record = |name| FeedRecord {
            options: table.options,
            access: table.access.or_none(),
            private: table.private.unwrap_or_default(),
            adds_feeds: table.adds_feeds,
            ..FeedRecord::new(name, url, FeedSource::File)
        };
        let (webhook, path) = (table.webhook, table.path);
        let feed = |name| FeedConfig { record: record(name), webhook, path };
        self.checked.extend(name.map(feed));
    }
}

/// The key that names what an aggregate gathers.
const SOURCES: &str = "aggregate.sources";

/// The feeds that a key of a table names, with their places, to be looked up when all are known.
struct Refers {
    /// The name of the table, where that is good.
    name: Option<FeedName>,
    key: &'static str,
    at: usize,
    named: Vec<(usize, FeedName)>,
}

impl Refers {
    fn new(section: &Section<'_, '_, '_>, name: Option<&FeedName>, key: &'static str) -> Self {
        let own = key.rsplit('.').next().unwrap_or_default();
        let mut seen = HashSet::new();
        let named = section.texts(own).into_iter().filter_map(|(at, text)| {
            let name = FeedName::new(text).ok()?;
            seen.insert(name.clone()).then_some((at, name))
        });
        Self { name: name.cloned(), key, at: section.offset(own), named: named.collect() }
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
        refers.push(Refers::new(section, name.as_ref(), "feed.shares_with"));
        if let Err((key, said)) = table.join_access() {
            section.fault(key, said);
        }
        note_sources(section, table.access.secrets(), External::Secret);
        check_webhook(section, table.webhook.as_ref(), websub);
        paths.check(section, table.path.as_deref());
        feeds.take(name.filter(|_| local || table.url.is_some()), table);
    });
    top.tables("aggregate", &AGGREGATE_KEYS, AGGREGATE_LIMIT, |section, mut table| {
        let name = section.take_name(table.name.take(), &mut feeds.names);
        if !section.has("sources") {
            let message = "is missing; each [[aggregate]] names the feeds that it gathers";
            section.fault("sources", message);
        }
        if section.is_empty_list("sources") {
            section.fault("sources", "is empty; an aggregate gathers one feed at least");
        }
        let keys = ["aggregate.shares_with", SOURCES];
        refers.extend(keys.map(|key| Refers::new(section, name.as_ref(), key)));
        check_webhook(section, table.webhook.as_ref(), websub);
        feeds.take(name, table);
    });
    look_up(top.sheet, &feeds, &refers);
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
    note_sources(section, secrets, External::Secret);
}

/// Checks the names that tables refer to, once all are known.
fn look_up(sheet: &mut Sheet<'_>, feeds: &Feeds, refers: &[Refers]) {
    let private = feeds.private_names();
    for Refers { name, key, named, .. } in refers {
        let is_shown = name.as_ref().is_some_and(|name| !private.contains(name));
        for (at, other) in named {
            let text = other.as_str();
            if *key == SOURCES && is_shown && private.contains(other) {
                let own = name.as_ref().map_or("", FeedName::as_str);
                let message = format!(
                    "{text:?} is private, and {own:?} would show it to everybody; write private = true here as well"
                );
                sheet.fault(*at, "aggregate.private", message);
            } else if *key != SOURCES && name.as_ref() == Some(other) {
                sheet.fault(*at, key, format!("{text:?} is this table itself; name others"));
            } else if !feeds.names.contains_key(other) {
                let meant = match nearest(text, feeds.names.keys().map(FeedName::as_str)) {
                    Some(near) => format!("did you mean {near:?}?"),
                    None => "name feeds or aggregates of this file".to_owned(),
                };
                sheet.fault(*at, key, format!("there is no feed {text:?}; {meant}"));
            }
        }
    }
    let gathered = refers.iter().filter(|of| of.key == SOURCES);
    let sources: BTreeMap<&FeedName, &Refers> =
        gathered.filter_map(|of| Some((of.name.as_ref()?, of))).collect();
    for path in circles(&sources) {
        let at = path.first().and_then(|name| sources.get(name)).map_or(0, |of| of.at);
        let path = path.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(" > ");
        sheet.fault(at, SOURCES, format!("an aggregate cannot gather itself: {path}"));
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

/// The most circles among aggregates that are named.
const CIRCLE_LIMIT: usize = 100;

/// The circles among aggregates, each as a path that ends where it begins; `sources` are those of
/// each. Where the last step of each is taken away, none is left. Who looks in the order of names
/// finds the same ones every time.
fn circles<'r>(sources: &BTreeMap<&'r FeedName, &'r Refers>) -> Vec<Vec<&'r FeedName>> {
    let mut circles = Vec::new();
    let mut done: BTreeSet<&FeedName> = BTreeSet::new();
    for start in sources.keys() {
        // A walk into the depth: where each aggregate on the way stands in its list.
        let mut way: Vec<(&FeedName, usize)> = vec![(start, 0)];
        while let Some((name, next)) = way.last_mut().filter(|(name, _)| !done.contains(name)) {
            let source = sources.get(*name).and_then(|list| list.named.get(*next));
            *next += 1;
            let Some((_, source)) = source else {
                done.insert(*name);
                way.pop();
                continue;
            };
            if let Some(first) = way.iter().position(|(name, _)| *name == source) {
                let names = way.iter().skip(first).map(|(name, _)| *name);
                circles.push(names.chain([source]).collect());
                if circles.len() >= CIRCLE_LIMIT {
                    return circles;
                }
            } else if sources.contains_key(source) && !done.contains(source) {
                way.push((source, 0));
            }
        }
    }
    circles
}

/// The paths of the feeds that were read so far.
struct FeedPaths<'o> {
    /// The paths of origins, each with its name.
    origins: HashMap<&'o str, &'o FeedName>,
    /// The paths of feeds, each with its line.
    taken: HashMap<String, usize>,
}

impl<'o> FeedPaths<'o> {
    fn new(origins: &'o [OriginConfig]) -> Self {
        let path = |site: &'o OriginConfig| match &site.place {
            OriginPlace::At(path) => Some((path.as_str(), &site.name)),
            OriginPlace::Host(_) => None,
        };
        let origins = origins.iter().filter_map(path).collect();
        Self { origins, taken: HashMap::new() }
    }

    /// Checks the path of a feed against those of other feeds and of origins.
    fn check(&mut self, section: &mut Section<'_, '_, '_>, path: Option<&str>) {
        let Some(path) = path else { return };
        let mut folders = path.match_indices('/').filter_map(|(at, _)| path.get(..=at));
        if let Some(name) = folders.find_map(|folder| self.origins.get(folder)) {
            let message =
                format!("{path:?} is below the origin {:?}; write another", name.as_str());
            section.fault("path", message);
        }
        if let Some(line) = self.taken.get(path) {
            let message = format!("{path:?} is taken by line {line}; each needs its own");
            return section.fault("path", message);
        }
        self.taken.insert(path.to_owned(), section.line());
    }
}

/// Checks the path that a feed gets beside `/feeds/NAME`.
pub(super) fn feed_path(text: &str) -> Result<String, String> {
    if text == "/" {
        return Err("\"/\" is the gateway's own; write one like \"/atom.xml\"".to_owned());
    }
    free_path(text)
}
