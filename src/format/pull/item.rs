//! The items of feeds that are merged, and of a replica, and what a pull did to them.

use super::FeedFault;
use crate::parse::{self, collection};
use crate::render::{Bases, KeptItem, KeptItems};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use tidegate_core::model::{
    Entry, EntrySync, FeedDocument, Field, Format, Incoming, Markup, Shared, SyncExtras, SyncId,
    Version,
};
use tidegate_core::sync::{self, By091, Canonical};
use url::Url;
use xxhash_rust::xxh3::Xxh3;

/// What a version of an item says. Two are equal where a reader would see the same.
#[derive(Debug, Clone)]
pub struct ItemData {
    pub markup: Markup,
    /// What its `sx:sync` says beyond SSE (section 2.1.8), where it says anything.
    extras: Option<Arc<SyncExtras>>,
    print: [u8; 8],
}

impl PartialEq for ItemData {
    fn eq(&self, other: &Self) -> bool {
        self.print == other.print
    }
}

impl Eq for ItemData {}

impl Canonical for ItemData {
    fn canonical(&self) -> &[u8] {
        &self.print
    }
}

impl ItemData {
    /// What an entry with these fields says, of a document about the page `channel` that came from
    /// `url`.
    fn new(markup: Markup, fields: &[Field<'_>], channel: Option<&str>, url: Option<&Url>) -> Self {
        let mut markup = match url {
            Some(url) => Bases { document: url.as_str(), channel }.stand_alone(markup),
            None => markup,
        };
        // The outlines of a list come as entries of Atom.
        if markup.format == Format::Opml {
            markup.format = Format::Atom10;
        }
        let mut print = Xxh3::new();
        for part in fields.iter().flat_map(|field| [&field.path, &field.value]) {
            print.update(part.as_bytes());
            print.update(&[0]);
        }
        Self { markup, extras: None, print: print.digest().to_be_bytes() }
    }
}

/// An item of a collection as a replica has it, which is a feed: as an entry of Atom, with the id and the date of its
/// version where it has none. `None` for what is in a feed already, or stays in a collection.
fn in_atom<D>(markup: &Markup, version: Option<&Version<D>>, url: Option<&Url>) -> Option<Markup> {
    url.filter(|_| markup.format == Format::Collection)?;
    let id = version.map(|version| collection::id_of_sync(version.id.as_str()));
    let changed = version.and_then(|version| version.history.topmost().stamp.when());
    collection::as_atom(markup, id.as_deref(), changed)
}

/// A shared item.
#[derive(Debug, Clone)]
pub struct SharedItem {
    pub item: Shared<ItemData>,
    /// Where it is known by SSE 0.91 alone: its `conflict` attribute.
    pub sse091: Option<bool>,
}

impl SharedItem {
    /// The same to be written.
    pub fn kept(&self) -> KeptItem {
        let version = |version: &Version<ItemData>| version.with(version.data.markup.clone());
        let Shared { winner, conflicts } = &self.item;
        let conflicts = conflicts.iter().map(version).collect();
        KeptItem {
            shared: Shared { winner: version(winner), conflicts },
            extras: winner.data.extras.as_deref().cloned(),
            is_contested: self.sse091 == Some(true),
        }
    }
}

/// An item of a feed file.
#[derive(Debug, Clone)]
pub enum ReplicaItem {
    /// One with sync markup.
    Shared(SharedItem),
    /// One without, and what it is known by.
    Plain { key: String, data: ItemData },
}

impl ReplicaItem {
    /// The items of a document that came from `url`; for each whose sync markup is not valid, what
    /// is wrong.
    pub fn all(
        document: &FeedDocument<'_>,
        url: Option<&Url>,
    ) -> impl Iterator<Item = Result<Self, FeedFault>> {
        document.entries.iter().map(move |entry| match &entry.sync {
            Some(EntrySync::Valid(said)) => Ok(Self::new(document, entry, Some(said), url)),
            Some(EntrySync::Invalid(error)) => Err(FeedFault::of_sync(document.text, error)),
            None => Ok(Self::new(document, entry, None, url)),
        })
    }

    /// An entry. One without sync markup is known by its `atom:id` or `guid` (Feed History draft-05
    /// section 6); where it has none by its link, and where it has none either by all that it says.
    fn new(
        document: &FeedDocument<'_>,
        entry: &Entry<'_>,
        said: Option<&Incoming>,
        url: Option<&Url>,
    ) -> Self {
        let channel = document.skeleton.link.as_deref();
        let markup = parse::own(document, entry);
        let mut data = match in_atom(&markup, said.map(|said| &said.version), url) {
            Some(atom) => {
                ItemData::new(atom.clone(), &parse::again(&atom).unwrap_or_default(), channel, url)
            }
            None => ItemData::new(markup, entry.fields(), channel, url),
        };
        let Some(said) = said else {
            let known = entry.native_id.as_deref().or(entry.link.as_deref());
            let print = || format!("{:x}", u64::from_be_bytes(data.print));
            return Self::Plain { key: known.map_or_else(print, str::to_owned), data };
        };
        data.extras = (!said.extras.is_empty()).then(|| Arc::new(said.extras.clone()));
        let lost = |lost: &Version<Markup>| {
            let markup = in_atom(&lost.data, Some(lost), url).unwrap_or_else(|| lost.data.clone());
            let fields = parse::again(&markup).unwrap_or_default();
            lost.with(ItemData::new(markup, &fields, channel, url))
        };
        let conflicts = said.conflicts.iter().map(lost).collect();
        let item = Shared { winner: said.version.with(data), conflicts };
        Self::Shared(SharedItem { item, sse091: said.sse091 })
    }

    /// What it says.
    pub const fn data(&self) -> &ItemData {
        match self {
            Self::Shared(shared) => &shared.item.winner.data,
            Self::Plain { data, .. } => data,
        }
    }

    /// What identifies it.
    pub fn key(&self) -> &str {
        match self {
            Self::Shared(shared) => shared.item.winner.id.as_str(),
            Self::Plain { key, .. } => key,
        }
    }

    /// Whether it is a tombstone.
    pub const fn is_deleted(&self) -> bool {
        matches!(self, Self::Shared(shared) if shared.item.winner.deleted)
    }

    /// Its title, where it has one.
    pub fn title(&self) -> Option<String> {
        Some(self.data().markup.card.title.clone()).filter(|title| !title.is_empty())
    }

    /// What it shares.
    pub fn into_shared(self) -> Option<SharedItem> {
        match self {
            Self::Shared(shared) => Some(shared),
            Self::Plain { .. } => None,
        }
    }

    /// Adds it to a feed.
    pub fn push(&self, out: &mut String, items: &KeptItems<'_>) {
        match self {
            Self::Shared(shared) => items.push(out, &shared.kept()),
            Self::Plain { key, data } => {
                let card = &data.markup.card;
                items.push_plain(out, &data.markup, key, card.updated.or(card.published));
            }
        }
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
pub struct PulledChange {
    /// What happened.
    pub kind: ChangeKind,
    /// The item's sync id, or its own id in a plain feed.
    pub id: String,
    /// Its title, where it has one.
    pub title: Option<String>,
}

/// What is different between two states of a replica, in the order of the later one. `deleted`:
/// the entries of a plain feed that are said to be deleted.
pub fn changes(
    before: &[ReplicaItem],
    after: &[ReplicaItem],
    deleted: &HashSet<String>,
) -> Vec<PulledChange> {
    let change = |kind, item: &ReplicaItem| PulledChange {
        kind,
        id: item.key().to_owned(),
        title: item.title(),
    };
    let mut old: HashMap<&str, &ReplicaItem> =
        before.iter().map(|item| (item.key(), item)).collect();
    let mut changes = Vec::new();
    for item in after {
        let kind = match (old.remove(item.key()), item.is_deleted()) {
            (None, false) => ChangeKind::New,
            // It came and went between two pulls.
            (None, true) => continue,
            (Some(was), true) if was.is_deleted() => continue,
            (Some(_), true) => ChangeKind::Deleted,
            (Some(was), false) if was.is_deleted() => ChangeKind::Restored,
            (Some(was), false) if was.data() == item.data() => continue,
            (Some(_), false) => ChangeKind::Changed,
        };
        changes.push(change(kind, item));
    }
    for item in before.iter().filter(|item| !item.is_deleted()) {
        if old.remove(item.key()).is_some() {
            let said = deleted.contains(item.key());
            let kind = if said { ChangeKind::Deleted } else { ChangeKind::Forgotten };
            changes.push(change(kind, item));
        }
    }
    changes
}

/// Merges an incoming set of items into the local one: by section 4.4 of SSE 0.91 where all are of
/// that dialect, else by section 3.3 of SSE 1.0. The local items keep their order; new ones follow
/// in that of the incoming set. Answers which ones are not as they were.
pub fn merge_sets(items: &mut Vec<SharedItem>, incoming: Vec<SharedItem>) -> Vec<bool> {
    let is_091 = items.iter().chain(&incoming).all(|item| item.sse091.is_some());
    let placed = items.iter().zip(0..).map(|(item, at)| (item.item.winner.id.clone(), at));
    let mut places: HashMap<SyncId, usize> = placed.collect();
    let mut changed = vec![false; items.len()];
    for item in incoming {
        let place = *places.entry(item.item.winner.id.clone()).or_insert(items.len());
        match (items.get_mut(place), changed.get_mut(place)) {
            (Some(known), Some(changed)) => {
                let merged = if is_091 { merge_091(known, item) } else { merge(known, item) };
                if let Some(merged) = merged {
                    (*known, *changed) = (merged, true);
                }
            }
            _ => {
                items.push(item);
                changed.push(true);
            }
        }
    }
    changed
}

/// What takes the place of a local item; `None` where it stays.
fn merge(local: &SharedItem, incoming: SharedItem) -> Option<SharedItem> {
    let mut incoming = incoming.item;
    keep_local_form(&mut incoming, &local.item);
    let merged = sync::merge(local.item.clone(), incoming).ok()?;
    let is_same = sync::same_item(&merged, &local.item);
    (!is_same).then_some(SharedItem { item: merged, sse091: None })
}

fn merge_091(local: &SharedItem, incoming: SharedItem) -> Option<SharedItem> {
    let known = |SharedItem { item, sse091 }| By091 { item, conflict: sse091 == Some(true) };
    let before = known(local.clone());
    let By091 { item, conflict } = sync::merge_091(before.clone(), known(incoming));
    let is_same = conflict == before.conflict && sync::same_item(&item, &before.item);
    (!is_same).then_some(SharedItem { item, sse091: Some(conflict) })
}

/// A version that LOCAL has in its own format is not replaced by the same version in another.
fn keep_local_form(incoming: &mut Shared<ItemData>, local: &Shared<ItemData>) {
    let known = || local.conflicts.iter().chain([&local.winner]);
    let format = |version: &Version<ItemData>| version.data.markup.format;
    for version in incoming.conflicts.iter_mut().chain([&mut incoming.winner]) {
        let same = known().find(|known| known.with(()) == version.with(()));
        if let Some(same) = same.filter(|same| format(same) != format(version)) {
            version.data = same.data.clone();
        }
    }
}
