//! `POST /feeds/NAME/conflicts`: what a person chose on the page.
//!
//! Who is not signed in sends the admin token in the body, over the page's own origin; it is kept nowhere.

use super::{ITEMS_SHOWN, page};
use crate::SharedState;
use crate::audience::ServedFeed;
use crate::edit;
use crate::extract::Viewer;
use crate::forms::{self, SentForm};
use crate::plain;
use crate::problem::Problem;
use axum::response::Response;
use tidegate_core::model::{FeedName, Item, SyncId, counted};
use tidegate_format::parse::Amendment;
use tidegate_judge::record::local::{Act, CheckedEntry, EntryError, Resolution};

/// `POST /feeds/NAME/conflicts`.
pub(crate) async fn resolve(
    viewer: Viewer,
    record: ServedFeed,
    form: Result<SentForm, Problem>,
) -> Result<Response, Problem> {
    let (feed, address) = (&record.name, format!("/feeds/{}/conflicts", record.name));
    let done = match form {
        Ok(form) if form.get("keep") == "winners" => keep_winners(&viewer.room, feed, &form).await,
        Ok(form) => resolve_one(&viewer.room, feed, &form).await,
        Err(problem) => Err(problem),
    };
    match done {
        Ok(said) => viewer.see(&address, &said),
        Err(problem) => Ok(forms::not_done_with(feed, (&address, "Conflicts"), &problem)),
    }
}

/// Does what a form says of one item.
async fn resolve_one(
    room: &SharedState,
    feed: &FeedName,
    form: &SentForm,
) -> Result<String, Problem> {
    let unknown = || Problem::not_found("there is no item of that sync id");
    let id = SyncId::new(form.get("item")).map_err(|_| unknown())?;
    let keep = match form.get("keep") {
        "winner" => Resolution::Winner,
        "new" => {
            let item = room.store.item(feed, &id).await?.ok_or_else(unknown)?;
            if plain::is_outline(&item) {
                let said = "an outline says more than a title and a text, which would be lost";
                return Err(Problem::parameter("keep", said));
            }
            let written = written(form, &item);
            Resolution::New(written.map_err(|error| edit::unwritten(&error))?)
        }
        number => match number.parse() {
            Ok(number) => Resolution::Conflict(number),
            Err(_) => return Err(Problem::parameter("keep", "nothing was chosen")),
        },
    };
    let expected = Some(form.get("etag").to_owned());
    let said = format!("Resolved. The item {id} has a new version.");
    edit::done(room, feed, Act::Resolve { id, keep, conflicts: None, expected }).await?;
    Ok(said)
}

/// Keeps the winner of each item that the page showed, as it showed it, and says what came of it. An item that
/// changed since is left as it is.
async fn keep_winners(
    room: &SharedState,
    feed: &FeedName,
    form: &SentForm,
) -> Result<String, Problem> {
    let (mut kept, mut left) = (0_usize, 0_usize);
    for (id, etag) in form.all("item").zip(form.all("etag")).take(ITEMS_SHOWN) {
        let Ok(id) = SyncId::new(id) else { continue };
        let (keep, expected) = (Resolution::Winner, Some(etag.to_owned()));
        let act = Act::Resolve { id, keep, conflicts: None, expected };
        match edit::done(room, feed, act).await {
            Ok(_) => kept += 1,
            Err(problem) if problem.status().is_client_error() => left += 1,
            Err(problem) => return Err(problem),
        }
    }
    let left = match left {
        0 => String::new(),
        left => format!(" {} changed meanwhile, or need nothing any more.", counted(left, "item")),
    };
    Ok(format!("The winners of {} were kept.{left}", counted(kept, "item")))
}

/// What a person wrote over the version that the form began with: what was not edited stays as it is.
fn written(form: &SentForm, item: &Item) -> Result<CheckedEntry, EntryError> {
    let before = &plain::begins(item).unwrap_or(&item.shared.winner).data;
    let shown = page::source(before);
    let lines = |text: &str| text.trim().replace("\r\n", "\n");
    let (content, is_html) = (form.get("content"), form.get("html") == "yes");
    let is_same = lines(content) == lines(&shown.text) && is_html == shown.is_html;
    let text = (!is_same).then(|| (content.replace("\r\n", "\n"), is_html));
    let title = form.get("title").trim();
    let title = (title != before.card.title.trim()).then(|| title.to_owned());
    CheckedEntry::amended(before, Amendment { title, text, ..Amendment::default() })
}
