//! A stream that tells whether its other side takes what it asked for.

use super::connections::Activity;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Tells how long a write gets nowhere, which has a limit
/// ([`ConnectionLimits::stall`](super::connections::ConnectionLimits)). Without it a client that asks and does not read
/// holds its connection for as long as connections live, and a few hundred such clients hold all.
pub(super) struct WatchedStream<S> {
    stream: S,
    activity: Arc<Activity>,
    is_stalled: bool,
}

impl<S: Unpin> WatchedStream<S> {
    /// The stream of a connection that does this.
    pub(super) const fn new(stream: S, activity: Arc<Activity>) -> Self {
        Self { stream, activity, is_stalled: false }
    }

    fn watch<T>(&mut self, write: impl FnOnce(Pin<&mut S>) -> Poll<T>) -> Poll<T> {
        let done = write(Pin::new(&mut self.stream));
        if done.is_pending() != self.is_stalled {
            self.is_stalled = done.is_pending();
            self.activity.stalls(self.is_stalled);
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
