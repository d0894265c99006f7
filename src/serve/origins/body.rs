//! Bodies that are read: whole where they are small and quick, and passed on otherwise. Of a page that is looked at its
//! beginning is read, which names its feeds.

use super::pages::PAGE_LIMIT;
use bytes::{Bytes, BytesMut};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt as _;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tidegate_format::parse::discover::page_feeds;
use tidegate_format::parse::{self, Limits, ParseError};
use tidegate_net::origin::{BodyError, PassAnswer, PassedBody, WholeAnswer, says_page};
use tokio::time::{Instant, timeout_at};
use url::Url;

/// The largest document that may become a feed at its first request, in bytes as it comes over the wire.
const DOCUMENT_LIMIT: usize = 16 * 1024 * 1024;
/// How long such a document, or a page, may take.
const DOCUMENT_TIME: Duration = Duration::from_secs(20);
/// How long a page that is looked at may take.
const PAGE_TIME: Duration = Duration::from_secs(5);
/// In so many bytes it shows whether a document is a page.
const KIND_SHOWN: usize = 1024;
/// What ends the head of a page begins so: its end tag, or what comes next (HTML, section 13.1.2.4).
const HEAD_ENDS: [&[u8]; 2] = [b"</head", b"<body"];
/// The longest of them, in bytes.
const LONGEST_END: usize = 6;

/// What is at an address that somebody looks at: a document whole, a page up to the end of a head that names feeds, or
/// as far as it comes within its own limits. `None`: a document that is too large, slow or broken.
pub async fn document_or_page(url: &Url, answer: PassAnswer) -> Option<WholeAnswer> {
    let PassAnswer { headers, mut body, .. } = answer;
    let (begun, says_page) = (Instant::now(), says_page(&headers));
    let mut all = BytesMut::new();
    let (mut is_page, mut is_head_over) = (false, false);
    let read = loop {
        let time = if is_page { PAGE_TIME } else { DOCUMENT_TIME };
        let frame = match timeout_at(begun + time, body.frame()).await {
            Ok(None) => break Some(all),
            Ok(Some(Ok(frame))) => frame,
            // What came of a page may be enough.
            Ok(Some(Err(_))) | Err(_) => break Some(all).filter(|_| is_page),
        };
        let Ok(data) = frame.into_data() else { continue };
        let before = all.len();
        all.extend_from_slice(&data);
        is_page = is_page || (before < KIND_SHOWN && shows_page(&all, says_page));
        if !is_page {
            if all.len() > DOCUMENT_LIMIT {
                break None;
            }
            continue;
        }
        // Links behind a head without any are read as well.
        let names_feeds =
            |page: &BytesMut| !page_feeds(&String::from_utf8_lossy(page), url).named.is_empty();
        let new = all.get(before.saturating_sub(LONGEST_END)..).unwrap_or_default();
        let is_end = !is_head_over && has_head_end(new);
        is_head_over = is_head_over || is_end;
        if (is_end && names_feeds(&all)) || all.len() >= PAGE_LIMIT {
            break Some(all);
        }
    };
    // Dropping the rest of the body ends the transfer.
    read.map(|read| WholeAnswer { headers, body: read.freeze() })
}

/// Whether a document is a page, by its beginning. `says_page`: its media type is that of one, which feeds have too.
fn shows_page(beginning: &[u8], says_page: bool) -> bool {
    let beginning = beginning.get(..KIND_SHOWN).unwrap_or(beginning);
    let is_whole = beginning.len() == KIND_SHOWN;
    let text = String::from_utf8_lossy(beginning);
    match parse::document(&text, None, &Limits::default()) {
        Err(ParseError::Html { .. }) => true,
        Err(ParseError::NotAFeed { .. }) => says_page && is_whole,
        // It may be the beginning of a feed.
        Ok(_) | Err(_) => false,
    }
}

/// Whether the head of a page ends in a part of it.
fn has_head_end(part: &[u8]) -> bool {
    let is_end = |rest: &[u8]| {
        HEAD_ENDS
            .iter()
            .any(|end| rest.get(..end.len()).is_some_and(|begins| begins.eq_ignore_ascii_case(end)))
    };
    (0..part.len()).any(|at| part.get(at..).is_some_and(is_end))
}

/// Where reading a body ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReadEnd {
    Whole,
    /// There is more than was to be read.
    Limit,
    /// It is too slow.
    Late,
}

/// A body that is being read.
pub(super) struct ReadingBody {
    all: BytesMut,
    rest: PassedBody,
    until: Instant,
}

impl ReadingBody {
    /// That has so much time in all.
    pub(super) fn new(body: PassedBody, time: Duration) -> Self {
        Self { all: BytesMut::new(), rest: body, until: Instant::now() + time }
    }

    /// Reads on, until there are more than `limit` bytes. Nothing is lost where nobody waits for it to the end.
    pub(super) async fn read(&mut self, limit: usize) -> Result<ReadEnd, BodyError> {
        loop {
            let Ok(frame) = timeout_at(self.until, self.rest.frame()).await else {
                return Ok(ReadEnd::Late);
            };
            let Some(frame) = frame else { return Ok(ReadEnd::Whole) };
            let Ok(data) = frame?.into_data() else { continue };
            self.all.extend_from_slice(&data);
            if self.all.len() > limit {
                return Ok(ReadEnd::Limit);
            }
        }
    }

    /// The whole of it again.
    pub(super) fn into_body(self) -> PassedBody {
        let beginning = Some(self.all.freeze());
        BegunBody { beginning, rest: self.rest }.boxed_unsync()
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
        match self.beginning.take().filter(|bytes| !bytes.is_empty()) {
            Some(bytes) => Poll::Ready(Some(Ok(Frame::data(bytes)))),
            None => Pin::new(&mut self.rest).poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.beginning.as_ref().is_none_or(Bytes::is_empty) && self.rest.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (rest, mut hint) = (self.rest.size_hint(), SizeHint::new());
        let read = self.beginning.as_ref().map_or(0, Bytes::len);
        let read = u64::try_from(read).unwrap_or(u64::MAX);
        hint.set_lower(rest.lower().saturating_add(read));
        if let Some(upper) = rest.upper() {
            hint.set_upper(upper.saturating_add(read));
        }
        hint
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::{Stream, StreamExt as _, stream};
    use http::{HeaderMap, HeaderValue, StatusCode, header};
    use http_body_util::{Full, StreamBody};

    const HTML: &str = "text/html";
    const LINK: &str = "<link rel=alternate type=application/atom+xml href=/atom.xml>";
    /// The size of each piece of a long body.
    const PIECE: usize = 16 * 1024;

    fn sent(kind: &'static str, pieces: impl Stream<Item = Bytes> + Send + 'static) -> PassAnswer {
        let frames = pieces.map(|bytes| Ok::<_, BodyError>(Frame::data(bytes)));
        let headers =
            HeaderMap::from_iter([(header::CONTENT_TYPE, HeaderValue::from_static(kind))]);
        PassAnswer { status: StatusCode::OK, headers, body: StreamBody::new(frames).boxed_unsync() }
    }

    /// What is read of an answer, and how long that takes.
    async fn looked_at(answer: PassAnswer) -> (Option<Bytes>, Duration) {
        let (begun, url) = (Instant::now(), Url::parse("https://a.example/").unwrap());
        let read = document_or_page(&url, answer).await;
        (read.map(|read| read.body), begun.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn a_page_is_read_as_far_as_its_feeds_are_named() {
        let beginning = |text: String| stream::iter([Bytes::from(text)]);
        let endless = || stream::repeat(Bytes::from_static(&[b'x'; PIECE]));
        // A head that names a feed is enough, whether nothing comes behind it or no end.
        let page = format!("<!doctype html><html><head>{LINK}</HEAD><body>");
        for answer in [
            sent(HTML, beginning(page.clone()).chain(stream::pending())),
            sent(HTML, beginning(page.clone()).chain(endless())),
            sent("text/plain", beginning(page.clone()).chain(endless())),
        ] {
            let (read, time) = looked_at(answer).await;
            assert_eq!((read.unwrap(), time), (Bytes::from(page.clone()), Duration::ZERO));
        }
        // Where the end of the head is in two pieces.
        let (one, other) = page.split_at_checked(page.len() - "</HEAD><body>".len() + 3).unwrap();
        let pieces = stream::iter([one.to_owned(), other.to_owned()].map(Bytes::from));
        let (read, time) = looked_at(sent(HTML, pieces.chain(stream::pending()))).await;
        assert_eq!((read.unwrap(), time), (Bytes::from(page.clone()), Duration::ZERO));
        // Without an end of the head: what comes in time, or within the limit.
        let page = format!("<html>{LINK}");
        let slow = sent(HTML, beginning(page.clone()).chain(stream::pending()));
        let (read, time) = looked_at(slow).await;
        assert_eq!(read.unwrap(), page);
        assert!((PAGE_TIME..DOCUMENT_TIME).contains(&time), "{time:?}");
        for page in [page, "<html><head></head><body>".to_owned(), "<p>".repeat(PIECE)] {
            let (read, _) = looked_at(sent(HTML, beginning(page).chain(endless()))).await;
            let length = read.unwrap().len();
            assert!((PAGE_LIMIT..PAGE_LIMIT + PIECE).contains(&length), "{length}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_document_is_read_whole_whatever_it_calls_itself() {
        let items = "<item><title>One</title><guid>1</guid></item>".repeat(PAGE_LIMIT / 40);
        let head = "<title>t</title><link>http://a.example/</link>";
        let feed = format!("<rss version=\"2.0\"><channel>{head}{items}</channel></rss>");
        assert!(feed.len() > PAGE_LIMIT);
        let pieces = feed.as_bytes().chunks(PIECE).map(Bytes::copy_from_slice);
        let pieces: Vec<_> = pieces.collect();
        for kind in [HTML, "application/rss+xml"] {
            let (read, _) = looked_at(sent(kind, stream::iter(pieces.clone()))).await;
            assert_eq!(read.unwrap(), feed.as_bytes());
        }
        let begun = stream::iter(pieces).chain(stream::pending());
        let (read, time) = looked_at(sent(HTML, begun)).await;
        assert!(read.is_none() && time >= DOCUMENT_TIME, "{time:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_large_or_slow_is_passed_on_whole() {
        let full = |text: &'static str| {
            Full::new(Bytes::from_static(text.as_bytes())).map_err(|e| match e {}).boxed_unsync()
        };
        let time = Duration::from_secs(1);
        let mut small = ReadingBody::new(full("abc"), time);
        assert_eq!(small.read(3).await.unwrap(), ReadEnd::Whole);
        assert_eq!(small.all, "abc");
        let mut large = ReadingBody::new(full("abcd"), time);
        assert_eq!(large.read(3).await.unwrap(), ReadEnd::Limit);
        assert_eq!(large.into_body().collect().await.unwrap().to_bytes(), "abcd");
        let frames = futures_util::stream::unfold(0, |n| async move {
            tokio::time::sleep(Duration::from_millis(600)).await;
            (n < 4).then(|| (Ok::<_, BodyError>(Frame::data(Bytes::from_static(b"x"))), n + 1))
        });
        let mut slow = ReadingBody::new(StreamBody::new(Box::pin(frames)).boxed_unsync(), time);
        assert_eq!(slow.read(99).await.unwrap(), ReadEnd::Late);
        assert_eq!(slow.into_body().collect().await.unwrap().to_bytes(), "xxxx");
    }
}
