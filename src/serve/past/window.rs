//! What the sync view showed at some time, of everything that there was then. Pure.

use crate::plan::ReadPlan;
use crate::problem::Problem;
use std::collections::HashSet;
use std::time::Duration;
use tidegate_core::model::{Deletion, Family, FeedState, Item, Tick, Time};
use tidegate_format::render::ViewKind;
use tidegate_store::{Select, View};

/// What a document of the past shows.
#[derive(Debug)]
pub(super) struct PastWindow {
    /// The items, and all around them.
    pub(super) view: View,
    /// What is said to be deleted.
    pub(super) deleted: Vec<Deletion>,
    /// `sx:sharing/@since`.
    pub(super) since: Option<Tick>,
    /// `sx:sharing/@until`.
    pub(super) until: Option<Tick>,
}

impl PastWindow {
    /// All that was read.
    pub(super) const fn all(view: View) -> Self {
        Self { view, deleted: Vec::new(), since: None, until: None }
    }
}

/// The window that ended at `at`, or what came in it after the tick `seen`. `all`: every item and
/// tombstone of then.
///
/// As in the present, the window starts at the greatest tick that has left it (SSE 1.0 section
/// 4.2.4).
pub(super) fn at(
    mut all: View,
    at: Time,
    window: Duration,
    seen: Option<Tick>,
) -> Result<PastWindow, Problem> {
    let cutoff = Tick::at(at.minus(window));
    let left = all.items.iter().map(|item| item.tick).filter(|tick| *tick < cutoff).max();
    let window_start = left.max(all.state.complete_start.filter(|_| all.state.tick.is_some()));
    let then = FeedState { window_start, ..all.state.clone() };
    let plan = ReadPlan::new(ViewKind::Sync, seen, &then)?;
    let (since, until) = plan.bounds(&then);
    let Select::After(after) = plan.select() else { return Ok(PastWindow::all(all)) };
    let living = all.items.iter().filter(|item| !item.shared.winner.deleted);
    let borne: HashSet<String> = living.map(|item| item.published_id.clone()).collect();
    all.items.retain(|item| item.tick > after);
    let is_said = |item: &&Item| {
        item.shared.winner.deleted
            && then.format.family() == Family::Atom
            && !borne.contains(&item.published_id)
    };
    let deleted = all.items.iter().filter(is_said).map(Deletion::from).collect();
    Ok(PastWindow { view: all, deleted, since, until })
}
