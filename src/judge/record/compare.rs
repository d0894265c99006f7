//! A document's entries beside the items that they are.

use super::Observation;
use super::outline_moves::PARENT;
use crate::diff::{self, Fingerprint, MaskInput, MaskUpdate, Swept, Varied};
use crate::identity::MatchedEntry;
use std::collections::BTreeSet;
use tidegate_core::model::{
    Entry, FeedDocument, FeedNoise, Ignore, LedgerEntry, NoiseClass, NoiseClasses, Restless,
    Snapshot, Time, Unseen, WaitCause, WaitingChange,
};
use tidegate_core::xml::plain_address::plain_link;
use xxhash_rust::xxh3::Xxh3;

/// Every pair compared, and what was learned of the feed.
pub(super) struct Comparison {
    /// Of each pair what differs; `None` where its bytes are the same.
    pub(super) pairs: Vec<Option<ChangedEntry>>,
    /// What is known of the feed's noise from now on.
    pub(super) noise: FeedNoise,
}

/// An entry that differs from its item.
pub(super) struct ChangedEntry {
    /// Whether its bytes are the same after all, and only how it is looked at is not.
    pub(super) same_bytes: bool,
    prints: Vec<(u64, u64)>,
    bytes: u64,
    shape: u64,
    left: Vec<(u64, u64)>,
    traces: [u32; NoiseClass::TRACED.len()],
    /// The names of the fields that changed in what counts.
    names: Vec<String>,
    /// The names of those that changed in what does not, by what was learned.
    masked: Vec<String>,
    /// In what else it changed.
    classes: NoiseClasses,
    /// What is known of its restless fields from now on.
    pub(super) restless: Vec<Restless>,
    /// When what is masked comes out if it rests.
    due: Option<Time>,
    /// How often in a row it changed in spans alone.
    row: u8,
    /// Whether something of it is no noise whatever follows.
    pub(super) is_sure: bool,
    /// Whether it stands in something else of a list than its item stood in.
    pub(super) is_elsewhere: bool,
}

impl ChangedEntry {
    /// Whether a reader sees a change.
    pub(super) fn is_change(&self) -> bool {
        !self.names.is_empty()
    }

    /// Whether it says something else, and not only stands in something else of a list: what a folder is
    /// called is said by all in it.
    pub(super) fn is_edit(&self) -> bool {
        self.names.iter().any(|name| name != PARENT)
    }

    /// Adds what a reader sees of the entry to a fingerprint.
    pub(super) fn hash_into(&self, hash: &mut Xxh3) {
        for (path, value) in &self.prints {
            hash.update(&path.to_le_bytes());
            hash.update(&value.to_le_bytes());
        }
    }

    /// What changed, in words; empty where a reader sees no change.
    pub(super) fn describe(&self) -> String {
        let names = self.names.join(", ");
        match self.row {
            0 | 1 => names,
            row => format!("{names} (in a number or token alone, {row} times in a row)"),
        }
    }

    /// Makes the item what the entry is now.
    pub(super) fn apply_to(self, item: &mut LedgerEntry, now: Time) {
        let is_change = self.is_change();
        item.prints = self.prints;
        item.bytes = self.bytes;
        let noise = &mut item.noise;
        noise.shape = self.shape;
        noise.left = self.left;
        noise.traces = self.traces;
        noise.restless = self.restless;
        noise.held = false;
        noise.scheme = diff::SCHEME;
        if is_change || self.same_bytes {
            return;
        }
        let unseen = noise.unseen.get_or_insert(Unseen {
            classes: NoiseClasses::default(),
            count: 0,
            since: now,
            last: now,
        });
        unseen.classes.join(self.classes);
        unseen.count = unseen.count.saturating_add(1);
        unseen.last = now;
        let fields = self.masked.join(", ");
        let Some(due) = self.due else {
            // What turned out to be noise in all items has not to come out of this one.
            let is_it = |waiting: &mut WaitingChange| {
                waiting.cause == WaitCause::Mask && waiting.fields == fields
            };
            noise.waiting.take_if(is_it);
            return;
        };
        match &mut noise.waiting {
            Some(waiting) if waiting.cause == WaitCause::Mask => waiting.due = due,
            Some(_) => {}
            None => {
                let cause = WaitCause::Mask;
                noise.waiting = Some(WaitingChange { cause, since: now, due, fields });
            }
        }
    }
}

/// Compares every entry with its item.
pub(super) fn compare(
    round: &Observation<'_>,
    snapshot: &Snapshot,
    document: &FeedDocument<'_>,
    pairs: &[MatchedEntry],
) -> Comparison {
    let old = &snapshot.state.noise;
    let ignore = Ignored::new(&round.options.ignore, old);
    let same_family = snapshot.state.format.family() == document.format.family();
    let seen: Vec<Option<ItemComparison<'_>>> =
        pairs.iter().map(|pair| ItemComparison::new(snapshot, document, *pair, &ignore)).collect();
    let mut noise = old.clone();
    noise.ignored = ignore.print;
    if same_family {
        let mut swept = Swept::default();
        let volatile = diff::volatile(old);
        for beside in seen.iter().flatten() {
            // Each volatile field is looked at for itself, the others as if it were not there.
            for path in beside.changed.intersection(&volatile) {
                swept.add(&beside.portrait, &BTreeSet::from([*path]));
            }
            let changed = beside.changed.difference(&volatile).copied().collect();
            swept.add(&beside.portrait, &changed);
        }
        diff::sweep(&mut noise, &swept, pairs.len(), round.aged);
    }
    let is_stamped = |beside: &ItemComparison<'_>| beside.entry.updated != beside.known.updated;
    let stamped = seen.iter().flatten().filter(|beside| is_stamped(beside)).count();
    let learn = |noise: &FeedNoise| -> Vec<Option<MaskUpdate>> {
        let volatile = diff::volatile(noise);
        let is_common = |path: &u64| {
            let changed = seen.iter().flatten().filter(|beside| beside.changed.contains(path));
            changed.count() * 2 >= pairs.len()
        };
        let common: BTreeSet<u64> = volatile.iter().copied().filter(is_common).collect();
        let learn = |beside: &ItemComparison<'_>| {
            // Other words in a few of the items are somebody's, also where all of them never rest.
            let has_words = beside.portrait.shape != beside.known.noise.shape;
            diff::learn(&MaskInput {
                portrait: &beside.portrait,
                known: beside.known,
                feed: noise,
                volatile: if has_words { &common } else { &volatile },
                changed: &beside.changed,
                is_comparable: same_family,
                is_stamped: is_stamped(beside) && stamped * 2 <= pairs.len(),
                in_hold: snapshot.state.hold.is_some(),
                now: round.aged,
            })
        };
        seen.iter().map(|beside| beside.as_ref().map(learn)).collect()
    };
    let mut lessons = learn(&noise);
    let varied: Vec<&[Varied]> = lessons.iter().flatten().map(|l| l.varied.as_slice()).collect();
    if diff::sweep_spans(&mut noise, &varied, pairs.len(), round.aged) {
        // What has just come to hold for all items holds in this document.
        lessons = learn(&noise);
    }
    for varied in lessons.iter().flatten().flat_map(|lesson| &lesson.varied) {
        diff::vote(&mut noise, varied, round.aged);
    }
    let compared = seen.into_iter().zip(lessons);
    let pairs = compared.map(|(beside, lesson)| Some(beside?.compared(lesson?))).collect();
    Comparison { pairs, noise }
}

/// What the operator ignores, and whether it is what was ignored before.
struct Ignored<'a> {
    list: &'a [Ignore],
    print: u64,
    is_other: bool,
}

impl<'a> Ignored<'a> {
    fn new(list: &'a [Ignore], old: &FeedNoise) -> Self {
        let mut hash = Xxh3::new();
        for ignore in list {
            for text in [Some(ignore.field()), ignore.pattern()] {
                hash.update(text.unwrap_or_default().as_bytes());
                hash.update(&[u8::from(text.is_some())]);
            }
        }
        let print = if list.is_empty() { 0 } else { hash.digest() };
        Self { list, print, is_other: print != old.ignored }
    }

    /// Leaves out of what changed what the operator ignores, and what only appears because the
    /// operator ignores it no more.
    fn apply_to(
        &self,
        portrait: &Fingerprint<'_>,
        beside: (&Entry<'_>, &LedgerEntry),
        changed: &mut BTreeSet<u64>,
    ) {
        let (entry, known) = beside;
        let whole = || self.list.iter().filter(|ignore| ignore.regex().is_none());
        for field in entry.fields() {
            if whole().any(|ignore| ignore.covers(&field.path)) {
                changed.remove(&diff::path_print(&field.path));
            }
        }
        diff::settle_left(portrait, known, changed);
        if self.is_other {
            changed.retain(|path| known.prints.iter().any(|print| print.0 == *path));
        }
    }
}

/// Fields that hold an entry's own address.
const OWN_ADDRESS: [&str; 4] = ["link", "link[alternate]@href", "atom:link", "url"];

/// Leaves out of what changed the address of an entry that differs in its query alone, as its item's
/// address does at each poll.
fn drop_rotated_link(entry: &Entry<'_>, known: &LedgerEntry, changed: &mut BTreeSet<u64>) {
    let before_query =
        |link: Option<&str>| Some(plain_link(link?).split(['?', '#']).next()?.to_owned());
    if before_query(entry.link.as_deref()) == before_query(known.link.as_deref()) {
        for path in OWN_ADDRESS {
            changed.remove(&diff::path_print(path));
        }
    }
}

/// An entry beside its item.
struct ItemComparison<'a> {
    entry: &'a Entry<'a>,
    known: &'a LedgerEntry,
    portrait: Fingerprint<'a>,
    bytes: u64,
    changed: BTreeSet<u64>,
}

impl<'a> ItemComparison<'a> {
    fn new(
        snapshot: &'a Snapshot,
        document: &'a FeedDocument<'a>,
        pair: MatchedEntry,
        ignore: &Ignored<'_>,
    ) -> Option<Self> {
        let entry = document.entries.get(pair.entry)?;
        let known = snapshot.known.get(pair.known)?;
        // Of what left the ledger nothing is there to compare with.
        if known.is_evicted() {
            return None;
        }
        let bytes = diff::bytes_print(entry);
        // Where something else is ignored than before, the item is looked at anew.
        if bytes == known.bytes && !ignore.is_other {
            return None;
        }
        let same_family = snapshot.state.format.family() == document.format.family();
        let portrait = diff::fingerprint(entry, ignore.list);
        // Fingerprints of another scheme that could not be made anew say nothing of a change.
        let mut changed = if bytes == known.bytes || known.noise.scheme != diff::SCHEME {
            BTreeSet::new()
        } else if same_family {
            diff::changed(&known.prints, &portrait.prints)
        } else {
            diff::changed_across_formats(&portrait, &known.prints)
        };
        ignore.apply_to(&portrait, (entry, known), &mut changed);
        if pair.basis.is_same_but_for_query() {
            drop_rotated_link(entry, known, &mut changed);
        }
        Some(Self { entry, known, portrait, bytes, changed })
    }

    /// What differs, as it was taken.
    fn compared(self, lesson: MaskUpdate) -> ChangedEntry {
        let is_elsewhere = self.changed.contains(&diff::path_print(PARENT));
        let masked = self.changed.difference(&lesson.loud).copied().collect();
        let mut classes = lesson.classes;
        classes.join(self.traced(!lesson.classes.is_empty()));
        ChangedEntry {
            same_bytes: self.bytes == self.known.bytes,
            names: diff::names(self.entry, lesson.loud),
            masked: diff::names(self.entry, masked),
            prints: self.portrait.prints,
            bytes: self.bytes,
            shape: self.portrait.shape,
            left: self.portrait.left,
            traces: self.portrait.traces,
            classes,
            restless: lesson.restless,
            due: lesson.due,
            row: lesson.row,
            is_sure: lesson.is_sure,
            is_elsewhere,
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
        let pairs = old.iter().zip(&self.portrait.traces).zip(NoiseClass::TRACED);
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
