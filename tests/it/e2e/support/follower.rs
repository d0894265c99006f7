//! Readers that keep every entry they ever read, as most do: one that reads whole documents, and one
//! that follows RFC 3229 and merges deltas (`A-IM: feed`). Whenever they visit together, they know
//! the same.

use super::net::{Net, PUBLIC, header};
use super::reader::{Entry, entries};
use std::collections::BTreeMap;

/// A reader with its library.
pub struct Follower {
    net: Net,
    feed: String,
    deltas: bool,
    etag: Option<String>,
    /// Every entry that it read and that was not said to be deleted, by id.
    library: BTreeMap<String, Entry>,
    /// The ids of what it takes for the current entries.
    current: Vec<String>,
    /// How often it got which status.
    pub answers: BTreeMap<u16, u32>,
}

impl Follower {
    fn new(net: &Net, feed: &str, deltas: bool) -> Self {
        Self {
            net: net.clone(),
            feed: format!("{PUBLIC}/feeds/{feed}"),
            deltas,
            etag: None,
            library: BTreeMap::new(),
            current: Vec::new(),
            answers: BTreeMap::new(),
        }
    }

    async fn visit(&mut self) {
        let mut request = self.net.get(&self.feed);
        if let Some(etag) = &self.etag {
            request = request.header("if-none-match", etag);
        }
        if self.deltas {
            request = request.header("a-im", "feed");
        }
        let answer = request.send().await.unwrap();
        let status = answer.status().as_u16();
        *self.answers.entry(status).or_default() += 1;
        if status == 304 {
            return;
        }
        let etag = header(&answer, "etag");
        if status == 226 {
            assert!(self.deltas, "a delta for who did not ask for one");
            assert_eq!(header(&answer, "im").as_deref(), Some("feed"));
            assert_eq!(header(&answer, "delta-base"), self.etag, "the delta begins elsewhere");
            assert_ne!(etag, self.etag);
        } else {
            assert_eq!(status, 200);
            assert_eq!(header(&answer, "im"), None);
            self.current.clear();
        }
        self.etag = etag;
        let (entries, deleted) = entries(&answer.text().await.unwrap());
        for id in deleted {
            self.library.remove(&id);
            self.current.retain(|current| *current != id);
        }
        for (id, entry) in entries {
            if !self.current.contains(&id) {
                self.current.push(id.clone());
            }
            self.library.insert(id, entry);
        }
    }
}

/// The two, who always visit together.
pub struct Followers {
    whole: Follower,
    delta: Follower,
}

impl Followers {
    pub fn new(net: &Net, feed: &str) -> Self {
        Self { whole: Follower::new(net, feed, false), delta: Follower::new(net, feed, true) }
    }

    /// Both read the feed, and know the same then. `is_deleted`: whether the publisher took the
    /// entry of that title away.
    pub async fn visit(&mut self, is_deleted: impl Fn(&str) -> bool) {
        self.whole.visit().await;
        self.delta.visit().await;
        assert_eq!(self.whole.etag, self.delta.etag, "both have the same state now");
        assert_eq!(self.whole.library, self.delta.library, "what both have read");
        for id in &self.whole.current {
            assert!(self.delta.current.contains(id), "{id} is not there by deltas");
        }
        // What merely left the document stays with who merges; what was taken away does not.
        for id in self.delta.current.iter().filter(|id| !self.whole.current.contains(id)) {
            let title = &self.delta.library[id].title;
            assert!(!is_deleted(title), "{title} was taken away and stands there by deltas");
        }
    }

    /// How often a delta was the answer, and how often the whole document was to who asked for one.
    pub fn answers(&self) -> (u32, u32) {
        let count = |status| self.delta.answers.get(&status).copied().unwrap_or_default();
        (count(226), count(200))
    }
}
