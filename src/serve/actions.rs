//! `POST /feeds/NAME/about`: what a person does with a feed on its page.

use super::operator::{is_filed, refuse_if_filed};
use super::paging::{NamedChoice as _, choices};
use super::{
    Operator, OperatorError, Problem, Reply, SentForm, ServedFeed, SharedState, Viewer, explain,
    html, put,
};
use maud::{Markup, html};
use serde_json::{Map, Value};
use tidegate_core::model::{Decision, FeedName, FeedRecord, FeedStanding, FeedState};
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
pub(super) async fn act(viewer: Viewer, record: ServedFeed, form: SentForm) -> Reply {
    let (name, action) = (record.name.clone(), form.action()?);
    let back = format!("/feeds/{name}/about");
    let done = match action {
        FeedAction::Remove if form.get("name").trim() != name.as_str() => {
            Err(Problem::parameter("name", "type the name of the feed to delete it"))
        }
        _ => carry_out(&viewer.app, &name, action).await,
    };
    let to = if action == FeedAction::Remove { "/" } else { &back };
    viewer.answer_form(&name, (&back, "About"), to, done)
}

/// Carries out an action in a task of its own, so that it completes even if the client leaves. Returns the outcome as a
/// sentence.
pub(super) async fn carry_out(
    app: &SharedState,
    feed: &FeedName,
    action: FeedAction,
) -> Result<String, Problem> {
    let feed = feed.clone();
    app.act(|operator| async move { act_on(&operator, &feed, action).await }).await
}

async fn act_on(
    operator: &Operator,
    feed: &FeedName,
    action: FeedAction,
) -> Result<String, OperatorError> {
    match action {
        FeedAction::Poll => return Ok(describe_poll(&operator.poll_now(feed).await?)),
        FeedAction::Release => operator.hold(feed, Decision::Release).await?,
        FeedAction::Drop => operator.hold(feed, Decision::Drop).await?,
        FeedAction::Pause => operator.pause(feed, true).await?,
        FeedAction::Resume => operator.pause(feed, false).await?,
        FeedAction::Backfill => operator.backfill(feed, WalkOrder::Start).await?,
        FeedAction::StopBackfill => operator.backfill(feed, WalkOrder::Stop).await?,
        FeedAction::Remove => operator.delete(feed, false).await?,
    }
    Ok(match action {
        FeedAction::Release => {
            "The held document was released: the poll that finds it again publishes what it says."
        }
        FeedAction::Drop => "The held document was dropped: readers keep what they have.",
        FeedAction::Pause => "Paused: the feed is served as it is, and not polled.",
        FeedAction::Backfill => "The publisher's older documents are being read, slowly.",
        FeedAction::StopBackfill => "The publisher's older documents are not read any more.",
        FeedAction::Poll | FeedAction::Resume => "The feed is polled again.",
        FeedAction::Remove => {
            return Ok(format!(
                "The feed {feed} was deleted: its address answers 410 from now on."
            ));
        }
    }
    .to_owned())
}

/// What came of a poll, as a sentence.
fn describe_poll(response: &PollResponse) -> String {
    if let Some(error) = &response.error {
        return format!("Polled, and it failed: {error}.");
    }
    if let Some(held) = &response.held {
        return format!("Polled; a document is held: {}.", judge::hold_reason(held));
    }
    match explain::events(&response.counts).join(", ") {
        none if none.is_empty() => "Polled: nothing changed.".to_owned(),
        happened => format!("Polled: {happened}."),
    }
}

/// What a person who is signed in can do with a feed now.
pub(super) fn buttons(record: &FeedRecord, state: Option<&FeedState>) -> Markup {
    let is_held = state.is_some_and(|state| state.hold.is_some());
    let is_active = record.standing == FeedStanding::Active;
    let is_filed = is_filed(record);
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

// `/feeds/NAME/edit`: what the operator says of a feed, as a form. What the form does not have stays as it is, credentials
// among it.

/// A choice of the form: its key, a label, and the values with what they mean. A value is JSON; the empty one
/// is that the key is not there.
type FormChoice = (&'static str, &'static str, &'static [(&'static str, &'static str)]);

const CHOICES: [FormChoice; 7] = [
    (
        "deletions",
        "When a missing item is deleted",
        &[
            ("\"safe\"", "after confirmation, in time and polls"),
            ("\"eager\"", "with the first document that has the evidence"),
            ("\"off\"", "never"),
        ],
    ),
    (
        "complete",
        "What the document lists",
        &[("false", "the newest items"), ("true", "every item: what is missing was deleted")],
    ),
    (
        "order",
        "How the document runs",
        &[
            ("\"auto\"", "as seen"),
            ("\"newest-first\"", "newest first"),
            ("\"oldest-first\"", "oldest first"),
            ("\"updated\"", "by change"),
            ("\"none\"", "by rank or by hand"),
        ],
    ),
    (
        "probe",
        "Whose address is asked whether the item is gone",
        &[
            ("\"doubts\"", "items that are long in doubt"),
            ("true", "any item that is missing"),
            ("false", "none"),
        ],
    ),
    (
        "secret",
        "Whether the publisher's address is shown",
        &[("", "by its looks"), ("false", "yes"), ("true", "no, it is a secret")],
    ),
    (
        "private",
        "Who may read the feed",
        &[("false", "everybody"), ("true", "readers with a token")],
    ),
    (
        "add_feeds",
        "The feeds of a subscription list (OPML)",
        &[("false", "are shown in it"), ("true", "are feeds here too, and follow the list")],
    ),
];

/// Texts of the form: key, label, and an example.
const TEXTS: [(&str, &str, &str); 3] = [
    ("min_interval", "Polls are at least this far apart", "5m"),
    ("max_interval", "and at most", "24h"),
    ("user_agent", "How the gateway names itself to this publisher", ""),
];

/// `GET /feeds/NAME/edit`.
pub(super) async fn show_form(viewer: Viewer, record: ServedFeed) -> Reply {
    let whose = "What a feed is polled for is changed by who runs this gateway.";
    let at = format!("/feeds/{}/edit", record.name);
    let is_open = viewer.is_signed_in && !is_filed(&record);
    let settings = is_open.then(|| put::settings_from_record(&record));
    let content = || {
        html! {
            (html::trail(&record.name, None, "Edit"))
            @if let Some(settings) = &settings {
                (settings_form(&record, settings))
            } @else {
                p.note { "The configuration names this feed: it is changed there." }
            }
        }
    };
    Ok(viewer.operators_page(&title(&record.name), (whose, &at), content))
}

/// `POST /feeds/NAME/edit`.
pub(super) async fn send_form(viewer: Viewer, record: ServedFeed, sent: SentForm) -> Reply {
    let mut settings = put::settings_from_record(&record);
    match change_settings(&viewer.app, &record, &mut settings, &sent).await {
        Ok(()) => viewer.see(&format!("/feeds/{}/about", record.name), "The feed was changed."),
        Err(problem) => {
            let again = html! {
                (html::trail(&record.name, None, "Edit"))
                (settings_form(&record, &settings))
            };
            Ok(viewer.not_done(&title(&record.name), &problem, &again))
        }
    }
}

fn title(name: &FeedName) -> String {
    format!("Edit {name}")
}

/// Changes the feed as the form says; what it says stands in `settings` then, also where it is refused.
async fn change_settings(
    app: &SharedState,
    record: &FeedRecord,
    settings: &mut Map<String, Value>,
    sent: &SentForm,
) -> Result<(), Problem> {
    refuse_if_filed(record)?;
    for (key, _, _) in CHOICES {
        match serde_json::from_str(sent.get(key)) {
            Ok(value) => settings.insert(key.to_owned(), value),
            Err(_) => settings.remove(key),
        };
    }
    for key in TEXTS.into_iter().map(|(key, _, _)| key).chain(["url"]) {
        match sent.get(key).trim() {
            "" => settings.remove(key),
            text => settings.insert(key.to_owned(), text.into()),
        };
    }
    put::change(app, &record.name, settings).await
}

fn settings_form(record: &FeedRecord, settings: &Map<String, Value>) -> Markup {
    let text = |key: &str| settings.get(key).and_then(Value::as_str).unwrap_or_default();
    let chosen = |key: &str| settings.get(key).map(Value::to_string).unwrap_or_default();
    html! {
        form.choices method="post" action={ "/feeds/" (record.name) "/edit" } {
            @if record.has_upstream() {
                label { span { "The publisher's address" }
                    input type="text" inputmode="url" name="url" value=(text("url")) required
                        autocomplete="off" spellcheck="false"; }
            }
            @for (key, label, values) in CHOICES {
                label { span { (label) }
                    select name=(key) {
                        @for (value, words) in values {
                            option value=(value) selected[chosen(key) == *value] { (words) }
                        }
                    } }
            }
            @for (key, label, example) in TEXTS {
                label { span { (label) }
                    input name=(key) value=(text(key)) placeholder=(example) autocomplete="off"
                        spellcheck="false"; }
            }
            div.buttons { button { "Change the feed" } }
        }
        p.quiet {
            "The history of the feed stays, also under a new address: its first document is judged before it \
             is believed. What is not asked here, such as credentials, is changed by the API and stays as it is."
        }
        p.links { a href={ "/feeds/" (record.name) "/about" } { "Back to the feed" } }
    }
}
