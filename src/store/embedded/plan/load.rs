//! Loads the records that a change names, and those that follow from them.

use super::EVENTS_OF_BLOCK;
use crate::StoreError;
use crate::embedded::feed::FeedRecords;
use crate::embedded::keys;
use crate::embedded::records::{RecordCodec, Records};
use crate::engine::{Class, RecordKey};
use crate::limits::{DROPPED_REMEMBERED, EVENTS_KEPT, VERSIONS_LIMIT};
use crate::record::{
    ArchiveRecord, FrameRecord, ItemRecord, Record, StateRecord, TextRecord, assemble,
};
use bytes::Bytes;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::RangeInclusive;
use tidegate_core::model::{
    Change, Conflicting, FeedName, Item, LedgerEntry, Markup, NewVersion, SyncId,
};

/// The loaded records, encoded.
pub(in crate::embedded) struct LoadedRecords {
    pub(super) codec: RecordCodec,
    feed: FeedName,
    /// By class and key; `None` where there is none.
    records: HashMap<RecordKey, Option<Bytes>>,
    /// The keys of all texts of items that leave, that are redacted, or that have too many versions.
    texts: BTreeSet<Vec<u8>>,
    /// The keys of the stubs of items that come back.
    stubs: HashMap<SyncId, Vec<u8>>,
    /// The archives with an item whose text is removed, with their encoded blocks: decoded, all of them together may
    /// be large.
    pub(super) archives: Vec<(ArchiveRecord, Vec<Bytes>)>,
    /// With these archives: the published ids of the items that live and do not change.
    pub(super) published: HashSet<String>,
}

/// The blocks of events that are kept before the event `next`.
pub(super) fn kept_blocks(next: u64) -> RangeInclusive<u64> {
    next.saturating_sub(EVENTS_KEPT as u64) / EVENTS_OF_BLOCK..=next / EVENTS_OF_BLOCK
}

/// The blocks of events that a change before the event `next` writes.
pub(super) fn changed_blocks(change: &Change, next: u64) -> Option<RangeInclusive<u64>> {
    let last = next / EVENTS_OF_BLOCK;
    match (change.redacted.is_empty(), change.events.is_empty()) {
        (false, _) => Some(kept_blocks(next)),
        (true, false) => Some(last..=last),
        (true, true) => None,
    }
}

/// The numbers of the archives that a change drops.
pub(super) fn dropped(change: &Change, before: Option<&StateRecord>) -> std::ops::Range<u64> {
    let chain = before.map(|head| &head.state.archives);
    chain.map_or(0..0, |chain| chain.first..change.state.archives.first.min(chain.next))
}

/// The keys of the records that a change names, for a feed at the state `before`.
pub(in crate::embedded) fn keys_of(
    change: &Change,
    before: Option<&StateRecord>,
) -> BTreeSet<RecordKey> {
    let feed = &change.feed;
    let mut keys = BTreeSet::from([
        (Class::Marks, keys::of_kind(keys::PURGED, feed)),
        (Class::Frames, keys::feed(feed)),
    ]);
    let known = change.known.iter().chain(&change.evicted).map(|known| &known.id);
    let versions = change.versions.iter().map(|version| &version.id);
    let conflicts = change.conflicts.iter().map(|of| &of.id);
    let sealed = change.seals.iter().flat_map(|seal| &seal.items);
    let items = known.chain(versions).chain(conflicts).chain(sealed);
    keys.extend(items.map(|id| (Class::Items, keys::item(feed, id))));
    let blocks = changed_blocks(change, before.map_or(0, |head| head.next_event));
    let blocks = blocks.into_iter().flatten();
    keys.extend(blocks.map(|number| (Class::Events, keys::numbered(feed, number))));
    let ids = change.seals.iter().map(|seal| keys::archive_id(feed, &seal.id));
    keys.extend(ids.map(|key| (Class::Index, key)));
    let dropped = dropped(change, before);
    let forgotten = dropped.clone().filter_map(|number| number.checked_sub(DROPPED_REMEMBERED));
    let archives = change.seals.iter().map(|seal| seal.number).chain(dropped).chain(forgotten);
    keys.extend(archives.map(|number| (Class::Archives, keys::numbered(feed, number))));
    keys
}

impl LoadedRecords {
    /// Reads the records that the change names, and then those that follow from them.
    pub(in crate::embedded) fn load(
        records: &Records,
        change: &Change,
        before: Option<&StateRecord>,
    ) -> Result<Self, StoreError> {
        let mut loaded = Self {
            codec: RecordCodec::clone(records),
            feed: change.feed.clone(),
            records: HashMap::new(),
            texts: BTreeSet::new(),
            stubs: HashMap::new(),
            archives: Vec::new(),
            published: HashSet::new(),
        };
        loaded.read(records, keys_of(change, before))?;
        loaded.list(records, change)?;
        let further = loaded.further_keys(change)?;
        loaded.read(records, further)?;
        if !change.redacted.is_empty() && before.is_some() {
            loaded.read_archives(&FeedRecords::new(records, &change.feed), change)?;
        }
        Ok(loaded)
    }

    fn read(&mut self, records: &Records, keys: BTreeSet<RecordKey>) -> Result<(), StoreError> {
        let keys: Vec<RecordKey> = keys.into_iter().collect();
        let values = records.get_all(&keys)?;
        self.records.extend(keys.into_iter().zip(values));
        Ok(())
    }

    /// Lists the texts of items that lose all of them, or the oldest one, and the stubs of items that come back.
    fn list(&mut self, records: &Records, change: &Change) -> Result<(), StoreError> {
        let feed = &change.feed;
        let mut items: BTreeSet<&SyncId> = change.evicted.iter().map(|stub| &stub.id).collect();
        items.extend(&change.redacted);
        for NewVersion { id, .. } in &change.versions {
            let kept = self.item(id)?.map_or(0, |item| item.kept as usize);
            items.extend((kept >= VERSIONS_LIMIT).then_some(id));
        }
        let texts = items.into_iter().map(|id| (Class::Texts, keys::item(feed, id)));
        let back: BTreeSet<&SyncId> = change.reinstated.iter().collect();
        let names = back.iter().map(|id| (Class::Index, keys::stub_names(feed, id.as_str())));
        for ((class, key), _) in records.sizes_of(texts.chain(names).collect())? {
            if class == Class::Texts {
                self.texts.insert(key);
                continue;
            }
            let (tick, id) = self.codec.read_key(class, &key, keys::index_item(&key, 2))?;
            let tick = self.codec.read_key(class, &key, tick)?;
            // Other stubs may have the same name, or one with the same hash.
            if back.contains(&id) {
                let stub = keys::stub(feed, tick, &id);
                self.stubs.insert(id, stub);
            }
        }
        Ok(())
    }

    /// The keys that follow from the records that were read.
    fn further_keys(&self, change: &Change) -> Result<BTreeSet<RecordKey>, StoreError> {
        let feed = &change.feed;
        let frame = self.frame()?;
        let order: HashSet<&SyncId> = frame.iter().flat_map(|frame| &frame.order).collect();
        let known: HashSet<&SyncId> = change.known.iter().map(|known| &known.id).collect();
        // Items that return to the order unchanged.
        let ordered = change.order.iter().flatten();
        let ordered = ordered.filter(|id| !order.contains(id) && !known.contains(id));
        let mut keys: BTreeSet<RecordKey> =
            ordered.map(|id| (Class::Items, keys::item(feed, id))).collect();
        keys.extend(self.stubs.values().map(|key| (Class::Stubs, key.clone())));
        let mut texts = BTreeSet::new();
        for NewVersion { id, markup, .. } in &change.versions {
            let Some(item) = self.item(id)? else { continue };
            if markup.is_some() || item.has_latest {
                texts.extend([keys::version(feed, id, item.body), keys::newest(feed, &item)]);
            }
            texts.extend(self.versions_of(id).take(2).cloned());
        }
        let is_lacking = |of: &&Conflicting| of.versions.iter().any(|of| of.data.is_none());
        let conflicts = change.conflicts.iter().filter(is_lacking).map(|of| &of.id);
        for id in conflicts.chain(change.seals.iter().flat_map(|seal| &seal.items)) {
            texts.extend(self.item(id)?.map(|item| keys::newest(feed, &item)));
        }
        texts.extend(change.redacted.iter().flat_map(|id| self.versions_of(id)).cloned());
        keys.extend(texts.into_iter().map(|key| (Class::Texts, key)));
        Ok(keys)
    }

    /// Reads the archives with an item whose text is removed.
    fn read_archives(&mut self, feed: &FeedRecords, change: &Change) -> Result<(), StoreError> {
        for record in feed.archive_records() {
            let record = record?;
            if record.note.dropped {
                continue;
            }
            let blocks = feed.stored_segments(&record)?;
            let archive = self.codec.archive(&feed.name, &record, &blocks)?;
            let has = |item: &Item| change.redacted.contains(&item.shared.winner.id);
            if archive.items.iter().any(has) {
                self.archives.push((record, blocks));
            }
        }
        if self.archives.is_empty() {
            return Ok(());
        }
        let changed: HashSet<&SyncId> = change.known.iter().map(|known| &known.id).collect();
        for item in feed.items() {
            let known = item?.known;
            if !known.is_deleted() && !changed.contains(&known.id) {
                self.published.insert(known.published_id);
            }
        }
        Ok(())
    }

    /// The bytes of a record; an error where it was not read.
    pub(super) fn get(&self, class: Class, key: &[u8]) -> Result<Option<&Bytes>, StoreError> {
        let key = (class, key.to_vec());
        let unread = || {
            StoreError::failed("plan a change", format!("{} was not read", key.1.escape_ascii()))
        };
        self.records.get(&key).map(Option::as_ref).ok_or_else(unread)
    }

    /// Whether there is a record.
    pub(super) fn contains(&self, class: Class, key: &[u8]) -> Result<bool, StoreError> {
        Ok(self.get(class, key)?.is_some())
    }

    pub(super) fn record<T: Record>(
        &self,
        class: Class,
        key: &[u8],
    ) -> Result<Option<T>, StoreError> {
        let value = self.get(class, key)?;
        value.map(|value| self.codec.decode(class, key, value)).transpose()
    }

    /// A record that must exist, since others refer to it.
    pub(super) fn expected<T: Record>(&self, class: Class, key: &[u8]) -> Result<T, StoreError> {
        let found = self.record(class, key)?;
        found.ok_or_else(|| self.codec.damaged(class, key, "it is missing"))
    }

    /// The order and the document around the entries.
    pub(super) fn frame(&self) -> Result<Option<FrameRecord>, StoreError> {
        self.record(Class::Frames, &keys::feed(&self.feed))
    }

    pub(super) fn item(&self, id: &SyncId) -> Result<Option<ItemRecord>, StoreError> {
        self.record(Class::Items, &keys::item(&self.feed, id))
    }

    /// An item with its bytes.
    pub(super) fn whole_item(&self, id: &SyncId) -> Result<Option<Item>, StoreError> {
        let Some(item) = self.item(id)? else { return Ok(None) };
        let newest = self.newest(&item)?;
        Ok(Some(assemble(item.known, newest, item.conflicts)))
    }

    pub(super) fn archive(&self, number: u64) -> Result<Option<ArchiveRecord>, StoreError> {
        self.record(Class::Archives, &keys::numbered(&self.feed, number))
    }

    /// The stub of an item that comes back.
    pub(super) fn stub(&self, id: &SyncId) -> Result<LedgerEntry, StoreError> {
        let missing =
            || self.codec.damaged(Class::Stubs, &keys::item(&self.feed, id), "it is missing");
        self.expected(Class::Stubs, self.stubs.get(id).ok_or_else(missing)?)
    }

    /// A version of an item, or bytes that made none.
    pub(super) fn text(&self, key: &[u8]) -> Result<Option<TextRecord>, StoreError> {
        let value = self.get(Class::Texts, key)?;
        value.map(|value| self.codec.decode_text(key, value)).transpose()
    }

    /// The keys of the texts of an item that were listed; those of no version first, then the oldest.
    pub(super) fn texts_of(&self, id: &SyncId) -> impl Iterator<Item = &Vec<u8>> + use<'_> {
        let item = keys::item(&self.feed, id);
        self.texts.range(item.clone()..).take_while(move |key| key.starts_with(&item))
    }

    /// The listed texts with a tick: those that are, or were, of a version.
    pub(super) fn versions_of(&self, id: &SyncId) -> impl Iterator<Item = &Vec<u8>> + use<'_> {
        let item = keys::item(&self.feed, id);
        self.texts_of(id).filter(move |key| **key != item)
    }

    /// The newest bytes of an item, encoded.
    pub(super) fn newest_body(&self, item: &ItemRecord) -> Result<Bytes, StoreError> {
        let key = keys::newest(&self.feed, item);
        let body = self.text(&key)?.and_then(|text| text.body);
        body.ok_or_else(|| self.codec.damaged(Class::Texts, &key, "it is missing"))
    }

    /// The newest bytes of an item.
    pub(super) fn newest(&self, item: &ItemRecord) -> Result<Markup, StoreError> {
        let body = self.newest_body(item)?;
        self.codec.decode(Class::Texts, &keys::newest(&self.feed, item), &body)
    }
}
