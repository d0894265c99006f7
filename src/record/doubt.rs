//! What an ill-formed document is believed, of a feed whose documents are not so else: nothing that
//! changes an item, before it was seen twice.
//!
//! Most readers refuse such a document, and a publisher who sees it mends it at once. So what was last
//! good is shown meanwhile. What the document brings that is new is taken, for nothing of it was good
//! before; a document that says nothing else of what is known is like any other.

use super::compare::Compared;
use super::draft::Draft;
use super::head;
use super::{BodyPrints, Round};
use crate::identity::{Matching, Native, Pair};
use crate::model::{Completeness, FeedDocument, Flaw, FlawHistory, Snapshot};
use crate::parse::Before;
use std::collections::HashSet;
use xxhash_rust::xxh3::Xxh3;

/// What marks a byte that could not be read.
const REPLACED: char = '\u{FFFD}';

/// Which changes of a document wait to be seen again.
#[derive(Debug)]
pub(super) struct Doubt {
    /// Of each pair of the matching, whether it waits.
    pairs: Vec<bool>,
    /// The entries that wait.
    fresh: HashSet<usize>,
    /// The fingerprints of all that waits.
    prints: Vec<u64>,
}

/// How the feed's documents were read so far, for one with these fingerprints.
pub fn read_before(snapshot: Option<&Snapshot>, prints: BodyPrints) -> Option<Before<'_>> {
    let flaws = &snapshot?.state.flaws;
    let is_firm = flaws.body != short(prints) && !flaws.is_usual(Flaw::Bytes);
    flaws.charset.as_deref().map(|charset| Before { charset, is_firm })
}

/// The part of a fingerprint that is enough to tell two documents of a feed apart; never 0.
#[allow(clippy::cast_possible_truncation)]
fn short(prints: BodyPrints) -> u64 {
    (prints.body as u64).max(1)
}

impl Doubt {
    /// What of a document waits; `None` where nothing does.
    pub(super) fn of(
        round: &Round<'_>,
        document: &FeedDocument<'_>,
        prints: BodyPrints,
        names: &[Native],
        (matching, compared): (&Matching, &[Option<Compared>]),
    ) -> Option<Self> {
        let state = &round.snapshot?.state;
        let flaws = &state.flaws;
        let is_like_others = flaws.charset.is_none() || flaws.are_usual(document.flaws);
        if is_like_others || flaws.body == short(prints) {
            return None;
        }
        let mut doubt = Self { pairs: Vec::new(), fresh: HashSet::new(), prints: Vec::new() };
        for (pair, compared) in matching.pairs.iter().zip(compared) {
            let print = changed_print(*pair, names, compared.as_ref());
            doubt.pairs.push(print.is_some_and(|print| doubt.prints.wait(print, flaws)));
        }
        for at in &matching.fresh {
            // A byte that was lost may be a letter in another charset, which the second look tells.
            let Some(entry) = document.entries.get(*at) else { continue };
            let is_hurt = document.flaws.has(Flaw::Bytes) && entry.markup.contains(REPLACED);
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
        doubt.prints.sort_unstable();
        doubt.prints.truncate(FlawHistory::DOUBTED_LIMIT);
        (!doubt.prints.is_empty()).then_some(doubt)
    }

    /// The document as far as it is believed: what it does not list may be what is broken in it.
    pub(super) fn believed<'a>(&self, document: &FeedDocument<'a>) -> FeedDocument<'a> {
        let mut believed = document.clone();
        if believed.completeness == Completeness::Full {
            let reason = "it is ill-formed, as the feed is not else".to_owned();
            believed.completeness = Completeness::Salvaged(reason);
        }
        believed
    }

    /// The pairs and new entries that do not wait.
    pub(super) fn rest(
        &self,
        matching: &Matching,
        compared: Vec<Option<Compared>>,
    ) -> (Matching, Vec<Option<Compared>>) {
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
    pub(super) fn words(&self) -> String {
        let waits = self.prints.len();
        format!(
            "the document is ill-formed, as the feed is not else; changes that wait until they are \
             seen again: {waits}"
        )
    }
}

/// Takes in how a document was formed, and what of it waits.
pub(super) fn note(
    draft: &mut Draft<'_>,
    document: &FeedDocument<'_>,
    prints: BodyPrints,
    doubt: Option<&Doubt>,
) {
    let Some(charset) = document.charset else { return };
    let before = draft.state.flaws.clone();
    let flaws = &mut draft.state.flaws;
    flaws.note(document.flaws, flaws.charset.is_none());
    flaws.doubted = doubt.map(|doubt| doubt.prints.clone()).unwrap_or_default();
    // One that is looked at again is believed, whatever holds it back.
    flaws.body = if flaws.are_usual(document.flaws) { 0 } else { short(prints) };
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
fn changed_print(pair: Pair, names: &[Native], compared: Option<&Compared>) -> Option<u64> {
    let compared = compared.filter(|compared| !compared.same_bytes)?;
    let mut hash = Xxh3::new();
    hash.update(names.get(pair.entry)?.shown.as_bytes());
    compared.hash_into(&mut hash);
    Some(hash.digest())
}
