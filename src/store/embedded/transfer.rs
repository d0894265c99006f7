//! How a store is handed over, and taken in: one walk over everything that it keeps.

use super::feed::{FeedRecords, ITEMS_AT_ONCE, TOMBSTONE};
use super::past::StoredFrame;
use super::plan::EVENTS_OF_BLOCK;
use super::records::Records;
use super::request::WriteScope;
use super::{CommitGroup, Committer, Store, keys, open, read};
use crate::engine::{Class, Writes};
use crate::limits::WHOLE_EVERY;
use crate::portable::{CarriedFrame, CarriedItem, ExportRecord, Fit, ImportMessage};
use crate::record::{ArchiveRecord, FloorRecord, FrameRecord, ItemRecord, StateRecord, TextRecord};
use crate::{CommitError, Epoch, KeptVersion, StoreError};
use bytes::Bytes;
use std::time::Duration;
use tidegate_core::model::{Event, FeedName, FeedState, Markup, Tick, Time};
use tokio::sync::mpsc;

/// How many pieces stand behind one barrier while they are taken in, and about how many bytes.
const AT_ONCE: usize = 512;
const BYTES_AT_ONCE: usize = 1 << 20;
/// How many epochs of the log are read at once.
const EPOCHS: usize = 1000;
/// The bytes of a feed, about, that are kept in memory until it was read, and handed over after that.
const HANDED_LATER: usize = 16 << 20;

/// Why a feed is not handed over to its end.
enum ExportStop {
    /// Nobody takes the pieces any more; not an error of the store.
    Abandoned,
    Failed(StoreError),
}

impl From<StoreError> for ExportStop {
    fn from(error: StoreError) -> Self {
        Self::Failed(error)
    }
}

impl Store {
    /// Hands over everything that is kept, piece by piece: what stands by itself, then each feed at
    /// one revision ([`ExportRecord`]). Ends early where nobody takes the pieces any more.
    pub async fn export(&self, to: mpsc::Sender<ExportRecord>) -> Result<(), StoreError> {
        // Known before any feed is read, so that the log is never ahead of one.
        let newest = *self.inner.shared.sealed.borrow();
        let (mut pieces, names) = self.inner.of_all(move |records| start(records, newest)).await?;
        let mut after = Epoch(0);
        while !pieces.is_empty() {
            for piece in pieces {
                if to.send(piece).await.is_err() {
                    return Ok(());
                }
            }
            let epochs = move |records: &_| read::epochs_after(records, after, newest, EPOCHS);
            let epochs = self.inner.of_all(epochs).await?;
            after = epochs.last().map_or(after, |last| last.epoch);
            pieces = epochs.into_iter().map(ExportRecord::Log).collect();
        }
        for name in names {
            if !self.export_feed(&name, &to).await? {
                break;
            }
        }
        Ok(())
    }

    /// Hands a feed over at one revision; whether its pieces are still taken. An error where it was purged, since
    /// what was handed over of it lacks its end.
    async fn export_feed(
        &self,
        name: &FeedName,
        to: &mpsc::Sender<ExportRecord>,
    ) -> Result<bool, StoreError> {
        let (taker, blocks) = (to.clone(), self.inner.blocks);
        let handed = self.inner.read_feed(name, move |feed, head| {
            let (mut waiting, mut bytes) = (Vec::new(), 0_usize);
            let handed = feed.export(&head.state, &mut |piece: ExportRecord| {
                // Changes of the feed wait for whoever takes it only where it is large. Nobody blocks the thread of
                // others.
                bytes = bytes.saturating_add(piece.size());
                waiting.push(piece);
                if !blocks || bytes < HANDED_LATER {
                    return Ok(());
                }
                bytes = 0;
                let mut pieces = waiting.drain(..);
                let sent = pieces.try_for_each(|piece| taker.blocking_send(piece));
                sent.map_err(|_| ExportStop::Abandoned)
            });
            match handed {
                Ok(()) => Ok((waiting, true)),
                Err(ExportStop::Abandoned) => Ok((Vec::new(), false)),
                Err(ExportStop::Failed(error)) => Err(error),
            }
        });
        let purged = || {
            let source =
                std::io::Error::other(format!("the feed {name} was purged meanwhile; export anew"));
            StoreError::Io { doing: "hand over all feeds", source }
        };
        let (waiting, mut is_taken) = handed.await?.ok_or_else(purged)?;
        for piece in waiting {
            is_taken = is_taken && to.send(piece).await.is_ok();
        }
        Ok(is_taken)
    }

    /// Takes in what another store of the same endpoint handed over, to its end: where the channel is
    /// closed before that was said, it is not whole ([`StoreError::PartlyImported`]). Only into a store
    /// that nothing was ever put into ([`StoreError::Occupied`]); after an error it is of no use.
    /// Durable on return.
    pub async fn import(&self, mut from: mpsc::Receiver<ImportMessage>) -> Result<(), CommitError> {
        let (mut pieces, mut bytes) = (Vec::new(), 0_usize);
        loop {
            let message = from.recv().await;
            let (is_cut_off, is_last) =
                (message.is_none(), matches!(message, Some(ImportMessage::End)));
            if let Some(ImportMessage::Record(piece)) = message {
                bytes = bytes.saturating_add(piece.size());
                pieces.push(piece);
                if pieces.len() < AT_ONCE && bytes < BYTES_AT_ONCE {
                    continue;
                }
            }
            if let Some(space) = &self.space {
                space.measure();
            }
            self.condition().check_intake()?;
            let taken = std::mem::take(&mut pieces);
            bytes = 0;
            let import = move |committer: &mut Committer, group: &mut CommitGroup| {
                committer.import(&taken, is_last, group)
            };
            self.inner.ask(WriteScope::Identity, import).await?;
            if is_cut_off {
                let path = self.inner.opened()?.records.engine().path().to_owned();
                return Err(StoreError::PartlyImported { path }.into());
            }
            if is_last {
                if let Some(database) = self.inner.database() {
                    database.analyze();
                }
                return Ok(());
            }
        }
    }
}

/// Reads what is handed over first, and the feeds that follow. The committer waits meanwhile, where it writes to what is
/// read over all feeds.
///
/// No poll state is newer than the content of its feed, which is read after this: the copy would ask the publisher for
/// what is newer than a document that it lacks, and be told that nothing is. An older one costs a poll. A feed that is
/// purged meanwhile ends the export.
fn start(
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
    let (floors, _) = open::floors(records)?;
    let mut floors: Vec<_> = floors.into_iter().collect();
    floors.sort_by(|(one, _), (other, _)| one.cmp(other));
    pieces.extend(floors.into_iter().map(|(name, floor)| ExportRecord::Floor(name, floor)));
    let feeds = read::feeds(records)?.into_iter();
    pieces.extend(feeds.map(|one| ExportRecord::Feed(Box::new(one))));
    let polls = read::poll_states(records)?.into_iter();
    pieces.extend(polls.map(|one| ExportRecord::Poll(Box::new(one))));
    let names = records.sizes(Class::States, &[])?.into_iter();
    let names = names.map(|(key, _)| open::name(records, Class::States, &key));
    Ok((pieces, names.collect::<Result<_, _>>()?))
}

impl FeedRecords {
    /// Hands the feed over.
    fn export(
        &self,
        state: &FeedState,
        send: &mut dyn FnMut(ExportRecord) -> Result<(), ExportStop>,
    ) -> Result<(), ExportStop> {
        let name = || self.name.clone();
        if let Some(present) = self.frame()? {
            let past = self.past_frames()?.into_iter().map(|(since, _)| since);
            for at in past.chain([present.since]) {
                let Some(frame) = self.frame_at(&present, at)? else { continue };
                let FrameRecord { since, order, skeleton, .. } = frame;
                let frame = CarriedFrame { since, order, skeleton };
                send(ExportRecord::Frame(name(), Box::new(frame)))?;
            }
        }
        let held = self.held()?;
        if !held.is_empty() {
            send(ExportRecord::Held(name(), held))?;
        }
        for ids in self.ledger()?.chunks(ITEMS_AT_ONCE) {
            let near = self.with_texts(ids)?;
            for id in ids {
                let Some(item) = near.item(id)? else { continue };
                let newest = near.newest(&item)?;
                let ItemRecord { known, conflicts, .. } = item;
                let item = CarriedItem { known, newest, conflicts };
                send(ExportRecord::Item(name(), Box::new(item)))?;
                for version in near.kept_versions(id) {
                    send(ExportRecord::Version(name(), Box::new(version?)))?;
                }
            }
        }
        for stub in self.all_stubs() {
            send(ExportRecord::Stub(name(), Box::new(stub?)))?;
        }
        for event in self.events(usize::MAX)?.into_iter().rev() {
            send(ExportRecord::Event(name(), Box::new(event)))?;
        }
        for record in self.archive_records() {
            let record = record?;
            send(ExportRecord::Archive(name(), Box::new(record.note.clone())))?;
            for block in self.segments(&record)? {
                send(ExportRecord::Block(name(), Box::new(block?)))?;
            }
        }
        send(ExportRecord::State(name(), Box::new(state.clone())))
    }
}

/// What came so far of the feed that is being taken in.
#[derive(Default)]
pub(super) struct Importer {
    fit: Fit,
    frame: Option<StoredFrame>,
    /// The last block of events, and how many came in all.
    events: (Vec<Event>, u64),
    item: Option<ImportedItem>,
    /// The archive whose blocks come.
    archive: Option<ArchiveRecord>,
}

impl Importer {
    /// Checks that nothing is missing at the end.
    pub(super) fn end(&self) -> Result<(), StoreError> {
        self.fit.end()
    }

    /// The entries of a piece, and what its group shows.
    pub(super) fn piece(
        &mut self,
        committer: &mut Committer,
        piece: &ExportRecord,
        (group, writes): (&mut CommitGroup, &mut Writes),
    ) -> Result<(), StoreError> {
        self.fit.check(piece)?;
        let records = &committer.records.clone();
        let feed = piece.feed().map(|name| FeedRecords::new(records, name));
        match (piece, feed) {
            (ExportRecord::Origin(origin), _) => committer.go_on_from(origin, group)?,
            (ExportRecord::Log(sealed), _) => {
                for (place, announced) in (0_u32..).zip(&sealed.changes) {
                    open::log(records, writes, (sealed.epoch, place, sealed.at), announced)?;
                }
                committer.sealed = (sealed.epoch, sealed.at);
                group.reached = Some(committer.sealed);
            }
            (ExportRecord::State(_, state), Some(feed)) => {
                let head = self.state(&feed, state, writes)?;
                group.feeds.insert(feed.name, Some(head));
            }
            (_, Some(feed)) => self.part(&feed, piece, writes)?,
            (ExportRecord::Feed(record), None) => {
                records.put(writes, Class::Feeds, keys::feed(&record.name), &**record)?;
            }
            (ExportRecord::Poll(state), None) => {
                records.put(writes, Class::Polls, keys::feed(&state.feed), &**state)?;
            }
            (ExportRecord::Subscription(one), None) => {
                records.put(writes, Class::Subscriptions, keys::subscription(one.id()), &**one)?;
            }
            (ExportRecord::Floor(feed, floor), None) => {
                let key = keys::of_kind(keys::PURGED, feed);
                let record = FloorRecord { floor: *floor, sweeping: false };
                records.put(writes, Class::Marks, key, &record)?;
            }
            (ExportRecord::Sites(origins), None) => {
                open::note_applied(records, origins, writes)?;
            }
            (_, None) => {}
        }
        Ok(())
    }

    /// The entries of a part of a feed.
    fn part(
        &mut self,
        feed: &FeedRecords,
        piece: &ExportRecord,
        writes: &mut Writes,
    ) -> Result<(), StoreError> {
        let (records, name) = (&feed.records, &feed.name);
        if !matches!(piece, ExportRecord::Version(..) | ExportRecord::Block(..)) {
            self.finish_parts(feed, writes)?;
        }
        match piece {
            ExportRecord::Frame(_, frame) => {
                let CarriedFrame { since, order, skeleton } = (**frame).clone();
                let new = FrameRecord { since, run: 0, order, skeleton };
                self.frame = Some(feed.supersede_frame(self.frame.take(), new, writes)?);
            }
            ExportRecord::Held(_, held) => {
                records.put(writes, Class::Frames, keys::held(name), held)?;
            }
            ExportRecord::Item(_, item) => {
                self.item = Some(ImportedItem::begin(feed, item, writes))
            }
            ExportRecord::Version(_, version) => {
                if let Some(item) = &mut self.item {
                    item.version(feed, version, writes)?;
                }
            }
            ExportRecord::Stub(_, stub) => feed.put_stub(stub, writes)?,
            ExportRecord::Event(_, event) => {
                let (block, came) = &mut self.events;
                if came.is_multiple_of(EVENTS_OF_BLOCK) {
                    block.clear();
                }
                block.push((**event).clone());
                let key = keys::numbered(name, *came / EVENTS_OF_BLOCK);
                records.put(writes, Class::Events, key, block)?;
                *came += 1;
            }
            ExportRecord::Archive(_, note) => {
                self.archive = Some(ArchiveRecord { note: (**note).clone(), blocks: 0 });
            }
            ExportRecord::Block(_, block) => {
                if let Some(ArchiveRecord { note, blocks }) = &mut self.archive {
                    let key = keys::segment(name, note.number, *blocks);
                    records.put(writes, Class::Segments, key, &**block)?;
                    *blocks = blocks.saturating_add(1);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// The entries of an item, or an archive, of which nothing follows.
    fn finish_parts(&mut self, feed: &FeedRecords, writes: &mut Writes) -> Result<(), StoreError> {
        if let Some(item) = self.item.take() {
            item.finish(feed, writes)?;
        }
        match self.archive.take() {
            Some(archive) => feed.put_archive_record(&archive, writes),
            None => Ok(()),
        }
    }

    fn state(
        &mut self,
        feed: &FeedRecords,
        state: &FeedState,
        writes: &mut Writes,
    ) -> Result<StateRecord, StoreError> {
        self.finish_parts(feed, writes)?;
        let key = || keys::feed(&feed.name);
        if let Some((_, _, frame)) = self.frame.take() {
            writes.insert((Class::Frames, key()), Some(frame.to_vec()));
        }
        if state.hold.is_none() {
            writes.insert((Class::Frames, keys::held(&feed.name)), None);
        }
        let (_, next_event) = std::mem::take(&mut self.events);
        let head = StateRecord { state: state.clone(), next_event, write: 1, asked_at: None };
        feed.records.put(writes, Class::States, key(), &head)?;
        Ok(head)
    }
}

/// The item whose versions come. The newest of them that has bytes is there whole, as a commit leaves it; each
/// before it is a difference to the next one with bytes.
struct ImportedItem {
    item: ItemRecord,
    newest: Markup,
    /// The version with bytes before which the next one comes.
    newer: Option<(Time, Bytes)>,
    /// How many differences stand in a row.
    run: u32,
    oldest: Tick,
}

impl ImportedItem {
    fn begin(feed: &FeedRecords, item: &CarriedItem, writes: &mut Writes) -> Self {
        let CarriedItem { known, newest, conflicts } = item.clone();
        let flag: &[u8] = if known.is_tombstone() { TOMBSTONE } else { &[] };
        let by_tick = keys::by_tick(&feed.name, known.tick, &known.id);
        writes.insert((Class::Index, by_tick), Some(flag.to_vec()));
        if !conflicts.is_empty() {
            let key = keys::contested(&feed.name, &known.id);
            writes.insert((Class::Index, key), Some(Vec::new()));
        }
        let oldest = known.tick;
        let item = ItemRecord { conflicts, ..ItemRecord::new(known) };
        Self { item, newest, newer: None, run: 0, oldest }
    }

    fn version(
        &mut self,
        feed: &FeedRecords,
        version: &KeptVersion,
        writes: &mut Writes,
    ) -> Result<(), StoreError> {
        let KeptVersion { note, markup } = version;
        let (item, tick) = (&mut self.item, note.tick);
        item.kept = item.kept.saturating_add(1);
        self.oldest = self.oldest.min(tick);
        let what = || format!("the item {} of the feed {}", item.known.id, feed.name);
        let key = keys::version(&feed.name, &item.known.id, tick);
        let mut text = TextRecord { note: Some(note.clone()), body: None };
        if let Some(markup) = markup {
            let whole = Bytes::from(feed.records.encoded(markup, what)?);
            text.body = Some(whole.clone());
            if let Some((at, newer)) = &self.newer {
                self.run = (self.run + 1) % WHOLE_EVERY;
                if self.run > 0 {
                    text.body = Some(feed.records.difference(&whole, *at, newer, what)?.into());
                }
            } else {
                item.body = tick;
                item.has_latest = *markup != self.newest;
            }
            self.newer = Some((tick.time(), whole));
        }
        feed.records.put_text(writes, key, &text)
    }

    fn finish(self, feed: &FeedRecords, writes: &mut Writes) -> Result<(), StoreError> {
        let Self { mut item, newest, newer, oldest, .. } = self;
        let what = || format!("the item {} of the feed {}", item.known.id, feed.name);
        let newest = TextRecord::of_body(feed.records.encoded(&newest, what)?);
        if newer.is_none() {
            // The version with its newest bytes is not kept any more: it is older than all that are.
            item.body = Tick::at(oldest.time().minus(Duration::from_secs(1)));
        }
        if newer.is_none() || item.has_latest {
            feed.records.put_text(writes, feed.newest_key(&item), &newest)?;
        }
        let key = keys::item(&feed.name, &item.known.id);
        feed.records.put(writes, Class::Items, key, &item)
    }
}
