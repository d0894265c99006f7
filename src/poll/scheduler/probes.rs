//! Rounds that ask for missing items: they wait in their host's line like polls.

use super::PollScheduler;
use super::errands::{ErrandState, FinishedErrand};
use crate::allowance::{FEED_ASKS_PER_HOUR, HOST_ASKS_PER_HOUR, HOST_DOUBTS_PER_HOUR};
use crate::error::RoundError;
use crate::politeness::{Errand, PoliteHost};
use crate::probe::{self, ProbeResult};
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::model::{FeedName, Probing};
use tidegate_judge::probe::ProbePlan;
use tidegate_status::FinishedProbe;
use tokio::time::Instant;

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

    /// Puts what is to be asked at the end of its host's line.
    pub(super) fn line_up(&mut self, name: &FeedName, plan: ProbePlan) {
        let host = self.settings.host(plan.listed.as_str());
        let Some(feed) = self.feeds.get_mut(name) else { return };
        if !matches!(feed.probing, ErrandState::None) {
            return;
        }
        feed.probe_plan = Some(Box::new(plan));
        self.enqueue(&Errand::Probe(name.clone()), host);
        self.board.change(name, |status| status.probing = true);
    }

    /// Begins to ask, where the host was not asked too much within the hour.
    pub(super) fn begin_probe(&mut self, name: &FeedName) {
        let now = self.bench.decisions.running.now();
        let cancel = self.cancel.child_token();
        let bench = Arc::clone(&self.bench);
        let Some(feed) = self.feeds.get_mut(name) else { return };
        let Some(host) = feed.probing.leave_line() else { return };
        let Some(mut plan) = feed.probe_plan.take() else { return };
        let limit = match feed.record.options.probe {
            Probing::Off => 0,
            Probing::All => HOST_ASKS_PER_HOUR,
            Probing::Doubts => HOST_DOUBTS_PER_HOUR,
        };
        plan.items.truncate(self.hosts_asked.room(host.name(), limit, now));
        if plan.items.is_empty() {
            self.polite.finish(&host, Instant::now());
            self.board.change(name, |status| status.probing = false);
            return;
        }
        feed.asked.get_or_insert_default().record_requests(plan.items.len(), now);
        self.hosts_asked.record_requests(host.name(), plan.items.len(), now);
        let sightings = feed.memory.as_ref().map(|memory| memory.sightings()).unwrap_or_default();
        let record = Arc::clone(&feed.record);
        let asking = probe::run(bench, record, *plan, host.spacing(), sightings, cancel.clone());
        let task = async move { FinishedErrand::Probe(asking.await) };
        self.run_errand(Errand::Probe(name.clone()), host, task, cancel);
    }

    pub(super) fn finish_probe(
        &mut self,
        name: &FeedName,
        host: &PoliteHost,
        result: Result<ProbeResult, RoundError>,
    ) {
        let (now, aged) = (self.clock.now(), self.bench.decisions.running.now());
        let Some(feed) = self.feeds.get_mut(name) else { return };
        if let Ok(ProbeResult { refused: true, .. }) = &result {
            feed.asked.get_or_insert_default().exhaust(FEED_ASKS_PER_HOUR, aged);
            self.hosts_asked.exhaust(host.name(), aged);
        }
        let asked_for = result.as_ref().ok().and_then(|probed| probed.pause.clone());
        let revision = result.as_ref().ok().and_then(|probed| probed.revision);
        if let (Some(memory), Some(revision)) = (&mut feed.memory, revision) {
            memory.answers_committed(revision);
        }
        match &result {
            Ok(probed) => tracing::debug!(feed = %name, requests = probed.requests, "asked"),
            Err(RoundError::Cancelled | RoundError::Overtaken) => {}
            Err(error) => {
                let error = error.report();
                tracing::warn!(feed = %name, error, "asking for what is missing failed");
            }
        }
        match result {
            Ok(probed) => self.board.change(name, |status| {
                status.probing = false;
                let ProbeResult { at, requests, said, counts, .. } = probed;
                status.add_probe(FinishedProbe { at, requests, said, counts });
            }),
            Err(_) => self.note_unasked(name, self.polite.paused(host, Instant::now()), now),
        }
        if let Some(asked_for) = asked_for {
            self.pause(&asked_for);
        }
    }
}
