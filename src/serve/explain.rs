//! Why a feed is as it is, in one sentence.

use super::html::{moment, outward, text};
use maud::{Markup, html};
use std::fmt::Write as _;
use tidegate_core::model::{
    EventKind, Evidence, FeedName, FeedRecord, FeedStanding, FeedState, MemberStanding, counted,
};
use tidegate_status::{
    EventCounts, FeedStatus, FinishedPoll, GatherNote, PollEnding, SourceTrouble,
};

/// How many sources of an aggregate a page names.
pub(super) const SOURCES_SHOWN: usize = 8;

/// Where the items come from, what came of the last poll and why, and what is still open.
pub(super) fn why(status: &FeedStatus, state: Option<&FeedState>) -> String {
    let mut sentence = why_beside_hold(status, state);
    if let Some(hold) = state.and_then(|state| state.hold.as_ref()) {
        let _ = write!(sentence, "; a document is held: {}", hold.reason);
    }
    sentence
}

/// The same without a word of what is held, for a page that tells of it apart.
pub(super) fn why_beside_hold(status: &FeedStatus, state: Option<&FeedState>) -> String {
    let record = &status.record;
    if record.standing == FeedStanding::Gone {
        return "it was deleted: its addresses answer that it is gone, and it is not polled"
            .to_owned();
    }
    let mut parts = Vec::new();
    parts.extend(describe_origin(record));
    match status.polling.polls.front() {
        _ if !record.has_upstream() => {}
        _ if record.standing == FeedStanding::Paused => {
            let dropped =
                status.list.as_ref().filter(|list| list.standing == MemberStanding::Dropped);
            let why = dropped.map(|list| format!(", since {}", list.words())).unwrap_or_default();
            parts.push(format!("it is paused{why}: served as it is, and not polled"));
        }
        // This gateway has not polled it.
        None => parts.push(match (status.polling.error(), &status.polled_by) {
            (Some(error), _) => failed(error, state.is_some()),
            (None, Some(gateway)) => format!("the gateway {gateway} polls it"),
            (None, None) => "it has not been polled since the start".to_owned(),
        }),
        Some(note) => {
            let reads_answers = status.polling.reads_answers();
            if reads_answers {
                let error = status.polling.error().unwrap_or("for an unknown reason");
                parts.push(format!(
                    "its polls fail, and what the site answers its readers is read instead: {error}"
                ));
            }
            if !reads_answers || note.outcome != PollEnding::Failed {
                parts.push(last(note, status, state.is_some()));
            }
        }
    }
    if let Some(note) = &status.gathered {
        parts.extend(ungathered(note));
    }
    let partial = status.polling.document.as_ref().and_then(|document| document.partial.as_ref());
    if let Some(reason) = partial {
        parts.push(format!(
            "only a part of the last document counts: {reason}; it adds and updates, and takes \
             nothing away"
        ));
    }
    match status.pending_absences {
        0 => {}
        1 => parts.push("one item is missing, and nothing is concluded from it yet".to_owned()),
        n => parts.push(format!("{n} items are missing, and nothing is concluded from it yet")),
    }
    parts.join("; ")
}

/// What of an aggregate's sources it does not have.
pub(super) fn ungathered(note: &GatherNote) -> Vec<String> {
    let mut parts = Vec::new();
    let error = note.error.as_ref();
    parts.extend(error.map(|error| format!("it could not be brought up to date: {error}")));
    match note.troubles.first() {
        Some(SourceTrouble { source, why }) if note.troubled == 1 => {
            parts.push(format!("nothing new comes from {source}: {why}"));
        }
        Some(SourceTrouble { source, why }) => {
            let others = note.troubled - 1;
            parts.push(format!("nothing new comes from {source}: {why}; nor from {others} more"));
        }
        None => {}
    }
    match note.left_out.len() {
        0 => {}
        1 => parts.push("one item is not taken over as its source has it".to_owned()),
        n => parts.push(format!("{n} items are not taken over as their sources have them")),
    }
    parts
}

/// Where items come from that no poll brings, in words; `None` for a feed that is only polled.
pub(super) fn describe_origin(record: &FeedRecord) -> Option<String> {
    let sharing = &record.options.sharing;
    if !sharing.is_aggregate() {
        let is_made_here = sharing.local || !record.has_upstream();
        return is_made_here.then(|| "its items are made here".to_owned());
    }
    let named: Vec<&str> =
        sharing.sources.iter().take(SOURCES_SHOWN).map(FeedName::as_str).collect();
    let more = match sharing.sources.len().saturating_sub(SOURCES_SHOWN) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Some(format!("it gathers {}{more}", named.join(", ")))
}

fn failed(error: &str, was_read: bool) -> String {
    let served = match was_read {
        true => "what was last good is served",
        false => "the feed was never read, so nothing is served yet",
    };
    format!("the last poll failed, and {served}: {error}")
}

fn last(note: &FinishedPoll, status: &FeedStatus, was_read: bool) -> String {
    match note.outcome {
        PollEnding::Failed => {
            let error =
                note.failure.as_ref().map_or("for an unknown reason", |failure| &failure.error);
            failed(error, was_read)
        }
        PollEnding::NotModified => "the publisher says that nothing has changed (304)".to_owned(),
        PollEnding::Unchanged if note.entries.is_none() => {
            "the publisher sent the same document again".to_owned()
        }
        PollEnding::Unchanged if status.held.is_some() => {
            "the publisher's document is not believed yet and changes nothing".to_owned()
        }
        PollEnding::Unchanged => {
            "the document differs from the last one in nothing that is shown".to_owned()
        }
        PollEnding::Changed => changed(note),
    }
}

/// What was seen of a missing item, in a few words.
pub(super) const fn evidence(evidence: Evidence) -> &'static str {
    match evidence {
        Evidence::Aged => "scrolled off the end",
        Evidence::Hole => "gone from the middle",
        Evidence::Complete => "not in a complete list",
        Evidence::Passed => "gone from the middle a while ago",
        Evidence::Said => "deleted, as its publisher says",
        Evidence::Unplaced => "gone, with no place to judge by",
    }
}

fn changed(note: &FinishedPoll) -> String {
    let mut parts = events(&note.counts);
    match note.rewritten {
        0 => {}
        n => parts.push(format!(
            "{n} rewritten in nothing that a reader would see, so shown without a new version"
        )),
    }
    if parts.is_empty() {
        return "which items there are, their order, or what stands around them changed".to_owned();
    }
    parts.join(", ")
}

/// What happened to items, in words.
pub(super) fn events(counts: &EventCounts) -> Vec<String> {
    let happened = EventKind::ALL.iter().filter_map(|kind| Some((*kind, *counts.get(kind)?)));
    let word = |kind: EventKind| match kind {
        EventKind::Rekeyed => "re-keyed",
        other => other.name(),
    };
    let happened = happened.filter(|(_, number)| *number > 0);
    happened.map(|(kind, number)| format!("{number} {}", word(kind))).collect()
}

// How a feed stands, as pages show it.

/// Where a feed's items come from.
pub(super) fn origin(record: &FeedRecord) -> Markup {
    let (sharing, upstream) = (&record.options.sharing, record.shown());
    html! {
        @if sharing.is_aggregate() {
            "gathers "
            @for (at, source) in sharing.sources.iter().take(SOURCES_SHOWN).enumerate() {
                @if at > 0 { ", " }
                a href={ "/feeds/" (source) } { (source) }
            }
            @if sharing.sources.len() > SOURCES_SHOWN {
                " and " (sharing.sources.len() - SOURCES_SHOWN) " more"
            }
        } @else if !record.has_upstream() {
            "made here"
        } @else {
            @if sharing.local { "made here, and shared with " }
            (outward(upstream.link(), upstream.text()))
        }
    }
}

/// How a feed stands.
pub(super) fn standing(status: &FeedStatus, state: Option<&FeedState>) -> Markup {
    let is_held = status.held.is_some() || state.is_some_and(|state| state.hold.is_some());
    let held = html! { a.bad href={ "/feeds/" (status.record.name) "/about#held" } { "held" } };
    let polling = &status.polling;
    html! {
        @match status.record.standing {
            FeedStanding::Active if polling.failures == 0 && is_held => (held),
            FeedStanding::Active if polling.failures == 0 => span.good { "active" },
            FeedStanding::Active => {
                span.bad { "failing, " (polling.failures) " in a row" }
                @if let Some(since) = polling.failing_since() { " since " (moment(since)) }
                @match polling.last_read {
                    Some(at) => { "; last read " (moment(at)) },
                    None if state.is_none() => "; never read",
                    None => {},
                }
                @if is_held { br; (held) }
            },
            other => {
                span.quiet { (other.name()) }
                @if is_held { br; (held) }
            },
        }
        @if status.hub.as_ref().is_some_and(|hub| hub.distrusted_until.is_some()) {
            br; span.bad { "its hub is not believed" }
        }
    }
}

/// What came of a poll.
pub(super) fn poll_result(note: &FinishedPoll) -> Markup {
    let number = |kind| note.counts.get(&kind).copied().unwrap_or(0);
    let failure = note.failure.as_ref();
    html! {
        (moment(note.at)) " "
        @if note.outcome == PollEnding::Failed {
            span.bad { "failed" }
            @if let Some(failure) = failure { span.quiet { " (" (failure.blame) ")" } }
        } @else {
            (note.outcome.name().replace('_', " "))
        }
        @for kind in EventKind::ALL.into_iter().filter(|kind| number(*kind) > 0) {
            " · " (number(kind)) " " (kind.word())
        }
        @if let Some(failure) = failure { br; span.quiet { (text(&failure.error)) } }
        br;
        span.quiet { (note.took.as_millis()) " ms, " (counted(note.bytes, "byte")) }
    }
}
