//! Bodies of answers: read whole where they are small and quick, and passed on otherwise.

use crate::origin::{BodyError, PassedBody, is_no_feed};
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, header};
use http_body::{Body, Frame};
use http_body_util::BodyExt as _;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// The largest document that may become a feed at its first request, in bytes as it comes over the wire.
const DOCUMENT_LIMIT: usize = 16 * 1024 * 1024;
/// How long such a document, or a page, may take.
const DOCUMENT_TIME: Duration = Duration::from_secs(20);
/// How much of a document is looked at while the rest comes, to see whether it can be a feed.
const BEGINNING: usize = 16 * 1024;

/// A body, as far as it is kept.
pub(super) enum Collected {
    Whole(Bytes),
    /// It is too large or too slow, or shows already that it is no feed: what was read, and the rest.
    Part(PassedBody),
}

/// Reads a document that may become a feed, with these headers.
pub(super) async fn collect(headers: &HeaderMap, body: PassedBody) -> Result<Collected, BodyError> {
    let is_readable = !headers.contains_key(header::CONTENT_ENCODING);
    let is_over = |read: &[u8]| is_readable && read.len() <= BEGINNING && is_no_feed(read);
    collect_within(body, DOCUMENT_LIMIT, DOCUMENT_TIME, is_over).await
}

/// A body of at most `limit` bytes; `None` where it is larger, slow or broken.
pub async fn whole_body(body: PassedBody, limit: usize) -> Option<Bytes> {
    match collect_within(body, limit, DOCUMENT_TIME, |_| false).await {
        Ok(Collected::Whole(bytes)) => Some(bytes),
        Ok(Collected::Part(_)) | Err(_) => None,
    }
}

async fn collect_within(
    mut body: PassedBody,
    limit: usize,
    time: Duration,
    is_over: impl Fn(&[u8]) -> bool,
) -> Result<Collected, BodyError> {
    let (until, mut all) = (Instant::now() + time, BytesMut::new());
    loop {
        match timeout_at(until, body.frame()).await {
            Ok(None) => return Ok(Collected::Whole(all.freeze())),
            Ok(Some(frame)) => {
                let Ok(data) = frame?.into_data() else { continue };
                all.extend_from_slice(&data);
                if all.len() <= limit && !is_over(&all) {
                    continue;
                }
            }
            Err(_) => {}
        }
        let beginning = Some(all.freeze());
        return Ok(Collected::Part(BegunBody { beginning, rest: body }.boxed_unsync()));
    }
}

/// A body whose beginning was read.
struct BegunBody {
    beginning: Option<Bytes>,
    rest: PassedBody,
}

impl Body for BegunBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match self.beginning.take() {
            Some(bytes) => Poll::Ready(Some(Ok(Frame::data(bytes)))),
            None => Pin::new(&mut self.rest).poll_frame(context),
        }
    }
}

/// No body, of which nobody says how long it would be.
pub(super) struct NoSize;

impl Body for NoSize {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::{Full, StreamBody};

    #[tokio::test(start_paused = true)]
    async fn what_is_large_or_slow_is_passed_on_whole() {
        let full = |text: &'static str| {
            Full::new(Bytes::from_static(text.as_bytes())).map_err(|e| match e {}).boxed_unsync()
        };
        let time = Duration::from_secs(1);
        let small = collect_within(full("abc"), 3, time, |_| false).await.unwrap();
        assert!(matches!(small, Collected::Whole(bytes) if bytes == "abc"));
        let Ok(Collected::Part(large)) = collect_within(full("abcd"), 3, time, |_| false).await
        else {
            panic!("it was kept")
        };
        assert_eq!(large.collect().await.unwrap().to_bytes(), "abcd");
        let frames = futures_util::stream::unfold(0, |n| async move {
            tokio::time::sleep(Duration::from_millis(600)).await;
            (n < 4).then(|| (Ok::<_, BodyError>(Frame::data(Bytes::from_static(b"x"))), n + 1))
        });
        let slow = StreamBody::new(Box::pin(frames)).boxed_unsync();
        let Ok(Collected::Part(slow)) = collect_within(slow, 99, time, |_| false).await else {
            panic!("it was waited for")
        };
        assert_eq!(slow.collect().await.unwrap().to_bytes(), "xxxx");
    }

    #[tokio::test(start_paused = true)]
    async fn what_shows_that_it_is_no_feed_is_not_waited_for() {
        let slow = |texts: &'static [&'static str]| {
            let frames = futures_util::stream::unfold(texts, |texts| async move {
                let (first, rest) = texts.split_first()?;
                tokio::time::sleep(Duration::from_secs(6)).await;
                Some((Ok::<_, BodyError>(Frame::data(Bytes::from_static(first.as_bytes()))), rest))
            });
            StreamBody::new(Box::pin(frames)).boxed_unsync()
        };
        let plain = HeaderMap::new();
        let begun = Instant::now();
        let texts = &["<?xml version='1.0'?>", "<urlset>", "</urlset>"];
        let Ok(Collected::Part(other)) = collect(&plain, slow(texts)).await else {
            panic!("it was read whole")
        };
        assert!(begun.elapsed() < Duration::from_secs(13), "it was waited for");
        assert_eq!(other.collect().await.unwrap().to_bytes(), texts.concat());
        let feed = collect(&plain, slow(&["<rss>", "</rss>"])).await;
        assert!(matches!(feed, Ok(Collected::Whole(bytes)) if bytes == "<rss></rss>"));
        // What is packed is read whole.
        let gzip = http::HeaderValue::from_static("gzip");
        let packed = HeaderMap::from_iter([(header::CONTENT_ENCODING, gzip)]);
        let packed = collect(&packed, slow(&["<urlset>", "x"])).await;
        assert!(matches!(packed, Ok(Collected::Whole(_))));
    }
}
