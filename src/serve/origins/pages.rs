//! Pages of an origin that pass by: the feeds that they announce (`rel=alternate`) may become feeds of the gateway
//! also where their addresses have a query.

use super::super::SharedState;
use super::OriginRequest;
use crate::origin::{BodyError, PassAnswer, PassedBody, WholeAnswer, is_for_everybody, says_page};
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, StatusCode};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt as _;
use moka::sync::Cache;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use url::Url;
use xxhash_rust::xxh3::xxh3_64;

/// The largest page that is read, in bytes as it comes over the wire.
const PAGE_LIMIT: usize = 512 * 1024;
/// How many announced addresses are remembered, and for how long after they were last announced.
const ANNOUNCED: u64 = 100_000;
const ANNOUNCED_AGE: Duration = Duration::from_secs(30 * 86_400);
/// How many pages are remembered that were read, and for how long they are not read again.
const PAGES: u64 = 20_000;
const PAGE_AGE: Duration = Duration::from_secs(3600);

/// What pages announced.
pub(super) struct PagesSeen {
    announced: Cache<u64, ()>,
    read: Cache<u64, ()>,
}

impl Default for PagesSeen {
    fn default() -> Self {
        Self {
            announced: Cache::builder().max_capacity(ANNOUNCED).time_to_live(ANNOUNCED_AGE).build(),
            read: Cache::builder().max_capacity(PAGES).time_to_live(PAGE_AGE).build(),
        }
    }
}

fn key(url: &Url) -> u64 {
    xxh3_64(url.as_str().as_bytes())
}

impl PagesSeen {
    /// Whether a page announced a feed at this address.
    pub(super) fn is_announced(&self, url: &Url) -> bool {
        self.announced.contains_key(&key(url))
    }

    /// Whether an answer is a page that is to be read; from now on it is not for a while.
    fn is_new_page(&self, url: &Url, status: StatusCode, headers: &HeaderMap) -> bool {
        let is_page = status == StatusCode::OK && says_page(headers) && is_for_everybody(headers);
        if !is_page || self.read.contains_key(&key(url)) {
            return false;
        }
        self.read.insert(key(url), ());
        true
    }
}

/// An answer whose page is read while it passes by, where it is one.
pub(super) fn noticing(
    room: &SharedState,
    asked: &OriginRequest,
    answer: PassAnswer,
) -> PassAnswer {
    let PassAnswer { status, headers, body } = answer;
    if !room.origins.pages.is_new_page(&asked.url, status, &headers) {
        return PassAnswer { status, headers, body };
    }
    let copied = CopiedBody {
        body,
        copy: Some(BytesMut::new()),
        room: Arc::clone(room),
        asked: asked.clone(),
        headers: headers.clone(),
    };
    PassAnswer { status, headers, body: copied.boxed_unsync() }
}

/// Reads what a page announces.
pub(super) async fn read(room: &SharedState, asked: &OriginRequest, answer: WholeAnswer) {
    let Ok(service) = room.origins.service() else { return };
    let found = service.announced(&asked.url, answer).await;
    let listing = room.directory.listing().await.ok();
    for url in found {
        let there = if asked.site.holds(&url) { Some(url) } else { asked.site.upstream_of(&url) };
        let Some(url) = there else { continue };
        room.origins.pages.announced.insert(key(&url), ());
        // What is announced is asked for sooner or later.
        let known = listing.as_ref().and_then(|all| all.places().feed_of(&url));
        if let Some(name) = known {
            room.directory.note_asked(name);
        }
    }
}

/// A page, where it is not too large.
pub(super) async fn whole(mut body: PassedBody) -> Option<Bytes> {
    let mut all = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.ok()?.into_data() else { continue };
        all.extend_from_slice(&data);
        if all.len() > PAGE_LIMIT {
            return None;
        }
    }
    Some(all.freeze())
}

/// The body of a page, of which a copy is made as it passes by.
struct CopiedBody {
    body: PassedBody,
    /// `None`: it is too large, or was read.
    copy: Option<BytesMut>,
    room: SharedState,
    asked: OriginRequest,
    headers: HeaderMap,
}

impl CopiedBody {
    fn copy(&mut self, bytes: &Bytes) {
        let Some(copy) = &mut self.copy else { return };
        if copy.len() + bytes.len() > PAGE_LIMIT {
            self.copy = None;
        } else {
            copy.extend_from_slice(bytes);
        }
    }

    fn finish(&mut self) {
        let Some(copy) = self.copy.take() else { return };
        let (room, asked) = (Arc::clone(&self.room), self.asked.clone());
        let answer =
            WholeAnswer { headers: std::mem::take(&mut self.headers), body: copy.freeze() };
        tokio::spawn(async move { read(&room, &asked, answer).await });
    }
}

impl Body for CopiedBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        match &frame {
            Some(Ok(frame)) => {
                if let Some(bytes) = frame.data_ref() {
                    self.copy(bytes);
                }
                // Who knows the length does not ask for the end.
                if self.body.is_end_stream() {
                    self.finish();
                }
            }
            Some(Err(_)) => self.copy = None,
            None => self.finish(),
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
