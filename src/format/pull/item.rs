//! The items of a replica, and what a pull did to them.

use crate::parse::sse::{KeptConflict, Payload, SseDialect, SseItem, converted};
use std::collections::{HashMap, HashSet};
use tidegate_core::model::Shared;
use tidegate_core::sync::{Canonical, Item091, to_091};

/// An item of a feed file, by the kind of its sync markup.
#[derive(Debug, Clone)]
pub(super) enum ReplicaItem {
    /// Of SSE 1.0 or FeedSync.
    Sse(Shared<Payload>),
    /// Of SSE 0.91.
    Sse091(Item091<Payload, KeptConflict>),
    /// Without any.
    Plain(Payload),
}

impl ReplicaItem {
    /// What it says.
    pub(super) const fn payload(&self) -> &Payload {
        match self {
            Self::Sse(shared) => &shared.winner.data,
            Self::Sse091(item) => &item.data,
            Self::Plain(payload) => payload,
        }
    }

    /// What identifies it: its sync id; of a plain one what [`identity`] says.
    pub(super) fn key(&self) -> String {
        match self {
            Self::Sse(shared) => shared.winner.id.to_string(),
            Self::Sse091(item) => item.id.to_string(),
            Self::Plain(payload) => identity(payload),
        }
    }

    /// What an item of a feed file shares; `None` where it takes no part in synchronization or its
    /// markup is invalid.
    pub(super) fn shared(item: &SseItem) -> Option<Self> {
        match (&item.shared, &item.shared_091) {
            (Some(shared), _) => shared.clone().ok().map(Self::Sse),
            (None, Some(shared)) => shared.clone().ok().map(Self::Sse091),
            (None, None) => None,
        }
    }

    /// What it shares in SSE 1.0.
    pub(super) fn into_sse(self) -> Option<Shared<Payload>> {
        match self {
            Self::Sse(shared) => Some(shared),
            Self::Sse091(item) => Some(converted(item)),
            Self::Plain(_) => None,
        }
    }

    /// The item as one of a dialect.
    pub(super) fn into_dialect(self, dialect: Option<SseDialect>) -> Self {
        match (self, dialect) {
            (Self::Sse(shared), Some(SseDialect::Sse091)) => {
                Self::Sse091(to_091(shared, |lost| KeptConflict::Item(Box::new(lost))))
            }
            (Self::Sse091(item), Some(SseDialect::Sse | SseDialect::FeedSync)) => {
                Self::Sse(converted(item))
            }
            (same, _) => same,
        }
    }

    /// Whether it is a tombstone.
    pub(super) const fn is_deleted(&self) -> bool {
        match self {
            Self::Sse(shared) => shared.winner.deleted,
            Self::Sse091(item) => item.deleted,
            Self::Plain(_) => false,
        }
    }
}

/// The identity of an entry (Feed History draft-05 section 6): its `atom:id` or `guid`; where it has
/// none its link, and where it has none either all that it says.
pub(super) fn identity(payload: &Payload) -> String {
    let values = &payload.values;
    match (&values.id, &values.link) {
        (Some(id), _) => id.clone(),
        (None, Some(link)) => link.clone(),
        (None, None) => String::from_utf8_lossy(payload.canonical()).into_owned(),
    }
}

/// What happened to an item of the replica.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ChangeKind {
    /// It was not there before.
    New,
    /// It says something else.
    Changed,
    /// Its publisher deleted it.
    Deleted,
    /// It was deleted and lives again.
    Restored,
    /// Its publisher has no record of it any more.
    Forgotten,
}

impl ChangeKind {
    /// All kinds.
    pub const ALL: [Self; 5] =
        [Self::New, Self::Changed, Self::Deleted, Self::Restored, Self::Forgotten];

    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Changed => "changed",
            Self::Deleted => "deleted",
            Self::Restored => "restored",
            Self::Forgotten => "forgotten",
        }
    }
}

/// An item that a pull changed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ItemChange {
    /// What happened.
    pub kind: ChangeKind,
    /// The item's sync id, or its own id in a plain feed.
    pub id: String,
    /// Its title, where it has one.
    pub title: Option<String>,
}

/// What is different between two states of a replica, in the order of the later one. `deleted`:
/// the entries of a plain feed that are said to be deleted.
pub(super) fn changes(
    before: &[ReplicaItem],
    after: &[ReplicaItem],
    deleted: &HashSet<String>,
) -> Vec<ItemChange> {
    let mut old: HashMap<String, &ReplicaItem> =
        before.iter().map(|item| (item.key(), item)).collect();
    let mut changes = Vec::new();
    for item in after {
        let id = item.key();
        let kind = match (old.remove(&id), item.is_deleted()) {
            (None, false) => ChangeKind::New,
            // It came and went between two pulls.
            (None, true) => continue,
            (Some(was), true) if was.is_deleted() => continue,
            (Some(_), true) => ChangeKind::Deleted,
            (Some(was), false) if was.is_deleted() => ChangeKind::Restored,
            (Some(was), false) if was.payload() == item.payload() => continue,
            (Some(_), false) => ChangeKind::Changed,
        };
        changes.push(ItemChange { kind, id, title: item.payload().values.title.clone() });
    }
    for item in before.iter().filter(|item| !item.is_deleted()) {
        let id = item.key();
        if old.remove(&id).is_some() {
            let said = deleted.contains(&id);
            let kind = if said { ChangeKind::Deleted } else { ChangeKind::Forgotten };
            changes.push(ItemChange { kind, id, title: item.payload().values.title.clone() });
        }
    }
    changes
}
