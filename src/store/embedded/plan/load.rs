//! Loads the records that a change names, and those that follow from them.

use super::EVENTS_OF_BLOCK;
use crate::StoreError;
use crate::embedded::feed::FeedRecords;
use crate::embedded::keys;
use crate::embedded::records::Records;
use crate::engine::{Class, RecordKey};
use crate::limits::{DROPPED_REMEMBERED, EVENTS_KEPT, VERSIONS_LIMIT};
use crate::record::{ArchiveRecord, ItemRecord, StateRecord};
use bytes::Bytes;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::RangeInclusive;
use tidegate_core::model::{Change, Conflicting, Item, LedgerEntry, Markup, NewVersion, SyncId};

/// The records of a feed, of which those that a change needs were read.
pub(in crate::embedded) struct LoadedRecords {
    pub(super) feed: FeedRecords,
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
        let mut feed = FeedRecords::new(records, &change.feed);
        feed.records.prefetch(keys_of(change, before))?;
        let mut loaded = Self {
            feed,
            texts: BTreeSet::new(),
            stubs: HashMap::new(),
            archives: Vec::new(),
            published: HashSet::new(),
        };
        loaded.list(change)?;
        let further = loaded.further_keys(change)?;
        loaded.feed.records.prefetch(further)?;
        if !change.redacted.is_empty() && before.is_some() {
            loaded.read_archives(change)?;
        }
        loaded.feed.records.end_loading();
        Ok(loaded)
    }

    /// Lists the texts of items that lose all of them, or the oldest one, and the stubs of items that come back.
    fn list(&mut self, change: &Change) -> Result<(), StoreError> {
        let (feed, records) = (&change.feed, &self.feed.records);
        let mut items: BTreeSet<&SyncId> = change.evicted.iter().map(|stub| &stub.id).collect();
        items.extend(&change.redacted);
        for NewVersion { id, .. } in &change.versions {
            let kept = self.feed.item(id)?.map_or(0, |item| item.kept as usize);
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
            let (tick, id) = records.read_key(class, &key, keys::index_item(&key, 2))?;
            let tick = records.read_key(class, &key, tick)?;
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
        let frame = self.feed.frame()?;
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
            let Some(item) = self.feed.item(id)? else { continue };
            if markup.is_some() || item.has_latest {
                texts.extend([keys::version(feed, id, item.body), keys::newest(feed, &item)]);
            }
            texts.extend(self.versions_of(id).take(2).cloned());
        }
        let is_lacking = |of: &&Conflicting| of.versions.iter().any(|of| of.data.is_none());
        let conflicts = change.conflicts.iter().filter(is_lacking).map(|of| &of.id);
        for id in conflicts.chain(change.seals.iter().flat_map(|seal| &seal.items)) {
            texts.extend(self.feed.item(id)?.map(|item| keys::newest(feed, &item)));
        }
        texts.extend(change.redacted.iter().flat_map(|id| self.versions_of(id)).cloned());
        keys.extend(texts.into_iter().map(|key| (Class::Texts, key)));
        Ok(keys)
    }

    /// Reads the archives with an item whose text is removed.
    fn read_archives(&mut self, change: &Change) -> Result<(), StoreError> {
        let feed = &self.feed;
        for record in feed.archive_records() {
            let record = record?;
            if record.note.dropped {
                continue;
            }
            let blocks = feed.stored_segments(&record)?;
            let archive = feed.records.archive(&feed.name, &record, &blocks)?;
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

    /// The stub of an item that comes back.
    pub(super) fn stub(&self, id: &SyncId) -> Result<LedgerEntry, StoreError> {
        let FeedRecords { name, records } = &self.feed;
        let missing = || records.damaged(Class::Stubs, &keys::item(name, id), "it is missing");
        records.expected(Class::Stubs, self.stubs.get(id).ok_or_else(missing)?)
    }

    /// The keys of the texts of an item that were listed; those of no version first, then the oldest.
    pub(super) fn texts_of(&self, id: &SyncId) -> impl Iterator<Item = &Vec<u8>> + use<'_> {
        let item = keys::item(&self.feed.name, id);
        self.texts.range(item.clone()..).take_while(move |key| key.starts_with(&item))
    }

    /// The listed texts with a tick: those that are, or were, of a version.
    pub(super) fn versions_of(&self, id: &SyncId) -> impl Iterator<Item = &Vec<u8>> + use<'_> {
        let item = keys::item(&self.feed.name, id);
        self.texts_of(id).filter(move |key| **key != item)
    }

    /// The newest bytes of an item, encoded.
    pub(super) fn newest_body(&self, item: &ItemRecord) -> Result<Bytes, StoreError> {
        let FeedRecords { name, records } = &self.feed;
        let key = keys::newest(name, item);
        let body = records.text(&key)?.and_then(|text| text.body);
        body.ok_or_else(|| records.damaged(Class::Texts, &key, "it is missing"))
    }

    /// The newest bytes of an item.
    pub(super) fn newest(&self, item: &ItemRecord) -> Result<Markup, StoreError> {
        let FeedRecords { name, records } = &self.feed;
        records.decode(Class::Texts, &keys::newest(name, item), &self.newest_body(item)?)
    }
}
