//! Names of the feeds of the command line. The store keeps which name an address has: it never changes
//! by itself, whatever else stands on the command line.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use tidegate_config::{Config, feed_name, is_named_after};
use tidegate_core::model::{FeedName, FeedRecord, FeedSource, FeedStanding};
use tidegate_store::FeedList;
use url::Url;

/// The feeds of a configuration with the names that the store has for the addresses of the command line, and a
/// sentence for each feed that is left out.
pub(super) fn assigned(config: &Config, stored: &FeedList) -> (Vec<FeedRecord>, Vec<String>) {
    let records = config.feeds.iter().map(|feed| feed.record.clone());
    let (given, mut feeds): (Vec<FeedRecord>, Vec<FeedRecord>) =
        records.partition(|feed| feed.source == FeedSource::CommandLine);
    let mut taken: HashSet<FeedName> = feeds.iter().map(|feed| feed.name.clone()).collect();
    let (mut new, mut left_out) = (Vec::new(), Vec::new());
    // Those that have a name keep it, before others are named.
    for mut feed in given {
        let Some(record) = stored_record(&feed, stored, &taken) else {
            new.push(feed);
            continue;
        };
        taken.insert(record.name.clone());
        // Its options are the API's, and the command line has none.
        if record.source == FeedSource::Api && record.standing != FeedStanding::Gone {
            left_out.push(format!(
                "{} is left out: the feed {} has this address already, as the API has put it",
                record.shown().text(),
                record.name
            ));
            continue;
        }
        feed.name = record.name.clone();
        feeds.push(feed);
    }
    for mut feed in new {
        let Ok(url) = Url::parse(&feed.url) else { continue };
        let moved = feed_name(&url, |name| taken.contains(name));
        let moved = moved.and_then(|name| stored.get(&name)).filter(|record| has_moved(record));
        if let Some(record) = moved {
            left_out.push(sentence(&url, &record.name, Some(record)));
            continue;
        }
        let name = feed_name(&url, |name| taken.contains(name) || stored.contains_key(name));
        let Some(name) = name else {
            left_out.push(sentence(&url, &feed.name, stored.get(&feed.name)));
            continue;
        };
        taken.insert(name.clone());
        feed.name = name;
        feeds.push(feed);
    }
    (feeds, left_out)
}

/// The feed that the store has for the address of one that is given. One that the command line gave goes
/// before one whose name somebody chose.
fn stored_record<'a>(
    feed: &FeedRecord,
    stored: &'a FeedList,
    taken: &HashSet<FeedName>,
) -> Option<&'a Arc<FeedRecord>> {
    let same = |record: &&Arc<FeedRecord>| record.url == feed.url && !taken.contains(&record.name);
    stored.values().filter(same).min_by_key(|record| {
        let is_other = record.access != feed.access;
        (record.standing == FeedStanding::Gone, is_other, record.source != FeedSource::CommandLine)
    })
}

/// Whether the address of a feed was changed after it was named: its name is not made of it, and it is
/// not the file's, where names are chosen.
fn has_moved(record: &FeedRecord) -> bool {
    record.source != FeedSource::File
        && Url::parse(&record.url).is_ok_and(|url| !is_named_after(&record.name, &url))
}

fn sentence(url: &Url, name: &FeedName, record: Option<&Arc<FeedRecord>>) -> String {
    let shown = tidegate_core::model::ShownAddress::new(url.as_str(), None);
    let other = record.map_or_else(
        || "is taken".to_owned(),
        |record| match record.shown().text() {
            text if record.has_upstream() => format!("belongs to {text}"),
            _ => "belongs to a feed without an upstream".to_owned(),
        },
    );
    format!(
        "{} is left out: its name {name} {other}; give it a name of its own in a [[feed]] table",
        shown.text()
    )
}

/// Addresses that are polled under two names, with a sentence for each.
pub(super) fn polled_twice(config: &Config) -> Vec<String> {
    let mut first: HashMap<_, &FeedName> = HashMap::new();
    let polled = config.feeds.iter().filter(|feed| feed.has_upstream());
    let found = polled.filter_map(|feed| {
        // With other credentials it is another feed.
        let other = first.insert((&feed.url, &feed.access), &feed.name)?;
        let (name, shown) = (&feed.name, feed.shown());
        Some(format!(
            "the feeds {other} and {name} have the same address, {}; it is polled twice",
            shown.text()
        ))
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_config::Overrides;

    const ONE: &str = "http://h.example/f?id=1";
    const TWO: &str = "http://h.example/f?id=2";

    fn record(name: &str, url: &str, source: FeedSource) -> FeedRecord {
        FeedRecord::new(FeedName::new(name).unwrap(), url, source)
    }

    /// The addresses and names of the feeds that are given and not left out, and what is said of those that are.
    fn assigned(urls: &[&str], stored: &[FeedRecord]) -> (Vec<(String, String)>, Vec<String>) {
        let feeds = urls.iter().map(|url| Url::parse(url).unwrap()).collect();
        let mut config = Config::default();
        Overrides { feeds, ..Overrides::default() }.complete(&mut config);
        let stored = stored.iter().map(|record| (record.name.clone(), Arc::new(record.clone())));
        let (feeds, left_out) = super::assigned(&config, &stored.collect());
        (feeds.into_iter().map(|feed| (feed.url, feed.name.to_string())).collect(), left_out)
    }

    fn pair(url: &str, name: &str) -> (String, String) {
        (url.to_owned(), name.to_owned())
    }

    #[test]
    fn a_name_does_not_depend_on_what_else_is_given() {
        let (both, _) = assigned(&[ONE, TWO], &[]);
        let stored = both.iter().map(|(url, name)| record(name, url, FeedSource::CommandLine));
        assert_eq!(assigned(&[TWO], &stored.collect::<Vec<_>>()), (both[1..].to_vec(), vec![]));
        assert_eq!(assigned(&[TWO], &[]).0, both[1..]);
        // The store keeps the name of an address.
        // Numbered by an earlier version.
        let stored = [
            record("h-example-f", ONE, FeedSource::CommandLine),
            record("h-example-f-2", TWO, FeedSource::CommandLine),
        ];
        assert_eq!(assigned(&[TWO], &stored), (vec![pair(TWO, "h-example-f-2")], vec![]));
        // A feed of the API with the same address stays as it is.
        let mut api = record("chosen", ONE, FeedSource::Api);
        api.options.secret = Some(true);
        let (feeds, left_out) = assigned(&[ONE, TWO], std::slice::from_ref(&api));
        assert!(feeds.len() == 1 && feeds[0].0 == TWO, "{feeds:?}");
        let said = "http://h.example/f?*** is left out: the feed chosen has this address already, as the \
                    API has put it";
        assert_eq!(left_out, [said]);
        // One that was deleted comes back.
        api.standing = FeedStanding::Gone;
        assert_eq!(assigned(&[ONE], &[api]), (vec![pair(ONE, "chosen")], vec![]));
    }

    #[test]
    fn a_name_that_is_another_feeds_gets_a_hash() {
        let url = "http://h.example/a/b";
        for stored in [
            record("h-example-a-b", "http://h.example/a.b", FeedSource::CommandLine),
            record("h-example-a-b", "http://x.example/", FeedSource::File),
        ] {
            let (feeds, _) = assigned(&[url], &[stored]);
            assert!(feeds[0].1.starts_with("h-example-a-b-"), "{feeds:?}");
        }
        // One whose name has another address is left out, and the others start.
        let stored = [record("h-example-c", "http://moved.example/new", FeedSource::Api)];
        let (feeds, left_out) = assigned(&["http://h.example/c", TWO], &stored);
        let said = "http://h.example/c is left out: its name h-example-c belongs to \
                    http://moved.example/new; give it a name of its own in a [[feed]] table";
        assert_eq!((feeds.len(), left_out), (1, vec![said.to_owned()]));
        // One address under two names is said.
        let text = "[[feed]]\nname='a'\nurl='http://x.example/'\n\
                    [[feed]]\nname='b'\nurl='http://x.example/'";
        let said = polled_twice(&tidegate_config::check("f", text).unwrap().config);
        let expected =
            "the feeds a and b have the same address, http://x.example/; it is polled twice";
        assert_eq!(said, [expected]);
    }
}
