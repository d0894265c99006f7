//! Items that are made here, and conflicts that a person resolves: what somebody asks for, to one
//! commit (SSE 1.0 sections 3.1, 3.2 and 3.4).
//!
//! What becomes of `sx:sync` is decided by [`tidegate_core::sync`] alone. An update is that of FeedSync
//! section 3.2: it takes this endpoint's own conflicting versions into its history. Items that
//! somebody else writes cannot be changed here, but what is in conflict with them can be resolved.

mod open;
mod policy;
#[cfg(test)]
mod tests;
mod written;

pub(super) use open::begin;
pub use open::open;
pub use policy::{TURNS, settle_by_policy};
pub use written::{CheckedEntry, EntryError, EntryFields};

use super::draft::{ChangeDraft, EventDetails};
use super::mint::NewIds;
use super::newcomer::{describe, quote, resemble};
use super::{ITEMS_LIMIT, Observation, Verdict};
use crate::news;
use crate::same_item;
use tidegate_core::model::{
    Count, EventKind, FeedName, Format, ItemStatus, LedgerEntry, Markup, Origin, Shared, Snapshot,
    SyncId, Tick, ValueError, Version,
};
use tidegate_core::sync::{self, Choice, SyncError};
use tidegate_format::parse::Amendment;
use xxhash_rust::xxh3::Xxh3;

/// What somebody wants to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Act {
    /// A new item (section 3.1). `noconflicts` is said now or never (section 2.4).
    Create {
        entry: CheckedEntry,
        /// Whether its conflicts are dropped by everybody.
        noconflicts: Option<bool>,
    },
    /// Another version of an item (section 3.2).
    Change {
        id: SyncId,
        how: ItemAct,
        /// How often it was updated, as far as the author knows.
        expected: Option<Count>,
    },
    /// Conflicts are resolved (section 3.4).
    Resolve {
        id: SyncId,
        /// What is kept.
        keep: Resolution,
        /// The conflicts that this is about, counted from 0; all of them where nothing is said.
        conflicts: Option<Vec<usize>>,
        /// The [`tag`] of what was looked at.
        expected: Option<String>,
    },
}

/// What is to become of an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ItemAct {
    /// It says something else.
    Update(CheckedEntry),
    /// It becomes a tombstone.
    Delete,
    /// A tombstone lives again with what it said last, or with a new text.
    Restore(Option<CheckedEntry>),
}

/// What an item shall say when its conflicts are resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resolution {
    /// What it says now.
    Winner,
    /// What the conflict of this number says, counted from 0.
    Conflict(usize),
    /// Something new.
    New(CheckedEntry),
}

impl Act {
    /// The item that it is about; a new one has none yet.
    pub const fn id(&self) -> Option<&SyncId> {
        match self {
            Self::Create { .. } => None,
            Self::Change { id, .. } | Self::Resolve { id, .. } => Some(id),
        }
    }
}

/// What was done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Acted {
    pub id: SyncId,
    /// How often it was updated.
    pub updates: Count,
    /// The tick of its version.
    pub tick: Tick,
    pub deleted: bool,
    /// How many versions are still in conflict with it.
    pub conflicts: u32,
}

/// Why nothing was done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ActError {
    #[error("the feed {0} has no item of that sync id")]
    Unknown(FeedName),
    /// The feed, or the item, is somebody else's.
    #[error(
        "the items of the feed {0} come from its upstream; only what was made here, and the items \
         of a feed with local = true, can be changed here"
    )]
    NotLocal(FeedName),
    #[error("the text of this item was removed here for good, so it cannot be changed any more")]
    Redacted,
    #[error("the id {id:?} is that of the item {item}; change that one, or give another id")]
    Taken { id: String, item: SyncId },
    #[error("the item is deleted; restore it first")]
    Deleted,
    #[error("the item is not deleted, so there is nothing to restore")]
    Lives,
    #[error("the item was updated meanwhile: it is at {found}, not at {expected}; look again")]
    Stale {
        /// What the author knew of.
        expected: String,
        /// What it is.
        found: String,
    },
    #[error("no version is in conflict with this item any more")]
    NoConflict,
    #[error(transparent)]
    Sync(#[from] SyncError),
    /// The entry is not as it must be.
    #[error(transparent)]
    Entry(#[from] EntryError),
    /// No id can be made for it.
    #[error("no id can be made for it: {0}")]
    Id(#[from] ValueError),
    #[error("the feed has {ITEMS_LIMIT} items, which is the limit; purge it or begin another")]
    Full,
}

/// A version as the algebra sees it here. `None`: it has the newest bytes that the item has.
type Own = Shared<Option<Markup>>;

/// Does what is asked, or says why not. The verdict has a change in it.
pub fn act(observation: &Observation<'_>, act: &Act) -> Result<(Verdict, Acted), ActError> {
    if let Act::Create { entry, noconflicts } = act {
        return create(observation, entry, *noconflicts);
    }
    let unknown = || ActError::Unknown(observation.feed.clone());
    let (Some(snapshot), Some(id)) = (observation.snapshot, act.id()) else {
        return Err(unknown());
    };
    let index = snapshot.position(id).ok_or_else(unknown)?;
    let known = snapshot.known.get(index).ok_or_else(unknown)?;
    if known.is_redacted() {
        return Err(ActError::Redacted);
    }
    let at = At { observation, snapshot, index, known };
    match act {
        Act::Change { how, expected, .. } => at.change(how, *expected),
        Act::Resolve { keep, conflicts, expected, .. } => {
            at.resolve(keep, conflicts.as_deref(), expected.as_deref())
        }
        Act::Create { .. } => Err(unknown()),
    }
}

/// What a person who looks at an item's conflicts sees of them, in a few characters: as long as it
/// is the same, a decision is about what was seen.
pub fn tag<D>(item: &Shared<D>) -> String {
    let mut hash = Xxh3::new();
    for version in std::iter::once(&item.winner).chain(&item.conflicts) {
        let seen = (version.updates, version.history.topmost(), version.deleted);
        hash.update(format!("{seen:?}").as_bytes());
    }
    format!("{:016x}", hash.digest())
}

fn create(
    observation: &Observation<'_>,
    entry: &CheckedEntry,
    noconflicts: Option<bool>,
) -> Result<(Verdict, Acted), ActError> {
    if !observation.options.sharing.local {
        return Err(ActError::NotLocal(observation.feed.clone()));
    }
    let first = Snapshot::untouched(Format::Atom10, observation.now);
    let snapshot = observation.snapshot.unwrap_or(&first);
    if snapshot.known.len() >= ITEMS_LIMIT {
        return Err(ActError::Full);
    }
    let mut draft = ChangeDraft::new(observation, snapshot);
    if observation.snapshot.is_none() {
        open::begin(&mut draft);
    }
    let (known, markup) = entry.read(observation.now, |format, entry| {
        if let Some(id) = entry.native_id.as_deref() {
            let bears = |known: &&LedgerEntry| known.native_shown == id || known.published_id == id;
            if let Some(other) = snapshot.known.iter().find(bears) {
                return Err(ActError::Taken { id: id.to_owned(), item: other.id.clone() });
            }
        }
        let native = same_item::native(entry);
        let known = NewIds::new(&draft).newcomer(&draft, entry, &native)?;
        Ok((known, tidegate_format::parse::markup_of(format, entry)))
    })??;
    let known = LedgerEntry { noconflicts, origin: Origin::Local, ..known };
    let id = known.id.clone();
    let index = draft.create(known, markup, EventDetails::new(EventKind::Created, "made here"));
    on_top(&mut draft, &id);
    done(draft, index)
}

/// An item that something is to be done about.
struct At<'a> {
    observation: &'a Observation<'a>,
    snapshot: &'a Snapshot,
    index: usize,
    known: &'a LedgerEntry,
}

impl At<'_> {
    /// Whether it may be changed here, is as its author knows it, and is a tombstone as wanted.
    fn check(&self, expected: Option<Count>, is_tombstone: bool) -> Result<(), ActError> {
        if !self.observation.options.sharing.local && self.known.origin != Origin::Local {
            return Err(ActError::NotLocal(self.observation.feed.clone()));
        }
        let found = self.known.updates;
        if let Some(expected) = expected.filter(|expected| *expected != found) {
            return Err(ActError::Stale {
                expected: format!("update {}", expected.value()),
                found: format!("update {}", found.value()),
            });
        }
        match (self.known.is_deleted(), is_tombstone) {
            (true, false) => Err(ActError::Deleted),
            (false, true) => Err(ActError::Lives),
            _ => Ok(()),
        }
    }

    /// What the algebra works with.
    fn shared(&self, draft: &ChangeDraft<'_>) -> Own {
        let conflicts = draft.conflicts_of(&self.known.id);
        Shared { winner: self.known.version(None), conflicts }
    }

    /// Another version, with a new text where there is one.
    fn change(&self, how: &ItemAct, expected: Option<Count>) -> Result<(Verdict, Acted), ActError> {
        self.check(expected, matches!(how, ItemAct::Restore(_)))?;
        let (kind, reason, entry) = match how {
            ItemAct::Update(entry) => (EventKind::Updated, "changed here", Some(entry)),
            ItemAct::Delete => (EventKind::Deleted, "deleted here", None),
            ItemAct::Restore(None) => (EventKind::Undeleted, "restored here", None),
            ItemAct::Restore(Some(entry)) => {
                (EventKind::Undeleted, "restored here with a new text", Some(entry))
            }
        };
        let mut draft = ChangeDraft::new(self.observation, self.snapshot);
        let mut item = self.shared(&draft);
        let markup = entry.map(|entry| self.record_entry(&mut draft, entry)).transpose()?;
        match how {
            ItemAct::Update(_) => sync::update(&mut item, markup, draft.stamp())?,
            ItemAct::Delete => sync::delete(&mut item, draft.stamp())?,
            ItemAct::Restore(_) => sync::restore(&mut item, markup, draft.stamp())?,
        }
        self.commit(&mut draft, item, EventDetails::new(kind, reason));
        done(draft, self.index)
    }

    /// Notes in the ledger what an entry says, and answers its bytes.
    fn record_entry(
        &self,
        draft: &mut ChangeDraft<'_>,
        entry: &CheckedEntry,
    ) -> Result<Markup, ActError> {
        let markup = entry.read(self.observation.now, |format, entry| {
            // What a publisher's document is compared with stays what that document said.
            let is_ours = self.known.origin.is_shared();
            draft.change(self.index, |item| match is_ours {
                true => {
                    resemble(item, entry, self.observation);
                    item.bytes = news::hash_entry(entry);
                }
                false => describe(item, entry),
            });
            tidegate_format::parse::markup_of(format, entry)
        })?;
        Ok(markup)
    }

    fn resolve(
        &self,
        keep: &Resolution,
        meant: Option<&[usize]>,
        expected: Option<&str>,
    ) -> Result<(Verdict, Acted), ActError> {
        let mut draft = ChangeDraft::new(self.observation, self.snapshot);
        let mut item = self.shared(&draft);
        if item.conflicts.is_empty() {
            return Err(ActError::NoConflict);
        }
        let found = tag(&item);
        if let Some(expected) = expected.filter(|expected| **expected != found) {
            return Err(ActError::Stale { expected: expected.to_owned(), found });
        }
        let all: Vec<usize> = (0..item.conflicts.len()).collect();
        let meant = meant.unwrap_or(&all);
        let (before, was_deleted) = (item.conflicts.clone(), item.winner.deleted);
        let choice = match keep {
            Resolution::Winner => Choice::Winner,
            Resolution::Conflict(number) => Choice::Conflict(*number),
            Resolution::New(entry) => Choice::New(Some(self.record_entry(&mut draft, entry)?)),
        };
        sync::resolve(&mut item, choice, meant, draft.stamp())?;
        if let Resolution::Conflict(number) = keep
            && let Some(markup) = before.get(*number).and_then(|version| version.data.as_ref())
        {
            // It says something else from now on, and says so where it has a date for that.
            let dated = Amendment { updated: Some(self.observation.now), ..Amendment::default() };
            let dated = tidegate_format::parse::amended_markup(markup, &dated);
            let markup = dated.as_ref().unwrap_or(markup);
            draft.change(self.index, |item| quote(item, markup));
            item.winner.data = Some(markup.clone());
        }
        if item.winner.deleted {
            // A tombstone keeps the last bytes that the item had.
            item.winner.data = None;
        }
        let kind = match (was_deleted, item.winner.deleted) {
            (false, true) => EventKind::Deleted,
            (true, false) => EventKind::Undeleted,
            _ => EventKind::Updated,
        };
        let reason = resolution(keep, &before, item.conflicts.len());
        self.commit(&mut draft, item, EventDetails::new(kind, reason));
        done(draft, self.index)
    }

    /// Makes a version of what the algebra made of the item.
    fn commit(&self, draft: &mut ChangeDraft<'_>, item: Own, details: EventDetails) {
        let is_deleted = item.winner.deleted;
        let standing = match (&self.known.standing, is_deleted) {
            (ItemStatus::Retired { .. } | ItemStatus::Older { .. }, false) => {
                self.known.standing.clone()
            }
            (_, false) => ItemStatus::Current,
            (_, true) if self.known.is_deleted() => self.known.standing.clone(),
            (_, true) => ItemStatus::Deleted { since: self.observation.now },
        };
        let comes = standing == ItemStatus::Current && self.known.is_deleted();
        draft.put_shared_version(self.index, item, standing, details);
        if is_deleted {
            draft.take_out_of_view(&self.known.id);
        } else if comes {
            draft.change(self.index, |item| item.came = self.observation.running_now);
            on_top(draft, &self.known.id);
        }
    }
}

fn done(draft: ChangeDraft<'_>, index: usize) -> Result<(Verdict, Acted), ActError> {
    let unknown = || ActError::Unknown(draft.observation.feed.clone());
    let known = draft.item(index).ok_or_else(unknown)?;
    let acted = Acted {
        id: known.id.clone(),
        updates: known.updates,
        tick: known.tick,
        deleted: known.is_deleted(),
        conflicts: known.conflicts,
    };
    let mut draft = draft;
    draft.advance_window();
    Ok((draft.into_verdict(None), acted))
}

/// Why a version was made, for people.
fn resolution(keep: &Resolution, before: &[Version<Option<Markup>>], left: usize) -> String {
    let by = |version: &Version<Option<Markup>>| {
        version.history.topmost().stamp.by().map_or_else(String::new, |by| format!(" by {by}"))
    };
    let resolved = before.len().saturating_sub(left);
    let of = if resolved == 1 { "a version".to_owned() } else { format!("{resolved} versions") };
    let rest = match left {
        0 => String::new(),
        left => format!("; {left} more stay in conflict"),
    };
    let kept = match keep {
        Resolution::Winner => "the winner was kept".to_owned(),
        Resolution::Conflict(number) => {
            let by = before.get(*number).map(by).unwrap_or_default();
            format!("a version{by} that had lost was taken")
        }
        Resolution::New(_) => "a new text was written".to_owned(),
    };
    format!("a conflict with {of} was resolved: {kept}{rest}")
}

/// Puts an item on top of the reader view.
fn on_top(draft: &mut ChangeDraft<'_>, id: &SyncId) {
    let rest = draft.old_order().iter().filter(|other| *other != id).cloned();
    draft.set_order(std::iter::once(id.clone()).chain(rest).collect());
}
