//! Export and import of a store.

use super::committer::WriteScope;
use super::feed::FeedRecords;
use super::feed_writer::FeedWriter;
use super::records::{RecordCodec, Records};
use super::{Committer, Store, committer, keys, open};
use crate::engine::{Class, FirstRead, Writes};
use crate::limits::CHAIN_LIMIT;
use crate::portable::{ExportCheck, ExportRecord, ImportMessage, StoreOrigin};
use crate::record::{
    FrameRecord, IdentityRecord, PurgeRecord, Record, RecordError, StateRecord, packing,
    read_fields,
};
use crate::{CommitError, Epoch, StoreError};
use bytes::Bytes;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use tidegate_core::model::{Event, FeedName, FeedRecord, Markup, PollState, SyncId, Tick, Time};
use tokio::sync::mpsc;

/// The records, and about the bytes, that are imported with one barrier.
const IMPORT_RECORDS: usize = 512;
const IMPORT_BYTES: usize = 1 << 20;
/// How many epochs of the log are read at once.
const EPOCHS: usize = 1000;
/// About how many bytes of a feed are buffered, and sent after its lock was released; a larger feed is sent with its
/// lock held.
const BUFFERED_BYTES: usize = 16 << 20;

/// Why the export of a feed ended early; `None`: the receiver was dropped, which is no error of the store.
type ExportStop = Option<StoreError>;

impl Store {
    /// Exports all records: first those of no feed, then each feed at one revision ([`ExportRecord`]). Ends early
    /// when the receiver is dropped.
    pub async fn export(&self, to: mpsc::Sender<ExportRecord>) -> Result<(), StoreError> {
        let codec = RecordCodec::clone(&*self.inner.records()?);
        let mut fit = ExportCheck::default();
        // Read before any feed, so that the exported log is never ahead of a feed.
        let newest = *self.inner.shared.newest.borrow();
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
            let epochs = self.epochs_between(after, newest, EPOCHS).await?;
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

    /// Exports a feed at one revision; answers whether the receiver is still there. An error where the feed was
    /// purged, since its exported records lack the end.
    async fn export_feed(
        &self,
        name: &FeedName,
        to: &mpsc::Sender<ExportRecord>,
    ) -> Result<bool, StoreError> {
        let (taker, blocks) = (to.clone(), self.inner.blocks);
        let exported = self.inner.read_feed(name, FirstRead::default(), move |feed, head| {
            let (mut waiting, mut bytes) = (Vec::new(), 0_usize);
            let exported = feed.export(head, &mut |piece: ExportRecord| {
                // Changes of the feed wait for the receiver only if the feed is large. In memory nothing may block
                // the thread.
                bytes = bytes.saturating_add(piece.size());
                waiting.push(piece);
                if !blocks || bytes < BUFFERED_BYTES {
                    return Ok(());
                }
                bytes = 0;
                let mut pieces = waiting.drain(..);
                let sent = pieces.try_for_each(|piece| taker.blocking_send(piece));
                sent.map_err(|_| None)
            });
            match exported {
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
        let (waiting, mut is_taken) = exported.await?.ok_or_else(purged)?;
        for piece in waiting {
            is_taken = is_taken && to.send(piece).await.is_ok();
        }
        Ok(is_taken)
    }

    /// Imports the records of another store of the same endpoint. If the channel is closed before the end was sent,
    /// the store stays unusable ([`StoreError::PartlyImported`]). Only into an empty store
    /// ([`StoreError::Occupied`]); after an error it cannot be used. `is_copy`: the other store may have gone on, so
    /// that this one becomes a new incarnation ([`Store::reincarnate`]). Durable on return.
    pub async fn import(
        &self,
        mut from: mpsc::Receiver<ImportMessage>,
        is_copy: bool,
    ) -> Result<(), CommitError> {
        let (mut pieces, mut bytes) = (Vec::new(), 0_usize);
        loop {
            let message = from.recv().await;
            let (is_cut_off, is_last) =
                (message.is_none(), matches!(message, Some(ImportMessage::End)));
            if let Some(ImportMessage::Record(piece)) = message {
                bytes = bytes.saturating_add(piece.size());
                pieces.push(piece);
                if pieces.len() < IMPORT_RECORDS && bytes < IMPORT_BYTES {
                    continue;
                }
            }
            if let Some(space) = &self.space {
                space.measure();
            }
            self.condition().check_intake()?;
            let taken = std::mem::take(&mut pieces);
            bytes = 0;
            let is_end = is_last && !is_copy;
            let import = move |committer: &mut Committer| committer.import(&taken, is_end);
            self.inner.submit(WriteScope::Identity, import).await?;
            if is_cut_off {
                let path = self.inner.opened()?.records.engine().path().to_owned();
                return Err(StoreError::PartlyImported { path }.into());
            }
            if is_last && is_copy {
                // The store is not whole before, and nobody else opens it.
                self.restart_feeds(false).await?;
                let end = |committer: &mut Committer| committer.import(&[], true);
                self.inner.submit(WriteScope::Identity, end).await?;
            }
            if is_last {
                return Ok(());
            }
        }
    }
}

/// Checks that the next record fits: one that an import would refuse is damage here.
fn check(
    fit: &mut ExportCheck,
    codec: &RecordCodec,
    piece: &ExportRecord,
) -> Result<(), StoreError> {
    fit.check(piece).map_err(|error| match error {
        StoreError::Unfit { what } => codec.damage(what),
        other => other,
    })
}

/// Reads the records that are exported first, and the names of the feeds that follow. Without locks: of each record
/// that is written meanwhile, either state is exported.
///
/// Poll states are read before the content of feeds. A poll state that is newer than the content has a validator of a
/// document that the copy lacks, so the publisher would answer 304 and the copy would never get it. An older one
/// costs a poll. Purge marks are read last: a feed that is purged meanwhile either ends the export, or has left its
/// mark and no poll state, and the poll state read before is left out. Applied origins are read before the feeds that
/// they name.
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
    let origins = open::applied_origins(records)?;
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
    let purged: BTreeMap<_, _> = open::read_purged(records)?.into_iter().collect();
    let purged = purged.into_iter();
    pieces.extend(purged.map(|(name, record)| ExportRecord::PurgeMark(name, record.mark)));
    Ok((pieces, names))
}

/// Checks that exported bytes can be decoded, each once: collects differences, oldest first, until the bytes come
/// that they are based on.
struct DifferenceCheck<'a> {
    codec: &'a RecordCodec,
    class: Class,
    run: Vec<(Time, Vec<u8>, Bytes)>,
}

impl<'a> DifferenceCheck<'a> {
    const fn new(codec: &'a RecordCodec, class: Class) -> Self {
        Self { codec, class, run: Vec::new() }
    }

    /// Adds the next bytes, which are in force from `since` on, with their key.
    fn next<T: Record>(&mut self, since: Time, key: &[u8], bytes: Bytes) -> Result<(), StoreError> {
        let is_whole = self.codec.is_whole(self.class, key, &bytes)?;
        self.run.push((since, key.to_vec(), bytes));
        if is_whole || self.run.len() > CHAIN_LIMIT {
            self.end::<T>()?;
        }
        Ok(())
    }

    /// Decodes the collected bytes: each but the last is a difference to the next.
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
    /// Exports the feed. A record that could not be imported is an error.
    fn export(
        &self,
        head: &StateRecord,
        send: &mut dyn FnMut(ExportRecord) -> Result<(), ExportStop>,
    ) -> Result<(), ExportStop> {
        let (records, prefix) = (&self.records, keys::feed(&self.name));
        let (name, mut fit) = (|| self.name.clone(), ExportCheck::default());
        let send = &mut |piece: ExportRecord| {
            check(&mut fit, records, &piece)?;
            send(piece)
        };
        let mut frames = DifferenceCheck::new(records, Class::Past);
        for entry in records.entries(Class::Past, &prefix) {
            let (key, frame) = entry?;
            let since = records.read_key(Class::Past, &key, keys::past_since(&key))?;
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
        // Items and texts are in the order of ids.
        let mut texts = records.entries(Class::Texts, &prefix).peekable();
        for item in self.items() {
            let item = item?;
            let of_item = keys::item(&self.name, &item.known.id);
            send(ExportRecord::Item(name(), Box::new(item)))?;
            let mut bodies = DifferenceCheck::new(records, Class::Texts);
            let is_behind = |key: &[u8]| key > &of_item[..] && !key.starts_with(&of_item);
            while let Some(entry) =
                texts.next_if(|entry| !entry.as_ref().is_ok_and(|(key, _)| is_behind(key)))
            {
                let (key, text) = entry?;
                if !key.starts_with(&of_item) {
                    continue;
                }
                let (_, tick) = records.read_key(Class::Texts, &key, keys::split_text(&key))?;
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
            let number = records.read_key(Class::Events, &key, keys::number(&key))?;
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

/// The progress of an import.
#[derive(Default)]
pub(super) struct Importer {
    fit: ExportCheck,
    /// The item that the next texts belong to.
    item: Option<SyncId>,
    /// The archive that the next blocks belong to, and how many came.
    archive: (u64, u32),
}

impl Importer {
    /// Checks that nothing is missing at the end.
    pub(super) fn end(&self) -> Result<(), StoreError> {
        self.fit.end()
    }

    /// Adds the writes of a record, and notes what its group publishes.
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
            ExportRecord::Log(closed) => {
                for (place, announced) in (0_u32..).zip(&closed.changes) {
                    committer::log(codec, writes, (closed.epoch, place, closed.at), announced)?;
                }
                committer.newest = (closed.epoch, closed.at);
                committer.group.reached = Some(committer.newest);
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
            ExportRecord::PurgeMark(feed, mark) => {
                let key = keys::of_kind(keys::PURGED, feed);
                let record = PurgeRecord { mark: *mark, sweeping: false };
                codec.put(writes, Class::Marks, key, &record)?;
            }
            ExportRecord::Sites(origins) => {
                codec.put(writes, Class::Gateway, open::APPLIED_ORIGINS_KEY.to_vec(), origins)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Adds the writes of a record of a feed. The last one is its state, which is answered.
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
                feed.put_item(item)?;
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

    /// A feed is added, or purged, during one of the first reads of an export.
    #[test]
    fn a_poll_state_is_exported_only_with_the_content_of_its_feed() {
        let (feed, plain) = (make::feed("news"), Records::new(Arc::new(MemoryEngine::default())));
        let (mut comes, key) = (Writes::new(), keys::feed(&feed));
        plain.put(&mut comes, Class::Feeds, key.clone(), &make::record("news")).unwrap();
        plain.put(&mut comes, Class::Polls, key.clone(), &make::poll_state("news")).unwrap();
        comes.insert((Class::States, key), Some(vec![1]));
        let goes: Writes = comes.keys().map(|key| (key.clone(), None)).collect();
        for at in [Class::States, Class::Feeds, Class::Polls] {
            for (before, then) in [(&Writes::new(), &comes), (&comes, &goes)] {
                let memory = Arc::new(MemoryEngine::default());
                let plain = Records::new(Arc::<MemoryEngine>::clone(&memory));
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
                    begin_export(&Records::new(Arc::new(watched)), Epoch(0)).unwrap();
                let has_poll = pieces.iter().any(|piece| matches!(piece, ExportRecord::Poll(_)));
                assert!(!has_poll || names.contains(&feed), "at {}", at.name());
            }
        }
    }
}
