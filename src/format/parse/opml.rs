//! Subscription lists: OPML 1.0, 1.1 and 2.0 as people have them, with SSE 0.91 (its section 2).
//!
//! Lists are written by hand and by programs that do not escape, so that their tags are guessed
//! where they are ill-formed ([`Doc::read_list`](tidegate_core::xml::doc::Doc::read_list)).

mod entries;
mod list;
#[cfg(test)]
mod tests;

pub use entries::{mark, transcoded};

pub(super) use entries::{MARK, within};
pub use list::{BYTES_LIMIT, read};

use std::ops::Range;
use tidegate_core::sync::By091;
use tidegate_core::xml::doc::NodeId;
use tidegate_core::xml::ns::OUTLINE;

/// What was wrong with a list, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpmlProblem {
    /// The line, counted from 1.
    pub line: usize,
    /// What is wrong, in words.
    pub message: String,
}

/// An outline.
#[derive(Debug, Clone, PartialEq)]
pub struct Outline {
    /// The outline that it stands in, by its number in the list.
    pub parent: Option<usize>,
    /// Its attributes in their order, each name once; references resolved.
    pub attributes: Vec<(String, String)>,
    /// What its `sx:sync` says, where it has one that is valid. Of a conflict the markup between the
    /// tags of its `sx:conflict` is kept.
    pub sync: Option<By091<String>>,
    /// Whether it has one that is not.
    pub has_invalid_sync: bool,
    /// Whether it, or one around it, says that it is commented out (`isComment`, OPML 2.0).
    pub is_comment: bool,
    /// Markup inside it that is neither an outline nor `sx:sync`: places in the text.
    pub other: Vec<Range<usize>>,
    /// The line where it begins, counted from 1.
    pub line: usize,
    /// Whether it has an end of its own.
    is_closed: bool,
    /// Its element, and that of `sync`, in the tree of the list.
    node: NodeId,
    sync_node: NodeId,
}

/// What an outline is to somebody who subscribes to the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutlineKind<'a> {
    /// A feed, at this address.
    Feed(&'a str),
    /// Another list that is to be read in its place (OPML 2.0, "Inclusion"), at this address.
    Include(&'a str),
    /// A link that is no feed.
    Link(&'a str),
    /// A folder or a text.
    Text,
}

/// Names that programs give the attribute of the address, beside `xmlUrl`.
const ADDRESSES: [&str; 3] = ["xmlurl", "feedurl", "rssurl"];

impl Outline {
    /// The value of an attribute, whatever the case of its name.
    pub fn attribute(&self, name: &str) -> Option<&str> {
        let found = self.attributes.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    fn filled(&self, name: &str) -> Option<&str> {
        self.attribute(name).map(str::trim).filter(|value| !value.is_empty())
    }

    /// Its title: `title`, else `text`.
    pub fn title(&self) -> Option<&str> {
        self.filled("title").or_else(|| self.filled("text"))
    }

    /// Its text: `text`, else `title`.
    pub fn text(&self) -> Option<&str> {
        self.filled("text").or_else(|| self.filled("title"))
    }

    /// The address of its site.
    pub fn site(&self) -> Option<&str> {
        self.filled("htmlUrl")
    }

    /// Its `type`.
    pub fn type_name(&self) -> Option<&str> {
        self.filled("type")
    }

    /// Whether its `sx:sync` says that it was deleted.
    pub fn is_deleted(&self) -> bool {
        self.sync.as_ref().is_some_and(|sync| sync.item.winner.deleted)
    }

    /// What it is. `xmlUrl` says that it is a feed, whatever its type; `url` does so where the type
    /// is none that OPML 2.0 gives a `url`.
    pub fn kind(&self) -> OutlineKind<'_> {
        if let Some(address) = ADDRESSES.iter().find_map(|name| self.filled(name)) {
            return OutlineKind::Feed(address);
        }
        let Some(address) = self.filled("url") else { return OutlineKind::Text };
        match self.type_name().map(str::to_ascii_lowercase).as_deref() {
            Some("include") => OutlineKind::Include(address),
            Some("link") if is_list(address) => OutlineKind::Include(address),
            Some("link") => OutlineKind::Link(address),
            _ => OutlineKind::Feed(address),
        }
    }
}

/// Whether an address ends like that of a list (OPML 2.0, `type="link"`).
fn is_list(address: &str) -> bool {
    let path = address.split(['?', '#']).next().unwrap_or_default();
    path.to_ascii_lowercase().ends_with(".opml")
}

/// What the head says of sharing (SSE 0.91 section 2.1), as it is written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OpmlSharing {
    /// Its `version`.
    pub version: String,
    /// Its `since`, where it is not empty.
    pub since: Option<String>,
    /// Its `until`, where it is not empty.
    pub until: Option<String>,
    /// The address of the complete list, where it names one (section 2.2).
    pub complete: Option<String>,
}

/// What is read of a head beside the title (OPML 2.0, "What is a `<head>`?"). How a window showed
/// the list is nobody else's business.
pub const HEAD: [&str; 6] =
    ["dateCreated", "dateModified", "ownerName", "ownerEmail", "ownerId", "docs"];

/// A list as it was read.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct OutlineList {
    /// The title in its head.
    pub title: Option<String>,
    /// What else its head says of the list and its owner, by the names of OPML 2.0 ([`HEAD`]).
    pub head: Vec<(&'static str, String)>,
    /// What its head says of sharing.
    pub sharing: Option<OpmlSharing>,
    /// Its outlines, in the order in which they begin.
    pub outlines: Vec<Outline>,
    /// What was wrong, in the order of lines.
    pub problems: Vec<OpmlProblem>,
    /// The first `sx:sync` that is not valid.
    pub invalid: Option<OpmlProblem>,
    /// Problems beyond the limit, which are not named.
    pub unnamed: usize,
    /// Prefixes and the namespaces that they are bound to anywhere in it.
    pub namespaces: Vec<(String, String)>,
    /// Whether it is there to its end, so that what is not in it is not in the list.
    pub is_whole: bool,
    /// Whether it ends within a tag, so that what the last outline says is a part of it.
    pub is_torn: bool,
    /// Where its outlines stand in the text: from the end of the tag of `body` to its end tag.
    pub body: Range<usize>,
}

impl OutlineList {
    /// The texts of the outlines around one, outermost first.
    pub fn folder(&self, outline: &Outline) -> Vec<&str> {
        let mut path = Vec::new();
        let mut next = outline.parent;
        // Each stands behind the one around it, so this ends.
        while let Some(around) = next.and_then(|number| self.outlines.get(number)) {
            path.push(around.text().unwrap_or_default());
            next = around.parent;
        }
        path.reverse();
        path
    }

    /// The value of an attribute of an outline in our own namespace ([`OUTLINE`]).
    pub fn ours<'a>(&self, outline: &'a Outline, name: &str) -> Option<&'a str> {
        let found = outline.attributes.iter().find(|(written, _)| {
            let parts = written.split_once(':');
            parts
                .is_some_and(|(prefix, local)| local == name && self.bound(prefix) == Some(OUTLINE))
        });
        found.map(|(_, value)| value.trim()).filter(|value| !value.is_empty())
    }

    /// What a prefix is bound to.
    fn bound(&self, prefix: &str) -> Option<&str> {
        let found = self.namespaces.iter().find(|(known, _)| known == prefix);
        found.map(|(_, uri)| uri.as_str())
    }
}
