//! A budget that clients share: connections, requests at an origin, bodies being sent. Each client has a share of it,
//! and so has each network of clients. When it is used up, connections whose clients keep the gateway waiting are cut
//! first; then those of the network that holds most, if that is more than the newcomer's network holds.

use super::{Client, Connection, locked};
use foldhash::fast::RandomState;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

/// What is held: what tells it from all else, and its size. What several hold counts once.
#[derive(Debug, Clone, Copy)]
pub(super) struct HeldThing {
    pub(super) id: usize,
    pub(super) size: u64,
}

/// How much there is in all, and how much of it one client and one network of clients may hold.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct BudgetShares {
    pub(super) all: u64,
    pub(super) each: u64,
    pub(super) network: u64,
}

/// What is used up of a budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BudgetEnd {
    /// The share of the client.
    Share,
    /// All, and nobody gives way.
    All,
}

/// Who holds something, and on which connection.
#[derive(Debug)]
pub(super) struct BudgetHolder {
    /// `None`: a trusted proxy, which has no share of its own.
    pub(super) client: Option<Client>,
    /// Cut when the holder is evicted; a holder without a connection is never evicted.
    pub(super) connection: Option<Arc<Connection>>,
    pub(super) thing: HeldThing,
    /// Whether it can be evicted only while the gateway waits for its client.
    pub(super) is_action: bool,
}

/// Who has a share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum ShareOwner {
    Client(Client),
    Network(Client),
    All,
}

impl BudgetHolder {
    /// The client, its site, and all.
    fn owners(&self) -> impl Iterator<Item = ShareOwner> + use<> {
        let client = self.client.map(ShareOwner::Client);
        client.into_iter().chain(self.network()).chain([ShareOwner::All])
    }

    fn network(&self) -> Option<ShareOwner> {
        self.client.map(|client| ShareOwner::Network(client.network()))
    }

    fn connection(&self) -> Option<usize> {
        self.connection.as_ref().map(|connection| Arc::as_ptr(connection).addr())
    }

    /// For how long its client has kept the gateway waiting, where it does.
    fn client_wait(&self) -> Option<Duration> {
        self.connection.as_ref()?.client_wait()
    }
}

/// Things that are held, each with its size and how many hold it.
#[derive(Debug, Default)]
struct HeldThings {
    things: HashMap<usize, (u64, usize), RandomState>,
    sum: u64,
}

impl HeldThings {
    /// How much more it would be with a thing.
    fn more(&self, thing: HeldThing) -> u64 {
        if self.things.contains_key(&thing.id) { 0 } else { thing.size }
    }

    fn with(&self, thing: HeldThing) -> u64 {
        self.sum.saturating_add(self.more(thing))
    }

    fn holders(&self, thing: usize) -> usize {
        self.things.get(&thing).map_or(0, |(_, holders)| *holders)
    }

    fn add(&mut self, thing: HeldThing) {
        self.sum = self.with(thing);
        self.things.entry(thing.id).or_insert((thing.size, 0)).1 += 1;
    }

    fn remove(&mut self, thing: usize) {
        let Some((size, holders)) = self.things.get_mut(&thing) else { return };
        *holders = holders.saturating_sub(1);
        if *holders == 0 {
            self.sum = self.sum.saturating_sub(*size);
            self.things.remove(&thing);
        }
    }
}

#[derive(Debug, Default)]
struct BudgetTable {
    limits: BudgetShares,
    next: u64,
    holders: BTreeMap<u64, BudgetHolder>,
    shares: HashMap<ShareOwner, HeldThings, RandomState>,
}

impl BudgetTable {
    fn insert(&mut self, holder: BudgetHolder) -> u64 {
        let id = self.next;
        self.next += 1;
        for owner in holder.owners() {
            self.shares.entry(owner).or_default().add(holder.thing);
        }
        self.holders.insert(id, holder);
        id
    }

    fn remove(&mut self, id: u64) {
        let Some(holder) = self.holders.remove(&id) else { return };
        for owner in holder.owners() {
            let held = self.shares.entry(owner).or_default();
            held.remove(holder.thing.id);
            if held.things.is_empty() {
                self.shares.remove(&owner);
            }
        }
    }

    /// Ends the connection of a holder, and forgets all that it held.
    fn cut(&mut self, id: u64) {
        let Some(connection) = self.holders.get(&id).and_then(|it| it.connection.clone()) else {
            return;
        };
        let key = Some(Arc::as_ptr(&connection).addr());
        let is_its = |holder: &BudgetHolder| holder.connection() == key;
        let its = self.holders.iter().filter(|(_, holder)| is_its(holder));
        let its: Vec<u64> = its.map(|(id, _)| *id).collect();
        its.into_iter().for_each(|id| self.remove(id));
        connection.cut();
    }

    /// Finds the holder to evict among those that count for `owner` and whose clients have kept the gateway waiting for
    /// at least `patience`: in the network that holds most, the one that waits longest. Skips what another connection
    /// still moves and the newcomer's own connection: cutting those would free nothing.
    fn longest_waiting_holder(
        &self,
        newcomer: &BudgetHolder,
        patience: Duration,
        owner: ShareOwner,
    ) -> Option<u64> {
        let client_wait = |holder: &BudgetHolder| {
            let is_other = holder.connection() != newcomer.connection();
            holder.client_wait().filter(|client_wait| *client_wait >= patience && is_other)
        };
        let moves = self.holders.values().filter(|holder| client_wait(holder).is_none());
        let moving: HashSet<usize> = moves.map(|holder| holder.thing.id).collect();
        let most = |holder: &BudgetHolder| {
            let of = holder.network().and_then(|network| self.shares.get(&network));
            of.map_or(0, |held| held.sum)
        };
        let is_one = |holder: &BudgetHolder| {
            holder.owners().any(|of| of == owner) && !moving.contains(&holder.thing.id)
        };
        let all = self.holders.iter().filter(|(_, holder)| is_one(holder));
        all.filter_map(|(id, holder)| Some((most(holder), client_wait(holder)?, Reverse(*id))))
            .max()
            .map(|(.., Reverse(id))| id)
    }

    /// Finds the holder to evict in the network that holds most by itself, if that is more than the newcomer's will
    /// hold.
    fn largest_network_holder(&self, newcomer: &BudgetHolder) -> Option<u64> {
        let own = newcomer.network().and_then(|network| self.shares.get(&network));
        let than = own.map_or(newcomer.thing.size, |held| held.with(newcomer.thing));
        let all = self.shares.get(&ShareOwner::All)?;
        let alone = |held: &HeldThings| -> u64 {
            let things = held.things.iter();
            let its = things.filter(|(thing, (_, holders))| all.holders(**thing) == *holders);
            its.map(|(_, (size, _))| *size).fold(0, u64::saturating_add)
        };
        let networks =
            self.shares.iter().filter(|(owner, _)| matches!(owner, ShareOwner::Network(_)));
        let greatest = networks.map(|(network, held)| (*network, alone(held)));
        let greatest: HashMap<_, u64> = greatest.filter(|(_, sum)| *sum > than).collect();
        let rank = |(id, holder): (&u64, &BudgetHolder)| {
            let network = holder.network()?;
            let (sum, held) = (greatest.get(&network)?, self.shares.get(&network)?);
            let goes = !holder.is_action
                && holder.connection.is_some()
                && holder.connection() != newcomer.connection()
                && held.holders(holder.thing.id) == all.holders(holder.thing.id);
            goes.then_some((*sum, holder.thing.size, Reverse(*id)))
        };
        self.holders.iter().filter_map(rank).max().map(|(.., Reverse(id))| id)
    }

    /// Evicts holders until a newcomer fits into the shares of its client and its network, and into the whole budget.
    fn make_room(&mut self, newcomer: &BudgetHolder, patience: Duration) -> Result<(), BudgetEnd> {
        let (limits, thing) = (self.limits, newcomer.thing);
        // What is larger than the whole budget is admitted when nothing else is held.
        let is_over = |held: Option<&HeldThings>, most: u64| {
            held.is_some_and(|held| held.sum > 0 && held.more(thing) > 0 && held.with(thing) > most)
        };
        for owner in newcomer.owners() {
            let (most, end) = match owner {
                ShareOwner::Client(_) => (limits.each, BudgetEnd::Share),
                ShareOwner::Network(_) => (limits.network, BudgetEnd::Share),
                ShareOwner::All => (limits.all, BudgetEnd::All),
            };
            while is_over(self.shares.get(&owner), most) {
                let is_all = owner == ShareOwner::All;
                let goes = self.longest_waiting_holder(newcomer, patience, owner);
                let goes =
                    goes.or_else(|| is_all.then(|| self.largest_network_holder(newcomer))?);
                self.cut(goes.ok_or(end)?);
            }
        }
        Ok(())
    }
}

/// A budget, and who holds what of it.
#[derive(Debug)]
pub(super) struct Budget {
    /// How long a client may keep the gateway waiting before its connection gives way.
    patience: Duration,
    table: Mutex<BudgetTable>,
    freed: Notify,
}

impl Budget {
    /// Nobody holds anything.
    pub(super) fn new(shares: BudgetShares, patience: Duration) -> Arc<Self> {
        let table = Mutex::new(BudgetTable { limits: shares, ..BudgetTable::default() });
        Arc::new(Self { patience, table, freed: Notify::new() })
    }

    /// How much there is.
    pub(super) fn shares(&self) -> BudgetShares {
        locked(&self.table).limits
    }

    /// Changes how much there is; what is held stays held.
    pub(super) fn set_shares(&self, shares: BudgetShares) {
        locked(&self.table).limits = shares;
    }

    /// That of `before` with other shares, so that what it holds counts on; a new one where there is none.
    pub(super) fn after(
        before: Option<&Arc<Self>>,
        shares: BudgetShares,
        patience: Duration,
    ) -> Arc<Self> {
        let budget = before.map_or_else(|| Self::new(shares, patience), Arc::clone);
        budget.set_shares(shares);
        budget
    }

    /// Something of it for a newcomer, until that is dropped.
    pub(super) fn take(self: &Arc<Self>, newcomer: BudgetHolder) -> Result<HeldBudget, BudgetEnd> {
        let mut table = locked(&self.table);
        self.take_from(&mut table, newcomer)
    }

    fn take_from(
        self: &Arc<Self>,
        table: &mut BudgetTable,
        newcomer: BudgetHolder,
    ) -> Result<HeldBudget, BudgetEnd> {
        table.make_room(&newcomer, self.patience)?;
        Ok(HeldBudget { id: table.insert(newcomer), budget: Arc::clone(self) })
    }

    /// One of it, which is nothing that another holds.
    pub(super) fn take_one(
        self: &Arc<Self>,
        client: Client,
        connection: Option<Arc<Connection>>,
        is_action: bool,
    ) -> Result<HeldBudget, BudgetEnd> {
        let mut table = locked(&self.table);
        let id = usize::try_from(table.next).unwrap_or(usize::MAX);
        let thing = HeldThing { id, size: 1 };
        let newcomer = BudgetHolder { client: Some(client), connection, thing, is_action };
        self.take_from(&mut table, newcomer)
    }

    /// The same whether there is room or not.
    pub(super) fn take_anyway(self: &Arc<Self>, newcomer: BudgetHolder) -> HeldBudget {
        HeldBudget { id: locked(&self.table).insert(newcomer), budget: Arc::clone(self) }
    }

    /// Comes when something was given back after this was called.
    pub(super) fn freed(&self) -> Notified<'_> {
        self.freed.notified()
    }

    /// How much a client has.
    pub(super) fn of(&self, client: Client) -> u64 {
        let table = locked(&self.table);
        table.shares.get(&ShareOwner::Client(client)).map_or(0, |held| held.sum)
    }

    /// Does something with every connection.
    pub(super) fn for_each(&self, act: impl Fn(&Connection)) {
        locked(&self.table)
            .holders
            .values()
            .filter_map(|holder| holder.connection.as_deref())
            .for_each(act);
    }

    /// How many hold something, and how much that is.
    #[cfg(test)]
    pub(super) fn held(&self) -> (usize, u64) {
        let table = locked(&self.table);
        assert_eq!(table.holders.is_empty(), table.shares.is_empty());
        (table.holders.len(), table.shares.get(&ShareOwner::All).map_or(0, |all| all.sum))
    }
}

/// Something of a budget, until this is dropped.
#[derive(Debug)]
pub(super) struct HeldBudget {
    id: u64,
    budget: Arc<Budget>,
}

impl Drop for HeldBudget {
    fn drop(&mut self) {
        locked(&self.budget.table).remove(self.id);
        self.budget.freed.notify_waiters();
    }
}

#[cfg(test)]
mod tests;
