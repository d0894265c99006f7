//! Plans the writes of a change. [`LoadedRecords::load`] reads first what [`plan`] needs: where each read is a round
//! trip, they are few.

mod archives;
mod load;

pub(super) use self::load::{LoadedRecords, keys_of};

use super::feed_writer::FeedWriter;
use super::keys;
use super::records::RecordCodec;
use crate::engine::{Class, Writes};
use crate::limits::{EVENTS_KEPT, VERSIONS_LIMIT, WHOLE_EVERY};
use crate::record::{FrameRecord, ItemRecord, PurgeRecord, StateRecord, TextRecord};
use crate::{CommitError, LoggedChange, StoreError, VersionNote, check};
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;
use tidegate_core::model::{
    Change, Event, FeedName, LedgerEntry, Markup, NewVersion, Revision, Time, Version,
};

/// How much earlier than another one a document may have been asked for and still be the older one: no poll takes
/// longer. A greater difference comes from a wrong clock.
const OVERTAKEN_LIMIT: Duration = Duration::from_secs(3600);
/// The events of a block.
pub(super) const EVENTS_OF_BLOCK: u64 = 16;

/// A planned change: its writes, and what the commit notes of it.
pub(super) struct PlannedCommit {
    pub(super) feed: FeedName,
    pub(super) writes: Writes,
    /// The feed as it was: its revision and the number of its last write.
    pub(super) base: (Revision, u64),
    /// The feed as it is afterwards.
    pub(super) head: StateRecord,
    /// Its entry in the change log, where it makes a tick.
    pub(super) logged: Option<LoggedChange>,
}

/// Checks a change to a feed at the state `before`, and plans its writes. `opening`: the mark of this opening. The
/// caller holds the lock of the feed against other changes.
pub(super) fn plan(
    loaded: LoadedRecords,
    before: Option<&StateRecord>,
    opening: u32,
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
    let (feed, records) = (&loaded.feed, &loaded.feed.records);
    let frame = feed.frame()?;
    let order = frame.as_ref().map_or(&[][..], |frame| &frame.order);
    check::check(&change, state, order, |id| {
        records.contains(Class::Items, &keys::item(&change.feed, id))
    })?;
    for seal in &change.seals {
        if records.contains(Class::Index, &keys::archive_id(&change.feed, &seal.id))? {
            let what = "it gives an archive an id that another has".to_owned();
            return Err(check::invalid(&change, what));
        }
    }
    let mut base = change.base;
    let purged = keys::of_kind(keys::PURGED, &change.feed);
    let purge_mark: Option<PurgeRecord> = records.record(Class::Marks, &purged)?;
    if let Some(PurgeRecord { mark, .. }) = &purge_mark {
        if state.is_none() {
            base = mark.revision;
        }
        mark.lift(&mut change, state.is_none());
    }
    change.state.revision = Revision(base.0 + 1);
    // The opening that made this render revision.
    let (shown, next) = (state.map(|state| state.render_revision), &mut change.state);
    let shown = shown.unwrap_or_else(|| next.render_revision.saturating_sub(1));
    if next.render_revision > shown {
        next.lineage.go_on(opening, shown);
    }

    let contested = state.map_or(0, |state| state.contested);
    let mut writes = Writes::new();
    let codec = RecordCodec::clone(records);
    let writer = FeedWriter { codec: &codec, name: &change.feed, writes: &mut writes };
    let mut planner = ChangePlanner { change: &change, before, frame, loaded, contested, writer };
    let archived = planner.archives()?;
    planner.frame()?;
    planner.held()?;
    let next_event = planner.events()?;
    planner.items()?;
    planner.index()?;
    planner.redact_texts()?;
    planner.stubs()?;
    let contested = planner.contested;
    if purge_mark.is_some() && change.tick.is_some() {
        writes.insert((Class::Marks, purged), None);
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

/// Plans the writes of a checked change.
struct ChangePlanner<'a> {
    change: &'a Change,
    before: Option<&'a StateRecord>,
    frame: Option<FrameRecord>,
    loaded: LoadedRecords,
    /// How many items have conflicts.
    contested: u32,
    writer: FeedWriter<'a>,
}

impl ChangePlanner<'_> {
    /// The frame; the one before goes to the past.
    fn frame(&mut self) -> Result<(), StoreError> {
        let change = self.change;
        if change.order.is_none() && change.skeleton.is_none() {
            return Ok(());
        }
        let feed = self.writer.name;
        let what = || format!("the order and the document around the entries of the feed {feed}");
        let (old, shown) = (self.frame.as_ref(), change.state.updated_at);
        // Some are stored whole, so that no chain of differences is long.
        let run = old.map_or(0, |old| old.run + 1);
        let order = change.order.as_ref().or(old.map(|old| &old.order));
        let skeleton = change.skeleton.as_ref().or(old.and_then(|old| old.skeleton.as_ref()));
        let new = FrameRecord {
            // No two frames are in force since the same time.
            since: old.map_or(shown, |old| shown.max(old.since.plus(Duration::from_secs(1)))),
            run: if run < WHOLE_EVERY { run } else { 0 },
            order: order.cloned().unwrap_or_default(),
            skeleton: skeleton.cloned(),
        };
        let (codec, key) = (self.writer.codec, keys::feed(feed));
        let encoded = codec.encoded(&new, what)?;
        if let Some((old, whole)) = old.zip(self.loaded.feed.records.get(Class::Frames, &key)?) {
            let past = match new.run {
                0 => whole.to_vec(),
                _ => codec.difference(&whole, new.since, &encoded, what)?,
            };
            self.writer.writes.insert((Class::Past, keys::past(feed, old.since)), Some(past));
        }
        self.writer.writes.insert((Class::Frames, key), Some(encoded));
        Ok(())
    }

    /// The entries of held documents, which go with the hold.
    fn held(&mut self) -> Result<(), StoreError> {
        let key = keys::held(&self.change.feed);
        let was_held = self.before.is_some_and(|before| before.state.hold.is_some());
        match (&self.change.state.hold, &self.change.kept) {
            (Some(_), Some(kept)) => self.writer.put(Class::Frames, key, kept)?,
            (None, _) if was_held => self.writer.remove(Class::Frames, key),
            _ => {}
        }
        Ok(())
    }

    /// Adds events to their blocks, drops the oldest blocks, and takes out what events say of redacted items. Answers
    /// the number of the next event.
    fn events(&mut self) -> Result<u64, StoreError> {
        let (change, feed) = (self.change, &self.change.feed);
        let next = self.before.map_or(0, |head| head.next_event);
        let end = next.saturating_add(change.events.len() as u64);
        let first = end.saturating_sub(EVENTS_KEPT as u64) / EVENTS_OF_BLOCK;
        let mut blocks: BTreeMap<u64, Vec<Event>> = BTreeMap::new();
        let Some(changed) = load::changed_blocks(change, next) else { return Ok(end) };
        for number in changed {
            let key = keys::numbered(feed, number);
            let found = self.loaded.feed.records.record(Class::Events, &key)?;
            let mut events: Vec<Event> = found.unwrap_or_default();
            events.iter_mut().for_each(|event| redact_event(change, event));
            blocks.insert(number, events);
        }
        for (number, event) in (next..end).zip(&change.events) {
            blocks.entry(number / EVENTS_OF_BLOCK).or_default().push(event.clone());
        }
        for (number, events) in blocks.range(first..).filter(|(_, events)| !events.is_empty()) {
            self.writer.put(Class::Events, keys::numbered(feed, *number), events)?;
        }
        for number in *load::kept_blocks(next).start()..first.min(end / EVENTS_OF_BLOCK) {
            self.writer.remove(Class::Events, keys::numbered(feed, number));
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
            self.move_tick(known, old.as_ref());
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
                let body = Some(self.writer.encode_markup(id, markup)?);
                let key = keys::item(&change.feed, id);
                self.writer.put_text(key, &TextRecord { note: None, body })?;
                item.has_latest = true;
            }
            self.writer.put_item(&item)?;
        }
        Ok(())
    }

    /// Moves an item in the index by tick.
    fn move_tick(&mut self, known: &LedgerEntry, old: Option<&ItemRecord>) {
        let place = |known: &LedgerEntry| (known.tick, known.is_tombstone());
        let old = old.map(|old| place(&old.known));
        if old == Some(place(known)) {
            return;
        }
        if let Some((tick, _)) = old {
            self.writer.remove(Class::Index, keys::by_tick(&self.change.feed, tick, &known.id));
        }
        self.writer.put_tick(known);
    }

    /// What is in conflict with an item: where a version has no bytes, the newest ones until now.
    fn conflicts(
        &mut self,
        item: &mut ItemRecord,
        versions: &[Version<Option<Markup>>],
    ) -> Result<(), StoreError> {
        let whole = versions.iter().map(|version| {
            let newest = || self.loaded.newest(item);
            Ok(version.with(version.data.clone().map_or_else(newest, Ok)?))
        });
        let whole = whole.collect::<Result<_, StoreError>>()?;
        let was_contested = !std::mem::replace(&mut item.conflicts, whole).is_empty();
        let is_contested = !versions.is_empty();
        self.contested = self.contested.saturating_sub(u32::from(was_contested));
        self.contested = self.contested.saturating_add(u32::from(is_contested));
        self.writer.put_contested(&item.known.id, is_contested);
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
        let (change, id, tick) = (self.change, &new.id, item.known.tick);
        let body = match &new.markup {
            Some(markup) => Some(self.writer.encode_markup(id, markup)?),
            // Newest bytes that had no version become those of this one.
            None if item.has_latest && !item.known.is_deleted() => {
                Some(self.loaded.newest_body(item)?)
            }
            None => None,
        };
        if let Some(body) = &body {
            let key = keys::version(&change.feed, id, item.body);
            let old = if is_new { None } else { self.loaded.feed.records.text(&key)? };
            let is_difference = new.markup.is_some()
                && !item.known.updates.value().is_multiple_of(WHOLE_EVERY)
                && !change.redacted.contains(id);
            match old {
                // Its version was dropped.
                Some(TextRecord { note: None, .. }) => self.writer.remove(Class::Texts, key),
                Some(TextRecord { note, body: Some(whole) }) if is_difference => {
                    let what = || self.writer.describe(id);
                    let body = self.writer.codec.difference(&whole, tick.time(), body, what)?;
                    self.writer.put_text(key, &TextRecord { note, body: Some(body.into()) })?;
                }
                _ => {}
            }
            item.body = tick;
            if std::mem::take(&mut item.has_latest) {
                self.writer.remove(Class::Texts, keys::item(&change.feed, id));
            }
        }
        let note = Some(VersionNote::new(&item.known, new, change.state.updated_at));
        let text = TextRecord { note, body };
        self.writer.put_text(keys::version(&change.feed, id, tick), &text)?;
        item.kept = item.kept.saturating_add(1);
        if item.kept as usize > VERSIONS_LIMIT {
            self.drop_oldest(item)?;
        }
        Ok(())
    }

    /// Drops the oldest version of an item.
    fn drop_oldest(&mut self, item: &mut ItemRecord) -> Result<(), StoreError> {
        let (feed, id) = (&self.change.feed, &item.known.id);
        for key in self.loaded.versions_of(id).take(2) {
            let text = self.loaded.feed.records.text(key)?;
            let text = text.filter(|text| text.note.is_some());
            let Some(text) = text else { continue };
            item.kept -= 1;
            // Its bytes may still be the newest that the item has.
            if *key == keys::version(feed, id, item.body) {
                return self.writer.put_text(key.clone(), &TextRecord { note: None, ..text });
            }
            self.writer.remove(Class::Texts, key.clone());
            return Ok(());
        }
        let what = "its versions are missing";
        Err(self.writer.codec.damaged(Class::Texts, &keys::item(feed, id), what))
    }

    /// The index of the ledger.
    fn index(&mut self) -> Result<(), StoreError> {
        let (feed, index) = (&self.change.feed, &self.change.index);
        for item in &index.items {
            for key in &item.removed {
                self.writer.remove(Class::Index, keys::indexed_item(feed, *key, &item.id));
            }
            for key in &item.added {
                self.writer.set(Class::Index, keys::indexed_item(feed, *key, &item.id));
            }
        }
        let unsettled = index.unsettled.as_ref();
        unsettled.map_or(Ok(()), |ids| self.writer.put(Class::Frames, keys::unsettled(feed), ids))
    }

    /// Takes the text of redacted items out of all their versions but those that the change itself sets.
    fn redact_texts(&mut self) -> Result<(), StoreError> {
        for key in self.change.redacted.iter().flat_map(|id| self.loaded.versions_of(id)) {
            if self.writer.writes.contains_key(&(Class::Texts, key.clone())) {
                continue;
            }
            match self.loaded.feed.records.text(key)?.and_then(|text| text.note) {
                Some(note) => {
                    let note = VersionNote { title: String::new(), size: 0, ..note };
                    let text = TextRecord { note: Some(note), body: None };
                    self.writer.put_text(key.clone(), &text)?;
                }
                None => self.writer.remove(Class::Texts, key.clone()),
            }
        }
        Ok(())
    }

    /// What leaves the ledger, and what comes back.
    fn stubs(&mut self) -> Result<(), StoreError> {
        for stub in &self.change.evicted {
            let id = &stub.id;
            let feed = &self.change.feed;
            let key = keys::item(feed, id);
            let item: ItemRecord = self.loaded.feed.records.expected(Class::Items, &key)?;
            self.writer.remove(Class::Index, keys::by_tick(feed, item.known.tick, id));
            if !item.conflicts.is_empty() {
                self.contested = self.contested.saturating_sub(1);
                self.writer.put_contested(id, false);
            }
            for text in self.loaded.texts_of(id) {
                self.writer.remove(Class::Texts, text.clone());
            }
            self.writer.remove(Class::Items, key);
            self.writer.put_stub(stub)?;
        }
        for id in &self.change.reinstated {
            self.writer.remove_stub(&self.loaded.stub(id)?);
        }
        Ok(())
    }
}

/// Takes what a redacted item said out of an event of it.
fn redact_event(change: &Change, event: &mut Event) {
    let known = change.known.iter().find(|known| known.id == event.id);
    let Some(known) = known.filter(|known| change.redacted.contains(&known.id)) else { return };
    event.title.clear();
    // What it goes by after the redaction. An id may be made of a title.
    event.native_id.clone_from(&known.native_shown);
    event.old_native_id = event.old_native_id.take().filter(|old| !old.starts_with("title:"));
}

impl VersionNote {
    /// What is noted of the version that a ledger entry has now, and that is shown from `shown` on.
    pub(crate) fn new(known: &LedgerEntry, version: &NewVersion, shown: Time) -> Self {
        let size = match (&version.markup, known.is_deleted()) {
            (Some(markup), false) => u64::try_from(markup.xml.len()).unwrap_or(u64::MAX),
            _ => 0,
        };
        Self {
            updates: known.updates,
            update: known.history.topmost().clone(),
            deleted: known.is_deleted(),
            tick: known.tick,
            shown,
            title: known.title.clone(),
            reason: version.reason.clone(),
            size,
        }
    }
}
