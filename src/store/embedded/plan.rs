//! From a change to the entries it sets and removes: what is stored of what it names is read first, then planned over.

mod archives;

use super::feed::{FeedRecords, TOMBSTONE};
use super::keys;
use super::records::Records;
use crate::engine::{Class, KeyOrder, Writes};
use crate::limits::{EVENTS_KEPT, VERSIONS_LIMIT, WHOLE_EVERY};
use crate::record::{FloorRecord, FrameRecord, ItemRecord, StateRecord, TextRecord};
use crate::{CommitError, LoggedChange, StoreError, check, lineage, note};
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;
use tidegate_core::model::{
    Change, Event, FeedName, LedgerEntry, Markup, NewVersion, Revision, SyncId, Version,
};

/// By how much a document may have been asked for before another one and be older: no poll takes that long. What is
/// further ahead was asked for by a clock that was wrong.
const OVERTAKEN_LIMIT: Duration = Duration::from_secs(3600);
/// The events of a block.
pub(super) const EVENTS_OF_BLOCK: u64 = 16;

/// A change that is ready to be committed: what is left to write, and what its commit notes.
pub(super) struct PlannedCommit {
    pub(super) feed: FeedName,
    pub(super) writes: Writes,
    /// The feed as it was: its revision and the number of its last write.
    pub(super) base: (Revision, u64),
    /// The feed as it is afterwards.
    pub(super) head: StateRecord,
    /// What the change log says of it, where it makes a tick.
    pub(super) logged: Option<LoggedChange>,
}

/// Checks a change to a feed that stands as `before` says, and plans its entries. Whoever calls is the only
/// one who changes the feed.
pub(super) fn plan(
    records: &Records,
    before: Option<&StateRecord>,
    mark: u32,
    mut change: Change,
) -> Result<PlannedCommit, CommitError> {
    let asked_at = before.and_then(|head| head.asked_at);
    if let Some((asked, last)) = change.asked_at.zip(asked_at)
        && last > asked
        && last.since(asked) <= OVERTAKEN_LIMIT
    {
        return Err(CommitError::Overtaken);
    }
    let asked_at = change.asked_at.or(asked_at);
    let state = before.map(|head| &head.state);
    let feed = FeedRecords::new(records, &change.feed);
    let loaded = LoadedRecords::load(&feed, &change, before)?;
    check::check(&change, state, loaded.order(), |id| loaded.has_item(id))?;
    for seal in &change.seals {
        let key = keys::archive_id(&change.feed, &seal.id);
        if loaded.feed.records.contains(Class::Index, &key)? {
            let what = "it gives an archive an id that another has".to_owned();
            return Err(check::invalid(&change, what));
        }
    }
    let mut base = change.base;
    let floor = loaded.floor.as_ref().map(|record| record.floor);
    if let Some(floor) = floor {
        if state.is_none() {
            base = floor.revision;
        }
        floor.lift(&mut change, state.is_none());
    }
    change.state.revision = Revision(base.0 + 1);
    lineage::go_on(&mut change, state, mark);

    let contested = state.map_or(0, |state| state.contested);
    let mut planner =
        ChangePlanner { change: &change, before, loaded, contested, writes: Writes::new() };
    let archived = planner.archives()?;
    planner.frame()?;
    planner.held()?;
    let next_event = planner.events()?;
    planner.items()?;
    planner.index()?;
    planner.redact_texts()?;
    planner.stubs()?;
    let ChangePlanner { mut writes, contested, .. } = planner;
    if floor.is_some() && change.tick.is_some() {
        writes.insert((Class::Marks, keys::of_kind(keys::PURGED, &change.feed)), None);
    }
    let logged = change.tick.map(|tick| LoggedChange {
        feed: change.feed.clone(),
        tick,
        revision: change.state.revision,
        versions: u32::try_from(change.versions.len()).unwrap_or(u32::MAX),
    });
    change.state.archives.bytes = archived;
    change.state.contested = contested;
    let write = before.map_or(0, |head| head.write);
    Ok(PlannedCommit {
        writes,
        base: (state.map_or(Revision(0), |state| state.revision), write),
        logged,
        feed: change.feed,
        head: StateRecord { state: change.state, next_event, write: write + 1, asked_at },
    })
}

/// What a change is planned over: the records that it names, as they are stored.
struct LoadedRecords {
    /// With the items that the change names and the texts that are superseded, where the database is reached by the
    /// network. Each item is decoded when it is planned.
    feed: FeedRecords,
    floor: Option<FloorRecord>,
    frame: Option<FrameRecord>,
    /// The last block of events, where the change adds to it.
    events: Vec<Event>,
}

impl LoadedRecords {
    fn load(
        feed: &FeedRecords,
        change: &Change,
        before: Option<&StateRecord>,
    ) -> Result<Self, StoreError> {
        let name = &feed.name;
        let block = before.map_or(0, |head| head.next_event) / EVENTS_OF_BLOCK;
        let block = (Class::Events, keys::numbered(name, block));
        let floor = (Class::Marks, keys::of_kind(keys::PURGED, name));
        let single = [floor.clone(), (Class::Frames, keys::feed(name)), block.clone()];
        let sealed = || change.seals.iter().flat_map(|seal| &seal.items);
        let evicted = change.evicted.iter().map(|stub| &stub.id);
        let changed = change.known.iter().map(|known| &known.id).chain(evicted);
        let ids = changed.chain(sealed());
        let ids = ids.map(|id| (Class::Items, keys::item(name, id)));
        let archives = change.seals.iter().map(|seal| keys::archive_id(name, &seal.id));
        let archives = archives.map(|key| (Class::Index, key));
        let feed = feed.ahead(single.into_iter().chain(ids).chain(archives))?;
        let mut texts = Vec::new();
        if feed.records.is_far() {
            for NewVersion { id, .. } in &change.versions {
                let Some(item) = feed.item(id)? else { continue };
                texts.extend([keys::version(name, id, item.body), feed.newest_key(&item)]);
            }
            for id in sealed() {
                texts.extend(feed.item(id)?.map(|item| feed.newest_key(&item)));
            }
        }
        let feed = feed.ahead(texts.into_iter().map(|key| (Class::Texts, key)))?;
        let is_last = !change.events.is_empty();
        let events = if is_last { feed.records.record(block.0, &block.1)? } else { None };
        Ok(Self {
            floor: feed.records.record(floor.0, &floor.1)?,
            frame: feed.frame()?,
            events: events.unwrap_or_default(),
            feed,
        })
    }

    /// The order of the reader view.
    fn order(&self) -> &[SyncId] {
        self.frame.as_ref().map_or(&[], |frame| &frame.order)
    }

    /// Whether an item is in the ledger.
    fn has_item(&self, id: &SyncId) -> Result<bool, StoreError> {
        self.feed.records.contains(Class::Items, &keys::item(&self.feed.name, id))
    }
}

/// Plans what a checked change sets and removes.
struct ChangePlanner<'a> {
    change: &'a Change,
    before: Option<&'a StateRecord>,
    loaded: LoadedRecords,
    /// How many items have conflicts.
    contested: u32,
    writes: Writes,
}

impl ChangePlanner<'_> {
    fn set(&mut self, class: Class, key: Vec<u8>) {
        self.writes.insert((class, key), Some(Vec::new()));
    }

    fn remove(&mut self, class: Class, key: Vec<u8>) {
        self.writes.insert((class, key), None);
    }

    fn put_text(&mut self, key: Vec<u8>, text: &TextRecord) -> Result<(), StoreError> {
        self.loaded.feed.records.put_text(&mut self.writes, key, text)
    }

    fn encoded(&self, id: &SyncId, markup: &Markup) -> Result<Vec<u8>, StoreError> {
        let FeedRecords { records, name } = &self.loaded.feed;
        records.encoded(markup, || format!("the item {id} of the feed {name}"))
    }

    /// The order and the document around the entries; those before them go to the past.
    fn frame(&mut self) -> Result<(), StoreError> {
        let (change, feed) = (self.change, &self.loaded.feed);
        if change.order.is_none() && change.skeleton.is_none() {
            return Ok(());
        }
        let key = (Class::Frames, keys::feed(&feed.name));
        let stored = feed.records.get(key.0, &key.1)?;
        let old = self.loaded.frame.as_ref();
        // Two are never in force since the same time.
        let shown = change.state.updated_at;
        let since = old.map_or(shown, |old| shown.max(old.since.plus(Duration::from_secs(1))));
        let order = change.order.as_ref().or(old.map(|old| &old.order));
        let skeleton = change.skeleton.as_ref().or(old.and_then(|old| old.skeleton.as_ref()));
        let new = FrameRecord {
            since,
            run: 0,
            order: order.cloned().unwrap_or_default(),
            skeleton: skeleton.cloned(),
        };
        let old = old.zip(stored).map(|(old, stored)| (old.since, old.run, stored));
        let (_, _, new) = feed.supersede_frame(old, new, &mut self.writes)?;
        self.writes.insert(key, Some(new.to_vec()));
        Ok(())
    }

    /// The entries of held documents, which go with the hold.
    fn held(&mut self) -> Result<(), StoreError> {
        let key = keys::held(&self.change.feed);
        let was_held = self.before.is_some_and(|before| before.state.hold.is_some());
        match (&self.change.state.hold, &self.change.kept) {
            (Some(_), Some(kept)) => {
                self.loaded.feed.records.put(&mut self.writes, Class::Frames, key, kept)?;
            }
            (None, _) if was_held => self.remove(Class::Frames, key),
            _ => {}
        }
        Ok(())
    }

    /// Adds events to their blocks, drops the oldest blocks, and takes out what events say of redacted items. Answers
    /// the number of the next event.
    fn events(&mut self) -> Result<u64, StoreError> {
        let (change, kept) = (self.change, u64::try_from(EVENTS_KEPT).unwrap_or(u64::MAX));
        let next = self.before.map_or(0, |head| head.next_event);
        let end = next.saturating_add(u64::try_from(change.events.len()).unwrap_or(u64::MAX));
        let first = end.saturating_sub(kept) / EVENTS_OF_BLOCK;
        let mut blocks = BTreeMap::new();
        let FeedRecords { records, name } = &self.loaded.feed;
        if !change.redacted.is_empty() {
            for number in next.saturating_sub(kept) / EVENTS_OF_BLOCK..=next / EVENTS_OF_BLOCK {
                let key = keys::numbered(name, number);
                if let Some(mut events) = records.record::<Vec<Event>>(Class::Events, &key)? {
                    events.iter_mut().for_each(|event| redact_event(change, event));
                    blocks.insert(number, events);
                }
            }
        } else if !change.events.is_empty() {
            let last = std::mem::take(&mut self.loaded.events);
            blocks.insert(next / EVENTS_OF_BLOCK, last);
        }
        for (number, event) in (next..end).zip(&change.events) {
            blocks.entry(number / EVENTS_OF_BLOCK).or_default().push(event.clone());
        }
        for (number, events) in blocks.range(first..).filter(|(_, events)| !events.is_empty()) {
            let key = keys::numbered(name, *number);
            records.put(&mut self.writes, Class::Events, key, events)?;
        }
        for number in next.saturating_sub(kept) / EVENTS_OF_BLOCK..first.min(end / EVENTS_OF_BLOCK)
        {
            self.remove(Class::Events, keys::numbered(&change.feed, number));
        }
        Ok(end)
    }

    /// Ledger entries, versions, newest bytes, conflicts, and the index by tick.
    fn items(&mut self) -> Result<(), StoreError> {
        let change = self.change;
        let versions: HashMap<_, _> = change.versions.iter().map(|new| (&new.id, new)).collect();
        let latest: HashMap<_, _> = change.latest.iter().map(|(id, new)| (id, new)).collect();
        let conflicts: HashMap<_, _> =
            change.conflicts.iter().map(|of| (&of.id, &of.versions)).collect();
        for known in &change.known {
            let id = &known.id;
            let old = self.loaded.feed.item(id)?;
            self.by_tick(known, old.as_ref());
            let is_new = old.is_none();
            let mut item = old.unwrap_or_else(|| ItemRecord::new(known.clone()));
            item.known = known.clone();
            match conflicts.get(id) {
                Some(versions) => self.conflicts(&mut item, versions)?,
                None if known.conflicts == 0 && !item.conflicts.is_empty() => {
                    self.conflicts(&mut item, &[])?;
                }
                None => {}
            }
            if let Some(new) = versions.get(id) {
                self.version(&mut item, is_new, new)?;
            }
            if let Some(markup) = latest.get(id) {
                let text = TextRecord::of_body(self.encoded(id, markup)?);
                self.put_text(keys::item(&change.feed, id), &text)?;
                item.has_latest = true;
            }
            let key = keys::item(&change.feed, id);
            self.loaded.feed.records.put(&mut self.writes, Class::Items, key, &item)?;
        }
        Ok(())
    }

    /// Moves an item in the index by tick.
    fn by_tick(&mut self, known: &LedgerEntry, old: Option<&ItemRecord>) {
        let place = |known: &LedgerEntry| (known.tick, known.is_tombstone());
        let old = old.map(|old| place(&old.known));
        if old == Some(place(known)) {
            return;
        }
        let key = |tick| keys::by_tick(&self.change.feed, tick, &known.id);
        let (new, old) = (key(known.tick), old.map(|(tick, _)| key(tick)));
        if let Some(old) = old {
            self.remove(Class::Index, old);
        }
        let flag: &[u8] = if known.is_tombstone() { TOMBSTONE } else { &[] };
        self.writes.insert((Class::Index, new), Some(flag.to_vec()));
    }

    /// What is in conflict with an item: where a version has no bytes, the newest ones until now.
    fn conflicts(
        &mut self,
        item: &mut ItemRecord,
        versions: &[Version<Option<Markup>>],
    ) -> Result<(), StoreError> {
        let feed = &self.loaded.feed;
        let whole = versions.iter().map(|version| {
            let newest = || feed.newest(item);
            Ok(version.with(version.data.clone().map_or_else(newest, Ok)?))
        });
        let whole = whole.collect::<Result<_, StoreError>>()?;
        let was_contested = !std::mem::replace(&mut item.conflicts, whole).is_empty();
        let key = keys::contested(&feed.name, &item.known.id);
        self.contested = self.contested.saturating_sub(u32::from(was_contested));
        match versions.is_empty() {
            true => self.remove(Class::Index, key),
            false => {
                self.contested = self.contested.saturating_add(1);
                self.set(Class::Index, key);
            }
        }
        Ok(())
    }

    /// A version of an item. The bytes before become a difference to its own, unless every so many are to be whole, so
    /// that no chain is long.
    fn version(
        &mut self,
        item: &mut ItemRecord,
        is_new: bool,
        new: &NewVersion,
    ) -> Result<(), StoreError> {
        let (change, feed) = (self.change, self.loaded.feed.clone());
        let (id, tick) = (&new.id, item.known.tick);
        let key = |tick| keys::version(&feed.name, id, tick);
        let body = match &new.markup {
            Some(markup) => Some(self.encoded(id, markup)?),
            // What waited for its version: the newest bytes become that version's.
            None if item.has_latest && !item.known.is_deleted() => {
                Some(feed.newest_body(item)?.to_vec())
            }
            None => None,
        };
        if let Some(body) = &body {
            let old = if is_new { None } else { feed.records.text(&key(item.body))? };
            let is_difference = new.markup.is_some()
                && !item.known.updates.value().is_multiple_of(WHOLE_EVERY)
                && !change.redacted.contains(id);
            match old {
                // Its version was dropped.
                Some(TextRecord { note: None, .. }) => self.remove(Class::Texts, key(item.body)),
                Some(TextRecord { note, body: Some(whole) }) if is_difference => {
                    let what = || format!("the item {id} of the feed {}", feed.name);
                    let packed = feed.records.difference(&whole, tick.time(), body, what)?;
                    let old = TextRecord { note, body: Some(packed.into()) };
                    self.put_text(key(item.body), &old)?;
                }
                _ => {}
            }
            item.body = tick;
            if std::mem::take(&mut item.has_latest) {
                self.remove(Class::Texts, keys::item(&feed.name, id));
            }
        }
        let note = note(&item.known, new, change.state.updated_at);
        let text = TextRecord { note: Some(note), body: body.map(Into::into) };
        self.put_text(key(tick), &text)?;
        item.kept = item.kept.saturating_add(1);
        if usize::try_from(item.kept).unwrap_or(usize::MAX) > VERSIONS_LIMIT {
            self.drop_oldest(item)?;
        }
        Ok(())
    }

    /// Drops the oldest version of an item.
    fn drop_oldest(&mut self, item: &mut ItemRecord) -> Result<(), StoreError> {
        let feed = self.loaded.feed.clone();
        let id = &item.known.id;
        for entry in feed.texts(id, KeyOrder::Ascending) {
            let (key, value) = entry?;
            let text = feed.records.decode_text(&key, &value)?;
            if text.note.is_none() {
                continue;
            }
            item.kept -= 1;
            // Its bytes may still be the newest that the item has.
            if key == keys::version(&feed.name, id, item.body) {
                return self.put_text(key, &TextRecord { note: None, ..text });
            }
            self.remove(Class::Texts, key);
            return Ok(());
        }
        let key = keys::item(&feed.name, id);
        Err(feed.records.damaged(Class::Texts, &key, "its versions are missing"))
    }

    /// The index of the ledger.
    fn index(&mut self) -> Result<(), StoreError> {
        let (feed, index) = (&self.change.feed, &self.change.index);
        for item in &index.items {
            for key in &item.removed {
                self.remove(Class::Index, keys::indexed_item(feed, *key, &item.id));
            }
            for key in &item.added {
                self.set(Class::Index, keys::indexed_item(feed, *key, &item.id));
            }
        }
        if let Some(unsettled) = &index.unsettled {
            let key = keys::unsettled(feed);
            self.loaded.feed.records.put(&mut self.writes, Class::Frames, key, unsettled)?;
        }
        Ok(())
    }

    /// Takes the text of redacted items out of all their versions but those that the change itself sets.
    fn redact_texts(&mut self) -> Result<(), StoreError> {
        let feed = self.loaded.feed.clone();
        for id in &self.change.redacted {
            for entry in feed.texts(id, KeyOrder::Ascending) {
                let (key, value) = entry?;
                if self.writes.contains_key(&(Class::Texts, key.clone())) {
                    continue;
                }
                match feed.records.decode_text(&key, &value)?.note {
                    Some(mut note) => {
                        crate::assemble::redact_note(&mut note);
                        self.put_text(key, &TextRecord { note: Some(note), body: None })?;
                    }
                    None => self.remove(Class::Texts, key),
                }
            }
        }
        Ok(())
    }

    /// What leaves the ledger, and what comes back.
    fn stubs(&mut self) -> Result<(), StoreError> {
        let feed = self.loaded.feed.clone();
        for stub in &self.change.evicted {
            let id = &stub.id;
            let item = feed.item(id)?;
            let key = keys::item(&feed.name, id);
            let item =
                item.ok_or_else(|| feed.records.damaged(Class::Items, &key, "it is missing"))?;
            self.remove(Class::Index, keys::by_tick(&feed.name, item.known.tick, id));
            if !item.conflicts.is_empty() {
                self.contested = self.contested.saturating_sub(1);
                self.remove(Class::Index, keys::contested(&feed.name, id));
            }
            for (text, _) in feed.records.sizes(Class::Texts, &key)? {
                self.remove(Class::Texts, text);
            }
            self.remove(Class::Items, key);
            feed.put_stub(stub, &mut self.writes)?;
        }
        for id in &self.change.reinstated {
            let stub = feed.stubs(&[id.to_string()])?.into_iter().find(|stub| stub.id == *id);
            let key = keys::item(&feed.name, id);
            let missing = || feed.records.damaged(Class::Stubs, &key, "it is missing");
            let stub = stub.ok_or_else(missing)?;
            for name in stub.names() {
                self.remove(Class::Index, keys::stub_name(&feed.name, name, stub.tick, id));
            }
            self.remove(Class::Stubs, keys::stub(&feed.name, stub.tick, id));
        }
        Ok(())
    }
}

/// Takes what a redacted item said out of an event of it.
fn redact_event(change: &Change, event: &mut Event) {
    let known = change.known.iter().find(|known| known.id == event.id);
    if let Some(known) = known.filter(|known| change.redacted.contains(&known.id)) {
        crate::assemble::redact_event(event, &known.native_shown);
    }
}
