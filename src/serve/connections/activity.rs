//! What a connection is doing, and whether it is to end.

use super::limits::ConnectionAge;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Waker};
use std::time::Duration;

/// Whether a connection goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Ending {
    /// It goes on.
    No,
    /// It ends when the answers in flight have gone out.
    Graceful,
    /// It ends now.
    Now,
}

/// The protocol of a connection that has asked for nothing yet.
const UNKNOWN: u8 = 0;
const HTTP_1: u8 = 1;
const HTTP_2: u8 = 2;

/// The time as a sweep over all connections last read it, in milliseconds since the server began: a
/// request reads no clock.
pub(super) type SweepClock = Arc<AtomicU64>;

/// What a connection is doing.
#[derive(Debug)]
pub(crate) struct Activity {
    requests: AtomicUsize,
    is_stalled: AtomicBool,
    protocol: AtomicU8,
    clock: SweepClock,
    /// When it was accepted, when it last came to rest and when it was told to end, by that clock.
    opened: u64,
    rested: AtomicU64,
    told: AtomicU64,
    ending: AtomicU8,
    /// Of the task that serves the connection.
    waker: Mutex<Option<Waker>>,
}

impl Activity {
    /// Of a connection that was accepted just now.
    pub(super) fn new(clock: SweepClock) -> Self {
        let opened = clock.load(Ordering::Relaxed);
        Self {
            requests: AtomicUsize::new(0),
            is_stalled: AtomicBool::new(false),
            protocol: AtomicU8::new(UNKNOWN),
            clock,
            opened,
            rested: AtomicU64::new(opened),
            told: AtomicU64::new(0),
            ending: AtomicU8::new(Ending::No as u8),
            waker: Mutex::default(),
        }
    }

    /// A request is in flight until what this returns is dropped.
    pub(crate) fn begin(self: &Arc<Self>, is_http_1: bool) -> Busy {
        if self.protocol.load(Ordering::Relaxed) == UNKNOWN {
            let protocol = if is_http_1 { HTTP_1 } else { HTTP_2 };
            self.protocol.store(protocol, Ordering::Relaxed);
        }
        self.requests.fetch_add(1, Ordering::AcqRel);
        Busy(Arc::clone(self))
    }

    /// Whether bytes of an answer wait for the client to take them.
    pub(crate) fn stalls(&self, is_stalled: bool) {
        self.is_stalled.store(is_stalled, Ordering::Release);
    }

    pub(super) fn is_idle(&self) -> bool {
        self.requests.load(Ordering::Acquire) == 0 && !self.is_stalled.load(Ordering::Acquire)
    }

    /// When it last came to rest.
    pub(super) fn rested(&self) -> u64 {
        self.rested.load(Ordering::Relaxed)
    }

    /// How long it has done what it does, at `now` by the sweep's clock.
    pub(super) fn age(&self, now: u64) -> ConnectionAge {
        let since = |then: u64| Duration::from_millis(now.saturating_sub(then));
        let protocol = self.protocol.load(Ordering::Relaxed);
        let is_ending = self.ending.load(Ordering::Acquire) != Ending::No as u8;
        ConnectionAge {
            open: since(self.opened),
            has_asked: protocol != UNKNOWN,
            // HTTP/2 has pings for that.
            head: (protocol == HTTP_1 && self.is_idle()).then(|| since(self.rested())),
            ending: is_ending.then(|| since(self.told.load(Ordering::Acquire))),
        }
    }

    /// Tells the task that serves the connection how it is to end; what was told before and is sooner holds.
    pub(crate) fn end(&self, ending: Ending) {
        if self.ending.load(Ordering::Acquire) >= ending as u8 {
            return;
        }
        self.told.store(self.clock.load(Ordering::Relaxed), Ordering::Release);
        self.ending.fetch_max(ending as u8, Ordering::AcqRel);
        if let Some(waker) = self.waker.lock().unwrap_or_else(PoisonError::into_inner).take() {
            waker.wake();
        }
    }

    /// How the connection is to end, as told so far.
    pub(crate) fn ending(&self) -> Ending {
        match self.ending.load(Ordering::Acquire) {
            now if now == Ending::Now as u8 => Ending::Now,
            graceful if graceful == Ending::Graceful as u8 => Ending::Graceful,
            _ => Ending::No,
        }
    }
}

/// What the task that serves a connection asks each time that it runs: an atomic read, and no lock but the
/// first time.
#[derive(Debug)]
pub(crate) struct EndingWatch {
    activity: Arc<Activity>,
    waker: Option<Waker>,
}

impl EndingWatch {
    /// Of a connection that does this.
    pub(crate) const fn new(activity: Arc<Activity>) -> Self {
        Self { activity, waker: None }
    }

    /// How the connection is to end. The task is woken when that changes.
    pub(crate) fn poll_ending(&mut self, context: &Context<'_>) -> Ending {
        let waker = context.waker();
        let seen = self.activity.ending();
        if !self.waker.as_ref().is_some_and(|known| known.will_wake(waker)) || seen != Ending::No {
            self.waker = Some(waker.clone());
            let mut told = self.activity.waker.lock().unwrap_or_else(PoisonError::into_inner);
            *told = Some(waker.clone());
        }
        // Behind the registration: what is told from here on wakes the task.
        self.activity.ending()
    }
}

/// A request in flight, until its answer has gone out.
#[derive(Debug)]
pub(crate) struct Busy(Arc<Activity>);

impl Drop for Busy {
    fn drop(&mut self) {
        let activity = &*self.0;
        if activity.requests.fetch_sub(1, Ordering::AcqRel) == 1 {
            activity.rested.store(activity.clock.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use std::task::Poll;

    #[tokio::test(start_paused = true)]
    async fn a_task_that_sleeps_hears_how_its_connection_ends() {
        let activity = Arc::new(Activity::new(SweepClock::default()));
        let mut watch = EndingWatch::new(Arc::clone(&activity));
        let serving = tokio::spawn(async move {
            let mut seen = vec![];
            for ending in [Ending::Graceful, Ending::Now] {
                let told = poll_fn(|context| match watch.poll_ending(context) {
                    told if told == ending => Poll::Ready(told),
                    _ => Poll::Pending,
                });
                seen.push(told.await);
            }
            seen
        });
        for ending in [Ending::Graceful, Ending::Now] {
            tokio::task::yield_now().await;
            assert!(!serving.is_finished());
            activity.end(ending);
        }
        assert_eq!(serving.await.unwrap(), [Ending::Graceful, Ending::Now]);
        activity.end(Ending::Graceful);
        assert_eq!(activity.ending(), Ending::Now, "what is sooner holds");
    }

    #[test]
    fn rest_is_counted_from_the_end_of_the_last_answer() {
        let clock = SweepClock::default();
        let activity = Arc::new(Activity::new(Arc::clone(&clock)));
        assert_eq!(activity.age(5).head, None, "nothing was asked for yet");
        let (one, other) = (activity.begin(true), activity.begin(true));
        clock.store(1000, Ordering::Relaxed);
        drop(one);
        assert_eq!(activity.age(2000).head, None);
        drop(other);
        assert_eq!(activity.age(2000).head, Some(Duration::from_secs(1)));
        activity.stalls(true);
        assert_eq!(activity.age(2000).head, None, "its client takes an answer still");
        let over_http_2 = Arc::new(Activity::new(clock));
        drop(over_http_2.begin(false));
        assert!(over_http_2.age(9000).has_asked && over_http_2.age(9000).head.is_none());
    }
}
