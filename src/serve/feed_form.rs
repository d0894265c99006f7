//! `/feeds/NAME/edit`: what the operator says of a feed, as a form. What the form does not have stays as it is,
//! credentials among it.

use super::audience::ServedFeed;
use super::extract::Viewer;
use super::forms::{self, SentForm};
use super::operator::OperatorError;
use super::problem::Problem;
use super::{SharedState, html, put};
use axum::response::Response;
use maud::{Markup, html};
use serde_json::{Map, Value};
use tidegate_core::model::{FeedName, FeedRecord, FeedSource, FeedStanding};

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
pub(super) async fn show(viewer: Viewer, record: ServedFeed) -> Result<Response, Problem> {
    let title = title(&record.name);
    if !viewer.is_signed_in {
        let whose = "What a feed is polled for is changed by who runs this gateway.";
        let at = format!("/feeds/{}/edit", record.name);
        return Ok(viewer.sign_in_page(&title, whose, &at));
    }
    let content = match is_filed(&record) {
        true => html! { p.note { "The configuration names this feed: it is changed there." } },
        false => {
            let status = viewer.room.operator.status(&record.name).await?;
            form(&record, &put::written(&status))
        }
    };
    let trail = html::trail(&record.name, None, "Edit");
    Ok(viewer.form_page(&title, &html! { (trail) (content) }))
}

/// `POST /feeds/NAME/edit`.
pub(super) async fn send(
    viewer: Viewer,
    record: ServedFeed,
    sent: SentForm,
) -> Result<Response, Problem> {
    let status = viewer.room.operator.status(&record.name).await?;
    let mut settings = put::written(&status);
    match change(&viewer.room, &record, &mut settings, &sent).await {
        Ok(()) => viewer.see(&format!("/feeds/{}/about", record.name), "The feed was changed."),
        Err(problem) => {
            let again = html! {
                (html::trail(&record.name, None, "Edit"))
                (form(&record, &settings))
            };
            Ok(forms::not_done(&title(&record.name), &problem, &again))
        }
    }
}

fn title(name: &FeedName) -> String {
    format!("Edit {name}")
}

fn is_filed(record: &FeedRecord) -> bool {
    record.standing == FeedStanding::Active && record.source != FeedSource::Api
}

/// Changes the feed as the form says; what it says stands in `settings` then, also where it is refused.
async fn change(
    room: &SharedState,
    record: &FeedRecord,
    settings: &mut Map<String, Value>,
    sent: &SentForm,
) -> Result<(), Problem> {
    if is_filed(record) {
        return Err(OperatorError::ConfiguredByFile(record.name.clone()).into());
    }
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
    put::change(room, &record.name, settings).await
}

fn form(record: &FeedRecord, settings: &Map<String, Value>) -> Markup {
    let text = |key: &str| settings.get(key).and_then(Value::as_str).unwrap_or_default();
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
                            option value=(value) selected[is_chosen(settings.get(key), value)] { (words) }
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

fn is_chosen(setting: Option<&Value>, value: &str) -> bool {
    setting.map(Value::to_string).unwrap_or_default() == value
}
