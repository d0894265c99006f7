//! Feed readers: they poll the reader view with conditional requests and keep entries by their guid or `atom:id`, as
//! readers do. One that follows RFC 3229 merges deltas (`A-IM: feed`).

use super::net::{Net, PUBLIC, header};
use crate::support::document::{Document, Entry};
use std::collections::{BTreeMap, BTreeSet};

/// The reader with what it has seen.
pub struct Reader {
    net: Net,
    feed: String,
    takes_deltas: bool,
    etag: Option<String>,
    last_modified: Option<String>,
    /// Every entry ever seen, by id.
    seen: BTreeMap<String, Entry>,
    /// What it takes for the current entries, in the order of the document.
    pub current: Vec<String>,
    /// What was said to be deleted and was not seen since.
    gone: BTreeSet<String>,
    /// How often it got which status.
    answers: BTreeMap<u16, u32>,
}

/// What a visit found, in titles. Prints as words, nothing where nothing is different.
#[derive(Debug, Default, PartialEq)]
pub struct Visit {
    /// Entries never seen before.
    pub new: Vec<String>,
    /// Entries whose title or text is different.
    pub changed: Vec<String>,
    /// Entries of the last document that are not there any more.
    pub gone: Vec<String>,
    /// Entries seen before that were not in the last document.
    pub back: Vec<String>,
}

impl std::fmt::Display for Visit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let parts = [
            ("new", &self.new),
            ("changed", &self.changed),
            ("gone", &self.gone),
            ("back", &self.back),
        ];
        let said = parts.iter().filter(|(_, titles)| !titles.is_empty());
        let said: Vec<_> =
            said.map(|(word, titles)| format!("{word}: {}", titles.join(", "))).collect();
        f.write_str(&said.join("; "))
    }
}

impl Reader {
    pub fn new(net: &Net, feed: &str) -> Self {
        Self {
            net: net.clone(),
            feed: format!("{PUBLIC}/feeds/{feed}"),
            takes_deltas: false,
            etag: None,
            last_modified: None,
            seen: BTreeMap::new(),
            current: Vec::new(),
            gone: BTreeSet::new(),
            answers: BTreeMap::new(),
        }
    }

    /// Reads the feed.
    pub async fn visit(&mut self) -> Visit {
        let mut request = self.net.get(&self.feed);
        for (name, value) in
            [("if-none-match", &self.etag), ("if-modified-since", &self.last_modified)]
        {
            if let Some(value) = value {
                request = request.header(name, value);
            }
        }
        if self.takes_deltas {
            request = request.header("a-im", "feed");
        }
        let answer = request.send().await.unwrap();
        let (status, etag) = (answer.status().as_u16(), header(&answer, "etag"));
        *self.answers.entry(status).or_default() += 1;
        if status == 304 {
            let plain = self.net.get(&self.feed).send().await.unwrap();
            assert_eq!(header(&plain, "etag"), self.etag, "304 for what is not the same");
            return Visit::default();
        }
        assert_ne!(etag, self.etag, "the whole document though it was the same");
        assert!(etag.as_ref().is_some_and(|tag| tag.starts_with('"')), "a strong ETag: {etag:?}");
        let is_delta = status == 226;
        if is_delta {
            assert!(self.takes_deltas, "a delta for who did not ask for one");
            assert_eq!(header(&answer, "im").as_deref(), Some("feed"));
            assert_eq!(header(&answer, "delta-base"), self.etag, "the delta begins elsewhere");
        } else {
            assert_eq!((status, header(&answer, "im")), (200, None));
        }
        self.etag = etag;
        self.last_modified = header(&answer, "last-modified");
        self.take_in(Document::read(&answer.text().await.unwrap()), is_delta)
    }

    fn take_in(&mut self, document: Document, is_delta: bool) -> Visit {
        let mut visit = Visit::default();
        let before = self.current.clone();
        if !is_delta {
            self.current.clear();
        }
        self.current.retain(|id| !document.deletions.contains(id));
        self.gone.extend(document.deletions);
        for entry in document.entries {
            let (id, title) = (entry.id.clone(), entry.title.clone());
            self.gone.remove(&id);
            let said = (entry.title.clone(), entry.text.clone());
            match self.seen.insert(id.clone(), entry) {
                None => visit.new.push(title),
                Some(old) => {
                    if !before.contains(&id) {
                        visit.back.push(title.clone());
                    }
                    if (old.title, old.text) != said {
                        visit.changed.push(title);
                    }
                }
            }
            if !self.current.contains(&id) {
                self.current.push(id);
            }
        }
        for id in before.iter().filter(|id| !self.current.contains(id)) {
            visit.gone.push(self.seen[id].title.clone());
        }
        visit
    }

    /// The titles of the current entries, in their order.
    pub fn titles(&self) -> Vec<&str> {
        self.current.iter().map(|id| self.seen[id].title.as_str()).collect()
    }

    /// Every entry that it read and that was not said to be deleted.
    fn library(&self) -> Vec<&Entry> {
        self.seen.values().filter(|entry| !self.gone.contains(&entry.id)).collect()
    }
}

/// Two readers that always visit together, one with deltas: they know the same.
pub struct Followers {
    whole: Reader,
    delta: Reader,
}

impl Followers {
    pub fn new(net: &Net, feed: &str) -> Self {
        let delta = Reader { takes_deltas: true, ..Reader::new(net, feed) };
        Self { whole: Reader::new(net, feed), delta }
    }

    /// Both read the feed, and know the same then. `is_deleted`: whether the publisher took the
    /// entry of that title away.
    pub async fn visit(&mut self, is_deleted: impl Fn(&str) -> bool) {
        self.whole.visit().await;
        self.delta.visit().await;
        assert_eq!(self.whole.etag, self.delta.etag, "both have the same state now");
        assert_eq!(self.whole.library(), self.delta.library(), "what both have read");
        for id in &self.whole.current {
            assert!(self.delta.current.contains(id), "{id} is not there by deltas");
        }
        // What merely left the document stays with who merges; what was taken away does not.
        for id in self.delta.current.iter().filter(|id| !self.whole.current.contains(id)) {
            let title = &self.delta.seen[id].title;
            assert!(!is_deleted(title), "{title} was taken away and stands there by deltas");
        }
    }

    /// How often a delta was the answer, and how often the whole document was to who asked for one.
    pub fn answers(&self) -> (u32, u32) {
        let count = |status| self.delta.answers.get(&status).copied().unwrap_or_default();
        (count(226), count(200))
    }
}
