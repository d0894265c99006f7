use super::{HoleRule, Objection};
use crate::rules::Rule;

/// A window that breathes shows older items for a while: what came in at its old end, after all that
/// is newer, may go from there again, and so may several that came in among others and go together. What is pinned
/// above newer ones, where no dates tell its age, goes back to where it belongs, mostly below the old end.
pub(super) const RULE: HoleRule = HoleRule {
    rule: Rule {
        name: "came-late",
        sentence: "it had come in at the old end, below newer items, or was pinned above them",
    },
    objects: |case, place, known| {
        let window = case.window;
        let ledger = &window.input.snapshot.known;
        let was_before = |at: usize| ledger.get(at).is_some_and(|k| k.came < known.came);
        let goes_as_it_came = || !window.older_that_stay(place).any(was_before);
        let late =
            window.came_late(place) && (goes_as_it_came() || window.goes_with_all_that_came(place));
        let is_pinned = !(window.dated || window.has_dates)
            && window.stood_above_newer(place)
            && goes_as_it_came();
        let why = match late {
            true => "it had come in below newer items, as a window that breathes shows older ones",
            false => "it stood above newer items, as what is pinned does",
        };
        (late || is_pinned).then(|| Objection::settled(why))
    },
};
