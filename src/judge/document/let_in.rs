//! What of a held document is believed all the same: new posts that nothing in it makes doubtful.

use super::{mass_changed, re_keyed, shrunken};
use crate::same_item::{self, Basis};
use crate::window::{WindowShift, is_let_in};
use tidegate_core::model::Completeness;

/// The number of items of the last document, or let in since, under unchanged ids, that proves that this is the same feed.
const SAME_FEED: usize = 2;
/// One such item per this many entries proves it as well.
const SAME_FEED_PART: usize = 4;

/// Returns the new entries of a held document that are let in before the hold ends, in document order; none if the
/// document may be another feed's. `kind`: the rule that holds it.
pub(crate) fn entries_to_let_in(window: &WindowShift<'_>, kind: &str) -> Vec<usize> {
    let input = &window.input;
    let document = input.document;
    let is_re_keyed = kind == re_keyed::RULE.rule.name;
    let is_of_feed =
        is_re_keyed || [shrunken::RULE.rule.name, mass_changed::RULE.rule.name].contains(&kind);
    if !is_of_feed || document.completeness != Completeness::Full {
        return Vec::new();
    }
    let found = document.entries.len();
    // What was let in since is this feed's as well.
    let is_old = |known| window.place(known).is_some() || is_let_in(input, known);
    let old = || input.matching.pairs.iter().filter(|pair| is_old(pair.known));
    let same = old().filter(|pair| pair.basis == Basis::SameId).count();
    if same < SAME_FEED && same * SAME_FEED_PART < found {
        return Vec::new();
    }
    let mut news = same_item::unlike(input.snapshot, document, input.matching);
    if !is_re_keyed && window.dated {
        // By its date it stands where it belongs; what is older than all that stays is backfill.
        news.retain(|at| window.rank(*at) + window.backfill < found);
        return news;
    }
    // A new entry among known ones or below them may be a known one that was not matched; under `re-keyed` so may
    // one that stands where the newest are missing.
    let missing = window.kept.iter().take_while(|kept| !**kept).count();
    let lost = if is_re_keyed { missing } else { 0 };
    let first = old().map(|pair| window.rank(pair.entry)).min();
    news.retain(|at| first.is_some_and(|first| window.rank(*at) < first));
    news.sort_by_key(|at| window.rank(*at));
    news.truncate(news.len().saturating_sub(lost));
    news.sort_unstable();
    news
}
