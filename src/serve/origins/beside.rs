//! Answers of the site while a feed of them is in the making: passed on where they have the ids that the judged document
//! has, and held back until that is there where they have not.

use super::super::SharedState;
use super::super::site_service::ListenerSite;
use super::super::unsent_bodies::Recipient;
use super::body::{ReadAnswer, read};
use super::service::Inspected;
use super::through::{failed, may_be, no_feed, whole_no_feed};
use super::{
    BEING_JUDGED, KnownFeed, OriginRequest, PassOutcome, feed, known_feed, later, through,
};
use crate::config::PassMode;
use crate::model::FeedName;
use crate::origin::{PassAnswer, is_neutral, is_plain, may_make_feed};
use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use http::{HeaderName, header};
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};

/// How soon the judged document is looked for; then after twice as long each time, so long at most.
const FIRST_PAUSE: Duration = Duration::from_millis(25);
const LONGEST_PAUSE: Duration = Duration::from_millis(400);

/// Headers of a request by which its answer may have no document.
const CONDITIONS: [HeaderName; 6] = [
    header::IF_MATCH,
    header::IF_MODIFIED_SINCE,
    header::IF_NONE_MATCH,
    header::IF_RANGE,
    header::IF_UNMODIFIED_SINCE,
    header::RANGE,
];

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
    let (turn, found) = match through::ask(room, asked, &parts).await {
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
/// readers, and they would have the same document for ever. Only by a request that says nothing of who asks, and by
/// the gateway that polls the feed.
pub(super) fn do_polls_fail(
    room: &SharedState,
    asked: &OriginRequest,
    name: &FeedName,
    request: &Request,
) -> bool {
    let passes = asked.site.config().passes == PassMode::Through;
    let is_open = || {
        may_make_feed(request.method(), request.headers())
            && is_plain(request.headers())
            && room.origins.is_polled_as(&asked.site, &asked.url)
    };
    passes
        && is_open()
        && room.origins.looks.sees_polls(&asked.url)
        && room.operator.own_summary(name).is_some_and(|polled| polled.failures > 0)
}

/// Has such a feed read what the site answers to this request, where that comes in time.
pub(super) async fn read_again(
    room: &SharedState,
    asked: &OriginRequest,
    name: &FeedName,
    request: Request,
) -> Request {
    let client = Recipient::of(&request).client;
    let (mut parts, _) = request.into_parts();
    let theirs = parts.headers.clone();
    for of_ours in CONDITIONS {
        parts.headers.remove(of_ours);
    }
    let reading = async {
        let answer = through::send(room, asked, &parts, Body::empty()).await.ok()?;
        if !may_be(room, asked, &answer) || !is_neutral(&answer.headers) {
            return None;
        }
        match read(room, asked, client, answer).await {
            Ok(ReadAnswer::Whole(whole, Inspected::Feed(_), _turn)) => {
                let service = room.origins.service().ok()?;
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
