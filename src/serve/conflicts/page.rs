//! The HTML of conflicts. No scripts: what is chosen is sent as a form.

use super::{Contest, Contests, LOSERS_SHOWN};
use crate::address::item_page;
use crate::html::{moment, outward, text, trail};
use crate::session::sign_in_address;
use crate::{items, plain};
use maud::{Markup, PreEscaped, html};
use tidegate_core::model::{FeedName, Field, Markup as Bytes, SyncId, Version, counted};
use tidegate_core::xml::address::percent_encoded;
use tidegate_judge::diff::visible;

/// How much of a version's text is shown, in characters.
const EXCERPT: usize = 600;
/// The longest text that is put into the form for a new one, in bytes.
const PREFILLED: usize = 64 * 1024;

/// All of the page but its title: `contests` as they were made, and what was resolved a moment ago.
pub(super) fn around(
    feed: &FeedName,
    (resolved, notice): (Option<&SyncId>, &Markup),
    contests: &[u8],
) -> Markup {
    html! {
        (trail(feed, None, "Conflicts"))
        (notice)
        @if let Some(id) = resolved {
            p.note.done role="status" {
                "Resolved. " a href=(item_page(feed, id)) { "What the item is now" } "."
            }
        }
        // It was written as text here.
        (PreEscaped(String::from_utf8_lossy(contests)))
    }
}

/// The conflicts of the page.
pub(super) fn contests(contests: &Contests) -> Markup {
    let feed = &contests.feed;
    html! {
        @if contests.all == 0 {
            p { "No item of this feed is in conflict." }
        } @else {
            p.lead {
                (counted(contests.all, "item"))
                @if contests.all == 1 { " is" } @else { " are" } " in conflict. Somebody changed each of \
                 them elsewhere without knowing of the other change. Readers are shown the winner until \
                 it is decided; what you decide is a new version, so that nobody is asked again."
            }
            @if !contests.may_decide {
                p.quiet { "Whoever runs this gateway decides." }
            } @else if contests.is_signed_in {
                @if contests.shown.len() > 1 { (all_winners(contests)) }
            } @else {
                p.quiet {
                    a href=(sign_in_address(&format!("/feeds/{feed}/conflicts"))) { "Sign in once" }
                    " to decide without sending the token each time."
                }
            }
        }
        @for contest in &contests.shown { (one(contests, contest)) }
        @if let Some(last) = &contests.more {
            p.links { a href={ "/feeds/" (feed) "/conflicts?after=" (percent_encoded(last.as_str())) } { "More" } }
        }
        p.quiet {
            "The same as data: this address with " code { "Accept: application/json" } "."
        }
    }
}

/// What keeps the winner of every item that is shown.
fn all_winners(contests: &Contests) -> Markup {
    html! {
        form.choices method="post" action={ "/feeds/" (contests.feed) "/conflicts" } {
            @for contest in &contests.shown {
                input type="hidden" name="item" value=(contest.item.shared.winner.id);
                input type="hidden" name="etag" value=(contest.tag);
            }
            div.buttons {
                button name="keep" value="winners" { "Keep the winners of the " (contests.shown.len()) " shown here" }
            }
            p.quiet { "Every item stays as readers see it now; what the others said is not kept here." }
        }
    }
}

fn one(contests: &Contests, contest: &Contest) -> Markup {
    let shared = &contest.item.shared;
    let id = &shared.winner.id;
    let losers = || shared.conflicts.iter().enumerate().take(LOSERS_SHOWN);
    html! {
        section.contest id={ "item-" (contest.tag) } {
            h2 {
                a href=(item_page(&contests.feed, id)) { (title(&shared.winner)) } " "
                span.badge.deleted { (counted(shared.conflicts.len(), "conflict")) }
            }
            div.sides {
                div.side.winner {
                    p.quiet { "The winner, which readers are shown" }
                    (version(&shared.winner))
                }
                @for (number, loser) in losers() {
                    div.side {
                        p.quiet { "In conflict, number " (number + 1) }
                        (version(loser))
                    }
                }
            }
            @if shared.conflicts.len() > LOSERS_SHOWN {
                p.quiet {
                    "The first " (LOSERS_SHOWN) " are shown; what you decide is about all of them."
                }
            }
            @for (number, loser) in losers() {
                @match contest.differences.get(number) {
                    Some(differences) => {
                        details open[number == 0] {
                            summary { "From the winner to number " (number + 1) }
                            @match differences {
                                _ if loser.deleted != shared.winner.deleted => { (deletion(loser)) },
                                Some(differences) => { (differing(differences)) },
                                None => p.note { "One of the two cannot be read, so only their texts can be looked at." },
                            }
                        }
                    },
                    None => {},
                }
            }
            @if contests.may_decide { (choices(contests, contest)) }
        }
    }
}

/// What a deletion is beside a version that lives.
fn deletion(loser: &Version<Bytes>) -> Markup {
    html! {
        p.note {
            @if loser.deleted { "It is a deletion: taken, the item goes." }
            @else { "The winner is a deletion: taken, the item lives again." }
        }
    }
}

fn differing(differences: &items::Differences) -> Markup {
    html! {
        @if differences.fields.is_empty() {
            p.note { "The two say the same: at most how it is written differs." }
        } @else { (items::differing(differences)) }
    }
}

/// A version: who made it and when, and what it says.
fn version(version: &Version<Bytes>) -> Markup {
    let topmost = version.history.topmost();
    let card = &version.data.card;
    let text = excerpt(&version.data);
    html! {
        p.title { strong { (title(version)) } @if version.deleted { " " span.badge.deleted { "deleted" } } }
        p.when.quiet {
            "Update " (version.updates.value())
            @if let Some(by) = topmost.stamp.by() { " by " strong { (by) } }
            @if let Some(when) = topmost.stamp.when() { " at " (moment(when)) }
        }
        @if card.link.is_some() || card.author.is_some() {
            p.quiet {
                @if let Some(author) = &card.author { (crate::html::text(author)) " " }
                @if let Some(link) = &card.link { (outward(Some(link), link)) }
            }
        }
        @if !text.is_empty() && !version.deleted { p.excerpt { (text) } }
    }
}

/// What can be done, each with what comes of it.
fn choices(contests: &Contests, contest: &Contest) -> Markup {
    let shared = &contest.item.shared;
    let many = shared.conflicts.len() > 1;
    let begins = plain::begins(&contest.item);
    let written = begins.map(|version| source(&version.data)).unwrap_or_default();
    let called = begins.map(|version| version.data.card.title.as_str()).unwrap_or_default();
    html! {
        form.choices method="post" action={ "/feeds/" (contests.feed) "/conflicts" } {
            input type="hidden" name="item" value=(shared.winner.id);
            input type="hidden" name="etag" value=(contest.tag);
            @if !contests.is_signed_in {
                label.token {
                    span { "Admin token" }
                    input type="password" name="token" required autocomplete="off" spellcheck="false";
                }
            }
            div.buttons {
                button name="keep" value="winner" { "Keep the winner" }
                @for (number, loser) in shared.conflicts.iter().enumerate().take(LOSERS_SHOWN) {
                    button name="keep" value=(number) {
                        @if loser.deleted { "Take the deletion, number " (number + 1) }
                        @else { "Take number " (number + 1) }
                    }
                }
            }
            p.quiet {
                "Keep the winner: it stays as it is, and the " @if many { "others go" } @else { "other goes" } ". "
                "Take a number: the item says what that version says. "
                "Either way a new version is made that knows of all of them, so that no endpoint sees a \
                 conflict in them any more. What the others said is not kept here."
            }
            @if !plain::is_outline(&contest.item) {
                details {
                    summary { "Write a new one" }
                    label { span { "Title" } input type="text" name="title" value=(called); }
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

/// What came of a choice that could not be done.
pub(super) fn refused(feed: &str, said: &str) -> Markup {
    html! {
        p.note role="alert" { (text(said)) "." }
        p { "Nothing was changed." }
        p.links { a href={ "/feeds/" (feed) "/conflicts" } { "Back to the conflicts" } }
    }
}

/// The text of a version as it can be written anew.
#[derive(Default)]
pub(super) struct EditableText {
    pub(super) text: String,
    pub(super) is_html: bool,
}

pub(super) fn source(markup: &Bytes) -> EditableText {
    const TEXTS: [&str; 6] =
        ["content", "content:encoded", "content_html", "description", "summary", "content_text"];
    let fields = tidegate_format::parse::again(markup).unwrap_or_default();
    let is_said = |field: &&Field<'_>| !field.value.trim().is_empty();
    let find = |path: &&str| fields.iter().filter(is_said).find(|field| field.path == **path);
    let Some(field) = TEXTS.iter().find_map(find) else { return EditableText::default() };
    let is_html = plain::is_html(&field.path, &fields);
    if field.value.len() > PREFILLED {
        return EditableText { text: String::new(), is_html };
    }
    let text = plain::written(markup, field).unwrap_or_else(|| field.value.clone().into_owned());
    EditableText { text, is_html }
}

/// The beginning of the text that a reader sees of a version.
pub(crate) fn excerpt(markup: &Bytes) -> String {
    let source = source(markup);
    let whole = if source.is_html { visible(&source.text) } else { source.text };
    let mut shown: String = whole.chars().take(EXCERPT).collect();
    if shown.len() < whole.len() {
        shown.push('…');
    }
    shown
}

fn title(version: &Version<Bytes>) -> String {
    match version.data.card.title.as_str() {
        "" => "without a title".to_owned(),
        title => text(title),
    }
}
