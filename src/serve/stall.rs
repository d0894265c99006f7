//! A stream whose other side must go on taking what it asked for.

use super::connections::Activity;
use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// Fails a write that gets nowhere for too long. Without it a client that asks and does not read
/// holds its connection for as long as connections live, and a few hundred such clients hold all.
pub(super) struct Unstalled<S> {
    stream: S,
    limit: Duration,
    waiting: Option<Pin<Box<Sleep>>>,
    activity: Option<Arc<Activity>>,
}

impl<S> Unstalled<S> {
    /// A stream whose writes may wait for `limit` without a single byte taken.
    pub(super) const fn new(stream: S, limit: Duration) -> Self {
        Self { stream, limit, waiting: None, activity: None }
    }

    /// The same, telling whether a write waits.
    pub(super) fn telling(self, activity: Arc<Activity>) -> Self {
        Self { activity: Some(activity), ..self }
    }

    /// What becomes of a write that the stream answered with `done`.
    fn judge<T>(
        &mut self,
        done: Poll<io::Result<T>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        if done.is_pending() == self.waiting.is_none()
            && let Some(activity) = &self.activity
        {
            activity.stalls(done.is_pending());
        }
        if done.is_ready() {
            self.waiting = None;
            return done;
        }
        let limit = self.limit;
        let waiting = self.waiting.get_or_insert_with(|| Box::pin(sleep(limit)));
        ready!(waiting.as_mut().poll(context));
        let said = format!("the client took nothing of its answer for {} s", limit.as_secs());
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, said)))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Unstalled<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Unstalled<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let done = Pin::new(&mut this.stream).poll_write(context, bytes);
        this.judge(done, context)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let done = Pin::new(&mut this.stream).poll_write_vectored(context, bytes);
        this.judge(done, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let done = Pin::new(&mut this.stream).poll_flush(context);
        this.judge(done, context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    const LIMIT: Duration = Duration::from_secs(30);

    #[tokio::test(start_paused = true)]
    async fn a_write_that_nobody_takes_fails() {
        let (ours, theirs) = tokio::io::duplex(16);
        let mut stream = Unstalled::new(ours, LIMIT);
        stream.write_all(&[0; 16]).await.unwrap();
        let error = stream.write_all(&[0; 1]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert_eq!(error.to_string(), "the client took nothing of its answer for 30 s");
        drop(theirs);
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_reader_that_goes_on_reading_gets_everything() {
        let (ours, mut theirs) = tokio::io::duplex(16);
        let mut stream = Unstalled::new(ours, LIMIT);
        let reader = tokio::spawn(async move {
            let mut taken = 0;
            let mut buffer = [0; 16];
            while let Ok(length @ 1..) = theirs.read(&mut buffer).await {
                taken += length;
                sleep(LIMIT / 2).await;
            }
            taken
        });
        stream.write_all(&[0; 160]).await.unwrap();
        drop(stream);
        assert_eq!(reader.await.unwrap(), 160);
    }
}
