//! Bodies of answers: read whole where they are small and quick, and passed on otherwise. Of a page that is looked at
//! its beginning is read, which names its feeds.

use super::super::SharedState;
use super::super::client::Client;
use super::super::problem::Problem;
use super::OriginRequest;
use super::first::LookPermit;
use super::pages::PAGE_LIMIT;
use super::service::Inspected;
use super::slots::longer;
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, StatusCode, header};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt as _;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;
use tidegate_format::parse::discover::feed_links;
use tidegate_format::parse::{self, Limits, ParseError};
use tidegate_net::origin::{BodyError, PassAnswer, PassedBody, WholeAnswer, is_no_feed, says_page};
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
/// How much of a document is looked at to see whether it can be a feed, and is held without leave to hold it whole.
const BEGINNING: usize = 16 * 1024;

/// A body, as far as it is kept.
enum Collected<T> {
    /// All of it, with the leave to hold it.
    Whole(Bytes, T),
    /// It is too large or too slow, or shows already that it is no feed: what was read, and the rest.
    Part(PassedBody),
}

/// Reads a document that may become a feed, with these headers: its beginning, which may show that it is none, and the
/// rest once there is leave to hold it.
async fn collect<T>(
    headers: &HeaderMap,
    body: PassedBody,
    leave: impl Future<Output = Result<T, Problem>>,
) -> Result<Collected<T>, Problem> {
    let broken = |_| {
        let said = "the site broke off before the whole document had arrived";
        Problem::new(StatusCode::BAD_GATEWAY, said)
    };
    let is_readable = !headers.contains_key(header::CONTENT_ENCODING);
    let is_none = |read: &[u8]| is_readable && is_no_feed(read.get(..BEGINNING).unwrap_or(read));
    let mut reading = ReadingBody::new(body, DOCUMENT_TIME);
    let mut end = reading.read(BEGINNING, is_none).await.map_err(broken)?;
    if end == ReadEnd::Enough {
        return Ok(Collected::Part(reading.into_body()));
    }
    let leave = leave.await?;
    if end == ReadEnd::Limit {
        end = reading.read(DOCUMENT_LIMIT, |_| false).await.map_err(broken)?;
    }
    Ok(match end {
        ReadEnd::Whole => Collected::Whole(reading.all.freeze(), leave),
        ReadEnd::Limit | ReadEnd::Enough => Collected::Part(reading.into_body()),
    })
}

/// A body of at most `limit` bytes; `None` where it is larger, slow or broken.
pub(super) async fn whole_body(body: PassedBody, limit: usize) -> Option<Bytes> {
    let mut reading = ReadingBody::new(body, DOCUMENT_TIME);
    let end = reading.read(limit, |_| false).await.ok()?;
    (end == ReadEnd::Whole).then(|| reading.all.freeze())
}

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
            |page: &BytesMut| !feed_links(&String::from_utf8_lossy(page), url).is_empty();
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
    /// It is too slow, or what was read is enough.
    Enough,
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

    /// Reads on, until there are more than `limit` bytes, or what is there is over. Nothing is lost where nobody waits
    /// for it to the end.
    pub(super) async fn read(
        &mut self,
        limit: usize,
        is_over: impl Fn(&[u8]) -> bool,
    ) -> Result<ReadEnd, BodyError> {
        loop {
            let Ok(frame) = timeout_at(self.until, self.rest.frame()).await else {
                return Ok(ReadEnd::Enough);
            };
            let Some(frame) = frame else { return Ok(ReadEnd::Whole) };
            let Ok(data) = frame?.into_data() else { continue };
            self.all.extend_from_slice(&data);
            if is_over(&self.all) {
                return Ok(ReadEnd::Enough);
            }
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
        let rest = self.rest.size_hint();
        self.beginning.as_ref().map_or(rest, |read| longer(&rest, read))
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

/// An answer that may be a feed.
pub(super) enum ReadAnswer {
    /// It was read whole, and is this; with the leave to hold it.
    Whole(WholeAnswer, Inspected, LookPermit),
    /// It is none, as its beginning shows, or too large or too slow for one.
    Part(PassAnswer),
}

/// Reads what may be a feed for a client, and says what it is.
pub(super) async fn read(
    room: &SharedState,
    asked: &OriginRequest,
    client: Client,
    answer: PassAnswer,
) -> Result<ReadAnswer, Problem> {
    let config = asked.site.config();
    let turn = async {
        // The site's answer is kept waiting by the gateway meanwhile.
        asked.is_held.store(true, Ordering::Relaxed);
        let leave = &room.origins.looks.documents;
        let turn = leave.acquire((&config.url, client), config.first_wait).await;
        asked.is_held.store(false, Ordering::Relaxed);
        turn
    };
    let PassAnswer { status, headers, body } = answer;
    match collect(&headers, body, turn).await? {
        Collected::Whole(body, turn) => {
            let whole = WholeAnswer { headers, body };
            let found = room.origins.service()?.inspect(&asked.url, whole.clone()).await;
            Ok(ReadAnswer::Whole(whole, found, turn))
        }
        Collected::Part(body) => Ok(ReadAnswer::Part(PassAnswer { status, headers, body })),
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
        assert_eq!(small.read(3, |_| false).await.unwrap(), ReadEnd::Whole);
        assert_eq!(small.all, "abc");
        let mut large = ReadingBody::new(full("abcd"), time);
        assert_eq!(large.read(3, |_| false).await.unwrap(), ReadEnd::Limit);
        assert_eq!(large.into_body().collect().await.unwrap().to_bytes(), "abcd");
        let frames = futures_util::stream::unfold(0, |n| async move {
            tokio::time::sleep(Duration::from_millis(600)).await;
            (n < 4).then(|| (Ok::<_, BodyError>(Frame::data(Bytes::from_static(b"x"))), n + 1))
        });
        let mut slow = ReadingBody::new(StreamBody::new(Box::pin(frames)).boxed_unsync(), time);
        assert_eq!(slow.read(99, |_| false).await.unwrap(), ReadEnd::Enough);
        assert_eq!(slow.into_body().collect().await.unwrap().to_bytes(), "xxxx");
    }

    /// What a body that is read becomes where there is no leave to hold it.
    async fn refused(headers: &HeaderMap, body: PassedBody) -> Result<Bytes, StatusCode> {
        let none = async { Err::<(), _>(Problem::new(StatusCode::SERVICE_UNAVAILABLE, "later")) };
        match collect(headers, body, none).await.map_err(|problem| problem.status())? {
            Collected::Part(body) => Ok(body.collect().await.unwrap().to_bytes()),
            Collected::Whole(..) => panic!("it was held"),
        }
    }

    #[tokio::test]
    async fn what_shows_that_it_is_no_feed_needs_no_leave() {
        let body = |texts: Vec<String>| {
            let frames =
                texts.into_iter().map(|text| Ok::<_, BodyError>(Frame::data(Bytes::from(text))));
            StreamBody::new(stream::iter(frames)).boxed_unsync()
        };
        let plain = HeaderMap::new();
        // In one piece that is larger than what is looked at, and in several.
        let sitemap = format!("<urlset>{}</urlset>", " ".repeat(2 * BEGINNING));
        let read = refused(&plain, body(vec![sitemap.clone()])).await;
        assert_eq!(read, Ok(sitemap.into()));
        let pieces = ["<?xml version='1.0'?>", "<maintenance", "/>"].map(str::to_owned);
        let read = refused(&plain, body(pieces.clone().into())).await;
        assert_eq!(read, Ok(pieces.concat().into()));
        // What may be a feed does, whatever its size.
        for feed in ["<rss></rss>".to_owned(), format!("<rss>{}</rss>", " ".repeat(BEGINNING))] {
            let read = refused(&plain, body(vec![feed])).await;
            assert_eq!(read, Err(StatusCode::SERVICE_UNAVAILABLE));
        }
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
        let leave = || std::future::ready(Ok(()));
        let plain = HeaderMap::new();
        let begun = Instant::now();
        let texts = &["<?xml version='1.0'?>", "<urlset>", "</urlset>"];
        let Ok(Collected::Part(other)) = collect(&plain, slow(texts), leave()).await else {
            panic!("it was read whole")
        };
        assert!(begun.elapsed() < Duration::from_secs(13), "it was waited for");
        assert_eq!(other.collect().await.unwrap().to_bytes(), texts.concat());
        let feed = collect(&plain, slow(&["<rss>", "</rss>"]), leave()).await;
        assert!(matches!(feed, Ok(Collected::Whole(bytes, ())) if bytes == "<rss></rss>"));
        // What is packed is read whole.
        let gzip = http::HeaderValue::from_static("gzip");
        let packed = HeaderMap::from_iter([(header::CONTENT_ENCODING, gzip)]);
        let packed = collect(&packed, slow(&["<urlset>", "x"]), leave()).await;
        assert!(matches!(packed, Ok(Collected::Whole(..))));
    }
}
