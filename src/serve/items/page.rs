//! The HTML of items and of what differs between their versions. No scripts; everything from outside
//! is escaped by maud.

use super::compare::{Differences, FieldDifference, VersionDifference, version_name};
use super::text_diff::TextPiece;
use super::{Subject, VERSIONS_SHOWN, shown_standing};
use crate::html::{self, moment, text, trail};
use crate::paging::{NamedChoice as _, choices};
use crate::{
    Problem, Reply, SentForm, ServedFeed, ServedItem, SharedState, Viewer, admin, edit, item_page,
    sign_in_address, unknown_item,
};
use maud::{Markup, PreEscaped, html};
use tidegate_core::model::{
    FeedRecord, ItemStatus, LedgerEntry, Origin, SyncId, counted, shown_size,
};
use tidegate_judge::record::local::{Act, ItemAct};
use tidegate_judge::{Conclusion, PendingAbsence};
use tidegate_store::VersionNote;

/// What the page of an item says to everybody.
#[derive(Debug)]
pub(crate) struct ItemContent {
    pub(super) title: String,
    /// Before and behind what can be done.
    before: String,
    behind: String,
}

impl ItemContent {
    /// How many bytes it has.
    pub(crate) fn len(&self) -> usize {
        self.title.len() + self.before.len() + self.behind.len()
    }

    /// All of it, with what can be done.
    pub(super) fn with(&self, acting: &Markup) -> Markup {
        html! { (PreEscaped(self.before.as_str())) (acting) (PreEscaped(self.behind.as_str())) }
    }
}

/// An item with its versions; `pending`: what is to come of it, where it is missing.
pub(super) fn item(subject: &Subject, pending: Option<&PendingAbsence>) -> ItemContent {
    ItemContent {
        title: text(subject.title()),
        before: item_standing(subject, pending).into_string(),
        behind: facts_and_versions(subject).into_string(),
    }
}

/// How an item stands, and what is open about it.
fn item_standing(subject: &Subject, pending: Option<&PendingAbsence>) -> Markup {
    let known = &subject.known;
    let (word, since) = shown_standing(known);
    html! {
        (trail(&subject.feed, None, "Item"))
        p.lead {
            span class={ "badge " (word) } { (word) }
            @if let Some(since) = since { " since " (moment(since)) }
            " · " (counted(known.updates.value(), "version"))
            " · first seen " (moment(known.first_seen))
        }
        @if let Some(pending) = pending { (missing(pending)) }
        @if known.conflicts > 0 {
            p.note {
                (counted(known.conflicts, "version")) " in conflict with this item: "
                a href={ "/feeds/" (subject.feed) "/conflicts" } { "look and decide" } "."
            }
        }
        @if known.is_redacted() {
            p.note {
                "The text of this item was removed here. It stays out of the feed, even while its \
                 publisher still lists it."
            }
        }
    }
}

fn facts_and_versions(subject: &Subject) -> Markup {
    let known = &subject.known;
    html! {
        dl.facts {
            // By its addresses the text could be found elsewhere; they are kept, and not shown.
            @if known.is_redacted() {
                dt { "Published as" } dd { code { (text(&known.published_id)) } }
            } @else {
                dt { "Link" }
                dd {
                    (html::outward(known.link.as_deref(), known.link.as_deref().unwrap_or("none")))
                }
                dt { "Publisher's id" } dd { code { (text(&known.native_shown)) } }
                @if known.published_id != known.native_shown {
                    dt { "Published as" } dd { code { (text(&known.published_id)) } }
                }
                @if !known.aliases.is_empty() {
                    dt { "Ids before" }
                    dd { @for alias in &known.aliases { code { (text(alias)) } " " } }
                }
            }
            dt { "Sync id" } dd { code { (known.id) } }
        }
        h2 { "Versions" }
        ol.versions {
            @for note in &subject.versions { (version(subject, note)) }
        }
        @if subject.versions.len() >= VERSIONS_SHOWN {
            p.quiet { "The newest " (VERSIONS_SHOWN) " versions are shown." }
        } @else if subject.versions.last().is_some_and(|first| first.updates.value() > 1) {
            p.quiet { "Older versions are not kept any more." }
        }
        p.quiet {
            "The same as data: this address with " code { "Accept: application/json" } "."
            @if !known.is_redacted() {
                " " a href={ (subject.address()) "?version=newest" } { "The newest bytes" } "."
            }
        }
    }
}

/// Why nothing is concluded yet about an item that is missing, and when it is.
fn missing(pending: &PendingAbsence) -> Markup {
    html! { p.note {
        strong { "Missing upstream: " } (text(&pending.seen)) "; seen "
        (counted(pending.observations, "time")) " since " (moment(pending.since))
        ". It left the reader view at once. It is "
        @if pending.would != Conclusion::Wait { (pending.would.name()) } @else { "left as it is" }
        " if it is so at " (moment(pending.decides_at)) " and in "
        (counted(pending.needed, "observation")) "."
        @if let Some(answered) = &pending.answered { " " (text(answered)) "." }
    } }
}

fn version(subject: &Subject, note: &VersionNote) -> Markup {
    let number = note.updates.value();
    let address = subject.address();
    let has_bytes = subject.has_bytes(note);
    let newest = subject.versions.iter().find(|other| subject.has_bytes(other));
    html! { li.tombstone[note.deleted] {
        div.number { "#" (number) }
        div.said {
            p.when {
                (moment(note.tick.time()))
                @if note.deleted { " " span.badge.deleted { "tombstone" } }
                @if let Some(by) = note.update.stamp.by() { " " span.quiet { "by " (by) } }
            }
            @if !note.title.is_empty() { p.title { (text(&note.title)) } }
            p.why { (text(&note.reason)) }
            @if has_bytes {
                p.links {
                    @if let Some(old) = subject.before(note) {
                        a href={ (address) "?diff=" (old.updates.value()) ".." (number) } {
                            "What changed"
                        } " "
                    }
                    @if let Some(newest) = newest.filter(|newest| newest.updates > note.updates) {
                        a href={ (address) "?diff=" (number) ".." (newest.updates.value()) } {
                            "Against #" (newest.updates.value())
                        } " "
                    }
                    a href={ (address) "?version=" (number) } { "Bytes" }
                    @if note.size > 0 { " " span.quiet { (shown_size(note.size)) } }
                }
            }
        }
    } }
}

/// What differs between two versions.
pub(super) fn difference(subject: &Subject, difference: &VersionDifference) -> ItemContent {
    let (old, new) = (version_name(difference.old.as_ref()), version_name(difference.new.as_ref()));
    let address = subject.address();
    let content = html! {
        (trail(&subject.feed, Some((&address, "Item")), "What changed"))
        div.sides {
            (side("From", &old, difference.old.as_ref(), &address))
            (side("To", &new, difference.new.as_ref(), &address))
        }
        (differing(difference.differences.as_ref()))
        p.links { (neighbours(subject, difference)) }
    };
    let (title, before) = (text(subject.title()), content.into_string());
    ItemContent { title, before, behind: String::new() }
}

fn side(word: &str, name: &str, note: Option<&VersionNote>, address: &str) -> Markup {
    html! { div.side {
        p.quiet { (word) }
        @match note {
            Some(note) => {
                p { strong { "#" (name) } " " (moment(note.tick.time())) }
                p.why { (text(&note.reason)) }
            },
            None => p { strong { "the newest bytes" } },
        }
        p.links { a href={ (address) "?version=" (name) } { "Bytes" } }
    } }
}

/// What differs between two versions, field by field; `None`: that cannot be told.
pub(crate) fn differing(differences: Option<&Differences>) -> Markup {
    let Some(differences) = differences else {
        let detail =
            "One of the two cannot be read any more, so only their bytes can be looked at.";
        return html! { p.note { (detail) } };
    };
    if differences.fields.is_empty() {
        let detail = "Nothing differs in what the two say: at most how it is written does.";
        return html! { p.note { (detail) } };
    }
    html! {
        @for field in &differences.fields { (field_difference(field)) }
        @if differences.more > 0 {
            p.quiet { (counted(differences.more, "more field")) " differ and are not shown." }
        }
        p.quiet { (counted(differences.same, "field")) " the same in both." }
    }
}

fn field_difference(field: &FieldDifference) -> Markup {
    html! { section.field {
        h2 {
            (field.name) " " code.quiet { (text(&field.path)) }
            @if field.is_markup { " " span.badge { "markup only" } }
        }
        @if let Some(limit) = &field.limit { p.note { (limit) } }
        @if !field.pieces.is_empty() {
            div.diff { @for piece in &field.pieces { (a_piece(piece)) } }
        }
    } }
}

fn a_piece(piece: &TextPiece) -> Markup {
    html! {
        @match piece {
            TextPiece::Same(text) => (text),
            TextPiece::Deleted(text) => del { (text) },
            TextPiece::Inserted(text) => ins { (text) },
            TextPiece::SkippedWords(words) => span.skipped { " … " (words) " words the same … " },
        }
    }
}

/// Links to the differences before and after this one.
fn neighbours(subject: &Subject, difference: &VersionDifference) -> Markup {
    let address = subject.address();
    let step = |old: &VersionNote, new: &VersionNote, words: &str| {
        html! {
            a href={ (address) "?diff=" (old.updates.value()) ".." (new.updates.value()) } {
                (words) " (#" (old.updates.value()) " to #" (new.updates.value()) ")"
            } " "
        }
    };
    let earlier = difference.old.as_ref().and_then(|old| Some((subject.before(old)?, old)));
    let after = difference.new.as_ref().and_then(|new| {
        let mut newer = subject.versions.iter().rev().filter(|note| note.updates > new.updates);
        Some((new, newer.find(|note| subject.has_bytes(note))?))
    });
    html! {
        @if let Some((old, new)) = earlier { (step(old, new, "Earlier change")) }
        @if let Some((old, new)) = after { (step(old, new, "Later change")) }
        a href=(address) { "All versions" }
    }
}

// `POST /feeds/NAME/items/SYNC_ID`: what an operator decides about an item on its page.

choices! {
    /// What can be done with an item.
    enum ItemAction {
        Delete = "delete", "Delete it now";
        Restore = "restore", "Restore";
        /// Take its text out of everything, when its sync id was typed.
        Redact = "redact", "Redact";
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
) -> Reply {
    let address = item_page(&record.name, &id);
    let done = carry_out(&viewer.app, &record, &id, (form.action()?, &form)).await;
    viewer.answer_form(&record.name, (&address, "Item"), &address, done)
}

/// Does it; answers what came of it, as a sentence.
async fn carry_out(
    app: &SharedState,
    record: &FeedRecord,
    id: &SyncId,
    (action, form): (ItemAction, &SentForm),
) -> Result<String, Problem> {
    let feed = &record.name;
    Ok(match action {
        ItemAction::Delete => {
            let known = app.store.known(feed, id).await?.ok_or_else(|| unknown_item(feed))?;
            if is_own(record, &known) {
                let act = Act::Change { id: id.clone(), how: ItemAct::Delete, expected: None };
                edit::apply_act(app, feed, act).await?;
            } else if admin::delete_missing_item(app, feed, id).await?.is_none() {
                return Ok("It was deleted before.".to_owned());
            }
            "Deleted: subscribers get its tombstone.".to_owned()
        }
        ItemAction::Restore => {
            let act = Act::Change { id: id.clone(), how: ItemAct::Restore(None), expected: None };
            edit::apply_act(app, feed, act).await?;
            "Restored: it is in the feed again.".to_owned()
        }
        ItemAction::Redact => {
            if form.get("id").trim() != id.as_str() {
                let detail = "type the sync id of the item to redact it";
                return Err(Problem::parameter("id", detail));
            }
            let reason = admin::redaction_reason(form.get("reason"))?;
            admin::redact_item(app, feed, id, reason).await?;
            format!("Redacted: {}.", admin::REDACTION_LEAVES)
        }
    })
}

/// Renders the forms for what can be done with an item now.
pub(super) async fn render_actions(
    viewer: &Viewer,
    record: &ServedFeed,
    id: &SyncId,
) -> Result<Markup, Problem> {
    let address = item_page(&record.name, id);
    if viewer.is_signed_in {
        let known = viewer.app.store.known(&record.name, id).await?;
        return Ok(known.map(|known| buttons(record, &known, &address)).unwrap_or_default());
    }
    Ok(html! {
        @if viewer.audience.may_sign_in {
            p.quiet {
                a href=(sign_in_address(&address)) { "Sign in" } " to delete, restore or redact it."
            }
        }
    })
}

/// What a person who is signed in can do with an item now.
fn buttons(record: &FeedRecord, known: &LedgerEntry, address: &str) -> Markup {
    let is_own = is_own(record, known);
    let is_missing = known.absence.is_some() || !known.standing.is_listed();
    let is_deleted = matches!(known.standing, ItemStatus::Deleted { .. });
    let is_deletable = is_own || known.origin == Origin::Observed && is_missing;
    let (delete, restore) = (is_deletable && !known.is_deleted(), is_own && is_deleted);
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
        @if !known.is_redacted() {
            details {
                summary { "Redact the item" }
                form.choices method="post" action=(address) {
                    label { span {
                        "Its text is removed from all that is served and kept, for good. Type "
                        (known.id) " to redact it."
                    } input name="id" autocomplete="off" spellcheck="false"; }
                    label { span { "Reason, if there is one to tell" }
                        input name="reason" maxlength=(admin::REASON_LIMIT); }
                    (ItemAction::Redact.button())
                }
            }
        }
    }
}
