//! The rule `replaced`: what something newer took the place of was not taken away, such as a post that was written
//! anew or a release that follows its drafts.

use super::{HoleCase, HoleRule, Objection};
use crate::rules::Rule;
use crate::same_item::{continues, is_reworded, words};
use crate::window::{date_of, dated};
use foldhash::HashSet;
use tidegate_core::model::{Entry, LedgerEntry, Time};
use tidegate_core::xml::plain_address::day;

pub(super) const RULE: HoleRule = HoleRule {
    rule: Rule {
        name: "replaced",
        sentence: "an entry came in its place: with the same day in its id, a date or text of its \
                   own, the same words in its title, or with its date or none between the same \
                   neighbours; or a later version of a draft came",
    },
    objects,
};

/// Among so many entries one is looked for that took an item's place.
const COMPARED: usize = 100;

/// Objects where an entry came that bears the same day in its id, or the same date as no other item
/// does; and where one came with the same words in its title, but for items of a series whose older
/// ones stay. The final version of a draft may have come before.
fn objects(case: &HoleCase<'_>, place: usize, known: &LedgerEntry) -> Option<Objection> {
    let entries = &case.window.input.document.entries;
    let date = date_of(known);
    // What comes back at the old end is older.
    let is_new = |at: usize| {
        let entry = entries.get(at).and_then(dated);
        let is_older = matches!((entry, date), (Some(new), Some(old)) if new < old);
        case.window.incoming.binary_search(&at).is_ok() && !is_older
    };
    let is_draft = is_preliminary(&known.title);
    let is_single = !stands_in_a_series(case, place, known);
    let mut compared = entries
        .iter()
        .enumerate()
        .filter(|(at, entry)| is_new(*at) || (is_draft && date.is_some() && dated(entry) > date));
    let is_replaced = compared.by_ref().take(COMPARED).any(|(at, entry)| {
        let title = entry.title.as_deref().unwrap_or_default();
        (is_new(at) && is_single && continues(title, &known.title))
            || (is_new(at) && is_of_the_same_day(case, at, entry, known))
            || (is_single && is_version_of(title, &known.title))
    });
    // What took its place is not named: reasons are kept for as long as the item, and titles are to
    // go with what is redacted.
    if is_replaced {
        return Some(Objection::settled("a newer one of it took its place"));
    }
    if stands_in_its_place(case, place, date) {
        return Some(Objection::settled("another entry stands in its place"));
    }
    has_its_text(case, known)
        .then(|| Objection::settled("an entry with the same text took its place"))
}

/// Whether an entry came between the two items that stood around it and stay. One with another date
/// stands where that puts it.
fn stands_in_its_place(case: &HoleCase<'_>, place: usize, date: Option<Time>) -> bool {
    let window = case.window;
    let stays = |at: &usize| window.kept.get(*at) == Some(&true);
    let entry = |at: usize| {
        let known = window.old.get(at)?;
        let pair = case.window.input.matching.pairs.iter().find(|pair| pair.known == *known)?;
        Some(window.rank(pair.entry))
    };
    let above = (0..place).rev().find(stays).and_then(entry);
    let below = (place + 1..window.old.len()).find(stays).and_then(entry);
    let (Some(above), Some(below)) = (above, below) else { return false };
    let has_its_date = |at: usize| {
        let new = case.window.input.document.entries.get(at).and_then(dated);
        date.is_none() || new.is_none() || new == date
    };
    let is_between = |at: usize| (above + 1..below).contains(&window.rank(at));
    window.incoming.iter().any(|at| is_between(*at) && has_its_date(*at))
}

/// Whether an entry came that says the same, which no other item of the last document did.
fn has_its_text(case: &HoleCase<'_>, known: &LedgerEntry) -> bool {
    let (ledger, matching) = (&case.window.input.snapshot.known, case.window.input.matching);
    let listed = || case.window.old.iter().filter_map(|at| ledger.get(*at));
    let is_its_own = |print: &(u64, u64)| {
        let mut others = listed().filter(|other| other.id != known.id);
        known.prints.contains(print) && !others.any(|other| other.prints.contains(print))
    };
    let fresh = matching.fresh.iter().take(COMPARED).filter_map(|at| matching.texts.get(at));
    let mut texts = fresh.flatten();
    texts.any(|text| text.is_full && is_its_own(&text.print))
}

/// Whether the ids of both are made of the same day, or both have one date that nothing else has.
fn is_of_the_same_day(
    case: &HoleCase<'_>,
    at: usize,
    entry: &Entry<'_>,
    known: &LedgerEntry,
) -> bool {
    // Where others of that day stay, it is no one's own.
    let of = day(&known.native_shown);
    let names = &case.window.input.matching.names;
    let id = names.get(at).map(String::as_str);
    if of.is_some() && id.and_then(day) == of {
        let ids = names.iter().enumerate().filter(|(other, _)| *other != at);
        let mut stay = ids.filter(|(other, _)| case.window.incoming.binary_search(other).is_err());
        let title = entry.title.as_deref().unwrap_or_default();
        return !stay.any(|(_, name)| day(name) == of) || is_reworded(title, &known.title);
    }
    let date = known.published;
    let others = case.window.input.document.entries.iter().enumerate();
    let mut others = others.filter(|(other, _)| *other != at).map(|(_, other)| other.published);
    let ledger = &case.window.input.snapshot.known;
    let listed = case.window.old.iter().filter_map(|item| ledger.get(*item));
    let mut listed = listed.filter(|item| item.id != known.id).map(|item| item.published);
    date.is_some()
        && entry.published == date
        && !others.any(|other| other == date)
        && !listed.any(|other| other == date)
}

/// Words that tell that a version is not the last of its kind.
const PRELIMINARY: [&str; 9] =
    ["alpha", "beta", "rc", "pre", "preview", "prerelease", "snapshot", "nightly", "dev"];

/// Whether a title tells of a version that its successor replaces: `2.0b3`, `1.4-rc.1`, `5 beta`.
fn is_preliminary(title: &str) -> bool {
    let lower = title.to_lowercase();
    lower.split(|c: char| !c.is_ascii_alphanumeric() && c != '.').any(|word| {
        let mark = word.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
        let letters = mark.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
        let follows_number = mark.len() < word.len();
        PRELIMINARY.contains(&letters)
            || (follows_number && mark.len() > letters.len() && matches!(letters, "a" | "b" | "d"))
    })
}

/// Whether two titles have the same words but for numbers and what says that a version is a draft.
/// Those without words are alike where one is of a draft.
fn is_version_of(a: &str, b: &str) -> bool {
    let final_words = |title: &str| -> HashSet<String> {
        let words = words(title).into_iter();
        words.filter(|word| !PRELIMINARY.contains(&word.as_str())).collect()
    };
    let of_a = final_words(a);
    let tells = !of_a.is_empty() || is_preliminary(a) || is_preliminary(b);
    tells && !a.trim().is_empty() && of_a == final_words(b)
}

/// Whether an older item of the same words stays, a draft where this is one: they are announced side
/// by side.
fn stands_in_a_series(case: &HoleCase<'_>, place: usize, known: &LedgerEntry) -> bool {
    let is_draft = is_preliminary(&known.title);
    let ledger = &case.window.input.snapshot.known;
    let mut stay = case.window.older_that_stay(place).filter_map(|at| ledger.get(at));
    stay.by_ref().take(COMPARED).any(|other| {
        (!is_draft || is_preliminary(&other.title)) && is_version_of(&other.title, &known.title)
    })
}
