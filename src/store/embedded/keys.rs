//! Keys. Every key of a feed begins with its name and a zero byte, which no name holds, so that a
//! feed can be read, and purged, by that prefix.
//!
//! Sync ids hold no control characters, so a zero byte ends them too. Ticks and numbers are written
//! so that the order of bytes is their order.

use tidegate_core::model::{ArchiveId, FeedName, IndexKey, SyncId, Tick, Time};
use tidegate_core::websub::SubscriptionId;

/// The one byte that ends names and ids.
const END: u8 = 0;
/// Turns the order of signed numbers into that of unsigned ones.
const SIGN: u64 = 1 << 63;
/// The bytes that a tick takes.
const TICK: usize = size_of::<u64>();

/// What all keys of a feed begin with; the whole key of what a feed has one of.
pub(super) fn feed(feed: &FeedName) -> Vec<u8> {
    let mut key = feed.as_str().as_bytes().to_vec();
    key.push(END);
    key
}

/// The name in the key of what a feed has one of.
pub(super) fn feed_name(key: &[u8]) -> Option<FeedName> {
    FeedName::new(std::str::from_utf8(key.strip_suffix(&[END])?).ok()?).ok()
}

/// The feed whose name a key begins with.
pub(super) fn feed_of(key: &[u8]) -> Option<FeedName> {
    feed_name(key.get(..=key.iter().position(|byte| *byte == END)?)?)
}

/// The key of what an item has one of.
pub(super) fn item(name: &FeedName, id: &SyncId) -> Vec<u8> {
    let mut key = feed(name);
    key.extend_from_slice(id.as_str().as_bytes());
    key.push(END);
    key
}

/// The sync id in the key of what an item has one of.
pub(super) fn item_id(name: &FeedName, key: &[u8]) -> Option<SyncId> {
    let id = key.strip_prefix(feed(name).as_slice())?.strip_suffix(&[END])?;
    SyncId::new(std::str::from_utf8(id).ok()?).ok()
}

/// The key of a version of an item.
pub(super) fn version(name: &FeedName, id: &SyncId, tick: Tick) -> Vec<u8> {
    version_of(&item(name, id), tick)
}

/// The tick at the end of the key of a version.
pub(super) fn version_tick(key: &[u8]) -> Option<Tick> {
    key.last_chunk().map(|bytes| tick(*bytes))
}

/// The key of the version at `tick` of the item whose own key is `item`.
pub(super) fn version_of(item: &[u8], tick: Tick) -> Vec<u8> {
    let mut key = item.to_vec();
    key.extend_from_slice(&tick_bytes(tick));
    key
}

/// The key of the item that the key of a version begins with.
pub(super) fn version_item(key: &[u8]) -> Option<&[u8]> {
    key.split_last_chunk::<TICK>().map(|(item, _)| item)
}

/// The key of something that was in force in a feed from `since` on.
pub(super) fn past(name: &FeedName, since: Time) -> Vec<u8> {
    let mut key = feed(name);
    key.extend_from_slice(&tick_bytes(Tick::at(since)));
    key
}

/// The time at the end of the key of something that was in force.
pub(super) fn past_since(key: &[u8]) -> Option<Time> {
    version_tick(key).map(Tick::time)
}

/// The key of an item in the index by tick.
pub(super) fn by_tick(name: &FeedName, tick: Tick, id: &SyncId) -> Vec<u8> {
    let mut key = feed(name);
    key.extend_from_slice(&tick_bytes(tick));
    key.extend_from_slice(id.as_str().as_bytes());
    key
}

/// The first key of the index by tick that can belong to a tick after `tick`.
pub(super) fn after_tick(name: &FeedName, tick: Tick) -> Vec<u8> {
    let mut key = feed(name);
    let next = u64::from_be_bytes(tick_bytes(tick)).saturating_add(1);
    key.extend_from_slice(&next.to_be_bytes());
    key
}

/// The sync id at the end of a key of the index by tick.
pub(super) fn by_tick_id(name: &FeedName, key: &[u8]) -> Option<SyncId> {
    let id = key.get(feed(name).len() + TICK..)?;
    SyncId::new(std::str::from_utf8(id).ok()?).ok()
}

/// The key of a stub: by the tick of its last version, so that what leaves together stands together, and
/// what leaves later behind it.
pub(super) fn stub(name: &FeedName, tick: Tick, id: &SyncId) -> Vec<u8> {
    by_tick(name, tick, id)
}

/// What the keys in the index by name begin with: a hash, for names have any length. Names that share one are told
/// apart by the stubs themselves.
pub(super) fn stub_names(feed_name: &FeedName, name: &str) -> Vec<u8> {
    let mut key = feed(feed_name);
    key.extend_from_slice(&xxhash_rust::xxh3::xxh3_64(name.as_bytes()).to_be_bytes());
    key
}

/// The key of a stub in the index by name.
pub(super) fn stub_name(feed: &FeedName, name: &str, tick: Tick, id: &SyncId) -> Vec<u8> {
    let mut key = stub_names(feed, name);
    key.extend_from_slice(&tick_bytes(tick));
    key.extend_from_slice(id.as_str().as_bytes());
    key
}

/// The tick and the sync id of the stub that a key in the index by name is of.
pub(super) fn stub_named(name: &FeedName, key: &[u8]) -> Option<(Tick, SyncId)> {
    let (bytes, id) = key.get(feed(name).len() + HASH..)?.split_first_chunk()?;
    Some((tick(*bytes), SyncId::new(std::str::from_utf8(id).ok()?).ok()?))
}

/// The bytes of a hash.
const HASH: usize = size_of::<u64>();

/// What the keys of the items in the index of a ledger begin with that have this key there.
pub(super) fn indexed(name: &FeedName, key: IndexKey) -> Vec<u8> {
    let mut prefix = feed(name);
    prefix.extend_from_slice(&key.0.to_be_bytes());
    prefix
}

/// The key of an item in the index of its ledger.
pub(super) fn indexed_item(name: &FeedName, key: IndexKey, id: &SyncId) -> Vec<u8> {
    let mut place = indexed(name, key);
    place.extend_from_slice(id.as_str().as_bytes());
    place
}

/// The sync id at the end of a key in the index of a ledger.
pub(super) fn indexed_id(name: &FeedName, key: &[u8]) -> Option<SyncId> {
    let id = key.get(feed(name).len() + HASH..)?;
    SyncId::new(std::str::from_utf8(id).ok()?).ok()
}

/// The tick in a key of the index by tick.
pub(super) fn by_tick_tick(name: &FeedName, key: &[u8]) -> Option<Tick> {
    key.get(feed(name).len()..)?.first_chunk().map(|bytes| tick(*bytes))
}

/// The first key of the index by tick that can belong to this tick.
pub(super) fn from_tick(name: &FeedName, tick: Tick) -> Vec<u8> {
    let mut key = feed(name);
    key.extend_from_slice(&tick_bytes(tick));
    key
}

/// The key of an event.
pub(super) fn event(name: &FeedName, number: u64) -> Vec<u8> {
    let mut key = feed(name);
    key.extend_from_slice(&number.to_be_bytes());
    key
}

/// The key of the note of an archive.
pub(super) fn archive(name: &FeedName, number: u64) -> Vec<u8> {
    event(name, number)
}

/// The key of a block of an archive's content.
pub(super) fn block(name: &FeedName, number: u64, block: u32) -> Vec<u8> {
    let mut key = archive(name, number);
    key.extend_from_slice(&block.to_be_bytes());
    key
}

/// The key of the number of an archive.
pub(super) fn archive_id(name: &FeedName, id: &ArchiveId) -> Vec<u8> {
    let mut key = feed(name);
    key.extend_from_slice(id.as_str().as_bytes());
    key
}

/// The key of a subscription of the hub.
pub(super) fn subscription(id: SubscriptionId) -> Vec<u8> {
    id.bytes().to_vec()
}

/// The key of a change in the log: its epoch and its place in it.
pub(super) fn log(epoch: u64, place: u32) -> Vec<u8> {
    let mut key = epoch.to_be_bytes().to_vec();
    key.extend_from_slice(&place.to_be_bytes());
    key
}

/// The epoch in a key of the log.
pub(super) fn log_epoch(key: &[u8]) -> Option<u64> {
    key.first_chunk().map(|bytes| u64::from_be_bytes(*bytes))
}

/// A key as an error message shows it.
pub(super) fn shown(key: &[u8]) -> String {
    key.escape_ascii().to_string()
}

fn tick_bytes(tick: Tick) -> [u8; TICK] {
    (tick.time().unix().cast_unsigned() ^ SIGN).to_be_bytes()
}

fn tick(bytes: [u8; TICK]) -> Tick {
    Tick::at(Time::from_unix((u64::from_be_bytes(bytes) ^ SIGN).cast_signed()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn name(text: &str) -> FeedName {
        FeedName::new(text).unwrap()
    }

    #[test]
    fn one_feed_is_no_prefix_of_another() {
        assert!(!feed(&name("ab")).starts_with(&feed(&name("a"))));
        let (id, longer) = (SyncId::new("x").unwrap(), SyncId::new("x1").unwrap());
        assert!(!item(&name("a"), &longer).starts_with(&item(&name("a"), &id)));
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
            prop_assert_eq!(by_tick_id(&feed, &one), Some(x.clone()));
            prop_assert_eq!(version_tick(&version(&feed, &x, a)), Some(a));
            prop_assert_eq!(other >= after_tick(&feed, a), b > a);
        }
    }
}
