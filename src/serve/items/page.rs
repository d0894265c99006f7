//! The HTML of items and of what differs between their versions. No scripts; everything from outside
//! is escaped by maud.

use super::compare::{Differences, FieldDifference};
use super::difference::{VersionDifference, name};
use super::text_diff::{Fate, TextPiece};
use super::{Subject, VERSIONS_SHOWN, shown_standing};
use crate::html::{self, moment, text, trail};
use maud::{Markup, PreEscaped, html};
use tidegate_core::model::{FeedName, counted, shown_size};
use tidegate_judge::{Conclusion, PendingAbsence};
use tidegate_store::VersionNote;

/// What the page of an item says to everybody.
#[derive(Debug)]
pub(crate) struct ItemContent {
    pub(super) title: String,
    /// How it stands.
    standing: String,
    rest: String,
}

impl ItemContent {
    /// How many bytes it has.
    pub(crate) fn len(&self) -> usize {
        self.title.len() + self.standing.len() + self.rest.len()
    }

    /// All of it, with what can be done between how the item stands and the rest.
    pub(super) fn with(&self, feed: &FeedName, acting: &Markup) -> Markup {
        html! {
            (trail(feed, None, "Item"))
            (PreEscaped(self.standing.as_str()))
            (acting)
            (PreEscaped(self.rest.as_str()))
        }
    }
}

/// An item with its versions; `pending`: what is to come of it, where it is missing.
pub(super) fn item(subject: &Subject, pending: Option<&PendingAbsence>) -> ItemContent {
    ItemContent {
        title: text(subject.title()),
        standing: item_standing(subject, pending).into_string(),
        rest: facts_and_versions(subject).into_string(),
    }
}

/// How an item stands, and what is open about it.
fn item_standing(subject: &Subject, pending: Option<&PendingAbsence>) -> Markup {
    let known = &subject.known;
    let (word, since) = shown_standing(known);
    html! {
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
pub(super) fn difference(subject: &Subject, difference: &VersionDifference) -> Markup {
    let (old, new) = (name(difference.old.as_ref()), name(difference.new.as_ref()));
    let address = subject.address();
    html! {
        (html::trail(&subject.feed, Some((&address, "Item")), "What changed"))
        div.sides {
            (side("From", &old, difference.old.as_ref(), &address))
            (side("To", &new, difference.new.as_ref(), &address))
        }
        @match &difference.differences {
            None => p.note {
                "One of the two cannot be read any more, so only their bytes can be looked at."
            },
            Some(differences) if differences.fields.is_empty() => p.note {
                "Nothing differs in what the two say: at most how it is written does."
            },
            Some(differences) => (fields(differences)),
        }
        p.links { (neighbours(subject, difference)) }
    }
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

/// What differs, field by field.
pub(crate) fn fields(differences: &Differences) -> Markup {
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
        @if let Some(limit) = &field.compared.limit { p.note { (limit) } }
        @if !field.compared.pieces.is_empty() {
            div.diff { @for piece in &field.compared.pieces { (a_piece(piece)) } }
        }
    } }
}

fn a_piece(piece: &TextPiece) -> Markup {
    html! {
        @match piece.fate {
            Fate::Same => (piece.text),
            Fate::Gone => del { (piece.text) },
            Fate::New => ins { (piece.text) },
            Fate::Skipped(words) => span.skipped { " … " (words) " words the same … " },
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
