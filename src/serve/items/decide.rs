//! `POST /feeds/NAME/items/SYNC_ID`: what an operator decides about an item on its page.

use super::unknown;
use crate::address::item_page;
use crate::audience::Audience;
use crate::client::Client;
use crate::feeds::unreadable;
use crate::forms::{self, SentForm};
use crate::problem::Problem;
use crate::session::{self, sign_in_address};
use crate::{REQUEST_BODY_LIMIT, SharedState, admin, edit};
use axum::body::Bytes;
use axum::extract::rejection::{BytesRejection, PathRejection};
use axum::extract::{Path, State};
use axum::response::Response;
use http::{HeaderMap, Method};
use maud::{Markup, html};
use tidegate_core::model::{FeedName, FeedRecord, ItemStatus, LedgerEntry, Origin, SyncId};
use tidegate_judge::record::local::Act;

/// What can be done with an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ItemAction {
    Delete,
    Restore,
    /// Take its text out of everything, when its sync id was typed.
    Redact,
}

impl ItemAction {
    const ALL: [Self; 3] = [Self::Delete, Self::Restore, Self::Redact];

    /// Its value in the form.
    const fn name(self) -> &'static str {
        match self {
            Self::Delete => "delete",
            Self::Restore => "restore",
            Self::Redact => "redact",
        }
    }

    /// Whether it can be done with an item as it is.
    fn is_offered(self, record: &FeedRecord, known: &LedgerEntry) -> bool {
        let is_own = is_own(record, known);
        let is_missing = known.absence.is_some() || known.standing != ItemStatus::Current;
        match self {
            Self::Delete if known.is_deleted() => false,
            Self::Delete => is_own || known.origin == Origin::Observed && is_missing,
            Self::Restore => is_own && matches!(known.standing, ItemStatus::Deleted { .. }),
            Self::Redact => !known.is_redacted(),
        }
    }
}

/// Whether an item is changed here, and not by its publisher.
fn is_own(record: &FeedRecord, known: &LedgerEntry) -> bool {
    record.options.sharing.local || known.origin == Origin::Local
}

/// `POST /feeds/NAME/items/SYNC_ID`.
pub(crate) async fn act(
    State(room): State<SharedState>,
    (audience, client): (Audience, Client),
    path: Result<Path<(String, String)>, PathRejection>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, Problem> {
    let (name, id) = path.map_err(unreadable)?.0;
    let record = room.directory.served(&name, &audience).await?;
    let id = SyncId::new(&id).map_err(|_| unknown(&record.name))?;
    let form = SentForm::authorized(&room, (client, &headers), body, REQUEST_BODY_LIMIT).await?;
    let action = ItemAction::ALL.into_iter().find(|action| action.name() == form.get("do"));
    let action = action.ok_or_else(|| Problem::parameter("do", "nothing was chosen"))?;
    match carry_out(&room, &record, &id, (action, &form)).await {
        Ok(said) => {
            room.sessions.leave_notice(&headers, said);
            forms::see(&item_page(&record.name, &id))
        }
        Err(problem) => Ok(refused(&record.name, &id, &problem)),
    }
}

/// Does it; answers what came of it, as a sentence.
async fn carry_out(
    room: &SharedState,
    record: &FeedRecord,
    id: &SyncId,
    (action, form): (ItemAction, &SentForm),
) -> Result<String, Problem> {
    let feed = &record.name;
    Ok(match action {
        ItemAction::Delete => {
            let known = room.store.known(feed, id).await?.ok_or_else(|| unknown(feed))?;
            if is_own(record, &known) {
                let act = Act::Delete { id: id.clone(), expected: None };
                edit::done(room, feed, act).await?;
            } else if admin::items::delete_missing_item(room, feed, id).await?.is_none() {
                return Ok("It was deleted before.".to_owned());
            }
            "Deleted: subscribers get its tombstone.".to_owned()
        }
        ItemAction::Restore => {
            let act = Act::Restore { id: id.clone(), entry: None, expected: None };
            edit::done(room, feed, act).await?;
            "Restored: it is in the feed again.".to_owned()
        }
        ItemAction::Redact => {
            if form.get("id").trim() != id.as_str() {
                let said = "type the sync id of the item to redact it; nothing was changed";
                return Err(Problem::parameter("id", said));
            }
            let reason = admin::items::redaction_reason(form.get("reason"))?;
            admin::items::redact_item(room, feed, id, reason).await?;
            format!("Redacted: {}.", admin::items::REDACTION_LEAVES)
        }
    })
}

fn refused(feed: &FeedName, id: &SyncId, problem: &Problem) -> Response {
    forms::not_done(feed, (&item_page(feed, id), "Item", "Back to the item"), problem)
}

/// What came of the last thing that was done, and what can be done now; and whether there are forms.
pub(super) async fn part(
    room: &SharedState,
    (record, audience): (&FeedRecord, &Audience),
    id: &SyncId,
    (method, headers): (&Method, &HeaderMap),
) -> Result<(Markup, bool), Problem> {
    if !audience.may_sign_in() {
        return Ok((html! {}, false));
    }
    let address = item_page(&record.name, id);
    if !room.sessions.is_open(headers) {
        let sign_in = html! {
            p.quiet {
                a href=(sign_in_address(&address)) { "Sign in" } " to delete, restore or redact it."
            }
        };
        return Ok((sign_in, false));
    }
    let known = room.store.known(&record.name, id).await?;
    let content = html! {
        (session::notice(room, method, headers))
        @if let Some(known) = &known { (buttons(record, known, &address)) }
    };
    Ok((content, true))
}

/// What a person who is signed in can do with an item now.
fn buttons(record: &FeedRecord, known: &LedgerEntry, address: &str) -> Markup {
    let offered = |action: ItemAction| action.is_offered(record, known);
    let button = |action: ItemAction, label: &str| {
        html! { button name="do" value=(action.name()) { (label) } }
    };
    let (delete, restore) = (offered(ItemAction::Delete), offered(ItemAction::Restore));
    let is_deleted = matches!(known.standing, ItemStatus::Deleted { .. });
    html! {
        @if delete || restore {
            form.actions method="post" action=(address) {
                div.buttons {
                    @if delete { (button(ItemAction::Delete, "Delete it now")) }
                    @if restore { (button(ItemAction::Restore, "Restore")) }
                }
            }
        }
        @if is_deleted && !restore {
            p.quiet { "It comes back when its publisher lists it again." }
        }
        @if offered(ItemAction::Redact) {
            details {
                summary { "Redact the item" }
                form.choices method="post" action=(address) {
                    label { span {
                        "Its text is removed from all that is served and kept, for good. Type "
                        (known.id) " to redact it."
                    } input name="id" autocomplete="off" spellcheck="false"; }
                    label { span { "Reason, if there is one to tell" }
                        input name="reason" maxlength=(admin::items::REASON_LIMIT); }
                    (button(ItemAction::Redact, "Redact"))
                }
            }
        }
    }
}
