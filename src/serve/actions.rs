//! `POST /feeds/NAME/about`: what a person does with a feed on its page.

use super::audience::ServedFeed;
use super::extract::Viewer;
use super::forms::{self, SentForm};
use super::operator::OperatorError;
use super::paging::{NamedChoice as _, choices};
use super::problem::Problem;
use super::{AppState, SharedState, admin};
use axum::response::Response;
use maud::{Markup, html};
use std::sync::Arc;
use tidegate_core::model::{
    Decision, EventKind, FeedName, FeedRecord, FeedSource, FeedStanding, FeedState,
};
use tidegate_judge as judge;
use tidegate_status::{PollResponse, WalkOrder};

choices! {
    /// What can be done with a feed.
    pub(super) enum FeedAction {
        Poll = "poll", "Poll now";
        Release = "release", "Release the held document";
        Drop = "drop", "Drop the held document";
        Pause = "pause", "Pause";
        Resume = "resume", "Resume";
        Backfill = "backfill", "Read older documents";
        StopBackfill = "stop-backfill", "Stop reading older documents";
        /// Delete it, when the name of the feed was typed.
        Remove = "remove", "Delete";
    }
}

/// `POST /feeds/NAME/about`.
pub(super) async fn act(
    viewer: Viewer,
    record: ServedFeed,
    form: SentForm,
) -> Result<Response, Problem> {
    let (name, action) = (record.name.clone(), form.action()?);
    let back = format!("/feeds/{name}/about");
    let done = match action {
        FeedAction::Remove if form.get("name").trim() != name.as_str() => {
            Err(Problem::parameter("name", "type the name of the feed to delete it"))
        }
        _ => carry_out(&viewer.room, &name, action).await,
    };
    let to = if action == FeedAction::Remove { "/" } else { &back };
    match done {
        Ok(said) => viewer.see(to, &said),
        Err(problem) => Ok(forms::not_done_with(&name, (&back, "About"), &problem)),
    }
}

/// Does it, to its end, whoever waits for it; answers what came of it, as a sentence.
pub(super) async fn carry_out(
    room: &SharedState,
    feed: &FeedName,
    action: FeedAction,
) -> Result<String, Problem> {
    let (room, feed) = (Arc::clone(room), feed.clone());
    admin::to_the_end(async move { act_on(&room, &feed, action).await }).await
}

async fn act_on(
    room: &AppState,
    feed: &FeedName,
    action: FeedAction,
) -> Result<String, OperatorError> {
    let operator = &room.operator;
    let said = match action {
        FeedAction::Poll => return Ok(polled(&operator.poll_now(feed).await?)),
        FeedAction::Release => {
            operator.hold(feed, Decision::Release).await?;
            "The held document was released: the poll that finds it again publishes what it says."
        }
        FeedAction::Drop => {
            operator.hold(feed, Decision::Drop).await?;
            "The held document was dropped: readers keep what they have."
        }
        FeedAction::Pause => {
            operator.pause(feed, true).await?;
            "Paused: the feed is served as it is, and not polled."
        }
        FeedAction::Resume => {
            operator.pause(feed, false).await?;
            "The feed is polled again."
        }
        FeedAction::Backfill => {
            operator.backfill(feed, WalkOrder::Start).await?;
            "The publisher's older documents are being read, slowly."
        }
        FeedAction::StopBackfill => {
            operator.backfill(feed, WalkOrder::Stop).await?;
            "The publisher's older documents are not read any more."
        }
        FeedAction::Remove => {
            admin::remove(room, feed, false).await?;
            return Ok(format!(
                "The feed {feed} was deleted: its address answers 410 from now on."
            ));
        }
    };
    Ok(said.to_owned())
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

/// What a person who is signed in can do with a feed now.
pub(super) fn buttons(record: &FeedRecord, state: Option<&FeedState>) -> Markup {
    let is_held = state.is_some_and(|state| state.hold.is_some());
    let is_active = record.standing == FeedStanding::Active;
    let is_filed = is_active && record.source != FeedSource::Api;
    let is_polled = is_active && record.has_upstream();
    let address = format!("/feeds/{}/about", record.name);
    html! {
        form.actions method="post" action=(address) {
            div.buttons {
                @if is_polled { (FeedAction::Poll.button()) }
                @if is_held {
                    (FeedAction::Release.button())
                    (FeedAction::Drop.button())
                }
                @if is_active && !is_filed { (FeedAction::Pause.button()) }
                @if record.standing == FeedStanding::Paused { (FeedAction::Resume.button()) }
                @if is_polled { (FeedAction::Backfill.button()) }
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
                    (FeedAction::Remove.button())
                }
            }
        }
    }
}
