//! The records of archives: a note by number, the number by id, and the content in blocks by number.

use super::feed::FeedRecords;
use super::keys;
use super::records::RecordCodec;
use crate::StoreError;
use crate::engine::Class;
use crate::record::{ArchiveRecord, SegmentRecord};
use bytes::Bytes;
use tidegate_core::model::{Archive, ArchiveId, ArchiveNote, ArchivePlace, FeedName, FeedState};

impl FeedRecords {
    /// The record of an archive.
    pub(super) fn archive_record(&self, number: u64) -> Result<Option<ArchiveRecord>, StoreError> {
        self.records.record(Class::Archives, &keys::numbered(&self.name, number))
    }

    /// The records of all archives that are kept or remembered, by number.
    pub(super) fn archive_records(
        &self,
    ) -> impl Iterator<Item = Result<ArchiveRecord, StoreError>> {
        self.records.values(Class::Archives, &keys::feed(&self.name))
    }

    /// The notes of the oldest archives that are kept, at most `limit`.
    pub(super) fn oldest_archives(
        &self,
        state: &FeedState,
        limit: usize,
    ) -> Result<Vec<ArchiveNote>, StoreError> {
        let keys = keys::oldest_archives(&self.name, state, limit);
        let found: Vec<ArchiveRecord> = self.records.expect_all(Class::Archives, keys)?;
        Ok(found.into_iter().map(|record| record.note).collect())
    }

    fn archive_named(&self, id: &ArchiveId) -> Result<Option<ArchiveRecord>, StoreError> {
        let key = keys::archive_id(&self.name, id);
        match self.records.record::<u64>(Class::Index, &key)? {
            Some(number) => self.archive_record(number),
            None => Ok(None),
        }
    }

    /// The note of an archive and of the next one.
    pub(super) fn archive_place(&self, id: &ArchiveId) -> Result<Option<ArchivePlace>, StoreError> {
        let Some(ArchiveRecord { note, .. }) = self.archive_named(id)? else { return Ok(None) };
        let next = self.archive_record(note.number.saturating_add(1))?;
        Ok(Some(ArchivePlace { note, next: next.map(|next| (next.note.id, next.note.sealed)) }))
    }

    /// The content of an archive that is kept.
    pub(super) fn archive(&self, id: &ArchiveId) -> Result<Option<Archive>, StoreError> {
        let found = self.archive_named(id)?.filter(|record| !record.note.dropped);
        let Some(record) = found else { return Ok(None) };
        self.records.archive(&self.name, &record, &self.stored_segments(&record)?).map(Some)
    }

    /// The blocks of an archive, encoded.
    pub(super) fn stored_segments(&self, record: &ArchiveRecord) -> Result<Vec<Bytes>, StoreError> {
        let prefix = keys::numbered(&self.name, record.note.number);
        let blocks = self.records.entries(Class::Segments, &prefix);
        blocks.map(|entry| entry.map(|(_, block)| block)).collect()
    }

    /// The blocks of an archive.
    pub(super) fn segments(
        &self,
        record: &ArchiveRecord,
    ) -> impl Iterator<Item = Result<SegmentRecord, StoreError>> {
        let prefix = keys::numbered(&self.name, record.note.number);
        self.records.values(Class::Segments, &prefix)
    }
}

impl RecordCodec {
    /// The content of an archive from its encoded blocks.
    pub(super) fn archive(
        &self,
        feed: &FeedName,
        record: &ArchiveRecord,
        blocks: &[Bytes],
    ) -> Result<Archive, StoreError> {
        let number = record.note.number;
        if blocks.len() != record.blocks as usize {
            let key = keys::numbered(feed, number);
            return Err(self.damaged(Class::Segments, &key, "blocks are missing"));
        }
        let decode = |(block, stored): (u32, &Bytes)| {
            self.decode(Class::Segments, &keys::segment(feed, number, block), stored)
        };
        let blocks =
            (0_u32..).zip(blocks).map(decode).collect::<Result<Vec<SegmentRecord>, _>>()?;
        let joined = SegmentRecord::join(blocks);
        joined.map_err(|error| self.damaged(Class::Segments, &keys::numbered(feed, number), error))
    }
}
