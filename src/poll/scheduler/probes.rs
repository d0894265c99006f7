//! Rounds that ask for missing items: tasks that wait in their host's line like polls.

use super::errands::{Errand, ErrandState, FinishedErrand};
use super::{PAUSE_MARGIN, PollScheduler};
use crate::allowance::{FEED_ASKS_PER_HOUR, HOST_ASKS_PER_HOUR, HOST_DOUBTS_PER_HOUR};
use crate::error::RoundError;
use crate::probe::{self, ProbeEnding, ProbeResult};
use crate::schedule::describe_duration;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::model::{FeedName, Probing};
use tidegate_judge::probe::ProbePlan;
use tidegate_status::FinishedProbe;

/// How often a feed is looked through for items that have long been in doubt.
const DOUBTS_EVERY: Duration = Duration::from_secs(3600);

impl PollScheduler {
    /// How many items of a feed may be asked about after its next poll.
    pub(super) fn room_to_ask(&mut self, name: &FeedName) -> usize {
        let now = self.bench.decisions.running.now();
        let Some(feed) = self.feeds.get_mut(name) else { return 0 };
        match feed.probing {
            ErrandState::None => match feed.record.options.probe {
                Probing::Off => 0,
                Probing::All => match &mut feed.asked {
                    Some(asked) => asked.room(FEED_ASKS_PER_HOUR, now),
                    None => FEED_ASKS_PER_HOUR,
                },
                // Doubts last for days: to look for them once an hour is enough.
                Probing::Doubts => {
                    // A clock that went back must not forbid for longer than an hour.
                    let looked = feed.doubts_looked.map(|at| at.min(now));
                    let is_free = looked.is_none_or(|at| now.since(at) >= DOUBTS_EVERY);
                    feed.doubts_looked = if is_free { Some(now) } else { looked };
                    usize::from(is_free)
                }
            },
            _ => 0,
        }
    }

    /// Asks what is planned, where the host was not asked too much within the hour.
    pub(super) fn ask_pages(&mut self, name: &FeedName, mut plan: ProbePlan) {
        let now = self.bench.decisions.running.now();
        let Some(feed) = self.feeds.get_mut(name) else { return };
        if !matches!(feed.probing, ErrandState::None) {
            return;
        }
        if let Some(left) = self.bench.hosts.paused(plan.listed.as_str()) {
            return self.end_probing(name, Some(self.paused_note(left)));
        }
        let host = self.bench.hosts.host(plan.listed.as_str());
        let limit = match feed.record.options.probe {
            Probing::Off => 0,
            Probing::All => HOST_ASKS_PER_HOUR,
            Probing::Doubts => HOST_DOUBTS_PER_HOUR,
        };
        plan.items.truncate(self.hosts_asked.room(host.name(), limit, now));
        if plan.items.is_empty() {
            return;
        }
        feed.asked.get_or_insert_default().record_requests(plan.items.len(), now);
        self.hosts_asked.record_requests(host.name(), plan.items.len(), now);
        feed.cell.lock().probing = true;
        let (bench, cancel) = (Arc::clone(&self.bench), self.cancel.child_token());
        let (record, cell) = (Arc::clone(&feed.record), Arc::clone(&feed.cell));
        let asking = probe::run(bench, record, cell, plan, cancel.clone());
        let task = async move { FinishedErrand::Probe(asking.await) };
        self.run_errand(Errand::Probe(name.clone()), task, cancel);
    }

    pub(super) fn finish_probe(
        &mut self,
        name: &FeedName,
        result: Result<ProbeEnding, RoundError>,
    ) {
        let now = self.bench.decisions.running.now();
        let note = match result {
            Ok(ProbeEnding::Paused(left)) => Some(self.paused_note(left)),
            Ok(ProbeEnding::Asked(probed)) => {
                let ProbeResult { at, requests, said, counts, revision, refused_by } = probed;
                tracing::debug!(feed = %name, requests, "asked");
                let Some(feed) = self.feeds.get_mut(name) else { return };
                if let Some(host) = refused_by {
                    feed.asked.get_or_insert_default().exhaust(FEED_ASKS_PER_HOUR, now);
                    self.hosts_asked.exhaust(&host, now);
                }
                if let Some(revision) = revision {
                    feed.cell.lock().memory.answers_committed(revision);
                }
                Some(FinishedProbe { at, requests, said, counts })
            }
            Err(RoundError::Cancelled | RoundError::Overtaken) => None,
            Err(error) => {
                let error = error.report();
                tracing::warn!(feed = %name, error, "asking for what is missing failed");
                None
            }
        };
        self.end_probing(name, note);
    }

    fn end_probing(&self, name: &FeedName, note: Option<FinishedProbe>) {
        let Some(feed) = self.feeds.get(name) else { return };
        let mut polling = feed.cell.lock();
        polling.probing = false;
        if let Some(note) = note {
            polling.add_probe(note);
        }
    }

    /// Says that nothing was asked, or nothing more: the host wants to be left alone for so long still.
    fn paused_note(&self, left: Duration) -> FinishedProbe {
        let left = describe_duration(left.max(PAUSE_MARGIN));
        let said = format!(
            "nothing more was asked: the host asked for a pause (Retry-After), {left} of it are left"
        );
        let counts = BTreeMap::new();
        FinishedProbe { at: self.clock.now(), requests: 0, said: vec![said], counts }
    }
}
