//! What a feed said at some time, and what is kept of it.

use super::feed::FeedRecords;
use super::keys;
use crate::assemble::{assemble_past, is_told};
use crate::engine::{Class, KeyOrder, Writes, beginning_with};
use crate::limits::WHOLE_EVERY;
use crate::record::{FrameRecord, TextRecord};
use crate::{Holdings, KeptVersion, Past, PastSelect, StoreError, VersionNote, View};
use bytes::Bytes;
use std::collections::HashSet;
use std::ops::Bound;
use tidegate_core::model::{Count, FeedState, Markup, SyncId, Time};

/// Since when a frame is in force, how many before it are differences in a row, and the frame as it is stored.
pub(super) type StoredFrame = (Time, u32, Bytes);

/// What an item was at some time.
enum PastItem {
    /// This version, with these bytes.
    Version(Box<(VersionNote, Markup)>),
    /// It was not there.
    Absent,
    /// It is not known; its oldest kept version is shown from here on.
    Unknown(Time),
}

impl FeedRecords {
    /// The frame that was in force at `at`, with the present one at hand; `None` where it is not kept.
    pub(super) fn frame_at(
        &self,
        present: &FrameRecord,
        at: Time,
    ) -> Result<Option<FrameRecord>, StoreError> {
        if at >= present.since {
            return Ok(Some(present.clone()));
        }
        let key = |at| keys::past(&self.name, at);
        let range = (Bound::Included(key(Time::MIN)), Bound::Included(key(at)));
        let Some((found, bytes)) = self.records.first(Class::Past, range, KeyOrder::Descending)?
        else {
            return Ok(None);
        };
        let newer = |at| match at == present.since {
            true => self.records.get(Class::Frames, &keys::feed(&self.name)),
            false => self.records.get(Class::Past, &key(at)),
        };
        self.records.decode_difference((Class::Past, &found), bytes, newer).map(Some)
    }

    /// Plans the frame before a new one to go to the past, as a difference unless every so many are to be whole. Answers
    /// the new one as it is to be stored.
    pub(super) fn supersede_frame(
        &self,
        old: Option<StoredFrame>,
        mut new: FrameRecord,
        writes: &mut Writes,
    ) -> Result<StoredFrame, StoreError> {
        let run = old.as_ref().map_or(0, |(_, run, _)| run + 1);
        new.run = if run < WHOLE_EVERY { run } else { 0 };
        let name = &self.name;
        let what = || format!("the order and the document around the entries of the feed {name}");
        let encoded = Bytes::from(self.records.encoded(&new, what)?);
        if let Some((since, _, whole)) = old {
            let past = match new.run {
                0 => whole.to_vec(),
                _ => self.records.difference(&whole, new.since, &encoded, what)?,
            };
            writes.insert((Class::Past, keys::past(name, since)), Some(past));
        }
        Ok((new.since, new.run, encoded))
    }

    /// Since when each frame of the past was in force, and what it takes; oldest first.
    pub(super) fn past_frames(&self) -> Result<Vec<(Time, u64)>, StoreError> {
        let all = self.records.sizes(Class::Past, &keys::feed(&self.name))?.into_iter();
        let frame = |(key, size): (Vec<u8>, u64)| {
            Ok((self.records.of_key(Class::Past, &key, keys::past_since(&key))?, size))
        };
        all.map(frame).collect()
    }

    /// Since when the oldest frame that is kept was in force.
    fn oldest_frame(&self, present: &FrameRecord) -> Result<Time, StoreError> {
        let all = beginning_with(&keys::feed(&self.name));
        let first = self.records.first(Class::Past, all, KeyOrder::Ascending)?;
        Ok(first.and_then(|(key, _)| keys::past_since(&key)).unwrap_or(present.since))
    }

    /// The bytes of a version; none of a tombstone.
    fn shown_body(
        &self,
        id: &SyncId,
        note: &VersionNote,
        text: TextRecord,
    ) -> Result<Option<Markup>, StoreError> {
        if note.deleted { Ok(None) } else { self.body(id, note.tick, text) }
    }

    /// All versions of an item with their bytes, newest first.
    pub(super) fn kept_versions(
        &self,
        id: &SyncId,
    ) -> impl Iterator<Item = Result<KeptVersion, StoreError>> {
        self.versions(id).map(|version| self.kept_version(id, version?))
    }

    fn kept_version(
        &self,
        id: &SyncId,
        (note, text): (VersionNote, TextRecord),
    ) -> Result<KeptVersion, StoreError> {
        let markup = self.shown_body(id, &note, text)?;
        Ok(KeptVersion { note, markup })
    }

    /// One version of an item.
    pub(super) fn version(
        &self,
        id: &SyncId,
        updates: Count,
    ) -> Result<Option<KeptVersion>, StoreError> {
        let is_found = |note: &VersionNote| note.updates == updates;
        let found =
            self.versions(id).find(|of| of.as_ref().map_or(true, |(note, _)| is_found(note)));
        found.map(|version| self.kept_version(id, version?)).transpose()
    }

    fn item_at(&self, id: &SyncId, at: Time) -> Result<PastItem, StoreError> {
        let mut newer: Vec<VersionNote> = Vec::new();
        let mut found: Option<VersionNote> = None;
        for version in self.versions(id) {
            let (note, text) = version?;
            if found.is_none() && note.shown > at {
                newer.push(note);
                continue;
            }
            // A tombstone has the bytes of the version before it.
            let bytes = match &found {
                Some(_) => self.body(id, note.tick, text)?,
                None => self.shown_body(id, &note, text)?,
            };
            let note = found.take().unwrap_or(note);
            match bytes {
                Some(bytes) => return Ok(PastItem::Version(Box::new((note, bytes)))),
                None if !note.deleted => {
                    found = Some(note);
                    break;
                }
                None => found = Some(note),
            }
        }
        let Some(found) = found else {
            return Ok(match newer.last() {
                Some(first) if first.updates != Count::ONE => PastItem::Unknown(first.shown),
                _ => PastItem::Absent,
            });
        };
        // Nothing before it has bytes any more: those of the next version that has any.
        for note in newer.iter().rev() {
            let text = self.records.text(&keys::version(&self.name, id, note.tick))?;
            if let Some(bytes) = self.body(id, note.tick, text.unwrap_or_default())? {
                return Ok(PastItem::Version(Box::new((found, bytes))));
            }
        }
        let newest = self.whole_item(id)?.map(|item| item.shared.winner.data);
        Ok(newest.map_or(PastItem::Absent, |bytes| PastItem::Version(Box::new((found, bytes)))))
    }

    /// What a view showed at `at`.
    pub(super) fn past(
        &self,
        state: &FeedState,
        select: PastSelect,
        at: Time,
    ) -> Result<Past, StoreError> {
        let Some(present) = self.frame()? else { return Ok(Past::Unknown { back_to: None }) };
        let frame = self.frame_at(&present, at)?;
        let Some(FrameRecord { since, order, skeleton: Some(skeleton), .. }) = frame else {
            return Ok(Past::Unknown { back_to: Some(self.oldest_frame(&present)?) });
        };
        // What left the ledger since was shown, in a version that is not kept.
        let left = state.evictions.latest.filter(|left| at < *left);
        let is_lacking = match select {
            PastSelect::Current => false,
            PastSelect::All => true,
            PastSelect::Since(tick) => state.complete_start >= Some(tick),
        };
        if is_lacking && left.is_some() {
            return Ok(Past::Unknown { back_to: left });
        }
        let listed: HashSet<&SyncId> = order.iter().collect();
        let ids = match select {
            PastSelect::Current => order.clone(),
            PastSelect::All | PastSelect::Since(_) => self.ledger()?,
        };
        let (mut items, mut shown, mut last) = (Vec::new(), since, None);
        for id in &ids {
            let Some(known) = self.known(id)? else {
                return Ok(Past::Unknown { back_to: left });
            };
            if !is_told(&known, at) {
                continue;
            }
            match self.item_at(id, at)? {
                PastItem::Unknown(back_to) => {
                    return Ok(Past::Unknown { back_to: Some(back_to) });
                }
                PastItem::Absent => {}
                PastItem::Version(found) => {
                    let (note, bytes) = *found;
                    (shown, last) = (shown.max(note.shown), last.max(Some(note.tick)));
                    items.push(assemble_past(known, &note, bytes, listed.contains(id)));
                }
            }
        }
        if select != PastSelect::Current {
            items.sort_by(|a, b| (a.tick, &a.shared.winner.id).cmp(&(b.tick, &b.shared.winner.id)));
        }
        let format = skeleton.format;
        let state = FeedState { updated_at: shown, tick: last, format, ..state.clone() };
        Ok(Past::Then(Box::new(View { state, skeleton, items })))
    }

    /// What is kept of a feed, and what it takes.
    pub(super) fn holdings(&self) -> Result<Holdings, StoreError> {
        let mut kept = Holdings::default();
        for item in self.items() {
            kept.versions += u64::from(item?.kept);
        }
        for (key, size) in self.records.sizes(Class::Texts, &keys::feed(&self.name))? {
            let (_, version) = self.records.of_key(Class::Texts, &key, keys::split_text(&key))?;
            kept.version_bytes += if version.is_some() { size } else { 0 };
        }
        for (_, size) in self.past_frames()? {
            kept.documents += 1;
            kept.document_bytes += size;
        }
        let present = self.frame()?;
        kept.back_to = present.map(|present| self.oldest_frame(&present)).transpose()?;
        Ok(kept)
    }
}
