//! Pages of an origin: the feeds that they announce (`rel=alternate`) may become feeds of the gateway also where their
//! addresses have a query. They are read as they pass by; of one that is looked at the beginning is read, which names its
//! feeds.

use super::OriginRequest;
use super::looks::key;
use crate::site_service::{PolledFrame, WatchedBody};
use crate::{Cache, SharedState};
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, StatusCode};
use http_body::Body as _;
use http_body_util::BodyExt as _;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tidegate_format::parse::discover::page_feeds;
use tidegate_format::parse::{self, Limits, ParseError};
use tidegate_net::origin::{
    BodyError, PassAnswer, PassedBody, WholeAnswer, is_for_everybody, says_page,
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};
use url::{Position, Url};
use xxhash_rust::xxh3::xxh3_64;

/// The largest page that is read, in bytes as it comes over the wire.
const PAGE_LIMIT: usize = 512 * 1024;
/// How many announced addresses are remembered, and for how long after they were last announced.
const ANNOUNCED: u64 = 100_000;
const ANNOUNCED_AGE: Duration = Duration::from_secs(30 * 86_400);
/// How many pages are remembered that were read, and for how long they are not read again.
const PAGES: u64 = 20_000;
const READ_AGE: Duration = Duration::from_secs(3600);

/// What pages announced.
pub(crate) struct PagesSeen {
    announced: Cache<u64, ()>,
    read: Cache<u64, ()>,
    permits: Arc<Semaphore>,
}

impl Default for PagesSeen {
    fn default() -> Self {
        Self {
            announced: Cache::with_ttl(ANNOUNCED, ANNOUNCED_AGE),
            read: Cache::with_ttl(PAGES, READ_AGE),
            permits: Arc::new(Semaphore::new(READ_AT_ONCE)),
        }
    }
}

/// What a page is remembered by: its address, of which a query does not tell more than that there is one.
fn page_key(url: &Url) -> u64 {
    xxh3_64(url[..Position::AfterPath].as_bytes()) ^ u64::from(url.query().is_some())
}

/// Pages that are held in memory at the same time, until they were read; others pass by unread.
const READ_AT_ONCE: usize = 16;

impl PagesSeen {
    /// Whether a page announced a feed at this address.
    pub(super) fn is_announced(&self, url: &Url) -> bool {
        self.announced.get(&key(url.as_str())).is_some()
    }

    /// Notes that a feed was found at an address.
    pub(crate) fn announce(&self, url: &Url) {
        self.announced.insert(key(url.as_str()), ());
    }

    /// Takes a permit to read a page, if the answer is one that was not read for a while. The query does not tell pages
    /// apart: anybody can make up as many as they like.
    fn acquire_permit(
        &self,
        url: &Url,
        status: StatusCode,
        headers: &HeaderMap,
    ) -> Option<OwnedSemaphorePermit> {
        // Nearly every page was read before.
        let is_new = || self.read.get(&page_key(url)).is_none() && is_for_everybody(headers);
        if status != StatusCode::OK || !says_page(headers) || !is_new() {
            return None;
        }
        Arc::clone(&self.permits).try_acquire_owned().ok()
    }
}

/// An answer whose page is read while it passes by, where it is one.
pub(super) fn watch_page(
    app: &SharedState,
    origin_request: &OriginRequest,
    answer: PassAnswer,
) -> PassAnswer {
    let PassAnswer { status, headers, body } = answer;
    let Some(permit) = app.origins.pages.acquire_permit(&origin_request.url, status, &headers)
    else {
        return PassAnswer { status, headers, body };
    };
    let (app, origin_request, of_page) = (Arc::clone(app), origin_request.clone(), headers.clone());
    // Taken where it is too large, broken off, or whole.
    let mut copied = Some((BytesMut::new(), permit));
    let watch = move |body: &PassedBody, came: &PolledFrame<BodyError>| {
        let Poll::Ready(frame) = came else { return };
        let data = match frame {
            Some(Ok(frame)) => frame.data_ref(),
            Some(Err(_)) => return copied = None,
            None => None,
        };
        let copy = |(mut copy, permit): (BytesMut, _)| {
            copy.extend_from_slice(data.map(Bytes::as_ref).unwrap_or_default());
            (copy.len() <= PAGE_LIMIT).then_some((copy, permit))
        };
        copied = copied.take().and_then(copy);
        // Who knows the length does not ask for the end.
        if (frame.is_none() || body.is_end_stream())
            && let Some((copy, permit)) = copied.take()
        {
            let (app, origin_request) = (Arc::clone(&app), origin_request.clone());
            let answer = WholeAnswer { headers: of_page.clone(), body: copy.freeze() };
            tokio::spawn(async move {
                read(&app, &origin_request, answer).await;
                drop(permit);
            });
        }
    };
    PassAnswer { status, headers, body: WatchedBody::new(body, watch).boxed_unsync() }
}

/// Reads what a page announces.
async fn read(app: &SharedState, origin_request: &OriginRequest, answer: WholeAnswer) {
    app.origins.pages.read.insert(page_key(&origin_request.url), ());
    let found = app.operator.announced(&origin_request.url, answer).await;
    announce(app, origin_request, found).await;
}

/// Notes the feeds that a page announces.
pub(super) async fn announce(
    app: &SharedState,
    origin_request: &OriginRequest,
    found: impl IntoIterator<Item = Url>,
) {
    let listing = app.directory.listing().await.ok();
    // Anybody may have made up the address of another page.
    let is_front = origin_request.url == origin_request.site.config().url;
    for url in found {
        let Some(url) = origin_request.site.there(&url) else { continue };
        app.origins.pages.announce(&url);
        if is_front {
            app.operator.demand.note_named(&url);
        }
        // What is announced is asked for sooner or later.
        let known = listing.as_ref().and_then(|all| all.places.feed_of(&url));
        if let Some(name) = known {
            app.operator.demand.note(name, app.clock.now());
        }
    }
}

/// The largest document that may become a feed at its first request, in bytes as it comes over the wire.
const DOCUMENT_LIMIT: usize = 16 * 1024 * 1024;
/// How long such a document, or a page, may take.
const DOCUMENT_TIME: Duration = Duration::from_secs(20);
/// How long a page that is looked at may take.
const LOOK_TIME: Duration = Duration::from_secs(5);
/// In so many bytes it shows whether a document is a page.
const KIND_SHOWN: usize = 1024;
/// What ends the head of a page begins so: its end tag, or what comes next (HTML, section 13.1.2.4).
const HEAD_ENDS: [&[u8]; 2] = [b"</head", b"<body"];
/// The longest of them, in bytes.
const LONGEST_END: usize = 6;

/// What is at an address that somebody looks at: a document whole, a page up to the end of a head that names feeds, or
/// as far as it comes within its own limits. `None`: a document that is too large, slow or broken.
pub(crate) async fn document_or_page(url: &Url, answer: PassAnswer) -> Option<WholeAnswer> {
    let PassAnswer { headers, mut body, .. } = answer;
    let (begun, says_page) = (Instant::now(), says_page(&headers));
    let mut all = BytesMut::new();
    let (mut is_page, mut is_head_over) = (false, false);
    let read = loop {
        let time = if is_page { LOOK_TIME } else { DOCUMENT_TIME };
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

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::{Stream, StreamExt as _, stream};
    use http::{HeaderMap, HeaderValue, StatusCode, header};
    use http_body::Frame;
    use http_body_util::StreamBody;

    const HTML: &str = "text/html";
    const LINK: &str = "<link rel=alternate type=application/atom+xml href=/atom.xml>";
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
        assert!((LOOK_TIME..DOCUMENT_TIME).contains(&time), "{time:?}");
        for page in [page, "<html><head></head><body>".to_owned(), "<p>".repeat(PIECE)] {
            let (read, _) = looked_at(sent(HTML, beginning(page).chain(endless()))).await;
            let length = read.unwrap().len();
            assert!((PAGE_LIMIT..PAGE_LIMIT + PIECE).contains(&length), "{length}");
        }
        // A document is read whole, whatever it calls itself.
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
}
