//! Keys. Every key of a feed has its name and a zero byte, which no name holds, so that a feed can be read, and purged,
//! by that prefix. In [`Class::Index`](crate::engine::Class::Index) and [`Class::Marks`](crate::engine::Class::Marks) a
//! byte before it says which of several kinds of records it is.
//!
//! Sync ids hold no control characters, so a zero byte ends them too. Ticks and numbers are written
//! so that the order of bytes is their order.

use crate::record::ItemRecord;
use tidegate_core::model::{ArchiveId, FeedName, FeedState, IndexKey, SyncId, Tick, Time};
use tidegate_core::websub::SubscriptionId;
use xxhash_rust::xxh3::xxh3_64;

/// Ends names and ids.
const END: u8 = 0;
/// Maps the order of signed numbers to that of unsigned ones.
const SIGN: u64 = 1 << 63;
/// The bytes that a tick, a number and a hash take.
const NUMBER: usize = size_of::<u64>();

/// Of the index: items by tick. The value says whether the item is a tombstone.
pub(super) const BY_TICK: &[u8] = b"t";
/// Items by the keys of their ledger.
const BY_LEDGER_KEY: &[u8] = b"k";
/// Items that have conflicts.
pub(super) const CONTESTED: &[u8] = b"c";
/// Stubs by the hashes of their names.
const BY_NAME: &[u8] = b"n";
/// The numbers of archives by id.
const BY_ARCHIVE_ID: &[u8] = b"a";
/// All of these.
pub(super) const INDEX: [&[u8]; 5] = [BY_TICK, BY_LEDGER_KEY, CONTESTED, BY_NAME, BY_ARCHIVE_ID];

/// In [`Class::Marks`](crate::engine::Class::Marks): the purge mark of a feed.
pub(super) const PURGED: &[u8] = b"p";
/// A large document while it is taken in.
pub(super) const ATTEMPT: &[u8] = b"a";
/// The redo mark of a large change.
pub(super) const UNFINISHED: &[u8] = b"u";
/// The blobs of a large change.
pub(super) const REDO: &[u8] = b"r";

/// The prefix of the keys of a kind and feed; the whole key of a record that a feed has once.
pub(super) fn of_kind(kind: &[u8], feed: &FeedName) -> Vec<u8> {
    [kind, feed.as_str().as_bytes(), &[END]].concat()
}

/// The feed of a key with a kind, and the bytes after its name.
pub(super) fn split_kind(key: &[u8]) -> Option<(FeedName, &[u8])> {
    let (_, key) = key.split_first()?;
    let (name, rest) = key.split_at_checked(key.iter().position(|byte| *byte == END)? + 1)?;
    Some((feed_name(name)?, rest))
}

/// The prefix of the keys of a feed; the whole key of a record that a feed has once.
pub(super) fn feed(feed: &FeedName) -> Vec<u8> {
    [feed.as_str().as_bytes(), &[END]].concat()
}

/// The feed of the key of a record that a feed has once.
pub(super) fn feed_name(key: &[u8]) -> Option<FeedName> {
    FeedName::new(std::str::from_utf8(key.strip_suffix(&[END])?).ok()?).ok()
}

/// The key of the entries of held documents.
pub(super) fn held(name: &FeedName) -> Vec<u8> {
    [feed(name).as_slice(), b"held"].concat()
}

/// The key of the items outside the order that are not settled.
pub(super) fn unsettled(name: &FeedName) -> Vec<u8> {
    [feed(name).as_slice(), b"unsettled"].concat()
}

/// The key of an item, and of its newest bytes without a version; the prefix of the keys of its versions.
pub(super) fn item(name: &FeedName, id: &SyncId) -> Vec<u8> {
    [name.as_str().as_bytes(), &[END], id.as_str().as_bytes(), &[END]].concat()
}

/// The key of the newest bytes of an item.
pub(super) fn newest(name: &FeedName, item: &ItemRecord) -> Vec<u8> {
    let ItemRecord { known, body, has_latest, .. } = item;
    if *has_latest { self::item(name, &known.id) } else { version(name, &known.id, *body) }
}

/// The key of a version of an item.
pub(super) fn version(name: &FeedName, id: &SyncId, tick: Tick) -> Vec<u8> {
    [item(name, id).as_slice(), &tick_bytes(tick)].concat()
}

/// The key of the item that a text is of, and the tick of the version; none where it is of no version.
pub(super) fn split_text(key: &[u8]) -> Option<(&[u8], Option<Tick>)> {
    let mut ends = key.iter().enumerate().filter(|(_, byte)| **byte == END);
    let (item, rest) = key.split_at_checked(ends.nth(1)?.0 + 1)?;
    if rest.is_empty() { Some((item, None)) } else { Some((item, Some(tick(rest)?))) }
}

/// The key of a frame that was in force from `since` on.
pub(super) fn past(name: &FeedName, since: Time) -> Vec<u8> {
    [feed(name).as_slice(), &tick_bytes(Tick::at(since))].concat()
}

/// The time at the end of the key of a frame.
pub(super) fn past_since(key: &[u8]) -> Option<Time> {
    tick(key).map(Tick::time)
}

/// The key of a stub: by the tick of its last version, so that stubs of one time are neighbours.
pub(super) fn stub(name: &FeedName, tick: Tick, id: &SyncId) -> Vec<u8> {
    [feed(name).as_slice(), &tick_bytes(tick), id.as_str().as_bytes()].concat()
}

/// The key of a block of events, of a note of an archive, or of a blob.
pub(super) fn numbered(name: &FeedName, number: u64) -> Vec<u8> {
    [feed(name).as_slice(), &number.to_be_bytes()].concat()
}

/// The keys of the notes of the oldest archives that are kept, at most `limit`.
pub(super) fn oldest_archives(
    feed: &FeedName,
    state: &FeedState,
    limit: usize,
) -> impl Iterator<Item = Vec<u8>> {
    let numbers = (state.archives.first..state.archives.next).take(limit);
    numbers.map(|number| numbered(feed, number))
}

/// The number at the end of such a key.
pub(super) fn number(key: &[u8]) -> Option<u64> {
    key.last_chunk().map(|bytes| u64::from_be_bytes(*bytes))
}

/// The key of a block of an archive's content.
pub(super) fn segment(name: &FeedName, number: u64, block: u32) -> Vec<u8> {
    [numbered(name, number).as_slice(), &block.to_be_bytes()].concat()
}

/// The first key of the index by tick that can belong to this tick.
pub(super) fn from_tick(feed: &FeedName, tick: Tick) -> Vec<u8> {
    [of_kind(BY_TICK, feed).as_slice(), &tick_bytes(tick)].concat()
}

/// The first key of the index by tick that can belong to a tick after `tick`.
pub(super) fn after_tick(feed: &FeedName, tick: Tick) -> Vec<u8> {
    let next = u64::from_be_bytes(tick_bytes(tick)).saturating_add(1);
    [of_kind(BY_TICK, feed).as_slice(), &next.to_be_bytes()].concat()
}

/// The key of an item in the index by tick.
pub(super) fn by_tick(feed: &FeedName, tick: Tick, id: &SyncId) -> Vec<u8> {
    [from_tick(feed, tick).as_slice(), id.as_str().as_bytes()].concat()
}

/// The prefix of the items in the index by ledger key that have this key.
pub(super) fn indexed(feed: &FeedName, key: IndexKey) -> Vec<u8> {
    [of_kind(BY_LEDGER_KEY, feed).as_slice(), &key.0.to_be_bytes()].concat()
}

/// The key of an item in the index of its ledger.
pub(super) fn indexed_item(feed: &FeedName, key: IndexKey, id: &SyncId) -> Vec<u8> {
    [indexed(feed, key).as_slice(), id.as_str().as_bytes()].concat()
}

/// The prefix of stubs in the index by name: a hash, since names have any length. Names with the same hash are
/// distinguished by the stubs themselves.
pub(super) fn stub_names(feed: &FeedName, name: &str) -> Vec<u8> {
    [of_kind(BY_NAME, feed).as_slice(), &xxh3_64(name.as_bytes()).to_be_bytes()].concat()
}

/// The key of a stub in the index by name.
pub(super) fn stub_name(feed: &FeedName, name: &str, tick: Tick, id: &SyncId) -> Vec<u8> {
    [stub_names(feed, name).as_slice(), &tick_bytes(tick), id.as_str().as_bytes()].concat()
}

/// The key of an item among those that have conflicts.
pub(super) fn contested(feed: &FeedName, id: &SyncId) -> Vec<u8> {
    [of_kind(CONTESTED, feed).as_slice(), id.as_str().as_bytes()].concat()
}

/// The key of the number of an archive.
pub(super) fn archive_id(feed: &FeedName, id: &ArchiveId) -> Vec<u8> {
    [of_kind(BY_ARCHIVE_ID, feed).as_slice(), id.as_str().as_bytes()].concat()
}

/// The sync id at the end of a key of the index, after `numbers` numbers, the last of them as a tick.
pub(super) fn index_item(key: &[u8], numbers: usize) -> Option<(Option<Tick>, SyncId)> {
    let (_, rest) = split_kind(key)?;
    let (numbers, id) = rest.split_at_checked(numbers * NUMBER)?;
    Some((tick(numbers), SyncId::new(std::str::from_utf8(id).ok()?).ok()?))
}

/// The key of a blob of a large change.
pub(super) fn redo_blob(feed: &FeedName, number: u32) -> Vec<u8> {
    [of_kind(REDO, feed).as_slice(), &number.to_be_bytes()].concat()
}

/// The key of a subscription of the hub.
pub(super) fn subscription(id: SubscriptionId) -> Vec<u8> {
    id.bytes().to_vec()
}

/// The key of a change in the log: its epoch and its place in it.
pub(super) fn log(epoch: u64, place: u32) -> Vec<u8> {
    [epoch.to_be_bytes().as_slice(), &place.to_be_bytes()].concat()
}

/// The epoch in a key of the log.
pub(super) fn log_epoch(key: &[u8]) -> Option<u64> {
    key.first_chunk().map(|bytes| u64::from_be_bytes(*bytes))
}

pub(super) fn tick_bytes(tick: Tick) -> [u8; NUMBER] {
    (tick.time().unix().cast_unsigned() ^ SIGN).to_be_bytes()
}

/// The tick that bytes end with.
fn tick(bytes: &[u8]) -> Option<Tick> {
    let number = u64::from_be_bytes(*bytes.last_chunk()?) ^ SIGN;
    Some(Tick::at(Time::from_unix(number.cast_signed())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn name(text: &str) -> FeedName {
        FeedName::new(text).unwrap()
    }

    proptest! {
        #[test]
        fn keys_sort_by_tick_and_then_id(
            (a, b) in (-62_167_219_200i64..253_402_207_200, -62_167_219_200i64..253_402_207_200),
            (x, y) in ("[a-z0-9.é]{1,6}", "[a-z0-9.é]{1,6}"),
        ) {
            let feed = name("f");
            let (a, b) = (Tick::at(Time::from_unix(a)), Tick::at(Time::from_unix(b)));
            let (x, y) = (SyncId::new(&x).unwrap(), SyncId::new(&y).unwrap());
            let (one, other) = (by_tick(&feed, a, &x), by_tick(&feed, b, &y));
            prop_assert_eq!(one.cmp(&other), (a, &x).cmp(&(b, &y)));
            prop_assert_eq!(index_item(&one, 1), Some((Some(a), x.clone())));
            let (item, version) = (item(&feed, &x), version(&feed, &x, a));
            prop_assert_eq!(split_text(&item), Some((&item[..], None)));
            prop_assert_eq!(split_text(&version), Some((&item[..], Some(a))));
            prop_assert_eq!(other >= after_tick(&feed, a), b > a);
        }
    }
}
