//! `POST /feeds/NAME/about`: what a person does with a feed on its page.

use super::audience::Audience;
use super::client::Client;
use super::feeds::{NameInPath, unreadable};
use super::forms::{self, SentForm};
use super::operator::OperatorError;
use super::problem::Problem;
use super::{AppState, REQUEST_BODY_LIMIT, SharedState, admin};
use axum::body::Bytes;
use axum::extract::State;
use axum::extract::rejection::BytesRejection;
use axum::response::Response;
use http::HeaderMap;
use maud::{Markup, html};
use std::sync::Arc;
use tidegate_core::model::{
    Decision, EventKind, FeedName, FeedRecord, FeedSource, FeedStanding, FeedState,
};
use tidegate_judge as judge;
use tidegate_status::{PollResponse, WalkOrder};

/// What can be done with a feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FeedAction {
    Poll,
    Release,
    Drop,
    Pause,
    Resume,
    Backfill,
    /// Delete it, when the name of the feed was typed.
    Remove,
}

impl FeedAction {
    const ALL: [Self; 7] = [
        Self::Poll,
        Self::Release,
        Self::Drop,
        Self::Pause,
        Self::Resume,
        Self::Backfill,
        Self::Remove,
    ];

    /// Its value in the form.
    const fn name(self) -> &'static str {
        match self {
            Self::Poll => "poll",
            Self::Release => "release",
            Self::Drop => "drop",
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::Backfill => "backfill",
            Self::Remove => "remove",
        }
    }
}

/// `POST /feeds/NAME/about`.
pub(super) async fn act(
    State(room): State<SharedState>,
    (audience, client): (Audience, Client),
    name: NameInPath,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, Problem> {
    let name = name.map_err(unreadable)?.0;
    let name = room.directory.served(&name, &audience).await?.name.clone();
    let form = SentForm::authorized(&room, (client, &headers), body, REQUEST_BODY_LIMIT).await?;
    let action = FeedAction::ALL.into_iter().find(|action| action.name() == form.get("do"));
    let action = action.ok_or_else(|| Problem::parameter("do", "nothing was chosen"))?;
    if action == FeedAction::Remove && form.get("name").trim() != name.as_str() {
        let said = "type the name of the feed to delete it; nothing was changed";
        return Ok(refused(&name, &Problem::parameter("name", said)));
    }
    let (acting, feed) = (Arc::clone(&room), name.clone());
    let done = admin::to_the_end(async move { carry_out(&acting, &feed, action).await });
    match done.await {
        Ok(said) => {
            room.sessions.leave_notice(&headers, said);
            let to =
                if action == FeedAction::Remove { "/" } else { &format!("/feeds/{name}/about") };
            forms::see(to)
        }
        Err(problem) => Ok(refused(&name, &problem)),
    }
}

/// Does it; answers what came of it, as a sentence.
async fn carry_out(
    room: &AppState,
    feed: &FeedName,
    action: FeedAction,
) -> Result<String, OperatorError> {
    let operator = &room.operator;
    Ok(match action {
        FeedAction::Poll => polled(&operator.poll_now(feed).await?),
        FeedAction::Release => {
            operator.hold(feed, Decision::Release).await?;
            "The held document was released: the poll that finds it again publishes what it says."
                .to_owned()
        }
        FeedAction::Drop => {
            operator.hold(feed, Decision::Drop).await?;
            "The held document was dropped: readers keep what they have.".to_owned()
        }
        FeedAction::Pause => {
            admin::set_paused(room, feed, true).await?;
            "Paused: the feed is served as it is, and not polled.".to_owned()
        }
        FeedAction::Resume => {
            admin::set_paused(room, feed, false).await?;
            "The feed is polled again.".to_owned()
        }
        FeedAction::Backfill => {
            operator.backfill(feed, WalkOrder::Start).await?;
            "The publisher's older documents are being read, slowly.".to_owned()
        }
        FeedAction::Remove => {
            admin::remove(room, feed, false).await?;
            format!("The feed {feed} was deleted: its address answers 410 from now on.")
        }
    })
}

/// What came of a poll, as a sentence.
fn polled(response: &PollResponse) -> String {
    if let Some(error) = &response.error {
        return format!("Polled, and it failed: {error}.");
    }
    if let Some(held) = &response.held {
        return format!("Polled; a document is held: {}.", judge::hold_reason(held));
    }
    let happened = EventKind::ALL.into_iter().filter_map(|kind| {
        let number = response.counts.get(&kind).copied().filter(|number| *number > 0)?;
        Some(format!("{number} {}", kind.name()))
    });
    match happened.collect::<Vec<_>>().join(", ") {
        none if none.is_empty() => "Polled: nothing changed.".to_owned(),
        happened => format!("Polled: {happened}."),
    }
}

fn refused(feed: &FeedName, problem: &Problem) -> Response {
    let back = format!("/feeds/{feed}/about");
    forms::not_done(feed, (&back, "About", "Back to the feed"), problem)
}

/// What a person who is signed in can do with a feed now.
pub(super) fn buttons(record: &FeedRecord, state: Option<&FeedState>) -> Markup {
    let is_held = state.is_some_and(|state| state.hold.is_some());
    let is_active = record.standing == FeedStanding::Active;
    let is_filed = is_active && record.source != FeedSource::Api;
    let is_polled = is_active && record.has_upstream();
    let address = format!("/feeds/{}/about", record.name);
    let button = |action: FeedAction, label: &str| {
        html! { button name="do" value=(action.name()) { (label) } }
    };
    html! {
        form.actions method="post" action=(address) {
            div.buttons {
                @if is_polled { (button(FeedAction::Poll, "Poll now")) }
                @if is_held {
                    (button(FeedAction::Release, "Release the held document"))
                    (button(FeedAction::Drop, "Drop the held document"))
                }
                @if is_active && !is_filed { (button(FeedAction::Pause, "Pause")) }
                @if record.standing == FeedStanding::Paused { (button(FeedAction::Resume, "Resume")) }
                @if is_polled { (button(FeedAction::Backfill, "Read older documents")) }
            }
        }
        @if !is_filed && record.options.sharing.sources.is_empty() {
            p.links { a href={ "/feeds/" (record.name) "/edit" } { "Edit the feed" } }
        }
        @if is_filed {
            p.quiet { "The configuration names this feed: it is changed and removed there." }
        } @else {
            details {
                summary { "Delete the feed" }
                form.choices method="post" action=(address) {
                    label { span { "Its address answers 410 from then on. Type " (record.name) " to delete it." }
                        input name="name" autocomplete="off" spellcheck="false"; }
                    (button(FeedAction::Remove, "Delete"))
                }
            }
        }
    }
}
