//! Everything in the trees, handed over and taken in.

use super::chain::{self, ChainHead, ORDERS, SKELETONS};
use super::committer::CommittedFeed;
use super::plan::encoded;
use super::shared::StoreShared;
use super::trees::{Class, Trees, Writes};
use super::{archives, keys, past, read};
use crate::model::{FeedName, FeedState, LedgerEntry, Tick, Time};
use crate::store::limits::{BLOCK, WHOLE_EVERY};
use crate::store::portable::{CarriedItem, ExportRecord, Fit};
use crate::store::purge_mark::PurgeMark;
use crate::store::record::{
    ArchiveNumber, ArchiveRecord, FloorRecord, HeadRecord, HistoryRecord, SegmentRecord,
    StateRecord, SubscriptionRecord, delta,
};
use crate::store::{Epoch, KeptVersion, StoreError};
use std::time::Duration;
use tokio::sync::mpsc;

/// How many pieces stand behind one barrier while they are taken in.
pub(super) const AT_ONCE: usize = 128;
/// How many epochs of the log are read at once.
const EPOCHS: usize = 1000;

/// Nobody takes the pieces any more; not an error of the store.
struct ExportAbandoned;

/// Hands everything over.
pub(super) fn export(
    trees: &Trees,
    shared: &StoreShared,
    to: &mpsc::Sender<ExportRecord>,
) -> Result<(), StoreError> {
    let mut all = shared.listing(|| {
        let mut pieces: Vec<ExportRecord> = Vec::new();
        pieces.extend(read::feeds(trees)?.into_iter().map(|one| ExportRecord::Feed(Box::new(one))));
        pieces.extend(
            read::poll_states(trees)?.into_iter().map(|one| ExportRecord::Poll(Box::new(one))),
        );
        let subscriptions = read::subscriptions(trees)?.into_iter();
        pieces.extend(subscriptions.map(|one| ExportRecord::Subscription(Box::new(one))));
        for entry in trees.scan::<FloorRecord>(Class::Floors, Vec::new()) {
            let (key, record) = entry?;
            let name = keys::feed_name(&key);
            let name =
                name.ok_or_else(|| trees.damaged(Class::Floors, &key, "it names no feed"))?;
            pieces.push(ExportRecord::Floor(name, record.floor));
        }
        Ok(pieces)
    })?;
    let newest = *shared.sealed.borrow();
    let mut after = Epoch(0);
    loop {
        let epochs = shared.listing(|| read::epochs_after(trees, after, newest, EPOCHS))?;
        let Some(last) = epochs.last() else { break };
        after = last.epoch;
        all.extend(epochs.into_iter().map(ExportRecord::Log));
    }
    for piece in all {
        if to.blocking_send(piece).is_err() {
            return Ok(());
        }
    }
    for name in shared.names() {
        let told = shared.reading(&name, |state| {
            let mut send = |piece| to.blocking_send(piece).map_err(|_| ExportAbandoned);
            feed(trees, &name, state, &mut send).map(Some)
        })?;
        if matches!(told, Some(Err(ExportAbandoned))) {
            return Ok(());
        }
    }
    Ok(())
}

type Send<'a> = dyn FnMut(ExportRecord) -> Result<(), ExportAbandoned> + 'a;

/// Hands a feed over.
fn feed(
    trees: &Trees,
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
    let history: HistoryRecord =
        trees.record(Class::Histories, &keys::feed(name))?.unwrap_or_default();
    let since = SKELETONS.since(&history, state);
    for at in times(trees, name, SKELETONS, since)? {
        if let Some((from, skeleton)) = SKELETONS.at(trees, name, since, at)? {
            hand!(ExportRecord::Skeleton(name.clone(), from, Box::new(skeleton)));
        }
    }
    let since = ORDERS.since(&history, state);
    for at in times(trees, name, ORDERS, since)? {
        if let Some((from, order)) = ORDERS.at(trees, name, since, at)? {
            hand!(ExportRecord::Order(name.clone(), from, order));
        }
    }
    let kept = read::kept(trees, name)?;
    if !kept.is_empty() {
        hand!(ExportRecord::Held(name.clone(), kept));
    }
    for id in past::ledger(trees, name)? {
        let known = past::known(trees, name, &id)?;
        let newest = read::item(trees, name, &id)?;
        let (Some(known), Some(newest)) = (known, newest) else { continue };
        let mut versions = Vec::new();
        for note in read::versions(trees, name, &id, usize::MAX)? {
            let markup = match note.deleted {
                true => None,
                false => chain::body(trees, name, &id, note.tick)?,
            };
            versions.push(KeptVersion { note, markup });
        }
        let (newest, conflicts) = (newest.shared.winner.data, newest.shared.conflicts);
        let item = CarriedItem { known, newest, conflicts, versions };
        hand!(ExportRecord::Item(name.clone(), Box::new(item)));
    }
    let mut events = read::events(trees, name, usize::MAX)?;
    while let Some(event) = events.pop() {
        hand!(ExportRecord::Event(name.clone(), Box::new(event)));
    }
    for (note, archive) in archives::all(trees, name)? {
        let archive = match archive {
            Some(count) => Some(Box::new(archives::content(trees, name, note.number, count)?)),
            None => None,
        };
        hand!(ExportRecord::Archive(name.clone(), Box::new(note), archive));
    }
    hand!(ExportRecord::State(name.clone(), Box::new(state.clone())));
    Ok(Ok(()))
}

/// Since when each document of a line was in force, oldest first, the present one last.
fn times(
    trees: &Trees,
    name: &FeedName,
    line: ChainHead,
    since: Time,
) -> Result<Vec<Time>, StoreError> {
    let mut times = Vec::new();
    for key in trees.tree(line.past).scan_prefix(keys::feed(name)).keys() {
        let key = key.map_err(|error| trees.failed("read", error))?;
        let from = keys::past_since(&key);
        times.push(from.ok_or_else(|| trees.damaged(line.past, &key, "its key has no time"))?);
    }
    times.push(since);
    Ok(times)
}

/// Whether nothing was ever put into the trees.
pub(super) fn is_empty(trees: &Trees) -> bool {
    Class::ALL.iter().all(|class| trees.tree(*class).is_empty())
}

/// What a piece was.
pub(super) enum ImportedRecord {
    /// A part of something.
    Part,
    /// The last of a feed.
    Feed(FeedName, Box<CommittedFeed>),
    /// What is left of a purged feed.
    Floor(FeedName, PurgeMark),
    Epoch(Epoch, Time),
}

/// A document of a line that may be followed by another: since when it is in force, the record, and
/// how many differences stand in a row before it.
type Present = (Time, Vec<u8>, u32);

/// What came so far of the feed that is being taken in.
#[derive(Default)]
pub(super) struct Bringing {
    fit: Fit,
    skeleton: Option<Present>,
    order: Option<Present>,
    next_event: u64,
}

impl Bringing {
    /// Checks that nothing is missing at the end.
    pub(super) fn end(&self) -> Result<(), StoreError> {
        self.fit.end()
    }

    /// The entries of a piece.
    pub(super) fn piece(
        &mut self,
        trees: &Trees,
        piece: &ExportRecord,
        writes: &mut Writes,
    ) -> Result<ImportedRecord, StoreError> {
        self.fit.check(piece)?;
        let what = || "what was handed over".to_owned();
        match piece {
            ExportRecord::Feed(record) => {
                let row = encoded(trees, &**record, what)?;
                trees.put(writes, Class::Feeds, keys::feed(&record.name), &row)?;
            }
            ExportRecord::Poll(state) => {
                let row = encoded(trees, &**state, what)?;
                trees.put(writes, Class::Polls, keys::feed(&state.feed), &row)?;
            }
            ExportRecord::Subscription(one) => {
                let row = encoded(trees, &SubscriptionRecord::from(&**one), what)?;
                trees.put(writes, Class::Subscriptions, keys::subscription(one.id()), &row)?;
            }
            ExportRecord::Floor(feed, floor) => {
                let row = encoded(trees, &FloorRecord { floor: *floor, sweeping: false }, what)?;
                trees.put(writes, Class::Floors, keys::feed(feed), &row)?;
                return Ok(ImportedRecord::Floor(feed.clone(), *floor));
            }
            ExportRecord::Log(sealed) => {
                for (place, announced) in (0_u32..).zip(&sealed.changes) {
                    let row = encoded(trees, &(sealed.at, announced.clone()), what)?;
                    trees.put(writes, Class::Log, keys::log(sealed.epoch.0, place), &row)?;
                }
                return Ok(ImportedRecord::Epoch(sealed.epoch, sealed.at));
            }
            ExportRecord::Skeleton(feed, since, skeleton) => {
                let row = encoded(trees, &**skeleton, what)?;
                let before = self.skeleton.take();
                self.skeleton =
                    Some(follow(trees, feed, SKELETONS, before, (*since, row), writes)?);
            }
            ExportRecord::Order(feed, since, order) => {
                let row = encoded(trees, order, what)?;
                let before = self.order.take();
                self.order = Some(follow(trees, feed, ORDERS, before, (*since, row), writes)?);
            }
            ExportRecord::Held(feed, kept) => {
                let row = encoded(trees, kept, what)?;
                trees.put(writes, Class::Kept, keys::feed(feed), &row)?;
            }
            ExportRecord::Item(feed, item) => self::item(trees, feed, item, writes)?,
            ExportRecord::Event(feed, event) => {
                let row = encoded(trees, &**event, what)?;
                trees.put(writes, Class::Events, keys::event(feed, self.next_event), &row)?;
                self.next_event += 1;
            }
            ExportRecord::Archive(feed, note, archive) => {
                let blocks = archive.as_ref().map(|archive| SegmentRecord::blocks(archive, BLOCK));
                let blocks = blocks.unwrap_or_default();
                for (number, block) in (0_u32..).zip(&blocks) {
                    let row = encoded(trees, block, what)?;
                    let key = keys::block(feed, note.number, number);
                    trees.put(writes, Class::Segments, key, &row)?;
                }
                let named = encoded(trees, &ArchiveNumber(note.number), what)?;
                trees.put(writes, Class::ArchiveIds, keys::archive_id(feed, &note.id), &named)?;
                let count = u32::try_from(blocks.len()).unwrap_or(u32::MAX);
                let row =
                    encoded(trees, &ArchiveRecord { note: (**note).clone(), blocks: count }, what)?;
                trees.put(writes, Class::Archives, keys::archive(feed, note.number), &row)?;
            }
            ExportRecord::State(feed, state) => {
                let held = self.state(trees, feed, state, writes)?;
                return Ok(ImportedRecord::Feed(feed.clone(), Box::new(held)));
            }
        }
        Ok(ImportedRecord::Part)
    }

    fn state(
        &mut self,
        trees: &Trees,
        feed: &FeedName,
        state: &FeedState,
        writes: &mut Writes,
    ) -> Result<CommittedFeed, StoreError> {
        let what = || format!("the state of the feed {feed}");
        let mut history = HistoryRecord::default();
        if let Some((since, row, run)) = self.skeleton.take() {
            trees.put(writes, Class::Skeletons, keys::feed(feed), &row)?;
            history.set_skeleton(since, run);
        }
        if let Some((since, row, run)) = self.order.take() {
            trees.put(writes, Class::Orders, keys::feed(feed), &row)?;
            history.set_order(since, run);
        }
        let row = encoded(trees, &history, what)?;
        trees.put(writes, Class::Histories, keys::feed(feed), &row)?;
        let next_event = std::mem::take(&mut self.next_event);
        let row = encoded(trees, &StateRecord { state: state.clone(), next_event }, what)?;
        trees.put(writes, Class::States, keys::feed(feed), &row)?;
        Ok(CommittedFeed { state: state.clone(), next_event })
    }
}

/// The document before one of a line goes to its past, as a difference where that is smaller.
fn follow(
    trees: &Trees,
    feed: &FeedName,
    line: ChainHead,
    before: Option<Present>,
    (since, row): (Time, Vec<u8>),
    writes: &mut Writes,
) -> Result<Present, StoreError> {
    let Some((from, old, run)) = before else { return Ok((since, row, 0)) };
    let difference = match run + 1 < WHOLE_EVERY {
        true => delta::against(&old, since, &row)
            .map_err(|error| trees.unwritable(format!("the past of the feed {feed}"), error))?,
        false => None,
    };
    let run = if difference.is_some() { run + 1 } else { 0 };
    trees.put(writes, line.past, keys::past(feed, from), &difference.unwrap_or(old))?;
    Ok((since, row, run))
}

/// The entries of an item. The newest of its versions that has bytes is there whole, as a commit
/// leaves it; each before it is a difference to the next one with bytes.
fn item(
    trees: &Trees,
    feed: &FeedName,
    item: &CarriedItem,
    writes: &mut Writes,
) -> Result<(), StoreError> {
    let CarriedItem { known, newest, conflicts, versions } = item;
    let what = || format!("the item {} of the feed {feed}", known.id);
    let key = keys::item(feed, &known.id);
    let row = encoded(trees, known, what)?;
    trees.put(writes, Class::Ledger, key.clone(), &row)?;
    let place = (Class::ByTick, keys::by_tick(feed, known.tick, &known.id));
    writes.insert(place, Some(Vec::new()));
    if !conflicts.is_empty() {
        let row = encoded(trees, conflicts, what)?;
        trees.put(writes, Class::Conflicts, key.clone(), &row)?;
    }

    let mut head = HeadRecord::new(known.tick);
    let mut newer: Option<(Time, Vec<u8>)> = None;
    let mut run = 0;
    for KeptVersion { note, markup } in versions {
        let row = encoded(trees, note, what)?;
        let place = keys::version(feed, &known.id, note.tick);
        trees.put(writes, Class::Versions, place.clone(), &row)?;
        head.kept = head.kept.saturating_add(1);
        let Some(markup) = markup else { continue };
        let row = encoded(trees, markup, what)?;
        let difference = match &newer {
            Some((at, newer)) if run + 1 < WHOLE_EVERY => {
                delta::against(&row, *at, newer).map_err(|error| trees.unwritable(what(), error))?
            }
            Some(_) => None,
            None => {
                head.body = note.tick;
                head.latest = markup != newest;
                None
            }
        };
        run = if difference.is_some() { run + 1 } else { 0 };
        trees.put(writes, Class::Bodies, place, difference.as_deref().unwrap_or(&row))?;
        newer = Some((note.tick.time(), row));
    }
    if newer.is_none() {
        head.body = before_all(known, versions);
        let row = encoded(trees, newest, what)?;
        let place = keys::version(feed, &known.id, head.body);
        trees.put(writes, Class::Bodies, place, &row)?;
    } else if head.latest {
        let row = encoded(trees, newest, what)?;
        trees.put(writes, Class::Latest, key.clone(), &row)?;
    }
    let row = encoded(trees, &head, what)?;
    trees.put(writes, Class::Heads, key, &row)
}

/// A tick before those of all versions: that of a version that is not kept any more, and whose bytes
/// are the item's newest.
fn before_all(known: &LedgerEntry, versions: &[KeptVersion]) -> Tick {
    let first = versions.last().map_or(known.tick, |oldest| oldest.note.tick.min(known.tick));
    Tick::at(first.time().minus(Duration::from_secs(1)))
}
