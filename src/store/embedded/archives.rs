//! Archives in the records: a note of each under its number, its number under its id, its content in
//! blocks under its number.

use super::feed::FeedRecords;
use super::keys;
use crate::StoreError;
use crate::engine::{Class, Writes};
use crate::limits::{BLOCK, DROPPED_REMEMBERED};
use crate::record::{ArchiveRecord, SegmentRecord};
use tidegate_core::model::{Archive, ArchiveId, ArchiveNote, ArchivePlace, FeedState, Snapshot};

impl FeedRecords {
    /// What is stored of an archive.
    pub(super) fn archive_record(&self, number: u64) -> Result<Option<ArchiveRecord>, StoreError> {
        self.records.record(Class::Archives, &keys::numbered(&self.name, number))
    }

    /// The archives that are remembered, by number.
    pub(super) fn archive_records(
        &self,
    ) -> impl Iterator<Item = Result<ArchiveRecord, StoreError>> {
        self.records.values(Class::Archives, &keys::feed(&self.name))
    }

    /// The notes of archives that are kept.
    fn notes(&self, numbers: impl Iterator<Item = u64>) -> Result<Vec<ArchiveNote>, StoreError> {
        let note = |number| {
            let key = keys::numbered(&self.name, number);
            Ok(self.records.expected::<ArchiveRecord>(Class::Archives, &key)?.note)
        };
        numbers.map(note).collect()
    }

    /// The archives kept, newest first.
    pub(super) fn archives(
        &self,
        state: &FeedState,
        limit: usize,
    ) -> Result<Vec<ArchiveNote>, StoreError> {
        self.notes((state.archives.first..state.archives.next).rev().take(limit))
    }

    /// The oldest archives kept, oldest first.
    pub(super) fn oldest_archives(
        &self,
        state: &FeedState,
    ) -> Result<Vec<ArchiveNote>, StoreError> {
        self.notes((state.archives.first..state.archives.next).take(Snapshot::OLDEST_ARCHIVES))
    }

    fn archive_named(&self, id: &ArchiveId) -> Result<Option<ArchiveRecord>, StoreError> {
        let key = keys::archive_id(&self.name, id);
        match self.records.record::<u64>(Class::Index, &key)? {
            Some(number) => self.archive_record(number),
            None => Ok(None),
        }
    }

    /// What is known of an archive.
    pub(super) fn archive_place(&self, id: &ArchiveId) -> Result<Option<ArchivePlace>, StoreError> {
        let Some(ArchiveRecord { note, .. }) = self.archive_named(id)? else { return Ok(None) };
        let next = self.archive_record(note.number.saturating_add(1))?;
        Ok(Some(ArchivePlace { note, next: next.map(|next| (next.note.id, next.note.sealed)) }))
    }

    /// The content of an archive that is kept.
    pub(super) fn archive(&self, id: &ArchiveId) -> Result<Option<Archive>, StoreError> {
        let found = self.archive_named(id)?.filter(|record| !record.note.dropped);
        found.map(|record| self.content(&record)).transpose()
    }

    /// The content of an archive.
    pub(super) fn content(&self, record: &ArchiveRecord) -> Result<Archive, StoreError> {
        let blocks = self.segments(record)?.collect::<Result<Vec<_>, _>>()?;
        let key = keys::segment(&self.name, record.note.number, 0);
        let joined = SegmentRecord::join(blocks);
        joined.map_err(|error| self.records.damaged(Class::Segments, &key, error))
    }

    /// The blocks of an archive, each read when it is asked for.
    pub(super) fn segments(
        &self,
        record: &ArchiveRecord,
    ) -> Result<impl Iterator<Item = Result<SegmentRecord, StoreError>> + use<>, StoreError> {
        let (feed, number) = (self.name.clone(), record.note.number);
        let keys = (0..record.blocks).map(move |block| keys::segment(&feed, number, block));
        let records = self.records.ahead(keys.clone().map(|key| (Class::Segments, key)))?;
        Ok(keys.map(move |key| records.expected(Class::Segments, &key)))
    }

    /// Plans to set an archive in the place of `old`; `note` says of it what follows from how many bytes it takes.
    /// Answers these bytes.
    pub(super) fn put_archive(
        &self,
        archive: &Archive,
        old: Option<&ArchiveRecord>,
        note: impl FnOnce(u64) -> ArchiveNote,
        writes: &mut Writes,
    ) -> Result<u64, StoreError> {
        let what = || format!("an archive of the feed {}", self.name);
        let blocks = SegmentRecord::blocks(archive, BLOCK);
        let blocks = blocks.iter().map(|block| self.records.encoded(block, what));
        let blocks = blocks.collect::<Result<Vec<_>, _>>()?;
        let bytes = u64::try_from(blocks.iter().map(Vec::len).sum::<usize>()).unwrap_or(u64::MAX);
        let count = u32::try_from(blocks.len()).unwrap_or(u32::MAX);
        let record = ArchiveRecord { note: note(bytes), blocks: count };
        if let Some(old) = old {
            self.remove_segments(old, writes);
        }
        for (block, value) in (0_u32..).zip(blocks) {
            let key = keys::segment(&self.name, record.note.number, block);
            writes.insert((Class::Segments, key), Some(value));
        }
        self.put_archive_record(&record, writes)?;
        Ok(bytes)
    }

    fn remove_segments(&self, of: &ArchiveRecord, writes: &mut Writes) {
        for block in 0..of.blocks {
            let key = keys::segment(&self.name, of.note.number, block);
            writes.insert((Class::Segments, key), None);
        }
    }

    /// Plans to set what is stored of an archive, and under its id its number.
    pub(super) fn put_archive_record(
        &self,
        record: &ArchiveRecord,
        writes: &mut Writes,
    ) -> Result<(), StoreError> {
        let (number, id) = (record.note.number, keys::archive_id(&self.name, &record.note.id));
        self.records.put(writes, Class::Index, id, &number)?;
        self.records.put(writes, Class::Archives, keys::numbered(&self.name, number), record)
    }

    /// Plans to drop an archive. Answers how many bytes go.
    pub(super) fn drop_archive(&self, number: u64, writes: &mut Writes) -> Result<u64, StoreError> {
        let mut bytes = 0;
        if let Some(old) = self.archive_record(number)? {
            bytes = old.note.bytes;
            self.remove_segments(&old, writes);
            let note = ArchiveNote { dropped: true, ..old.note };
            self.put_archive_record(&ArchiveRecord { note, blocks: 0 }, writes)?;
        }
        // One that was dropped so long before that its address need not be remembered is forgotten.
        if let Some(oldest) = number.checked_sub(DROPPED_REMEMBERED)
            && let Some(old) = self.archive_record(oldest)?
        {
            writes.insert((Class::Archives, keys::numbered(&self.name, oldest)), None);
            writes.insert((Class::Index, keys::archive_id(&self.name, &old.note.id)), None);
        }
        Ok(bytes)
    }
}
