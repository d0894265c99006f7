//! `/feeds/NAME/about`: a feed's state and the reasons for it, for people.

use super::answers::{
    BackfillAnswer, EventAnswer, FeedAnswer, FeedDetail, PendingItem, UnseenChange,
};
use super::explain::{evidence, origin, poll_result, standing};
use super::html::{self, moment, text};
use super::{
    DocumentKey, DocumentKind, PrivateReaders, Problem, Reply, ServedFeed, SharedState, Viewer,
    Work, WorkKind, actions, admin, holdings, kept_items, life, make_on_thread, readers,
    sign_in_address,
};
use maud::{Markup, PreEscaped, html};
use std::collections::VecDeque;
use std::sync::Arc;
use tidegate_core::model::{FeedName, FeedRecord, FeedState, Time, counted};
use tidegate_format::render::Container;
use tidegate_status::{
    FeedStatus, FinishedPoll, GatherNote, HubNote, ListNote, MemberNote, ParsedNote, PollGaps,
};

/// `GET /feeds/NAME/about`.
pub(super) async fn page(viewer: Viewer, record: ServedFeed) -> Reply {
    let app = &viewer.app;
    let state = app.store.state(&record.name).await?;
    let acting = render_actions(&viewer, &record, state.as_ref());
    let container = state.as_ref().map_or(Container::Atom, |state| Container::of(state.format));
    let items = state.as_ref().map_or(0, kept_items);
    let work = Work::new(&record.name, WorkKind::Ledger);
    let work_request = app.admission.request(viewer.client, work, items);
    let (readers, audience) = readers::readers_for_operator(app, &viewer.audience, &record).await?;
    let (feed, revision) = (record.name.clone(), state.map(|state| state.revision));
    let key = DocumentKey { audience, feed: Some(feed), kind: DocumentKind::About };
    let make = || render_about(Arc::clone(app), record.clone(), readers);
    let content = app.documents.get(key, revision, work_request, make).await?.text();
    let content = html! {
        (html::trail(&record.name, None, "About"))
        (acting)
        (PreEscaped(String::from_utf8_lossy(&content)))
    };
    Ok(viewer.page_about((&record.name, container), &text(&record.shown_title()), &content))
}

fn render_actions(viewer: &Viewer, record: &FeedRecord, state: Option<&FeedState>) -> Markup {
    if !viewer.audience.may_sign_in {
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

async fn render_about(
    app: SharedState,
    record: ServedFeed,
    readers: Option<PrivateReaders>,
) -> Result<String, Problem> {
    let detail = admin::read_detail(&app, &record.name).await?;
    let address = match readers {
        Some(readers) => html! { p { span.pill { "private" } " " (text(&readers.about)) "." } },
        None => {
            let address = record.site.at(&format!("/feeds/{}", record.name));
            html! { p.quiet { "For feed readers: " code { (address) } } }
        }
    };
    let now = app.clock.now();
    make_on_thread("this page", move || Ok(content(&detail, &address, now).into_string())).await
}

fn content(detail: &FeedDetail, address: &Markup, now: Time) -> Markup {
    let FeedDetail { feed: FeedAnswer { status, conflicts, .. }, events, state, .. } = detail;
    let (record, contested) = (&status.record, *conflicts);
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
            a href={ "/feeds/" (record.name) "/items" } { "Items" }
            a href={ "/feeds/" (record.name) "/changes?as=html" } { "Edits and deletions" }
            a href={ "/feeds/" (record.name) "/conflicts" } { "Conflicts" }
            a href={ "/feeds/" (record.name) } { "The feed" }
            a href={ "/feeds/" (record.name) "/sync" } { "Changes for subscribers" }
            a href={ "/feeds/" (record.name) "/complete" } { "Everything kept" }
        }
        (address)
        p.quiet {
            (origin(record))
            @if let Some(next) = &status.polling.next {
                "; polled next at " (moment(next.at)) ": " (text(&next.reason))
            }
            @if let Some(name) = &status.polled_by { "; polled by the gateway " (text(name)) }
        }
        @if let Some(life) = &detail.life { (life::figure(&record.name, life, now)) }
        @if let PollGaps { count, last: Some(last) } = status.polling.gaps {
            p.bad {
                "Items may have been missed: two documents in a row had nothing in common "
                @if count == 1 { "once" } @else { (count) " times" } ", last at " (moment(last)) "."
            }
        }
        @if contested > 0 {
            p.bad {
                (contested) @if contested == 1 { " item is" } @else { " items are" } " in conflict: "
                a href={ "/feeds/" (record.name) "/conflicts" } { "look and decide" } "."
            }
        }
        @if let Some(access) = &record.access {
            p.quiet { "Its publisher is asked with " (access.describe()) "." }
        }
        @if !detail.pending.is_empty() { (missing(status, &detail.pending)) }
        @if !events.is_empty() { (happened(&record.name, events)) }
        @if let Some(note) = &status.list { p.quiet { "Of lists: " (membership(note)) "." } }
        @if let Some(note) = &status.feeds_of_list { (list_feeds(note)) }
        @if let Some(note) = &status.gathered { (gathered(note)) }
        @if let Some(hub) = &status.hub { (told_by(hub)) }
        @if status.polling.probing || !status.polling.probes.is_empty() { (probes(status)) }
        @if let Some(walk) = &detail.feed.backfill { (older(walk)) }
        (detail.discarded.part(&record.name))
        @if let Some(state) = state {
            (holdings::part((&record.name, status.pending_absences), state, &detail.kept, detail.oldest.as_ref()))
        }
        @if let Some(character) = &detail.character {
            h2 { "What was learned of it" }
            p { (character.words) "." }
            @for words in detail.noise.iter().flatten() { p { (text(words)) "." } }
        }
        @if !detail.no_news.is_empty() { (unchanged(&record.name, &detail.no_news)) }
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
            (html::shown_of(note.troubles.len(), note.troubled))
            p.quiet { "What was gathered from them stays." }
        }
        @if !note.left_out.is_empty() {
            h2 #left-out { "Not taken over" }
            (html::table(&["Item", "Why"], &html! { @for left in &note.left_out { tr {
                td { (html::item(&left.source, &left.id, "")) br;
                    span.quiet { "of " (left.source) } }
                td { (text(&left.why)) "." }
            } } }))
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
    let headings = ["Item", "Evidence", "Why nothing is concluded yet"];
    html! {
        h2 #missing { "Missing, to be confirmed" }
        (html::table(&headings, &html! { @for pending in pending { tr {
            td { (html::item(&status.record.name, &pending.sync_id, &pending.title)) br;
                span.quiet { (text(&pending.native_id)) } }
            td { (evidence(pending.evidence)) }
            td { (text(&pending.words)) }
        } } }))
        (html::shown_of(pending.len(), status.pending_absences))
    }
}

fn unchanged(name: &FeedName, quiet: &[UnseenChange]) -> Markup {
    html! {
        h2 { "Changed, and no news" }
        (html::table(&["Item", "Why there is no version"], &html! { @for quiet in quiet { tr {
            td { (html::item(name, &quiet.sync_id, &quiet.title)) }
            td { @for words in &quiet.words { (text(words)) "." br; } }
        } } }))
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

fn older(walk: &BackfillAnswer) -> Markup {
    html! {
        h2 { "Older documents" }
        p {
            (walk.documents) " read since " (moment(walk.started)) ", " (walk.items)
            " items taken in, " (walk.known) " known already: " (walk.state.name())
            @if let Some(note) = &walk.note { ", " (text(note)) }
            "."
        }
        @if let Some(next) = &walk.next { p.quiet { "The next one is " (text(next)) "." } }
    }
}

fn polls(polls: &VecDeque<FinishedPoll>) -> Markup {
    html! {
        h2 { "Polls" }
        ul { @for poll in polls {
            li {
                (poll_result(poll))
                @for note in &poll.notes { br; span.quiet { (text(note)) } }
            }
        } }
    }
}

fn happened(name: &FeedName, events: &[EventAnswer]) -> Markup {
    html! {
        h2 #happened { "What happened" }
        (html::table(&["When", "What", "Item", "Why"], &html! { @for event in events { tr {
            td { (moment(event.at)) }
            td { (event.kind.name()) }
            td { (html::item(name, &event.sync_id, &event.title)) }
            td { (text(&event.reason)) }
        } } }))
    }
}

// What a feed's page says of the subscription list that added it, and a list's page of its feeds.

/// The list that added a feed; a private one is not named.
fn membership(note: &MemberNote) -> Markup {
    let (before, after) = note.around();
    html! {
        (before)
        @if note.is_private { "a private list" } @else {
            "the list " a href={ "/feeds/" (note.list) "/about" } { (note.list) }
        }
        (after)
    }
}

fn list_feeds(note: &ListNote) -> Markup {
    html! {
        h2 #feeds { "The feeds of the list" }
        @if let Some(error) = &note.error {
            p.bad { "They could not be brought up to date: " (text(error)) "." }
        }
        p {
            (counted(note.following, "feed")) @if note.following == 1 { " follows" } @else { " follow" }
            " the list: new ones are added, and what it renames or moves is renamed or moved."
            @if note.dropped > 0 {
                " " (note.dropped) " of them " @if note.dropped == 1 { "is" } @else { "are" }
                " paused, since the list no longer has "
                @if note.dropped == 1 { "it." } @else { "them." }
            }
            @if note.known > 0 {
                " " (note.known) " more "
                @if note.known == 1 { "was here already, and stays as it is." }
                @else { "were here already, and stay as they are." }
            }
        }
        @if !note.feeds.is_empty() {
            ul.found { @for name in &note.feeds {
                li { a href={ "/feeds/" (name) "/about" } { (name) } }
            } }
            (html::shown_of(note.feeds.len(), note.following))
        }
        @if note.not_taken > 0 {
            h2 #not-added { "Not added" }
            (html::table(&["Address", "Why"], &html! { @for refused in &note.refused { tr {
                td { (text(refused.address.as_deref().unwrap_or("none"))) }
                td { (text(&refused.why)) "." }
            } } }))
            (html::shown_of(note.refused.len(), note.not_taken))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_core::model::{FeedName, MemberStanding};
    use tidegate_status::RefusedFeed;

    #[test]
    fn what_is_refused_is_text() {
        let refused = RefusedFeed {
            address: Some("http://x/<script>".to_owned()),
            why: "it has <b>".to_owned(),
        };
        let note = ListNote {
            following: 60,
            dropped: 1,
            known: 2,
            not_taken: 9,
            refused: vec![refused],
            feeds: vec![FeedName::new("a").unwrap()],
            error: None,
        };
        let shown = list_feeds(&note).into_string();
        assert!(!shown.contains("<script") && !shown.contains("<b>"), "{shown}");
        insta::assert_snapshot!("feeds_of_list", shown);
    }

    #[test]
    fn a_list_is_linked_where_it_is_named_and_a_private_one_is_not() {
        // Its name is also a word of the sentence.
        let (list, standing) = (FeedName::new("list").unwrap(), MemberStanding::Own);
        let mut note = MemberNote { list, standing, is_followed: true, is_private: false };
        let said = membership(&note).into_string();
        let link = "the list <a href=\"/feeds/list/about\">list</a> added it; it was changed";
        assert!(said.starts_with(link), "{said}");
        note.is_private = true;
        assert_eq!(membership(&note).into_string(), note.words());
    }
}
