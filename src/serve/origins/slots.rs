//! Slots for the requests that a site has at once: each has one until its answer has been taken. A client has a share
//! of them. When all are taken, a request gives way whose client keeps the site waiting, or has most of them.
//!
//! A site is asked once the body of an upload has come, or more than [`AHEAD_BYTES`] of it; until then the upload takes
//! no slot of the site. A few slow bodies are passed on all the same, as they come.

use super::looks::{ClientSitePermit, ClientSitePermits};
use super::pass::problem_of;
use crate::{
    Budget, BudgetEnd, BudgetShares, Client, Connection, HeldBudget, Problem, ProblemCause,
};
use bytes::{Bytes, BytesMut};
use http::{Extensions, StatusCode};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt as _;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tidegate_net::fetch::FetchError;
use tidegate_net::origin::{BodyError, PassedBody};
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use url::Url;

/// A client's share of the slots of a site: one in `SHARE_DIVISOR` of them, and at least `MIN_SHARE`.
const SHARE_DIVISOR: usize = 4;
const MIN_SHARE: usize = 8;
/// How long a request waits for a slot.
const WAIT: Duration = Duration::from_secs(5);
/// How soon to ask again.
const AGAIN: Duration = Duration::from_secs(2);
/// How long a client may keep the site waiting, for a piece of an upload or with one of the answer, where others wait for
/// a slot.
const GIVES_WAY: Duration = Duration::from_secs(3);
/// How often that is looked at.
const PACE: Duration = Duration::from_secs(1);

pub(super) struct SiteSlots {
    budget: Arc<Budget>,
    /// As many wait as there are slots.
    waiting: Semaphore,
}

impl SiteSlots {
    /// So many, of which those are taken that are of `before`.
    pub(super) fn new(limit: usize, before: Option<&Self>) -> Self {
        let share = (limit / SHARE_DIVISOR).max(MIN_SHARE).min(limit);
        let [all, each] = [limit, share].map(|slots| u64::try_from(slots).unwrap_or(u64::MAX));
        let shares = BudgetShares { all, each, network: each };
        let budget = Budget::after(before.map(|slots| &slots.budget), shares, GIVES_WAY);
        Self { budget, waiting: Semaphore::new(limit) }
    }

    /// Waits for a slot for a request with these extensions. `is_action`: it is not evicted while the site works on it,
    /// since its client could not know whether to repeat it.
    pub(super) async fn acquire(
        &self,
        request: &Extensions,
        is_action: bool,
    ) -> Result<HeldBudget, Problem> {
        let until = Instant::now() + WAIT;
        let client = Client::of(request);
        let mut waits = None;
        loop {
            let freed = self.budget.freed();
            let connection: Option<Arc<Connection>> = request.get().cloned();
            let end = match self.budget.take_one(client, connection, is_action) {
                Ok(slot) => return Ok(slot),
                Err(end) => end,
            };
            waits = waits.or_else(|| self.waiting.try_acquire().ok());
            if waits.is_none() || Instant::now() >= until {
                return Err(self.refused(end));
            }
            // Whether somebody keeps the site waiting shows as time goes by.
            let _ = timeout_at(until.min(Instant::now() + PACE), freed).await;
        }
    }

    fn refused(&self, end: BudgetEnd) -> Problem {
        match end {
            BudgetEnd::Share => {
                let share = self.budget.shares().each;
                let detail = format!("{share} requests of this client are at this site");
                Problem::later(detail).after(AGAIN)
            }
            BudgetEnd::All => {
                let all = self.budget.shares().all;
                let detail = format!("{all} requests are at this site, which is the limit");
                Problem::later(detail).after(AGAIN).with_cause(ProblemCause::LateSite)
            }
        }
    }
}

/// How many bytes of an upload are read before the site is asked, of how many uploads at a time, and how long that may
/// take.
const AHEAD_BYTES: usize = 64 * 1024;
const UPLOADS_AT_ONCE: usize = 512;
const UPLOAD_TIME: Duration = Duration::from_secs(60);
/// After how long an unfinished upload counts as slow; how many slow ones a site gets at a time, and one client sends.
const SLOW_AFTER: Duration = Duration::from_secs(1);
const SITE_SLOW: u32 = 16;
const CLIENT_SLOW: u32 = 2;

/// The uploads that are read.
pub(super) struct Uploads {
    ahead: SiteSlots,
    slow: ClientSitePermits,
}

impl Uploads {
    pub(super) fn new() -> Self {
        Self {
            ahead: SiteSlots::new(UPLOADS_AT_ONCE, None),
            slow: ClientSitePermits::new(CLIENT_SLOW, SITE_SLOW),
        }
    }

    /// Reads ahead until the site can be asked; a slow body also gets the permit that it holds.
    pub(super) async fn read_ahead(
        &self,
        site: &Url,
        request: &Extensions,
        rest: PassedBody,
    ) -> Result<(PassedBody, Option<ClientSitePermit>), Problem> {
        let late = || {
            let detail = "the body of the request does not come";
            Problem::new(StatusCode::REQUEST_TIMEOUT, detail)
        };
        let _slot = self.ahead.acquire(request, false).await?;
        let mut body = BegunBody { beginning: BytesMut::new(), rest };
        let leave = tokio::select! {
            biased;
            read = timeout(UPLOAD_TIME, body.read_ahead()) => {
                read.map_err(|_| late())?.map_err(|_| problem_of(&FetchError::Unsent))?;
                None
            }
            leave = async {
                sleep(SLOW_AFTER).await;
                self.slow.acquire((site, Client::of(request)), UPLOAD_TIME).await
            } => Some(leave.map_err(|_| late())?),
        };
        Ok((body.boxed_unsync(), leave))
    }
}

/// A body whose beginning was read.
struct BegunBody {
    beginning: BytesMut,
    rest: PassedBody,
}

impl BegunBody {
    /// Reads the body to its end or past [`AHEAD_BYTES`]. Cancel-safe: what was read stays in `beginning`.
    async fn read_ahead(&mut self) -> Result<(), BodyError> {
        while self.beginning.len() <= AHEAD_BYTES
            && let Some(frame) = self.rest.frame().await
        {
            self.beginning.extend_from_slice(frame?.data_ref().map_or(&[], |data| data));
        }
        Ok(())
    }
}

impl Body for BegunBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match self.beginning.is_empty() {
            false => Poll::Ready(Some(Ok(Frame::data(self.beginning.split().freeze())))),
            true => Pin::new(&mut self.rest).poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.beginning.is_empty() && self.rest.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (rest, mut hint) = (self.rest.size_hint(), SizeHint::new());
        let read = u64::try_from(self.beginning.len()).unwrap_or(u64::MAX);
        hint.set_lower(rest.lower().saturating_add(read));
        if let Some(upper) = rest.upper() {
            hint.set_upper(upper.saturating_add(read));
        }
        hint
    }
}

#[cfg(test)]
mod tests {
    use super::super::pass::outcome_of_error;
    use super::*;
    use futures_util::{Stream, StreamExt as _, stream};
    use http_body_util::StreamBody;

    fn of(last: u8) -> Extensions {
        let mut request = Extensions::new();
        request.insert(crate::tests::client(last));
        request
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_has_a_share_a_site_a_limit_and_bodies_are_read_ahead() {
        let shares = [1, 8, 20, 256].map(|limit| SiteSlots::new(limit, None).budget.shares().each);
        assert_eq!(shares, [1, 8, 8, 64]);
        let slots = SiteSlots::new(10, None);
        let mut held = Vec::new();
        for last in [1, 1, 1, 1, 1, 1, 1, 1, 2, 3] {
            held.push(slots.acquire(&of(last), false).await.unwrap());
        }
        let refused = async |last: u8| {
            let problem = slots.acquire(&of(last), false).await.err().unwrap();
            outcome_of_error(&problem)
        };
        assert_eq!(refused(1).await, "busy");
        assert_eq!(refused(2).await, "failed", "the site has as many as it may");
        // Who waits gets what is over soon.
        let (begun, one) = (Instant::now(), held.pop());
        let soon = async {
            tokio::time::sleep(WAIT / 2).await;
            drop(one);
        };
        let two = of(2);
        let (waited, ()) = tokio::join!(slots.acquire(&two, false), soon);
        assert!(waited.is_ok() && begun.elapsed() < WAIT);
        drop((waited, held));
        assert_eq!(slots.budget.held(), (0, 0));
        // As many wait as there are slots.
        let slots = Arc::new(SiteSlots::new(8, None));
        let mut held = Vec::new();
        for last in [1, 1, 2, 2, 3, 3, 4, 4] {
            held.push(slots.acquire(&of(last), false).await.unwrap());
        }
        let begun = Instant::now();
        let ask = |last: u8| {
            let slots = Arc::clone(&slots);
            tokio::spawn(async move { slots.acquire(&of(last % 4 + 1), false).await })
        };
        let waiting: Vec<_> = (0..8).map(ask).collect();
        tokio::task::yield_now().await;
        assert!(ask(1).await.unwrap().is_err() && begun.elapsed().is_zero());
        drop(held);
        for waits in waiting {
            assert!(waits.await.unwrap().is_ok());
        }
        // A site is asked once a body has come or flows.
        let (uploads, site) = (Uploads::new(), Url::parse("http://a/").unwrap());
        let of = async |last: u8, body| uploads.read_ahead(&site, &of(last), body).await;
        let whole = stream::iter([&b"a"[..], b"b"].map(Bytes::from_static));
        let flows = stream::repeat(Bytes::from_static(&[b'x'; 1024]));
        let at = Instant::now();
        let (whole, leave) = of(1, body(whole)).await.unwrap();
        assert_eq!(whole.collect().await.unwrap().to_bytes(), "ab");
        let (mut flowing, other) = of(1, body(flows)).await.unwrap();
        assert!(leave.is_none() && other.is_none());
        let first = flowing.frame().await.unwrap().unwrap().into_data().unwrap();
        assert!(first.len() > AHEAD_BYTES && flowing.frame().await.is_some());
        assert_eq!(at.elapsed(), Duration::ZERO);
        // Nine clients send what does not come: a few of these go on, and the others do not hinder anybody.
        let mut slow = Vec::new();
        for last in 1..=9 {
            for _ in 0..4 {
                if let Ok(read) = timeout(2 * SLOW_AFTER, of(last, self::begun())).await {
                    slow.push(read.unwrap());
                }
            }
        }
        assert_eq!(slow.len(), 16);
        let (late, _) = tokio::join!(of(20, self::begun()), of(21, body(stream::empty())));
        assert_eq!(late.err().unwrap().status, StatusCode::REQUEST_TIMEOUT);
        slow.truncate(15);
        let (mut next, leave) = of(20, self::begun()).await.unwrap();
        assert!(leave.is_some());
        assert_eq!(next.frame().await.unwrap().unwrap().into_data().unwrap(), "x");
    }

    fn body(pieces: impl Stream<Item = Bytes> + Send + 'static) -> PassedBody {
        StreamBody::new(pieces.map(|bytes| Ok::<_, BodyError>(Frame::data(bytes)))).boxed_unsync()
    }

    /// A body that begins and does not go on.
    fn begun() -> PassedBody {
        body(stream::iter([Bytes::from_static(b"x")]).chain(stream::pending()))
    }
}
