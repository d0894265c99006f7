//! What a connection is doing, and whether it is to end.

use super::limits::ConnectionAge;
use crate::locked;
use std::sync::atomic::{AtomicIsize, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
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

/// A client that lets so many bytes come or go has gone on. Fewer at a time do not keep a connection from giving way.
const STEP: usize = 16 * 1024;

/// The time as a sweep over all connections last read it, in milliseconds since the server began: a
/// request reads no clock.
pub(super) type SweepClock = Arc<AtomicU64>;

/// What a connection is doing.
#[derive(Debug)]
pub(crate) struct Activity {
    requests: AtomicUsize,
    /// Requests for which the gateway has something to do. Where there is none, the client is waited for: for a request,
    /// for the body of one, or until it takes an answer.
    worked_on: AtomicIsize,
    /// Bytes that came and went since `rested`.
    moved: AtomicUsize,
    /// Since when bytes of an answer wait for the client to take them, by the clock and one more; 0: none do.
    stalled: AtomicU64,
    protocol: AtomicU8,
    clock: SweepClock,
    /// When it was accepted, when its client last went on and when it was told to end, by that clock.
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
            worked_on: AtomicIsize::new(0),
            moved: AtomicUsize::new(0),
            stalled: AtomicU64::new(0),
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
        self.worked_on.fetch_add(1, Ordering::AcqRel);
        // To ask for more is not to take what was asked for before.
        if self.requests.fetch_add(1, Ordering::AcqRel) == 0 {
            self.goes_on();
        }
        let request =
            Arc::new(RequestActivity { activity: Arc::clone(self), rests: AtomicUsize::new(0) });
        Busy { turn: ClientTurn { request, is_waited_for: false } }
    }

    fn goes_on(&self) {
        self.moved.store(0, Ordering::Relaxed);
        self.rested.store(self.clock.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// Whether bytes of an answer wait for the client to take them.
    pub(crate) fn stalls(&self, is_stalled: bool) {
        let now = self.clock.load(Ordering::Relaxed).saturating_add(1);
        self.stalled.store(if is_stalled { now } else { 0 }, Ordering::Release);
    }

    fn is_idle(&self) -> bool {
        self.requests.load(Ordering::Acquire) == 0 && self.stalled.load(Ordering::Acquire) == 0
    }

    /// Whether nothing goes on but what its client lets go on.
    fn is_at_rest(&self) -> bool {
        self.worked_on.load(Ordering::Acquire) <= 0
    }

    /// For how long its client has been waited for, where nothing else goes on.
    pub(crate) fn rests(&self) -> Option<Duration> {
        let since = self.clock.load(Ordering::Relaxed).saturating_sub(self.rested());
        self.is_at_rest().then(|| Duration::from_millis(since))
    }

    /// When its client last went on.
    fn rested(&self) -> u64 {
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
            untaken: (self.requests.load(Ordering::Acquire) > 0 && self.is_at_rest())
                .then(|| since(self.rested())),
            stalled: self.stalled.load(Ordering::Acquire).checked_sub(1).map(since),
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
        if let Some(waker) = locked(&self.waker).take() {
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
            let mut told = locked(&self.activity.waker);
            *told = Some(waker.clone());
        }
        // Behind the registration: what is told from here on wakes the task.
        self.activity.ending()
    }
}

/// A request, and how much of it rests: its body, its answer, all of it once it is over.
#[derive(Debug)]
struct RequestActivity {
    activity: Arc<Activity>,
    rests: AtomicUsize,
}

impl RequestActivity {
    /// One more rests, or one fewer: a request is worked on while none does.
    fn rest(&self, is_one_more: bool) {
        if is_one_more && self.rests.fetch_add(1, Ordering::AcqRel) == 0 {
            self.activity.worked_on.fetch_sub(1, Ordering::AcqRel);
        } else if !is_one_more && self.rests.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.activity.worked_on.fetch_add(1, Ordering::AcqRel);
        }
    }
}

/// Whether a client is waited for, until this is dropped.
#[derive(Debug)]
pub(crate) struct ClientTurn {
    request: Arc<RequestActivity>,
    is_waited_for: bool,
}

impl ClientTurn {
    /// The client is waited for, or is not any more.
    pub(crate) fn is(&mut self, is_waited_for: bool) {
        if self.is_waited_for != is_waited_for {
            self.is_waited_for = is_waited_for;
            self.request.rest(is_waited_for);
        }
    }

    /// So many bytes came from the client, or were handed over to it.
    pub(crate) fn moved(&self, bytes: usize) {
        let activity = &self.request.activity;
        let before = activity.moved.fetch_add(bytes, Ordering::Relaxed);
        if before.saturating_add(bytes) >= STEP {
            activity.goes_on();
        }
    }
}

impl Drop for ClientTurn {
    fn drop(&mut self) {
        self.is(false);
    }
}

/// A request in flight, until its answer has gone out.
#[derive(Debug)]
pub(crate) struct Busy {
    /// Whether the client is to take the answer.
    pub(crate) turn: ClientTurn,
}

impl Busy {
    /// The answer is there, for the client to take.
    pub(crate) fn answer(&mut self) {
        self.turn.is(true);
        self.turn.request.activity.goes_on();
    }

    /// Whether the client is waited for with the body of the request.
    pub(crate) fn turn_of_body(&self) -> ClientTurn {
        ClientTurn { request: Arc::clone(&self.turn.request), is_waited_for: false }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        // For good; what is left of its body may be dropped later.
        self.turn.request.rest(true);
        let activity = &*self.turn.request.activity;
        if activity.requests.fetch_sub(1, Ordering::AcqRel) == 1 {
            activity.goes_on();
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
    fn a_client_that_is_waited_for_is_at_rest_and_goes_on_by_whole_steps() {
        let clock = SweepClock::default();
        let activity = Arc::new(Activity::new(Arc::clone(&clock)));
        assert!(activity.is_at_rest(), "nothing was asked for yet");
        let (mut one, mut other) = (activity.begin(false), activity.begin(false));
        let mut body = one.turn_of_body();
        body.is(true);
        assert!(!activity.is_at_rest(), "the other request is worked on");
        other.turn.is(true);
        assert!(activity.is_at_rest());
        body.is(false);
        one.turn.is(true);
        one.turn.is(true);
        assert!(activity.is_at_rest());
        clock.store(7, Ordering::Relaxed);
        (0..STEP - 1).for_each(|_| one.turn.moved(1));
        assert_eq!(activity.rested(), 0, "it drips");
        one.turn.moved(1);
        assert_eq!(activity.rested(), 7);
        one.turn.is(false);
        assert!(!activity.is_at_rest());
        drop((one, body));
        assert!(activity.is_at_rest(), "the other waits still");
        drop(other);
        assert!(activity.is_at_rest());
        // A request whose body and answer both wait is one, and so is what is left of it behind its end.
        let (mut again, _worked_on) = (activity.begin(false), activity.begin(false));
        let mut body = again.turn_of_body();
        body.is(true);
        again.turn.is(true);
        assert!(!activity.is_at_rest(), "the other is worked on");
        drop(again);
        assert!(!activity.is_at_rest(), "and it still is");
        drop(body);
        assert!(!activity.is_at_rest());
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
