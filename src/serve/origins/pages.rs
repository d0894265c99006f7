//! Pages of an origin that pass by: the feeds that they announce (`rel=alternate`) may become feeds of the gateway
//! also where their addresses have a query.

use super::super::SharedState;
use super::super::cache::Cache;
use super::super::watched_body::{PolledFrame, WatchedBody};
use super::OriginRequest;
use super::looks::key;
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, StatusCode};
use http_body::Body as _;
use http_body_util::BodyExt as _;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tidegate_net::origin::{
    BodyError, PassAnswer, PassedBody, WholeAnswer, is_for_everybody, says_page,
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use url::{Position, Url};
use xxhash_rust::xxh3::xxh3_64;

/// The largest page that is read, in bytes as it comes over the wire.
pub(super) const PAGE_LIMIT: usize = 512 * 1024;
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
    turns: Arc<Semaphore>,
}

impl Default for PagesSeen {
    fn default() -> Self {
        Self {
            announced: Cache::lasting(ANNOUNCED, ANNOUNCED_AGE),
            read: Cache::lasting(PAGES, PAGE_AGE),
            turns: Arc::new(Semaphore::new(READ_AT_ONCE)),
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
    pub(super) fn announce(&self, url: &Url) {
        self.announced.insert(key(url.as_str()), ());
    }

    /// Leave to read a page, where an answer is one that was not read for a while. The query does not tell pages
    /// apart: anybody can make as many as he likes.
    fn turn(
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
        Arc::clone(&self.turns).try_acquire_owned().ok()
    }
}

/// An answer whose page is read while it passes by, where it is one.
pub(super) fn noticing(
    room: &SharedState,
    asked: &OriginRequest,
    answer: PassAnswer,
) -> PassAnswer {
    let PassAnswer { status, headers, body } = answer;
    let Some(turn) = room.origins.pages.turn(&asked.url, status, &headers) else {
        return PassAnswer { status, headers, body };
    };
    let (room, asked, of_page) = (Arc::clone(room), asked.clone(), headers.clone());
    // Taken where it is too large, broken off, or whole.
    let mut copied = Some((BytesMut::new(), turn));
    let watch = move |body: &PassedBody, came: &PolledFrame<BodyError>| {
        let Poll::Ready(frame) = came else { return };
        let data = match frame {
            Some(Ok(frame)) => frame.data_ref(),
            Some(Err(_)) => return copied = None,
            None => None,
        };
        let copy = |(mut copy, turn): (BytesMut, _)| {
            copy.extend_from_slice(data.map(Bytes::as_ref).unwrap_or_default());
            (copy.len() <= PAGE_LIMIT).then_some((copy, turn))
        };
        copied = copied.take().and_then(copy);
        // Who knows the length does not ask for the end.
        if (frame.is_none() || body.is_end_stream())
            && let Some((copy, turn)) = copied.take()
        {
            let (room, asked) = (Arc::clone(&room), asked.clone());
            let answer = WholeAnswer { headers: of_page.clone(), body: copy.freeze() };
            tokio::spawn(async move {
                read(&room, &asked, answer).await;
                drop(turn);
            });
        }
    };
    PassAnswer { status, headers, body: WatchedBody::new(body, watch).boxed_unsync() }
}

/// Reads what a page announces.
async fn read(room: &SharedState, asked: &OriginRequest, answer: WholeAnswer) {
    let Ok(service) = room.origins.service() else { return };
    room.origins.pages.read.insert(page_key(&asked.url), ());
    let found = service.announced(&asked.url, answer).await;
    announce(room, asked, found).await;
}

/// Notes the feeds that a page announces.
pub(super) async fn announce(
    room: &SharedState,
    asked: &OriginRequest,
    found: impl IntoIterator<Item = Url>,
) {
    let listing = room.directory.listing().await.ok();
    // Anybody may have made up the address of another page.
    let is_front = asked.url == asked.site.config().url;
    for url in found {
        let Some(url) = asked.site.there(&url) else { continue };
        room.origins.pages.announce(&url);
        if is_front {
            room.asked.note_named(&url);
        }
        // What is announced is asked for sooner or later.
        let known = listing.as_ref().and_then(|all| all.places().feed_of(&url));
        if let Some(name) = known {
            room.directory.note_asked(name);
        }
    }
}
