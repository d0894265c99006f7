//! Errands of feeds: what is due and what is in flight, of every kind.

use super::hub::HubAsked;
use super::{Done, PollScheduler, ScheduledFeed};
use crate::backfill::Stepped;
use crate::error::RoundError;
use crate::probe::ProbeEnding;
use crate::subscribe::Failed;
use tidegate_core::model::{FeedName, Time};
use tokio::task::{Id, JoinError};
use tokio_util::sync::{CancellationToken, DropGuard};

/// How many errands that are over are taken in before commands and the clock are looked at again.
const FINISHED_AT_ONCE: usize = 64;

/// What is done for a feed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Errand {
    /// It is polled.
    Poll(FeedName),
    /// Its missing items are asked for.
    Probe(FeedName),
    /// A step through its publisher's older documents is made.
    Walk(FeedName),
    /// Its hub is asked.
    Hub(FeedName),
}

impl Errand {
    /// The feed that it is for.
    pub(super) const fn feed(&self) -> &FeedName {
        match self {
            Self::Poll(feed) | Self::Probe(feed) | Self::Walk(feed) | Self::Hub(feed) => feed,
        }
    }
}

/// Where the next errand of a kind is, of a feed.
pub(super) enum ErrandState {
    /// There is none to come.
    None,
    /// It is due at that time.
    Due(Time),
    /// It waits for its host, or is in flight; it is given up when this is dropped.
    Running(Id, #[allow(dead_code)] DropGuard),
}

impl ErrandState {
    /// Ends the errand of this task; false where another one has taken its place.
    fn end(&mut self, id: Id) -> bool {
        let is_it = matches!(self, Self::Running(running, _) if *running == id);
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
    Probe(Result<ProbeEnding, RoundError>),
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
                Self::Hub(HubAsked::Failed(Failed::new(format!("asking it failed: {error}"))))
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
    /// `false`: there is no such feed.
    fn set_state(&mut self, errand: &Errand, state: ErrandState) -> bool {
        let feed = self.feeds.get_mut(errand.feed());
        let Some(place) = feed.and_then(|feed| feed.state_of(errand)) else { return false };
        if let ErrandState::Due(at) = std::mem::replace(place, state) {
            self.due.remove(&(at, errand.clone()));
        }
        true
    }

    /// Has an errand begin at that time, instead of when it was due before.
    pub(super) fn plan_errand(&mut self, errand: Errand, at: Time) {
        if self.set_state(&errand, ErrandState::Due(at)) {
            self.due.insert((at, errand));
        }
    }

    /// Begins an errand, which waits for its host by itself.
    pub(super) fn run_errand(
        &mut self,
        errand: Errand,
        task: impl Future<Output = FinishedErrand> + Send + 'static,
        cancel: CancellationToken,
    ) {
        let id = self.running.spawn(task).id();
        self.set_state(&errand, ErrandState::Running(id, cancel.drop_guard()));
        self.in_flight.insert(id, errand);
    }

    /// Gives up an errand, wherever it is.
    pub(super) fn forget(&mut self, errand: &Errand) {
        self.set_state(errand, ErrandState::None);
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
        let Some(errand) = self.in_flight.remove(&id) else { return };
        let done = done.unwrap_or_else(|error| FinishedErrand::broken_off(&errand, error));
        // The feed of that name may be another one by now, or the errand may have been given up.
        let name = errand.feed();
        let state = self.feeds.get_mut(name).and_then(|feed| feed.state_of(&errand));
        let is_current = state.is_some_and(|state| state.end(id));
        match done {
            FinishedErrand::Poll(done) => self.finish_poll(name, done),
            FinishedErrand::Probe(result) if is_current => self.finish_probe(name, result),
            FinishedErrand::Step(result) if is_current => self.finish_step(name, result),
            FinishedErrand::Hub(asked) if is_current => self.finish_hub(name, asked),
            _ => {}
        }
    }
}
