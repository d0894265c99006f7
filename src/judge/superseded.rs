//! What something newer took the place of was not taken away: a release that takes the place of its
//! betas, a post that was written anew.

use super::absence::Judge;
use super::objections::{LOOKED_AT, Objection};
use super::window::{date_of, dated};
use crate::identity::wording;
use crate::model::LedgerEntry;
use std::time::Duration;

/// A release that takes the place of its betas, a post that was written anew: where something like
/// it came as it went from the new end, it was superseded; and where several went from there at once
/// and others came, the head was cut anew.
pub(super) fn superseded(
    judge: &Judge<'_>,
    place: usize,
    known: &LedgerEntry,
) -> Option<Objection> {
    let window = judge.window;
    let stood_newest = window.stood_newest(place) && window.has_new_head;
    if stood_newest && window.newest_gone() > 1 {
        let gone = window.newest_gone();
        let why = format!("the {gone} newest went at once and others took their place");
        return Some(Objection::Settled(why));
    }
    let is_preliminary = is_preliminary(&known.title);
    if !stood_newest && !is_preliminary {
        return None;
    }
    let date = date_of(known);
    let entries = &judge.scene.document.entries;
    let mut above = entries.iter().enumerate().filter(|(at, entry)| {
        let is_new = window.incoming.binary_search(at).is_ok();
        // The final version may have come before its last draft goes.
        is_new || (is_preliminary && date.is_some() && dated(entry) > date)
    });
    let mut above = above.by_ref().take(LOOKED_AT);
    let is_replaced = above.any(|(_, entry)| {
        let new = dated(entry);
        let title = entry.title.as_deref().unwrap_or_default();
        let is_late = matches!((date, new), (Some(old), Some(new)) if new.since(old) > REWRITTEN);
        let is_next = is_late && !is_preliminary && has_precedents(judge, place, known);
        (stood_newest && date.is_some() && date == new)
            || (!is_next && are_alike(&known.title, title))
    });
    // What took its place is not named: reasons are kept for as long as the item, and titles are to
    // go with what is redacted.
    is_replaced.then(|| Objection::Settled("a newer one like it took its place".to_owned()))
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

/// What was written longer ago is not written anew under another name …
const REWRITTEN: Duration = Duration::from_secs(14 * 24 * 3600);
/// … in a feed that shows so many like it side by side, as releases do that follow each other.
const PRECEDENTS: usize = 2;

/// Whether older ones like an item stay side by side.
fn has_precedents(judge: &Judge<'_>, place: usize, known: &LedgerEntry) -> bool {
    let ledger = &judge.scene.snapshot.known;
    let stay = judge.window.older_that_stay(place).filter_map(|at| ledger.get(at)).take(LOOKED_AT);
    let like = stay.filter(|other| are_alike(&known.title, &other.title));
    like.take(PRECEDENTS).count() == PRECEDENTS
}

/// Whether two titles share half of their words or more, numbers aside; those of numbers alone are
/// alike where they are drafts.
fn are_alike(a_title: &str, b_title: &str) -> bool {
    if a_title.trim().is_empty() || b_title.trim().is_empty() {
        return false;
    }
    let (a, b) = (wording(a_title), wording(b_title));
    let shared = a.intersection(&b).count();
    let numbers_alone = a.is_empty() && b.is_empty();
    if numbers_alone { is_preliminary(a_title) } else { shared * 2 >= a.len() + b.len() - shared }
}
