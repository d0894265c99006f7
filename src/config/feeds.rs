//! `[[feed]]` and `[[aggregate]]`: what is polled, and what is gathered from it.

use super::ignore;
use super::nearest::nearest;
use super::polling::{INTERVALS, Polling, in_order};
use super::section::Section;
use super::web::feed_address;
use crate::model::{
    Deletions, Enrolment, FeedName, FeedOptions, FeedRecord, FeedSource, FeedStanding, Order,
    Without,
};
use std::collections::{BTreeMap, BTreeSet};
use url::Url;

pub(super) const FEED_KEYS: &[&str] = &[
    "name",
    "url",
    "complete",
    "deletions",
    "order",
    "probe",
    "backfill",
    "ignore",
    "min_interval",
    "max_interval",
];
pub(super) const AGGREGATE_KEYS: &[&str] = &["name", "sources"];

/// The most feeds in one file.
pub const FEED_LIMIT: usize = 100_000;
/// The most aggregates in one file.
pub const AGGREGATE_LIMIT: usize = 1_000;
/// The most sources of one aggregate.
pub const SOURCE_LIMIT: usize = 10_000;

/// A feed of the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Feed {
    /// Its name.
    pub name: FeedName,
    /// The upstream's address.
    pub url: Url,
    /// What the operator says of it.
    pub options: FeedOptions,
    /// Who added it: the file or the command line.
    pub source: FeedSource,
}

impl Feed {
    /// The record that the store keeps of it.
    pub fn record(&self) -> FeedRecord {
        FeedRecord {
            name: self.name.clone(),
            url: self.url.to_string(),
            source: self.source,
            standing: FeedStanding::Active,
            options: self.options.clone(),
            enrolment: Enrolment::default(),
        }
    }
}

/// Several feeds as one. Checked, not served yet.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Aggregate {
    /// Its name, of the same kind as those of feeds.
    pub name: FeedName,
    /// The feeds that it gathers, in the order of the file.
    pub sources: Vec<FeedName>,
}

/// The feeds that stood the check, and every name that is taken, with the line where it is.
pub(super) struct Feeds {
    pub(super) checked: Vec<Feed>,
    names: BTreeMap<FeedName, usize>,
}

pub(super) fn read_feeds(top: &mut Section<'_, '_, '_>, polling: &Polling) -> Feeds {
    let mut feeds = Feeds { checked: Vec::new(), names: BTreeMap::new() };
    top.tables("feed", FEED_KEYS, FEED_LIMIT, |section| {
        let name = new_name(section, &mut feeds.names);
        let url = section.required("url", feed_address);
        let options = options(section, polling);
        if let (Some(name), Some(url)) = (name, url) {
            feeds.checked.push(Feed { name, url, options, source: FeedSource::File });
        }
    });
    feeds
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

fn options(section: &mut Section<'_, '_, '_>, polling: &Polling) -> FeedOptions {
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
        ignore: ignore::read(section),
        without: Without::default(),
    }
}

pub(super) fn read_aggregates(top: &mut Section<'_, '_, '_>, feeds: &Feeds) -> Vec<Aggregate> {
    let mut taken = feeds.names.clone();
    let mut aggregates = Vec::new();
    top.tables("aggregate", AGGREGATE_KEYS, AGGREGATE_LIMIT, |section| {
        let name = new_name(section, &mut taken);
        let sources = sources(section, feeds);
        section.warn("name", "aggregates are checked but not served yet".to_owned());
        aggregates.extend(name.map(|name| Aggregate { name, sources }));
    });
    aggregates
}

fn sources(section: &mut Section<'_, '_, '_>, feeds: &Feeds) -> Vec<FeedName> {
    const KEY: &str = "sources";
    let mut names = BTreeSet::new();
    let mut sources = Vec::new();
    for (span, text) in section.list(KEY, SOURCE_LIMIT, "a list of feed names").unwrap_or_default()
    {
        let known = FeedName::new(text).ok().filter(|name| feeds.names.contains_key(name));
        let Some(name) = known else {
            let near = nearest(text, feeds.names.keys().map(FeedName::as_str));
            let meant = near.map_or_else(
                || "name feeds of this file".to_owned(),
                |near| format!("did you mean {near:?}?"),
            );
            section.fault_at(&span, KEY, format!("there is no feed {text:?}; {meant}"));
            continue;
        };
        if !names.insert(name.clone()) {
            section.fault_at(&span, KEY, format!("{text:?} stands here twice"));
            continue;
        }
        sources.push(name);
    }
    sources
}
