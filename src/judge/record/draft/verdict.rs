//! What comes of a draft: a change, where anything is worth a write, and when to look again.

use super::super::{Verdict, head, last_changed, settled};
use super::ChangeDraft;
use std::time::Duration;
use tidegate_core::model::{Change, Conflicting, FeedState, ItemStatus, Tick, Time};

/// What ripens later than this is no reason to poll sooner than the schedule does.
const SOON: Duration = Duration::from_secs(4 * 24 * 3600);
/// Pending evidence is looked at again no sooner than this …
const LEAST_LOOK: Duration = Duration::from_secs(15 * 60);
/// … and no later.
const MOST_LOOK: Duration = Duration::from_secs(6 * 3600);

impl ChangeDraft<'_> {
    /// The verdict: a change where anything is worth a write.
    pub(in super::super) fn into_verdict(mut self, held: Option<String>) -> Verdict {
        let deletions = self.round.options.deletions;
        let (now, aged) = (self.round.now, self.round.aged);
        let pending = self.ledger().filter(|k| k.standing == ItemStatus::Current);
        let ripens = pending
            .filter_map(|k| k.absence.as_ref())
            .map(|absence| crate::hole::ripens_from(absence, deletions, aged))
            .min();
        let due = self.ledger().filter_map(|k| k.noise.waiting.as_ref()).map(|w| w.due).min();
        let look_again = if held.is_some() {
            Some(crate::document::next_look(now))
        } else {
            let soon = ripens.filter(|at| *at <= aged.plus(SOON));
            let ripens = soon.map(|at| at.clamp(aged.plus(LEAST_LOOK), aged.plus(MOST_LOOK)));
            let look = earlier(ripens, due.map(|at| at.max(aged.plus(LEAST_LOOK))));
            look.map(|at| at.by_another_clock(aged, now))
        };
        let due = earlier(due, head::due(&self));
        self.state.next_decision_at = earlier(ripens, due);
        let writes = self.shown_changed
            || self.kept.is_some()
            || !self.known.is_empty()
            || !self.events.is_empty()
            || needs_write(&self.snapshot.state, &self.state);
        if !writes {
            return Verdict { held, look_again, ..Verdict::default() };
        }
        if self.round.snapshot.is_none() {
            self.order.get_or_insert_default();
        }
        if let Some(order) = &self.order {
            self.state.current = u32::try_from(order.len()).unwrap_or(u32::MAX);
        }
        let has_tick = self.tells_head || self.begins_window || !self.versions.is_empty();
        let tick = has_tick.then_some(self.tick);
        self.shown_changed |= tick.is_some();
        if tick.is_some() {
            self.state.tick = tick;
            if self.begins_window {
                (self.state.window_start, self.state.complete_start) = (tick, tick);
            }
            let first = Tick::at(self.tick.time().minus(Duration::from_secs(1)));
            self.state.window_start.get_or_insert(first);
            self.state.complete_start.get_or_insert(first);
        }
        let made = u32::try_from(self.versions.len()).unwrap_or(u32::MAX);
        let seals = self.seal(made);
        let evicted = self.evict(&seals);
        if self.shown_changed {
            self.state.render_revision = self.state.render_revision.saturating_add(1);
            // Each archive has a second of its own, and the feed the one after them; the one before
            // was nobody's but the feed's.
            let seconds = u64::try_from(seals.len()).unwrap_or(u64::MAX).max(1);
            let later = self.state.updated_at.plus(Duration::from_secs(seconds));
            self.state.updated_at =
                if self.state.render_revision == 1 { now } else { now.max(later) };
            last_changed::note(&mut self);
        }
        let reinstated = self.reinstated();
        let shown = now.max(self.state.updated_at);
        self.state.evictions.note(evicted.len(), reinstated.len(), shown);
        self.count(&evicted);
        let index = settled::index(&self, &evicted);
        let events = self.titled_events();
        let change = Change {
            feed: self.round.feed.clone(),
            base: self.snapshot.state.revision,
            at: now,
            asked_at: None,
            tick,
            state: self.state,
            skeleton: self.skeleton,
            order: self.order,
            known: self.known.into_values().collect(),
            index,
            versions: self.versions.into_values().collect(),
            latest: self.latest.into_iter().collect(),
            conflicts: self
                .conflicts
                .into_iter()
                .map(|(id, versions)| Conflicting { id, versions })
                .collect(),
            kept: self.kept,
            redacted: self.redacted,
            evicted,
            reinstated,
            events,
            seals,
        };
        Verdict { change: Some(change), held, look_again, ..Verdict::default() }
    }
}

fn earlier(one: Option<Time>, other: Option<Time>) -> Option<Time> {
    one.into_iter().chain(other).min()
}

/// Whether the state changes in something that must be kept. All else is written with the next change.
fn needs_write(before: &FeedState, after: &FeedState) -> bool {
    before.hold != after.hold
        || before.flaws != after.flaws
        || before.told != after.told
        || before.source != after.source
        || before.upstream_until != after.upstream_until
        || before.archives.first != after.archives.first
}
