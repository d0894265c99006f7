//! The feeds that the gateway has before a list is taken.

use super::ExistingFeeds;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use tidegate_config::{self as config, FEED_LIMIT, feed_name};
use tidegate_core::model::{FeedAccess, FeedName, FeedRecord, FeedStanding};
use url::Url;

/// A feed as it is to be, and what the store has of it.
pub(super) type RecordChange = (FeedRecord, Option<FeedRecord>);

fn is_gone(record: &FeedRecord) -> bool {
    record.standing == FeedStanding::Gone
}

/// Names and addresses that are taken.
pub(super) struct TakenNames {
    names: HashSet<FeedName>,
    /// Feeds of the gateway by their addresses, with what the store has of them.
    records: HashMap<String, RecordChange>,
    /// Addresses of feeds by their names.
    upstreams: HashMap<FeedName, String>,
    /// What the addresses of this gateway itself begin with.
    own: String,
}

impl TakenNames {
    pub(super) fn new(before: &ExistingFeeds<'_>) -> Self {
        let config = before.config;
        let mut stored: HashMap<&FeedName, &FeedRecord> =
            before.stored.iter().map(|record| (&record.name, &**record)).collect();
        let mut names: HashSet<FeedName> = stored.keys().map(|name| (*name).clone()).collect();
        names.extend(config.feeds.iter().map(|feed| feed.name.clone()));
        let mut records: HashMap<String, RecordChange> = HashMap::new();
        for feed in &config.feeds {
            let before = stored.remove(&feed.name);
            if !feed.has_upstream() {
                continue;
            }
            let record = match before {
                Some(before) if !is_gone(before) => before.clone(),
                // The next start polls it.
                _ => FeedRecord {
                    enrolment: before.map(|b| b.enrolment.clone()).unwrap_or_default(),
                    ..feed.record.clone()
                },
            };
            records.entry(feed.url.clone()).or_insert((record, before.cloned()));
        }
        for record in before.stored.iter().map(Arc::as_ref) {
            if !stored.contains_key(&record.name) {
                continue;
            }
            // Of several the first one, but none that was removed before one that was not.
            let known = records.get(&record.url);
            if known.is_none_or(|(known, _)| is_gone(known) && !is_gone(record)) {
                records.insert(record.url.clone(), (record.clone(), Some(record.clone())));
            }
        }
        let own = config.server.public_url.clone();
        let own = own.unwrap_or_else(|| format!("http://{}", config.server.listen));
        let named = |record: &FeedRecord| (record.name.clone(), record.url.clone());
        // Several may have one address.
        let stored = before.stored.iter().map(Arc::as_ref).filter(|record| record.has_upstream());
        let upstreams = stored.chain(records.values().map(|(record, _)| record)).map(named);
        let upstreams = upstreams.collect();
        Self { names, records, upstreams, own: format!("{}/", own.trim_end_matches('/')) }
    }

    /// The address of a feed, as it is polled, and the credentials in it. What this gateway publishes stands for its upstream, so
    /// that its own list, arranged by a reader, can come back.
    pub(super) fn address(&self, written: &str) -> Result<(Url, Option<Box<FeedAccess>>), String> {
        let url = config::feed_address(&of_the_web(written)).map_err(|error| error.to_string())?;
        let (url, access) = config::without_login(url);
        let Some(name) = url.as_str().strip_prefix(&self.own).and_then(feed_in) else {
            return Ok((url, access));
        };
        let upstream = FeedName::new(name).ok().and_then(|name| self.upstreams.get(&name));
        upstream.and_then(|url| Some((Url::parse(url).ok()?, None))).ok_or_else(|| {
            "it is a feed of this gateway itself, which has no upstream of that name".to_owned()
        })
    }

    /// The feed that the gateway has at an address, with what the store has of it.
    pub(super) fn record(&self, url: &Url) -> Result<Option<RecordChange>, String> {
        match self.records.get(url.as_str()) {
            Some((record, _)) if is_gone(record) => {
                Err("it was removed from this gateway; add it by the API".to_owned())
            }
            found => Ok(found.cloned()),
        }
    }

    /// A name for a feed that the gateway does not have.
    pub(super) fn name(&mut self, url: &Url) -> Result<FeedName, String> {
        if self.names.len() >= FEED_LIMIT {
            return Err(format!("there are {FEED_LIMIT} feeds, which is the limit"));
        }
        let name = feed_name(url, |name| self.names.contains(name));
        let name = name.ok_or("no name is left for it")?;
        self.names.insert(name.clone());
        Ok(name)
    }
}

/// The name in the path of a feed here, which may be below the token of a reader.
fn feed_in(path: &str) -> Option<&str> {
    let below = path.strip_prefix("t/").and_then(|rest| rest.split_once('/'));
    let view = below.map_or(path, |(_, rest)| rest).strip_prefix("feeds/")?;
    view.split(['/', '?', '#']).next()
}

/// An address with the scheme of the web: `feed:` stands in front of such an address, or in its place; a host with a
/// path has none at all in some lists.
fn of_the_web(written: &str) -> String {
    let begins = |prefix: &str| {
        let head = written.get(..prefix.len())?;
        head.eq_ignore_ascii_case(prefix).then(|| written.get(prefix.len()..)).flatten()
    };
    if let Some(rest) = begins("feed://") {
        return format!("http://{rest}");
    }
    let rest = begins("feed:").unwrap_or(written);
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let (name, port) = host.split_once(':').unwrap_or((host, ""));
    let is_name = name.contains('.') && !name.contains(['@', ' ']);
    match is_name && port.bytes().all(|digit| digit.is_ascii_digit()) {
        true => format!("http://{rest}"),
        false => rest.to_owned(),
    }
}
