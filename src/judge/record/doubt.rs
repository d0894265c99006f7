//! Ill-formed documents of a feed whose documents are usually well-formed: a change of a known item counts only when it
//! is seen for the second time.
//!
//! Most readers reject such a document, and its publisher soon mends it. Until then the last good state is shown. New
//! entries are taken in at once unless they may be damaged, because no good state of them is lost. Entries that wait
//! for a second look are left out before the document is judged, also those of an ill-formed complete feed.

use super::draft::ChangeDraft;
use super::{Observation, head, shared};
use crate::news;
use crate::same_item::{self, MatchedEntry, Matching};
use foldhash::{HashSet, HashSetExt as _};
use tidegate_core::model::{
    BodyPrints, Completeness, Entry, FeedDocument, Flaw, FlawHistory, Incoming, LedgerEntry,
    Markup, Snapshot, Version,
};
use tidegate_format::parse::Before;
use xxhash_rust::xxh3::Xxh3;

/// What marks a byte that could not be read.
const REPLACED: char = '\u{FFFD}';

/// What of a document, and of the complete feed that it names, waits to be seen again.
pub(super) struct DocumentDoubt<'a> {
    observation: &'a Observation<'a>,
    /// The fingerprints of the document.
    pub(super) body: BodyPrints,
    /// The fingerprints of all that waits.
    prints: Vec<u64>,
    /// The fingerprints of the bytes of the entries that wait.
    entries: HashSet<u64>,
    /// Whether the document is doubted, whatever of it waits.
    is_document_doubted: bool,
    /// Whether one of the two is.
    pub(super) is_doubted: bool,
    /// Whether something of the document itself waits.
    is_of_document: bool,
}

/// How the feed's documents were read so far, for one with these fingerprints.
pub fn read_before(snapshot: Option<&Snapshot>, prints: BodyPrints) -> Option<Before<'_>> {
    let flaws = &snapshot?.state.flaws;
    let is_firm = flaws.body != prints.short() && !flaws.is_usual(Flaw::Bytes);
    flaws.charset.as_deref().map(|charset| Before { charset, is_firm })
}

impl<'a> DocumentDoubt<'a> {
    /// Looks at the head of a document and at what it and the complete feed share. The document is believed when it
    /// is seen again as it was.
    pub(super) fn new(
        observation: &'a Observation<'a>,
        document: &FeedDocument<'_>,
        complete: Option<&FeedDocument<'_>>,
        body: BodyPrints,
    ) -> Self {
        let state = observation.snapshot.map(|snapshot| &snapshot.state);
        let is_unlike = |document: &FeedDocument<'_>| {
            state.is_some_and(|s| s.flaws.charset.is_some() && !s.flaws.are_usual(document.flaws))
        };
        let is_new = state.is_some_and(|state| state.flaws.body != body.short());
        let is_document_doubted = is_new && is_unlike(document);
        let complete = complete.filter(|complete| is_unlike(complete));
        let mut doubt = Self {
            observation,
            body,
            prints: Vec::new(),
            entries: HashSet::new(),
            is_document_doubted,
            is_doubted: is_document_doubted || complete.is_some(),
            is_of_document: false,
        };
        if is_document_doubted {
            doubt.doubt_shared(document, true);
            let head_hash = head::print(&document.head);
            let is_told = state.is_some_and(|state| state.told.latest == head_hash);
            let is_full = document.completeness == Completeness::Full;
            if is_full && !observation.options.sharing.local && !is_told {
                doubt.wait_for(head_hash, true);
            }
        }
        if let Some(complete) = complete {
            doubt.doubt_shared(complete, false);
        }
        doubt
    }

    /// Doubts shared entries that say something else of what is known, or bear its name under another id.
    fn doubt_shared(&mut self, document: &FeedDocument<'_>, is_own: bool) {
        let Some(snapshot) = self.observation.snapshot else { return };
        let names = known_names(snapshot);
        for entry in &document.entries {
            let Some(incoming) = entry.shared() else { continue };
            // Garbage in the id of a known item makes another of it; one whose id is garbled bears its link.
            let is_another = || bears(&names, entry) || is_hurt(document, entry);
            let known = snapshot.find(incoming.id());
            if known.map_or_else(is_another, |known| differs(snapshot, known, entry, incoming)) {
                self.wait_for_entry(entry, is_own);
            }
        }
    }

    /// Doubts plain entries that say something else of what is known, or may be nothing that their publisher wrote.
    /// Where something of the document waits, answers it as far as it is believed: what it does not list may be what
    /// is broken in it, so that it is a part.
    pub(super) fn doubt_plain<'d>(
        &mut self,
        snapshot: &Snapshot,
        document: &FeedDocument<'d>,
        matching: &Matching,
    ) -> Option<FeedDocument<'d>> {
        if !self.is_document_doubted {
            return None;
        }
        let differs = |pair: &&MatchedEntry| {
            let entry = document.entries.get(pair.entry).map(news::hash_entry);
            entry != snapshot.known.get(pair.known).map(|known| known.bytes)
        };
        // What comes out of the ruins of a document may be no entry, or a part of one; a byte that was
        // lost may be a letter in another charset, which the second look tells.
        let is_ruin = matches!(document.completeness, Completeness::Salvaged(_));
        // One that bears a known name or link and still is another may be what a known one became there.
        let names = known_names(snapshot);
        let may_be_none = |at: &&usize| {
            let entry = document.entries.get(**at);
            is_ruin || entry.is_some_and(|entry| is_hurt(document, entry) || bears(&names, entry))
        };
        let differing = matching.pairs.iter().filter(differs).map(|pair| pair.entry);
        let doubtful = differing.chain(matching.fresh.iter().filter(may_be_none).copied());
        for entry in doubtful.filter_map(|at| document.entries.get(at)) {
            self.wait_for_entry(entry, true);
        }
        if !self.is_of_document || document.completeness != Completeness::Full {
            return None;
        }
        let reason = "it is ill-formed, as the feed is not else".to_owned();
        let mut believed = document.clone();
        believed.completeness = Completeness::Salvaged(reason);
        Some(believed)
    }

    fn wait_for_entry(&mut self, entry: &Entry<'_>, is_own: bool) {
        if self.wait_for(print(entry, self.observation), is_own) {
            self.entries.insert(news::hash_entry(entry));
        }
    }

    /// Notes that something waits, unless it is seen for the second time; returns whether it does.
    fn wait_for(&mut self, print: u64, is_own: bool) -> bool {
        let flaws = self.observation.snapshot.map(|snapshot| &snapshot.state.flaws);
        let waits = flaws.is_some_and(|flaws| flaws.doubted.binary_search(&print).is_err());
        if waits {
            self.prints.push(print);
            self.is_of_document |= is_own;
        }
        waits
    }

    /// Whether nothing is to be taken of an entry.
    pub(super) fn waits(&self, entry: &Entry<'_>) -> bool {
        !self.entries.is_empty() && self.entries.contains(&news::hash_entry(entry))
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
    pub(super) fn note(&self, draft: &mut ChangeDraft<'_>, document: &FeedDocument<'_>) {
        let Some(charset) = document.charset else { return };
        let flaws = &mut draft.state.flaws;
        flaws.note(document.flaws, flaws.charset.is_none());
        flaws.doubted.clone_from(&self.prints);
        flaws.doubted.sort_unstable();
        flaws.doubted.truncate(FlawHistory::DOUBTED_LIMIT);
        // One that is looked at again is believed, whatever holds it back.
        flaws.body = if flaws.are_usual(document.flaws) { 0 } else { self.body.short() };
        if self.prints.is_empty() || flaws.charset.is_none() {
            flaws.charset = Some(charset.to_owned());
        }
    }
}

/// The names and links that known items bear or bore.
fn known_names(snapshot: &Snapshot) -> HashSet<&str> {
    let known = snapshot.known.iter();
    known.flat_map(|known| known.names().chain(known.link.as_deref())).collect()
}

/// Whether an entry bears one of these.
fn bears(names: &HashSet<&str>, entry: &Entry<'_>) -> bool {
    names.contains(same_item::native(entry).as_str())
        || entry.link.as_deref().is_some_and(|link| names.contains(link))
}

/// Whether a merge of what an entry shares may change anything of its item.
fn differs(
    snapshot: &Snapshot,
    known: &LedgerEntry,
    entry: &Entry<'_>,
    incoming: &Incoming,
) -> bool {
    let conflicts = snapshot.conflicts.get(&known.id).map_or(&[][..], Vec::as_slice);
    let is_kept =
        |version: &Version<Markup>| conflicts.iter().any(|kept| kept.history == version.history);
    known.bytes != news::hash_entry(entry)
        || known.updates != incoming.version.updates
        || known.history != incoming.version.history
        || known.is_deleted() != incoming.version.deleted
        || known.extras != shared::extras_of(incoming)
        || !incoming.conflicts.iter().all(is_kept)
}

/// Whether bytes of an entry were lost.
fn is_hurt(document: &FeedDocument<'_>, entry: &Entry<'_>) -> bool {
    let id = entry.shared().map_or("", |incoming| incoming.id().as_str());
    let is_replaced = || entry.markup.contains(REPLACED) || id.contains(REPLACED);
    document.flaws.contains(Flaw::Bytes) && is_replaced()
}

/// The fingerprint of what a reader sees of an entry, and of what it shares.
fn print(entry: &Entry<'_>, observation: &Observation<'_>) -> u64 {
    let mut hash = Xxh3::new();
    hash.update(same_item::native(entry).as_bytes());
    for (path, value) in news::fingerprint(entry, &observation.options.ignore).prints {
        hash.update(&path.to_le_bytes());
        hash.update(&value.to_le_bytes());
    }
    if let Some(incoming) = entry.shared() {
        for version in
            incoming.conflicts.iter().map(|c| c.with(())).chain([incoming.version.with(())])
        {
            hash.update(format!("{version:?}").as_bytes());
        }
    }
    hash.digest()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{read, rss, with_observation};
    use tidegate_core::model::{Format, Time};

    #[test]
    fn what_bears_a_known_name_or_link_and_is_none_waits_in_an_ill_formed_document() {
        let now = Time::from_unix(1_767_300_000);
        let link = Some("https://a.example/1".to_owned());
        let known = LedgerEntry { link, ..LedgerEntry::left("urn:a") };
        let mut snapshot = Snapshot::untouched(Format::Rss20, now).with_stubs([known]);
        snapshot.state.flaws.charset = Some("UTF-8".to_owned());
        let post = |id: &str, link: &str| {
            format!(
                "<item><guid isPermaLink='false'>{id}</guid><title>Fish & chips</title>\
                 <link>https://a.example/{link}</link></item>"
            )
        };
        let text = rss(&[post("urn:a", "2"), post("urn:b", "1"), post("urn:c", "3")].concat());
        let document = read(&text);
        let names = same_item::natives(&document);
        let matching = Matching { names, fresh: vec![0, 1, 2], ..Matching::default() };
        let waits: Vec<bool> = with_observation(&snapshot, now, |observation| {
            let body = BodyPrints { wire: 1, body: 1 };
            let mut doubt = DocumentDoubt::new(observation, &document, None, body);
            doubt.doubt_plain(&snapshot, &document, &matching);
            document.entries.iter().map(|entry| doubt.waits(entry)).collect()
        });
        assert_eq!(waits, [true, true, false]);
    }
}
