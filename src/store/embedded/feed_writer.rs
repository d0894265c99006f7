//! Collects the writes of a feed, for changes ([`super::plan`]) and imports ([`super::transfer`]) alike. Reads
//! nothing.

use super::keys;
use super::records::RecordCodec;
use crate::StoreError;
use crate::engine::{Class, Writes};
use crate::limits::BLOCK;
use crate::record::{ArchiveRecord, ItemRecord, Record, SegmentRecord, TextRecord};
use bytes::Bytes;
use tidegate_core::model::{Archive, ArchiveNote, FeedName, LedgerEntry, Markup, SyncId};

/// The value of a tombstone in the index by tick; other items have an empty one.
pub(super) const TOMBSTONE: &[u8] = &[1];

/// Collects the writes of a feed.
pub(super) struct FeedWriter<'a> {
    pub(super) codec: &'a RecordCodec,
    pub(super) name: &'a FeedName,
    pub(super) writes: &'a mut Writes,
}

impl FeedWriter<'_> {
    /// Sets an entry with an empty value.
    pub(super) fn set(&mut self, class: Class, key: Vec<u8>) {
        self.writes.insert((class, key), Some(Vec::new()));
    }

    pub(super) fn remove(&mut self, class: Class, key: Vec<u8>) {
        self.writes.insert((class, key), None);
    }

    pub(super) fn put<T: Record>(
        &mut self,
        class: Class,
        key: Vec<u8>,
        record: &T,
    ) -> Result<(), StoreError> {
        self.codec.put(self.writes, class, key, record)
    }

    pub(super) fn put_text(&mut self, key: Vec<u8>, text: &TextRecord) -> Result<(), StoreError> {
        self.codec.put_text(self.writes, key, text)
    }

    pub(super) fn describe(&self, id: &SyncId) -> String {
        format!("the item {id} of the feed {}", self.name)
    }

    /// Sets the record of an item.
    pub(super) fn put_item(&mut self, item: &ItemRecord) -> Result<(), StoreError> {
        let id = &item.known.id;
        let value = self.codec.encoded(item, || self.describe(id))?;
        self.writes.insert((Class::Items, keys::item(self.name, id)), Some(value));
        Ok(())
    }

    /// The encoded bytes of an item.
    pub(super) fn encode_markup(&self, id: &SyncId, markup: &Markup) -> Result<Bytes, StoreError> {
        Ok(self.codec.encoded(markup, || self.describe(id))?.into())
    }

    /// Sets an item in the index by tick.
    pub(super) fn put_tick(&mut self, known: &LedgerEntry) {
        let key = keys::by_tick(self.name, known.tick, &known.id);
        let flag: &[u8] = if known.is_tombstone() { TOMBSTONE } else { &[] };
        self.writes.insert((Class::Index, key), Some(flag.to_vec()));
    }

    /// Sets whether an item has conflicts, in the index.
    pub(super) fn put_contested(&mut self, id: &SyncId, is_contested: bool) {
        let key = (Class::Index, keys::contested(self.name, id));
        self.writes.insert(key, is_contested.then(Vec::new));
    }

    pub(super) fn put_stub(&mut self, stub: &LedgerEntry) -> Result<(), StoreError> {
        self.index_stub(stub, true);
        self.put(Class::Stubs, keys::stub(self.name, stub.tick, &stub.id), stub)
    }

    pub(super) fn remove_stub(&mut self, stub: &LedgerEntry) {
        self.index_stub(stub, false);
        self.remove(Class::Stubs, keys::stub(self.name, stub.tick, &stub.id));
    }

    /// Sets whether a stub is in the index by its names.
    fn index_stub(&mut self, stub: &LedgerEntry, is_there: bool) {
        let key = |name| keys::stub_name(self.name, name, stub.tick, &stub.id);
        let keys = stub.names().map(|name| ((Class::Index, key(name)), is_there.then(Vec::new)));
        self.writes.extend(keys);
    }

    /// Sets the content of an archive, and removes that of `old`; `note` makes its note from its size in bytes, which
    /// is answered.
    pub(super) fn put_archive(
        &mut self,
        archive: &Archive,
        old: Option<&ArchiveRecord>,
        note: impl FnOnce(u64) -> ArchiveNote,
    ) -> Result<u64, StoreError> {
        let what = || format!("an archive of the feed {}", self.name);
        let blocks = SegmentRecord::blocks(archive, BLOCK);
        let blocks = blocks.iter().map(|block| self.codec.encoded(block, what));
        let blocks = blocks.collect::<Result<Vec<_>, _>>()?;
        let bytes = blocks.iter().map(Vec::len).sum::<usize>() as u64;
        let count = u32::try_from(blocks.len()).unwrap_or(u32::MAX);
        let record = ArchiveRecord { note: note(bytes), blocks: count };
        if let Some(old) = old {
            self.remove_segments(old);
        }
        for (block, value) in (0_u32..).zip(blocks) {
            let key = keys::segment(self.name, record.note.number, block);
            self.writes.insert((Class::Segments, key), Some(value));
        }
        self.put_archive_record(&record)?;
        Ok(bytes)
    }

    fn remove_segments(&mut self, of: &ArchiveRecord) {
        for block in 0..of.blocks {
            self.remove(Class::Segments, keys::segment(self.name, of.note.number, block));
        }
    }

    /// Sets the record of an archive, and its number in the index by id.
    pub(super) fn put_archive_record(&mut self, record: &ArchiveRecord) -> Result<(), StoreError> {
        let (number, id) = (record.note.number, keys::archive_id(self.name, &record.note.id));
        self.put(Class::Index, id, &number)?;
        self.put(Class::Archives, keys::numbered(self.name, number), record)
    }

    /// Drops the content of an archive, whose record stays. Answers the number of bytes.
    pub(super) fn drop_archive(&mut self, old: ArchiveRecord) -> Result<u64, StoreError> {
        self.remove_segments(&old);
        let bytes = old.note.bytes;
        let note = ArchiveNote { dropped: true, ..old.note };
        self.put_archive_record(&ArchiveRecord { note, blocks: 0 })?;
        Ok(bytes)
    }

    /// Removes the record of a dropped archive.
    pub(super) fn forget_archive(&mut self, old: &ArchiveNote) {
        self.remove(Class::Archives, keys::numbered(self.name, old.number));
        self.remove(Class::Index, keys::archive_id(self.name, &old.id));
    }
}
