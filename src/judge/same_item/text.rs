//! The rule `text`.

use super::features::{Feature, entry_texts, long_texts};
use super::pairs::{CandidatePair, OWN, TELLING};
use crate::rules::Rule;
use tidegate_core::model::Entry;

pub(super) const RULE: Rule =
    Rule { name: "text", sentence: "a text of 60 units or more (of an entry without a title, 10)" };

/// The texts of an entry that tell it from others, and those among them that are long.
pub(super) struct Texts {
    telling: Vec<(u64, u64)>,
    long: Vec<(u64, u64)>,
}

impl Texts {
    pub(super) fn new(entry: &Entry<'_>) -> Self {
        Self { telling: entry_texts(entry), long: long_texts(entry) }
    }
}

/// Weighs the text of both that says most.
pub(super) fn weigh(candidate: &CandidatePair<'_>, texts: &Texts) -> u8 {
    let shared = texts.telling.iter().filter(|print| candidate.old.prints.contains(print));
    let weigh = |print: &(u64, u64)| {
        let own = if texts.long.contains(print) { TELLING } else { OWN };
        // Whose texts are listed no more cannot be asked who else bears them.
        match candidate.is_own(&Feature::Text(*print)) {
            Some(true) if candidate.is_listed() => own,
            Some(true) => own - 1,
            _ => 0,
        }
    };
    shared.map(weigh).max().unwrap_or_default()
}
