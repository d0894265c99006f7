//! What `sx:sync` says of an item (SSE 1.0 sections 2.4 to 2.6), as types that cannot be wrong.

use super::{EndpointId, Markup, SyncId, Time, ValueError};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A number of updates or a sequence: 1 to 2³¹−1 (SSE 1.0 sections 2.4 and 2.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u32", into = "u32")]
pub struct Count(u32);

impl Count {
    /// The value of a new item (section 3.1).
    pub const ONE: Self = Self(1);
    /// The greatest value.
    pub const MAX: Self = Self(i32::MAX.unsigned_abs());

    /// Checks and takes a number.
    pub fn new(value: u32) -> Result<Self, ValueError> {
        if (1..=Self::MAX.0).contains(&value) {
            Ok(Self(value))
        } else {
            Err(ValueError(format!("{value} is not in 1..=2147483647")))
        }
    }

    /// The number.
    pub const fn value(self) -> u32 {
        self.0
    }

    /// One more; an error at 2³¹−1, where the item can be updated no further
    /// (READINGS 1, row 24).
    pub fn next(self) -> Result<Self, ValueError> {
        Self::new(self.0 + 1)
    }
}

impl TryFrom<u32> for Count {
    type Error = ValueError;

    fn try_from(value: u32) -> Result<Self, ValueError> {
        Self::new(value)
    }
}

impl From<Count> for u32 {
    fn from(count: Count) -> Self {
        count.value()
    }
}

/// When and by whom an update was made: at least one of the two (section 2.5).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Stamp {
    /// Both are known.
    Both {
        /// The time of the update.
        when: Time,
        /// The endpoint that made it.
        by: EndpointId,
    },
    /// Only the endpoint is known.
    By(EndpointId),
    /// Only the time is known.
    When(Time),
}

impl Stamp {
    /// The endpoint, where it is known.
    pub const fn by(&self) -> Option<&EndpointId> {
        match self {
            Self::Both { by, .. } | Self::By(by) => Some(by),
            Self::When(_) => None,
        }
    }

    /// The time, where it is known.
    pub const fn when(&self) -> Option<Time> {
        match self {
            Self::Both { when, .. } | Self::When(when) => Some(*when),
            Self::By(_) => None,
        }
    }
}

/// One `sx:history` element.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Update {
    pub sequence: Count,
    /// Its `when` and `by`.
    pub stamp: Stamp,
}

impl Update {
    /// The greatest sequence of an endpoint's own among some updates (section 3.2); `None` where it
    /// made none of them.
    pub fn greatest_by<'u>(
        by: &EndpointId,
        updates: impl IntoIterator<Item = &'u Self>,
    ) -> Option<Count> {
        let own = updates.into_iter().filter(|update| update.stamp.by() == Some(by));
        own.map(|update| update.sequence).max()
    }
}

/// The updates of an item, newest first; never empty.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct History {
    topmost: Update,
    below: Vec<Update>,
}

impl History {
    /// A history of one update.
    pub const fn new(topmost: Update) -> Self {
        Self { topmost, below: Vec::new() }
    }

    /// A history from its updates, newest first; `None` where there are none.
    pub fn from_newest_first(updates: impl IntoIterator<Item = Update>) -> Option<Self> {
        let mut updates = updates.into_iter();
        let topmost = updates.next()?;
        Some(Self { topmost, below: updates.collect() })
    }

    /// The most recent update.
    pub const fn topmost(&self) -> &Update {
        &self.topmost
    }

    /// The updates under the topmost, in their order.
    pub fn below(&self) -> &[Update] {
        &self.below
    }

    /// All updates, newest first.
    pub fn iter(&self) -> impl Iterator<Item = &Update> {
        std::iter::once(&self.topmost).chain(&self.below)
    }

    /// How many updates are kept, at least one.
    #[allow(clippy::len_without_is_empty)]
    pub const fn len(&self) -> usize {
        self.below.len() + 1
    }

    /// Puts an update on top.
    pub fn push(&mut self, update: Update) {
        let old = std::mem::replace(&mut self.topmost, update);
        self.below.insert(0, old);
    }

    /// Puts updates directly under the topmost, in the order given
    /// (section 3.4, Merging Conflict Items; READINGS 1, row 11).
    pub fn insert_below_topmost(&mut self, updates: impl IntoIterator<Item = Update>) {
        self.below.splice(0..0, updates);
    }

    /// Keeps of the updates under the topmost those for which `keep` holds.
    pub fn retain_below(&mut self, keep: impl FnMut(&Update) -> bool) {
        self.below.retain(keep);
    }
}

/// One state of a shared item: its `sx:sync` without conflicts, and its data.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Version<D> {
    /// The item that this is a version of.
    pub id: SyncId,
    /// How many updates were applied.
    pub updates: Count,
    /// Whether this is a tombstone.
    pub deleted: bool,
    /// `noconflicts` as its creator set it; kept verbatim (READINGS 1, row 16).
    pub noconflicts: Option<bool>,
    /// The update history.
    pub history: History,
    /// What the publisher says: the item's own content.
    pub data: D,
}

impl<D> Version<D> {
    /// The same state with other data.
    pub fn with<E>(&self, data: E) -> Version<E> {
        Version {
            id: self.id.clone(),
            updates: self.updates,
            deleted: self.deleted,
            noconflicts: self.noconflicts,
            history: self.history.clone(),
            data,
        }
    }
}

/// A shared item: the winning version, and the versions in conflict with it as a flat, unordered
/// list (SSE 1.0 sections 2.6 and 3.3). All have one id.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Shared<D> {
    /// The winning version.
    pub winner: Version<D>,
    /// The losing versions that nobody has resolved yet.
    pub conflicts: Vec<Version<D>>,
}

impl<D> Shared<D> {
    /// An item without conflicts.
    pub const fn new(winner: Version<D>) -> Self {
        Self { winner, conflicts: Vec::new() }
    }
}

// What a document that shares its items says of them (SSE 1.0 section 2).

/// What an entry's `sx:sync` says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntrySync {
    /// The item that the entry is a version of.
    Valid(Arc<Incoming>),
    /// Something that is no valid sync markup: the entry counts as a plain one (READINGS 1, row
    /// 18).
    Invalid(Box<SyncMarkupError>),
}

/// A version of a shared item as a document has it. What it says itself is the entry around it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Incoming {
    pub version: Version<()>,
    /// The versions in conflict with it, as a flat list.
    pub conflicts: Vec<Version<Markup>>,
    /// Where it came by SSE 0.91: its `conflict` attribute.
    pub sse091: Option<bool>,
    /// What its `sx:sync` says beyond SSE.
    pub extras: SyncExtras,
}

impl Incoming {
    /// The item.
    pub const fn id(&self) -> &SyncId {
        &self.version.id
    }
}

/// What `sx:sharing` says (SSE 1.0 section 2.2).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sharing {
    /// `since` and `until`, which stand only together; opaque.
    pub bounds: Option<(String, String)>,
    /// The absolute address of the complete feed, where it names one.
    pub complete: Option<String>,
}

// What an `sx:sync` says beyond SSE.

/// Markup in an item's `sx:sync` that SSE does not know, by an application or a later version: it
/// is kept and republished (SSE 1.0 section 2.1.8). That of the winner; a version in conflict has
/// none.
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

/// What is wrong with the `sx:sync` of an entry, as a sentence, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyncMarkupError {
    /// Byte offset.
    pub at: usize,
    pub fault: String,
    /// The id, where an earlier entry has it too, and where that begins: one may stand once in a feed.
    pub repeats: Option<(SyncId, usize)>,
}
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_keep_their_bounds() {
        assert!(Count::new(0).is_err());
        assert!(Count::new(1 << 31).is_err());
        assert_eq!(Count::ONE.next().map(Count::value), Ok(2));
        assert!(Count::MAX.next().is_err());
    }
}
