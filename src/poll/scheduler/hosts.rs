//! Hosts: where each errand of a feed goes, what is put off while a host wants to be left alone, and
//! what a changed configuration means for lines that are waiting.

use super::errands::ErrandState;
use super::{PollScheduler, ScheduledFeed};
use crate::PollSettings;
use crate::memory::{KeptState, Memory};
use crate::politeness::{Dispatch, Errand, PoliteHost};
use crate::reason::PlannedPoll;
use crate::schedule::describe_duration;
use std::collections::BTreeMap;
use std::time::Duration;
use tidegate_core::model::{FeedName, FeedRecord, Time};
use tidegate_core::websub::subscriber;
use tidegate_net::fetch::PauseRequest;
use tidegate_status::FinishedProbe;
use tokio::time::Instant;

/// How long after the end of a pause what was put off goes on: the second that was begun is waited for.
const MARGIN: Duration = Duration::from_secs(1);

impl ScheduledFeed {
    /// The host in whose line its polls stand.
    pub(super) fn host(&mut self, settings: &PollSettings) -> &PoliteHost {
        let Self { host, memory, record, .. } = self;
        host.get_or_insert_with(|| settings.host(last_read(memory.as_deref(), record)))
    }

    /// The host that an errand of this feed goes to.
    fn host_of(&self, errand: &Errand, settings: &PollSettings) -> Option<PoliteHost> {
        let address = match errand {
            Errand::Poll(_) => last_read(self.memory.as_deref(), &self.record),
            Errand::Walk(_) => {
                let next = self.walk.as_ref().and_then(|walk| walk.next.as_deref());
                next.unwrap_or(&self.record.url)
            }
            Errand::Probe(_) => self.probe_plan.as_ref()?.listed.as_str(),
            Errand::Hub(_) => self.subscription.as_ref()?.address(),
        };
        Some(settings.host(address))
    }

    /// Takes note of the host in whose line an errand stands.
    fn stands_at(&mut self, errand: &Errand, host: &PoliteHost) {
        match self.state_of(errand) {
            None => self.host = Some(host.clone()),
            Some(ErrandState::InLine(place)) => place.clone_from(host),
            Some(_) => {}
        }
    }
}

/// The address of a feed whose memory a round may have.
fn last_read<'a>(memory: Option<&'a Memory>, feed: &'a FeedRecord) -> &'a str {
    memory.map_or(feed.url.as_str(), |memory| read_from(&memory.poll, feed))
}

/// Where a feed was read last: feeds whose addresses all redirect to one host wait in that host's line.
/// Once reading it fails, the configured address is asked again.
pub(super) fn read_from<'a>(poll: &'a KeptState, feed: &'a FeedRecord) -> &'a str {
    let address = poll.answered_by.address(&feed.url).filter(|_| poll.failures == 0);
    address.unwrap_or(&feed.url)
}

impl PollScheduler {
    /// Runs what has its turn, and puts off what must wait for the end of its host's pause.
    pub(super) fn run_errands(&mut self, now: Time, instant: Instant) {
        while let Some(dispatch) = self.polite.next(instant) {
            match dispatch {
                Dispatch::Begin(Errand::Poll(name)) => self.begin(&name, Vec::new()),
                Dispatch::Begin(Errand::Probe(name)) => self.begin_probe(&name),
                Dispatch::Begin(Errand::Walk(name)) => self.begin_step(&name),
                Dispatch::Begin(Errand::Hub(name)) => self.begin_hub(&name),
                Dispatch::PutOff(errand, left) => self.put_off(&errand, left, now),
            }
        }
    }

    fn put_off(&mut self, errand: &Errand, left: Duration, now: Time) {
        let name = errand.feed();
        let at = now.plus(left).plus(MARGIN);
        let Some(feed) = self.feeds.get_mut(name) else { return };
        match errand {
            Errand::Poll(_) => {
                feed.in_line = false;
                let reason =
                    "its host asked for a pause in answer to another request (Retry-After)";
                self.schedule(name, PlannedPoll::new(at, reason));
            }
            Errand::Walk(_) => {
                let note = "it waits, because the host asked for a pause (Retry-After)";
                if let Some(walk) = &mut feed.walk {
                    walk.note = Some(note.to_owned());
                }
                let walk = feed.walk.clone();
                self.next_step(name, at);
                self.board.change(name, |status| status.rare.change(|rare| rare.backfill = walk));
            }
            // What is to be asked is planned anew after a poll; by then it may be something else.
            Errand::Probe(_) => {
                (feed.probing, feed.probe_plan) = (ErrandState::None, None);
                self.note_unasked(name, Some(left), now);
            }
            Errand::Hub(_) => {
                feed.subscribing = ErrandState::None;
                if let Some(it) = &mut feed.subscription {
                    let why =
                        "its host asked for a pause in answer to another request (Retry-After)";
                    subscriber::put_off(it, why, at);
                }
                self.hub_changed(name);
            }
        }
    }

    /// Notes that missing items are not asked for, or not any more.
    pub(super) fn note_unasked(&mut self, name: &FeedName, left: Option<Duration>, at: Time) {
        let said = left.map(|left| {
            let left = describe_duration(left.max(MARGIN));
            format!("nothing more was asked: the host asked for a pause (Retry-After), {left} of it are left")
        });
        self.board.change(name, |status| {
            status.probing = false;
            if let Some(said) = said {
                let (requests, counts) = (0, BTreeMap::new());
                status.add_probe(FinishedProbe { at, requests, said: vec![said], counts });
            }
        });
    }

    /// Takes in that a host asks to be left alone, in answer to whatever request.
    pub(super) fn pause(&mut self, pause: &PauseRequest) {
        let (host, now) = (self.settings.host(&pause.address), Instant::now());
        tracing::debug!(host = host.full(), wait = ?pause.wait, "a host asked for a pause");
        self.polite.pause(&host, pause.wait, now);
        // A round of asking for missing items is more than one request.
        for (errand, host) in self.in_flight.values() {
            if matches!(errand, Errand::Probe(_))
                && self.polite.paused(host, now).is_some()
                && let Some(ScheduledFeed { probing: ErrandState::Running(running), .. }) =
                    self.feeds.get(errand.feed()).map(Box::as_ref)
            {
                running.1.cancel();
            }
        }
    }

    /// Puts what waits into lines as the configuration has them now.
    pub(super) fn rearrange_lines(&mut self) {
        let (settings, feeds) = (&self.settings, &mut self.feeds);
        for feed in feeds.values_mut() {
            feed.host_of_address = None;
            // What is in flight ends in the line that it began in.
            if feed.running.is_none() {
                feed.host = None;
            }
        }
        let host_of = |errand: &Errand| {
            let feed = feeds.get_mut(errand.feed())?;
            let host = feed.host_of(errand, settings)?;
            feed.stands_at(errand, &host);
            Some(host)
        };
        self.polite.rearrange(host_of, Instant::now());
    }
}
