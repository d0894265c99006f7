//! Slots for the requests that a site has at once: each has one until its answer has been taken. A client has a share
//! of them. When all are taken, a request gives way whose client keeps the site waiting, or has most of them.

mod progress;

pub(super) use self::progress::longer;

use self::progress::{AnswerBody, SlotProgress, watched_upload};
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
const GIVEN_BACK: Duration = Duration::from_secs(30);
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
    taken: BTreeMap<u64, TakenSlot>,
    is_watched: bool,
}

/// A slot that a request has. Dropping it may close a connection: not while the table is locked.
struct TakenSlot {
    client: Client,
    progress: Arc<SlotProgress>,
    _share: Share<Client>,
}

impl SlotTable {
    /// The requests whose clients keep the site waiting for so long, the longest first.
    fn waited_for(&self, time: Duration) -> Vec<(Duration, u64)> {
        let now = Instant::now();
        let all = self.taken.iter();
        let all = all.filter_map(|(id, slot)| Some((slot.progress.waited(now)?, *id)));
        let mut all: Vec<_> = all.filter(|(waited, _)| *waited >= time).collect();
        all.sort_unstable_by(|one, other| other.cmp(one));
        all
    }

    /// The request that gives way to one of a client: one that keeps the site waiting, else one of a client with more.
    /// None whose action the site is carrying out: nobody knew then whether to ask again.
    fn that_gives_way(&self, client: Client) -> Option<u64> {
        let (now, mut counts) = (Instant::now(), HashMap::<Client, usize>::new());
        self.taken.values().for_each(|slot| *counts.entry(slot.client).or_default() += 1);
        let count = |client| counts.get(&client).copied().unwrap_or(0);
        let all = self.taken.iter().filter_map(|(id, slot)| {
            let (waited, has) = (slot.progress.waited(now)?, count(slot.client));
            let is_late = waited >= GIVES_WAY;
            let late = if is_late { waited } else { Duration::ZERO };
            (is_late || has > count(client) + 1).then_some((late, has, waited, *id))
        });
        all.max().map(|(.., id)| id)
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
        let (until, client) = (Instant::now() + WAIT, client.site());
        // One that is over its own share takes no slot from others.
        let mut share = self.clients.acquire_by(&client, 1, until).await.ok_or_else(|| {
            let said = format!("{} requests of this client are at this site", self.share);
            Problem::later(said, AGAIN)
        })?;
        loop {
            let freed = self.freed.notified();
            share = match self.try_take(client, share) {
                Ok(slot) => return Ok(slot),
                Err(share) => share,
            };
            // As many wait as there are slots; each of these has one more of it, and so has the site.
            let waiting = Arc::clone(&self.waiting);
            let is_crowded = Arc::strong_count(&waiting) > self.limit + 1;
            if is_crowded || timeout_at(until, freed).await.is_err() {
                let said = format!("{} requests are at this site, which is the limit", self.limit);
                return Err(Problem::site_is_late(said, AGAIN));
            }
        }
    }

    /// A slot for who has a share; the share again where there is none.
    fn try_take(
        self: &Arc<Self>,
        client: Client,
        share: Share<Client>,
    ) -> Result<Slot, Share<Client>> {
        let mut table = self.table();
        let mut lost = None;
        if table.taken.len() >= self.limit {
            let Some(id) = table.that_gives_way(client) else { return Err(share) };
            lost = table.taken.remove(&id);
        }
        let id = table.next;
        table.next += 1;
        let progress = Arc::new(SlotProgress::default());
        let slot = TakenSlot { client, progress: Arc::clone(&progress), _share: share };
        table.taken.insert(id, slot);
        if !std::mem::replace(&mut table.is_watched, true) {
            tokio::spawn(Arc::clone(self).watch());
        }
        drop(table);
        if let Some(lost) = lost {
            lost.progress.lose();
        }
        Ok(Slot { id, progress, slots: Arc::clone(self) })
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
            let lost = kept.filter(|(n, (time, _))| *n < wanted || *time >= GIVEN_BACK);
            let lost: Vec<_> = lost.filter_map(|(_, (_, id))| table.taken.remove(&id)).collect();
            drop(table);
            for slot in lost {
                slot.progress.lose();
                drop(slot);
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
        watched_upload(body, Arc::clone(&self.progress))
    }

    /// The site has the whole of a request that is an action.
    pub(super) fn begin_action(&self) {
        self.progress.begin_action();
    }

    /// The body of the answer, which has the slot until it has been taken.
    pub(super) fn answer(self, body: PassedBody) -> PassedBody {
        self.progress.begin_answer(body);
        AnswerBody(Some(self)).boxed_unsync()
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let slot = self.slots.table().taken.remove(&self.id);
        if slot.is_some() {
            drop(slot);
            self.slots.freed.notify_one();
        }
    }
}

#[cfg(test)]
mod tests;
