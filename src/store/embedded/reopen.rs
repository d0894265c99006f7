//! Opening a store again after a failure, in the process that it failed in.
//!
//! After a write or a barrier that failed, the handle of the database is of no use: what the system
//! dropped is gone, and a second barrier would not say so. So the thread that writes lets go of it, waits
//! until readers have, and opens the folder again, which this process holds all the while. What was
//! acknowledged must be found there. Meanwhile states are answered from memory.

use super::committer::Committer;
use super::open::{Found, Opened};
use super::request::CommitRequest;
use super::shared::{StoreShared, broken};
use super::{
    OpenRequest, OpenState, OpenStore, REQUESTS, Records, StoreInner, StorePlace, Writer, read,
};
use crate::engine::Engine;
use crate::{Epoch, StoreError, as_list};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError, Weak};
use std::time::Duration;
use tidegate_core::clock::Clock;
use tidegate_core::model::{EndpointId, FeedName, Revision, counted};
use tokio::sync::mpsc;
use tokio::time::Instant;

/// How often in a row a store may look damaged before it is said to be: a disk that fails can make it look
/// so for a while.
const DAMAGED_TRIES: u32 = 3;
/// What could not be done, in errors, while somebody reads.
const LET_GO: &str = "be let go of";
/// How late a closing is noticed while a try is waited for.
const SLICE: Duration = Duration::from_millis(20);

/// How soon a store is opened again: each try that fails doubles the pause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ReopenPauses {
    pub(crate) first: Duration,
    pub(crate) longest: Duration,
    /// Of a store that is damaged, as far as can be seen, the first and the longest: a try copies all of it.
    pub(crate) damaged: (Duration, Duration),
}

impl Default for ReopenPauses {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        let damaged = (seconds(600), seconds(6 * 3600));
        Self { first: seconds(1), longest: seconds(30), damaged }
    }
}

impl ReopenPauses {
    /// The pause after one and a try that failed with `error`. A full disk is tried as often as ever: a try
    /// that finds no space costs nothing, and whoever frees some waits for the store.
    fn after(self, pause: Duration, error: &StoreError) -> Duration {
        let is_full = matches!(error, StoreError::Io { source, .. } if matches!(
            source.kind(),
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded
        ));
        if is_full { self.first } else { pause.saturating_mul(2).min(self.longest) }
    }
}

/// Opens the database of one place again.
pub(crate) trait Reopen: Send {
    /// Opens it, where it has what was acknowledged.
    fn reopen(&self, known: &Acknowledged) -> Result<Reopened, ReopenError>;

    /// The pauses between tries.
    fn pauses(&self) -> ReopenPauses;
}

/// A store that was opened again.
pub(crate) struct Reopened {
    pub(crate) records: Records,
    pub(crate) opened: Opened,
    pub(crate) place: Arc<dyn StorePlace>,
}

/// Why a store was not opened again.
pub(crate) enum ReopenError {
    /// Acknowledged state is missing.
    Missing(StoreError),
    Failed(StoreError),
}

impl<E: Into<StoreError>> From<E> for ReopenError {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

/// What a store that is opened again must have.
pub(crate) struct Acknowledged {
    pub(crate) endpoint: EndpointId,
    pub(crate) fence: u64,
    pub(crate) epoch: Epoch,
    /// Each feed with its revision and the number of its last write.
    feeds: BTreeMap<FeedName, (Revision, u64)>,
    /// How often records outside the content of feeds were written.
    list_writes: u64,
}

impl Acknowledged {
    /// What was published.
    pub(super) fn new(shared: &StoreShared, endpoint: EndpointId) -> Self {
        let (fence, epoch) = (shared.fence(), *shared.sealed.borrow());
        let list_writes = shared.list_writes.load(Ordering::Acquire);
        Self { endpoint, fence, epoch, feeds: shared.heads(), list_writes }
    }

    /// How what was found is opened again; an error where something is missing from it. `path`: the folder, or
    /// what stands for it.
    pub(crate) fn request(&self, found: &Found, path: &str) -> Result<OpenRequest, ReopenError> {
        if let Some(missing) = self.missing(found) {
            let what = format!("acknowledged state is missing since a write failed: {missing}");
            return Err(ReopenError::Missing(StoreError::Damaged { path: path.to_owned(), what }));
        }
        Ok(OpenRequest { endpoint: Some(self.endpoint.clone()), sup_ids: None })
    }

    /// The first thing that is missing from what was found, in words. What was never acknowledged may be
    /// there or not: a change, or a purge.
    fn missing(&self, found: &Found) -> Option<String> {
        match &found.identity {
            None => return Some("whose store it is".to_owned()),
            Some(identity) if identity.endpoint != self.endpoint => {
                return Some(format!("it is the store of {} now", identity.endpoint));
            }
            Some(identity) if identity.fence < self.fence => {
                return Some(format!("it was opened {} times", self.fence));
            }
            Some(_) => {}
        }
        if found.list_writes < self.list_writes {
            let lost = self.list_writes - found.list_writes;
            return Some(format!(
                "{} to records of feeds, poll states, subscriptions or the change log",
                counted(lost, "acknowledged write")
            ));
        }
        let (reached, sealed) = (self.epoch.0, found.sealed.0.0);
        if sealed < reached {
            return Some(format!("the change log ends at epoch {sealed}, {reached} was published"));
        }
        for (feed, (revision, write)) in &self.feeds {
            let head = found.committed.get(feed);
            let stored = head.map(|head| (head.state.revision, head.write));
            let purged = found.floors.get(feed).is_some_and(|floor| floor.revision >= *revision);
            let is_there = stored.map_or(purged, |stored| stored >= (*revision, *write));
            if !is_there {
                let at = stored.map_or(0, |(revision, _)| revision.0);
                let revision = revision.0;
                return Some(format!(
                    "the feed {feed} is at revision {at}, {revision} was acknowledged"
                ));
            }
        }
        None
    }
}

/// Has requests served, and opens the store again whenever it has failed, until it is closed.
pub(super) fn keep_open(
    inner: &Weak<StoreInner>,
    mut committer: Committer,
    mut requests: mpsc::Receiver<CommitRequest>,
    endpoint: &EndpointId,
    reopen: Option<&dyn Reopen>,
) {
    loop {
        let shared = Arc::clone(&committer.shared);
        if catch_unwind(AssertUnwindSafe(|| committer.run(&mut requests))).is_err() {
            shared.fail(&broken());
        }
        if shared.health().is_ok() {
            return;
        }
        // Each is answered with the failure.
        requests.close();
        while let Some(request) = requests.blocking_recv() {
            committer.serve(vec![request]);
        }
        let clock = Arc::clone(&committer.clock);
        drop(committer);
        let (Some(inner), Some(reopen)) = (inner.upgrade(), reopen) else { return };
        let known = Acknowledged::new(&shared, endpoint.clone());
        match try_until_open(&inner, reopen, &known, &clock) {
            Some(next) => (committer, requests) = next,
            None => return,
        }
    }
}

/// Lets go of the database and tries to open it again, until that succeeds, it is given up, or the store
/// is closed.
pub(super) fn try_until_open(
    inner: &StoreInner,
    reopen: &dyn Reopen,
    known: &Acknowledged,
    clock: &Arc<dyn Clock>,
) -> Option<(Committer, mpsc::Receiver<CommitRequest>)> {
    let (engine, path) = let_go(inner)?;
    let health = &inner.shared.health;
    let pauses = reopen.pauses();
    let (mut pause, mut damaged, mut failed) = (pauses.first, 0, None);
    loop {
        let is_damaged = damaged >= DAMAGED_TRIES;
        health.plan_try(clock.now().plus(pause), failed.as_ref(), is_damaged);
        if is_closed_within(inner, pause) {
            return None;
        }
        let tried = catch_unwind(AssertUnwindSafe(|| match engine.upgrade() {
            Some(engine) => {
                // A reader may wait for a write that failed.
                engine.wake();
                let source = std::io::Error::other("somebody still reads from it");
                Err(ReopenError::Failed(StoreError::Io { doing: LET_GO, source }))
            }
            None => reopen.reopen(known),
        }));
        let tried = tried.unwrap_or_else(|_| Err(ReopenError::Failed(broken())));
        let error = match tried {
            Ok(opened) => return install(inner, opened, clock),
            Err(ReopenError::Missing(error)) => {
                health.give_up(&path, &error);
                return None;
            }
            Err(ReopenError::Failed(error)) => error,
        };
        let looks_damaged = matches!(error, StoreError::Damaged { .. });
        damaged = if looks_damaged { DAMAGED_TRIES.min(damaged + 1) } else { 0 };
        pause = match damaged {
            DAMAGED_TRIES => pause.saturating_mul(2).clamp(pauses.damaged.0, pauses.damaged.1),
            // Readers let go by themselves.
            _ if matches!(error, StoreError::Io { doing: LET_GO, .. }) => {
                pause.saturating_mul(2).min(pauses.first.saturating_mul(4))
            }
            _ => pauses.after(pause.min(pauses.longest), &error),
        };
        failed = Some(error);
    }
}

/// Takes the database out of the store and lets go of it; readers may still have it. With its name. `None` where the
/// store is closed.
fn let_go(inner: &StoreInner) -> Option<(Weak<dyn Engine>, String)> {
    let taken = {
        let mut open = inner.open.write().unwrap_or_else(PoisonError::into_inner);
        match &*open {
            OpenState::Closed | OpenState::Again => return None,
            OpenState::Open(_) => std::mem::replace(&mut *open, OpenState::Again),
        }
    };
    let OpenState::Open(OpenStore { records, writer, place }) = taken else { return None };
    let (engine, path) = (records.watch(), records.engine().path().to_owned());
    // The engine breaks off where it cannot make its last writes durable, which nobody relies on.
    let _ = catch_unwind(AssertUnwindSafe(|| drop((writer, records))));
    drop(place);
    Some((engine, path))
}

/// Waits for a pause; whether the store was closed within it.
fn is_closed_within(inner: &StoreInner, pause: Duration) -> bool {
    let until = Instant::now() + pause;
    loop {
        if matches!(&*inner.open.read().unwrap_or_else(PoisonError::into_inner), OpenState::Closed)
        {
            return true;
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return false;
        }
        std::thread::sleep(left.min(SLICE));
    }
}

/// Shows what the store has now, and serves requests again. `None` where the store is closed.
fn install(
    inner: &StoreInner,
    reopened: Reopened,
    clock: &Arc<dyn Clock>,
) -> Option<(Committer, mpsc::Receiver<CommitRequest>)> {
    let Reopened { records, opened, place } = reopened;
    let Opened { identity, committed, list_writes, sealed } = opened;
    // In memory from here on, so that nobody waits for it behind those who read.
    let feeds = read::feeds(&records).ok().map(as_list);
    let (sender, requests) = mpsc::channel(REQUESTS);
    let committer = Committer {
        records: records.clone(),
        shared: Arc::clone(&inner.shared),
        place: Arc::clone(&place),
        clock: Arc::clone(clock),
        list_writes,
        sealed,
    };
    let mut open = inner.open.write().unwrap_or_else(PoisonError::into_inner);
    if matches!(&*open, OpenState::Closed) {
        return None;
    }
    inner.shared.list_writes.store(list_writes, Ordering::Release);
    inner.shared.replace(committed, feeds, identity, sealed.0);
    inner.shared.health.heal(clock.now());
    *open = OpenState::Open(OpenStore { records, writer: Writer::Thread(sender), place });
    Some((committer, requests))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_tried_often_and_a_failing_one_seldom() {
        let failed = |kind: ErrorKind| StoreError::Io { doing: "write", source: kind.into() };
        let pauses = ReopenPauses::default();
        let seconds = |kind| -> Vec<u64> {
            let mut pause = pauses.first;
            let tries = (0..8).map(|_| {
                pause = pauses.after(pause, &failed(kind));
                pause.as_secs()
            });
            tries.collect()
        };
        assert_eq!(seconds(ErrorKind::StorageFull), [1; 8]);
        assert_eq!(seconds(ErrorKind::QuotaExceeded), [1; 8]);
        assert_eq!(seconds(ErrorKind::Other), [2, 4, 8, 16, 30, 30, 30, 30]);
    }
}
