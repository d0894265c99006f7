//! `[[feed]]` and `[[aggregate]]`: what is polled, and what is gathered from it.

use super::ignore;
use super::polling::{INTERVALS, Polling, in_order};
use super::section::Section;
use super::sharing::{self, NamedFeeds, circles, known};
use super::web::feed_address;
use crate::model::{
    Deletions, Enrolment, FeedName, FeedOptions, FeedRecord, FeedSource, FeedStanding, Order,
    SharingOptions, Without,
};
use std::collections::BTreeMap;
use url::Url;

pub(super) const FEED_KEYS: &[&str] = &[
    "name",
    "url",
    "complete",
    "deletions",
    "order",
    "probe",
    "backfill",
    "secret",
    "ignore",
    "min_interval",
    "max_interval",
    "local",
    "title",
    "shares_with",
    "conflicts",
];
pub(super) const AGGREGATE_KEYS: &[&str] =
    &["name", "sources", "title", "shares_with", "conflicts"];

/// What may be said of a feed without an upstream, beside what is said of an aggregate as well.
const LOCAL_KEYS: &[&str] = &["url", "local"];

/// The most feeds in one file.
pub const FEED_LIMIT: usize = 100_000;
/// The most aggregates in one file.
pub const AGGREGATE_LIMIT: usize = 1_000;
/// The most sources of one aggregate.
pub const SOURCE_LIMIT: usize = 10_000;

/// A feed of the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FeedConfig {
    pub name: FeedName,
    /// The upstream's address; only a local feed may have none.
    pub url: Option<Url>,
    /// What the operator says of it.
    pub options: FeedOptions,
    /// Who added it: the file or the command line.
    pub source: FeedSource,
}

impl FeedConfig {
    /// The record that the store keeps of it.
    pub fn record(&self) -> FeedRecord {
        FeedRecord {
            name: self.name.clone(),
            url: self.url.as_ref().map(Url::to_string).unwrap_or_default(),
            source: self.source,
            standing: FeedStanding::Active,
            options: self.options.clone(),
            enrolment: Enrolment::default(),
        }
    }
}

/// Several feeds as one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Aggregate {
    /// Its name, of the same kind as those of feeds.
    pub name: FeedName,
    /// The feeds that it gathers, in the order of the file, and what else is said of sharing.
    pub sharing: SharingOptions,
}

impl Aggregate {
    /// The record that the store keeps of it.
    pub fn record(&self) -> FeedRecord {
        FeedRecord {
            name: self.name.clone(),
            url: String::new(),
            source: FeedSource::File,
            standing: FeedStanding::Active,
            options: FeedOptions { sharing: self.sharing.clone(), ..FeedOptions::default() },
            enrolment: Enrolment::default(),
        }
    }
}

/// The feeds and aggregates that stood the check, and every name that is taken, with the line where
/// it is.
pub(super) struct Feeds {
    pub(super) checked: Vec<FeedConfig>,
    pub(super) aggregates: Vec<Aggregate>,
    pub(super) names: BTreeMap<FeedName, usize>,
    /// Where each name is given away, for messages about what it is used for.
    places: BTreeMap<FeedName, usize>,
}

/// The names that a table refers to, to be looked up when all are known.
struct Refers {
    /// Its own name, where that is good.
    name: Option<FeedName>,
    shares_with: NamedFeeds,
    sources: NamedFeeds,
}

pub(super) fn read(top: &mut Section<'_, '_, '_>, polling: &Polling) -> Feeds {
    let mut feeds = Feeds {
        checked: Vec::new(),
        aggregates: Vec::new(),
        names: BTreeMap::new(),
        places: BTreeMap::new(),
    };
    let mut refers = Vec::new();
    top.tables("feed", FEED_KEYS, FEED_LIMIT, |section| {
        let name = new_name(section, &mut feeds.names);
        let local = section.boolean("local");
        // Who meant to say it and slipped is told of that slip alone.
        let may_be_local = local.unwrap_or_else(|| section.has("local"));
        let local = local.unwrap_or_default();
        let url = if may_be_local {
            section.text("url", feed_address)
        } else {
            let meant =
                "each [[feed]] has its own url, or local = true where its items are made here";
            section.required_as("url", meant, feed_address)
        };
        if local && !section.has("url") {
            warn_of_polling(section);
        }
        let sharing = sharing::read(section, local);
        let options = options(section, polling, sharing.options);
        let shares_with = sharing.shares_with;
        refers.push(Refers { name: name.clone(), shares_with, sources: NamedFeeds::new() });
        let (Some(name), true) = (name, local || url.is_some()) else { return };
        feeds.checked.push(FeedConfig { name, url, options, source: FeedSource::File });
    });
    top.tables("aggregate", AGGREGATE_KEYS, AGGREGATE_LIMIT, |section| {
        let name = new_name(section, &mut feeds.names);
        let sharing = sharing::read(section, false);
        if !section.has("sources") {
            let message = "is missing; each [[aggregate]] names the feeds that it gathers";
            section.fault("sources", message.to_owned());
        }
        let sources = sharing::names(section, "sources", SOURCE_LIMIT);
        if section.is_empty_list("sources") {
            let message = "is empty; an aggregate gathers one feed at least";
            section.fault("sources", message.to_owned());
        }
        let shares_with = sharing.shares_with;
        refers.push(Refers { name: name.clone(), shares_with, sources });
        let Some(name) = name else { return };
        feeds.places.insert(name.clone(), section.place("sources"));
        feeds.aggregates.push(Aggregate { name, sharing: sharing.options });
    });
    look_up(top, &mut feeds, refers);
    feeds
}

/// Puts the feeds that are meant in the place of names, where there are such feeds.
fn look_up(top: &mut Section<'_, '_, '_>, feeds: &mut Feeds, refers: Vec<Refers>) {
    let mut found = BTreeMap::new();
    for Refers { name, shares_with, sources } in refers {
        let is_aggregate = name.as_ref().is_some_and(|name| feeds.places.contains_key(name));
        let table = if is_aggregate { "aggregate" } else { "feed" };
        let key = format!("{table}.shares_with");
        let shares_with = known(top.sheet(), &key, shares_with, feeds, name.as_ref());
        let sources = known(top.sheet(), "aggregate.sources", sources, feeds, None);
        found.extend(name.map(|name| (name, (shares_with, sources))));
    }
    let names = |sharing: &mut SharingOptions, name: &FeedName| {
        (sharing.shares_with, sharing.sources) = found.get(name).cloned().unwrap_or_default();
    };
    for feed in &mut feeds.checked {
        names(&mut feed.options.sharing, &feed.name);
    }
    for aggregate in &mut feeds.aggregates {
        names(&mut aggregate.sharing, &aggregate.name);
    }
    let sources = feeds.aggregates.iter().map(|a| (&a.name, a.sharing.sources.as_slice()));
    for path in circles(&sources.collect()) {
        let at = path.first().and_then(|name| feeds.places.get(name)).copied().unwrap_or_default();
        let path = path.iter().map(FeedName::as_str).collect::<Vec<_>>().join(" > ");
        let message = format!("an aggregate cannot gather itself: {path}");
        top.sheet().fault(at, "aggregate.sources".to_owned(), message);
    }
}

/// Names what does nothing in a feed that has no upstream.
fn warn_of_polling(section: &mut Section<'_, '_, '_>) {
    let counts = |key: &&&str| AGGREGATE_KEYS.contains(*key) || LOCAL_KEYS.contains(*key);
    let idle = FEED_KEYS.iter().filter(|key| !counts(key) && section.has(key));
    for key in idle.collect::<Vec<_>>() {
        let said = "does nothing: a feed with local = true and no url has no upstream to poll";
        section.warn(key, said.to_owned());
    }
}

/// The name of a table, where it is well made; noted as taken, a fault where it was taken before.
fn new_name(
    section: &mut Section<'_, '_, '_>,
    taken: &mut BTreeMap<FeedName, usize>,
) -> Option<FeedName> {
    let name = section.required("name", FeedName::new)?;
    if let Some(line) = taken.get(&name) {
        let message = format!("{:?} is taken by line {line}; each needs its own", name.as_str());
        section.fault("name", message);
        return None;
    }
    taken.insert(name.clone(), section.line());
    Some(name)
}

fn options(
    section: &mut Section<'_, '_, '_>,
    polling: &Polling,
    sharing: SharingOptions,
) -> FeedOptions {
    let complete = section.boolean("complete").unwrap_or_default();
    let words = [("safe", Deletions::Safe), ("eager", Deletions::Eager), ("off", Deletions::Off)];
    let deletions = section.choice("deletions", &words).unwrap_or_default();
    let min_interval = section.duration("min_interval", &INTERVALS);
    let max_interval = section.duration("max_interval", &INTERVALS);
    in_order(
        section,
        min_interval,
        max_interval,
        min_interval.unwrap_or(polling.min_interval),
        max_interval.unwrap_or(polling.max_interval),
    );
    let order = section.choice("order", &Order::ALL.map(|order| (order.name(), order)));
    FeedOptions {
        complete,
        deletions,
        min_interval,
        max_interval,
        order: order.unwrap_or_default(),
        probe: section.boolean("probe").unwrap_or_default(),
        backfill: section.boolean("backfill").unwrap_or_default(),
        secret: section.boolean("secret"),
        ignore: ignore::read(section),
        sharing,
        without: Without::default(),
    }
}
