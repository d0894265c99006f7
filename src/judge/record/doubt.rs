//! What an ill-formed document is believed, of a feed whose documents are not so else: nothing that
//! changes an item, before it was seen twice.
//!
//! Most readers refuse such a document, and a publisher who sees it mends it at once. So what was last
//! good is shown meanwhile. What the document brings that is new is taken, for nothing of it was good
//! before; a document that says nothing else of what is known is like any other. What its entries share
//! is merged by the same rule, and so is what an ill-formed complete feed lists.

use super::Observation;
use super::compare::ChangedEntry;
use super::draft::ChangeDraft;
use super::head;
use super::shared::{self, Peers, SharedSplit};
use crate::diff;
use crate::identity::{self, MatchedEntry, Matching, Native};
use std::collections::HashSet;
use tidegate_core::model::{
    BodyPrints, Completeness, Entry, FeedDocument, Flaw, FlawHistory, Incoming, LedgerEntry,
    Markup, Snapshot, SyncId, Version,
};
use tidegate_format::parse::Before;
use xxhash_rust::xxh3::Xxh3;

/// What marks a byte that could not be read.
const REPLACED: char = '\u{FFFD}';

/// Which changes of a document wait to be seen again.
#[derive(Debug)]
pub(super) struct DoubtfulChanges {
    /// Of each pair of the matching, whether it waits.
    pairs: Vec<bool>,
    /// The entries that wait.
    fresh: HashSet<usize>,
    /// The fingerprints of all that waits.
    prints: Vec<u64>,
    /// Whether it is the document that is doubted, and not only what it leads to.
    pub(super) is_of_document: bool,
}

/// Which shared entries of a document, and of a complete feed, wait to be seen again.
#[derive(Debug, Default)]
pub(super) struct SharedDoubt {
    document: HashSet<SyncId>,
    complete: HashSet<SyncId>,
    prints: Vec<u64>,
    /// Whether the document or the complete feed is doubted, whatever of it waits.
    pub(super) is_doubted: bool,
}

/// How the feed's documents were read so far, for one with these fingerprints.
pub fn read_before(snapshot: Option<&Snapshot>, prints: BodyPrints) -> Option<Before<'_>> {
    let flaws = &snapshot?.state.flaws;
    let is_firm = flaws.body != prints.short() && !flaws.is_usual(Flaw::Bytes);
    flaws.charset.as_deref().map(|charset| Before { charset, is_firm })
}

impl DoubtfulChanges {
    /// What of a document waits; `None` where nothing does.
    pub(super) fn new(
        round: &Observation<'_>,
        document: &FeedDocument<'_>,
        prints: BodyPrints,
        names: &[Native],
        (matching, compared): (&Matching, &[Option<ChangedEntry>]),
        shared: Vec<u64>,
    ) -> Option<Self> {
        let state = &round.snapshot?.state;
        let is_of_document = doubted(round, document, Some(prints)).is_some();
        let (pairs, fresh) = (Vec::new(), HashSet::new());
        let mut doubt = Self { pairs, fresh, prints: shared, is_of_document };
        if !is_of_document {
            return doubt.settled();
        }
        let flaws = &state.flaws;
        for (pair, compared) in matching.pairs.iter().zip(compared) {
            let print = changed_print(*pair, names, compared.as_ref());
            doubt.pairs.push(print.is_some_and(|print| doubt.prints.wait(print, flaws)));
        }
        // What comes out of the ruins of a document may be no entry, or a part of one.
        let is_salvaged = matches!(document.completeness, Completeness::Salvaged(_));
        for at in &matching.fresh {
            // A byte that was lost may be a letter in another charset, which the second look tells.
            let Some(entry) = document.entries.get(*at) else { continue };
            let is_lossy = document.flaws.contains(Flaw::Bytes) && entry.markup.contains(REPLACED);
            let is_hurt = is_salvaged || is_lossy;
            let print = xxhash_rust::xxh3::xxh3_64(entry.markup.as_bytes());
            if is_hurt && doubt.prints.wait(print, flaws) {
                doubt.fresh.insert(*at);
            }
        }
        let said = head::print(&document.head);
        let is_theirs = !round.options.sharing.local;
        if is_theirs && document.completeness == Completeness::Full && said != state.told.latest {
            doubt.prints.wait(said, flaws);
        }
        doubt.settled()
    }

    /// It, where anything waits.
    fn settled(mut self) -> Option<Self> {
        self.prints.sort_unstable();
        self.prints.truncate(FlawHistory::DOUBTED_LIMIT);
        (!self.prints.is_empty()).then_some(self)
    }

    /// The document as far as it is believed: what it does not list may be what is broken in it.
    pub(super) fn believed<'a>(&self, document: &FeedDocument<'a>) -> FeedDocument<'a> {
        let mut believed = document.clone();
        if self.is_of_document && believed.completeness == Completeness::Full {
            let reason = "it is ill-formed, as the feed is not else".to_owned();
            believed.completeness = Completeness::Salvaged(reason);
        }
        believed
    }

    /// The pairs and new entries that do not wait.
    pub(super) fn rest(
        &self,
        matching: &Matching,
        compared: Vec<Option<ChangedEntry>>,
    ) -> (Matching, Vec<Option<ChangedEntry>>) {
        let waits = || self.pairs.iter().copied().chain(std::iter::repeat(false));
        let pairs = matching.pairs.iter().zip(waits()).filter(|(_, waits)| !waits);
        let fresh = matching.fresh.iter().filter(|at| !self.fresh.contains(*at));
        let rest = Matching {
            pairs: pairs.map(|(pair, _)| *pair).collect(),
            fresh: fresh.copied().collect(),
            ..matching.clone()
        };
        let compared = compared.into_iter().zip(waits()).filter(|(_, waits)| !waits);
        (rest, compared.map(|(compared, _)| compared).collect())
    }

    /// What is said of it.
    pub(super) fn describe(&self) -> String {
        let what = if self.is_of_document { "document" } else { "complete feed that it names" };
        let waits = self.prints.len();
        format!(
            "the {what} is ill-formed, as the feed is not else; changes that wait until they are seen \
             again: {waits}"
        )
    }
}

/// The flaws that are known of the feed, where a document has others. `prints`: its fingerprints, where
/// it is believed when it is seen again as it was.
fn doubted<'a>(
    round: &Observation<'a>,
    document: &FeedDocument<'_>,
    prints: Option<BodyPrints>,
) -> Option<&'a FlawHistory> {
    let flaws = &round.snapshot?.state.flaws;
    let is_like_others = flaws.charset.is_none() || flaws.are_usual(document.flaws);
    let is_seen_again = prints.is_some_and(|prints| flaws.body == prints.short());
    (!is_like_others && !is_seen_again).then_some(flaws)
}

/// Whether a document is formed like the feed's others, or was seen before as it is.
pub(super) fn is_believed(
    round: &Observation<'_>,
    document: &FeedDocument<'_>,
    prints: BodyPrints,
) -> bool {
    doubted(round, document, Some(prints)).is_none()
}

impl SharedDoubt {
    /// What of the shared entries waits.
    pub(super) fn new(
        round: &Observation<'_>,
        parts: &SharedSplit<'_>,
        document: &FeedDocument<'_>,
        peers: &Peers<'_>,
        prints: BodyPrints,
    ) -> Self {
        let mut doubt = Self::default();
        if let Some(flaws) = doubted(round, document, Some(prints)) {
            doubt.document = doubt.waiting(flaws, parts, document);
        }
        if let Some(complete) = peers.complete
            && let Some(flaws) = doubted(round, complete, None)
        {
            doubt.complete = doubt.waiting(flaws, parts, complete);
        }
        doubt
    }

    /// The items of which an ill-formed document says something that was not seen before.
    fn waiting(
        &mut self,
        flaws: &FlawHistory,
        parts: &SharedSplit<'_>,
        document: &FeedDocument<'_>,
    ) -> HashSet<SyncId> {
        self.is_doubted = true;
        let known = parts.whole.known.iter();
        let natives: HashSet<&str> = known.map(|known| known.native_shown.as_str()).collect();
        let mut waiting = HashSet::new();
        for entry in &document.entries {
            let Some(said) = entry.shared() else { continue };
            let known = parts.shared.get(said.id()).and_then(|at| parts.whole.known.get(*at));
            let is_news = match known {
                Some(known) => differs(&parts.whole, known, entry, said),
                // Garbage in the id of a known item makes another of it.
                None => {
                    let bytes = document.flaws.contains(Flaw::Bytes) && is_hurt(entry, said);
                    bytes || natives.contains(identity::native(entry).shown.as_str())
                }
            };
            if is_news && self.prints.wait(offered_print(entry, said), flaws) {
                waiting.insert(said.id().clone());
            }
        }
        waiting
    }

    /// Whether what the document, or the complete feed, says of an item waits.
    pub(super) fn waits(&self, is_of_complete: bool, id: &SyncId) -> bool {
        if is_of_complete { self.complete.contains(id) } else { self.document.contains(id) }
    }

    /// The fingerprints of all that waits.
    pub(super) fn into_prints(self) -> Vec<u64> {
        self.prints
    }
}

/// Whether a merge of what an entry shares may change anything of its item.
fn differs(whole: &Snapshot, known: &LedgerEntry, entry: &Entry<'_>, said: &Incoming) -> bool {
    let conflicts: &[Version<Markup>] = whole.conflicts.get(&known.id).map_or(&[], Vec::as_slice);
    let is_kept =
        |version: &Version<Markup>| conflicts.iter().any(|kept| kept.history == version.history);
    known.bytes != diff::bytes_print(entry)
        || known.updates != said.version.updates
        || known.history != said.version.history
        || known.is_deleted() != said.version.deleted
        || known.extras != shared::extras_of(said)
        || !said.conflicts.iter().all(is_kept)
}

/// Whether bytes of what an entry shares were lost.
fn is_hurt(entry: &Entry<'_>, said: &Incoming) -> bool {
    entry.markup.contains(REPLACED) || said.id().as_str().contains(REPLACED)
}

/// The fingerprint of what an entry shares.
fn offered_print(entry: &Entry<'_>, said: &Incoming) -> u64 {
    let mut hash = Xxh3::new();
    hash.update(said.id().as_str().as_bytes());
    hash.update(&diff::bytes_print(entry).to_le_bytes());
    for version in said.conflicts.iter().map(|c| c.with(())).chain([said.version.with(())]) {
        hash.update(format!("{version:?}").as_bytes());
    }
    hash.digest()
}

/// Takes in how a document was formed, and what of it waits.
pub(super) fn note(
    draft: &mut ChangeDraft<'_>,
    document: &FeedDocument<'_>,
    prints: BodyPrints,
    doubt: Option<&DoubtfulChanges>,
) {
    let Some(charset) = document.charset else { return };
    let before = draft.state.flaws.clone();
    let flaws = &mut draft.state.flaws;
    flaws.note(document.flaws, flaws.charset.is_none());
    flaws.doubted = doubt.map(|doubt| doubt.prints.clone()).unwrap_or_default();
    // One that is looked at again is believed, whatever holds it back.
    flaws.body = if flaws.are_usual(document.flaws) { 0 } else { prints.short() };
    if doubt.is_none() || flaws.charset.is_none() {
        flaws.charset = Some(charset.to_owned());
    }
    draft.state_changed |= *flaws != before;
}

trait Wait {
    /// Whether a change waits: it was not seen before.
    fn wait(&mut self, print: u64, before: &FlawHistory) -> bool;
}

impl Wait for Vec<u64> {
    fn wait(&mut self, print: u64, before: &FlawHistory) -> bool {
        let waits = before.doubted.binary_search(&print).is_err();
        if waits {
            self.push(print);
        }
        waits
    }
}

/// The fingerprint of what an entry says beside its item, where that is another thing.
fn changed_print(
    pair: MatchedEntry,
    names: &[Native],
    compared: Option<&ChangedEntry>,
) -> Option<u64> {
    let compared = compared.filter(|compared| !compared.same_bytes)?;
    let mut hash = Xxh3::new();
    hash.update(names.get(pair.entry)?.shown.as_bytes());
    compared.hash_into(&mut hash);
    Some(hash.digest())
}
