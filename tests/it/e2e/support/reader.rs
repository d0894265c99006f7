//! A feed reader: polls the reader view with conditional requests and keeps entries by their guid
//! or `atom:id`, as readers do.

use super::net::{Net, PUBLIC, header};
use crate::support::nodes::{is, text as text_of};
use std::collections::{BTreeMap, BTreeSet};
use tidegate_core::xml::ns::ATOM;

const TOMBSTONES: &str = "http://purl.org/atompub/tombstones/1.0";
const CONTENT: &str = "http://purl.org/rss/1.0/modules/content/";

/// The reader with what it has seen.
pub struct Reader {
    net: Net,
    feed: String,
    etag: Option<String>,
    last_modified: Option<String>,
    /// Every entry ever seen, by id.
    seen: BTreeMap<String, Entry>,
    /// The entries of the last document, in its order.
    pub current: Vec<String>,
    /// What the last document said to be deleted.
    pub deleted: BTreeSet<String>,
}

/// What a reader shows of an entry.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    pub title: String,
    pub text: String,
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
            etag: None,
            last_modified: None,
            seen: BTreeMap::new(),
            current: Vec::new(),
            deleted: BTreeSet::new(),
        }
    }

    /// Reads the feed.
    pub async fn visit(&mut self) -> Visit {
        let mut request = self.net.get(&self.feed);
        if let Some(etag) = &self.etag {
            request = request.header("if-none-match", etag);
        }
        if let Some(last_modified) = &self.last_modified {
            request = request.header("if-modified-since", last_modified);
        }
        let answer = request.send().await.unwrap();
        let etag = header(&answer, "etag");
        if answer.status() == 304 {
            let plain = self.net.get(&self.feed).send().await.unwrap();
            assert_eq!(header(&plain, "etag"), self.etag, "304 for what is not the same");
            return Visit::default();
        }
        assert_eq!(answer.status(), 200);
        assert_ne!(etag, self.etag, "the whole document though it was the same");
        assert!(etag.as_ref().is_some_and(|tag| tag.starts_with('"')), "a strong ETag: {etag:?}");
        self.etag = etag;
        self.last_modified = header(&answer, "last-modified");
        let text = answer.text().await.unwrap();
        self.take_in(&text)
    }

    fn take_in(&mut self, text: &str) -> Visit {
        let (entries, deleted) = entries(text);
        let mut visit = Visit::default();
        let before = std::mem::take(&mut self.current);
        for (id, entry) in entries {
            assert!(!self.current.contains(&id), "{id} stands there twice");
            let title = entry.title.clone();
            let was_there = before.contains(&id);
            match self.seen.insert(id.clone(), entry.clone()) {
                None => visit.new.push(title),
                Some(old) => {
                    if !was_there {
                        visit.back.push(title.clone());
                    }
                    if old != entry {
                        visit.changed.push(title);
                    }
                }
            }
            self.current.push(id);
        }
        for id in before.iter().filter(|id| !self.current.contains(id)) {
            visit.gone.push(self.seen[id].title.clone());
        }
        for id in &deleted {
            assert!(!self.current.contains(id), "{id} is deleted and there");
        }
        self.deleted = deleted;
        visit
    }

    /// The titles of the last document, in its order.
    pub fn titles(&self) -> Vec<&str> {
        self.current.iter().map(|id| self.seen[id].title.as_str()).collect()
    }
}

/// The entries of a document with their ids, and the ids that it says are deleted.
pub fn entries(text: &str) -> (Vec<(String, Entry)>, BTreeSet<String>) {
    let read = roxmltree::Document::parse(text);
    let read = read.unwrap_or_else(|error| panic!("{error}\n{text}"));
    let root = read.root_element();
    let atom = is(root, (ATOM, "feed"));
    let container = if atom {
        root
    } else {
        assert!(is(root, ("", "rss")), "{text}");
        assert_eq!(root.attribute("version"), Some("2.0"));
        root.children().find(|child| is(*child, ("", "channel"))).unwrap()
    };
    let mut entries = Vec::new();
    let mut deleted = BTreeSet::new();
    for element in container.children() {
        if is(element, (TOMBSTONES, "deleted-entry")) {
            deleted.insert(element.attribute("ref").unwrap().to_owned());
        }
        if !is(element, if atom { (ATOM, "entry") } else { ("", "item") }) {
            continue;
        }
        let value = |names: &[(&str, &str)]| text_of(element, names);
        let key = if atom { value(&[(ATOM, "id")]) } else { value(&[("", "guid")]) };
        let key = key.unwrap_or_else(|| panic!("an entry without id\n{text}"));
        let title = value(&[(ATOM, "title"), ("", "title")]).unwrap_or_default();
        let texts =
            [(ATOM, "content"), (ATOM, "summary"), ("", "description"), (CONTENT, "encoded")];
        let text = value(&texts).unwrap_or_default();
        entries.push((key, Entry { title, text }));
    }
    (entries, deleted)
}
