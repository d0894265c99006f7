//! The rule `wording`: titles that were made of each other.

use super::pairs::{DISTINCTIVE_WEIGHT, UNIQUE_WEIGHT};
use crate::rules::Rule;
use foldhash::HashSet;
use tidegate_core::xml::has_units;

pub(super) const RULE: Rule = Rule {
    name: "wording",
    sentence: "a title that shares half of its words, in which no number stands for another; a title \
               that goes on",
};

/// Words that two titles must share, numbers aside, to tell that one was made of the other.
const SHARED_WORDS: usize = 3;
/// A title that says less, in [units](has_units), is too easily a part of another one.
const TELLING_PART: usize = 12;

/// Weighs titles that are not the same.
pub(super) fn weigh(new: &str, old: &str) -> u8 {
    if shares_words(new, old, (3, 4)) {
        DISTINCTIVE_WEIGHT
    } else if is_reworded(new, old) || continues(new, old) {
        UNIQUE_WEIGHT
    } else {
        0
    }
}

/// The words of a title, without those that bear a digit.
pub(crate) fn words(title: &str) -> HashSet<String> {
    let words = title.split(|c: char| !c.is_alphanumeric());
    let words = words.filter(|w| !w.is_empty() && !w.contains(|c: char| c.is_ascii_digit()));
    words.map(str::to_lowercase).collect()
}

/// Whether two titles share half of their words and enough of them, and no number of one stands for
/// a number of the other.
pub(crate) fn is_reworded(new: &str, old: &str) -> bool {
    shares_words(new, old, (1, 2))
}

fn shares_words(new: &str, old: &str, (part, of): (usize, usize)) -> bool {
    let (new_words, old_words) = (words(new), words(old));
    let shared = new_words.intersection(&old_words).count();
    shared >= SHARED_WORDS
        && shared * of >= (new_words.len() + old_words.len() - shared) * part
        && !is_another_number(new, old)
}

/// Whether one of two titles is the other with something added.
pub(crate) fn continues(a: &str, b: &str) -> bool {
    let (a, b) = (a.trim().to_lowercase(), b.trim().to_lowercase());
    let (short, long) = if a.len() <= b.len() { (&a, &b) } else { (&b, &a) };
    has_units(short, TELLING_PART) && (long.starts_with(short) || long.ends_with(short))
}

/// Whether each title has a number that the other lacks.
fn is_another_number(new: &str, old: &str) -> bool {
    let numbers = |title: &str| -> HashSet<String> {
        let runs = title.split(|c: char| !c.is_ascii_digit());
        runs.filter(|run| !run.is_empty()).map(str::to_owned).collect()
    };
    let (new, old) = (numbers(new), numbers(old));
    new.difference(&old).next().is_some() && old.difference(&new).next().is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_with_another_number_is_another_title() {
        for (new, old, expected) in [
            ("The new ferry sails at last", "The new ferry sails", true),
            ("The new ferry sails on 4 May", "The new ferry sails", true),
            ("Order 17 of the harbour office", "Order 18 of the harbour office", false),
            ("Version 2.0b4 of the reader is out", "Version 2.0b3 of the reader is out", false),
            ("Ferry sails", "Ferry sails again", false),
        ] {
            assert_eq!(is_reworded(new, old), expected, "{new}");
        }
    }
}
