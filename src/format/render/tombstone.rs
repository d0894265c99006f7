//! Deleted items: a shell that is a valid item (READINGS 1, row 19), and `at:deleted-entry`.

use super::convert::{Person, Reading, Target, Text, write_entry};
use std::fmt::Write;
use tidegate_core::model::{Deletion, Family, Markup, Version};
use tidegate_core::xml;

/// The title of an item that had none.
const UNTITLED: &str = "Deleted";
/// What stands in place of the content.
const NOTICE: &str = "This item was deleted by its publisher.";
/// The same where the operator removed the text.
const REMOVED: &str = "The text of this item was removed.";

/// The shell of a deleted version: its title, link and author, the later of its own date and that
/// of the deletion, and a notice. Nothing else of what it said is shown.
pub fn shell(
    version: &Version<Markup>,
    target: &Target<'_>,
    feed_title: &str,
    is_redacted: bool,
) -> Markup {
    let card = &version.data.card;
    let last = card.updated.max(card.published);
    let updated = version.history.topmost().stamp.when().max(last);
    let mut shell = Reading::of_card(card);
    if shell.title.trim().is_empty() {
        UNTITLED.clone_into(&mut shell.title);
    }
    if target.family == Family::Atom && shell.authors.is_empty() {
        // RFC 4287 section 4.1.2 requires one where the feed has none.
        let name = if feed_title.trim().is_empty() { UNTITLED } else { feed_title };
        shell.authors.push(Person::named(name));
    }
    shell.updated = updated;
    shell.published = match target.family {
        Family::Atom => card.published,
        // RSS has one date only.
        Family::Rss => None,
    };
    shell.content = Some(Text::Html(if is_redacted { REMOVED } else { NOTICE }.to_owned()));
    let inherited = &version.data.context;
    write_entry(&shell.element(target, updated), target, card, inherited)
}

/// Adds `at:deleted-entry` (RFC 6721 section 3).
pub fn push_deleted_entry(out: &mut String, prefix: &str, deletion: &Deletion) {
    let _ = write!(out, "<{prefix}:deleted-entry");
    xml::push_attribute(out, "ref", &deletion.published_id);
    let _ = write!(out, " when=\"{}\"/>", deletion.when);
}
