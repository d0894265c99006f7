//! The item of a collection that an entry was made from, as its publisher wrote it (FeedSync for Collections,
//! section 2.1.7): it goes with the entry, and comes back where a collection of its kind is written.

use super::convert::read_entry;
use serde_json::{Map, Value};
use tidegate_core::model::{Family, Markup};
use tidegate_core::sync_markup::collection_item::{JSON, NAMESPACE, OF, POX, WORDS, words_hash};
use tidegate_core::xml::tree::{Element, Node};

/// An item in its publisher's terms, without its sync markup.
#[derive(Debug, Clone)]
pub enum CollectionItem {
    /// The members that it has as JSON.
    Json(Map<String, Value>),
    /// What it has as plain XML.
    Pox(Vec<Node>),
    /// Of an item as JSON whose entry was edited since: the members that the entry has no words for.
    OtherMembers(Map<String, Value>),
}

impl CollectionItem {
    /// The item of an entry; `None` where it has none, or where the entry says all that there is.
    pub fn from_entry(markup: &Markup) -> Option<Self> {
        let declares = |xml: &str| xml.contains(NAMESPACE);
        if !declares(&markup.xml) && !markup.context.namespaces.iter().any(|(_, n)| declares(n)) {
            return None;
        }
        let entry = read_entry(markup)?;
        let kept = entry.elements().find(|child| child.namespace == NAMESPACE)?;
        // The hash is that of an entry of Atom: a feed of RSS says other words.
        let is_as_made = markup.format.family() == Family::Atom
            && kept.attribute(OF) == Some(&words_hash(&entry));
        match (kept.name.as_str(), is_as_made) {
            (POX, true) => Some(Self::Pox(kept.children.clone())),
            (JSON, true) => Some(Self::Json(members(kept)?)),
            (JSON, false) => {
                let words = kept.attribute(WORDS).unwrap_or_default();
                let mut members = members(kept)?;
                members.retain(|name, _| !words.split(' ').any(|word| word == name));
                Some(Self::OtherMembers(members))
            }
            _ => None,
        }
    }
}

fn members(kept: &Element) -> Option<Map<String, Value>> {
    serde_json::from_str(&kept.content()).ok()
}
