//! What one item shows of its own fields.

use super::shared::{Varied, is_shared};
use super::{LEAST_REST, LONG_GAP, MOST_REST, PROOF, RESTS, ROW_GAP, short};
use crate::news::fingerprint::{FieldView, Fingerprint, fingerprint};
use crate::news::path_print;
use crate::news::spans::{self, PlacedSpan};
use std::collections::{BTreeSet, HashMap};
use std::time::Duration;
use tidegate_core::model::{
    Entry, FeedNoise, Ignore, LedgerEntry, Noise, NoiseClass, NoiseClasses, Restless, Span, Time,
};
use xxhash_rust::xxh3::xxh3_64;

/// An item that differs from what it was.
#[derive(Debug, Clone, Copy)]
pub struct MaskInput<'a> {
    /// What it looks like now.
    pub fingerprint: &'a Fingerprint<'a>,
    /// What is known of it.
    pub known: &'a LedgerEntry,
    /// What was known of the feed before this document.
    pub feed: &'a FeedNoise,
    /// The fingerprints of the paths of the fields that changed.
    pub changed: &'a BTreeSet<u64>,
    /// Whether both come from documents of one family of formats; else every change counts and
    /// nothing is learned.
    pub is_comparable: bool,
    /// Whether a document is held, so that what changed may have been seen changed before.
    pub in_hold: bool,
    /// The time of the observation, by which what was learned ages: running time.
    pub now: Time,
}

/// What a look has taught.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MaskUpdate {
    /// The paths of the changed fields that count.
    pub loud: BTreeSet<u64>,
    /// What changed without counting.
    pub classes: NoiseClasses,
    /// What is known of the item's restless fields from now on.
    pub restless: Vec<Restless>,
    /// The places of the spans that varied.
    pub varied: Vec<Varied>,
    /// When what this item alone has shown to be noise comes out if it rests.
    pub due: Option<Time>,
    /// The most changes in a row that a field that counts made in spans alone.
    pub row: u8,
    /// Whether something changed that is no noise whatever follows, so that it must come out even
    /// where the document is held.
    pub is_sure: bool,
}

/// The fields of a new item in which what the feed's items share may change: they are watched from
/// the start, so that even their first change is known for what it is.
pub fn watch(fingerprint: &Fingerprint<'_>, feed: &FeedNoise, now: Time) -> Vec<Restless> {
    let shared = feed.spans.iter().filter(|span| span.in_force());
    let paths: BTreeSet<&str> = shared.map(|span| span.path.as_str()).collect();
    let watched = paths.into_iter().filter_map(|path| {
        let mut seen = fingerprint.seen.iter().filter(|seen| seen.path == path);
        let (seen, None) = (seen.next()?, seen.next()) else { return None };
        let placed = placed(seen)?;
        let spans = placed.iter().map(|place| new_span(place, None)).collect();
        Some(Restless { spans, ..Restless::new(path, now) })
    });
    watched.take(Noise::RESTLESS_LIMIT).collect()
}

/// Makes an item's fingerprints anew by the present scheme, from the bytes that it has: what is
/// known of how it changes stays known, as far as it is about these bytes.
pub fn refresh(known: &mut LedgerEntry, entry: &Entry<'_>, ignore: &[Ignore]) {
    let fingerprint = fingerprint(entry, ignore);
    let single = SinglePaths::new(&fingerprint, &known.prints);
    for field in &mut known.noise.restless {
        let Some((Some(seen), Some(old))) = single.pair(path_print(&field.path)) else { continue };
        if field.value == short(old) {
            field.value = short(seen.print.1);
        }
        let places = placed(seen).unwrap_or_default();
        if places.len() == field.spans.len() {
            for (span, place) in field.spans.iter_mut().zip(&places) {
                *span = new_span(place, Some(span));
            }
        } else {
            field.spans.clear();
        }
    }
    fingerprint.keep_in(known);
}

/// How a changed field is taken.
enum FieldChange {
    /// It counts.
    Loud,
    /// It counts until it turns out to never rest.
    LoudYet,
    /// It makes no version; what this item alone has shown to be noise comes out at this time.
    Quiet(Option<Time>),
}

/// Learns from an item that changed.
pub fn learn(look: &MaskInput<'_>) -> MaskUpdate {
    let known = &look.known.noise;
    if !look.is_comparable {
        let is_sure = !look.changed.is_empty();
        return MaskUpdate { loud: look.changed.clone(), is_sure, ..MaskUpdate::default() };
    }
    let mut lesson = MaskUpdate { restless: known.restless.clone(), ..MaskUpdate::default() };
    lesson.restless.retain(|field| look.now.since(field.last) <= MOST_REST);
    let in_spans = known.shape != 0 && look.fingerprint.shape == known.shape;
    let single = SinglePaths::new(look.fingerprint, &look.known.prints);
    for path in look.changed {
        match take_in(look, *path, single.pair(*path), in_spans, &mut lesson) {
            FieldChange::Loud => {
                lesson.loud.insert(*path);
                lesson.is_sure = true;
            }
            FieldChange::LoudYet => {
                lesson.loud.insert(*path);
            }
            FieldChange::Quiet(due) => {
                lesson.classes.insert(NoiseClass::Span);
                lesson.due = lesson.due.max(due);
            }
        }
    }
    // What was held back with an earlier document has still to come out.
    if known.held && look.in_hold {
        lesson.loud.extend(look.changed);
        lesson.is_sure = true;
    }
    if !in_spans && !lesson.loud.is_empty() {
        for field in lesson.restless.iter_mut().filter(|field| field.masked.is_none()) {
            end_row(field);
        }
    }
    lesson.restless.sort_by(|one, other| one.path.cmp(&other.path));
    lesson
}

/// Takes in the change of one field: of its spans alone, or of its words, or that it came or went.
fn take_in(
    look: &MaskInput<'_>,
    path: u64,
    pair: Option<(Option<&FieldView<'_>>, Option<u64>)>,
    in_spans: bool,
    lesson: &mut MaskUpdate,
) -> FieldChange {
    let known = lesson.restless.iter().position(|field| path_print(&field.path) == path);
    let Some((Some(seen), Some(old))) = pair else {
        known.map(|at| lesson.restless.remove(at));
        return FieldChange::Loud;
    };
    if !in_spans && known.is_none() {
        return FieldChange::Loud;
    }
    let mut field = watched(&mut lesson.restless, seen.path, look.now);
    // Of a held document that is seen once more nothing is learned.
    let before = if look.in_hold && field.value != 0 { field.value } else { short(old) };
    let value = short(seen.print.1);
    let is_new = before != value;
    if is_new {
        begin_or_continue(&mut field, look.now);
        field.value = value;
    }
    let taken = if in_spans {
        field.changes = field.changes.saturating_add(u8::from(is_new));
        spans_alone(look, seen, &mut field, lesson, is_new)
    } else {
        follow(&mut field, seen);
        FieldChange::Loud
    };
    lesson.restless.push(field);
    taken
}

/// A field changed in spans alone.
fn spans_alone(
    look: &MaskInput<'_>,
    seen: &FieldView<'_>,
    field: &mut Restless,
    lesson: &mut MaskUpdate,
    is_new: bool,
) -> FieldChange {
    let Some(placed) = placed(seen) else {
        field.spans.clear();
        return FieldChange::Loud;
    };
    let path = seen.path;
    let old = std::mem::take(&mut field.spans);
    let is_known = old.len() == placed.len();
    // Where there is but one span, it is that which changed, even for the first time; which of
    // several it was, the second change tells.
    let is_untold = is_new && !is_known && placed.len() != 1;
    let was_guess = is_known && old.len() > 1 && old.iter().all(|span| span.changes == 1);
    let (mut varying, mut loud, mut own) = (0, 0, 0);
    for (at, place) in placed.iter().enumerate() {
        let before = old.get(at).filter(|_| is_known);
        let mut span = new_span(place, before);
        let varies = before.is_none_or(|before| before.value != span.value);
        span.changes = span.changes.saturating_add(u8::from(varies));
        if was_guess && is_new && !varies {
            span.changes = 0;
        }
        // What was held back with earlier documents is no less a change.
        if varies || (look.in_hold && span.changes > 0) {
            let is_proven = span.changes >= PROOF && field.changes >= PROOF;
            let is_shared = is_shared(look.feed, path, place, look.now);
            loud += usize::from(!is_proven && !is_shared);
            own += usize::from(!is_shared);
        }
        if varies && !is_untold {
            varying += 1;
            let is_first = span.changes >= PROOF && !span.told;
            lesson.varied.push(Varied::new(path, place, is_first));
            span.told |= is_first;
        }
        field.spans.push(span);
    }
    let is_unclear = is_new && varying == 0;
    if is_unclear || loud > 0 {
        lesson.row = lesson.row.max(field.changes);
        return if is_unclear { FieldChange::Loud } else { FieldChange::LoudYet };
    }
    field.masked.get_or_insert(look.now);
    FieldChange::Quiet((own > 0).then(|| field.last.plus(rest(field))))
}

/// The fields whose path stands alone, now and before.
struct SinglePaths<'a> {
    seen: HashMap<u64, Option<&'a FieldView<'a>>>,
    old: HashMap<u64, Option<u64>>,
}

/// The spans of a field, each with its place; `None` where there are too many.
fn placed<'a>(seen: &'a FieldView<'a>) -> Option<Vec<PlacedSpan<'a>>> {
    spans::placed(&seen.text, seen.kind, Restless::SPAN_LIMIT)
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
fn watched(restless: &mut Vec<Restless>, path: &str, now: Time) -> Restless {
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
    let gap = now.since(field.last);
    let patience = if field.masked.is_some() { rest(field) } else { ROW_GAP };
    if gap <= patience {
        field.pace = field.pace.max(u32::try_from(gap.as_secs()).unwrap_or(u32::MAX));
    } else {
        field.changes = 0;
        field.pace = 0;
        field.masked = None;
    }
    if gap > patience.max(LONG_GAP) {
        end_row(field);
    }
    field.last = now;
}

fn end_row(field: &mut Restless) {
    field.changes = 0;
    for span in &mut field.spans {
        span.changes = 0;
    }
}

/// How long a field must rest before a change of it counts again.
pub fn rest(field: &Restless) -> Duration {
    Duration::from_secs(u64::from(field.pace.saturating_mul(RESTS))).clamp(LEAST_REST, MOST_REST)
}

fn new_span(place: &PlacedSpan<'_>, old: Option<&Span>) -> Span {
    Span {
        before: print(&place.before),
        after: print(&place.after),
        value: print(place.value),
        changes: old.map_or(0, |old| old.changes),
        told: old.is_some_and(|old| old.told),
    }
}

fn print(text: &str) -> u32 {
    short(xxh3_64(text.as_bytes()))
}

/// Finds the spans of a field again after its words changed: those between the same words, else
/// those with the same words on one side.
fn follow(field: &mut Restless, seen: &FieldView<'_>) {
    let mut old = std::mem::take(&mut field.spans);
    if old.is_empty() {
        return;
    }
    for place in &placed(seen).unwrap_or_default() {
        let same = find(&old, place).map(|at| old.remove(at));
        field.spans.push(new_span(place, same.as_ref()));
    }
}

/// Where a span stands among others by the words around it.
fn find(old: &[Span], place: &PlacedSpan<'_>) -> Option<usize> {
    let new = new_span(place, None);
    let after = |old: &Span| !place.after.is_empty() && old.after == new.after;
    let before = |old: &Span| !place.before.is_empty() && old.before == new.before;
    let same = old.iter().position(|old| (old.before, old.after) == (new.before, new.after));
    same.or_else(|| old.iter().position(after)).or_else(|| old.iter().position(before))
}
