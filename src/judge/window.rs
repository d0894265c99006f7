//! How a document's window lies over the last one: order, direction, what stayed.

use super::Scene;
use crate::model::{Standing, Time};
use std::collections::HashMap;

/// Which way a document's entries run by their dates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Newest first.
    Down,
    /// Oldest first.
    Up,
    /// Neither, or the dates say nothing.
    None,
}

/// Of the neighbours whose dates can be compared, this share in tenths must agree.
const AGREEING_TENTHS: usize = 9;

/// The last document's order against the new one.
#[derive(Debug, Clone)]
pub struct Window {
    /// Ledger indices in the order of the last document.
    pub old: Vec<usize>,
    /// For each of [`Window::old`]: whether the new document has it.
    pub kept: Vec<bool>,
    /// The direction that both documents run in; none where they differ.
    pub direction: Direction,
    /// Entries that are new, or were not in the last document.
    pub incoming: usize,
    /// Items of the last document that are missing.
    pub outgoing: usize,
    /// Whether an older item came in at the old end of the new document.
    pub backfilled: bool,
}

impl Window {
    /// Lays the new document over the last one.
    pub fn new(scene: &Scene<'_>) -> Self {
        let known = &scene.snapshot.known;
        let index: HashMap<&str, usize> =
            known.iter().enumerate().map(|(at, k)| (k.id.as_str(), at)).collect();
        let old: Vec<usize> =
            scene.snapshot.order.iter().filter_map(|id| index.get(id.as_str()).copied()).collect();
        let mut in_document = vec![false; known.len()];
        for pair in &scene.matching.pairs {
            if let Some(there) = in_document.get_mut(pair.known) {
                *there = true;
            }
        }
        let kept: Vec<bool> =
            old.iter().map(|at| in_document.get(*at).copied().unwrap_or(false)).collect();
        let outgoing = kept.iter().filter(|k| !**k).count();
        let incoming = scene.document.entries.len().saturating_sub(old.len() - outgoing);
        let before = direction(old.iter().map(|at| known.get(*at).and_then(date_of_known)));
        let after = direction(scene.document.entries.iter().map(|e| e.published.or(e.updated)));
        let direction = if before == after { before } else { Direction::None };
        let mut window = Self { old, kept, direction, incoming, outgoing, backfilled: false };
        window.backfilled = window.has_backfill(scene);
        window
    }

    /// Where the item stood in the last document.
    pub fn place(&self, known: usize) -> Option<usize> {
        self.old.iter().position(|at| *at == known)
    }

    /// Whether nothing that stood on the old side of this place is kept: it slid off the end.
    pub fn slid_off(&self, place: usize) -> bool {
        let below = || self.kept.iter().skip(place + 1).any(|k| *k);
        let above = || self.kept.iter().take(place).any(|k| *k);
        match self.direction {
            Direction::Down | Direction::None => !below(),
            Direction::Up => !above(),
        }
    }

    /// Whether the old end of the new document holds an item that the last one did not have and
    /// that is older than all that stayed.
    fn has_backfill(&self, scene: &Scene<'_>) -> bool {
        let entries = &scene.document.entries;
        let end = match self.direction {
            Direction::Down => entries.len().checked_sub(1),
            Direction::Up => (!entries.is_empty()).then_some(0),
            Direction::None => None,
        };
        let Some(end) = end else { return false };
        let was_there = scene
            .matching
            .pairs
            .iter()
            .any(|pair| pair.entry == end && self.old.contains(&pair.known));
        let date = entries.get(end).and_then(|e| e.published.or(e.updated));
        let oldest_kept = self
            .old
            .iter()
            .zip(&self.kept)
            .filter(|(_, kept)| **kept)
            .filter_map(|(at, _)| scene.snapshot.known.get(*at).and_then(date_of_known))
            .min();
        let retired = scene.matching.pairs.iter().any(|pair| {
            pair.entry == end
                && scene
                    .snapshot
                    .known
                    .get(pair.known)
                    .is_some_and(|k| matches!(k.standing, Standing::Retired { .. }))
        });
        !was_there && (retired || matches!((date, oldest_kept), (Some(d), Some(o)) if d < o))
    }
}

/// When its publisher says that an item was published, or at least updated.
pub(super) fn date_of_known(known: &crate::model::Known) -> Option<Time> {
    known.published.or(known.updated)
}

fn direction(dates: impl Iterator<Item = Option<Time>>) -> Direction {
    let dates: Vec<Time> = dates.flatten().collect();
    let (mut down, mut up) = (0, 0);
    for (a, b) in dates.iter().zip(dates.iter().skip(1)) {
        down += usize::from(a > b);
        up += usize::from(a < b);
    }
    let all = down + up;
    if all == 0 {
        Direction::None
    } else if down * 10 >= all * AGREEING_TENTHS {
        Direction::Down
    } else if up * 10 >= all * AGREEING_TENTHS {
        Direction::Up
    } else {
        Direction::None
    }
}
