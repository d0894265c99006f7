//! Answers of the site while a feed of them is in the making: passed on where they have the ids that the judged document
//! has, and held back until that is there where they have not.

use super::super::SharedState;
use super::super::site_service::ListenerSite;
use super::super::unsent_bodies::Recipient;
use super::body::{ReadAnswer, read};
use super::send;
use super::service::Inspected;
use super::through::{failed, may_be, no_feed, whole_no_feed};
use super::{
    BEING_JUDGED, KnownFeed, OriginRequest, PassOutcome, feed, known_feed, later, through,
};
use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use http::{Method, header};
use std::time::Duration;
use tidegate_core::model::FeedName;
use tidegate_net::origin::{PassAnswer, PassMode, is_neutral};
use tokio::time::{Instant, sleep, timeout};

/// How soon the judged document is looked for; then after twice as long each time, so long at most.
const FIRST_PAUSE: Duration = Duration::from_millis(25);
const LONGEST_PAUSE: Duration = Duration::from_millis(400);

/// The answer where a feed has no document yet.
pub(super) async fn new_feed(
    room: &SharedState,
    asked: &OriginRequest,
    request: Request,
    next: &ListenerSite,
) -> (Response, PassOutcome) {
    let keeps_ids = room.origins.looks.keeps_ids(&asked.url);
    if !keeps_ids && let Some(look) = room.origins.looks.running(&asked.url) {
        return super::follow_look(room, asked, look, request, next).await;
    }
    match asked.site.config().passes {
        PassMode::Redirect if keeps_ids => through::redirect(asked),
        PassMode::Through => through::pass(room, asked, request, next).await,
        PassMode::Redirect => unjudged(room, asked, BEING_JUDGED.into(), request, next).await,
    }
}

/// The answer where nothing is passed on, and who looked first got no document of a feed. `why`: what is said where
/// there is no feed either.
pub(super) async fn unjudged(
    room: &SharedState,
    asked: &OriginRequest,
    why: String,
    request: Request,
    next: &ListenerSite,
) -> (Response, PassOutcome) {
    match known_feed(room, &asked.url).await {
        Ok(KnownFeed::Served(name)) => feed(room, asked, &name, request, next).await,
        Ok(KnownFeed::New) => Box::pin(ask(room, asked, request, next)).await,
        Ok(KnownFeed::Unserved) => through::redirect(asked),
        Ok(KnownFeed::Unknown) => later(why),
        Err(problem) => failed(problem),
    }
}

/// What a client gets where the site answered this.
pub(super) async fn answer(
    room: &SharedState,
    asked: &OriginRequest,
    answer: PassAnswer,
    again: Request,
    next: &ListenerSite,
) -> (Response, PassOutcome) {
    let client = Recipient::of(&again).client;
    match read(room, asked, client, answer).await {
        Err(problem) => failed(problem),
        Ok(ReadAnswer::Part(answer)) => no_feed(room, asked, (again.method(), answer), None),
        Ok(ReadAnswer::Whole(whole, Inspected::Feed(traits), turn)) if !traits.keeps_ids => {
            // Nothing is held while that is waited for.
            drop((whole, turn));
            judged(room, asked, again, next).await
        }
        Ok(ReadAnswer::Whole(whole, found, _turn)) => {
            if matches!(found, Inspected::Feed(_)) {
                room.origins.looks.note_kept_ids(&asked.url);
            }
            whole_no_feed(room, asked, (again.method(), Recipient::of(&again)), whole)
        }
    }
}

/// The same where nothing is passed on, so that the gateway asks by itself.
pub(super) async fn ask(
    room: &SharedState,
    asked: &OriginRequest,
    request: Request,
    next: &ListenerSite,
) -> (Response, PassOutcome) {
    let (parts, _) = request.into_parts();
    let (turn, found) = match send::ask(room, asked, &parts).await {
        Ok(found) => found,
        Err(problem) => return failed(problem),
    };
    if !may_be(room, asked, &found) {
        return no_feed(room, asked, (&parts.method, found), Some(turn));
    }
    drop(turn);
    answer(room, asked, found, Request::from_parts(parts, Body::empty()), next).await
}

/// Whether the site is to be asked for a feed that has a document, since the gateway's own polls fail: it may answer its
/// readers, and they would have the same document for ever. Only the gateway that polls the feed asks.
pub(super) fn do_polls_fail(
    room: &SharedState,
    asked: &OriginRequest,
    name: &FeedName,
    request: &Request,
) -> bool {
    asked.site.config().passes == PassMode::Through
        && request.method() == Method::GET
        && room.origins.is_polled_as(&asked.site, &asked.url)
        && room.origins.looks.sees_polls(&asked.url)
        // One that waits for no poll is being polled, or is stopped: the gateway ended in documents of it.
        && room
            .operator
            .own_summary(name)
            .is_some_and(|polled| polled.failures > 0 && polled.next_poll.is_some())
}

/// Has such a feed read what the site answers, where that comes in time: asked as by a poll, but in the name that the
/// reader's program gives itself.
pub(super) async fn read_again(
    room: &SharedState,
    asked: &OriginRequest,
    name: &FeedName,
    request: Request,
) -> Request {
    let client = Recipient::of(&request).client;
    let (mut parts, _) = request.into_parts();
    let theirs = parts.headers.clone();
    let reading = async {
        let service = room.origins.service().ok()?;
        let feeds = room.directory.listing().await.ok()?;
        // Any other is polled as the operator says, and takes no answer of a reader's.
        let takes_it = feeds.get(name).is_some_and(|record| {
            record.on_demand.is_some()
                && record.access.is_none()
                && record.url == asked.url.as_str()
        });
        if !takes_it {
            return None;
        }
        parts.headers = service.polled_with();
        parts.headers.insert(header::USER_AGENT, theirs.get(header::USER_AGENT)?.clone());
        let answer = send::send(room, asked, &parts, Body::empty()).await.ok()?;
        if !may_be(room, asked, &answer) || !is_neutral(&answer.headers) {
            return None;
        }
        match read(room, asked, client, answer).await {
            Ok(ReadAnswer::Whole(whole, Inspected::Feed(_), _turn)) => {
                service.read_again(name, &asked.url, whole).await;
                Some(())
            }
            _ => None,
        }
    };
    // Whatever became of it, what there is is served.
    let _ = timeout(asked.site.config().first_wait, reading).await;
    parts.headers = theirs;
    Request::from_parts(parts, Body::empty())
}

/// The judged document, where it comes in time.
async fn judged(
    room: &SharedState,
    asked: &OriginRequest,
    request: Request,
    next: &ListenerSite,
) -> (Response, PassOutcome) {
    let until = Instant::now() + asked.site.config().first_wait;
    let mut pause = FIRST_PAUSE;
    loop {
        match known_feed(room, &asked.url).await {
            Ok(KnownFeed::Served(name)) => return feed(room, asked, &name, request, next).await,
            // Its first poll failed: the next answer of the site is passed on.
            Ok(KnownFeed::Unserved) => return later(BEING_JUDGED),
            _ if Instant::now() >= until => return later(BEING_JUDGED),
            _ => sleep(pause).await,
        }
        pause = pause.saturating_mul(2).min(LONGEST_PAUSE);
    }
}
