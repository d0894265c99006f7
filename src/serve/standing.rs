//! How a feed stands, as pages show it.

use super::explain::SOURCES_SHOWN;
use super::html::{moment, outward, text};
use maud::{Markup, html};
use tidegate_core::model::{EventKind, FeedStanding, FeedState, ShownAddress, counted};
use tidegate_status::{FeedStatus, FinishedPoll, PollEnding};

/// Where a feed's items come from.
pub(super) fn origin(status: &FeedStatus) -> Markup {
    let sharing = &status.options.sharing;
    let upstream = ShownAddress::new(&status.url, status.options.secret);
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
        } @else if status.url.is_empty() {
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
    let held = html! { a.bad href={ "/feeds/" (status.name) "/about#held" } { "held" } };
    let polling = &status.polling;
    html! {
        @match status.standing {
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
pub(super) fn last(note: &FinishedPoll) -> Markup {
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
