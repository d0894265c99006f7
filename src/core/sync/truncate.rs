//! Cutting histories without harm (FeedSync sections 3.2 and 3.4; READINGS 1, row 15).

use crate::model::{EndpointId, History, Update};
use std::collections::HashMap;

/// The most updates that a history made here keeps, unless more are needed to detect conflicts.
///
/// Readers like to see what happened, so the recent past is kept; one that fills a screen or two
/// is enough.
pub const HISTORY_LIMIT: usize = 64;

/// Cuts a history to `limit` updates, oldest first.
///
/// Never cut are the topmost, the one with the highest sequence of each endpoint, and those without
/// `by`: without them a conflict would be seen where there is none. They may be more than `limit`.
pub fn truncate(history: &mut History, limit: usize) {
    if history.len() <= limit {
        return;
    }
    let needed = needed(history);
    let mut spare = limit.saturating_sub(needed.iter().filter(|n| **n).count());
    let mut needed = needed.into_iter().skip(1);
    history.retain_below(|_| {
        if needed.next().unwrap_or(true) {
            return true;
        }
        let kept = spare > 0;
        spare = spare.saturating_sub(1);
        kept
    });
}

/// Whether each update of a history must be kept, the topmost first.
fn needed(history: &History) -> Vec<bool> {
    let mut highest: HashMap<&EndpointId, (usize, &Update)> = HashMap::new();
    for (place, update) in history.iter().enumerate() {
        if let Some(by) = update.stamp.by() {
            let best = highest.entry(by).or_insert((place, update));
            if update.sequence > best.1.sequence {
                *best = (place, update);
            }
        }
    }
    let needs = |(place, update): (usize, &Update)| match update.stamp.by() {
        Some(by) => place == 0 || highest.get(by).is_some_and(|best| best.0 == place),
        None => true,
    };
    history.iter().enumerate().map(needs).collect()
}

#[cfg(test)]
mod tests {
    use super::super::is_subsumed;
    use super::super::samples::{both, version, when};
    use super::*;
    use proptest::prelude::*;

    fn numbers(history: &History) -> Vec<u32> {
        history.iter().map(|update| update.sequence.value()).collect()
    }

    #[test]
    fn the_recent_past_is_kept_and_the_needed_far_past() {
        let mut history = History::from_newest_first([
            both(9, 9, "A"),
            both(8, 8, "A"),
            both(7, 7, "A"),
            both(6, 6, "B"),
            both(5, 5, "B"),
            when(4, 4),
            both(3, 3, "C"),
            both(2, 2, "C"),
        ])
        .unwrap();
        truncate(&mut history, 8);
        assert_eq!(history.len(), 8);
        truncate(&mut history, 6);
        assert_eq!(numbers(&history), [9, 8, 7, 6, 4, 3]);
        truncate(&mut history, 1);
        assert_eq!(numbers(&history), [9, 6, 4, 3]);
    }

    #[test]
    fn a_topmost_that_is_not_its_endpoints_highest_stays() {
        let updates = [both(1, 9, "A"), both(5, 8, "A"), both(4, 4, "A")];
        let mut history = History::from_newest_first(updates).unwrap();
        truncate(&mut history, 2);
        assert_eq!(numbers(&history), [1, 5]);
    }

    fn updates() -> impl Strategy<Value = Vec<Update>> {
        let any = (1..9_u32, 0..9_i64, 0..4_usize).prop_map(|(sequence, seconds, by)| {
            match ["A", "B", "C"].get(by) {
                Some(by) => both(sequence, seconds, by),
                None => when(sequence, seconds),
            }
        });
        proptest::collection::vec(any, 1..30)
    }

    proptest! {
        /// What a history subsumes is the same before and after, whatever the limit.
        #[test]
        fn no_conflict_is_detected_that_was_none(
            updates in updates(),
            probe in updates(),
            limit in 0..30_usize,
        ) {
            let whole = version(1, "", updates);
            let mut cut = whole.clone();
            truncate(&mut cut.history, limit);
            prop_assert_eq!(cut.history.topmost(), whole.history.topmost());
            let probe = version(1, "", probe);
            prop_assert_eq!(is_subsumed(&probe, &cut), is_subsumed(&probe, &whole));
            prop_assert!(cut.history.len() <= limit || cut.history.len() <= whole.history.len());
            let mut again = cut.clone();
            truncate(&mut again.history, limit);
            prop_assert_eq!(again, cut);
        }
    }
}
