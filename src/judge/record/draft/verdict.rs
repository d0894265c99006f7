//! What comes of a draft: a change, where anything is worth a write, and when to look again.

use super::super::{Verdict, head, last_changed, settled};
use super::ChangeDraft;
use std::time::Duration;
use tidegate_core::model::{Change, Conflicting, FeedState, ItemStatus, Tick, Time};

/// What ripens later than this is no reason to poll sooner than the schedule does.
const SOON: Duration = Duration::from_secs(4 * 24 * 3600);
/// The shortest time until pending evidence is decided again.
const MIN_DECISION_WAIT: Duration = Duration::from_secs(15 * 60);
/// The longest time until pending evidence is decided again.
const MAX_DECISION_WAIT: Duration = Duration::from_secs(6 * 3600);

impl ChangeDraft<'_> {
    /// The verdict: a change where anything is worth a write.
    pub(in super::super) fn into_verdict(mut self, held: Option<String>) -> Verdict {
        let now = self.observation.now;
        let decision_due;
        (self.state.next_decision_at, decision_due) = self.decision_times(held.is_some());
        let writes = self.shown_changed
            || self.kept.is_some()
            || !self.known.is_empty()
            || !self.events.is_empty()
            || needs_write(&self.snapshot.state, &self.state);
        if !writes {
            return Verdict { held, decision_due, ..Verdict::default() };
        }
        if self.observation.snapshot.is_none() {
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
            // Each new archive gets an `updated` second of its own before the feed's new one. The feed's previous
            // second may be used, because no archive has it.
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
            feed: self.observation.feed.clone(),
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
        Verdict { change: Some(change), held, decision_due, ..Verdict::default() }
    }

    /// When pending evidence next changes what is decided, and when to poll for it at the latest.
    fn decision_times(&self, is_held: bool) -> (Option<Time>, Option<Time>) {
        let deletions = self.observation.options.deletions;
        let (now, running_now) = (self.observation.now, self.observation.running_now);
        let pending = self.ledger().filter(|k| k.standing == ItemStatus::Current);
        let ripens = pending
            .filter_map(|k| k.absence.as_ref())
            .map(|absence| crate::hole::ripens_from(absence, deletions, running_now))
            .min();
        let due = self.ledger().filter_map(|k| k.noise.waiting.as_ref()).map(|w| w.due).min();
        let decision_due = if is_held {
            Some(crate::document::next_poll_of_held(now))
        } else {
            let soon = ripens.filter(|at| *at <= running_now.plus(SOON));
            let ripens = soon.map(|at| {
                at.clamp(running_now.plus(MIN_DECISION_WAIT), running_now.plus(MAX_DECISION_WAIT))
            });
            let earliest =
                earlier(ripens, due.map(|at| at.max(running_now.plus(MIN_DECISION_WAIT))));
            earliest.map(|at| at.by_another_clock(running_now, now))
        };
        let due = earlier(due, head::due(self));
        (earlier(ripens, due), decision_due)
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
