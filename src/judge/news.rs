//! What of a held document is believed all the same: new posts that nothing in it makes doubtful.

use super::JudgeInput;
use super::brake::{MASS_CHANGED, RE_KEYED, SHRUNKEN};
use super::window::{Direction, WindowShift};
use crate::identity::{self, Basis};
use tidegate_core::model::Completeness;

/// So many items of the last document under their ids show that it is the same feed …
const SAME_FEED: usize = 2;
/// … and so do fewer where they are at least one in so many of its entries.
const SAME_FEED_PART: usize = 4;

/// The new entries of a document that the rule `kind` holds that are not to wait for the end of the
/// hold, in the order of the document. None are where it may be another feed's.
pub fn news(scene: &JudgeInput<'_>, window: &WindowShift, kind: &str) -> Vec<usize> {
    let document = scene.document;
    let is_of_feed = [SHRUNKEN, RE_KEYED, MASS_CHANGED].contains(&kind);
    if !is_of_feed || document.completeness != Completeness::Full {
        return Vec::new();
    }
    let found = document.entries.len();
    let old = || scene.matching.pairs.iter().filter(|pair| window.place(pair.known).is_some());
    let same = old().filter(|pair| pair.basis == Basis::SameId).count();
    if same < SAME_FEED && same * SAME_FEED_PART < found {
        return Vec::new();
    }
    let runs_up = window.direction == Direction::Up;
    let mut news = identity::unlike(scene.snapshot, document, scene.matching);
    if kind != RE_KEYED && window.dated {
        // By its date it stands where it belongs; what is older than all that stays is backfill.
        let is_older = |at: usize| match runs_up {
            true => at < window.backfill,
            false => at.saturating_add(window.backfill) >= found,
        };
        news.retain(|at| !is_older(*at));
        return news;
    }
    // What stands among those that were there, or below them, may have been missed; under `re-keyed` it
    // may be one of them that was not recognised. So may what stands next to them where the newest are
    // missing.
    let missing = |kept: &&bool| !**kept;
    let lost = match (kind == RE_KEYED, runs_up) {
        (false, _) => 0,
        (true, true) => window.kept.iter().rev().take_while(missing).count(),
        (true, false) => window.kept.iter().take_while(missing).count(),
    };
    let entries = old().map(|pair| pair.entry);
    if runs_up {
        let last = entries.max();
        news.retain(|at| Some(*at) > last);
        news.drain(..lost.min(news.len()));
    } else {
        let first = entries.min();
        news.retain(|at| first.is_some_and(|first| *at < first));
        news.truncate(news.len().saturating_sub(lost));
    }
    news
}
