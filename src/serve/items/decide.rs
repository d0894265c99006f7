//! `POST /feeds/NAME/items/SYNC_ID`: what an operator decides about an item on its page.

use crate::address::item_page;
use crate::audience::ServedFeed;
use crate::extract::{ServedItem, Viewer, unknown_item};
use crate::forms::{self, SentForm};
use crate::paging::{NamedChoice as _, choices};
use crate::problem::Problem;
use crate::session::sign_in_address;
use crate::{SharedState, admin, edit};
use axum::response::Response;
use maud::{Markup, html};
use tidegate_core::model::{FeedRecord, ItemStatus, LedgerEntry, Origin, SyncId};
use tidegate_judge::record::local::Act;

choices! {
    /// What can be done with an item.
    enum ItemAction {
        Delete = "delete", "Delete it now";
        Restore = "restore", "Restore";
        /// Take its text out of everything, when its sync id was typed.
        Redact = "redact", "Redact";
    }
}

impl ItemAction {
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
    viewer: Viewer,
    ServedItem { feed: record, id }: ServedItem,
    form: SentForm,
) -> Result<Response, Problem> {
    let address = item_page(&record.name, &id);
    match carry_out(&viewer.room, &record, &id, (form.action()?, &form)).await {
        Ok(said) => viewer.see(&address, &said),
        Err(problem) => Ok(forms::not_done_with(&record.name, (&address, "Item"), &problem)),
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
            let known = room.store.known(feed, id).await?.ok_or_else(|| unknown_item(feed))?;
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
                let said = "type the sync id of the item to redact it";
                return Err(Problem::parameter("id", said));
            }
            let reason = admin::items::redaction_reason(form.get("reason"))?;
            admin::items::redact_item(room, feed, id, reason).await?;
            format!("Redacted: {}.", admin::items::REDACTION_LEAVES)
        }
    })
}

/// What can be done with an item now.
pub(super) async fn part(
    viewer: &Viewer,
    record: &ServedFeed,
    id: &SyncId,
) -> Result<Markup, Problem> {
    let address = item_page(&record.name, id);
    if viewer.is_signed_in {
        let known = viewer.room.store.known(&record.name, id).await?;
        return Ok(known.map(|known| buttons(record, &known, &address)).unwrap_or_default());
    }
    Ok(html! {
        @if viewer.audience.may_sign_in() {
            p.quiet {
                a href=(sign_in_address(&address)) { "Sign in" } " to delete, restore or redact it."
            }
        }
    })
}

/// What a person who is signed in can do with an item now.
fn buttons(record: &FeedRecord, known: &LedgerEntry, address: &str) -> Markup {
    let offered = |action: ItemAction| action.is_offered(record, known);
    let (delete, restore) = (offered(ItemAction::Delete), offered(ItemAction::Restore));
    let is_deleted = matches!(known.standing, ItemStatus::Deleted { .. });
    html! {
        @if delete || restore {
            form.actions method="post" action=(address) {
                div.buttons {
                    @if delete { (ItemAction::Delete.button()) }
                    @if restore { (ItemAction::Restore.button()) }
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
                    (ItemAction::Redact.button())
                }
            }
        }
    }
}
