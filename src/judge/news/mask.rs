//! The learned mask: what never rests makes no version.
//!
//! What is learned is what only machines do: a **span** (a number, a date, a token) of one field
//! that changes for the third time in a row while no word of the entry does. The first two changes
//! always go out, and so does a change of words. What is masked is not lost: when it rests, its last
//! state comes out as a version.

use super::fingerprint::{FieldView, Fingerprint, fingerprint};
use super::hash_path;
use super::spans;
use crate::DAY;
use crate::rules::Rule;
use foldhash::{HashMap, HashMapExt as _};
use std::collections::BTreeSet;
use std::time::Duration;
use tidegate_core::model::{
    Entry, Ignore, LedgerEntry, Noise, NoiseClass, NoiseClasses, Restless, Span, Time,
};
use xxhash_rust::xxh3::xxh3_64;

pub(crate) const RULE: Rule = Rule {
    name: "mask",
    sentence: "what changes in it for the third time in a row, and no word with it",
};

/// Changes in a row that show that a span never rests; the last of them makes no version.
pub(crate) const PROOF: u8 = 3;
/// Changes that are further apart are no row.
pub(crate) const ROW_GAP: Duration = DAY.saturating_mul(2);
/// A mask is lifted, and what it hid comes out, when the field has rested for so long: over a weekend it may.
const REST: Duration = DAY.saturating_mul(4);

/// The part of a fingerprint that is enough to tell two values of a field apart.
#[allow(clippy::cast_possible_truncation)]
pub(super) const fn short(print: u64) -> u32 {
    print as u32
}

/// An item that differs from what it was.
#[derive(Debug, Clone, Copy)]
pub struct MaskInput<'a> {
    /// What it looks like now.
    pub fingerprint: &'a Fingerprint<'a>,
    /// What is known of it.
    pub known: &'a LedgerEntry,
    /// The fingerprints of the paths of the fields that changed.
    pub changed: &'a BTreeSet<u64>,
    /// Whether both come from documents of one family of formats; else every change counts and
    /// nothing is learned.
    pub learns: bool,
    /// Whether a document is held, so that what changed may have been seen changed before.
    pub in_hold: bool,
    /// The time of the observation, by which what was learned ages: running time.
    pub now: Time,
}

/// What a change has taught.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MaskUpdate {
    /// The paths of the changed fields that count.
    pub counted: BTreeSet<u64>,
    /// What changed without counting.
    pub classes: NoiseClasses,
    /// What is known of the item's restless fields from now on.
    pub restless: Vec<Restless>,
    /// When what was masked comes out if it rests.
    pub due: Option<Time>,
    /// The most changes in a row that a field that counts made in spans alone.
    pub row: u8,
    /// Whether something changed that is no noise whatever follows, so that it must come out even
    /// where the document is held.
    pub is_sure: bool,
}

/// Makes an item's fingerprints anew by the present scheme, from the bytes that it has: what is
/// known of how it changes stays known, as far as it is about these bytes.
pub fn refresh(known: &mut LedgerEntry, entry: &Entry<'_>, ignore: &[Ignore]) {
    let fingerprint = fingerprint(entry, ignore);
    let single = SinglePaths::new(&fingerprint, &known.prints);
    for field in &mut known.noise.restless {
        let Some((Some(seen), Some(old))) = single.pair(hash_path(&field.path)) else { continue };
        if field.value == short(old) {
            field.value = short(seen.print.1);
        }
        realign_spans(field, seen);
    }
    fingerprint.store_in(known);
}

/// Whether a changed field makes a version.
enum FieldChange {
    /// It counts.
    Counts,
    /// It counts until it turns out to never rest.
    CountsForNow,
    /// It makes no version until this time.
    Masked(Time),
}

/// Learns from an item that changed.
pub fn learn(input: &MaskInput<'_>) -> MaskUpdate {
    let known = &input.known.noise;
    if !input.learns {
        let is_sure = !input.changed.is_empty();
        return MaskUpdate { counted: input.changed.clone(), is_sure, ..MaskUpdate::default() };
    }
    let mut update = MaskUpdate { restless: known.restless.clone(), ..MaskUpdate::default() };
    update.restless.retain(|field| input.now.since(field.last) <= REST);
    let in_spans = known.shape != 0 && input.fingerprint.shape == known.shape;
    let single = SinglePaths::new(input.fingerprint, &input.known.prints);
    for path in input.changed {
        match learn_field(input, *path, single.pair(*path), in_spans, &mut update) {
            FieldChange::Counts => {
                update.counted.insert(*path);
                update.is_sure = true;
            }
            FieldChange::CountsForNow => {
                update.counted.insert(*path);
            }
            FieldChange::Masked(due) => {
                update.classes.insert(NoiseClass::Span);
                update.due = update.due.max(Some(due));
            }
        }
    }
    // What was held back with an earlier document has still to come out.
    if known.held && input.in_hold {
        update.counted.extend(input.changed);
        update.is_sure = true;
    }
    if !in_spans && !update.counted.is_empty() {
        for field in update.restless.iter_mut().filter(|field| field.masked.is_none()) {
            end_row(field);
        }
    }
    update.restless.sort_by(|one, other| one.path.cmp(&other.path));
    update
}

/// Learns from the change of one field: of its spans alone, or of its words, or that it came or went.
fn learn_field(
    input: &MaskInput<'_>,
    path: u64,
    pair: Option<(Option<&FieldView<'_>>, Option<u64>)>,
    in_spans: bool,
    update: &mut MaskUpdate,
) -> FieldChange {
    let known = update.restless.iter().position(|field| hash_path(&field.path) == path);
    let Some((Some(seen), Some(old))) = pair else {
        known.map(|at| update.restless.remove(at));
        return FieldChange::Counts;
    };
    if !in_spans && known.is_none() {
        return FieldChange::Counts;
    }
    let mut field = take_watched(&mut update.restless, seen.path, input.now);
    // Of a held document that is seen once more nothing is learned.
    let before = if input.in_hold && field.value != 0 { field.value } else { short(old) };
    let value = short(seen.print.1);
    let is_new = before != value;
    if is_new {
        begin_or_continue(&mut field, input.now);
        field.value = value;
    }
    let taken = if in_spans {
        field.changes = field.changes.saturating_add(u8::from(is_new));
        learn_spans(input, seen, &mut field, is_new)
    } else {
        realign_spans(&mut field, seen);
        FieldChange::Counts
    };
    if !matches!(taken, FieldChange::Masked(_)) && in_spans && !field.spans.is_empty() {
        update.row = update.row.max(field.changes);
    }
    update.restless.push(field);
    taken
}

/// Learns from a field that changed in spans alone.
fn learn_spans(
    input: &MaskInput<'_>,
    seen: &FieldView<'_>,
    field: &mut Restless,
    is_new: bool,
) -> FieldChange {
    let old = std::mem::take(&mut field.spans);
    let Some(values) = values(seen) else { return FieldChange::Counts };
    let is_known = old.len() == values.len();
    // A single span must be the one that changed. Among several, only the second change shows which one it was.
    let is_untold = is_new && !is_known && values.len() != 1;
    let was_guess = is_known && old.len() > 1 && old.iter().all(|span| span.changes == 1);
    let (mut is_varied, mut is_loud) = (false, false);
    for (at, value) in values.into_iter().enumerate() {
        let before = old.get(at).filter(|_| is_known);
        let varies = before.is_none_or(|before| before.value != value);
        let changes = match before {
            Some(_) if was_guess && is_new && !varies => 0,
            before => before.map_or(0, |span| span.changes).saturating_add(u8::from(varies)),
        };
        // What was held back with earlier documents is no less a change.
        if varies || (input.in_hold && changes > 0) {
            is_loud |= changes < PROOF || field.changes < PROOF;
        }
        is_varied |= varies && !is_untold;
        field.spans.push(Span { value, changes });
    }
    if is_new && !is_varied {
        return FieldChange::Counts;
    }
    if is_loud {
        return FieldChange::CountsForNow;
    }
    field.masked.get_or_insert(input.now);
    FieldChange::Masked(field.last.plus(REST))
}

/// The fingerprints of what the spans of a field say; `None` if there are too many.
fn values(seen: &FieldView<'_>) -> Option<Vec<u32>> {
    let values = spans::values(&seen.text, seen.kind, Restless::SPAN_LIMIT)?;
    Some(values.into_iter().map(|value| short(xxh3_64(value.as_bytes()))).collect())
}

/// The fields whose path stands alone, now and before.
struct SinglePaths<'a> {
    seen: HashMap<u64, Option<&'a FieldView<'a>>>,
    old: HashMap<u64, Option<u64>>,
}

impl<'a> SinglePaths<'a> {
    fn new(fingerprint: &'a Fingerprint<'a>, prints: &[(u64, u64)]) -> Self {
        let (mut seen, mut old) = (HashMap::new(), HashMap::new());
        for field in &fingerprint.seen {
            seen.entry(field.print.0).and_modify(|one| *one = None).or_insert(Some(field));
        }
        for (path, value) in prints {
            old.entry(*path).and_modify(|one| *one = None).or_insert(Some(*value));
        }
        Self { seen, old }
    }

    /// The field of a path as it is now, and its fingerprint before; nothing where several bear its path,
    /// which tells none of them from the others.
    fn pair(&self, path: u64) -> Option<(Option<&'a FieldView<'a>>, Option<u64>)> {
        let seen = self.seen.get(&path).map_or(Some(None), |seen| seen.map(Some))?;
        let old = self.old.get(&path).map_or(Some(None), |old| old.map(Some))?;
        Some((seen, old))
    }
}

/// Takes a field out of those that are watched; where it is new and there are too many, the one
/// that has rested longest makes room.
fn take_watched(restless: &mut Vec<Restless>, path: &str, now: Time) -> Restless {
    if let Some(at) = restless.iter().position(|field| field.path == path) {
        return restless.remove(at);
    }
    if restless.len() >= Noise::RESTLESS_LIMIT {
        let oldest = restless.iter().enumerate();
        let oldest = oldest.min_by_key(|(_, field)| (field.masked.is_some(), field.last));
        if let Some(at) = oldest.map(|(at, _)| at) {
            restless.remove(at);
        }
    }
    Restless::new(path, now)
}

/// Notes that a field changes now, as one of a row or after a rest.
fn begin_or_continue(field: &mut Restless, now: Time) {
    let patience = if field.masked.is_some() { REST } else { ROW_GAP };
    if now.since(field.last) > patience {
        end_row(field);
        field.masked = None;
    }
    field.last = now;
}

fn end_row(field: &mut Restless) {
    field.changes = 0;
    for span in &mut field.spans {
        span.changes = 0;
    }
}

/// Updates the spans of a field whose words changed. If there are as many as before, they count as the same spans; the
/// counts of several start again, because each may have moved.
fn realign_spans(field: &mut Restless, seen: &FieldView<'_>) {
    let values = values(seen).unwrap_or_default();
    if values.len() != field.spans.len() {
        field.spans.clear();
    }
    let are_several = values.len() > 1;
    for (span, value) in field.spans.iter_mut().zip(values) {
        span.value = value;
        if are_several {
            span.changes = 0;
        }
    }
}

#[cfg(test)]
mod tests;
