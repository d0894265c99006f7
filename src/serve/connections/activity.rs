//! What a connection is doing, and whether it is to end.

use super::{ConnectionLimits, Ending};
use crate::locked;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_util::sync::CancellationToken;

/// Bytes that count as progress of a client. Fewer do not keep its connection from being cut.
const STEP: usize = 16 * 1024;

/// The time as a sweep over all connections last read it, in milliseconds since the server began: a
/// request reads no clock.
pub(crate) type SweepClock = Arc<AtomicU64>;

/// A connection: what it is doing, and whether it is to end.
#[derive(Debug)]
pub(crate) struct Connection {
    /// Whether it is only for who asks whether the gateway is alive.
    pub(crate) is_reserved: bool,
    clock: SweepClock,
    /// When it was accepted, by that clock.
    opened: u64,
    activity: Mutex<ConnectionActivity>,
    /// Ends it now, and what follows when the answers in flight have gone out.
    cut: CancellationToken,
    graceful: CancellationToken,
}

/// What a connection is doing; times are of the sweep's clock.
#[derive(Debug, Default)]
struct ConnectionActivity {
    requests: usize,
    /// Requests for which the gateway has something to do. Where there is none, the client is waited for: for a request,
    /// for the body of one, or until it takes an answer.
    worked_on: isize,
    /// Bytes that came and went since `last_progress`.
    moved: usize,
    /// When its client last went on.
    last_progress: u64,
    /// Since when bytes of an answer wait for the client to take them.
    stalled: Option<u64>,
    /// When it was told to end.
    told: Option<u64>,
    /// Whether it is of HTTP/1.1; `None` where nothing was asked for yet.
    is_http_1: Option<bool>,
}

impl ConnectionActivity {
    fn note_progress(&mut self, now: u64) {
        (self.moved, self.last_progress) = (0, now);
    }

    /// Whether nothing goes on but what its client lets go on.
    const fn is_waiting_for_client(&self) -> bool {
        self.worked_on <= 0
    }
}

impl Connection {
    /// Of a connection that was accepted just now.
    pub(crate) fn new(clock: SweepClock, is_reserved: bool) -> Self {
        let opened = clock.load(Ordering::Relaxed);
        let activity =
            ConnectionActivity { last_progress: opened, ..ConnectionActivity::default() };
        let cut = CancellationToken::new();
        let (activity, graceful) = (Mutex::new(activity), cut.child_token());
        Self { is_reserved, clock, opened, activity, graceful, cut }
    }

    fn now(&self) -> u64 {
        self.clock.load(Ordering::Relaxed)
    }

    /// A request is in flight until what this returns is dropped.
    pub(crate) fn begin(self: &Arc<Self>, is_http_1: bool) -> RequestInFlight {
        let mut activity = locked(&self.activity);
        activity.is_http_1.get_or_insert(is_http_1);
        activity.worked_on += 1;
        activity.requests += 1;
        // To ask for more is not to take what was asked for before.
        if activity.requests == 1 {
            activity.note_progress(self.now());
        }
        drop(activity);
        let request =
            RequestActivity { connection: Arc::clone(self), waiting_parts: AtomicUsize::new(0) };
        RequestInFlight { wait: ClientWait { request: Arc::new(request), is_waited_for: false } }
    }

    fn note_progress(&self) {
        locked(&self.activity).note_progress(self.now());
    }

    /// Whether bytes of an answer wait for the client to take them.
    pub(crate) fn stalls(&self, is_stalled: bool) {
        locked(&self.activity).stalled = is_stalled.then(|| self.now());
    }

    /// For how long its client has been waited for, where nothing else goes on.
    pub(crate) fn client_wait(&self) -> Option<Duration> {
        let activity = locked(&self.activity);
        let since = self.now().saturating_sub(activity.last_progress);
        activity.is_waiting_for_client().then(|| Duration::from_millis(since))
    }

    /// How it is to end by its limits, at `now` by the sweep's clock.
    pub(super) fn due(&self, limits: &ConnectionLimits, now: u64) -> Ending {
        // What began since the last look is counted from that one.
        let is_over = |then: u64, limit: Duration| {
            Duration::from_millis(now.saturating_sub(then))
                >= limit.saturating_add(limits.sweep_interval())
        };
        let of = locked(&self.activity);
        let is_idle = of.requests == 0 && of.stalled.is_none();
        let is_late = [
            (of.told, limits.drain),
            (of.is_http_1.is_none().then_some(self.opened), limits.first_request),
            // HTTP/2 has pings for that.
            ((of.is_http_1 == Some(true) && is_idle).then_some(of.last_progress), limits.head),
            (
                (of.requests > 0 && of.is_waiting_for_client()).then_some(of.last_progress),
                limits.untaken,
            ),
            (of.stalled, limits.stall),
        ];
        if is_late.into_iter().any(|(since, limit)| since.is_some_and(|it| is_over(it, limit))) {
            Ending::Now
        } else if is_over(self.opened, limits.lifetime) {
            Ending::Graceful
        } else {
            Ending::No
        }
    }

    /// Tells the task that serves the connection how it is to end.
    pub(crate) fn end(&self, ending: Ending) {
        match ending {
            Ending::Graceful => {
                locked(&self.activity).told.get_or_insert(self.now());
                self.graceful.cancel();
            }
            Ending::Now => self.cut.cancel(),
            Ending::No => {}
        }
    }

    /// Ends it now.
    pub(crate) fn cut(&self) {
        self.end(Ending::Now);
    }

    /// Comes when the connection is to end now.
    pub(crate) async fn was_cut(&self) {
        self.cut.cancelled().await;
    }

    /// Comes when it is to end, now or when the answers in flight have gone out.
    pub(crate) async fn ended(&self) {
        self.graceful.cancelled().await;
    }

    /// Whether it is to end.
    pub(crate) fn is_ending(&self) -> bool {
        self.graceful.is_cancelled()
    }

    /// Whether it was ended.
    #[cfg(test)]
    pub(crate) fn is_cut(&self) -> bool {
        self.cut.is_cancelled()
    }
}

/// A request in flight, and how many of its parts (body, answer, the whole once it is over) wait for the client.
#[derive(Debug)]
struct RequestActivity {
    connection: Arc<Connection>,
    waiting_parts: AtomicUsize,
}

impl RequestActivity {
    /// Counts one waiting part more or fewer. The gateway works on a request while none of its parts waits.
    fn count_waiting(&self, is_one_more: bool) {
        let mut activity = locked(&self.connection.activity);
        if is_one_more && self.waiting_parts.fetch_add(1, Ordering::Relaxed) == 0 {
            activity.worked_on -= 1;
        } else if !is_one_more && self.waiting_parts.fetch_sub(1, Ordering::Relaxed) == 1 {
            activity.worked_on += 1;
        }
    }
}

/// A part of a request that may wait for the client. Dropped, it waits no more.
#[derive(Debug)]
pub(crate) struct ClientWait {
    request: Arc<RequestActivity>,
    is_waited_for: bool,
}

impl ClientWait {
    /// Says whether this part waits for the client now.
    pub(crate) fn set_waiting(&mut self, is_waited_for: bool) {
        if self.is_waited_for != is_waited_for {
            self.is_waited_for = is_waited_for;
            self.request.count_waiting(is_waited_for);
        }
    }

    /// So many bytes came from the client, or were handed over to it.
    pub(crate) fn moved(&self, bytes: usize) {
        let connection = &self.request.connection;
        let mut activity = locked(&connection.activity);
        activity.moved = activity.moved.saturating_add(bytes);
        if activity.moved >= STEP {
            activity.note_progress(connection.now());
        }
    }
}

impl Drop for ClientWait {
    fn drop(&mut self) {
        self.set_waiting(false);
    }
}

/// A request in flight, until its answer has gone out.
#[derive(Debug)]
pub(crate) struct RequestInFlight {
    /// Whether the client is to take the answer.
    pub(crate) wait: ClientWait,
}

impl RequestInFlight {
    /// The answer is there, for the client to take.
    pub(crate) fn answer(&mut self) {
        self.wait.set_waiting(true);
        self.wait.request.connection.note_progress();
    }

    /// Whether the client is waited for with the body of the request.
    pub(crate) fn body_wait(&self) -> ClientWait {
        ClientWait { request: Arc::clone(&self.wait.request), is_waited_for: false }
    }
}

impl Drop for RequestInFlight {
    fn drop(&mut self) {
        // For good; what is left of its body may be dropped later.
        self.wait.request.count_waiting(true);
        let connection = &self.wait.request.connection;
        let mut activity = locked(&connection.activity);
        activity.requests = activity.requests.saturating_sub(1);
        if activity.requests == 0 {
            activity.note_progress(connection.now());
        }
    }
}

/// Tells how long a write gets nowhere, which has a limit
/// ([`ConnectionLimits::stall`](super::ConnectionLimits)). Without it a client that asks and does not read
/// holds its connection for as long as connections live, and a few hundred such clients hold all.
pub(crate) struct WatchedStream<S> {
    stream: S,
    connection: Arc<Connection>,
    is_stalled: bool,
}

impl<S: Unpin> WatchedStream<S> {
    /// Wraps the stream of a connection.
    pub(crate) const fn new(stream: S, connection: Arc<Connection>) -> Self {
        Self { stream, connection, is_stalled: false }
    }

    fn watch<T>(&mut self, write: impl FnOnce(Pin<&mut S>) -> Poll<T>) -> Poll<T> {
        let done = write(Pin::new(&mut self.stream));
        if done.is_pending() != self.is_stalled {
            self.is_stalled = done.is_pending();
            self.connection.stalls(self.is_stalled);
        }
        done
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WatchedStream<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WatchedStream<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.get_mut().watch(|stream| stream.poll_write(context, bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.get_mut().watch(|stream| stream.poll_write_vectored(context, bytes))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().watch(|stream| stream.poll_flush(context))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_waiting_for_client(connection: &Connection) -> bool {
        locked(&connection.activity).is_waiting_for_client()
    }

    #[tokio::test]
    async fn a_task_that_sleeps_hears_how_its_connection_ends() {
        let activity = Arc::new(Connection::new(SweepClock::default(), false));
        let of_task = Arc::clone(&activity);
        let serving = tokio::spawn(async move {
            of_task.ended().await;
            let was_cut = of_task.is_cut();
            of_task.was_cut().await;
            was_cut
        });
        for ending in [Ending::No, Ending::Graceful, Ending::Now] {
            tokio::task::yield_now().await;
            assert!(!serving.is_finished());
            activity.end(ending);
        }
        assert!(!serving.await.unwrap());
        let at_once = Connection::new(SweepClock::default(), false);
        at_once.end(Ending::Now);
        at_once.ended().await;
    }

    #[test]
    fn each_limit_ends_what_is_older_and_nothing_before() {
        const LIMITS: ConnectionLimits = ConnectionLimits::USUAL;
        let asked = |is_http_1| {
            let activity = Arc::new(Connection::new(SweepClock::default(), false));
            let busy = activity.begin(is_http_1);
            (activity, busy)
        };
        let new = Arc::new(Connection::new(SweepClock::default(), false));
        let idle = asked(true).0;
        let (untaken, mut busy) = asked(false);
        busy.wait.set_waiting(true);
        let (stalled, _worked_on) = asked(false);
        stalled.stalls(true);
        let (old, _also_worked_on) = asked(true);
        let (ending, _still_worked_on) = asked(true);
        ending.end(Ending::Graceful);
        for (activity, limit, is_ended) in [
            (&new, LIMITS.first_request, Ending::Now),
            (&idle, LIMITS.head, Ending::Now),
            (&untaken, LIMITS.untaken, Ending::Now),
            (&stalled, LIMITS.stall, Ending::Now),
            (&old, LIMITS.lifetime, Ending::Graceful),
            (&ending, LIMITS.drain, Ending::Now),
        ] {
            let due =
                |time: Duration| activity.due(&LIMITS, u64::try_from(time.as_millis()).unwrap());
            assert_eq!(due(limit), Ending::No);
            assert_eq!(due(limit + LIMITS.sweep_interval()), is_ended);
        }
    }

    #[test]
    fn a_client_that_is_waited_for_is_at_rest_and_goes_on_by_whole_steps() {
        let clock = SweepClock::default();
        let activity = Arc::new(Connection::new(Arc::clone(&clock), false));
        assert!(is_waiting_for_client(&activity), "nothing was asked for yet");
        let (mut one, mut other) = (activity.begin(false), activity.begin(false));
        let mut body = one.body_wait();
        body.set_waiting(true);
        assert!(!is_waiting_for_client(&activity), "the other request is worked on");
        other.wait.set_waiting(true);
        assert!(is_waiting_for_client(&activity));
        body.set_waiting(false);
        one.wait.set_waiting(true);
        one.wait.set_waiting(true);
        assert!(is_waiting_for_client(&activity));
        clock.store(7, Ordering::Relaxed);
        (0..STEP - 1).for_each(|_| one.wait.moved(1));
        assert_eq!(locked(&activity.activity).last_progress, 0, "it drips");
        one.wait.moved(1);
        assert_eq!(locked(&activity.activity).last_progress, 7);
        one.wait.set_waiting(false);
        assert!(!is_waiting_for_client(&activity));
        drop((one, body));
        assert!(is_waiting_for_client(&activity), "the other waits still");
        drop(other);
        assert!(is_waiting_for_client(&activity));
        // A request whose body and answer both wait is one, and so is what is left of it behind its end.
        let (mut again, _worked_on) = (activity.begin(false), activity.begin(false));
        let mut body = again.body_wait();
        body.set_waiting(true);
        again.wait.set_waiting(true);
        assert!(!is_waiting_for_client(&activity), "the other is worked on");
        drop(again);
        assert!(!is_waiting_for_client(&activity), "and it still is");
        drop(body);
        assert!(!is_waiting_for_client(&activity));
        // Rest is counted from the end of the last answer.
        let clock = SweepClock::default();
        let activity = Arc::new(Connection::new(Arc::clone(&clock), false));
        let limits = ConnectionLimits { head: Duration::from_secs(1), ..ConnectionLimits::USUAL };
        let late =
            1000 + u64::try_from((limits.head + limits.sweep_interval()).as_millis()).unwrap();
        let (one, other) = (activity.begin(true), activity.begin(true));
        clock.store(1000, Ordering::Relaxed);
        drop(one);
        assert_eq!(activity.due(&limits, late), Ending::No);
        drop(other);
        assert_eq!(activity.due(&limits, late - 1), Ending::No);
        assert_eq!(activity.due(&limits, late), Ending::Now);
        activity.stalls(true);
        assert_eq!(activity.due(&limits, late), Ending::No, "its client takes an answer still");
        let over_http_2 = Arc::new(Connection::new(clock, false));
        drop(over_http_2.begin(false));
        assert_eq!(over_http_2.due(&limits, late), Ending::No);
    }
}
