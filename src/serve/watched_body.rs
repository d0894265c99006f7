//! A body that somebody watches: each time that it is asked for more.

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use std::pin::Pin;
use std::task::{Context, Poll};

/// What came when a body was asked for more.
pub(super) type PolledFrame<E> = Poll<Option<Result<Frame<Bytes>, E>>>;

/// A body, and who is told what comes of it. Both are dropped together.
pub(super) struct WatchedBody<B, W> {
    body: B,
    watch: W,
}

impl<B, W> WatchedBody<B, W>
where
    B: Body<Data = Bytes> + Unpin,
    W: FnMut(&B, &PolledFrame<B::Error>) + Unpin,
{
    /// `watch`: told of each frame, with what is left of the body.
    pub(super) const fn new(body: B, watch: W) -> Self {
        Self { body, watch }
    }
}

impl<B, W> Body for WatchedBody<B, W>
where
    B: Body<Data = Bytes> + Unpin,
    W: FnMut(&B, &PolledFrame<B::Error>) + Unpin,
{
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> PolledFrame<B::Error> {
        let this = &mut *self;
        let frame = Pin::new(&mut this.body).poll_frame(context);
        (this.watch)(&this.body, &frame);
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
