//! Those who keep a copy of the feed, each to the letter of its specification and of nothing else.

use super::site::{READER, SYNC, Site};
use crate::support::document::{Document, Entry};
use std::collections::BTreeMap;

const ARCHIVES_LIMIT: usize = 10_000;

/// Follows Feed History draft-05 section 6 (as READINGS 3 reads it) or RFC 5005 section 4.
#[derive(Debug, Clone)]
pub struct Historian {
    relation: &'static str,
    /// Whether it honours `at:deleted-entry`.
    pub honours: bool,
    last: Option<String>,
    /// Its local store, by `atom:id` or `guid`.
    pub entries: BTreeMap<String, Entry>,
    pub missing: Vec<String>,
}

impl Historian {
    /// By RFC 5005 with deletions and without, and by the draft.
    pub fn all() -> [Self; 3] {
        [("prev-archive", true), ("prev-archive", false), ("previous", false)].map(
            |(relation, honours)| {
                let (last, entries, missing) = (None, BTreeMap::new(), Vec::new());
                Self { relation, honours, last, entries, missing }
            },
        )
    }

    pub async fn consume(&mut self, site: &Site) {
        let subscription = Document::read(&site.text(READER).await);
        assert!(!subscription.is_archive && !subscription.is_complete);
        let mut unread: Vec<(String, Document)> = Vec::new();
        let mut previous = subscription.link(self.relation).map(str::to_owned);
        let mut newer: Option<(String, String)> = None;
        while let Some(address) = previous.take().filter(|p| Some(p) != self.last.as_ref()) {
            assert!(unread.len() < ARCHIVES_LIMIT);
            let (status, _, text) = site.ask(&address).await;
            if status != 200 {
                assert_eq!(status, 410, "{address}: {text}");
                self.missing.push(address);
                break;
            }
            let archive = Document::read(&text);
            assert!(archive.is_archive, "{text}");
            assert_eq!(archive.link("current"), Some(READER));
            assert_eq!(archive.link("self"), Some(address.as_str()));
            // An archive leads to the next one, and was updated before it.
            let next = newer.as_ref().map(|(address, _)| address.as_str());
            assert_eq!(archive.link("next-archive"), next, "{address}");
            let later = newer.as_ref().map_or(&subscription.updated, |(_, updated)| updated);
            assert!(archive.updated < *later || later.is_empty(), "{address}: {text}");
            newer = Some((address.clone(), archive.updated.clone()));
            previous = archive.link(self.relation).map(str::to_owned);
            unread.push((address, archive));
        }
        while let Some((address, archive)) = unread.pop() {
            self.take(&archive);
            self.last = Some(address);
        }
        self.take(&subscription);
    }

    fn take(&mut self, document: &Document) {
        for entry in &document.entries {
            assert!(!entry.deleted, "a tombstone shown as an entry");
            self.entries.insert(entry.id.clone(), entry.clone());
        }
        if self.honours {
            for id in &document.deletions {
                self.entries.remove(id);
            }
        }
    }
}

/// How a subscriber asks for the sync view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// For all of its window.
    Window,
    /// For what came after the `until` that it cached.
    Since,
    Delta,
}

/// Follows SSE 1.0 section 4.1. It publishes nothing itself, and there is one endpoint only, so
/// that the greater number of updates wins every merge.
#[derive(Debug, Clone)]
pub struct Subscriber {
    way: Way,
    until: Option<String>,
    tag: Option<String>,
    /// Its local store, by sync id.
    pub entries: BTreeMap<String, Entry>,
    pub resets: u32,
    pub deltas: u32,
}

impl Subscriber {
    pub fn new(way: Way) -> Self {
        Self { way, until: None, tag: None, entries: BTreeMap::new(), resets: 0, deltas: 0 }
    }

    /// The document that it is answered; `None` where it has all of it.
    async fn read(&mut self, site: &Site) -> Option<Document> {
        let address = match (self.way, &self.until) {
            (Way::Since, Some(until)) => format!("{SYNC}?since={until}"),
            _ => SYNC.to_owned(),
        };
        if self.way != Way::Delta {
            return Some(Document::read(&site.text(&address).await));
        }
        let (is_delta, text) = site.delta(&address, &mut self.tag).await?;
        self.deltas += u32::from(is_delta);
        Some(Document::read(&text))
    }

    pub async fn consume(&mut self, site: &Site) {
        let Some(partial) = self.read(site).await else { return };
        let (since, until) = (partial.since.clone().unwrap(), partial.until.clone().unwrap());
        match &self.until {
            // Section 4.1.2: compared by code points.
            Some(cached) if since <= *cached => {
                self.merge(&partial);
                self.until = Some(until);
            }
            cached => {
                self.resets += u32::from(cached.is_some());
                let complete = Document::read(&site.text(&partial.related.unwrap()).await);
                self.entries.clear();
                self.merge(&complete);
                // READINGS 1, row 28.
                self.until = Some(until.min(complete.until.unwrap()));
            }
        }
    }

    fn merge(&mut self, document: &Document) {
        for entry in &document.entries {
            let old = self.entries.get(&entry.sync_id);
            if old.is_none_or(|old| old.updates <= entry.updates) {
                self.entries.insert(entry.sync_id.clone(), entry.clone());
            }
        }
    }
}

/// Two feed readers that visit together, one of them with deltas. What they read they keep by `atom:id` or `guid`.
#[derive(Debug, Default)]
pub struct Readers {
    tag: Option<String>,
    pub by_deltas: BTreeMap<String, Entry>,
    pub whole: BTreeMap<String, Entry>,
    pub deltas: u32,
    /// How often it got a whole document where it asked for one.
    pub wholes: u32,
}

impl Readers {
    pub async fn visit(&mut self, site: &Site) {
        let (_, headers, text) = site.ask(READER).await;
        let by_id = |document: &Document| {
            let entries = document.entries.iter().map(|entry| (entry.id.clone(), entry.clone()));
            entries.collect::<BTreeMap<_, _>>()
        };
        self.whole = by_id(&Document::read(&text));
        let has_tag = self.tag.is_some();
        if let Some((is_delta, text)) = site.delta(READER, &mut self.tag).await {
            let document = Document::read(&text);
            if !is_delta {
                self.by_deltas.clear();
                self.wholes += u32::from(has_tag);
            }
            self.deltas += u32::from(is_delta);
            self.by_deltas.retain(|id, _| !document.deletions.contains(id));
            self.by_deltas.extend(by_id(&document));
        }
        assert_eq!(self.tag.as_deref(), headers["etag"].to_str().ok(), "both have one state now");
    }
}
