use super::{HoleRule, Objection};
use crate::rules::Rule;

/// A scraper that missed a page, an editor's choice, a front page: single items go one by one.
pub(super) const RULE: HoleRule = HoleRule {
    rule: Rule {
        name: "many",
        sentence: "three or more went in one step: publishers bring back one in four of such, and \
                   one in fifty of single ones",
    },
    objects: |case, _, _| {
        let others = case.holes.saturating_sub(1);
        let why =
            format!("it went with {others} others at once, which publishers often bring back");
        (case.holes >= MANY).then_some(Objection::Settled(why))
    },
};

/// So many holes in one step are no removals of single items.
const MANY: usize = 3;
