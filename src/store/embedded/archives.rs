//! Archives in the records: a note of each under its number, its number under its id, its content in
//! blocks under its number.

use super::keys;
use super::read;
use super::records::Records;
use crate::engine::{Class, Writes};
use crate::limits::{BLOCK, DROPPED_REMEMBERED};
use crate::record::{ArchiveNumber, ArchiveRecord, SegmentRecord};
use crate::{CommitError, StoreError, assemble, seals};
use std::collections::{HashMap, HashSet};
use tidegate_core::model::{
    Archive, ArchiveId, ArchiveNote, ArchivePlace, Change, FeedName, FeedState, Item, LedgerEntry,
    Markup, Skeleton, Snapshot, SyncId,
};

/// Plans what a checked change does to its feed's archives: those that it takes text out of, those that it
/// seals, and those that it drops. Answers how many bytes are kept afterwards.
pub(super) fn plan(
    records: &Records,
    change: &Change,
    before: Option<&FeedState>,
    planned: &mut Writes,
) -> Result<u64, CommitError> {
    let feed = &change.feed;
    let mut bytes = before.map_or(0, |state| state.archives.bytes);
    let mut put = |note: &ArchiveNote, blocks: Vec<Vec<u8>>| {
        let (writes, old) = segment(records, feed, note, blocks)?;
        bytes = bytes.saturating_sub(old).saturating_add(note.bytes);
        planned.extend(writes);
        Ok::<_, StoreError>(())
    };
    if let Some(state) = before.filter(|_| !change.redacted.is_empty()) {
        let borne = borne(records, change)?;
        for number in state.archives.first..state.archives.next {
            let Some((note, count)) = note(records, feed, number)? else { continue };
            let mut archive = content(records, feed, number, count)?;
            let mut hit = false;
            for id in &change.redacted {
                hit |= archive.redact(id, change.state.updated_at, &borne);
            }
            if hit {
                let blocks = blocks(records, feed, &archive)?;
                let shown = change.state.updated_at;
                put(&seals::redacted(&note, &archive, shown, size(&blocks)), blocks)?;
            }
        }
    }
    let source = ChangedState::of(change);
    for seal in &change.seals {
        let Some(skeleton) = source.skeleton(records)? else { continue };
        let mut items = Vec::with_capacity(seal.items.len());
        for id in &seal.items {
            items.extend(source.item(records, id)?);
        }
        let archive = Archive::new(seal.upstream.clone(), skeleton, items);
        let blocks = blocks(records, feed, &archive)?;
        put(&seals::note(seal, &archive, &change.state, size(&blocks)), blocks)?;
    }
    let first = change.state.archives.first;
    for number in before.map_or(first, |state| state.archives.first)..first {
        let mut writes = Writes::new();
        if let Some((old, count)) = note(records, feed, number)? {
            bytes = bytes.saturating_sub(old.bytes);
            remove_blocks(feed, number, count, &mut writes);
            put_note(records, feed, &ArchiveNote { dropped: true, ..old }, 0, &mut writes)?;
        }
        forget(records, feed, number, &mut writes)?;
        planned.extend(writes);
    }
    Ok(bytes)
}

/// The entries of an archive, and how many bytes it took before.
fn segment(
    records: &Records,
    feed: &FeedName,
    new: &ArchiveNote,
    blocks: Vec<Vec<u8>>,
) -> Result<(Writes, u64), StoreError> {
    let mut writes = Writes::new();
    let old = note(records, feed, new.number)?;
    if let Some((_, count)) = &old {
        remove_blocks(feed, new.number, *count, &mut writes);
    }
    let count = u32::try_from(blocks.len()).unwrap_or(u32::MAX);
    for (block, value) in (0_u32..).zip(blocks) {
        writes.insert((Class::Segments, keys::block(feed, new.number, block)), Some(value));
    }
    let id = keys::archive_id(feed, &new.id);
    records.put(&mut writes, Class::ArchiveIds, id, &ArchiveNumber(new.number))?;
    put_note(records, feed, new, count, &mut writes)?;
    Ok((writes, old.map_or(0, |(old, _)| old.bytes)))
}

/// The published ids of the items that live when a change is made, but for those that it redacts.
fn borne(records: &Records, change: &Change) -> Result<HashSet<String>, StoreError> {
    let changed: HashSet<&SyncId> = change.known.iter().map(|known| &known.id).collect();
    let mut known = change.known.clone();
    for id in read::ledger(records, &change.feed)? {
        if !changed.contains(&id) {
            known.extend(read::known(records, &change.feed, &id)?);
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

    fn skeleton(&self, records: &Records) -> Result<Option<Skeleton>, StoreError> {
        match &self.change.skeleton {
            Some(skeleton) => Ok(Some(skeleton.clone())),
            None => read::skeleton(records, &self.change.feed),
        }
    }

    fn item(&self, records: &Records, id: &SyncId) -> Result<Option<Item>, StoreError> {
        let known = self.known.get(id).copied();
        if let (Some(known), Some(markup)) = (known, self.markup.get(id)) {
            return Ok(Some(assemble(known.clone(), (*markup).clone(), Vec::new())));
        }
        let item = read::item(records, &self.change.feed, id)?;
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

fn blocks(
    records: &Records,
    feed: &FeedName,
    archive: &Archive,
) -> Result<Vec<Vec<u8>>, StoreError> {
    let blocks = SegmentRecord::blocks(archive, BLOCK);
    let what = || format!("an archive of the feed {feed}");
    blocks.iter().map(|block| records.encoded(block, what)).collect()
}

fn size(blocks: &[Vec<u8>]) -> u64 {
    u64::try_from(blocks.iter().map(Vec::len).sum::<usize>()).unwrap_or(u64::MAX)
}

/// Forgets the archive that was dropped so long before `number` that its address need not be
/// remembered.
fn forget(
    records: &Records,
    feed: &FeedName,
    number: u64,
    writes: &mut Writes,
) -> Result<(), StoreError> {
    let Some(old) = number.checked_sub(DROPPED_REMEMBERED) else { return Ok(()) };
    if let Some((note, _)) = note(records, feed, old)? {
        writes.insert((Class::Archives, keys::archive(feed, old)), None);
        writes.insert((Class::ArchiveIds, keys::archive_id(feed, &note.id)), None);
    }
    Ok(())
}

fn remove_blocks(feed: &FeedName, number: u64, count: u32, writes: &mut Writes) {
    for block in 0..count {
        writes.insert((Class::Segments, keys::block(feed, number, block)), None);
    }
}

fn put_note(
    records: &Records,
    feed: &FeedName,
    note: &ArchiveNote,
    blocks: u32,
    writes: &mut Writes,
) -> Result<(), StoreError> {
    records.put(
        writes,
        Class::Archives,
        keys::archive(feed, note.number),
        &ArchiveRecord { note: note.clone(), blocks },
    )
}

/// Whether one of the ids that a change gives is given already.
pub(super) fn is_given(records: &Records, change: &Change) -> Result<bool, StoreError> {
    for seal in &change.seals {
        if records.contains(Class::ArchiveIds, &keys::archive_id(&change.feed, &seal.id))? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// What is noted of an archive, and how many blocks it has.
fn note(
    records: &Records,
    feed: &FeedName,
    number: u64,
) -> Result<Option<(ArchiveNote, u32)>, StoreError> {
    let key = keys::archive(feed, number);
    let record = records.record::<ArchiveRecord>(Class::Archives, &key)?;
    Ok(record.map(|record| (record.note, record.blocks)))
}

/// What is noted of every archive that is remembered, by number, and how many blocks it has; none
/// where it was dropped.
pub(super) fn all(
    records: &Records,
    feed: &FeedName,
) -> Result<Vec<(ArchiveNote, Option<u32>)>, StoreError> {
    let mut all = Vec::new();
    for entry in records.scan::<ArchiveRecord>(Class::Archives, &keys::feed(feed)) {
        let (_, ArchiveRecord { note, blocks }) = entry?;
        all.push((note, Some(blocks).filter(|count| *count > 0)));
    }
    Ok(all)
}

fn content(
    records: &Records,
    feed: &FeedName,
    number: u64,
    count: u32,
) -> Result<Archive, StoreError> {
    let mut blocks: Vec<SegmentRecord> = Vec::new();
    for block in stored_blocks(records, feed, number, count)? {
        blocks.push(block?);
    }
    let key = keys::block(feed, number, 0);
    SegmentRecord::join(blocks).map_err(|error| records.damaged(Class::Segments, &key, error))
}

/// The blocks of an archive, each read when it is asked for.
pub(super) fn stored_blocks(
    records: &Records,
    feed: &FeedName,
    number: u64,
    count: u32,
) -> Result<impl Iterator<Item = Result<SegmentRecord, StoreError>>, StoreError> {
    let keys = (0..count).map(move |block| keys::block(feed, number, block));
    let all = keys.clone().filter(|_| records.is_far()).map(|key| (Class::Segments, key));
    let records = records.ahead(all.collect())?;
    Ok(keys.map(move |key| records.expected(Class::Segments, &key)))
}

fn number(records: &Records, feed: &FeedName, id: &ArchiveId) -> Result<Option<u64>, StoreError> {
    let named = records.record::<ArchiveNumber>(Class::ArchiveIds, &keys::archive_id(feed, id))?;
    Ok(named.map(|named| named.0))
}

/// The archives kept, newest first.
pub(super) fn kept(
    records: &Records,
    feed: &FeedName,
    state: &FeedState,
    limit: usize,
) -> Result<Vec<ArchiveNote>, StoreError> {
    let numbers = (state.archives.first..state.archives.next).rev().take(limit);
    notes(records, feed, numbers)
}

/// The oldest archives kept, oldest first.
pub(super) fn oldest(
    records: &Records,
    feed: &FeedName,
    state: &FeedState,
) -> Result<Vec<ArchiveNote>, StoreError> {
    let numbers = (state.archives.first..state.archives.next).take(Snapshot::OLDEST_ARCHIVES);
    notes(records, feed, numbers)
}

fn notes(
    records: &Records,
    feed: &FeedName,
    numbers: impl Iterator<Item = u64>,
) -> Result<Vec<ArchiveNote>, StoreError> {
    let mut notes = Vec::new();
    for number in numbers {
        let key = keys::archive(feed, number);
        let found = note(records, feed, number)?;
        let (note, _) =
            found.ok_or_else(|| records.damaged(Class::Archives, &key, "it is missing"))?;
        notes.push(note);
    }
    Ok(notes)
}

/// What is known of an archive.
pub(super) fn place(
    records: &Records,
    feed: &FeedName,
    id: &ArchiveId,
) -> Result<Option<ArchivePlace>, StoreError> {
    let Some(number) = number(records, feed, id)? else { return Ok(None) };
    let Some((note, _)) = note(records, feed, number)? else { return Ok(None) };
    let next = self::note(records, feed, number.saturating_add(1))?;
    Ok(Some(ArchivePlace { note, next: next.map(|(next, _)| (next.id, next.sealed)) }))
}

/// The content of an archive that is kept.
pub(super) fn archive(
    records: &Records,
    feed: &FeedName,
    id: &ArchiveId,
) -> Result<Option<Archive>, StoreError> {
    let Some(number) = number(records, feed, id)? else { return Ok(None) };
    match note(records, feed, number)? {
        Some((note, count)) if !note.dropped => content(records, feed, number, count).map(Some),
        _ => Ok(None),
    }
}
