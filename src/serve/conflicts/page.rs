//! The HTML of conflicts. No scripts: what is chosen is sent as a form.

use super::list::{ConflictList, ConflictVersion, ItemInConflict, LosingVersion};
use super::{ConflictsForm, LOSERS_SHOWN};
use crate::address::item_page;
use crate::html::{cut, moment, outward, text};
use crate::session::sign_in_address;
use crate::{items, plain};
use maud::{Markup, html};
use tidegate_core::model::{FeedName, Format, Markup as Bytes, counted};
use tidegate_core::xml::address::percent_encoded;
use tidegate_judge::diff::{beginning, text_field};

/// How much of a version's text is shown, in characters.
const EXCERPT: usize = 600;
/// The longest text that is put into the form for a new one, in bytes.
const PREFILLED: usize = 64 * 1024;

/// The conflicts of the page.
pub(super) fn conflicts(list: &ConflictList, form: ConflictsForm) -> Markup {
    let (feed, shown) = (&list.feed, &list.conflicts);
    html! {
        @if list.count == 0 {
            p { "No item of this feed is in conflict." }
        } @else {
            p.lead {
                (counted(list.count, "item"))
                @if list.count == 1 { " is" } @else { " are" } " in conflict. Somebody changed each of \
                 them elsewhere without knowing of the other change. Readers are shown the winner until \
                 it is decided; what you decide is a new version, so that nobody is asked again."
            }
            @if !form.may_decide {
                p.quiet { "Whoever runs this gateway decides." }
            } @else if form.is_signed_in {
                @if shown.len() > 1 { (all_winners(list)) }
            } @else {
                p.quiet {
                    a href=(sign_in_address(&format!("/feeds/{feed}/conflicts"))) { "Sign in once" }
                    " to decide without sending the token each time."
                }
            }
        }
        @for item in shown { (one(feed, item, form)) }
        @if let Some(last) = &list.last {
            p.links { a href={ "/feeds/" (feed) "/conflicts?after=" (percent_encoded(last.as_str())) } { "More" } }
        }
        p.quiet {
            "The same as data: this address with " code { "Accept: application/json" } "."
        }
    }
}

/// What names an item in a form, as it was when it was shown.
fn named(item: &ItemInConflict) -> Markup {
    html! {
        input type="hidden" name="item" value=(item.sync_id);
        input type="hidden" name="etag" value=(item.etag);
    }
}

/// What keeps the winner of every item that is shown.
fn all_winners(list: &ConflictList) -> Markup {
    html! {
        form.choices method="post" action={ "/feeds/" (list.feed) "/conflicts" } {
            @for item in &list.conflicts { (named(item)) }
            div.buttons {
                button name="keep" value="winners" { "Keep the winners of the " (list.conflicts.len()) " shown here" }
            }
            p.quiet { "Every item stays as readers see it now; what the others said is not kept here." }
        }
    }
}

fn one(feed: &FeedName, item: &ItemInConflict, form: ConflictsForm) -> Markup {
    html! {
        section.contest id={ "item-" (item.etag) } {
            h2 {
                a href=(item_page(feed, &item.sync_id)) { (title(&item.winner)) } " "
                span.badge.deleted { (counted(item.count, "conflict")) }
            }
            div.sides {
                div.side.winner {
                    p.quiet { "The winner, which readers are shown" }
                    (version(&item.winner))
                }
                @for loser in &item.conflicts {
                    div.side {
                        p.quiet { "In conflict, number " (loser.n + 1) }
                        (version(&loser.version))
                    }
                }
            }
            @if item.count > LOSERS_SHOWN {
                p.quiet {
                    "The first " (LOSERS_SHOWN) " are shown; what you decide is about all of them."
                }
            }
            @for loser in item.conflicts.iter().filter(|loser| loser.is_compared) {
                details open[loser.n == 0] {
                    summary { "From the winner to number " (loser.n + 1) }
                    (differing(&item.winner, loser))
                }
            }
            @if form.may_decide { (choices(feed, item, form)) }
        }
    }
}

fn differing(winner: &ConflictVersion, loser: &LosingVersion) -> Markup {
    let note = match &loser.differences {
        _ if loser.version.deleted && !winner.deleted => "It is a deletion: taken, the item goes.",
        _ if loser.version.deleted != winner.deleted => {
            "The winner is a deletion: taken, the item lives again."
        }
        None => "One of the two cannot be read, so only their texts can be looked at.",
        Some(told) if told.fields.is_empty() => {
            "The two say the same: at most how it is written differs."
        }
        Some(told) => return items::differing(told),
    };
    html! { p.note { (note) } }
}

/// A version: who made it and when, and what it says.
fn version(version: &ConflictVersion) -> Markup {
    let text = excerpt(&version.markup);
    html! {
        p.title { strong { (title(version)) } @if version.deleted { " " span.badge.deleted { "deleted" } } }
        p.when.quiet {
            "Update " (version.updates)
            @if let Some(by) = &version.by { " by " strong { (by) } }
            @if let Some(when) = version.when { " at " (moment(when)) }
        }
        @if version.link.is_some() || version.author.is_some() {
            p.quiet {
                @if let Some(author) = &version.author { (crate::html::text(author)) " " }
                @if let Some(link) = &version.link { (outward(Some(link), link)) }
            }
        }
        @if !text.is_empty() && !version.deleted { p.excerpt { (text) } }
    }
}

/// What can be done, each with what comes of it.
fn choices(feed: &FeedName, item: &ItemInConflict, form: ConflictsForm) -> Markup {
    // An outline's address and place are none of what a form asks for.
    let begins = item.begins.as_ref().filter(|begins| begins.format != Format::Opml);
    html! {
        form.choices method="post" action={ "/feeds/" (feed) "/conflicts" } {
            (named(item))
            @if !form.is_signed_in {
                label.token {
                    span { "Admin token" }
                    input type="password" name="token" required autocomplete="off" spellcheck="false";
                }
            }
            div.buttons {
                button name="keep" value="winner" { "Keep the winner" }
                @for loser in &item.conflicts {
                    button name="keep" value=(loser.n) {
                        @if loser.version.deleted { "Take the deletion, number " (loser.n + 1) }
                        @else { "Take number " (loser.n + 1) }
                    }
                }
            }
            p.quiet {
                "Keep the winner: it stays as it is, and the "
                @if item.count > 1 { "others go" } @else { "other goes" } ". "
                "Take a number: the item says what that version says. "
                "Either way a new version is made that knows of all of them, so that no endpoint sees a \
                 conflict in them any more. What the others said is not kept here."
            }
            @if item.begins.is_none() || begins.is_some() {
                @let written = begins.map(source).unwrap_or_default();
                details {
                    summary { "Write a new one" }
                    label { span { "Title" }
                        input type="text" name="title" value=(begins.map(|it| it.card.title.as_str()).unwrap_or_default()); }
                    label { span { "Text" } textarea name="content" rows="8" { (written.text) } }
                    label.inline {
                        input type="checkbox" name="html" value="yes" checked[written.is_html];
                        span { "The text is HTML" }
                    }
                    p.quiet { "The item says this from now on; everything else that it says stays." }
                    button name="keep" value="new" { "Publish this" }
                }
            }
        }
    }
}

/// The text of a version as it can be written anew.
#[derive(Default)]
pub(super) struct EditableText {
    pub(super) text: String,
    pub(super) is_html: bool,
}

pub(super) fn source(markup: &Bytes) -> EditableText {
    let fields = tidegate_format::parse::again(markup).unwrap_or_default();
    let Some((field, is_html)) = text_field(&fields) else { return EditableText::default() };
    if field.value.len() > PREFILLED {
        return EditableText { text: String::new(), is_html };
    }
    let text = plain::written(markup, field).unwrap_or_else(|| field.value.clone().into_owned());
    EditableText { text, is_html }
}

/// The beginning of the text that a reader sees of a version, of plain text with its lines.
pub(crate) fn excerpt(markup: &Bytes) -> String {
    let source = source(markup);
    match source.is_html {
        true => beginning(markup, EXCERPT),
        false => cut(&source.text, EXCERPT),
    }
}

fn title(version: &ConflictVersion) -> String {
    match version.title.as_str() {
        "" => "without a title".to_owned(),
        title => text(title),
    }
}
