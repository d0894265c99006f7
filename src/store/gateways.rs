//! The gateways that share a database, and the owner of each task that is done once.
//!
//! Every gateway renews its row in the database. Tasks that are done once belong to an owner: of the living gateways
//! that poll, the one with the highest hash over its id and the key of the task. The key of a feed is the registrable
//! domain of its address, so that one gateway polls all feeds of a publisher; without a domain it is the name. For
//! some seconds two gateways may see different sets; then the revision of the feed decides between their commits.

use super::boot_time::since_boot;
use super::shared_settings::SharedSettings;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Polls begin only within this part of the lease after the database has confirmed the row of this gateway.
const BEGIN_PART: f64 = 0.8;

/// The id of a gateway in the database: a random number, new at each start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct GatewayId(pub i64);

/// A gateway, as it was seen last.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KnownGateway {
    pub id: GatewayId,
    /// The name that it gave itself.
    pub name: String,
    /// Whether it is this gateway.
    pub is_this: bool,
    /// Whether it polls.
    pub polls: bool,
    /// The age of its row, by the clock of the database.
    pub beat_age: Duration,
    /// The keys and tables of its configuration that differ from those of this gateway.
    pub differing: Vec<String>,
}

impl KnownGateway {
    /// The message of different settings; `None`: there are none.
    pub fn difference(&self) -> Option<String> {
        let keys = self.differing.join(", ");
        (!keys.is_empty()).then(|| format!("the gateway {} has another {keys}", self.name))
    }
}

#[derive(Debug, Default)]
struct GatewayTable {
    live: Arc<[KnownGateway]>,
    /// When the query began that confirmed this gateway's row, by [`since_boot`].
    confirmed: Option<Duration>,
    /// Published by this gateway: whether it polls, and its settings.
    polls: bool,
    settings: Option<SharedSettings>,
    /// By how many milliseconds this machine's clock is ahead of the database's.
    clock_ahead: i64,
}

/// The living gateways, this one included.
#[derive(Debug)]
pub struct Gateways {
    id: GatewayId,
    lease: Duration,
    table: Mutex<GatewayTable>,
    changes: watch::Sender<u64>,
}

impl Gateways {
    /// No gateway was seen yet. `lease`: how long a row counts as living.
    pub fn new(id: GatewayId, lease: Duration) -> Self {
        Self { id, lease, table: Mutex::default(), changes: watch::Sender::new(0) }
    }

    fn table(&self) -> MutexGuard<'_, GatewayTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// This gateway.
    pub const fn id(&self) -> GatewayId {
        self.id
    }

    /// How long a row counts as living without renewal.
    pub const fn lease(&self) -> Duration {
        self.lease
    }

    /// Whether this gateway is the owner of a registrable domain, or of the name of what has no domain.
    pub fn owns(&self, key: &str) -> bool {
        owner(&self.table().live, key).is_some_and(|owner| owner.id == self.id)
    }

    /// The owner of a key; `None` where no gateway polls.
    pub fn owner(&self, key: &str) -> Option<KnownGateway> {
        owner(&self.table().live, key).cloned()
    }

    /// Whether polls may begin: the database has confirmed this gateway's row within the lease.
    pub fn may_poll(&self) -> bool {
        let confirmed = self.table().confirmed;
        let limit = self.lease.mul_f64(BEGIN_PART);
        confirmed.is_some_and(|at| since_boot().saturating_sub(at) <= limit)
    }

    /// When the last query began that confirmed this gateway's row, by [`since_boot`]: the time of
    /// [`Gateways::live`].
    pub fn confirmed(&self) -> Option<Duration> {
        self.table().confirmed
    }

    /// Notifies that the set of gateways that poll has changed.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// The gateways that live, with this one.
    pub fn live(&self) -> Arc<[KnownGateway]> {
        Arc::clone(&self.table().live)
    }

    /// By how many milliseconds this machine's clock is ahead of the database's; below 0: it is behind.
    pub fn clock_ahead(&self) -> i64 {
        self.table().clock_ahead
    }

    /// Notes the clock difference.
    pub fn set_clock_ahead(&self, milliseconds: i64) {
        self.table().clock_ahead = milliseconds;
    }

    /// Sets whether this gateway polls; before the first call it does not.
    pub fn set_polls(&self, polls: bool) {
        self.table().polls = polls;
    }

    /// Whether it takes part.
    pub fn polls(&self) -> bool {
        self.table().polls
    }

    /// Publishes the settings of this gateway.
    pub fn publish_settings(&self, settings: SharedSettings) {
        self.table().settings = Some(settings);
    }

    /// The published settings.
    pub(crate) fn published_settings(&self) -> String {
        self.table().settings.as_ref().map(SharedSettings::text).unwrap_or_default()
    }

    /// The settings of another gateway that differ, from those that it published.
    pub(crate) fn differing(&self, published: &str) -> Vec<String> {
        self.table().settings.as_ref().map(|own| own.differing(published)).unwrap_or_default()
    }

    /// Sets the living gateways, as of `asked`, a time by [`since_boot`].
    pub fn confirm(&self, asked: Duration, live: Arc<[KnownGateway]>) {
        let mut table = self.table();
        table.confirmed = table.confirmed.max(Some(asked));
        let before = std::mem::replace(&mut table.live, live);
        let polling =
            |live: &[KnownGateway]| live.iter().filter(|it| it.polls).map(|it| it.id).collect();
        let (before, now): (Vec<_>, Vec<_>) = (polling(&before), polling(&table.live));
        drop(table);
        if before != now {
            self.changes.send_modify(|count| *count += 1);
        }
    }
}

/// The gateway with the highest hash over its id and a key.
fn owner<'a>(live: &'a [KnownGateway], key: &str) -> Option<&'a KnownGateway> {
    let weight = |it: &KnownGateway| xxh3_64_with_seed(key.as_bytes(), it.id.0.cast_unsigned());
    live.iter().filter(|it| it.polls).max_by_key(|it| (weight(it), it.id))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Duration = Duration::from_secs(10);

    fn gateway(id: i64) -> KnownGateway {
        KnownGateway { id: GatewayId(id), polls: true, ..KnownGateway::default() }
    }

    #[test]
    fn each_key_has_one_owner_and_only_those_of_who_leaves_move() {
        let of = |id| Gateways::new(GatewayId(id), LEASE);
        let three = [of(1), of(2), of(3)];
        let all: Arc<[_]> = [gateway(1), gateway(2), gateway(3)].into();
        three.iter().for_each(|it| it.confirm(since_boot(), Arc::clone(&all)));
        let keys: Vec<String> = (0..300).map(|number| format!("site-{number}.example")).collect();
        let owner = |key: &str| three.iter().position(|it| it.owns(key)).unwrap();
        let before: Vec<usize> = keys.iter().map(|key| owner(key)).collect();
        for place in 0..3 {
            assert!(before.iter().filter(|owner| **owner == place).count() > 50);
        }
        let changes = three[0].changes();
        let two: Arc<[_]> =
            [gateway(1), gateway(2), KnownGateway { polls: false, ..gateway(3) }].into();
        three.iter().for_each(|it| it.confirm(since_boot(), Arc::clone(&two)));
        assert!(changes.has_changed().unwrap());
        for (key, before) in keys.iter().zip(before) {
            assert_eq!(three.iter().filter(|it| it.owns(key)).count(), 1);
            assert!(before == 2 || owner(key) == before);
        }
    }

    #[test]
    fn who_was_not_confirmed_lately_begins_no_poll() {
        let gateways = Gateways::new(GatewayId(1), LEASE);
        assert!(!gateways.may_poll() && !gateways.owns("a.example"));
        gateways.confirm(since_boot().saturating_sub(LEASE), [gateway(1)].into());
        assert!(!gateways.may_poll() && gateways.owns("a.example"));
        gateways.confirm(since_boot(), [gateway(1)].into());
        assert!(gateways.may_poll());
    }
}
