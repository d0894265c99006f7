//! A document's entries beside the items that they are.

use super::Observation;
use super::outline_moves::PARENT;
use crate::news::{self, Fingerprint, MaskInput, MaskUpdate};
use crate::same_item::MatchedEntry;
use std::collections::BTreeSet;
use tidegate_core::model::{
    Entry, FeedDocument, LedgerEntry, NoiseClass, NoiseClasses, Snapshot, Time, Unseen, WaitCause,
    WaitingChange,
};
use tidegate_core::xml::plain_address::{path_without_query, plain_link};

/// An entry that differs from its item.
pub(super) struct ChangedEntry<'a> {
    entry: &'a Entry<'a>,
    known: &'a LedgerEntry,
    fingerprint: Fingerprint<'a>,
    bytes: u64,
    /// The paths of the fields that changed.
    changed: BTreeSet<u64>,
    /// What is news of it, and what it teaches.
    pub(super) learned: MaskUpdate,
}

impl<'a> ChangedEntry<'a> {
    fn new(
        observation: &Observation<'_>,
        snapshot: &'a Snapshot,
        document: &'a FeedDocument<'a>,
        pair: MatchedEntry,
    ) -> Option<Self> {
        let entry = document.entries.get(pair.entry)?;
        let known = snapshot.known.get(pair.known)?;
        // Of what left the ledger nothing is there to compare with.
        if known.is_evicted() {
            return None;
        }
        let bytes = news::hash_entry(entry);
        if bytes == known.bytes {
            return None;
        }
        let is_comparable = snapshot.state.format.family() == document.format.family();
        let fingerprint = news::fingerprint(entry, &observation.options.ignore);
        // Fingerprints of another scheme that could not be made anew say nothing of a change.
        let mut changed = if known.noise.scheme != fingerprint.scheme {
            BTreeSet::new()
        } else if is_comparable {
            news::changed(&known.prints, &fingerprint.prints)
        } else {
            news::changed_across_formats(&fingerprint, &known.prints)
        };
        drop_rotated_link(entry, known, &mut changed);
        let learned = news::learn(&MaskInput {
            fingerprint: &fingerprint,
            known,
            changed: &changed,
            learns: is_comparable && !observation.options.without.has(news::MASK.name),
            in_hold: snapshot.state.hold.is_some(),
            now: observation.running_now,
        });
        Some(Self { entry, known, fingerprint, bytes, changed, learned })
    }

    /// Whether the outline has another parent (folder) than its item had.
    pub(super) fn is_elsewhere(&self) -> bool {
        self.changed.contains(&news::hash_path(PARENT))
    }

    /// Whether more than the outline's parent changed. Renaming a folder changes the parent of every outline in it,
    /// which edits none of them.
    pub(super) fn is_edit(&self) -> bool {
        self.learned.counted.iter().any(|path| *path != news::hash_path(PARENT))
    }

    /// What changed, in words; empty where a reader sees no change.
    pub(super) fn describe(&self) -> String {
        let names = news::names(self.entry, self.learned.counted.clone()).join(", ");
        match self.learned.row {
            0 | 1 => names,
            row => format!("{names} (in a number or token alone, {row} times in a row)"),
        }
    }

    /// Makes the item what the entry is now.
    pub(super) fn apply_to(self, item: &mut LedgerEntry, now: Time) {
        let is_noted = self.learned.counted.is_empty();
        let mut classes = self.learned.classes;
        classes.join(self.traced(!classes.is_empty()));
        item.bytes = self.bytes;
        item.noise.restless = self.learned.restless;
        item.noise.held = false;
        self.fingerprint.store_in(item);
        if !is_noted {
            return;
        }
        let noise = &mut item.noise;
        let unseen = noise.unseen.get_or_insert(Unseen {
            classes: NoiseClasses::default(),
            count: 0,
            since: now,
            last: now,
        });
        unseen.classes.join(classes);
        unseen.count = unseen.count.saturating_add(1);
        unseen.last = now;
        let fields = news::names(self.entry, self.changed).join(", ");
        let Some(due) = self.learned.due else { return };
        match &mut noise.waiting {
            Some(waiting) if waiting.cause == WaitCause::Mask => waiting.due = due,
            Some(_) => {}
            None => {
                let cause = WaitCause::Mask;
                noise.waiting = Some(WaitingChange { cause, since: now, due, fields });
            }
        }
    }

    /// The classes of which the traces differ. A text that is masked differs as it is written too,
    /// which says nothing more.
    fn traced(&self, is_masked: bool) -> NoiseClasses {
        let mut classes = NoiseClasses::default();
        let old = &self.known.noise.traces;
        if old.iter().all(|trace| *trace == 0) {
            return classes;
        }
        let pairs = old.iter().zip(&self.fingerprint.traces).zip(NoiseClass::TRACED);
        for (_, class) in pairs.filter(|((old, new), _)| old != new) {
            classes.insert(class);
        }
        if is_masked {
            classes.remove(NoiseClass::Markup);
            classes.remove(NoiseClass::Addresses);
        } else if classes.is_empty() {
            classes.insert(NoiseClass::Markup);
        }
        classes
    }
}

/// Compares every entry with its item: of each pair what differs; `None` if its bytes are the same.
pub(super) fn compare<'a>(
    observation: &Observation<'_>,
    snapshot: &'a Snapshot,
    document: &'a FeedDocument<'_>,
    pairs: &[MatchedEntry],
) -> Vec<Option<ChangedEntry<'a>>> {
    pairs.iter().map(|pair| ChangedEntry::new(observation, snapshot, document, *pair)).collect()
}

/// Fields that hold an entry's own address.
const OWN_ADDRESS: [&str; 4] = ["link", "link[alternate]@href", "atom:link", "url"];

/// Leaves out of what changed the address of an entry that names the same page and differs in its query alone, as it
/// may at each poll.
fn drop_rotated_link(entry: &Entry<'_>, known: &LedgerEntry, changed: &mut BTreeSet<u64>) {
    let page = |link: Option<&str>| path_without_query(link?, &plain_link(link?));
    let old = page(known.link.as_deref());
    if old.is_some() && page(entry.link.as_deref()) == old {
        for path in OWN_ADDRESS {
            changed.remove(&news::hash_path(path));
        }
    }
}
