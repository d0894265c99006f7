//! `/feeds/NAME/about`: a feed's state and the reasons for it, for people.

use super::address::shown;
use super::admission::{Work, WorkKind};
use super::answers::{EventAnswer, FeedAnswer, FeedDetail, PendingItem, UnseenChange};
use super::audience::ServedFeed;
use super::documents::{DocumentKey, DocumentKind};
use super::explain::evidence;
use super::extract::Viewer;
use super::html::{self, moment, text};
use super::problem::Problem;
use super::readers::report::{self, PrivateReaders};
use super::session::sign_in_address;
use super::standing::{last, origin, standing};
use super::{SharedState, actions, admin, keeping, life, list_members};
use axum::response::Response;
use maud::{Markup, PreEscaped, html};
use std::collections::VecDeque;
use std::sync::Arc;
use tidegate_core::model::{Backfill, FeedName, FeedRecord, FeedState, Time, counted};
use tidegate_format::render::Container;
use tidegate_status::{FeedStatus, FinishedPoll, GatherNote, HubNote, ParsedNote, PollGaps};
use tidegate_store::StoreError;

/// `GET /feeds/NAME/about`.
pub(super) async fn page(viewer: Viewer, record: ServedFeed) -> Result<Response, Problem> {
    let Viewer { room, audience, client, .. } = &viewer;
    let state = room.store.state(&record.name).await?;
    let acting = acting(&viewer, &record, state.as_ref());
    let container = state.as_ref().map_or(Container::Atom, |state| Container::of(state.format));
    let counts = state.as_ref().map(|state| (state.living, state.tombstones));
    let items = counts.map_or(0, |(living, gone)| u64::from(living) + u64::from(gone));
    let work = Work::new(&record.name, WorkKind::Ledger);
    let ask = room.admission.request(*client, work, items);
    let revision = state.as_ref().map(|state| state.revision);
    let (readers, audience) = report::told_to(room, audience, &record).await?;
    let (feed, kind) = (record.name.clone(), DocumentKind::About);
    let key = DocumentKey { audience, feed, revision, kind };
    let make = || {
        let (room, record) = (Arc::clone(room), record.clone());
        async move { made(&room, &record, readers).await }
    };
    let content = room.documents.get(key, ask, make).await?.text();
    let content = html! {
        (html::trail(&record.name, None, "About"))
        (acting)
        (PreEscaped(String::from_utf8_lossy(&content)))
    };
    Ok(viewer.page_about((&record.name, container), &text(&record.shown_title()), &content))
}

/// What can be done now.
fn acting(viewer: &Viewer, record: &FeedRecord, state: Option<&FeedState>) -> Markup {
    if !viewer.audience.may_sign_in() {
        return html! {};
    }
    html! {
        @if viewer.is_signed_in {
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
    readers: Option<PrivateReaders>,
) -> Result<String, Problem> {
    let detail = admin::read_detail(room, &record.name).await?;
    let address = match readers {
        Some(readers) => html! { p { span.pill { "private" } " " (text(&readers.about)) "." } },
        None => {
            let address = record.site.at(&format!("/feeds/{}", record.name));
            html! { p.quiet { "For feed readers: " code { (address) } } }
        }
    };
    let now = room.clock.now();
    let made = tokio::task::spawn_blocking(move || content(&detail, &address, now).into_string());
    Ok(made.await.map_err(|_| StoreError::Closed)?)
}

fn content(detail: &FeedDetail, address: &Markup, now: Time) -> Markup {
    let FeedDetail { feed: FeedAnswer { status, conflicts, .. }, events, state, .. } = detail;
    let contested = conflicts.unwrap_or_default();
    html! {
        p { (standing(status, state.as_ref())) }
        p { (text(&detail.why_beside_hold)) "." }
        @if let Some(hold) = &detail.hold {
            div.note #held {
                p { strong { "A document is held: " } (text(&hold.reason)) "." }
                p.quiet { (hold.words) "." }
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
        @if let Some(life) = &detail.life { (life::figure(&status.name, life, now)) }
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
        @if !detail.pending.is_empty() { (missing(status, &detail.pending)) }
        @if !events.is_empty() { (happened(&status.name, events)) }
        (list_members::part(status))
        @if let Some(note) = &status.gathered { (gathered(note)) }
        @if let Some(hub) = &status.hub { (told_by(hub)) }
        @if status.polling.probing || !status.polling.probes.is_empty() { (probes(status)) }
        @if let Some(walk) = &status.polling.backfill { (older(walk, status.options.secret)) }
        (detail.discarded.part(&status.name))
        @if let Some(state) = state {
            (keeping::part((&status.name, status.pending_absences), state, &detail.kept, detail.oldest.as_ref()))
        }
        @if let Some(character) = &detail.character {
            h2 { "What was learned of it" }
            p { (character.words) "." }
            @for words in detail.noise.iter().flatten() { p { (text(words)) "." } }
        }
        @if !detail.no_news.is_empty() { (unchanged(&status.name, &detail.no_news)) }
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

fn missing(status: &FeedStatus, pending: &[PendingItem]) -> Markup {
    let all = usize::try_from(status.pending_absences).unwrap_or(usize::MAX);
    html! {
        h2 #missing { "Missing, to be confirmed" }
        div.wide { table {
            thead { tr { th { "Item" } th { "Evidence" } th { "Why nothing is concluded yet" } } }
            tbody { @for pending in pending { (waiting(&status.name, pending)) } }
        } }
        @if all > pending.len() {
            p.quiet { (pending.len()) " of " (all) " are shown." }
        }
    }
}

fn waiting(name: &FeedName, pending: &PendingItem) -> Markup {
    html! { tr {
        td { (html::item(name, &pending.sync_id, &pending.title)) br;
            span.quiet { (text(&pending.native_id)) } }
        td { (evidence(pending.evidence)) }
        td { (text(&pending.words)) }
    } }
}

fn unchanged(name: &FeedName, quiet: &[UnseenChange]) -> Markup {
    html! {
        h2 { "Changed, and no news" }
        div.wide { table {
            thead { tr { th { "Item" } th { "Why there is no version" } } }
            tbody { @for quiet in quiet { tr {
                td { (html::item(name, &quiet.sync_id, &quiet.title)) }
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

fn happened(name: &FeedName, events: &[EventAnswer]) -> Markup {
    html! {
        h2 #happened { "What happened" }
        div.wide { table {
            thead { tr { th { "When" } th { "What" } th { "Item" } th { "Why" } } }
            tbody { @for event in events { tr {
                td { (moment(event.at)) }
                td { (event.kind.name()) }
                td { (html::item(name, &event.sync_id, &event.title)) }
                td { (text(&event.reason)) }
            } } }
        } }
    }
}
