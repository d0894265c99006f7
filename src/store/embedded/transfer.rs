//! How a store is handed over, and taken in: one walk over everything that it keeps.

use super::committer::WriteScope;
use super::feed::FeedRecords;
use super::feed_writer::FeedWriter;
use super::records::{RecordCodec, Records};
use super::{Committer, Store, committer, keys, open, read};
use crate::engine::{Class, FirstRead, Writes};
use crate::limits::CHAIN_LIMIT;
use crate::portable::{ExportRecord, Fit, ImportMessage, StoreOrigin};
use crate::record::{
    FloorRecord, FrameRecord, IdentityRecord, Record, RecordError, StateRecord, packing,
    read_fields,
};
use crate::{CommitError, Epoch, StoreError};
use bytes::Bytes;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use tidegate_core::model::{Event, FeedName, FeedRecord, Markup, PollState, SyncId, Tick, Time};
use tokio::sync::mpsc;

/// How many pieces stand behind one barrier while they are taken in, and about how many bytes.
const AT_ONCE: usize = 512;
const BYTES_AT_ONCE: usize = 1 << 20;
/// How many epochs of the log are read at once.
const EPOCHS: usize = 1000;
/// The bytes of a feed, about, that are kept in memory until it was read, and handed over after that.
const HANDED_LATER: usize = 16 << 20;

/// Why a feed is not handed over to its end; `None`: nobody takes the pieces any more, which is no error of the store.
type ExportStop = Option<StoreError>;

impl Store {
    /// Hands over everything that is kept, piece by piece: what stands by itself, then each feed at
    /// one revision ([`ExportRecord`]). Ends early where nobody takes the pieces any more.
    pub async fn export(&self, to: mpsc::Sender<ExportRecord>) -> Result<(), StoreError> {
        let codec = RecordCodec::clone(&*self.inner.records()?);
        let mut fit = Fit::default();
        // Known before any feed is read, so that the log is never ahead of one.
        let newest = *self.inner.shared.sealed.borrow();
        let begun = self.inner.read(move |records, _| {
            let snapshot = records.snapshot(FirstRead::default())?;
            begin_export(snapshot.as_ref().unwrap_or(records), newest)
        });
        let (mut pieces, names) = begun.await?;
        let mut after = Epoch(0);
        while !pieces.is_empty() {
            for piece in pieces {
                check(&mut fit, &codec, &piece)?;
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
        let handed = self.inner.read_feed(name, FirstRead::default(), move |feed, head| {
            let (mut waiting, mut bytes) = (Vec::new(), 0_usize);
            let handed = feed.export(head, &mut |piece: ExportRecord| {
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
                sent.map_err(|_| None)
            });
            match handed {
                Ok(()) => Ok((waiting, true)),
                Err(None) => Ok((Vec::new(), false)),
                Err(Some(error)) => Err(error),
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
            let import = move |committer: &mut Committer| committer.import(&taken, is_last);
            self.inner.ask(WriteScope::Identity, import).await?;
            if is_cut_off {
                let path = self.inner.opened()?.records.engine().path().to_owned();
                return Err(StoreError::PartlyImported { path }.into());
            }
            if is_last {
                return Ok(());
            }
        }
    }
}

/// Checks that the next piece fits: what whoever takes it in would refuse is damage here.
fn check(fit: &mut Fit, codec: &RecordCodec, piece: &ExportRecord) -> Result<(), StoreError> {
    fit.check(piece).map_err(|error| match error {
        StoreError::Unfit { what } => codec.damage(what),
        other => other,
    })
}

/// Reads what is handed over first, and the feeds that follow. Nobody waits for it: of each thing that is written
/// meanwhile it has what was before or what is after.
///
/// No poll state is newer than the content of its feed, which is read after this, as are the names of feeds with content:
/// the copy would ask the publisher for what is newer than a document that it lacks, and be told that nothing is. An older
/// one costs a poll. A feed that is purged meanwhile ends the export, or has left its mark, which is read last, and no poll
/// state: those that are gone by then are left out. What is applied of a configuration is read before the feeds that it is
/// about.
fn begin_export(
    records: &Records,
    newest: Epoch,
) -> Result<(Vec<ExportRecord>, Vec<FeedName>), StoreError> {
    let mut polls: Vec<PollState> = records.list(Class::Polls, &[])?;
    let names = records.sizes(Class::States, &[]);
    let names = names.map(|entry| open::name(records, &entry?.0)).collect::<Result<_, _>>()?;
    let mut pieces: Vec<ExportRecord> = Vec::new();
    if let Some(IdentityRecord { fence, lineage, running, .. }) = open::identity(records)? {
        let origin = StoreOrigin { fence, lineage, reached: newest, running };
        pieces.push(ExportRecord::Origin(Box::new(origin)));
    }
    let origins = open::applied(records)?;
    if !origins.0.is_empty() {
        pieces.push(ExportRecord::Sites(origins));
    }
    let subscriptions = records.list(Class::Subscriptions, &[])?.into_iter();
    pieces.extend(subscriptions.map(|one| ExportRecord::Subscription(Box::new(one))));
    let feeds = records.list(Class::Feeds, &[])?.into_iter();
    pieces.extend(feeds.map(|one| ExportRecord::Feed(Box::new(one))));
    let left = records.sizes(Class::Polls, &[]).map(|entry| Ok(entry?.0));
    let left: HashSet<Vec<u8>> = left.collect::<Result<_, StoreError>>()?;
    polls.retain(|poll| left.contains(&keys::feed(&poll.feed)));
    pieces.extend(polls.into_iter().map(|one| ExportRecord::Poll(Box::new(one))));
    let floors: BTreeMap<_, _> = open::floors(records)?.into_iter().collect();
    let floors = floors.into_iter();
    pieces.extend(floors.map(|(name, record)| ExportRecord::Floor(name, record.floor)));
    Ok((pieces, names))
}

/// Bytes that are handed over as they are stored, oldest first, until those came that they differ from: each is read once,
/// so that a copy has nothing that cannot be.
struct Readable<'a> {
    codec: &'a RecordCodec,
    class: Class,
    run: Vec<(Time, Vec<u8>, Bytes)>,
}

impl<'a> Readable<'a> {
    const fn new(codec: &'a RecordCodec, class: Class) -> Self {
        Self { codec, class, run: Vec::new() }
    }

    /// The next ones: since when they are there, and at which key.
    fn next<T: Record>(&mut self, since: Time, key: &[u8], bytes: Bytes) -> Result<(), StoreError> {
        let is_whole = self.codec.is_whole(self.class, key, &bytes)?;
        self.run.push((since, key.to_vec(), bytes));
        if is_whole || self.run.len() > CHAIN_LIMIT {
            self.end::<T>()?;
        }
        Ok(())
    }

    /// Nothing follows: each but the last is a difference to the next.
    fn end<T: Record>(&mut self) -> Result<(), StoreError> {
        let mut newer: Option<(Time, Vec<u8>)> = None;
        for (at, key, bytes) in self.run.drain(..).rev() {
            let damaged = |error: RecordError| self.codec.damaged(self.class, &key, error);
            let base = packing::base(&bytes).map_err(damaged)?;
            if let Some(base) = base.filter(|base| newer.as_ref().map(|(at, _)| at) != Some(base)) {
                let what = format!("what it differs from, {base}, is missing");
                return Err(self.codec.damaged(self.class, &key, what));
            }
            let payload = packing::payload(&bytes, newer.as_ref().map(|(_, payload)| &payload[..]));
            let payload = payload.map_err(damaged)?.into_owned();
            read_fields::<T>(&payload).map_err(damaged)?;
            newer = Some((at, payload));
        }
        Ok(())
    }
}

impl FeedRecords {
    /// Hands the feed over. What could not be taken in, or read there, is an error.
    fn export(
        &self,
        head: &StateRecord,
        send: &mut dyn FnMut(ExportRecord) -> Result<(), ExportStop>,
    ) -> Result<(), ExportStop> {
        let (records, prefix) = (&self.records, keys::feed(&self.name));
        let (name, mut fit) = (|| self.name.clone(), Fit::default());
        let send = &mut |piece: ExportRecord| {
            check(&mut fit, records, &piece)?;
            send(piece)
        };
        let mut frames = Readable::new(records, Class::Past);
        for entry in records.entries(Class::Past, &prefix) {
            let (key, frame) = entry?;
            let since = records.of_key(Class::Past, &key, keys::past_since(&key))?;
            frames.next::<FrameRecord>(since, &key, frame.clone())?;
            send(ExportRecord::Past(name(), since, Some(frame)))?;
        }
        if let Some(stored) = records.get(Class::Frames, &prefix)? {
            let frame: FrameRecord = records.decode(Class::Frames, &prefix, &stored)?;
            frames.next::<FrameRecord>(frame.since, &prefix, stored)?;
            send(ExportRecord::Frame(name(), Box::new(frame)))?;
        }
        frames.end::<FrameRecord>()?;
        let held = self.held()?;
        if !held.is_empty() {
            send(ExportRecord::Held(name(), held))?;
        }
        // Both in the order of ids.
        let mut texts = records.entries(Class::Texts, &prefix).peekable();
        for item in self.items() {
            let item = item?;
            let of_item = keys::item(&self.name, &item.known.id);
            send(ExportRecord::Item(name(), Box::new(item)))?;
            let mut bodies = Readable::new(records, Class::Texts);
            let is_behind = |key: &[u8]| key > &of_item[..] && !key.starts_with(&of_item);
            while let Some(entry) =
                texts.next_if(|entry| !entry.as_ref().is_ok_and(|(key, _)| is_behind(key)))
            {
                let (key, text) = entry?;
                if !key.starts_with(&of_item) {
                    continue;
                }
                let (_, tick) = records.of_key(Class::Texts, &key, keys::split_text(&key))?;
                let text = Box::new(records.decode_text(&key, &text)?);
                let body = text.body.clone();
                send(ExportRecord::Text(name(), tick, text))?;
                if let Some(body) = body {
                    bodies.next::<Markup>(tick.map_or(Time::MIN, Tick::time), &key, body)?;
                }
            }
            bodies.end::<Markup>()?;
        }
        for stub in self.all_stubs() {
            send(ExportRecord::Stub(name(), Box::new(stub?)))?;
        }
        for block in records.scan::<Vec<Event>>(Class::Events, &prefix) {
            let (key, events) = block?;
            let number = records.of_key(Class::Events, &key, keys::number(&key))?;
            send(ExportRecord::Events(name(), number, events))?;
        }
        for record in self.archive_records() {
            let record = record?;
            send(ExportRecord::Archive(name(), Box::new(record.clone())))?;
            for block in self.segments(&record) {
                send(ExportRecord::Block(name(), Box::new(block?)))?;
            }
        }
        let head = StateRecord { write: 1, asked_at: None, ..head.clone() };
        send(ExportRecord::State(name(), Box::new(head)))
    }
}

/// What came so far of the feed that is being taken in.
#[derive(Default)]
pub(super) struct Importer {
    fit: Fit,
    /// The item whose texts come.
    item: Option<SyncId>,
    /// The archive whose blocks come, and how many came.
    archive: (u64, u32),
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
        writes: &mut Writes,
    ) -> Result<(), StoreError> {
        self.fit.check(piece)?;
        let codec = &RecordCodec::clone(&committer.records);
        if let Some(name) = piece.feed() {
            let mut feed = FeedWriter { codec, name, writes };
            let head = self.part(&mut feed, piece)?;
            committer.group.feeds.extend(head.map(|head| (name.clone(), Some(head))));
            return Ok(());
        }
        match piece {
            ExportRecord::Origin(origin) => committer.go_on_from(origin)?,
            ExportRecord::Log(sealed) => {
                for (place, announced) in (0_u32..).zip(&sealed.changes) {
                    committer::log(codec, writes, (sealed.epoch, place, sealed.at), announced)?;
                }
                committer.sealed = (sealed.epoch, sealed.at);
                committer.group.reached = Some(committer.sealed);
            }
            ExportRecord::Feed(record) => {
                codec.put(writes, Class::Feeds, keys::feed(&record.name), &**record)?;
                let record = Arc::new(FeedRecord::clone(record));
                committer.group.listed.push((record.name.clone(), Some(record)));
            }
            ExportRecord::Poll(state) => {
                codec.put(writes, Class::Polls, keys::feed(&state.feed), &**state)?;
            }
            ExportRecord::Subscription(one) => {
                codec.put(writes, Class::Subscriptions, keys::subscription(one.id()), &**one)?;
            }
            ExportRecord::Floor(feed, floor) => {
                let key = keys::of_kind(keys::PURGED, feed);
                let record = FloorRecord { floor: *floor, sweeping: false };
                codec.put(writes, Class::Marks, key, &record)?;
            }
            ExportRecord::Sites(origins) => {
                codec.put(writes, Class::Gateway, open::APPLIED_ORIGINS_KEY.to_vec(), origins)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// The entries of a part of a feed. The last one is its state, which is answered.
    fn part(
        &mut self,
        feed: &mut FeedWriter<'_>,
        piece: &ExportRecord,
    ) -> Result<Option<StateRecord>, StoreError> {
        let name = feed.name;
        match piece {
            ExportRecord::Past(_, since, frame) => {
                let key = (Class::Past, keys::past(name, *since));
                feed.writes.insert(key, frame.as_ref().map(|frame| frame.to_vec()));
            }
            ExportRecord::Frame(_, frame) => {
                feed.put(Class::Frames, keys::feed(name), &**frame)?;
            }
            ExportRecord::Held(_, held) => feed.put(Class::Frames, keys::held(name), held)?,
            ExportRecord::Item(_, item) => {
                let id = &item.known.id;
                feed.put_tick(&item.known);
                if !item.conflicts.is_empty() {
                    feed.put_contested(id, true);
                }
                feed.put(Class::Items, keys::item(name, id), &**item)?;
                self.item = Some(id.clone());
            }
            ExportRecord::Text(_, tick, text) => {
                if let Some(id) = &self.item {
                    let item = || keys::item(name, id);
                    let key = tick.map_or_else(item, |tick| keys::version(name, id, tick));
                    feed.put_text(key, text)?;
                }
            }
            ExportRecord::Stub(_, stub) => feed.put_stub(stub)?,
            ExportRecord::Events(_, number, events) => {
                feed.put(Class::Events, keys::numbered(name, *number), events)?;
            }
            ExportRecord::Archive(_, record) => {
                feed.put_archive_record(record)?;
                self.archive = (record.note.number, 0);
            }
            ExportRecord::Block(_, block) => {
                let (number, came) = &mut self.archive;
                feed.put(Class::Segments, keys::segment(name, *number, *came), &**block)?;
                *came = came.saturating_add(1);
            }
            ExportRecord::State(_, head) => {
                if head.state.hold.is_none() {
                    feed.remove(Class::Frames, keys::held(name));
                }
                feed.put(Class::States, keys::feed(name), &**head)?;
                return Ok(Some(StateRecord::clone(head)));
            }
            _ => {}
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::make;
    use crate::embedded::OpenRequest;
    use crate::engine::{Engine as _, EngineCall, MemoryEngine, WatchedEngine};

    /// A feed comes, or goes, at one of the reads with which an export begins.
    #[test]
    fn a_poll_state_is_exported_only_with_the_content_of_its_feed() {
        let (feed, plain) = (make::feed("news"), Records::of(Arc::new(MemoryEngine::default())));
        let (mut comes, key) = (Writes::new(), keys::feed(&feed));
        plain.put(&mut comes, Class::Feeds, key.clone(), &make::record("news")).unwrap();
        plain.put(&mut comes, Class::Polls, key.clone(), &make::poll_state("news")).unwrap();
        comes.insert((Class::States, key), Some(vec![1]));
        let goes: Writes = comes.keys().map(|key| (key.clone(), None)).collect();
        for at in [Class::States, Class::Feeds, Class::Polls] {
            for (before, then) in [(&Writes::new(), &comes), (&comes, &goes)] {
                let memory = Arc::new(MemoryEngine::default());
                let plain = Records::of(Arc::<MemoryEngine>::clone(&memory));
                open::begin(&plain, open::inspect(&plain).unwrap(), OpenRequest::default())
                    .unwrap();
                memory.apply(before.clone()).unwrap();
                let (engine, then) = (Arc::clone(&memory), then.clone());
                let watch = Box::new(move |call: EngineCall<'_>| match call {
                    EngineCall::Read(class, _) if class == at => engine.apply(then.clone()),
                    _ => Ok(()),
                });
                let watched = WatchedEngine { engine: memory, watch };
                let (pieces, names) =
                    begin_export(&Records::of(Arc::new(watched)), Epoch(0)).unwrap();
                let has_poll = pieces.iter().any(|piece| matches!(piece, ExportRecord::Poll(_)));
                assert!(!has_poll || names.contains(&feed), "at {}", at.name());
            }
        }
    }
}
