//! Which feeds a gateway polls, where several gateways poll those of one store.
//!
//! Feeds are divided into [`SHARDS`] shards by the registrable domain of their configured address, so that the feeds
//! of one publisher are polled by one gateway. The store decides which shards a gateway has, and confirms that again
//! and again. A gateway that was not confirmed for too long begins no poll, and then ends those in flight, before
//! another gateway may take its shards.

use super::embedded::since_boot;
use super::{KnownGateway, SharedSettings};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use xxhash_rust::xxh3::xxh3_64;

/// The number of shards.
pub const SHARDS: u16 = 1024;
/// For how long a shard that was needed here is not given back for the number of shards alone.
const WANTED_TIME: Duration = Duration::from_secs(30);
/// The parts of a lease within which polls begin, and are in flight, after the store has confirmed it.
const BEGIN_PART: f64 = 0.8;
const END_PART: f64 = 0.9;

/// A shard: 1 to [`SHARDS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Shard(u16);

impl Shard {
    /// That of the feeds whose configured addresses are in a registrable domain.
    pub fn of_domain(domain: &str) -> Self {
        let place = xxh3_64(domain.as_bytes()) % u64::from(SHARDS);
        Self(u16::try_from(place).unwrap_or_default() + 1)
    }

    /// The shard of this number; `None` where there is none.
    pub fn numbered(number: i32) -> Option<Self> {
        u16::try_from(number).ok().filter(|number| (1..=SHARDS).contains(number)).map(Self)
    }

    /// All shards.
    pub fn all() -> impl Iterator<Item = Self> {
        (1..=SHARDS).map(Self)
    }

    /// Its number.
    pub const fn number(self) -> u16 {
        self.0
    }
}

/// Whether a gateway reaches publishers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PublisherReach {
    /// It does, as far as is known.
    #[default]
    Reached,
    /// It did not, and tries again.
    Tried,
    /// It does not. Where others do, they are to have its shards.
    CutOff,
}

/// A shard that this gateway has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeldShard {
    /// Raised whenever the shard is given out anew.
    pub fence: i64,
    /// Whether it is to be given back: no poll of its feeds begins any more.
    pub is_leaving: bool,
}

/// What the scheduler wants of the store.
#[derive(Debug, Default)]
pub struct ShardRequests {
    /// Leaving shards of which nothing is in flight any more.
    pub ended: BTreeSet<Shard>,
    /// Shards that this gateway needs, whoever has them.
    pub wanted: BTreeSet<Shard>,
    /// Shards that only the gateway that writes may poll.
    pub of_writer: BTreeSet<Shard>,
}

#[derive(Debug, Default)]
struct ShardTable {
    held: BTreeMap<Shard, HeldShard>,
    requests: ShardRequests,
    /// Shards that are not given back for the number of shards alone.
    kept: BTreeSet<Shard>,
    /// Shards that were needed here, and until when that keeps them here, by [`since_boot`].
    needed: BTreeMap<Shard, Duration>,
    /// Whether this gateway polls nothing ([`PollShards::abstain`]).
    abstains: bool,
    /// Whether its store takes in nothing.
    is_stopped: bool,
    /// For how long nobody had polled each shard that this gateway took, and when it took it, by [`since_boot`].
    unpolled: BTreeMap<Shard, (Duration, Duration)>,
    /// Whether this gateway reaches publishers.
    reach: PublisherReach,
    /// What the others are let know of this gateway's settings.
    settings: Option<SharedSettings>,
    /// The gateways that live, as they were seen last.
    gateways: Arc<[KnownGateway]>,
    /// Which gateway has each shard, as it calls itself.
    owners: BTreeMap<Shard, Arc<str>>,
    /// When the store was asked that confirmed this, by [`since_boot`].
    confirmed: Option<Duration>,
}

/// The shards that this gateway polls.
#[derive(Debug)]
pub struct PollShards {
    lease: Duration,
    is_writer: bool,
    table: Mutex<ShardTable>,
    changes: watch::Sender<u64>,
}

impl PollShards {
    /// None yet. `lease`: for how long the store leaves shards to a gateway that it does not hear of; `is_writer`:
    /// whether this gateway writes the store.
    pub fn new(lease: Duration, is_writer: bool) -> Self {
        let (table, changes) = (Mutex::default(), watch::Sender::new(0));
        Self { lease, is_writer, table, changes }
    }

    fn table(&self) -> MutexGuard<'_, ShardTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_within(&self, part: f64) -> bool {
        let confirmed = self.table().confirmed;
        confirmed.is_some_and(|at| since_boot().saturating_sub(at) <= self.lease.mul_f64(part))
    }

    /// Whether this gateway writes the store.
    pub const fn is_writer(&self) -> bool {
        self.is_writer
    }

    /// Whether this gateway polls the feeds of a shard: it has the shard, and need not give it back.
    pub fn polls(&self, shard: Shard) -> bool {
        self.table().held.get(&shard).is_some_and(|held| !held.is_leaving)
    }

    /// The shards that it polls.
    pub fn polled(&self) -> BTreeSet<Shard> {
        let table = self.table();
        let polled = table.held.iter().filter(|(_, held)| !held.is_leaving);
        polled.map(|(shard, _)| *shard).collect()
    }

    /// The shards that it is to give back: once nothing of their feeds is in flight and what polling remembers of them
    /// is stored, [`PollShards::end`] says so.
    pub fn leaving(&self) -> BTreeSet<Shard> {
        let table = self.table();
        table.held.iter().filter(|(_, held)| held.is_leaving).map(|(shard, _)| *shard).collect()
    }

    /// Whether polls may begin: the store has confirmed the shards lately.
    pub fn may_begin(&self) -> bool {
        self.is_within(BEGIN_PART)
    }

    /// Whether polls may be in flight. Where not, another gateway may soon take the shards.
    pub fn may_go_on(&self) -> bool {
        self.is_within(END_PART)
    }

    /// Whether this gateway has a shard under this fence, be it to give it back.
    pub fn has_fence(&self, shard: Shard, fence: i64) -> bool {
        self.table().held.get(&shard).is_some_and(|held| held.fence == fence)
    }

    /// Says when the shards that this gateway polls, or is to give back, are others.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Nothing of these leaving shards is in flight any more, and what polling remembers of their feeds is stored.
    pub fn end(&self, shards: impl IntoIterator<Item = Shard>) {
        self.table().requests.ended.extend(shards);
    }

    /// Asks for a shard that another gateway has: it is given over once nothing of it is in flight there.
    pub fn want(&self, shard: Shard) {
        let mut table = self.table();
        table.needed.insert(shard, since_boot() + WANTED_TIME);
        if !table.held.contains_key(&shard) {
            table.requests.wanted.insert(shard);
        }
    }

    /// Notes that a shard has feeds which only the gateway that writes can poll: it alone subscribes to hubs, and has
    /// those wait who change a feed.
    pub fn leave_to_writer(&self, shard: Shard) {
        self.table().requests.of_writer.insert(shard);
    }

    /// The shards that are not given back for the number of shards alone.
    pub fn keep(&self, shards: BTreeSet<Shard>) {
        self.table().kept = shards;
    }

    /// Says whether this gateway polls nothing, because its polling has ended: others are to have its shards.
    pub fn abstain(&self, abstains: bool) {
        self.table().abstains = abstains;
    }

    /// Whether it does.
    pub fn abstains(&self) -> bool {
        self.table().abstains
    }

    /// Notes whether this gateway's store takes in nothing. Others are to have its shards, where that lasts and they poll.
    pub fn note_stop(&self, is_stopped: bool) {
        self.table().is_stopped = is_stopped;
    }

    /// Whether it takes in nothing.
    pub(crate) fn is_stopped(&self) -> bool {
        self.table().is_stopped
    }

    /// Notes for how long nobody has polled shards that this gateway takes now.
    pub fn note_unpolled(&self, shards: impl IntoIterator<Item = (Shard, Duration)>) {
        let now = since_boot();
        let noted = shards.into_iter().map(|(shard, unpolled)| (shard, (unpolled, now)));
        self.table().unpolled.extend(noted);
    }

    /// For how long nobody has polled a shard, where this gateway has not begun to; `None` where it was given over: that
    /// takes less time than a gateway that is gone keeps its shards.
    pub fn unpolled_for(&self, shard: Shard) -> Option<Duration> {
        let (unpolled, at) = self.table().unpolled.get(&shard).copied()?;
        let is_gone = unpolled >= self.lease.mul_f64(END_PART);
        is_gone.then(|| unpolled.saturating_add(since_boot().saturating_sub(at)))
    }

    /// Notes whether this gateway reaches publishers.
    pub fn note_reach(&self, reach: PublisherReach) {
        self.table().reach = reach;
    }

    /// Whether it is known to.
    pub(crate) fn reaches(&self) -> bool {
        self.table().reach == PublisherReach::Reached
    }

    /// Whether others are to have its shards, where they reach publishers.
    pub fn is_cut_off(&self) -> bool {
        self.table().reach == PublisherReach::CutOff
    }

    /// Lets the other gateways know which settings this one has.
    pub fn publish_settings(&self, settings: SharedSettings) {
        self.table().settings = Some(settings);
    }

    /// What they are let know.
    pub(crate) fn published_settings(&self) -> String {
        self.table().settings.as_ref().map(SharedSettings::text).unwrap_or_default()
    }

    /// Which settings of another gateway differ from this one's, by what that one published.
    pub(crate) fn differing(&self, published: &str) -> Vec<String> {
        self.table().settings.as_ref().map(|own| own.differing(published)).unwrap_or_default()
    }

    /// Notes the gateways that live; answers those before.
    pub fn note_gateways(&self, gateways: Arc<[KnownGateway]>) -> Arc<[KnownGateway]> {
        std::mem::replace(&mut self.table().gateways, gateways)
    }

    /// The gateways over the same store that live, with this one.
    pub fn known_gateways(&self) -> Arc<[KnownGateway]> {
        Arc::clone(&self.table().gateways)
    }

    /// How many of them there are.
    pub fn gateways(&self) -> usize {
        self.table().gateways.len().max(1)
    }

    /// The gateway that has a shard, as it calls itself; `None` where none is known.
    pub fn owner(&self, shard: Shard) -> Option<Arc<str>> {
        self.table().owners.get(&shard).cloned()
    }

    /// Takes over which shards this gateway has, as of `asked`, a time since the machine was started.
    pub fn confirm(&self, asked: Duration, held: BTreeMap<Shard, i64>) {
        let mut guard = self.table();
        let table = &mut *guard;
        table.confirmed = table.confirmed.max(Some(asked));
        let is_same = |fence: i64| move |held: &&HeldShard| held.fence == fence;
        let before = std::mem::take(&mut table.held);
        table.held = held
            .into_iter()
            .map(|(shard, fence)| {
                let known = before.get(&shard).filter(is_same(fence)).copied();
                (shard, known.unwrap_or(HeldShard { fence, is_leaving: false }))
            })
            .collect();
        let is_changed = table.held != before;
        // What is lost was polled here until now.
        for lost in before.keys().filter(|shard| !table.held.contains_key(shard)) {
            table.unpolled.remove(lost);
        }
        let held: BTreeSet<Shard> = table.held.keys().copied().collect();
        table.requests.ended.retain(|shard| held.contains(shard));
        table.requests.wanted.retain(|shard| !held.contains(shard));
        drop(guard);
        if is_changed {
            self.changes.send_modify(|count| *count += 1);
        }
    }

    /// Has these shards be given back.
    pub fn give_back(&self, shards: impl IntoIterator<Item = Shard>) {
        let mut table = self.table();
        let mut is_changed = false;
        for shard in shards {
            if let Some(held) = table.held.get_mut(&shard) {
                is_changed |= !std::mem::replace(&mut held.is_leaving, true);
            }
        }
        drop(table);
        if is_changed {
            self.changes.send_modify(|count| *count += 1);
        }
    }

    /// What the scheduler wants of the store since the last time.
    pub fn take_requests(&self) -> ShardRequests {
        std::mem::take(&mut self.table().requests)
    }

    /// Those that this gateway has.
    pub fn held(&self) -> BTreeMap<Shard, HeldShard> {
        self.table().held.clone()
    }

    /// Those that are not given back for the number of shards alone.
    pub fn kept(&self) -> BTreeSet<Shard> {
        let (mut table, now) = (self.table(), since_boot());
        table.needed.retain(|_, until| *until > now);
        table.kept.iter().chain(table.needed.keys()).copied().collect()
    }

    /// Notes which gateway has which shard.
    pub fn note_owners(&self, owners: BTreeMap<Shard, Arc<str>>) {
        self.table().owners = owners;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shard(number: i32) -> Shard {
        Shard::numbered(number).unwrap()
    }

    #[test]
    fn a_domain_has_a_shard_and_all_shards_have_numbers() {
        assert_eq!(Shard::of_domain("example.org"), Shard::of_domain("example.org"));
        let found: BTreeSet<Shard> =
            (0..20_000).map(|number| Shard::of_domain(&format!("{number}.example"))).collect();
        assert_eq!(found, Shard::all().collect());
        assert!(Shard::numbered(0).is_none() && Shard::numbered(1025).is_none());
        assert_eq!(shard(1024).number(), SHARDS);
    }

    #[test]
    fn nothing_begins_and_then_nothing_goes_on_without_confirmation() {
        let shards = PollShards::new(Duration::from_secs(10), false);
        assert!(!shards.may_begin() && !shards.may_go_on());
        let before = |seconds: f64| since_boot().saturating_sub(Duration::from_secs_f64(seconds));
        shards.confirm(before(8.5), BTreeMap::new());
        assert!(!shards.may_begin() && shards.may_go_on());
        // One that is older changes nothing.
        shards.confirm(before(9.5), BTreeMap::new());
        assert!(shards.may_go_on());
        shards.confirm(before(7.0), BTreeMap::new());
        assert!(shards.may_begin() && shards.may_go_on());
    }

    #[test]
    fn a_shard_is_polled_until_it_is_to_be_given_back() {
        let shards = PollShards::new(Duration::from_secs(10), false);
        let mut changes = shards.changes();
        let held = BTreeMap::from([(shard(1), 7), (shard(2), 7)]);
        shards.confirm(since_boot(), held.clone());
        assert!(shards.polls(shard(1)) && changes.has_changed().unwrap());
        changes.mark_unchanged();
        shards.confirm(since_boot(), held.clone());
        assert!(!changes.has_changed().unwrap());
        shards.give_back([shard(1), shard(3)]);
        assert!(
            !shards.polls(shard(1)) && shards.polls(shard(2)) && changes.has_changed().unwrap()
        );
        // It stays so, unless the shard was given out anew.
        shards.confirm(since_boot(), held);
        assert_eq!(shards.leaving(), BTreeSet::from([shard(1)]));
        shards.end([shard(1)]);
        shards.want(shard(2));
        shards.want(shard(3));
        let requests = shards.take_requests();
        assert_eq!(requests.ended, BTreeSet::from([shard(1)]));
        assert_eq!(requests.wanted, BTreeSet::from([shard(3)]));
        assert!(shards.take_requests().ended.is_empty());
        shards.confirm(since_boot(), BTreeMap::from([(shard(1), 8)]));
        assert!(shards.polls(shard(1)) && !shards.polls(shard(2)));
    }
}
