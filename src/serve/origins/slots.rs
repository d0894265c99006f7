//! Slots for the requests that a site has at once: each has one until its answer has been taken. A client has a share
//! of them. When all are taken, a request gives way whose client keeps the site waiting, or has most of them.

mod progress;

pub(super) use self::progress::longer;

use self::progress::{AnswerBody, SlotProgress, WatchedUpload};
use super::super::client::Client;
use super::super::problem::Problem;
use super::super::shares::{FairShares, Share};
use http_body_util::BodyExt as _;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tidegate_net::origin::PassedBody;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout_at};

/// Of so many slots a client has one, and a few at least.
const CLIENTS: usize = 4;
const FEW: usize = 8;
/// How long a request waits for a slot.
const WAIT: Duration = Duration::from_secs(5);
/// How soon to ask again.
const AGAIN: Duration = Duration::from_secs(2);
/// How long a client may keep the site waiting, for a piece of an upload or with one of the answer: where others wait
/// for a slot, and in any case.
const GIVES_WAY: Duration = Duration::from_secs(3);
const GIVEN_BACK: Duration = Duration::from_secs(15);
/// How often that is looked at.
const PACE: Duration = Duration::from_secs(1);

/// The slots.
pub(super) struct SiteSlots {
    limit: usize,
    share: usize,
    clients: FairShares<Client>,
    table: Mutex<SlotTable>,
    freed: Notify,
    /// Each request that waits has one more of it.
    waiting: Arc<()>,
}

#[derive(Default)]
struct SlotTable {
    next: u64,
    taken: BTreeMap<u64, (Client, Arc<SlotProgress>)>,
    is_watched: bool,
}

impl SlotTable {
    /// Takes a slot away.
    fn take_away(&mut self, id: u64) {
        if let Some((_, progress)) = self.taken.remove(&id) {
            progress.lose();
        }
    }

    /// The requests whose clients keep the site waiting for so long, the longest first.
    fn waited_for(&self, time: Duration) -> Vec<(Duration, u64)> {
        let now = Instant::now();
        let all = self.taken.iter().map(|(id, (_, progress))| (progress.waited(now), *id));
        let mut all: Vec<_> = all.filter(|(waited, _)| *waited >= time).collect();
        all.sort_unstable_by(|one, other| other.cmp(one));
        all
    }

    /// The request that gives way to one of a client; `None` where the client has as many as anybody.
    fn that_gives_way(&self, client: Client) -> Option<u64> {
        if let Some((_, id)) = self.waited_for(GIVES_WAY).first() {
            return Some(*id);
        }
        let mut counts: HashMap<Client, usize> = HashMap::new();
        self.taken.values().for_each(|(client, _)| *counts.entry(*client).or_default() += 1);
        let own = counts.get(&client).copied().unwrap_or(0);
        let (greatest, _) =
            counts.into_iter().filter(|(_, n)| *n > own + 1).max_by_key(|(_, n)| *n)?;
        let now = Instant::now();
        let its = self.taken.iter().filter(|(_, (client, _))| *client == greatest);
        its.map(|(id, (_, progress))| (progress.waited(now), *id)).max().map(|(_, id)| id)
    }
}

impl SiteSlots {
    /// So many, all free.
    pub(super) fn new(limit: usize) -> Arc<Self> {
        let share = (limit / CLIENTS).max(FEW).min(limit);
        Arc::new(Self {
            limit,
            share,
            clients: FairShares::new(u32::try_from(share).unwrap_or(u32::MAX)),
            table: Mutex::default(),
            freed: Notify::new(),
            waiting: Arc::default(),
        })
    }

    fn table(&self) -> MutexGuard<'_, SlotTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A slot for a request of a client, as soon as there is one.
    pub(super) async fn acquire(self: &Arc<Self>, client: Client) -> Result<Slot, Problem> {
        let until = Instant::now() + WAIT;
        // One that is over its own share takes no slot from others.
        let share = self.clients.acquire_by(&client, 1, until).await.ok_or_else(|| {
            let said = format!("{} requests of this client are at this site", self.share);
            Problem::later(said, AGAIN)
        })?;
        if let Some((id, progress)) = self.try_take(client) {
            return Ok(Slot { id, progress, slots: Arc::clone(self), _share: share });
        }
        let _waiting = Arc::clone(&self.waiting);
        loop {
            let freed = self.freed.notified();
            if let Some((id, progress)) = self.try_take(client) {
                return Ok(Slot { id, progress, slots: Arc::clone(self), _share: share });
            }
            if timeout_at(until, freed).await.is_err() {
                let said = format!("{} requests are at this site, which is the limit", self.limit);
                return Err(Problem::site_is_late(said, AGAIN));
            }
        }
    }

    fn try_take(self: &Arc<Self>, client: Client) -> Option<(u64, Arc<SlotProgress>)> {
        let mut table = self.table();
        if table.taken.len() >= self.limit {
            let id = table.that_gives_way(client)?;
            table.take_away(id);
        }
        let id = table.next;
        table.next += 1;
        let progress = Arc::new(SlotProgress::default());
        table.taken.insert(id, (client, Arc::clone(&progress)));
        if !std::mem::replace(&mut table.is_watched, true) {
            tokio::spawn(Arc::clone(self).watch());
        }
        Some((id, progress))
    }

    /// Takes slots away that are kept for too long, for as long as there are any.
    async fn watch(self: Arc<Self>) {
        loop {
            sleep(PACE).await;
            let mut table = self.table();
            if table.taken.is_empty() {
                table.is_watched = false;
                return;
            }
            let wanted = Arc::strong_count(&self.waiting) - 1;
            let kept = table.waited_for(GIVES_WAY).into_iter().enumerate();
            for (_, (_, id)) in kept.filter(|(n, (time, _))| *n < wanted || *time >= GIVEN_BACK) {
                table.take_away(id);
                self.freed.notify_one();
            }
        }
    }

    /// How many are taken.
    #[cfg(test)]
    fn taken(&self) -> usize {
        self.table().taken.len()
    }
}

/// The slot of a request, until it is dropped.
pub(super) struct Slot {
    id: u64,
    progress: Arc<SlotProgress>,
    slots: Arc<SiteSlots>,
    _share: Share<Client>,
}

impl Slot {
    /// Comes when the slot was taken away.
    pub(super) async fn lost(&self) -> Problem {
        self.progress.lost().await;
        let said = "the request gave way to others: its body did not come, or its client has most requests at this site";
        Problem::later(said, AGAIN)
    }

    /// The body of the request, which its client may not keep the site waiting for.
    pub(super) fn upload(&self, body: PassedBody) -> PassedBody {
        WatchedUpload::new(body, &self.progress).boxed_unsync()
    }

    /// The body of the answer, which has the slot until it has been taken.
    pub(super) fn answer(self, body: PassedBody) -> PassedBody {
        self.progress.begin_answer(body);
        AnswerBody(Some(self)).boxed_unsync()
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if self.slots.table().taken.remove(&self.id).is_some() {
            self.slots.freed.notify_one();
        }
    }
}

#[cfg(test)]
mod tests;
