//! `/feeds/NAME/about`: a feed's state and the reasons for it, for people.

use super::address::shown;
use super::admin::EVENTS_SHOWN;
use super::admission::{Work, WorkKind};
use super::audience::{Audience, ServedFeed};
use super::client::Client;
use super::discarded::Discarded;
use super::documents::{DocumentKey, DocumentKind};
use super::explain::{evidence, why_beside_hold};
use super::feeds::{NameInPath, unreadable};
use super::html::{self, moment, text};
use super::life::{self, FeedLife};
use super::problem::{Problem, RETRY_SOON};
use super::readers::report::{self, PrivateReaders};
use super::session::{self, sign_in_address};
use super::standing::{last, origin, standing};
use super::{SharedState, actions, forms, keeping, list_members};
use axum::extract::State;
use axum::response::Response;
use http::{HeaderMap, Method};
use maud::{Markup, PreEscaped, html};
use std::collections::VecDeque;
use std::sync::Arc;
use tidegate_core::model::counted;
use tidegate_core::model::{Backfill, Event, FeedName, FeedRecord, FeedState, InterruptionKind};
use tidegate_core::model::{Interruptions, Time};
use tidegate_format::render::Container;
use tidegate_judge::{self as judge, PendingAbsence, Quiet};
use tidegate_status::{FeedStatus, FinishedPoll, GatherNote, HubNote, ParsedNote, PollGaps};
use tidegate_store::StoreError;

/// `GET /feeds/NAME/about`.
pub(super) async fn page(
    State(room): State<SharedState>,
    (audience, client): (Audience, Client),
    name: NameInPath,
    method: Method,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let name = name.map_err(unreadable)?.0;
    let record = room.directory.served(&name, &audience).await?;
    let state = room.store.state(&record.name).await?;
    let acting = acting(&room, (&record, &audience), state.as_ref(), (&method, &headers));
    let container = state.as_ref().map_or(Container::Atom, |state| Container::of(state.format));
    let counts = state.as_ref().map(|state| (state.living, state.tombstones));
    let items = counts.map_or(0, |(living, gone)| u64::from(living) + u64::from(gone));
    let work = Work::new(&record.name, WorkKind::Ledger);
    let ask = room.admission.request(client, work, items);
    let revision = state.as_ref().map(|state| state.revision);
    let (readers, audience) = report::told_to(&room, &audience, &record).await?;
    let (feed, kind) = (record.name.clone(), DocumentKind::About);
    let key = DocumentKey { audience, feed, revision, kind };
    let make = || {
        let (room, record) = (Arc::clone(&room), record.clone());
        async move { made(&room, &record, state, readers).await }
    };
    let content = room.documents.get(key, ask, make).await?.text();
    let content = html! {
        (html::trail(&record.name, None, "About"))
        (acting)
        (PreEscaped(String::from_utf8_lossy(&content)))
    };
    Ok(forms::page_about((&record.name, container), &text(&record.shown_title()), &content))
}

/// What came of the last thing that was done, and what can be done now.
fn acting(
    room: &SharedState,
    (record, audience): (&FeedRecord, &Audience),
    state: Option<&FeedState>,
    (method, headers): (&Method, &HeaderMap),
) -> Markup {
    if !audience.may_sign_in() {
        return html! {};
    }
    html! {
        (session::notice(room, method, headers))
        @if room.sessions.is_open(headers) {
            @if let Some(member) = &record.list {
                p.quiet { "Added by the list "
                    a href={ "/feeds/" (member.list) "/about" } { (member.list) } "." }
            }
            @if let Some(made) = &record.on_demand {
                p.quiet { "Made by a request for the site " (text(&made.site)) ", and last asked for on "
                    (made.asked.to_string()) " or later"
                    @if made.is_let_go { "; not polled until it is asked for again" }
                    "." }
            }
            (actions::buttons(record, state))
        } @else {
            p.quiet {
                a href=(sign_in_address(&format!("/feeds/{}/about", record.name))) { "Sign in" }
                @if record.has_upstream() { " to poll it now, pause it, or decide what is held." }
                @else { " to act on it." }
            }
        }
    }
}

async fn made(
    room: &SharedState,
    record: &ServedFeed,
    state: Option<FeedState>,
    readers: Option<PrivateReaders>,
) -> Result<String, Problem> {
    let status = room.operator.status(&record.name).await?;
    let events = room.store.events(&record.name, EVENTS_SHOWN).await?;
    let snapshot = room.store.snapshot(&record.name).await?;
    let (is_there, name) = (snapshot.is_some(), record.name.clone());
    let now = room.clock.now();
    let interruptions = interruptions(&status, state.as_ref(), now);
    // All of a ledger is looked at, and let go of, where that keeps nobody waiting.
    let looking = tokio::task::spawn_blocking(move || {
        let snapshot = snapshot.as_ref();
        let quiet = snapshot.map(judge::quiet).unwrap_or_default();
        let oldest = snapshot.and_then(|snapshot| snapshot.archives.first()).cloned();
        let life = snapshot.map(|snapshot| FeedLife::new(snapshot, &events, interruptions));
        let life = life.map(|life| life::figure(&name, &life, now)).unwrap_or_default();
        (quiet, oldest, Discarded::new(snapshot).part(&name), life, events)
    });
    let (quiet, oldest, discarded, life, events) = looking.await.map_err(|_| StoreError::Closed)?;
    let kept = match &state {
        Some(state) if is_there => {
            let kept = keeping::part(room, &status, state, oldest.as_ref()).await;
            kept.map_err(|error| {
                tracing::error!(feed = %record.name, %error, "what is kept could not be counted");
                Problem::later("the gateway could not count what it keeps just now", RETRY_SOON)
            })?
        }
        _ => html! {},
    };
    let kept = html! { (discarded) (kept) };
    let contested = room.contested.count(&record.name).await?;
    let address = readers.is_none().then(|| record.site.at(&format!("/feeds/{}", record.name)));
    let address = html! {
        @if let Some(readers) = readers { p { span.pill { "private" } " " (text(&readers.describe(&record.name))) "." } }
        @if let Some(address) = address { p.quiet { "For feed readers: " code { (address) } } }
    };
    let of = (&status, state.as_ref(), &address);
    Ok(content(of, contested, (&life, &kept), &quiet, &events).into_string())
}

/// When the feed did not go on as usual, up to now: a poll may have still to see that a hold began or
/// was decided.
fn interruptions(status: &FeedStatus, state: Option<&FeedState>, now: Time) -> Interruptions {
    let mut all = status.polling.interruptions.clone();
    let hold = state.and_then(|state| state.hold.as_ref());
    let since = hold.map_or(now, |hold| hold.since.min(now));
    all.note(InterruptionKind::Held, status.held.as_deref().filter(|_| hold.is_some()), since);
    all
}

fn content(
    (status, state, address): (&FeedStatus, Option<&FeedState>, &Markup),
    contested: u32,
    (life, kept): (&Markup, &Markup),
    quiet: &[Quiet],
    events: &[Event],
) -> Markup {
    let hold = state.and_then(|state| state.hold.as_ref());
    html! {
        p { (standing(status, state)) }
        p { (text(&why_beside_hold(status, state))) "." }
        @if let Some(hold) = hold {
            div.note #held {
                p { strong { "A document is held: " } (text(&hold.reason)) "." }
                p.quiet { (judge::hold_words(hold)) "." }
            }
        }
        p.links {
            a href={ "/feeds/" (status.name) "/items" } { "Items" }
            a href={ "/feeds/" (status.name) "/changes?as=html" } { "Edits and deletions" }
            a href={ "/feeds/" (status.name) "/conflicts" } { "Conflicts" }
            a href={ "/feeds/" (status.name) } { "The feed" }
            a href={ "/feeds/" (status.name) "/sync" } { "Changes for subscribers" }
            a href={ "/feeds/" (status.name) "/complete" } { "Everything kept" }
        }
        (address)
        p.quiet {
            (origin(status))
            @if let Some(next) = &status.polling.next {
                "; polled next at " (moment(next.at)) ": " (text(&next.reason))
            }
            @if let Some(name) = &status.polled_by { "; polled by the gateway " (text(name)) }
        }
        (life)
        @if let PollGaps { count, last: Some(last) } = status.polling.gaps {
            p.bad {
                "Items may have been missed: two documents in a row had nothing in common "
                @if count == 1 { "once" } @else { (count) " times" } ", last at " (moment(last)) "."
            }
        }
        @if contested > 0 {
            p.bad {
                (contested) @if contested == 1 { " item is" } @else { " items are" } " in conflict: "
                a href={ "/feeds/" (status.name) "/conflicts" } { "look and decide" } "."
            }
        }
        @if let Some(access) = &status.access {
            p.quiet { "Its publisher is asked with " (access.describe()) "." }
        }
        @if !status.pending.is_empty() { (missing(&status.name, status)) }
        @if !events.is_empty() { (happened(&status.name, events)) }
        (list_members::part(status))
        @if let Some(note) = &status.gathered { (gathered(note)) }
        @if let Some(hub) = &status.hub { (told_by(hub)) }
        @if status.polling.probing || !status.polling.probes.is_empty() { (probes(status)) }
        @if let Some(walk) = &status.polling.backfill { (older(walk, status.options.secret)) }
        (kept)
        @if let Some(state) = state {
            h2 { "What was learned of it" }
            p { (judge::character_words(&state.character)) "." }
            @for words in state.noise.describe() { p { (text(&words)) "." } }
        }
        @if !quiet.is_empty() { (unchanged(&status.name, quiet)) }
        @if let Some(document) = &status.polling.document { (last_document(document)) }
        @if !status.polling.polls.is_empty() { (polls(&status.polling.polls)) }
    }
}

fn gathered(note: &GatherNote) -> Markup {
    html! {
        @if let Some(error) = &note.error {
            p.bad { "It could not be brought up to date, which is tried again: " (text(error)) "." }
        }
        @if !note.troubles.is_empty() {
            h2 #sources { "Sources from which nothing new comes" }
            ul { @for trouble in &note.troubles {
                li {
                    a href={ "/feeds/" (trouble.source) "/about" } { (trouble.source) } ": "
                    (text(&trouble.why)) "."
                }
            } }
            @if note.troubled > note.troubles.len() {
                p.quiet { (note.troubles.len()) " of " (note.troubled) " are shown." }
            }
            p.quiet { "What was gathered from them stays." }
        }
        @if !note.left_out.is_empty() {
            h2 #left-out { "Not taken over" }
            div.wide { table {
                thead { tr { th { "Item" } th { "Why" } } }
                tbody { @for left in &note.left_out { tr {
                    td { (html::item(&left.source, &left.id, "")) br;
                        span.quiet { "of " (left.source) } }
                    td { (text(&left.why)) "." }
                } } }
            } }
        }
    }
}

fn told_by(hub: &HubNote) -> Markup {
    html! {
        h2 #hub { "Its hub" }
        p { (text(hub.hub.text())) ": " (text(&hub.words)) "." }
        p.quiet {
            "Pushes: " (hub.pushes)
            @if let Some(last) = hub.last_push { ", the last at " (moment(last)) }
            "; the hub knows the feed as " (text(hub.topic.text())) "."
        }
        @if let Some(last) = &hub.disbelieved.last {
            p.bad {
                "Pushes that were not believed since the start: " (hub.disbelieved.count)
                ", the last at " (moment(last.at)) ": "
                (text(&last.why)) "."
            }
        }
    }
}

fn missing(name: &FeedName, status: &FeedStatus) -> Markup {
    let all = usize::try_from(status.pending_absences).unwrap_or(usize::MAX);
    html! {
        h2 #missing { "Missing, to be confirmed" }
        div.wide { table {
            thead { tr { th { "Item" } th { "Evidence" } th { "Why nothing is concluded yet" } } }
            tbody { @for pending in &status.pending { (waiting(name, pending)) } }
        } }
        @if all > status.pending.len() {
            p.quiet { (status.pending.len()) " of " (all) " are shown." }
        }
    }
}

fn waiting(name: &FeedName, pending: &PendingAbsence) -> Markup {
    html! { tr {
        td { (html::item(name, &pending.id, &pending.title)) br;
            span.quiet { (text(&pending.native_id)) } }
        td { (evidence(pending.evidence)) }
        td { (text(&pending.describe())) }
    } }
}

fn unchanged(name: &FeedName, quiet: &[Quiet]) -> Markup {
    html! {
        h2 { "Changed, and no news" }
        div.wide { table {
            thead { tr { th { "Item" } th { "Why there is no version" } } }
            tbody { @for quiet in quiet { tr {
                td { (html::item(name, &quiet.id, &quiet.title)) }
                td { @for words in &quiet.words { (text(words)) "." br; } }
            } } }
        } }
    }
}

fn last_document(document: &ParsedNote) -> Markup {
    html! {
        h2 { "The last document" }
        p {
            "Of " (moment(document.at)) ", with " (counted(document.entries, "entry")) "."
            @if let Some(reason) = &document.partial {
                " Only a part of it counts: " (text(reason)) "."
            }
        }
        @if !document.warnings.is_empty() {
            ul { @for warning in &document.warnings { li { (text(warning)) } } }
        }
    }
}

fn probes(status: &FeedStatus) -> Markup {
    html! {
        h2 { "Items' own addresses" }
        @if status.polling.probing { p { "Some are being asked now, or wait to be." } }
        ul { @for probe in &status.polling.probes {
            li {
                (moment(probe.at)) span.quiet { " " (counted(probe.requests, "request")) }
                @for said in &probe.said { br; (text(said)) }
            }
        } }
    }
}

fn older(walk: &Backfill, secret: Option<bool>) -> Markup {
    let next = walk.next.as_deref().filter(|_| walk.is_walking()).map(|next| shown(next, secret));
    html! {
        h2 { "Older documents" }
        p {
            (walk.documents) " read since " (moment(walk.started)) ", " (walk.items)
            " items taken in, " (walk.known) " known already: " (walk.standing.name())
            @if let Some(note) = &walk.note { ", " (text(note)) }
            "."
        }
        @if let Some(next) = next { p.quiet { "The next one is " (text(&next)) "." } }
    }
}

fn polls(polls: &VecDeque<FinishedPoll>) -> Markup {
    html! {
        h2 { "Polls" }
        ul { @for poll in polls {
            li {
                (last(poll))
                @for note in &poll.notes { br; span.quiet { (text(note)) } }
            }
        } }
    }
}

fn happened(name: &FeedName, events: &[Event]) -> Markup {
    html! {
        h2 #happened { "What happened" }
        div.wide { table {
            thead { tr { th { "When" } th { "What" } th { "Item" } th { "Why" } } }
            tbody { @for event in events { tr {
                td { (moment(event.at)) }
                td { (event.kind.name()) }
                td { (html::item(name, &event.id, &event.title)) }
                td { (text(&event.reason)) }
            } } }
        } }
    }
}
