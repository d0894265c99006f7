//! What an `sx:sync` says beyond SSE.

use super::Update;
use serde::{Deserialize, Serialize};

/// Markup in an item's `sx:sync` that SSE does not know, by an application or a later version: it is kept
/// and republished (SSE 1.0 section 2.1.8). That of the winner; a version in conflict has none.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct SyncExtras {
    /// Of `sx:sync` itself.
    pub sync: Extra,
    /// Of its `sx:history` elements, each with its update.
    pub updates: Vec<(Update, Extra)>,
}

/// Markup of one element that SSE does not know.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Extra {
    /// Attributes: namespace (`None` where they have none), local name, value.
    pub attributes: Vec<(Option<String>, String, String)>,
    /// Elements, each able to stand alone, one behind the other.
    pub elements: String,
}

impl Extra {
    /// Whether there is none.
    pub const fn is_empty(&self) -> bool {
        self.attributes.is_empty() && self.elements.is_empty()
    }

    /// How many bytes it has, about.
    pub fn size(&self) -> usize {
        let of = |(uri, name, value): &(Option<String>, String, String)| {
            uri.as_ref().map_or(0, String::len) + name.len() + value.len()
        };
        self.attributes.iter().map(of).sum::<usize>() + self.elements.len()
    }
}

impl SyncExtras {
    /// The most bytes that are kept of an item.
    pub const LIMIT: usize = 8 * 1024;

    /// Whether there is none.
    pub const fn is_empty(&self) -> bool {
        self.sync.is_empty() && self.updates.is_empty()
    }

    /// How many bytes it has, about.
    pub fn size(&self) -> usize {
        self.sync.size() + self.updates.iter().map(|(_, extra)| extra.size()).sum::<usize>()
    }

    /// That of an update.
    pub fn for_update(&self, update: &Update) -> Option<&Extra> {
        self.updates.iter().find(|(known, _)| known == update).map(|(_, extra)| extra)
    }
}
