//! The configuration that a gateway accepted last, at its start or when it was read again: what it goes on with in
//! another role, whatever its file says by then.

use super::readers;
use std::collections::BTreeSet;
use std::hash::BuildHasher;
use std::sync::Arc;
use tidegate_config::{Config, ReaderConfig, ReaderToken, StoreKind};
use tidegate_core::model::{FeedName, Time};
use tidegate_store::AcceptedFeeds;
use xxhash_rust::xxh3::Xxh3Builder;

/// That configuration.
#[derive(Clone)]
pub(super) struct AcceptedConfig {
    /// Its feeds, with who may read them.
    pub(super) feeds: AcceptedFeeds,
    /// All of it, where the gateway may go on in another role.
    pub(super) whole: Option<Arc<Config>>,
}

impl AcceptedConfig {
    /// The one that a gateway starts with.
    pub(super) fn new(config: &Config, now: Time) -> Self {
        let has_roles = config.store.kind == StoreKind::Postgres;
        let feeds = AcceptedFeeds { digest: digest(config), at: now };
        Self { feeds, whole: has_roles.then(|| Arc::new(config.clone())) }
    }

    /// The feeds of one that is to take its place. Those that stay as they are were accepted when they first were: to
    /// read an old file again makes it no newer.
    pub(super) fn next_feeds(&self, config: &Config, now: Time) -> AcceptedFeeds {
        let digest = digest(config);
        let at = if digest == self.feeds.digest { self.feeds.at } else { now };
        AcceptedFeeds { digest, at }
    }

    /// Another one takes its place.
    pub(super) fn replace(&mut self, feeds: AcceptedFeeds, config: Config) {
        self.feeds = feeds;
        if let Some(whole) = &mut self.whole {
            *whole = Arc::new(config);
        }
    }
}

/// A hash of all that is said of feeds, aggregates and readers, and of where sites are, in whichever order.
pub(super) fn digest(config: &Config) -> u64 {
    let hasher = Xxh3Builder::new();
    let feeds = config.feeds.iter().map(|feed| hasher.hash_one(feed));
    let aggregates = config.aggregates.iter().map(|aggregate| hasher.hash_one(aggregate));
    let sites = config.origins.iter().map(|site| hasher.hash_one((&site.name, site.url.as_str())));
    let readers = config.readers.iter().map(|reader| reader_digest(&hasher, reader));
    feeds.chain(aggregates).chain(sites).chain(readers).fold(0, u64::wrapping_add)
}

/// A hash of a reader, with the token itself: gateways may have it in different places.
fn reader_digest(hasher: &Xxh3Builder, reader: &ReaderConfig) -> u64 {
    let token = reader.token.as_ref().and_then(|source| readers::find(source).ok());
    let feeds: BTreeSet<&FeedName> = reader.feeds.iter().collect();
    let token = token.as_ref().map(ReaderToken::reveal);
    hasher.hash_one((&reader.name, token, feeds, reader.all_private))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_config::check;

    fn config(feeds: &[&str]) -> Config {
        let table = |rest: &&str| format!("[[feed]]\nurl = \"https://a.example/\"\n{rest}\n");
        check("t.toml", &feeds.iter().map(table).collect::<String>()).unwrap().config
    }

    #[test]
    fn feeds_are_as_old_as_what_is_said_of_them() {
        let at = |seconds: i64| Time::from_unix(1_795_191_605 + seconds);
        let (a, b) = ("name = \"a\"", "name = \"b\"");
        let mut accepted = AcceptedConfig::new(&config(&[a, b]), at(0));
        assert!(accepted.whole.is_none(), "nobody else writes");
        assert_eq!(accepted.next_feeds(&config(&[b, a]), at(1)), accepted.feeds);
        let login = |password: &str| {
            let basic = format!("basic = {{ user = \"u\", password = \"{password}\" }}");
            config(&[&format!("{a}\n{basic}"), b])
        };
        let moved = |port: u16| {
            let mut config = config(&[a, b]);
            let text = format!(
                "[[origin]]\nname = \"o\"\nat = \"/o/\"\nurl = \"http://o.example:{port}/\"\n"
            );
            config.origins = check("t.toml", &text).unwrap().config.origins;
            config
        };
        let with_reader = |token: &str| {
            let text =
                format!("[[reader]]\nname = \"ann\"\nall_private = true\ntoken = \"{token}\"\n");
            let readers = check("t.toml", &text).unwrap().config.readers;
            Config { readers, ..config(&[a, b]) }
        };
        let token = "0123456789abcdef0123456789abcdef";
        let readers = [with_reader(token), with_reader(&token.replace('f', "e"))];
        let others = [config(&[a]), config(&[]), login("one"), login("two"), moved(80), moved(81)];
        let others = others.into_iter().chain(readers);
        let mut found = vec![accepted.feeds.digest];
        for other in others {
            let feeds = accepted.next_feeds(&other, at(2));
            assert!(feeds.at == at(2) && !found.contains(&feeds.digest));
            found.push(feeds.digest);
            accepted.replace(feeds, other);
        }
    }

    #[test]
    fn over_a_database_all_of_it_is_kept() {
        let mut first = config(&["name = \"a\""]);
        first.store.kind = StoreKind::Postgres;
        let mut accepted = AcceptedConfig::new(&first, Time::MIN);
        assert_eq!(accepted.whole.as_deref(), Some(&first));
        let second = Config { feeds: Vec::new(), ..first };
        accepted.replace(accepted.next_feeds(&second, Time::MIN), second.clone());
        assert_eq!(accepted.whole.as_deref(), Some(&second));
    }
}
