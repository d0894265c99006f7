//! A subscriber that follows SSE 1.0 section 4.1 to the letter. It publishes nothing itself, so that
//! no item was created or last updated by it.

use super::net::{Net, PUBLIC, header};
use crate::support::shared_items::{self, merge_sets};
use std::collections::BTreeMap;
use std::mem;
use tidegate_core::model::Shared;
use tidegate_format::parse::{self, Limits};

/// What an `sx:sync` says: `updates`, `deleted`, and each `sx:history` in order.
pub type Sync = (u32, bool, Vec<String>);

/// The subscriber with its local store.
pub struct Subscriber {
    net: Net,
    feed: String,
    /// Whether it asks with `?since=` for what came after the `until` that it cached.
    precise: bool,
    /// Whether it asks for deltas (`A-IM: feed`), and the tag that it has.
    deltas: bool,
    etag: Option<String>,
    cached_until: Option<String>,
    items: Vec<Shared<String>>,
    /// How often it found itself out of sync.
    pub resets: u32,
    /// How often it got a delta.
    pub saved: u32,
}

/// A feed as it was read.
struct Read {
    since_and_until: Option<(String, String)>,
    complete: Option<String>,
    items: Vec<Shared<String>>,
}

impl Subscriber {
    pub fn new(net: &Net, feed: &str, precise: bool) -> Self {
        Self {
            net: net.clone(),
            feed: format!("{PUBLIC}/feeds/{feed}/sync"),
            precise,
            deltas: false,
            etag: None,
            cached_until: None,
            items: Vec::new(),
            resets: 0,
            saved: 0,
        }
    }

    /// One that asks for deltas.
    pub fn with_deltas(net: &Net, feed: &str) -> Self {
        Self { deltas: true, ..Self::new(net, feed, false) }
    }

    /// Reads the feed and takes in what it says.
    pub async fn consume(&mut self) {
        let address = match &self.cached_until {
            Some(until) if self.precise => format!("{}?since={until}", self.feed),
            _ => self.feed.clone(),
        };
        let text = if self.deltas { self.delta(&address).await } else { None };
        let feed = match text {
            Some(text) if text.is_empty() => return,
            Some(text) => read_text(&address, &text),
            None => read(&self.net, &address).await,
        };
        match (&self.cached_until, &feed.since_and_until) {
            // Section 4.1.2 step 2a: compared by code points.
            (Some(cached), Some((since, _))) if since > cached => {
                self.resets += 1;
                self.begin(feed, true).await;
            }
            (Some(_), _) => {
                if let Some((_, until)) = feed.since_and_until {
                    self.cached_until = Some(until);
                }
                self.merge(feed.items);
            }
            (None, _) => self.begin(feed, false).await,
        }
    }

    /// What came after the document of its tag; nothing where it is the same.
    async fn delta(&mut self, address: &str) -> Option<String> {
        let mut request = self.net.get(address).header("a-im", "feed");
        if let Some(etag) = &self.etag {
            request = request.header("if-none-match", etag);
        }
        let answer = request.send().await.unwrap();
        match answer.status().as_u16() {
            200 => assert_eq!(header(&answer, "im"), None),
            226 => {
                assert_eq!(header(&answer, "delta-base"), self.etag);
                self.saved += 1;
            }
            304 => return Some(String::new()),
            other => panic!("{address}: {other}"),
        }
        self.etag = header(&answer, "etag");
        Some(answer.text().await.unwrap())
    }

    /// Section 4.1.1, and step 2a of section 4.1.2 where it is out of sync.
    async fn begin(&mut self, feed: Read, out_of_sync: bool) {
        let whole = match &feed.complete {
            Some(link) => read(&self.net, link).await,
            None => panic!("{} names no complete feed", self.feed),
        };
        if out_of_sync {
            self.items.clear();
        }
        self.merge(whole.items);
        if let Some((_, until)) = feed.since_and_until {
            // The earlier of the two, so that nothing between them is missed (READINGS 1, row 28).
            let whole_until = whole.since_and_until.map(|(_, until)| until);
            let least = if out_of_sync { whole_until.clone() } else { Some(until.clone()) };
            self.cached_until = least.min(whole_until).or(Some(until));
        }
    }

    fn merge(&mut self, incoming: Vec<Shared<String>>) {
        self.items = merge_sets(mem::take(&mut self.items), incoming);
        let conflicts: usize = self.items.iter().map(|item| item.conflicts.len()).sum();
        assert_eq!(conflicts, 0, "one publisher cannot conflict with itself");
    }

    /// What it knows of each item.
    pub fn known(&self) -> BTreeMap<String, Sync> {
        self.items.iter().map(|item| (item.winner.id.to_string(), sync(item))).collect()
    }

    /// What it knows each item to say.
    pub fn payloads(&self) -> BTreeMap<String, &str> {
        let winners = self.items.iter().map(|item| &item.winner);
        winners.map(|winner| (winner.id.to_string(), winner.data.as_str())).collect()
    }

    /// The titles of the items that live, in order of title.
    pub fn living(&self) -> Vec<String> {
        let living = self.items.iter().filter(|item| !item.winner.deleted);
        let mut titles: Vec<_> =
            living.map(|item| title_of(&item.winner.data).to_owned()).collect();
        titles.sort();
        titles
    }

    /// The item of that title.
    pub fn item(&self, title: &str) -> Sync {
        let is_it = |item: &&Shared<String>| title_of(&item.winner.data) == title;
        let found: Vec<_> = self.items.iter().filter(is_it).collect();
        assert_eq!(found.len(), 1, "{title} of {:?}", self.living());
        sync(found[0])
    }

    /// The `until` that it cached.
    pub fn until(&self) -> &str {
        self.cached_until.as_deref().unwrap_or_default()
    }
}

/// The title in what an item says.
fn title_of(said: &str) -> &str {
    said.lines().next().unwrap_or_default()
}

/// What an item's `sx:sync` says.
pub fn sync<D>(item: &Shared<D>) -> Sync {
    let version = &item.winner;
    let history = version.history.iter().map(|update| {
        let when = update.stamp.when().map(|when| when.to_string()).unwrap_or_default();
        let by = update.stamp.by().map(|by| by.to_string()).unwrap_or_default();
        format!("{} {when} {by}", update.sequence.value())
    });
    (version.updates.value(), version.deleted, history.collect())
}

async fn read(net: &Net, address: &str) -> Read {
    read_text(address, &net.text(address).await)
}

fn read_text(address: &str, text: &str) -> Read {
    assert_eq!(text.matches("<sx:sharing").count(), 1, "{address}: one sx:sharing");
    let document = parse::document(text, None, &Limits::default()).unwrap();
    let sharing = document.sharing.unwrap();
    if let Some((since, until)) = &sharing.bounds {
        assert!(since <= until, "{address}: since {since} is after until {until}");
    }
    let tag = text.split_once("<sx:sharing").and_then(|(_, rest)| rest.split_once('>')).unwrap().0;
    let halves = [" since=", " until="].map(|name| tag.contains(name));
    assert_eq!(halves, [sharing.bounds.is_some(); 2], "{address}: since and until come together");
    let items = shared_items::with(shared_items::items(text), shared_items::said);
    let mut ids: Vec<_> = items.iter().map(|item| item.winner.id.as_str()).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), items.len(), "{address}: an item stands there twice");
    Read { since_and_until: sharing.bounds, complete: sharing.complete, items }
}
