//! Everything in the records, handed over and taken in.

use super::chain::{self, ChainHead, ORDERS, SKELETONS};
use super::records::Records;
use super::{ahead, archives, keys, open, read, stubs};
use crate::engine::{Class, Writes};
use crate::portable::{CarriedItem, ExportRecord, Fit};
use crate::record::{
    ArchiveNumber, ArchiveRecord, FloorRecord, HeadRecord, HistoryRecord, StateRecord,
};
use crate::{Epoch, KeptVersion, StoreError, StoreOrigin};
use std::time::Duration;
use tidegate_core::model::{
    ArchiveNote, FeedName, FeedState, LedgerEntry, Markup, Tick, Time,
};

/// How many pieces stand behind one barrier while they are taken in, and about how many bytes.
pub(super) const AT_ONCE: usize = 512;
pub(super) const BYTES_AT_ONCE: usize = 1 << 20;
/// How many epochs of the log are read at once.
pub(super) const EPOCHS: usize = 1000;

/// Nobody takes the pieces any more; not an error of the store.
pub(super) struct ExportAbandoned;

/// Reads what is handed over first. The committer waits meanwhile, where it writes to what is read over all feeds.
///
/// No poll state is newer than the content of its feed, which is read after this: the copy would ask the publisher for
/// what is newer than a document that it lacks, and be told that nothing is. An older one costs a poll. A feed that is
/// purged meanwhile ends the export ([`purged`]).
pub(super) fn start(
    records: &Records,
    newest: Epoch,
) -> Result<(Vec<ExportRecord>, Vec<FeedName>), StoreError> {
    let mut pieces: Vec<ExportRecord> = Vec::new();
    let origin = open::origin(records, newest)?;
    pieces.extend(origin.map(|origin| ExportRecord::Origin(Box::new(origin))));
    let origins = open::applied(records)?;
    if !origins.0.is_empty() {
        pieces.push(ExportRecord::Sites(origins));
    }
    let subscriptions = read::subscriptions(records)?.into_iter();
    pieces.extend(subscriptions.map(|one| ExportRecord::Subscription(Box::new(one))));
    for entry in records.scan::<FloorRecord>(Class::Floors, &[]) {
        let (key, record) = entry?;
        let name = open::name(records, Class::Floors, &key)?;
        pieces.push(ExportRecord::Floor(name, record.floor));
    }
    let feeds = read::feeds(records)?.into_iter();
    pieces.extend(feeds.map(|one| ExportRecord::Feed(Box::new(one))));
    let polls = read::poll_states(records)?.into_iter();
    pieces.extend(polls.map(|one| ExportRecord::Poll(Box::new(one))));
    let names = records.sizes(Class::States, &[])?.into_iter();
    let names = names.map(|(key, _)| open::name(records, Class::States, &key));
    Ok((pieces, names.collect::<Result<_, _>>()?))
}

/// A feed that is not there any more when it is its turn, or whose end is missing: what was handed over of it
/// is of no use.
pub(super) fn purged(feed: &FeedName) -> StoreError {
    let source =
        std::io::Error::other(format!("the feed {feed} was purged meanwhile; export anew"));
    StoreError::Io { doing: "hand over all feeds", source }
}

/// Takes a piece.
pub(super) type Send<'a> = dyn FnMut(ExportRecord) -> Result<(), ExportAbandoned> + 'a;

/// Hands a feed over.
pub(super) fn feed(
    records: &Records,
    name: &FeedName,
    state: &FeedState,
    send: &mut Send<'_>,
) -> Result<Result<(), ExportAbandoned>, StoreError> {
    macro_rules! hand {
        ($piece:expr) => {
            if send($piece).is_err() {
                return Ok(Err(ExportAbandoned));
            }
        };
    }
    let history = chain::history(records, name)?;
    let since = SKELETONS.since(&history, state);
    for at in times(records, name, SKELETONS, since)? {
        if let Some((from, skeleton)) = SKELETONS.at(records, name, since, at)? {
            hand!(ExportRecord::Skeleton(name.clone(), from, Box::new(skeleton)));
        }
    }
    let since = ORDERS.since(&history, state);
    for at in times(records, name, ORDERS, since)? {
        if let Some((from, order)) = ORDERS.at(records, name, since, at)? {
            hand!(ExportRecord::Order(name.clone(), from, order));
        }
    }
    let kept = read::kept(records, name)?;
    if !kept.is_empty() {
        hand!(ExportRecord::Held(name.clone(), kept));
    }
    let ids = read::ledger(records, name)?;
    let mut of_items = records.clone();
    for (place, id) in ids.iter().enumerate() {
        if place % ahead::ITEMS == 0 {
            let some = ids.get(place..).unwrap_or_default();
            let some = some.get(..ahead::ITEMS).unwrap_or(some);
            of_items = ahead::of_items(records, name, some)?;
        }
        let known = read::known(&of_items, name, id)?;
        let newest = read::item(&of_items, name, id)?;
        let (Some(known), Some(newest)) = (known, newest) else { continue };
        let (newest, conflicts) = (newest.shared.winner.data, newest.shared.conflicts);
        let item = CarriedItem { known, newest, conflicts };
        hand!(ExportRecord::Item(name.clone(), Box::new(item)));
        for note in read::notes(&of_items, name, id) {
            let note = note?;
            let markup = match note.deleted {
                true => None,
                false => chain::body(&of_items, name, id, note.tick)?,
            };
            let version = KeptVersion { note, markup };
            hand!(ExportRecord::Version(name.clone(), Box::new(version)));
        }
    }
    for entry in records.scan::<LedgerEntry>(Class::Stubs, &keys::feed(name)) {
        hand!(ExportRecord::Stub(name.clone(), Box::new(entry?.1)));
    }
    let mut events = read::events(records, name, usize::MAX)?;
    while let Some(event) = events.pop() {
        hand!(ExportRecord::Event(name.clone(), Box::new(event)));
    }
    for (note, blocks) in archives::all(records, name)? {
        let number = note.number;
        hand!(ExportRecord::Archive(name.clone(), Box::new(note)));
        for block in archives::stored_blocks(records, name, number, blocks.unwrap_or_default())? {
            hand!(ExportRecord::Block(name.clone(), Box::new(block?)));
        }
    }
    hand!(ExportRecord::State(name.clone(), Box::new(state.clone())));
    Ok(Ok(()))
}

/// Since when each document of a line was in force, oldest first, the present one last.
fn times(
    records: &Records,
    name: &FeedName,
    line: ChainHead,
    since: Time,
) -> Result<Vec<Time>, StoreError> {
    let mut times = Vec::new();
    for (key, _) in records.sizes(line.past, &keys::feed(name))? {
        let from = keys::past_since(&key);
        times.push(from.ok_or_else(|| records.damaged(line.past, &key, "its key has no time"))?);
    }
    times.push(since);
    Ok(times)
}

/// What a piece was.
pub(super) enum ImportedRecord {
    /// A part of something.
    Part,
    /// What the other store had reached.
    Origin(Box<StoreOrigin>),
    /// The last of a feed.
    Feed(FeedName, Box<StateRecord>),
    Epoch(Epoch, Time),
}

/// A document of a line that may be followed by another: since when it is in force, the record, and
/// how many differences stand in a row before it.
type Present = (Time, Vec<u8>, u32);

/// What came so far of the feed that is being taken in.
#[derive(Default)]
pub(super) struct Importer {
    fit: Fit,
    skeleton: Option<Present>,
    order: Option<Present>,
    next_event: u64,
    item: Option<ImportedItem>,
    /// The archive whose blocks come, and how many came.
    archive: Option<(FeedName, ArchiveNote, u32)>,
}

impl Importer {
    /// Checks that nothing is missing at the end.
    pub(super) fn end(&self) -> Result<(), StoreError> {
        self.fit.end()
    }

    /// The entries of a piece.
    pub(super) fn piece(
        &mut self,
        records: &Records,
        piece: &ExportRecord,
        writes: &mut Writes,
    ) -> Result<ImportedRecord, StoreError> {
        self.fit.check(piece)?;
        self.finish_before(records, piece, writes)?;
        match piece {
            ExportRecord::Origin(origin) => return Ok(ImportedRecord::Origin(origin.clone())),
            ExportRecord::Feed(record) => {
                records.put(writes, Class::Feeds, keys::feed(&record.name), &**record)?;
            }
            ExportRecord::Poll(state) => {
                records.put(writes, Class::Polls, keys::feed(&state.feed), &**state)?;
            }
            ExportRecord::Subscription(one) => {
                records.put(writes, Class::Subscriptions, keys::subscription(one.id()), &**one)?;
            }
            ExportRecord::Floor(feed, floor) => {
                records.put(
                    writes,
                    Class::Floors,
                    keys::feed(feed),
                    &FloorRecord { floor: *floor, sweeping: false },
                )?;
            }
            ExportRecord::Log(sealed) => {
                for (place, announced) in (0_u32..).zip(&sealed.changes) {
                    open::log(records, writes, (sealed.epoch, place, sealed.at), announced)?;
                }
                return Ok(ImportedRecord::Epoch(sealed.epoch, sealed.at));
            }
            ExportRecord::Skeleton(feed, since, skeleton) => {
                let what = || format!("a document around the entries of {feed}");
                let row = records.encoded(&**skeleton, what)?;
                let before = self.skeleton.take();
                self.skeleton =
                    Some(follow(records, feed, SKELETONS, before, (*since, row), writes)?);
            }
            ExportRecord::Order(feed, since, order) => {
                let row = records.encoded(order, || format!("an order of the feed {feed}"))?;
                let before = self.order.take();
                self.order = Some(follow(records, feed, ORDERS, before, (*since, row), writes)?);
            }
            ExportRecord::Held(feed, kept) => {
                records.put(writes, Class::Kept, keys::feed(feed), kept)?;
            }
            ExportRecord::Item(feed, item) => {
                self.item = Some(ImportedItem::begin(records, feed, item, writes)?);
            }
            ExportRecord::Version(_, version) => {
                if let Some(item) = &mut self.item {
                    item.version(records, version, writes)?;
                }
            }
            ExportRecord::Stub(feed, stub) => stubs::put(records, feed, stub, writes)?,
            ExportRecord::Event(feed, event) => {
                records.put(writes, Class::Events, keys::event(feed, self.next_event), &**event)?;
                self.next_event += 1;
            }
            ExportRecord::Archive(feed, note) => {
                let id = keys::archive_id(feed, &note.id);
                records.put(writes, Class::ArchiveIds, id, &ArchiveNumber(note.number))?;
                self.archive = Some((feed.clone(), (**note).clone(), 0));
            }
            ExportRecord::Block(feed, block) => {
                if let Some((_, note, count)) = &mut self.archive {
                    let key = keys::block(feed, note.number, *count);
                    records.put(writes, Class::Segments, key, &**block)?;
                    *count = count.saturating_add(1);
                }
            }
            ExportRecord::Sites(origins) => {
                open::note_applied(records, origins, writes)?;
            }
            ExportRecord::State(feed, state) => {
                let held = self.state(records, feed, state, writes)?;
                return Ok(ImportedRecord::Feed(feed.clone(), Box::new(held)));
            }
        }
        Ok(ImportedRecord::Part)
    }

    /// The entries of an item, or an archive, that the next piece is no part of.
    fn finish_before(
        &mut self,
        records: &Records,
        piece: &ExportRecord,
        writes: &mut Writes,
    ) -> Result<(), StoreError> {
        if let Some(item) = self.item.take_if(|_| !matches!(piece, ExportRecord::Version(..))) {
            item.finish(records, writes)?;
        }
        if let Some((feed, note, blocks)) =
            self.archive.take_if(|_| !matches!(piece, ExportRecord::Block(..)))
        {
            let key = keys::archive(&feed, note.number);
            records.put(writes, Class::Archives, key, &ArchiveRecord { note, blocks })?;
        }
        Ok(())
    }

    fn state(
        &mut self,
        records: &Records,
        feed: &FeedName,
        state: &FeedState,
        writes: &mut Writes,
    ) -> Result<StateRecord, StoreError> {
        let mut history = HistoryRecord::default();
        if let Some((since, row, run)) = self.skeleton.take() {
            writes.insert((Class::Skeletons, keys::feed(feed)), Some(row));
            history.set_skeleton(since, run);
        }
        if let Some((since, row, run)) = self.order.take() {
            writes.insert((Class::Orders, keys::feed(feed)), Some(row));
            history.set_order(since, run);
        }
        records.put(writes, Class::Histories, keys::feed(feed), &history)?;
        let next_event = std::mem::take(&mut self.next_event);
        let head = StateRecord { state: state.clone(), next_event, write: 1, asked_at: None };
        records.put(writes, Class::States, keys::feed(feed), &head)?;
        Ok(head)
    }
}

/// The document before one of a line goes to its past, as a difference where that is smaller.
fn follow(
    records: &Records,
    feed: &FeedName,
    line: ChainHead,
    before: Option<Present>,
    (since, row): (Time, Vec<u8>),
    writes: &mut Writes,
) -> Result<Present, StoreError> {
    let Some((from, old, run)) = before else { return Ok((since, row, 0)) };
    let what = || format!("the past of the feed {feed}");
    let (stored, run) = chain::against(records, &old, (since, &row), run, what)?;
    writes.insert((line.past, keys::past(feed, from)), Some(stored));
    Ok((since, row, run))
}

/// The item whose versions come. The newest of them that has bytes is there whole, as a commit leaves it; each
/// before it is a difference to the next one with bytes.
struct ImportedItem {
    feed: FeedName,
    known: LedgerEntry,
    newest: Markup,
    head: HeadRecord,
    /// The version with bytes before which the next one comes.
    newer: Option<(Time, Vec<u8>)>,
    /// How many differences stand in a row.
    run: u32,
    oldest: Tick,
}

impl ImportedItem {
    fn begin(
        records: &Records,
        feed: &FeedName,
        item: &CarriedItem,
        writes: &mut Writes,
    ) -> Result<Self, StoreError> {
        let CarriedItem { known, newest, conflicts } = item;
        let key = keys::item(feed, &known.id);
        records.put(writes, Class::Ledger, key.clone(), known)?;
        let place = (Class::ByTick, keys::by_tick(feed, known.tick, &known.id));
        writes.insert(place, Some(Vec::new()));
        if !conflicts.is_empty() {
            records.put(writes, Class::Conflicts, key, conflicts)?;
        }
        Ok(Self {
            feed: feed.clone(),
            known: known.clone(),
            newest: newest.clone(),
            head: HeadRecord::new(known.tick),
            newer: None,
            run: 0,
            oldest: known.tick,
        })
    }

    fn version(
        &mut self,
        records: &Records,
        version: &KeptVersion,
        writes: &mut Writes,
    ) -> Result<(), StoreError> {
        let KeptVersion { note, markup } = version;
        let Self { feed, known, head, .. } = self;
        let what = || format!("the item {} of the feed {feed}", known.id);
        let place = keys::version(feed, &known.id, note.tick);
        records.put(writes, Class::Versions, place.clone(), note)?;
        head.kept = head.kept.saturating_add(1);
        self.oldest = self.oldest.min(note.tick);
        let Some(markup) = markup else { return Ok(()) };
        let row = records.encoded(markup, what)?;
        let stored = if let Some((at, newer)) = &self.newer {
            let (stored, run) = chain::against(records, &row, (*at, newer), self.run, what)?;
            self.run = run;
            stored
        } else {
            head.body = note.tick;
            head.latest = *markup != self.newest;
            row.clone()
        };
        writes.insert((Class::Bodies, place), Some(stored));
        self.newer = Some((note.tick.time(), row));
        Ok(())
    }

    fn finish(self, records: &Records, writes: &mut Writes) -> Result<(), StoreError> {
        let Self { feed, known, newest, mut head, newer, oldest, .. } = self;
        let key = keys::item(&feed, &known.id);
        if newer.is_none() {
            // The version with its newest bytes is not kept any more: it is older than all that are.
            head.body = Tick::at(oldest.time().minus(Duration::from_secs(1)));
            let place = keys::version(&feed, &known.id, head.body);
            records.put(writes, Class::Bodies, place, &newest)?;
        } else if head.latest {
            records.put(writes, Class::Latest, key.clone(), &newest)?;
        }
        records.put(writes, Class::Heads, key, &head)
    }
}
