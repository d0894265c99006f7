//! What is passed on to an origin, and what comes back.

use super::super::client::{Client, Peer};
use super::super::problem::{Problem, RETRY_SOON};
use super::super::session::COOKIE;
use super::super::site_service::ListenerSite;
use super::super::unsent_bodies::Recipient;
use super::super::{Listener, SharedState, auth, relay};
use super::body::{NoSize, ReadAnswer, read, whole_body};
use super::first::{FirstLook, Look, LookPermit, LookResult, NoFeedKind};
use super::outcome::is_unanswered;
use super::send::{ask, send};
use super::service::{AdmittedSite, FeedTraits, Inspected, NotMade};
use super::unmade::{self, Hindrance};
use super::{
    BEING_JUDGED, KnownFeed, OriginRequest, PassOutcome, beside, feed, known_feed, later, pages,
};
use axum::body::Body;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use http_body_util::{BodyExt as _, Full};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use tidegate_core::model::FeedRecord;
use tidegate_net::origin::{
    BodyError, ForwardedFor, OriginPlace, OwnCookie, PassAnswer, PassMode, PublicName, WholeAnswer,
    escaped, is_neutral, is_plain, may_be_feed, may_make_feed, to_client,
};
use tokio::time::timeout;

/// Our cookie, which no origin sees and none sets.
pub(super) const OURS: OwnCookie = OwnCookie(COOKIE);
/// Headers that reach beyond the path of who sends them.
const OF_WHOLE_HOST: [HeaderName; 2] =
    [HeaderName::from_static("service-worker-allowed"), HeaderName::from_static("clear-site-data")];

pub(super) fn failed(problem: Problem) -> (Response, PassOutcome) {
    let outcome = PassOutcome::of_error(&problem);
    (problem.into_response(), outcome)
}

/// To where the origin itself has it.
pub(super) fn redirect(asked: &OriginRequest) -> (Response, PassOutcome) {
    let to = asked.target.as_ref().map_or_else(|| asked.url.to_string(), Uri::to_string);
    lead(StatusCode::TEMPORARY_REDIRECT, &to)
}

/// A redirect with nothing else of the origin.
fn lead(status: StatusCode, to: &str) -> (Response, PassOutcome) {
    let Ok(to) = HeaderValue::from_str(to) else {
        return super::refused(Problem::new(
            StatusCode::BAD_REQUEST,
            "the address is not of ASCII",
        ));
    };
    let unkept = (header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    ((status, [(header::LOCATION, to), unkept]).into_response(), PassOutcome::Redirected)
}

/// Passes a request on, and its answer back. Where the answer may be a feed, it is looked at.
pub(super) async fn pass(
    room: &SharedState,
    asked: &OriginRequest,
    request: Request,
    next: &ListenerSite,
) -> (Response, PassOutcome) {
    let (parts, body) = request.into_parts();
    let answer = match send(room, asked, &parts, body).await {
        Ok(answer) => answer,
        Err(problem) => return failed(problem),
    };
    let mut outcome = PassOutcome::Passed;
    if may_be(room, asked, &answer) && may_make_feed(&parts.method, &parts.headers) {
        let again = |parts| Request::from_parts(parts, Body::empty());
        let is_known = || room.origins.looks.no_feed(&asked.url) == Some(NoFeedKind::Document);
        let client = parts.extensions.get().copied().unwrap_or(Client::Own);
        room.asked.note_client(asked.url.as_str(), client, room.clock.now());
        let hindrance = || unmade::hindrance(room, asked, (&parts.method, &parts.headers), client);
        match known_feed(room, &asked.url).await {
            Ok(KnownFeed::Served(name)) => {
                return feed(room, asked, &name, again(parts), next).await;
            }
            Ok(KnownFeed::New) if !room.origins.looks.keeps_ids(&asked.url) => {
                return Box::pin(beside::answer(room, asked, answer, again(parts), next)).await;
            }
            Ok(KnownFeed::Unknown) if !is_known() => match hindrance() {
                None => {
                    return match room.origins.looks.begin(&asked.url) {
                        Look::First(look) => {
                            let look = (look, answer);
                            Box::pin(document(room, asked, look, again(parts), next)).await
                        }
                        Look::Another(_) => {
                            Box::pin(beside::answer(room, asked, answer, again(parts), next)).await
                        }
                    };
                }
                Some(Hindrance::Request) => {}
                Some(Hindrance::Share) => outcome = PassOutcome::Unmade,
                Some(Hindrance::Header(name)) => {
                    room.origins.unmade.tell(&asked.site.config().name, &name);
                    outcome = PassOutcome::Unmade;
                }
            },
            _ => {}
        }
    }
    // What a page announces to one client is for that client.
    let answer = match may_make_feed(&parts.method, &parts.headers) {
        true => pages::noticing(room, asked, answer),
        false => answer,
    };
    let (response, _) = passed(room, asked, &parts.method, answer);
    (response, outcome)
}

/// Whether an answer may be a feed. Most JSON is none, so that it has to be announced as one.
pub(super) fn may_be(room: &SharedState, asked: &OriginRequest, answer: &PassAnswer) -> bool {
    let is_json = || answer.headers.get(header::CONTENT_TYPE).is_some_and(is_plain_json);
    may_be_feed(answer.status, &answer.headers)
        && (!is_json() || room.origins.pages.is_announced(&asked.url))
}

/// Whether a media type is that of any JSON.
fn is_plain_json(value: &HeaderValue) -> bool {
    let kind: Option<&[u8]> = value.as_bytes().split(|byte| b"; ".contains(byte)).next();
    kind.is_some_and(|kind| kind.eq_ignore_ascii_case(b"application/json"))
}

/// Whether credentials are for this gateway, which no origin is to see.
pub(super) fn is_our_authorization(room: &SharedState, headers: &HeaderMap) -> bool {
    let is_ours = || {
        room.settings.load().admin_token.admits(headers)
            || auth::password(headers)
                .is_some_and(|password| room.readers.find(&password).is_some())
    };
    headers.contains_key(header::AUTHORIZATION) && is_ours()
}

pub(super) fn forwarded<'n>(
    room: &SharedState,
    parts: &Parts,
    name: &'n PublicName,
) -> ForwardedFor<'n> {
    let peer: Option<Peer> = parts.extensions.get().copied();
    let peer = peer.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |peer| peer.0);
    ForwardedFor { peer, is_trusted: room.settings.load().proxies.are_trusted(peer), name }
}

/// An answer of the origin, as the client gets it.
fn passed(
    room: &SharedState,
    asked: &OriginRequest,
    method: &Method,
    answer: PassAnswer,
) -> (Response, PassOutcome) {
    let mut headers = to_client(answer.headers, OURS, &room.origins.via);
    for name in [header::LOCATION, header::CONTENT_LOCATION, header::REFRESH] {
        let leads = headers.get(&name);
        let here = leads.and_then(|leads| asked.site.led_here(&name, leads, &asked.url));
        if let Some(here) = here.and_then(|here| HeaderValue::from_str(&here).ok()) {
            headers.insert(name, here);
        }
    }
    // No length is that of what never comes (RFC 9110 section 8.6).
    if answer.status == StatusCode::NO_CONTENT {
        headers.remove(header::CONTENT_LENGTH);
    }
    if matches!(asked.site.config().place, OriginPlace::At(_)) {
        for name in OF_WHOLE_HOST {
            headers.remove(name);
        }
    }
    let has_no_body = *method == Method::HEAD
        || matches!(answer.status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
    // Its length is said by the headers, or not at all.
    let body = if has_no_body { Body::new(NoSize) } else { Body::new(answer.body) };
    let mut response = Response::new(body);
    *response.status_mut() = answer.status;
    *response.headers_mut() = headers;
    (response, PassOutcome::Passed)
}

/// Sends the first request for an address, and makes a feed of what answers as one.
pub(super) async fn look(
    room: &SharedState,
    asked: &OriginRequest,
    look: FirstLook,
    request: Request,
    next: &ListenerSite,
) -> (Response, PassOutcome) {
    let (parts, body) = request.into_parts();
    let answered = match asked.site.config().passes {
        // What is passed on is no request of ours.
        PassMode::Through => send(room, asked, &parts, body).await.map(|answer| (None, answer)),
        PassMode::Redirect => {
            ask(room, asked, &parts).await.map(|(turn, answer)| (Some(turn), answer))
        }
    };
    let (turn, answer) = match answered {
        Ok(answered) => answered,
        Err(problem) => return failed_look(&look, problem),
    };
    if may_be(room, asked, &answer) {
        let again = Request::from_parts(parts, Body::empty());
        let made = document(room, asked, (look, answer), again, next).await;
        drop(turn);
        return made;
    }
    // Whoever waits is sent on in any case.
    look.tell(match says_what_is_there(answer.status) {
        true => LookResult::NoFeed(NoFeedKind::Headers),
        false => LookResult::Unread,
    });
    no_feed(room, asked, (&parts.method, answer), turn)
}

/// Whether a status says something of what others are answered, and at other times. A failure does not, and nor does a
/// refusal, which may be for who asks: for how its program names itself, for one.
fn says_what_is_there(status: StatusCode) -> bool {
    let is_error = status.is_client_error() || status.is_server_error();
    !is_error || matches!(status, StatusCode::NOT_FOUND | StatusCode::GONE)
}

/// A look that failed. Whoever waited for it does not begin another one in turn.
fn failed_look(look: &FirstLook, problem: Problem) -> (Response, PassOutcome) {
    look.tell(LookResult::Later(problem.detail().to_owned()));
    failed(problem)
}

/// Reads what may be a feed, and makes one of it.
async fn document(
    room: &SharedState,
    asked: &OriginRequest,
    (look, answer): (FirstLook, PassAnswer),
    again: Request,
    next: &ListenerSite,
) -> (Response, PassOutcome) {
    let client = Recipient::of(&again).client;
    let whole = match read(room, asked, client, answer).await {
        Ok(ReadAnswer::Whole(whole, Inspected::Feed(traits), turn)) => {
            return make_feed(room, asked, (look, whole, traits, turn), again, next).await;
        }
        Ok(ReadAnswer::Whole(whole, found, _)) => {
            look.tell(match found {
                Inspected::Unreadable => LookResult::Unread,
                _ => LookResult::NoFeed(NoFeedKind::Document),
            });
            whole
        }
        Ok(ReadAnswer::Part(answer)) => {
            look.tell(LookResult::NoFeed(NoFeedKind::Document));
            return no_feed(room, asked, (again.method(), answer), None);
        }
        Err(problem) => return failed_look(&look, problem),
    };
    whole_no_feed(room, asked, (again.method(), Recipient::of(&again)), whole)
}

/// A document that was read whole and is no feed, or one with the ids that it is published with. It counts among the bodies on their way until its client has it.
pub(super) fn whole_no_feed(
    room: &SharedState,
    asked: &OriginRequest,
    (method, recipient): (&Method, Recipient),
    whole: WholeAnswer,
) -> (Response, PassOutcome) {
    let WholeAnswer { headers, body } = whole;
    if asked.site.config().passes != PassMode::Through || method == Method::HEAD {
        // Nothing of it goes to the client.
        let body = Full::new(body).map_err(|never| match never {}).boxed_unsync();
        return no_feed(
            room,
            asked,
            (method, PassAnswer { status: StatusCode::OK, headers, body }),
            None,
        );
    }
    let body = match room.bodies.send(recipient.client, recipient.connection, body) {
        Ok(body) => body.map_err(BodyError::from).boxed_unsync(),
        Err(refused) => return failed(Problem::later(refused.to_string(), RETRY_SOON)),
    };
    no_feed(room, asked, (method, PassAnswer { status: StatusCode::OK, headers, body }), None)
}

/// Makes a feed of a document, which goes on where the client leaves or the time is over.
async fn make_feed(
    room: &SharedState,
    asked: &OriginRequest,
    (look, whole, traits, turn): (FirstLook, WholeAnswer, FeedTraits, LookPermit),
    again: Request,
    next: &ListenerSite,
) -> (Response, PassOutcome) {
    let service = match room.origins.service() {
        Ok(service) => Arc::clone(service),
        Err(problem) => return failed(problem),
    };
    let (method, recipient) = (again.method().clone(), Recipient::of(&again));
    room.asked.note_client(asked.url.as_str(), recipient.client, room.clock.now());
    if room.origins.unmade.take_share(recipient.client, asked.site.config().feeds).is_err() {
        // Whoever waits has a share of his own.
        drop(look);
        let (response, outcome) = whole_no_feed(room, asked, (&method, recipient), whole);
        let is_passed = outcome == PassOutcome::Passed;
        return (response, if is_passed { PassOutcome::Unmade } else { outcome });
    }
    // What may be another document for others, or for a poll, is asked for anew.
    let is_everybodys = is_plain(again.headers())
        && is_neutral(&whole.headers)
        && room.origins.is_polled_as(&asked.site, &asked.url);
    let is_ours = asked.site.config().passes == PassMode::Redirect;
    if !room.store.answers_from_memory() {
        let making = make_feed_elsewhere(Arc::clone(room), asked.clone(), (look, turn), again);
        if traits.keeps_ids && is_everybodys && !is_ours {
            // The gateway that writes asks the site again, which nobody has to wait for.
            room.origins.looks.note_kept_ids(&asked.url);
            tokio::spawn(making);
            return whole_no_feed(room, asked, (&method, recipient), whole);
        }
        return match Box::pin(making).await {
            Some(answer) => answer,
            None if traits.keeps_ids => whole_no_feed(room, asked, (&method, recipient), whole),
            None => later(BEING_JUDGED),
        };
    }
    let (site, url) = (AdmittedSite::of_origin(&asked.site), asked.url.clone());
    let given = (is_ours || is_everybodys).then(|| whole.clone());
    let directory = Arc::clone(&room.directory);
    let making = tokio::spawn(async move {
        let made = service.make_feed(&site, &url, traits, given).await;
        directory.changed();
        // Whoever is told of it finds its place.
        let _ = directory.listing().await;
        look.tell(match &made {
            Ok(name) => LookResult::Feed(name.clone()),
            Err(NotMade::Full { .. }) => LookResult::NoFeed(NoFeedKind::Document),
            Err(error @ NotMade::Later) => LookResult::Later(error.to_string()),
        });
        drop(turn);
        made
    });
    match timeout(asked.site.config().first_wait, making).await {
        Ok(Ok(Ok(name))) => {
            if is_ours {
                room.origins.looks.note_found(&asked.site.config().url, recipient.client);
            }
            feed(room, asked, &name, again, next).await
        }
        Ok(Ok(Err(NotMade::Full { .. }))) => {
            whole_no_feed(room, asked, (&method, recipient), whole)
        }
        // The publisher's own document will do: it is published with the same ids.
        _ if traits.keeps_ids => {
            room.origins.looks.note_kept_ids(&asked.url);
            whole_no_feed(room, asked, (&method, recipient), whole)
        }
        Ok(Ok(Err(error @ NotMade::Later))) => match known_feed(room, &asked.url).await {
            // Its first poll failed, and nobody knows when there is a document with other ids.
            Ok(KnownFeed::Unserved) => whole_no_feed(room, asked, (&method, recipient), whole),
            _ => later(error.to_string()),
        },
        Ok(Err(_)) | Err(_) => later(BEING_JUDGED),
    }
}

/// Has the gateway that writes make a feed, by the same request: its answer is the feed's first document.
/// `None`: it has not answered.
async fn make_feed_elsewhere(
    room: SharedState,
    asked: OriginRequest,
    (look, _turn): (FirstLook, LookPermit),
    again: Request,
) -> Option<(Response, PassOutcome)> {
    let listener = if room.operators_apart { Listener::Readers } else { Listener::Everybody };
    let client = Recipient::of(&again).client;
    let limit = asked.site.config().first_wait.saturating_add(relay::PASSING_TIME);
    let answered = match room.store.condition().owner {
        Some(owner) => {
            let passing = relay::pass_on(&room, listener, (again, (0, limit)), &owner, limit);
            let answered = timeout(limit, passing).await.ok().and_then(Result::ok);
            // Where it is too busy, the publisher's own document may do.
            answered.filter(|response| response.status() != StatusCode::SERVICE_UNAVAILABLE)
        }
        None => None,
    };
    room.directory.changed();
    let feeds = room.directory.listing().await.ok();
    let is_it = |record: &&Arc<FeedRecord>| record.url == asked.url.as_str() && !record.private;
    let made = feeds.as_ref().and_then(|feeds| feeds.values().find(is_it));
    let made = made.map(|record| record.name.clone());
    let is_judged = match &made {
        Some(name) => matches!(room.store.state(name).await, Ok(Some(_))),
        None => false,
    };
    if is_judged && asked.site.config().passes == PassMode::Redirect {
        room.origins.looks.note_found(&asked.site.config().url, client);
    }
    look.tell(match made.filter(|_| is_judged) {
        Some(name) => LookResult::Feed(name),
        None => LookResult::Later("the gateway that writes has not made the feed yet".to_owned()),
    });
    let response = answered?;
    let outcome = match response.status() {
        _ if is_judged => PassOutcome::Feed,
        status if is_unanswered(status) => PassOutcome::Failed,
        status if status.is_redirection() => PassOutcome::Redirected,
        _ => PassOutcome::Passed,
    };
    Some((response, outcome))
}

/// What is no feed: passed back, or left to the origin. What a page announces is noted either way.
pub(super) fn no_feed(
    room: &SharedState,
    asked: &OriginRequest,
    (method, answer): (&Method, PassAnswer),
    turn: Option<LookPermit>,
) -> (Response, PassOutcome) {
    if asked.site.config().passes == PassMode::Through {
        return passed(room, asked, method, pages::noticing(room, asked, answer));
    }
    let is_redirect = matches!(answer.status.as_u16(), 301 | 302 | 303 | 307 | 308);
    let leads = answer.headers.get(header::LOCATION).filter(|_| is_redirect);
    if let Some(here) = leads.map(escaped).and_then(|leads| {
        let to = asked.url.join(&leads).ok()?;
        asked.site.holds(&to).then(|| asked.site.redirected(&leads, &asked.url))?
    }) {
        return lead(answer.status, &here);
    }
    let reading = room.origins.pages.turn(&asked.url, answer.status, &answer.headers);
    if let Some(reading) = reading {
        let (room, asked) = (Arc::clone(room), asked.clone());
        tokio::spawn(async move {
            if let Some(body) = whole_body(answer.body, pages::PAGE_LIMIT).await {
                let answer = WholeAnswer { headers: answer.headers, body };
                pages::read(&room, &asked, answer).await;
            }
            drop((reading, turn));
        });
    }
    redirect(asked)
}
