//! `[[feed]]` and `[[aggregate]]`: reads the tables, and checks them against each other.

use super::access::note_sources;
use super::declare::*;
use super::feeds::{
    AGGREGATE_KEYS, AGGREGATE_LIMIT, FEED_KEYS, FEED_LIMIT, FeedConfig, WebhookConfig,
};
use super::nearest::nearest;
use super::origins::free_path;
use super::polling::{Polling, in_order};
use super::sheet::Sheet;
use super::websub::Websub;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use tidegate_core::model::{FeedName, FeedOptions, FeedSource, SharingOptions};
use tidegate_net::origin::{OriginConfig, OriginPlace};

/// The feeds and aggregates that stood the check, and every name that is taken, with the line where
/// it is.
#[derive(Default)]
pub(super) struct Feeds {
    pub(super) checked: Vec<FeedConfig>,
    pub(super) names: BTreeMap<FeedName, usize>,
    /// Where the sources of each aggregate are.
    places: BTreeMap<FeedName, usize>,
}

impl Feeds {
    /// The names of private feeds and aggregates.
    pub(super) fn private_names(&self) -> BTreeSet<FeedName> {
        let private = self.checked.iter().filter(|feed| feed.private);
        private.map(|feed| feed.name.clone()).collect()
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
        note_sources(section, table.access.secrets(), External::Secret);
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
    top.tables("aggregate", &AGGREGATE_KEYS, AGGREGATE_LIMIT, |section, mut table| {
        let name = section.take_name(table.name.take(), &mut feeds.names);
        if !section.has("sources") {
            let message = "is missing; each [[aggregate]] names the feeds that it gathers";
            section.fault("sources", message);
        }
        if section.is_empty_list("sources") {
            section.fault("sources", "is empty; an aggregate gathers one feed at least");
        }
        refers.push(Refers::new(section, name.as_ref(), &table.options.sharing));
        check_webhook(section, table.webhook.as_ref(), websub);
        let Some(name) = name else { return };
        feeds.places.insert(name.clone(), section.offset("sources"));
        feeds.checked.push(FeedConfig {
            options: table.options,
            webhook: table.webhook,
            private: table.private.unwrap_or_default(),
            ..FeedConfig::new(name, None, FeedSource::File)
        });
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
        check_known(sheet, key, shares_with, feeds, name.as_ref());
        check_known(sheet, "aggregate.sources", sources, feeds, None);
    }
    let gathered = feeds.checked.iter().filter(|feed| feeds.places.contains_key(&feed.name));
    let sources = gathered.map(|one| (&one.name, one.options.sharing.sources.as_slice()));
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

/// Notes a fault for each of these names that no feed or aggregate bears, with the nearest that there is, and for
/// `never`, which may not stand there.
fn check_known(
    sheet: &mut Sheet<'_>,
    key: &str,
    named: &[(usize, FeedName)],
    feeds: &Feeds,
    never: Option<&FeedName>,
) {
    for (at, name) in named {
        let text = name.as_str();
        if never == Some(name) {
            sheet.fault(*at, key, format!("{text:?} is this table itself; name others"));
        } else if !feeds.names.contains_key(name) {
            let meant = match nearest(text, feeds.names.keys().map(FeedName::as_str)) {
                Some(near) => format!("did you mean {near:?}?"),
                None => "name feeds or aggregates of this file".to_owned(),
            };
            sheet.fault(*at, key, format!("there is no feed {text:?}; {meant}"));
        }
    }
}

/// The most circles among aggregates that are named.
const CIRCLE_LIMIT: usize = 100;

/// The circles among aggregates, each as a path that ends where it begins; `sources` are those of
/// each. Where the last step of each is taken away, none is left. Who looks in the order of names
/// finds the same ones every time.
fn circles(sources: &BTreeMap<&FeedName, &[FeedName]>) -> Vec<Vec<FeedName>> {
    let mut circles = Vec::new();
    let mut done: BTreeSet<&FeedName> = BTreeSet::new();
    for start in sources.keys() {
        if done.contains(start) {
            continue;
        }
        // A walk into the depth: where each aggregate on the way stands in its list.
        let mut way: Vec<(&FeedName, usize)> = vec![(start, 0)];
        while let Some((name, next)) = way.last_mut() {
            let source = sources.get(*name).and_then(|list| list.get(*next));
            *next += 1;
            let Some(source) = source else {
                done.insert(*name);
                way.pop();
                continue;
            };
            if let Some(first) = way.iter().position(|(name, _)| *name == source) {
                let names = way.iter().skip(first).map(|(name, _)| (*name).clone());
                circles.push(names.chain([source.clone()]).collect());
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

/// The key, as one that needs a restart.
pub(super) const PATHS: &str = "feed.path";

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

/// Puts back the paths in force; whether any differed.
pub(super) fn keep_paths(in_force: &[FeedConfig], read: &mut [FeedConfig]) -> bool {
    let before: HashMap<&FeedName, &FeedConfig> =
        in_force.iter().map(|feed| (&feed.name, feed)).collect();
    let mut differed = false;
    for feed in read {
        let path = before.get(&feed.name).and_then(|before| before.path.clone());
        differed |= feed.path != path;
        feed.path = path;
    }
    differed
}

/// Checks the path that a feed gets beside `/feeds/NAME`.
pub(super) fn feed_path(text: &str) -> Result<String, String> {
    if text == "/" {
        return Err("\"/\" is the gateway's own; write one like \"/atom.xml\"".to_owned());
    }
    free_path(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(lists: &[(&str, &[&str])]) -> Vec<String> {
        let name = |text: &str| FeedName::new(text).unwrap();
        let lists: Vec<(FeedName, Vec<FeedName>)> = lists
            .iter()
            .map(|(of, sources)| (name(of), sources.iter().map(|s| name(s)).collect()))
            .collect();
        let lists = lists.iter().map(|(of, sources)| (of, sources.as_slice())).collect();
        let path = |circle: &Vec<FeedName>| {
            circle.iter().map(FeedName::as_str).collect::<Vec<_>>().join(" > ")
        };
        circles(&lists).iter().map(path).collect()
    }

    #[test]
    fn circles_are_found_with_their_path() {
        let none: [&str; 0] = [];
        assert_eq!(found(&[("a", &["x", "b"]), ("b", &["y", "c"]), ("c", &["z"])]), none);
        // Two ways to one source are no circle.
        assert_eq!(found(&[("a", &["b", "c"]), ("b", &["d"]), ("c", &["d"]), ("d", &["x"])]), none);
        assert_eq!(found(&[("a", &["a"])]), ["a > a"]);
        let ring = [("a", &["x", "b"][..]), ("b", &["c"]), ("c", &["d"]), ("d", &["y", "b"])];
        assert_eq!(found(&ring), ["b > c > d > b"]);
        // One does not hide another, beside it or behind it.
        let many = [("a", &["b"][..]), ("b", &["a", "c"]), ("c", &["c"]), ("d", &["a", "d"])];
        assert_eq!(found(&many), ["a > b > a", "c > c", "d > d"]);
    }

    #[test]
    fn there_are_no_more_circles_than_are_named() {
        let names: Vec<String> = (0..CIRCLE_LIMIT + 5).map(|n| format!("n{n}")).collect();
        let own: Vec<[&str; 1]> = names.iter().map(|name| [name.as_str()]).collect();
        let lists: Vec<(&str, &[&str])> = own.iter().map(|list| (list[0], &list[..])).collect();
        assert_eq!(found(&lists).len(), CIRCLE_LIMIT);
    }
}
