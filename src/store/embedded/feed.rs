//! The records of a feed. The caller holds its lock, or reads from a snapshot.

use super::feed_writer::TOMBSTONE;
use super::keys;
use super::records::Records;
use crate::engine::{Class, KeyOrder, RecordKey, beginning_with};
use crate::limits::EVENTS_KEPT;
use crate::record::{FrameRecord, ItemRecord, assemble};
use crate::{RemainingItems, Select, StoreError, View, purge_mark};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::time::Duration;
use tidegate_core::model::{
    EndpointId, Event, FeedName, FeedState, FoundItems, HeldEntry, Item, LedgerEntry, LedgerQuery,
    SettledItems, Snapshot, SyncId, Tick,
};

/// The most items whose records are read at once.
pub(super) const ITEMS_AT_ONCE: usize = 256;
/// How many items of a view are read at a time.
const PORTION_ITEMS: usize = if cfg!(test) { 3 } else { 1024 };
/// A portion of a view ends after this many bytes.
const PORTION_BYTES: usize = 4 << 20;
/// The most stubs that are answered for a name other than their sync id. Native ids that many items had are no names.
const STUBS_OF_NAME: usize = 64;

/// The records of a feed.
#[derive(Clone)]
pub(super) struct FeedRecords {
    pub(super) records: Records,
    pub(super) name: FeedName,
}

impl FeedRecords {
    /// The records of the feed of this name.
    pub(super) fn new(records: &Records, name: &FeedName) -> Self {
        Self { records: records.clone(), name: name.clone() }
    }

    /// The frame, where anything was shown yet.
    pub(super) fn frame(&self) -> Result<Option<FrameRecord>, StoreError> {
        self.records.record(Class::Frames, &keys::feed(&self.name))
    }

    /// The order of the reader view.
    fn order(&self) -> Result<Vec<SyncId>, StoreError> {
        Ok(self.frame()?.map(|frame| frame.order).unwrap_or_default())
    }

    /// The entries of held documents.
    pub(super) fn held(&self) -> Result<Vec<HeldEntry>, StoreError> {
        Ok(self.records.record(Class::Frames, &keys::held(&self.name))?.unwrap_or_default())
    }

    /// The items outside the order that are not settled; `None` where the ledger has no index.
    fn unsettled_ids(&self) -> Result<Option<Vec<SyncId>>, StoreError> {
        self.records.record(Class::Frames, &keys::unsettled(&self.name))
    }

    /// Whether the ledger has an index.
    pub(super) fn has_index(&self) -> Result<bool, StoreError> {
        // A long list is not read.
        let found = self.records.sizes(Class::Frames, &keys::unsettled(&self.name)).next();
        Ok(found.transpose()?.is_some())
    }

    /// The record of an item.
    pub(super) fn item(&self, id: &SyncId) -> Result<Option<ItemRecord>, StoreError> {
        self.records.record(Class::Items, &keys::item(&self.name, id))
    }

    /// The ledger entry of an item.
    pub(super) fn known(&self, id: &SyncId) -> Result<Option<LedgerEntry>, StoreError> {
        Ok(self.item(id)?.map(|item| item.known))
    }

    /// The items of the ledger, in the order of their ids.
    pub(super) fn items(&self) -> impl Iterator<Item = Result<ItemRecord, StoreError>> {
        self.records.values(Class::Items, &keys::feed(&self.name))
    }

    /// The records of items, in the order of their ids; all of them must exist.
    pub(super) fn items_of<'a>(
        &self,
        ids: impl IntoIterator<Item = &'a SyncId>,
    ) -> Result<Vec<ItemRecord>, StoreError> {
        let keys = ids.into_iter().map(|id| keys::item(&self.name, id));
        self.records.expect_all(Class::Items, keys)
    }

    /// These items with their bytes, each decoded when it is asked for.
    pub(super) fn assemble(
        &self,
        items: Vec<ItemRecord>,
    ) -> Result<impl Iterator<Item = Result<Item, StoreError>>, StoreError> {
        let key = |item| (Class::Texts, keys::newest(&self.name, item));
        let keys: Vec<RecordKey> = items.iter().map(key).collect();
        let texts = self.records.get_many(&keys)?;
        Ok(items.into_iter().zip(keys).zip(texts).map(|((item, (class, key)), text)| {
            let text = text.map(|text| self.records.decode_text(&key, &text)).transpose()?;
            let missing = || self.records.damaged(class, &key, "it is missing");
            let body = text.and_then(|text| text.body).ok_or_else(missing)?;
            let newest = self.records.decode(class, &key, &body)?;
            Ok(assemble(item.known, newest, item.conflicts))
        }))
    }

    /// One item.
    pub(super) fn whole_item(&self, id: &SyncId) -> Result<Option<Item>, StoreError> {
        let Some(item) = self.item(id)? else { return Ok(None) };
        self.assemble(vec![item])?.next().transpose()
    }

    /// The ids in the index by tick from the key `from` on, each with its tick.
    fn ids_from(
        &self,
        from: Vec<u8>,
        is_wanted: impl Fn(&[u8]) -> bool,
    ) -> Result<Vec<SyncId>, StoreError> {
        let end = beginning_with(&keys::of_kind(keys::BY_TICK, &self.name)).1;
        let range = (Bound::Included(from), end);
        let mut ids = Vec::new();
        for entry in self.records.range(Class::Index, range, KeyOrder::Ascending) {
            let (key, flag) = entry?;
            if is_wanted(&flag) {
                ids.push(self.index_item(&key, 1)?.1);
            }
        }
        Ok(ids)
    }

    /// Decodes a key of the index, after `numbers` numbers.
    fn index_item(&self, key: &[u8], numbers: usize) -> Result<(Option<Tick>, SyncId), StoreError> {
        self.records.read_key(Class::Index, key, keys::index_item(key, numbers))
    }

    /// All items of the ledger, by tick and then sync id.
    pub(super) fn ledger(&self) -> Result<Vec<SyncId>, StoreError> {
        self.ids_from(keys::of_kind(keys::BY_TICK, &self.name), |_| true)
    }

    /// The first items of a view with their bytes, and the remaining items; `None` before the first skeleton.
    pub(super) fn begin_view(
        &self,
        state: &FeedState,
        select: Select,
    ) -> Result<Option<(View, RemainingItems)>, StoreError> {
        let Some(frame) = self.frame()? else { return Ok(None) };
        let Some(skeleton) = frame.skeleton else { return Ok(None) };
        let after = |tick| keys::after_tick(&self.name, tick);
        let ids = match select {
            Select::Current => frame.order,
            Select::After(tick) => self.ids_from(after(tick), |_| true)?,
            Select::Tombstones(tick) => self.ids_from(after(tick), |flag| flag == TOMBSTONE)?,
            Select::All => self.ledger()?,
        };
        let (items, remaining) = self.next_items(RemainingItems::new(ids))?;
        Ok(Some((View { state: state.clone(), skeleton, items }, remaining)))
    }

    /// The next items with their bytes, and the remaining ones. At least one, unless none remains.
    pub(super) fn next_items(
        &self,
        remaining: RemainingItems,
    ) -> Result<(Vec<Item>, RemainingItems), StoreError> {
        let (mut items, mut bytes, mut read) = (Vec::new(), 0, 0);
        while items.len() < PORTION_ITEMS && bytes < PORTION_BYTES {
            let left = remaining.ids().get(read..).unwrap_or_default();
            let ids = left.get(..ITEMS_AT_ONCE.min(PORTION_ITEMS - items.len())).unwrap_or(left);
            if ids.is_empty() {
                break;
            }
            let mut found = self.items_of(ids)?;
            found.retain(|item| !item.known.is_discarded());
            let all = items.len() + found.len();
            for item in self.assemble(found)? {
                let item = item?;
                bytes += item.shared.winner.data.xml.len();
                items.push(item);
                if bytes >= PORTION_BYTES {
                    break;
                }
            }
            let last = items.last().filter(|_| items.len() < all);
            let last = last.map(|item| &item.shared.winner.id);
            let behind = ids.iter().position(|id| Some(id) == last);
            read += behind.map_or(ids.len(), |last| last + 1);
        }
        Ok((items, remaining.after(read)))
    }

    /// The snapshot that judging a document needs.
    pub(super) fn snapshot(&self, state: &FeedState) -> Result<Option<Snapshot>, StoreError> {
        let items = self.items().collect::<Result<Vec<_>, _>>()?;
        let whole = self.snapshot_of(state, (self.order()?, self.unsettled_ids()?), items)?;
        Ok(Some(Snapshot {
            archives: self.oldest_archives(state, Snapshot::OLDEST_ARCHIVES)?,
            ..whole
        }))
    }

    /// The order and the unsettled items; the whole ledger where it has no index.
    pub(super) fn unsettled(
        &self,
        state: &FeedState,
        cutoff: Tick,
    ) -> Result<Option<Snapshot>, StoreError> {
        let Some(unsettled) = self.unsettled_ids()? else { return self.snapshot(state) };
        let order = self.order()?;
        let ids: BTreeSet<&SyncId> = order.iter().chain(&unsettled).collect();
        let items = self.items_of(ids)?;
        let (mut living, mut tombstones) = (state.living, state.tombstones);
        for known in items.iter().map(|item| &item.known).filter(|known| !known.is_hidden()) {
            let count = if known.is_deleted() { &mut tombstones } else { &mut living };
            *count = count.saturating_sub(1);
        }
        // The greatest tick before the cutoff.
        let begin = Bound::Included(keys::of_kind(keys::BY_TICK, &self.name));
        let range = (begin, Bound::Excluded(keys::from_tick(&self.name, cutoff)));
        let last = self.records.first(Class::Index, range, KeyOrder::Descending)?;
        let last = last.map(|(key, _)| self.index_item(&key, 1)).transpose()?;
        let left_window = last.and_then(|(tick, _)| tick);
        let settled = SettledItems { living, tombstones, left_window, after: None };
        let part = self.snapshot_of(state, (order, Some(unsettled)), items)?;
        // Dropping archives is maintenance that needs the whole ledger.
        Ok(Some(Snapshot { settled: Some(settled), ..part }))
    }

    fn snapshot_of(
        &self,
        state: &FeedState,
        (order, unsettled): (Vec<SyncId>, Option<Vec<SyncId>>),
        items: Vec<ItemRecord>,
    ) -> Result<Snapshot, StoreError> {
        let (mut known, mut conflicts) = (Vec::with_capacity(items.len()), BTreeMap::new());
        for item in items {
            if !item.conflicts.is_empty() {
                conflicts.insert(item.known.id.clone(), item.conflicts);
            }
            known.push(item.known);
        }
        Ok(Snapshot {
            state: state.clone(),
            kept: if state.hold.is_some() { self.held()? } else { Vec::new() },
            archives: Vec::new(),
            settled: None,
            outdated: Vec::new(),
            conflicts,
            unsettled,
            order,
            known,
        })
    }

    /// The items that a query asks for.
    pub(super) fn find(&self, query: &LedgerQuery) -> Result<FoundItems, StoreError> {
        let mut ids: BTreeSet<SyncId> = query.ids.iter().cloned().collect();
        for key in &query.keys {
            let found = self.records.entries(Class::Index, &keys::indexed(&self.name, *key));
            for entry in found.take(LedgerQuery::ITEMS_OF_KEY) {
                ids.insert(self.index_item(&entry?.0, 1)?.1);
            }
        }
        let by_tick = keys::of_kind(keys::BY_TICK, &self.name);
        let mut oldest_to = None;
        for entry in self.records.entries(Class::Index, &by_tick).take(query.oldest) {
            let (tick, id) = self.index_item(&entry?.0, 1)?;
            ids.insert(id);
            // More items may have the last key.
            oldest_to = tick.map(|tick| Tick::at(tick.time().minus(Duration::from_secs(1))));
        }
        let keys = ids.iter().map(|id| keys::item(&self.name, id));
        let found: Vec<Option<ItemRecord>> = self.records.all(Class::Items, keys)?;
        let mut items: Vec<LedgerEntry> =
            found.into_iter().flatten().map(|item| item.known).collect();
        items.extend(self.stubs(&query.names)?);
        Ok(FoundItems { items, oldest_to })
    }

    /// The items that have conflicts.
    pub(super) fn contested(&self) -> Result<Vec<SyncId>, StoreError> {
        let prefix = keys::of_kind(keys::CONTESTED, &self.name);
        let all = self.records.sizes(Class::Index, &prefix);
        all.map(|entry| Ok(self.index_item(&entry?.0, 0)?.1)).collect()
    }

    /// The stubs whose sync id, native id, former native ids or published id is among these, in the order of
    /// their sync ids.
    pub(super) fn stubs(&self, names: &[String]) -> Result<Vec<LedgerEntry>, StoreError> {
        let mut found: BTreeMap<SyncId, LedgerEntry> = BTreeMap::new();
        for name in names {
            let mut others = 0;
            let prefix = keys::stub_names(&self.name, name);
            for entry in self.records.entries(Class::Index, &prefix) {
                let (key, _) = entry?;
                let (tick, id) = self.index_item(&key, 2)?;
                let tick = self.records.read_key(Class::Index, &key, tick)?;
                // A sync id finds its stub, however many items had it as another name.
                if id.as_str() != name {
                    others += 1;
                    if others > STUBS_OF_NAME {
                        continue;
                    }
                }
                let key = keys::stub(&self.name, tick, &id);
                let stub: LedgerEntry = self.records.expected(Class::Stubs, &key)?;
                // Two names may have one hash.
                if stub.names().any(|of| of == name) {
                    found.insert(id, stub);
                }
            }
        }
        Ok(found.into_values().collect())
    }

    /// All stubs.
    pub(super) fn all_stubs(&self) -> impl Iterator<Item = Result<LedgerEntry, StoreError>> {
        self.records.values(Class::Stubs, &keys::feed(&self.name))
    }

    /// The events, newest first.
    pub(super) fn events(&self, limit: usize) -> Result<Vec<Event>, StoreError> {
        let (mut events, limit) = (Vec::new(), limit.min(EVENTS_KEPT));
        let all = beginning_with(&keys::feed(&self.name));
        for entry in self.records.range(Class::Events, all, KeyOrder::Descending) {
            if events.len() >= limit {
                break;
            }
            let (key, value) = entry?;
            let block: Vec<Event> = self.records.decode(Class::Events, &key, &value)?;
            events.extend(block.into_iter().rev());
        }
        events.truncate(limit);
        Ok(events)
    }

    /// The most updates that this gateway made to an item ([`purge_mark::own_updates`]). Damaged records are skipped:
    /// the feed is about to be purged.
    pub(super) fn most_updates(&self, own: Option<&EndpointId>) -> Result<u32, StoreError> {
        let known = self.items().map(|item| item.map(|item| item.known));
        let left = self.all_stubs();
        let mut most = 0;
        for entry in known.chain(left) {
            if let Some(entry) = super::read::undamaged(entry)? {
                most = most.max(purge_mark::own_updates(&entry, own));
            }
        }
        Ok(most)
    }
}
