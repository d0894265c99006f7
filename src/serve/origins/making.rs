//! Looks at addresses of sites, and the feeds that are made of what is there, while whoever asked has an answer already.

use super::super::client::Client;
use super::super::{SharedState, relay};
use super::looks::{Look, NOTHING_AGE, PAGE_AGE};
use super::service::{AdmittedSite, FeedTraits, FoundAddress};
use super::{LOOK_WAIT, OriginRequest, pages};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use std::sync::{Arc, OnceLock};
use tidegate_net::origin::{WholeAnswer, may_be_feed, says_page};
use url::Url;

/// Begins to look at an address, where a feed may be there and nothing is known of it. `false`: its client has had its
/// share of new feeds.
pub(super) fn begin_look(room: &SharedState, asked: &OriginRequest, client: Client) -> bool {
    let origins = &room.origins;
    // One that is known and has no document yet is polled already. Another gateway may have made it a moment ago.
    let is_known =
        room.site.places.load().feed_of(&asked.url).is_some() && room.store.answers_from_memory();
    if is_known || !origins.makes_feed_at(&asked.url) {
        return true;
    }
    if !origins.feed_shares.has_share(client, asked.site.config().feeds) {
        return false;
    }
    let Some(look) = origins.looks.begin(&asked.url) else { return true };
    let site = AdmittedSite::of_origin(&asked.site);
    // Others wait for a look. One that would have to wait for its turn is left to a later request.
    if let Some(turn) = origins.looks.try_leave((&site.url, client)) {
        let (room, asked) = (Arc::clone(room), asked.clone());
        tokio::spawn(async move {
            make_of_look(&room, (&site, &asked), &look, client).await;
            drop((look, turn));
        });
    }
    true
}

/// Whether an answer may be a feed. Most JSON is none, so that it has to be announced as one.
pub(super) fn may_be(
    room: &SharedState,
    url: &Url,
    status: StatusCode,
    headers: &HeaderMap,
) -> bool {
    let is_json = || headers.get(header::CONTENT_TYPE).is_some_and(is_plain_json);
    may_be_feed(status, headers) && (!is_json() || room.origins.pages.is_announced(url))
}

/// Whether a media type is that of any JSON.
fn is_plain_json(value: &HeaderValue) -> bool {
    let kind: Option<&[u8]> = value.as_bytes().split(|byte| b"; ".contains(byte)).next();
    kind.is_some_and(|kind| kind.eq_ignore_ascii_case(b"application/json"))
}

/// Looks at an address as a poll would, with nothing of the client, and makes a feed of what is there.
async fn make_of_look(
    room: &SharedState,
    (site, asked): (&AdmittedSite, &OriginRequest),
    look: &Look,
    client: Client,
) {
    let (looks, url) = (&room.origins.looks, &asked.url);
    let Ok(service) = room.origins.service() else { return };
    let of_feed = |headers: &HeaderMap| may_be(room, url, StatusCode::OK, headers);
    // That of a document is held as long as the document is.
    let permit = OnceLock::new();
    let is_read = |headers: &HeaderMap| match of_feed(headers) {
        true => looks.documents.try_acquire().is_ok_and(|held| permit.set(held).is_ok()),
        false => says_page(headers),
    };
    match service.discover(site, url, &is_read).await {
        FoundAddress::Feed(there) if there.end != *url => {
            let is_lasting = there.lasting == there.end;
            let status = if is_lasting { StatusCode::MOVED_PERMANENTLY } else { StatusCode::FOUND };
            match asked.site.public_address(&there.end) {
                Some(here) => looks.note_lead(url, status, here),
                None => looks.note_no_feed(url, NOTHING_AGE),
            }
        }
        FoundAddress::Feed(there) if of_feed(&there.answer.headers) => {
            // A poll tells the site another name of it where another origin has the same address.
            let is_polled_so = room.origins.is_polled_as(&asked.site, url);
            let answer = is_polled_so.then_some(there.answer);
            let found = (there.traits, answer);
            if make_feed(room, look, (site, url), found, client).await {
                looks.note_found(&site.url, client);
            }
        }
        FoundAddress::Page(links) => {
            // What is no page, or broken, names none either.
            looks.note_no_feed(url, if links.is_empty() { NOTHING_AGE } else { PAGE_AGE });
            pages::announce(room, asked, links.into_iter().map(|(url, _)| url)).await;
        }
        FoundAddress::Feed(_) | FoundAddress::Closed(_) | FoundAddress::Nothing => {
            looks.note_no_feed(url, NOTHING_AGE);
        }
    }
}

/// Makes a feed for another gateway over the same store, which has looked at its address.
pub(crate) async fn make_for_other(
    room: &SharedState,
    url: &Url,
    traits: FeedTraits,
    client: Client,
) {
    let Some((site, url)) = room.origins.admitted(url) else { return };
    room.asked.note_client(url.as_str(), client, room.clock.now());
    match room.origins.looks.begin(&url) {
        Some(look) => {
            make_feed(room, &look, (&site, &url), (traits, None), client).await;
        }
        None => room.origins.looks.made(&url, LOOK_WAIT).await,
    }
}

/// Makes a feed that was found, or has the gateway make it that writes. Its first document is asked for where it is not
/// given. Whether it has one now.
async fn make_feed(
    room: &SharedState,
    look: &Look,
    (site, url): (&AdmittedSite, &Url),
    (traits, document): (FeedTraits, Option<WholeAnswer>),
    client: Client,
) -> bool {
    // Another gateway may have made it.
    let is_new = room.site.places.load().feed_of(url).is_none();
    if is_new && room.origins.feed_shares.take_share(client, site.feeds).is_err() {
        return false;
    }
    if traits.keeps_ids {
        look.release_others();
    }
    let made = match (room.origins.service(), room.store.answers_from_memory()) {
        (Ok(service), true) => service.make_feed(site, url, traits, document).await.is_ok(),
        (Ok(_), false) => relay::have_feed_made(room, url, traits, client).await,
        (Err(_), _) => false,
    };
    // Whoever waits for it finds its place then.
    let _ = room.directory.listing().await;
    if !made {
        room.origins.looks.note_no_feed(url, NOTHING_AGE);
    }
    made
}
