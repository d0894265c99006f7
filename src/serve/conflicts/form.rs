//! `POST /feeds/NAME/conflicts`: what a person chose on the page.
//!
//! Who is not signed in sends the admin token in the body, over the page's own origin; it is kept nowhere.

use super::{ITEMS_SHOWN, page};
use crate::SharedState;
use crate::audience::Audience;
use crate::client::Client;
use crate::edit::{self, ENTRY_LIMIT};
use crate::feeds::{NameInPath, unreadable};
use crate::forms::{self, SentForm};
use crate::plain;
use crate::problem::Problem;
use axum::body::Bytes;
use axum::extract::State;
use axum::extract::rejection::BytesRejection;
use axum::response::Response;
use http::HeaderMap;
use tidegate_core::model::{FeedName, Item, SyncId, counted};
use tidegate_core::xml::address::percent_encoded;
use tidegate_format::parse::Amendment;
use tidegate_judge::record::local::{Act, CheckedEntry, EntryError, Resolution};

/// `POST /feeds/NAME/conflicts`.
pub(crate) async fn resolve(
    State(room): State<SharedState>,
    (audience, client): (Audience, Client),
    name: NameInPath,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, Problem> {
    let name = name.map_err(unreadable)?.0;
    let record = room.directory.served(&name, &audience).await?;
    match chosen(&room, &record.name, (client, &headers), body).await {
        Ok(Some(id)) => {
            let id = percent_encoded(id.as_str());
            forms::see(&format!("/feeds/{}/conflicts?resolved={id}", record.name))
        }
        Ok(None) => forms::see(&format!("/feeds/{}/conflicts", record.name)),
        Err(problem) => {
            let content = page::refused(record.name.as_str(), problem.detail());
            Ok(forms::refusal("Not resolved", &content, problem.status()))
        }
    }
}

/// Does what a form says; answers the item that it was about, unless it was about all.
async fn chosen(
    room: &SharedState,
    feed: &FeedName,
    (client, headers): (Client, &HeaderMap),
    body: Result<Bytes, BytesRejection>,
) -> Result<Option<SyncId>, Problem> {
    let form = SentForm::authorized(room, (client, headers), body, ENTRY_LIMIT).await?;
    if form.get("keep") == "winners" {
        keep_winners(room, feed, (&form, headers)).await?;
        return Ok(None);
    }
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
            let written = written(&form, &item);
            Resolution::New(written.map_err(|error| edit::unwritten(&error))?)
        }
        number => match number.parse() {
            Ok(number) => Resolution::Conflict(number),
            Err(_) => return Err(Problem::parameter("keep", "nothing was chosen")),
        },
    };
    let expected = Some(form.get("etag").to_owned());
    let act = Act::Resolve { id: id.clone(), keep, conflicts: None, expected };
    edit::done(room, feed, act).await?;
    Ok(Some(id))
}

/// Keeps the winner of each item that the page showed, as it showed it, and says what came of it. An item that
/// changed since is left as it is.
async fn keep_winners(
    room: &SharedState,
    feed: &FeedName,
    (form, headers): (&SentForm, &HeaderMap),
) -> Result<(), Problem> {
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
    let said = format!("The winners of {} were kept.{left}", counted(kept, "item"));
    room.sessions.leave_notice(headers, said);
    Ok(())
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
