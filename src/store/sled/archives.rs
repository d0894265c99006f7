//! Archives in the trees: a note of each under its number, its number under its id, its content in
//! blocks under its number.

use super::keys;
use super::past;
use super::plan::encoded;
use super::read;
use super::shared::StoreShared;
use super::trees::{Class, Trees, Writes};
use crate::model::{
    Archive, ArchiveId, ArchiveNote, ArchivePlace, Change, FeedName, FeedState, Item, LedgerEntry,
    Markup, Revision, Skeleton, Snapshot, SyncId,
};
use crate::store::limits::{BLOCK, DROPPED_REMEMBERED};
use crate::store::record::{ArchiveNumber, ArchiveRecord, SegmentRecord};
use crate::store::{StoreError, assemble, seals};
use std::collections::{HashMap, HashSet};

/// An archive as a commit writes it: sealed, or with text taken out.
pub(super) struct Segment {
    note: ArchiveNote,
    blocks: Vec<Vec<u8>>,
}

/// The archives that a change seals or redacts, from what is stored of its base. Nothing where the
/// feed is at another revision: such a change is refused.
pub(super) fn prepare(
    trees: &Trees,
    shared: &StoreShared,
    change: &Change,
) -> Result<Vec<Segment>, StoreError> {
    if change.seals.is_empty() && change.redacted.is_empty() {
        return Ok(Vec::new());
    }
    if change.base == Revision(0) {
        return sealed(trees, change, false);
    }
    let segments = shared.reading(&change.feed, |state| {
        if state.revision != change.base {
            return Ok(None);
        }
        let mut segments = redacted(trees, change, state)?;
        segments.extend(sealed(trees, change, true)?);
        Ok(Some(segments))
    })?;
    Ok(segments.unwrap_or_default())
}

/// The segments that a change seals. `stored`: items may be those of the store.
pub(super) fn sealed(
    trees: &Trees,
    change: &Change,
    stored: bool,
) -> Result<Vec<Segment>, StoreError> {
    let source = ChangedState::of(change);
    let mut segments = Vec::with_capacity(change.seals.len());
    for seal in &change.seals {
        let Some(skeleton) = source.skeleton(trees, stored)? else { continue };
        let mut items = Vec::with_capacity(seal.items.len());
        for id in &seal.items {
            // What is not known is refused when the change is checked.
            items.extend(source.item(trees, id, stored)?);
        }
        let archive = Archive::new(seal.upstream.clone(), skeleton, items);
        let blocks = blocks(trees, &change.feed, &archive)?;
        let note = seals::note(seal, &archive, &change.state, size(&blocks));
        segments.push(Segment { note, blocks });
    }
    Ok(segments)
}

/// The archives that text is taken out of.
fn redacted(trees: &Trees, change: &Change, state: &FeedState) -> Result<Vec<Segment>, StoreError> {
    let mut segments = Vec::new();
    if change.redacted.is_empty() {
        return Ok(segments);
    }
    let borne = borne(trees, change)?;
    for number in state.archives.first..state.archives.next {
        let Some((note, count)) = note(trees, &change.feed, number)? else { continue };
        let mut archive = content(trees, &change.feed, number, count)?;
        let mut hit = false;
        for id in &change.redacted {
            hit |= archive.redact(id, change.state.updated_at, &borne);
        }
        if hit {
            let blocks = blocks(trees, &change.feed, &archive)?;
            let note = seals::redacted(&note, &archive, change.state.updated_at, size(&blocks));
            segments.push(Segment { note, blocks });
        }
    }
    Ok(segments)
}

/// The published ids of the items that live when a change is made, but for those that it redacts.
fn borne(trees: &Trees, change: &Change) -> Result<HashSet<String>, StoreError> {
    let changed: HashSet<&SyncId> = change.known.iter().map(|known| &known.id).collect();
    let mut known = change.known.clone();
    for id in past::ledger(trees, &change.feed)? {
        if !changed.contains(&id) {
            known.extend(past::known(trees, &change.feed, &id)?);
        }
    }
    known.retain(|known| !known.is_deleted() && !change.redacted.contains(&known.id));
    Ok(known.into_iter().map(|known| known.published_id).collect())
}

/// The state of a feed as a change leaves it: the change's own pieces before what is stored.
struct ChangedState<'a> {
    change: &'a Change,
    known: HashMap<&'a SyncId, &'a LedgerEntry>,
    markup: HashMap<&'a SyncId, &'a Markup>,
}

impl<'a> ChangedState<'a> {
    fn of(change: &'a Change) -> Self {
        let versions = change.versions.iter();
        let versions = versions.filter_map(|version| Some((&version.id, version.markup.as_ref()?)));
        let latest = change.latest.iter().map(|(id, markup)| (id, markup));
        Self {
            change,
            known: change.known.iter().map(|known| (&known.id, known)).collect(),
            markup: versions.chain(latest).collect(),
        }
    }

    fn skeleton(&self, trees: &Trees, stored: bool) -> Result<Option<Skeleton>, StoreError> {
        match &self.change.skeleton {
            Some(skeleton) => Ok(Some(skeleton.clone())),
            None if stored => read::skeleton(trees, &self.change.feed),
            None => Ok(None),
        }
    }

    fn item(&self, trees: &Trees, id: &SyncId, stored: bool) -> Result<Option<Item>, StoreError> {
        let known = self.known.get(id).copied();
        if let (Some(known), Some(markup)) = (known, self.markup.get(id)) {
            return Ok(Some(assemble(known.clone(), (*markup).clone(), Vec::new())));
        }
        let item = if stored { read::item(trees, &self.change.feed, id)? } else { None };
        Ok(item.map(|mut item| {
            if let Some(markup) = self.markup.get(id) {
                item.shared.winner.data = (*markup).clone();
            }
            match known {
                Some(known) => assemble(known.clone(), item.shared.winner.data, Vec::new()),
                None => item,
            }
        }))
    }
}

fn blocks(trees: &Trees, feed: &FeedName, archive: &Archive) -> Result<Vec<Vec<u8>>, StoreError> {
    let blocks = SegmentRecord::blocks(archive, BLOCK);
    let what = || format!("an archive of the feed {feed}");
    blocks.iter().map(|block| encoded(trees, block, what)).collect()
}

fn size(blocks: &[Vec<u8>]) -> u64 {
    u64::try_from(blocks.iter().map(Vec::len).sum::<usize>()).unwrap_or(u64::MAX)
}

/// Plans what a checked change does to its feed's archives, and notes in its state what they take.
pub(super) fn plan(
    trees: &Trees,
    change: &mut Change,
    segments: &[Segment],
    before: Option<&FeedState>,
    writes: &mut Writes,
) -> Result<(), StoreError> {
    let feed = change.feed.clone();
    let mut bytes = before.map_or(0, |state| state.archives.bytes);
    for segment in segments {
        let number = segment.note.number;
        if let Some((old, count)) = note(trees, &feed, number)? {
            bytes = bytes.saturating_sub(old.bytes);
            remove_blocks(trees, &feed, number, count, writes)?;
        }
        bytes = bytes.saturating_add(segment.note.bytes);
        for (block, value) in (0_u32..).zip(&segment.blocks) {
            trees.put(writes, Class::Segments, keys::block(&feed, number, block), value)?;
        }
        let id = keys::archive_id(&feed, &segment.note.id);
        let named = encoded(trees, &ArchiveNumber(number), || "an archive's number".to_owned())?;
        trees.put(writes, Class::ArchiveIds, id, &named)?;
        let count = u32::try_from(segment.blocks.len()).unwrap_or(u32::MAX);
        put_note(trees, &feed, &segment.note, count, writes)?;
    }
    let first = change.state.archives.first;
    for number in before.map_or(first, |state| state.archives.first)..first {
        if let Some((old, count)) = note(trees, &feed, number)? {
            bytes = bytes.saturating_sub(old.bytes);
            remove_blocks(trees, &feed, number, count, writes)?;
            put_note(trees, &feed, &ArchiveNote { dropped: true, ..old }, 0, writes)?;
        }
        forget(trees, &feed, number, writes)?;
    }
    change.state.archives.bytes = bytes;
    Ok(())
}

/// Forgets the archive that was dropped so long before `number` that its address need not be
/// remembered.
fn forget(
    trees: &Trees,
    feed: &FeedName,
    number: u64,
    writes: &mut Writes,
) -> Result<(), StoreError> {
    let Some(old) = number.checked_sub(DROPPED_REMEMBERED) else { return Ok(()) };
    if let Some((note, _)) = note(trees, feed, old)? {
        trees.remove(writes, Class::Archives, keys::archive(feed, old))?;
        trees.remove(writes, Class::ArchiveIds, keys::archive_id(feed, &note.id))?;
    }
    Ok(())
}

fn remove_blocks(
    trees: &Trees,
    feed: &FeedName,
    number: u64,
    count: u32,
    writes: &mut Writes,
) -> Result<(), StoreError> {
    (0..count).try_for_each(|block| {
        trees.remove(writes, Class::Segments, keys::block(feed, number, block))
    })
}

fn put_note(
    trees: &Trees,
    feed: &FeedName,
    note: &ArchiveNote,
    blocks: u32,
    writes: &mut Writes,
) -> Result<(), StoreError> {
    let what = || format!("the note of an archive of the feed {feed}");
    let record = encoded(trees, &ArchiveRecord { note: note.clone(), blocks }, what)?;
    trees.put(writes, Class::Archives, keys::archive(feed, note.number), &record)
}

/// Whether one of the ids that a change gives is given already.
pub(super) fn is_given(trees: &Trees, change: &Change) -> Result<bool, StoreError> {
    for seal in &change.seals {
        let key = keys::archive_id(&change.feed, &seal.id);
        let found = trees.tree(Class::ArchiveIds).contains_key(key);
        if found.map_err(|error| trees.failed("read", error))? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// What is noted of an archive, and how many blocks it has.
fn note(
    trees: &Trees,
    feed: &FeedName,
    number: u64,
) -> Result<Option<(ArchiveNote, u32)>, StoreError> {
    let key = keys::archive(feed, number);
    let record = trees.record::<ArchiveRecord>(Class::Archives, &key)?;
    Ok(record.map(|record| (record.note, record.blocks)))
}

/// What is noted of every archive that is remembered, by number, and how many blocks it has; none
/// where it was dropped.
pub(super) fn all(
    trees: &Trees,
    feed: &FeedName,
) -> Result<Vec<(ArchiveNote, Option<u32>)>, StoreError> {
    let mut all = Vec::new();
    for entry in trees.scan::<ArchiveRecord>(Class::Archives, keys::feed(feed)) {
        let (_, ArchiveRecord { note, blocks }) = entry?;
        all.push((note, Some(blocks).filter(|count| *count > 0)));
    }
    Ok(all)
}

pub(super) fn content(
    trees: &Trees,
    feed: &FeedName,
    number: u64,
    count: u32,
) -> Result<Archive, StoreError> {
    let mut blocks: Vec<SegmentRecord> = Vec::new();
    for block in 0..count {
        blocks.push(trees.expected(Class::Segments, &keys::block(feed, number, block))?);
    }
    let key = keys::block(feed, number, 0);
    SegmentRecord::join(blocks).map_err(|error| trees.damaged(Class::Segments, &key, error))
}

fn number(trees: &Trees, feed: &FeedName, id: &ArchiveId) -> Result<Option<u64>, StoreError> {
    let named = trees.record::<ArchiveNumber>(Class::ArchiveIds, &keys::archive_id(feed, id))?;
    Ok(named.map(|named| named.0))
}

/// The archives kept, newest first.
pub(super) fn kept(
    trees: &Trees,
    feed: &FeedName,
    state: &FeedState,
    limit: usize,
) -> Result<Vec<ArchiveNote>, StoreError> {
    let numbers = (state.archives.first..state.archives.next).rev().take(limit);
    notes(trees, feed, numbers)
}

/// The oldest archives kept, oldest first.
pub(super) fn oldest(
    trees: &Trees,
    feed: &FeedName,
    state: &FeedState,
) -> Result<Vec<ArchiveNote>, StoreError> {
    let numbers = (state.archives.first..state.archives.next).take(Snapshot::OLDEST_ARCHIVES);
    notes(trees, feed, numbers)
}

fn notes(
    trees: &Trees,
    feed: &FeedName,
    numbers: impl Iterator<Item = u64>,
) -> Result<Vec<ArchiveNote>, StoreError> {
    let mut notes = Vec::new();
    for number in numbers {
        let key = keys::archive(feed, number);
        let found = note(trees, feed, number)?;
        let (note, _) =
            found.ok_or_else(|| trees.damaged(Class::Archives, &key, "it is missing"))?;
        notes.push(note);
    }
    Ok(notes)
}

/// What is known of an archive.
pub(super) fn place(
    trees: &Trees,
    feed: &FeedName,
    id: &ArchiveId,
) -> Result<Option<ArchivePlace>, StoreError> {
    let Some(number) = number(trees, feed, id)? else { return Ok(None) };
    let Some((note, _)) = note(trees, feed, number)? else { return Ok(None) };
    let next = self::note(trees, feed, number.saturating_add(1))?;
    Ok(Some(ArchivePlace { note, next: next.map(|(next, _)| (next.id, next.sealed)) }))
}

/// The content of an archive that is kept.
pub(super) fn archive(
    trees: &Trees,
    feed: &FeedName,
    id: &ArchiveId,
) -> Result<Option<Archive>, StoreError> {
    let Some(number) = number(trees, feed, id)? else { return Ok(None) };
    match note(trees, feed, number)? {
        Some((note, count)) if !note.dropped => content(trees, feed, number, count).map(Some),
        _ => Ok(None),
    }
}
