//! Errands of feeds: what is due, what stands in a host's line and what is in flight, of every kind.

use super::hub::HubAsked;
use super::{Done, PollScheduler, ScheduledFeed};
use crate::backfill::Stepped;
use crate::error::RoundError;
use crate::politeness::{Errand, PoliteHost};
use crate::probe::ProbeResult;
use crate::subscribe::Failed;
use tidegate_core::model::Time;
use tokio::task::{Id, JoinError};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How many errands that are over are taken in before commands and the clock are looked at again.
const FINISHED_AT_ONCE: usize = 64;

/// Where the next errand of a kind is, of a feed.
pub(super) enum ErrandState {
    /// There is none to come.
    None,
    /// It is due at that time.
    Due(Time),
    /// It stands in the line of a host.
    InLine(PoliteHost),
    /// It is in flight.
    Running(Box<(Id, CancellationToken)>),
}

impl ErrandState {
    /// Takes the host in whose line the errand stood.
    pub(super) fn leave_line(&mut self) -> Option<PoliteHost> {
        match std::mem::replace(self, Self::None) {
            Self::InLine(host) => Some(host),
            other => {
                *self = other;
                None
            }
        }
    }

    /// Ends the errand of this task; false where another one has taken its place.
    pub(super) fn end(&mut self, id: Id) -> bool {
        let is_it = matches!(self, Self::Running(running) if running.0 == id);
        if is_it {
            *self = Self::None;
        }
        is_it
    }
}

/// What came of an errand.
pub(super) enum FinishedErrand {
    /// A poll; otherwise how it broke off.
    Poll(Result<Box<Done>, String>),
    Probe(Result<ProbeResult, RoundError>),
    Step(Result<Stepped, RoundError>),
    Hub(HubAsked),
}

impl FinishedErrand {
    /// What came of an errand whose task broke off.
    fn broken_off(errand: &Errand, error: String) -> Self {
        match errand {
            Errand::Poll(_) => Self::Poll(Err(error)),
            Errand::Probe(_) => Self::Probe(Err(RoundError::Defect(error))),
            Errand::Walk(_) => Self::Step(Err(RoundError::Defect(error))),
            Errand::Hub(_) => {
                let why = format!("asking it failed: {error}");
                Self::Hub(Some(Err(Failed { why, wait: None, pause: None })))
            }
        }
    }
}

impl ScheduledFeed {
    /// Where the errand of a kind is; polls have more to them.
    pub(super) const fn state_of(&mut self, errand: &Errand) -> Option<&mut ErrandState> {
        match errand {
            Errand::Poll(_) => None,
            Errand::Probe(_) => Some(&mut self.probing),
            Errand::Walk(_) => Some(&mut self.walking),
            Errand::Hub(_) => Some(&mut self.subscribing),
        }
    }
}

impl PollScheduler {
    /// Has an errand stand in its host's line from that time on, instead of when it was due before.
    pub(super) fn plan_errand(&mut self, errand: Errand, at: Time) {
        let feed = self.feeds.get_mut(errand.feed());
        let Some(state) = feed.and_then(|feed| feed.state_of(&errand)) else { return };
        if let ErrandState::Due(old) = std::mem::replace(state, ErrandState::Due(at)) {
            self.due.remove(&(old, errand.clone()));
        }
        self.due.insert((at, errand));
    }

    /// Puts an errand at the end of its host's line.
    pub(super) fn enqueue(&mut self, errand: &Errand, host: PoliteHost) {
        let feed = self.feeds.get_mut(errand.feed());
        let Some(state) = feed.and_then(|feed| feed.state_of(errand)) else { return };
        self.polite.enqueue(errand.clone(), &host, Instant::now());
        *state = ErrandState::InLine(host);
    }

    /// Begins an errand that had its turn at a host.
    pub(super) fn run_errand(
        &mut self,
        errand: Errand,
        host: PoliteHost,
        task: impl Future<Output = FinishedErrand> + Send + 'static,
        cancel: CancellationToken,
    ) {
        let id = self.running.spawn(task).id();
        let feed = self.feeds.get_mut(errand.feed());
        if let Some(state) = feed.and_then(|feed| feed.state_of(&errand)) {
            *state = ErrandState::Running(Box::new((id, cancel)));
        }
        self.in_flight.insert(id, (errand, host));
    }

    /// Gives up an errand, wherever it is.
    pub(super) fn forget(&mut self, errand: &Errand) {
        let feed = self.feeds.get_mut(errand.feed());
        let Some(state) = feed.and_then(|feed| feed.state_of(errand)) else { return };
        match std::mem::replace(state, ErrandState::None) {
            ErrandState::None => {}
            ErrandState::Due(at) => drop(self.due.remove(&(at, errand.clone()))),
            ErrandState::InLine(host) => self.polite.forget(errand, &host),
            ErrandState::Running(running) => running.1.cancel(),
        }
    }

    /// Takes in what came of the errands that are over already, so many at most.
    pub(super) fn finish_others(&mut self) {
        for _ in 0..FINISHED_AT_ONCE {
            let Some(done) = self.running.try_join_next_with_id() else { return };
            self.finish(done);
        }
    }

    /// Takes in what came of an errand.
    pub(super) fn finish(&mut self, done: Result<(Id, FinishedErrand), JoinError>) {
        let (id, done) = match done {
            Ok((id, done)) => (id, Ok(done)),
            Err(error) => (error.id(), Err(error.to_string())),
        };
        // That of a subscription that is left belongs to nobody.
        let Some((errand, host)) = self.in_flight.remove(&id) else { return };
        let done = done.unwrap_or_else(|error| FinishedErrand::broken_off(&errand, error));
        // A poll that was asked for has no turn to give back.
        if !matches!(errand, Errand::Poll(_)) {
            self.polite.finish(&host, Instant::now());
        }
        // The feed of that name may be another one by now, or the errand may have been given up.
        let name = errand.feed();
        let state = self.feeds.get_mut(name).and_then(|feed| feed.state_of(&errand));
        let is_current = state.is_some_and(|state| state.end(id));
        match done {
            FinishedErrand::Poll(done) => self.finish_poll(name, &host, done),
            FinishedErrand::Probe(result) if is_current => self.finish_probe(name, &host, result),
            FinishedErrand::Step(result) if is_current => self.finish_step(name, &host, result),
            FinishedErrand::Hub(asked) => self.finish_hub(name, is_current, asked),
            FinishedErrand::Probe(_) | FinishedErrand::Step(_) => {}
        }
    }
}
