//! What an ill-formed document is believed, of a feed whose documents are not so else: nothing that
//! changes an item, before it was seen twice.
//!
//! Most readers refuse such a document, and a publisher who sees it mends it at once. So what was last
//! good is shown meanwhile. What the document brings that is new is taken, for nothing of it was good
//! before; a document that says nothing else of what is known is like any other. Entries that wait are
//! left out before anything is judged, those of an ill-formed complete feed as well.

use super::draft::ChangeDraft;
use super::{Observation, head, shared};
use crate::news;
use crate::same_item;
use std::collections::HashSet;
use tidegate_core::model::{
    BodyPrints, Completeness, Entry, FeedDocument, Flaw, FlawHistory, Incoming, LedgerEntry,
    Markup, Snapshot, Version,
};
use tidegate_format::parse::Before;
use xxhash_rust::xxh3::Xxh3;

/// What marks a byte that could not be read.
const REPLACED: char = '\u{FFFD}';

/// What of a document, and of the complete feed that it names, waits to be seen again.
#[derive(Debug, Default)]
pub(super) struct DocumentDoubt {
    /// The fingerprints of all that waits.
    prints: Vec<u64>,
    /// The fingerprints of the bytes of the entries that wait.
    entries: HashSet<u64>,
    /// Whether one of the two is doubted, whatever of it waits.
    pub(super) is_doubted: bool,
    /// Whether something of the document itself waits.
    pub(super) is_of_document: bool,
}

/// How the feed's documents were read so far, for one with these fingerprints.
pub fn read_before(snapshot: Option<&Snapshot>, prints: BodyPrints) -> Option<Before<'_>> {
    let flaws = &snapshot?.state.flaws;
    let is_firm = flaws.body != prints.short() && !flaws.is_usual(Flaw::Bytes);
    flaws.charset.as_deref().map(|charset| Before { charset, is_firm })
}

impl DocumentDoubt {
    /// Looks at a document. Where something of it waits, answers it as far as it is believed: what it
    /// does not list may be what is broken in it, so that it is a part. `prints`: its fingerprints,
    /// where it is believed when it is seen again as it was.
    pub(super) fn believed<'a>(
        &mut self,
        round: &Observation<'_>,
        document: &FeedDocument<'a>,
        prints: Option<BodyPrints>,
    ) -> Option<FeedDocument<'a>> {
        let snapshot = round.snapshot?;
        let flaws = &snapshot.state.flaws;
        let is_like_others = flaws.charset.is_none() || flaws.are_usual(document.flaws);
        let is_seen_again = prints.is_some_and(|prints| flaws.body == prints.short());
        if is_like_others || is_seen_again {
            return None;
        }
        self.is_doubted = true;
        let before = self.prints.len();
        let waits = |print: &u64| flaws.doubted.binary_search(print).is_err();
        let known = KnownEntries::new(snapshot);
        for entry in document.entries.iter().filter(|entry| known.is_doubtful(document, entry)) {
            let print = Some(print(entry, round)).filter(waits);
            self.entries.extend(print.map(|_| news::bytes_print(entry)));
            self.prints.extend(print);
        }
        let said = head::print(&document.head);
        let is_head = prints.is_some() && document.completeness == Completeness::Full;
        if is_head && !round.options.sharing.local && said != snapshot.state.told.latest {
            self.prints.extend(Some(said).filter(waits));
        }
        if self.prints.len() == before {
            return None;
        }
        self.is_of_document |= prints.is_some();
        let mut believed = document.clone();
        if believed.completeness == Completeness::Full {
            let reason = "it is ill-formed, as the feed is not else".to_owned();
            believed.completeness = Completeness::Salvaged(reason);
        }
        Some(believed)
    }

    /// Whether nothing is to be taken of an entry.
    pub(super) fn waits(&self, entry: &Entry<'_>) -> bool {
        !self.entries.is_empty() && self.entries.contains(&news::bytes_print(entry))
    }

    /// What is said of it, where anything waits.
    pub(super) fn describe(&self) -> Option<String> {
        let what = if self.is_of_document { "document" } else { "complete feed that it names" };
        let waits = self.prints.len().min(FlawHistory::DOUBTED_LIMIT);
        let words = format!(
            "the {what} is ill-formed, as the feed is not else; changes that wait until they are seen \
             again: {waits}"
        );
        (waits > 0).then_some(words)
    }

    /// Takes in how a document was formed, and what waits.
    pub(super) fn note(
        &self,
        draft: &mut ChangeDraft<'_>,
        document: &FeedDocument<'_>,
        prints: BodyPrints,
    ) {
        let Some(charset) = document.charset else { return };
        let before = draft.state.flaws.clone();
        let flaws = &mut draft.state.flaws;
        flaws.note(document.flaws, flaws.charset.is_none());
        flaws.doubted.clone_from(&self.prints);
        flaws.doubted.sort_unstable();
        flaws.doubted.truncate(FlawHistory::DOUBTED_LIMIT);
        // One that is looked at again is believed, whatever holds it back.
        flaws.body = if flaws.are_usual(document.flaws) { 0 } else { prints.short() };
        if self.prints.is_empty() || flaws.charset.is_none() {
            flaws.charset = Some(charset.to_owned());
        }
        draft.state_changed |= *flaws != before;
    }
}

/// What is known of the entries that a document may list.
struct KnownEntries<'a> {
    snapshot: &'a Snapshot,
    /// The names that they bear or bore.
    names: HashSet<&'a str>,
    links: HashSet<&'a str>,
    /// The names with the fingerprints of the bytes.
    bytes: HashSet<(&'a str, u64)>,
}

impl<'a> KnownEntries<'a> {
    fn new(snapshot: &'a Snapshot) -> Self {
        let all = || snapshot.known.iter();
        let names = all().flat_map(|k| k.aliases.iter().chain([&k.native_shown, &k.published_id]));
        Self {
            snapshot,
            names: names.map(String::as_str).collect(),
            links: all().filter_map(|known| known.link.as_deref()).collect(),
            bytes: all().map(|known| (known.native_shown.as_str(), known.bytes)).collect(),
        }
    }

    /// Whether an entry says something else of what is known, or may be nothing that its publisher wrote.
    fn is_doubtful(&self, document: &FeedDocument<'_>, entry: &Entry<'_>) -> bool {
        let shown = same_item::native(entry);
        // One whose id is garbled bears its link.
        let is_known = self.names.contains(shown.as_str())
            || entry.link.as_deref().is_some_and(|link| self.links.contains(link));
        if let Some(said) = entry.shared() {
            let hurt = || document.flaws.contains(Flaw::Bytes) && is_hurt(entry);
            // Garbage in the id of a known item makes another of it.
            let known = self.snapshot.find(said.id());
            return known
                .map_or_else(|| is_known || hurt(), |known| self.differs(known, entry, said));
        }
        if is_known {
            return !self.bytes.contains(&(shown.as_str(), news::bytes_print(entry)));
        }
        // What comes out of the ruins of a document may be no entry, or a part of one; a byte that was
        // lost may be a letter in another charset, which the second look tells.
        matches!(document.completeness, Completeness::Salvaged(_))
            || document.flaws.contains(Flaw::Bytes) && is_hurt(entry)
    }

    /// Whether a merge of what an entry shares may change anything of its item.
    fn differs(&self, known: &LedgerEntry, entry: &Entry<'_>, said: &Incoming) -> bool {
        let conflicts = self.snapshot.conflicts.get(&known.id).map_or(&[][..], Vec::as_slice);
        let is_kept = |version: &Version<Markup>| {
            conflicts.iter().any(|kept| kept.history == version.history)
        };
        known.bytes != news::bytes_print(entry)
            || known.updates != said.version.updates
            || known.history != said.version.history
            || known.is_deleted() != said.version.deleted
            || known.extras != shared::extras_of(said)
            || !said.conflicts.iter().all(is_kept)
    }
}

/// Whether bytes of an entry were lost.
fn is_hurt(entry: &Entry<'_>) -> bool {
    let id = entry.shared().map_or("", |said| said.id().as_str());
    entry.markup.contains(REPLACED) || id.contains(REPLACED)
}

/// The fingerprint of what a reader sees of an entry, and of what it shares.
fn print(entry: &Entry<'_>, round: &Observation<'_>) -> u64 {
    let mut hash = Xxh3::new();
    hash.update(same_item::native(entry).as_bytes());
    for (path, value) in news::fingerprint(entry, &round.options.ignore).prints {
        hash.update(&path.to_le_bytes());
        hash.update(&value.to_le_bytes());
    }
    if let Some(said) = entry.shared() {
        for version in said.conflicts.iter().map(|c| c.with(())).chain([said.version.with(())]) {
            hash.update(format!("{version:?}").as_bytes());
        }
    }
    hash.digest()
}
