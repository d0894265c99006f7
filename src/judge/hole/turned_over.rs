use super::{HoleRule, Objection};
use crate::rules::Rule;
use crate::window::keeps_everything;

/// Where half of a window goes at once and others come, some that stay prove nothing.
pub(super) const RULE: HoleRule = HoleRule {
    rule: Rule {
        name: "turned-over",
        sentence: "half of the window went at once while others came, or more than half",
    },
    objects: |case, _, _| {
        let window = case.window;
        // What slid off with nothing left below it says nothing of what went from the middle.
        let gone = if window.slid_cleanly() > 0 { case.holes } else { window.outgoing };
        let all = window.old.len();
        let half = gone * 2 > all || (gone * 2 == all && !window.incoming.is_empty());
        (half && !keeps_everything(case.character()))
            .then(|| Objection::Settled(format!("{gone} of {all} items went at once")))
    },
};
