//! How long a client keeps a site waiting, with the bodies that pass by.

use super::Slot;
use crate::watched_body::{PolledFrame, WatchedBody};
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt as _;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tidegate_net::origin::{BodyError, PassedBody};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// A body goes on when so many bytes of it have passed: whoever lets single ones drip keeps the site waiting. An answer
/// is handed over in pieces of this size.
const PIECE: usize = 16 * 1024;

/// Why an answer breaks off.
#[derive(Debug, thiserror::Error)]
#[error("the answer was not taken, and gave way to other requests")]
struct GaveWay;

/// What became of a request.
#[derive(Default)]
pub(super) struct SlotProgress {
    state: Mutex<ProgressState>,
    lost: CancellationToken,
}

#[derive(Default)]
struct ProgressState {
    /// The rest of the answer; `None` where it gave way, or is not there yet.
    answer: Option<PassedBody>,
    /// What was read of it beyond a piece.
    rest: Bytes,
    /// Of who waits for more of it.
    waker: Option<Waker>,
    /// Since when the client is waited for, and for how long it was before in the piece that passes by.
    since: Option<Instant>,
    waited: Duration,
    /// How much of that piece has passed.
    bytes: usize,
    /// Whether the site is carrying out an action, and has not answered.
    is_acting: bool,
}

impl SlotProgress {
    fn state(&self) -> MutexGuard<'_, ProgressState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends it: what the site sends is not read any more.
    pub(super) fn lose(&self) {
        self.lost.cancel();
        let mut state = self.state();
        let (rest, waker) = (std::mem::take(&mut state.rest), state.waker.take());
        let answer = state.answer.take();
        // Dropping it may close a connection.
        drop(state);
        drop((answer, rest));
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    pub(super) async fn lost(&self) {
        self.lost.cancelled().await;
    }

    /// For how long the client is waited for; `None`: the site is carrying out what it asked for.
    pub(super) fn waited(&self, now: Instant) -> Option<Duration> {
        let state = self.state();
        let since =
            state.since.map_or(Duration::ZERO, |since| now.saturating_duration_since(since));
        (!state.is_acting).then_some(state.waited + since)
    }

    pub(super) fn begin_action(&self) {
        self.state().is_acting = true;
    }

    pub(super) fn begin_answer(&self, body: PassedBody) {
        let mut state = self.state();
        (state.since, state.waited, state.bytes) = (Some(Instant::now()), Duration::ZERO, 0);
        state.is_acting = false;
        // It may have been lost just now.
        state.answer = Some(body).filter(|_| !self.lost.is_cancelled());
    }
}

impl ProgressState {
    fn wait(&mut self) {
        self.since.get_or_insert_with(Instant::now);
    }

    /// The client did its part: `bytes` more have passed.
    fn go_on(&mut self, bytes: usize) {
        self.waited += self.since.take().map_or(Duration::ZERO, |since| since.elapsed());
        self.bytes += bytes;
        if self.bytes >= PIECE {
            (self.bytes, self.waited) = (0, Duration::ZERO);
        }
    }

    fn poll_answer(&mut self, context: &mut Context<'_>) -> PolledFrame<BodyError> {
        self.go_on(0);
        if self.rest.is_empty() {
            let Some(body) = &mut self.answer else {
                return Poll::Ready(Some(Err(GaveWay.into())));
            };
            let Poll::Ready(frame) = Pin::new(body).poll_frame(context) else {
                self.waker = Some(context.waker().clone());
                return Poll::Pending;
            };
            match frame.map(|frame| frame.map(Frame::into_data)) {
                Some(Ok(Ok(data))) => self.rest = data,
                Some(Ok(Err(other))) => return Poll::Ready(Some(Ok(other))),
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => return Poll::Ready(None),
            }
        }
        let piece = self.rest.split_to(self.rest.len().min(PIECE));
        self.go_on(piece.len());
        self.wait();
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }
}

/// The body of a request on its way to the site.
pub(super) fn watched_upload(body: PassedBody, progress: Arc<SlotProgress>) -> PassedBody {
    let watch = move |body: &PassedBody, polled: &PolledFrame<BodyError>| {
        let is_over = match polled {
            Poll::Ready(Some(Ok(_))) => body.is_end_stream(),
            Poll::Ready(None) => true,
            Poll::Ready(Some(Err(_))) | Poll::Pending => false,
        };
        let mut state = progress.state();
        state.is_acting |= is_over;
        match polled {
            Poll::Pending => state.wait(),
            Poll::Ready(Some(Ok(frame))) if !is_over => {
                state.go_on(frame.data_ref().map_or(0, Bytes::len));
            }
            Poll::Ready(_) => state.go_on(PIECE),
        }
    };
    WatchedBody::new(body, watch).boxed_unsync()
}

/// The size of a body of which these bytes were read already.
pub(in crate::origins) fn longer(rest: &SizeHint, read: &Bytes) -> SizeHint {
    let read = u64::try_from(read.len()).unwrap_or(u64::MAX);
    let mut hint = SizeHint::new();
    hint.set_lower(rest.lower().saturating_add(read));
    if let Some(upper) = rest.upper() {
        hint.set_upper(upper.saturating_add(read));
    }
    hint
}

/// The body of an answer, which has its slot until it has been taken.
pub(super) struct AnswerBody(pub(super) Option<Slot>);

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> PolledFrame<BodyError> {
        let Some(slot) = &self.0 else { return Poll::Ready(None) };
        let polled = slot.progress.state().poll_answer(context);
        if matches!(polled, Poll::Ready(None | Some(Err(_)))) {
            self.0 = None;
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.0.as_ref().is_none_or(|slot| {
            let state = slot.progress.state();
            state.rest.is_empty() && state.answer.as_ref().is_some_and(Body::is_end_stream)
        })
    }

    fn size_hint(&self) -> SizeHint {
        let Some(slot) = &self.0 else { return SizeHint::with_exact(0) };
        let state = slot.progress.state();
        state
            .answer
            .as_ref()
            .map_or_else(SizeHint::new, |answer| longer(&answer.size_hint(), &state.rest))
    }
}
