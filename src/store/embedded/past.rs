//! The past of a feed: its view at a time, its versions and frames.

use super::feed::{FeedRecords, ITEMS_AT_ONCE};
use super::keys;
use super::records::{RangeReader, Records};
use crate::engine::{Class, KeyOrder, beginning_with};
use crate::record::{FrameRecord, ItemRecord, TextRecord};
use crate::{Holdings, KeptVersion, Past, PastSelect, StoreError, VersionNote, View};
use bytes::Bytes;
use std::collections::HashSet;
use std::ops::Bound;
use tidegate_core::model::{
    Count, FeedState, History, Item, ItemStatus, LedgerEntry, Markup, Shared, SyncId, Time, Version,
};

/// An item at some time.
enum PastItem {
    /// This version, with these bytes.
    Version(Box<(VersionNote, Markup)>),
    /// The item did not exist.
    Absent,
    /// The version is not kept; the oldest kept one was shown from this time on.
    Unknown(Time),
}

impl FeedRecords {
    /// The frame that was in force at `at`, given the present one; `None` where it is not kept.
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

    /// The times since which past frames were in force, and their sizes; oldest first.
    pub(super) fn past_frames(&self) -> Result<Vec<(Time, u64)>, StoreError> {
        let all = self.records.sizes(Class::Past, &keys::feed(&self.name));
        let frame = |entry: Result<(Vec<u8>, u64), StoreError>| {
            let (key, size) = entry?;
            Ok((self.records.read_key(Class::Past, &key, keys::past_since(&key))?, size))
        };
        all.map(frame).collect()
    }

    /// The time since which the oldest kept frame was in force.
    fn oldest_frame(&self, present: &FrameRecord) -> Result<Time, StoreError> {
        let all = beginning_with(&keys::feed(&self.name));
        let first = self.records.first(Class::Past, all, KeyOrder::Ascending)?;
        Ok(first.and_then(|(key, _)| keys::past_since(&key)).unwrap_or(present.since))
    }

    /// The versions of an item, newest first.
    pub(super) fn versions(&self, id: &SyncId) -> VersionReader<'_> {
        let item = keys::item(&self.name, id);
        let range = (Bound::Excluded(item.clone()), beginning_with(&item).1);
        let texts = self.records.range(Class::Texts, range, KeyOrder::Descending);
        VersionReader { records: &self.records, texts, chain: Vec::new(), last: None }
    }

    /// One version of an item.
    pub(super) fn version(
        &self,
        id: &SyncId,
        updates: Count,
    ) -> Result<Option<KeptVersion>, StoreError> {
        let mut versions = self.versions(id);
        while let Some(note) = versions.next().transpose()? {
            if note.updates == updates {
                // A tombstone has none.
                let markup = if note.deleted { None } else { versions.body()? };
                return Ok(Some(KeptVersion { note, markup }));
            }
        }
        Ok(None)
    }

    fn item_at(&self, known: &LedgerEntry, at: Time) -> Result<PastItem, StoreError> {
        let (mut oldest, mut found): (Option<VersionNote>, Option<VersionNote>) = (None, None);
        let mut versions = self.versions(&known.id);
        while let Some(note) = versions.next().transpose()? {
            if found.is_none() && note.shown > at {
                oldest = Some(note);
                continue;
            }
            // A tombstone has the bytes of the version before it.
            let has_own = found.is_some() || !note.deleted;
            let bytes = if has_own { versions.body()? } else { None };
            let note = found.take().unwrap_or(note);
            if let Some(bytes) = bytes {
                return Ok(PastItem::Version(Box::new((note, bytes))));
            }
            let is_redacted = !note.deleted;
            found = Some(note);
            if is_redacted {
                break;
            }
        }
        let Some(found) = found else {
            return Ok(match oldest {
                Some(first) if first.updates != Count::ONE => PastItem::Unknown(first.shown),
                _ => PastItem::Absent,
            });
        };
        // No earlier version has bytes: take those of the next later one that has.
        let (mut newer, mut versions) = (None, self.versions(&known.id));
        while versions.next().transpose()?.is_some_and(|note| note.shown > at) {
            newer = versions.body()?.or(newer);
        }
        if newer.is_none() {
            newer = self.whole_item(&known.id)?.map(|item| item.shared.winner.data);
        }
        Ok(newer.map_or(PastItem::Absent, |bytes| PastItem::Version(Box::new((found, bytes)))))
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
        // Items that left the ledger since were shown then, in versions that are not kept.
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
        for some in ids.chunks(ITEMS_AT_ONCE) {
            let keys = some.iter().map(|id| keys::item(&self.name, id));
            for item in self.records.all::<ItemRecord>(Class::Items, keys)? {
                let Some(ItemRecord { known, .. }) = item else {
                    return Ok(Past::Unknown { back_to: left });
                };
                if !may_show_past(&known, at) {
                    continue;
                }
                match self.item_at(&known, at)? {
                    PastItem::Unknown(back_to) => {
                        return Ok(Past::Unknown { back_to: Some(back_to) });
                    }
                    PastItem::Absent => {}
                    PastItem::Version(found) => {
                        let (note, bytes) = *found;
                        (shown, last) = (shown.max(note.shown), last.max(Some(note.tick)));
                        let is_listed = listed.contains(&known.id);
                        items.push(assemble_past(known, &note, bytes, is_listed));
                    }
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

    /// Counts the retained versions and frames, and their bytes.
    pub(super) fn holdings(&self) -> Result<Holdings, StoreError> {
        let mut kept = Holdings::default();
        for item in self.items() {
            kept.versions += u64::from(item?.kept);
        }
        for entry in self.records.sizes(Class::Texts, &keys::feed(&self.name)) {
            let (key, size) = entry?;
            let (_, version) = self.records.read_key(Class::Texts, &key, keys::split_text(&key))?;
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

/// Whether a past view at `at` may show an item: not one that was redacted since, and not one that was discarded by
/// then.
fn may_show_past(known: &LedgerEntry, at: Time) -> bool {
    match known.standing {
        ItemStatus::Discarded { since } => at < since,
        _ => !known.is_redacted(),
    }
}

/// An item as it was when `note` was its newest version, with the bytes of then.
fn assemble_past(known: LedgerEntry, note: &VersionNote, bytes: Markup, listed: bool) -> Item {
    let standing = match (note.deleted, listed) {
        (true, _) => ItemStatus::Deleted { since: note.tick.time() },
        (false, true) => ItemStatus::Current,
        (false, false) => ItemStatus::Retired { since: note.tick.time() },
    };
    let later = known.updates.value().saturating_sub(note.updates.value());
    let later = usize::try_from(later).unwrap_or(usize::MAX);
    let history = History::from_newest_first(known.history.iter().skip(later).cloned());
    let history = history.filter(|history| *history.topmost() == note.update);
    let winner = Version {
        id: known.id,
        updates: note.updates,
        deleted: note.deleted,
        noconflicts: known.noconflicts,
        history: history.unwrap_or_else(|| History::new(note.update.clone())),
        data: bytes,
    };
    Item {
        shared: Shared::new(winner),
        published_id: known.published_id,
        tick: note.tick,
        standing,
        sse091: None,
        extras: None,
        touched: known.touched,
    }
}

/// Reads the versions of an item, newest first, each once.
pub(super) struct VersionReader<'a> {
    records: &'a Records,
    texts: RangeReader<'a>,
    /// The bytes that were read since the last whole ones: older versions may be differences to them.
    chain: Vec<(Time, Bytes)>,
    /// The key of the last version that was read, where it has bytes of its own.
    last: Option<Vec<u8>>,
}

impl Iterator for VersionReader<'_> {
    type Item = Result<VersionNote, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read().transpose()
    }
}

impl VersionReader<'_> {
    fn read(&mut self) -> Result<Option<VersionNote>, StoreError> {
        for entry in self.texts.by_ref() {
            let (key, value) = entry?;
            let TextRecord { note, body } = self.records.decode_text(&key, &value)?;
            let Some(note) = note else { continue };
            self.last = None;
            if let Some(body) = body {
                if self.records.is_whole(Class::Texts, &key, &body)? {
                    self.chain.clear();
                }
                self.chain.push((note.tick.time(), body));
                self.last = Some(key);
            }
            return Ok(Some(note));
        }
        Ok(None)
    }

    /// The bytes of the last version that was read, where it has any of its own.
    pub(super) fn body(&self) -> Result<Option<Markup>, StoreError> {
        let Some((key, (_, body))) = self.last.as_ref().zip(self.chain.last()) else {
            return Ok(None);
        };
        let newer = |at| {
            let newer = self.chain.iter().find(|(of, _)| *of == at);
            Ok(newer.map(|(_, body)| body.clone()))
        };
        self.records.decode_difference((Class::Texts, key), body.clone(), newer).map(Some)
    }
}
