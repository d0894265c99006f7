//! The second round: what stayed unmatched on both sides, by other evidence than the id. One rule
//! after the other, strongest first.

use super::evidence::{Basis, Sides};
use super::{Native, is_made_up};
use crate::model::{Entry, ItemStatus, LedgerEntry, Without};
use crate::xml::plain_address::{day, hostless, plain_link, slug};
use std::collections::{HashMap, HashSet};

/// What must be equal on both sides, and what else must hold.
struct MatchRule {
    /// What it is called where it is switched off.
    name: &'static str,
    basis: Basis,
    /// Whether retired and deleted items may be found as well as missing ones.
    reaches_back: bool,
    /// Whether nothing that was matched already may bear the value too.
    theirs_alone: bool,
    /// Whether several that share the value are paired in their order where both sides have
    /// equally many; otherwise they decide nothing.
    in_order: bool,
    /// So many pairs must be found at once: what is weak for one is strong for many.
    least: usize,
    entry: fn(&Entry<'_>, &Native) -> Option<String>,
    known: fn(&LedgerEntry) -> Option<String>,
    also: fn(&Sides<'_>, usize, usize) -> bool,
    /// What is still free on both sides and may be the same, in document order.
    candidates: fn(&Sides<'_>, &MatchRule) -> Vec<(usize, usize)>,
}

/// What most rules are like.
const PLAIN: MatchRule = MatchRule {
    name: "",
    basis: Basis::SameId,
    reaches_back: false,
    theirs_alone: false,
    in_order: false,
    least: 1,
    entry: |_, _| None,
    known: |_| None,
    also: |_, _, _| true,
    candidates: by_value,
};

/// Titles shorter than this say too little to know an item by, in characters.
const TELLING_TITLE: usize = 8;
/// Words in a part of an address that together name one post.
const TELLING_WORDS: usize = 3;

/// So many renames that say the same at once are believed on weak evidence.
const MANY_AT_ONCE: usize = 3;

/// Words that two titles must share, numbers aside, to tell that one was made of the other.
const SHARED_WORDS: usize = 3;

/// The words of a title, without those that bear a digit.
pub fn wording(title: &str) -> HashSet<String> {
    let words = title.split(|c: char| !c.is_alphanumeric());
    let words = words.filter(|w| !w.is_empty() && !w.contains(|c: char| c.is_ascii_digit()));
    words.map(str::to_lowercase).collect()
}

/// Whether the titles say enough and are the same but for one place of at most a quarter of their
/// words, numbers included.
fn is_corrected(sides: &Sides<'_>, entry: usize, known: usize) -> bool {
    let title = sides.document.entries.get(entry).and_then(|e| e.title.as_deref());
    let (Some(new), Some(old)) = (title, sides.snapshot.known.get(known)) else { return false };
    if telling(&old.title).is_none() {
        return false;
    }
    let words =
        |title: &str| -> Vec<String> { title.split_whitespace().map(str::to_lowercase).collect() };
    let (new, old) = (words(new), words(&old.title));
    let same = |pair: &(&String, &String)| pair.0 == pair.1;
    let first = new.iter().zip(&old).take_while(same).count();
    let last = new.iter().rev().zip(old.iter().rev()).take_while(same).count();
    let (least, most) = (new.len().min(old.len()), new.len().max(old.len()));
    (first + last).min(least) * 4 >= most * 3 && most > 0
}

/// Whether the titles are the same, or share half of their words and enough of them.
fn is_reworded(sides: &Sides<'_>, entry: usize, known: usize) -> bool {
    if sides.same_title(entry, known) {
        return true;
    }
    let title = sides.document.entries.get(entry).and_then(|e| e.title.as_deref());
    let (new, old) = match (title, sides.snapshot.known.get(known)) {
        (Some(title), Some(known)) => (wording(title), wording(&known.title)),
        _ => return false,
    };
    let shared = new.intersection(&old).count();
    shared >= SHARED_WORDS && shared * 2 >= new.len() + old.len() - shared
}

fn telling(title: &str) -> Option<String> {
    let title = title.trim();
    (title.chars().count() >= TELLING_TITLE).then(|| title.to_lowercase())
}

fn entry_title(entry: &Entry<'_>, _: &Native) -> Option<String> {
    telling(entry.title.as_deref()?)
}

fn known_title(known: &LedgerEntry) -> Option<String> {
    telling(&known.title)
}

fn entry_slug(entry: &Entry<'_>, native: &Native) -> Option<String> {
    slug(&native.shown).or_else(|| slug(entry.link.as_deref()?))
}

fn known_slug(known: &LedgerEntry) -> Option<String> {
    slug(&known.native_shown).or_else(|| slug(known.link.as_deref()?))
}

fn date_or_day(entry: &Entry<'_>, native: &Native) -> Option<String> {
    entry.published.map(|p| p.to_string()).or_else(|| day(&native.shown))
}

fn known_date_or_day(known: &LedgerEntry) -> Option<String> {
    known.published.map(|p| p.to_string()).or_else(|| day(&known.native_shown))
}

/// Strongest first.
const RULES: [MatchRule; 13] = [
    MatchRule {
        name: "same-address",
        basis: Basis::SameAddress,
        reaches_back: true,
        entry: |_, native| hostless(&native.shown),
        known: |known| hostless(&known.native_shown),
        also: |sides, entry, known| {
            sides.differ_in_id(entry, known)
                && (sides.same_date(entry, known)
                    || sides.same_title(entry, known)
                    || sides.undated_in_place(entry, known))
        },
        ..PLAIN
    },
    MatchRule {
        name: "same-title-and-date",
        basis: Basis::SameTitleAndDate,
        reaches_back: true,
        entry: |entry, native| {
            Some(format!("{} {}", entry.published?, entry_title(entry, native)?))
        },
        known: |known| Some(format!("{} {}", known.published?, known_title(known)?)),
        // Several of one title may come out on one day.
        also: |sides, entry, known| {
            !sides.is_midnight(entry)
                || sides.same_place(entry, known)
                || same_text(sides, entry, known)
        },
        ..PLAIN
    },
    // The same text under another title, as where both id and address are made of it.
    MatchRule {
        name: "same-date-and-text",
        basis: Basis::SameText,
        theirs_alone: true,
        entry: date_or_day,
        known: known_date_or_day,
        also: same_text,
        ..PLAIN
    },
    // Where others bear the date too, it is to stand where it stood.
    MatchRule {
        name: "same-day-and-text",
        basis: Basis::SameText,
        entry: date_or_day,
        known: known_date_or_day,
        also: |sides, entry, known| sides.same_slot(entry, known) && same_text(sides, entry, known),
        ..PLAIN
    },
    MatchRule {
        name: "same-link",
        basis: Basis::SameLink,
        theirs_alone: true,
        entry: |entry, _| entry.link.as_deref().map(plain_link),
        known: |known| known.link.as_deref().map(plain_link),
        also: |sides, entry, known| sides.is_near(entry, known),
        ..PLAIN
    },
    MatchRule {
        name: "same-enclosure",
        basis: Basis::SameEnclosure,
        entry: |entry, _| entry.enclosures.first().map(|e| plain_link(e)),
        known: |known| known.enclosure.as_deref().map(plain_link),
        also: |sides, entry, known| sides.is_near(entry, known),
        ..PLAIN
    },
    MatchRule {
        name: "same-title-and-slug",
        basis: Basis::SameTitleAndSlug,
        entry: |e, n| Some(format!("{} {}", entry_slug(e, n)?, entry_title(e, n)?)),
        known: |known| Some(format!("{} {}", known_slug(known)?, known_title(known)?)),
        ..PLAIN
    },
    MatchRule {
        name: "same-text",
        basis: Basis::SameText,
        entry: entry_title,
        known: known_title,
        also: |sides, entry, known| sides.is_near(entry, known) && same_text(sides, entry, known),
        ..PLAIN
    },
    MatchRule {
        name: "same-title-and-place",
        basis: Basis::SameTitleAndPlace,
        entry: entry_title,
        known: known_title,
        also: |sides, entry, known| sides.same_place(entry, known),
        ..PLAIN
    },
    MatchRule {
        name: "same-slug",
        basis: Basis::SameSlug,
        theirs_alone: true,
        entry: entry_slug,
        known: known_slug,
        also: |sides, entry, known| {
            has_telling_slug(sides, entry)
                || sides.same_date(entry, known)
                || sides.undated_in_place(entry, known)
        },
        ..PLAIN
    },
    // A longer text that no other item bears, wherever it stands.
    MatchRule {
        name: "own-text",
        basis: Basis::SameOwnText,
        candidates: by_own_text,
        also: |sides, entry, known| {
            sides.is_near(entry, known)
                && (sides.same_title(entry, known)
                    || is_written_out(sides, entry)
                    || sides.are_mostly_renamed())
        },
        ..PLAIN
    },
    // Where others bear the day too, it says little.
    MatchRule {
        name: "same-date-and-wording",
        basis: Basis::SameDateAndPlace,
        theirs_alone: true,
        in_order: true,
        entry: date_or_day,
        known: known_date_or_day,
        also: |sides, entry, known| {
            sides.same_slot(entry, known)
                && match sides.is_midnight(entry) {
                    true => is_corrected(sides, entry, known),
                    false => is_reworded(sides, entry, known),
                }
        },
        ..PLAIN
    },
    // A whole document translated or written anew keeps its dates and nothing else. Of a single
    // item that says nothing.
    MatchRule {
        name: "same-dates-of-many",
        basis: Basis::SameDateAndPlace,
        theirs_alone: true,
        in_order: true,
        least: MANY_AT_ONCE,
        entry: date_or_day,
        known: known_date_or_day,
        also: |sides, entry, known| sides.same_slot(entry, known) && !sides.is_midnight(entry),
        ..PLAIN
    },
];

/// Whether the last part of the address has so many words that no two posts share it by chance.
fn has_telling_slug(sides: &Sides<'_>, entry: usize) -> bool {
    let (Some(e), Some(native)) = (sides.document.entries.get(entry), sides.names.get(entry))
    else {
        return false;
    };
    entry_slug(e, native).is_some_and(|s| s.split(['-', '_', '+']).count() >= TELLING_WORDS)
}

/// Whether an element with text of the entry (its description, summary or content) has the
/// same fingerprint as the item's.
fn same_text(sides: &Sides<'_>, entry: usize, known: usize) -> bool {
    let (Some(entry), Some(known)) =
        (sides.document.entries.get(entry), sides.snapshot.known.get(known))
    else {
        return false;
    };
    crate::diff::text_prints(entry).iter().any(|print| known.prints.contains(print))
}

/// Whether the entry's id is made of what it is about, an address or a title: one that says nothing
/// stays when the title changes, and where it does not another post was made of the same text.
fn is_written_out(sides: &Sides<'_>, entry: usize) -> bool {
    let id = sides.names.get(entry).map(|native| native.shown.as_str());
    id.is_some_and(|id| is_made_up(id) || hostless(id).is_some())
}

/// The names of the rules, strongest first.
pub fn rule_names() -> impl Iterator<Item = &'static str> {
    RULES.iter().map(|rule| rule.name)
}

/// Pairs what stayed unmatched, rule by rule.
pub(super) fn second_round(sides: &mut Sides<'_>, without: &Without) {
    for rule in RULES.iter().filter(|rule| !without.has(rule.name)) {
        if sides.is_settled() {
            return;
        }
        let found = (rule.candidates)(sides, rule);
        if found.len() < rule.least {
            continue;
        }
        for (entry, known) in found {
            // What a rule has just paired is a neighbour to what comes next.
            let moved = match rule.basis {
                Basis::SameAddress => sides.same_title(entry, known),
                // Where no id lasts, an address of its own says who it is.
                Basis::SameLink => sides.are_mostly_renamed(),
                _ => false,
            };
            let scrolled = !moved && sides.is_scroll(entry, known);
            if !scrolled && (rule.also)(sides, entry, known) {
                sides.pair(entry, known, rule.basis);
            }
        }
    }
}

/// The free entries with a longer text that one free item of the last document bears and no other
/// item.
fn by_own_text(sides: &Sides<'_>, _: &MatchRule) -> Vec<(usize, usize)> {
    let mut entries: HashMap<(u64, u64), Vec<usize>> = HashMap::new();
    for (at, entry) in sides.document.entries.iter().enumerate() {
        if sides.is_entry_free(at) {
            for print in crate::diff::text_prints(entry) {
                entries.entry(print).or_default().push(at);
            }
        }
    }
    let mut bearers: HashMap<(u64, u64), Vec<usize>> = HashMap::new();
    for (at, known) in sides.snapshot.known.iter().enumerate() {
        for print in known.prints.iter().filter(|print| entries.contains_key(print)) {
            bearers.entry(*print).or_default().push(at);
        }
    }
    let mut pairs: Vec<(usize, usize)> = Vec::new();
    for (print, items) in bearers {
        if let ([known], Some([entry])) = (items.as_slice(), entries.get(&print).map(Vec::as_slice))
            && sides.is_known_free(*known)
            && sides.snapshot.known.get(*known).is_some_and(|k| k.standing == ItemStatus::Current)
        {
            pairs.push((*entry, *known));
        }
    }
    pairs.sort_unstable();
    pairs.dedup();
    // An entry made of two items is neither, and so is an item that became two entries.
    let alone = |pair: &&(usize, usize)| {
        pairs.iter().filter(|other| other.0 == pair.0 || other.1 == pair.1).count() == 1
    };
    pairs.iter().filter(alone).copied().collect()
}

/// What shares a rule's value on both sides and is still free, in document order.
fn by_value(sides: &Sides<'_>, rule: &MatchRule) -> Vec<(usize, usize)> {
    let mut found: HashMap<String, (Vec<usize>, Vec<usize>)> = HashMap::new();
    let mut taken: HashSet<String> = HashSet::new();
    for (at, (entry, native)) in sides.document.entries.iter().zip(sides.names).enumerate() {
        if sides.is_copy(at) {
            continue;
        }
        let free = sides.is_entry_free(at);
        if (free || rule.theirs_alone)
            && let Some(value) = (rule.entry)(entry, native)
        {
            if free {
                found.entry(value).or_default().0.push(at);
            } else {
                taken.insert(value);
            }
        }
    }
    for (at, known) in sides.snapshot.known.iter().enumerate() {
        let free = sides.is_known_free(at);
        let reachable = free && (rule.reaches_back || known.standing == ItemStatus::Current);
        let stood = rule.theirs_alone && sides.place(at).is_some();
        if (reachable || stood)
            && let Some(value) = (rule.known)(known)
        {
            if !free {
                taken.insert(value);
            } else if let Some(both) = found.get_mut(&value) {
                both.1.push(at);
            }
        }
    }
    let mut pairs: Vec<(usize, usize)> = Vec::new();
    for (value, (entries, mut items)) in found {
        let alike = entries.len() == items.len() && (entries.len() == 1 || rule.in_order);
        if alike && !taken.contains(&value) {
            items.sort_by_key(|at| sides.place(*at));
            pairs.extend(entries.into_iter().zip(items));
        }
    }
    pairs.sort_unstable();
    pairs
}
