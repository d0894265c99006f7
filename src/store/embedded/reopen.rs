//! Opening a store again after a failure, in the process that it failed in.
//!
//! After a write or a barrier that failed, the handle of the database is of no use: what the system
//! dropped is gone, and a second barrier would not say so. So the thread that writes lets go of it, waits
//! until readers have, and opens the folder again, which this process holds all the while. What was
//! acknowledged must be found there. Meanwhile states are answered from memory.

use super::committer::{CommitRequest, Committer};
use super::open::{Found, Opened};
use super::shared::{StoreShared, broken};
use super::{OpenRequest, OpenState, OpenStore, REQUESTS, Records, StoreInner, Writer};
use crate::StoreError;
use crate::disk::{OpenFolder, StoreOpener};
use crate::engine::Engine;
use crate::record::IdentityRecord;
use std::io::ErrorKind;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError, Weak};
use std::time::Duration;
use tidegate_core::model::counted;
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
    /// that finds no space costs nothing, and whoever frees some waits for the store. Readers let go by themselves.
    fn after(self, pause: Duration, error: &StoreError) -> Duration {
        let is_soon = matches!(error, StoreError::Io { doing, source } if *doing == LET_GO || matches!(
            source.kind(),
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded
        ));
        if is_soon { self.first } else { pause.saturating_mul(2).min(self.longest) }
    }
}

/// A store that was opened.
pub(crate) struct Reopened {
    pub(crate) records: Records,
    pub(crate) opened: Opened,
    pub(crate) folder: Arc<OpenFolder>,
}

/// The first thing in words that was acknowledged and is missing from what was found. What was never acknowledged may be
/// there or not: a change, or a purge.
fn missing(shared: &StoreShared, found: &Found) -> Option<String> {
    let IdentityRecord { endpoint, fence, .. } = shared.identity();
    let is_same = |found: &IdentityRecord| found.endpoint == endpoint && found.fence >= fence;
    if !found.identity.as_ref().is_some_and(is_same) {
        return Some(format!("it is not the store of {endpoint} that was opened {fence} times"));
    }
    let lost = shared.list_writes.load(Ordering::Acquire).saturating_sub(found.list_writes);
    if lost > 0 {
        return Some(format!(
            "{} to records of feeds, poll states, subscriptions or the change log",
            counted(lost, "acknowledged write")
        ));
    }
    let (reached, sealed) = (shared.sealed.borrow().0, found.sealed.0.0);
    if sealed < reached {
        return Some(format!("the change log ends at epoch {sealed}, {reached} was published"));
    }
    shared.heads().into_iter().find_map(|(feed, (revision, write))| {
        let head = found.committed.get(&feed);
        let stored = head.map(|head| (head.state.revision, head.write));
        let purged = found.floors.get(&feed).is_some_and(|it| it.floor.revision >= revision);
        let is_there = stored.map_or(purged, |stored| stored >= (revision, write));
        let at = stored.map_or(0, |(revision, _)| revision.0);
        let revision = revision.0;
        (!is_there)
            .then(|| format!("the feed {feed} is at revision {at}, {revision} was acknowledged"))
    })
}

/// Has requests served, and opens the store again whenever it has failed, until it is closed.
pub(super) fn keep_open(
    inner: &Weak<StoreInner>,
    mut committer: Committer,
    mut requests: mpsc::Receiver<CommitRequest>,
    opener: &StoreOpener,
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
        drop(committer);
        let Some(inner) = inner.upgrade() else { return };
        match try_until_open(&inner, opener) {
            Some(next) => (committer, requests) = next,
            None => return,
        }
    }
}

/// Lets go of the database and tries to open it again, until that succeeds, it is given up, or the store
/// is closed.
pub(super) fn try_until_open(
    inner: &StoreInner,
    opener: &StoreOpener,
) -> Option<(Committer, mpsc::Receiver<CommitRequest>)> {
    let (engine, path) = let_go(inner)?;
    let (shared, pauses) = (&inner.shared, opener.pauses);
    let health = &shared.health;
    let endpoint = shared.identity().endpoint;
    let (mut pause, mut damaged, mut failed) = (pauses.first, 0, None);
    loop {
        let is_damaged = damaged >= DAMAGED_TRIES;
        health.plan_try(shared.clock.now().plus(pause), failed.as_ref(), is_damaged);
        if is_closed_within(inner, pause) {
            return None;
        }
        let tried = catch_unwind(AssertUnwindSafe(|| {
            if let Some(engine) = engine.upgrade() {
                // A reader may wait for a write that failed.
                engine.wake();
                return Err(StoreError::failed(LET_GO, "somebody still reads from it"));
            }
            let found = opener.find()?;
            if let Some(missing) = missing(shared, &found.1) {
                return Ok(Err(missing));
            }
            let request = OpenRequest { endpoint: Some(endpoint.clone()), sup_ids: None };
            opener.begin(found, request).map(Ok)
        }));
        let error = match tried.unwrap_or_else(|_| Err(broken())) {
            Ok(Ok(opened)) => return install(inner, opened),
            Ok(Err(missing)) => {
                let what = format!("acknowledged state is missing since a write failed: {missing}");
                health.give_up(&path, what);
                return None;
            }
            Err(error) => error,
        };
        let looks_damaged = matches!(error, StoreError::Damaged { .. });
        damaged = if looks_damaged { DAMAGED_TRIES.min(damaged + 1) } else { 0 };
        pause = match damaged {
            DAMAGED_TRIES => pause.saturating_mul(2).clamp(pauses.damaged.0, pauses.damaged.1),
            _ => pauses.after(pause.min(pauses.longest), &error),
        };
        failed = Some(error);
    }
}

/// Takes the database out of the store and lets go of it; readers may still have it. With its name. `None` where the
/// store is closed.
fn let_go(inner: &StoreInner) -> Option<(Weak<dyn Engine>, String)> {
    let mut open = inner.open.write().unwrap_or_else(PoisonError::into_inner);
    let OpenState::Open(OpenStore { records, writer, folder }) = &*open else { return None };
    let (records, writer, folder) = (records.clone(), writer.clone(), folder.clone());
    *open = OpenState::Again;
    drop(open);
    let (engine, path) = (records.watch(), records.engine().path().to_owned());
    // The engine breaks off where it cannot make its last writes durable, which nobody relies on.
    let _ = catch_unwind(AssertUnwindSafe(|| drop((writer, records))));
    drop(folder);
    Some((engine, path))
}

/// Waits for a pause; whether the store was closed within it.
fn is_closed_within(inner: &StoreInner, pause: Duration) -> bool {
    let until = Instant::now() + pause;
    loop {
        if inner.is_closed() {
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
    Reopened { records, opened, folder }: Reopened,
) -> Option<(Committer, mpsc::Receiver<CommitRequest>)> {
    let written = (opened.1.list_writes, opened.1.sealed);
    let (sender, requests) = mpsc::channel(REQUESTS);
    let folder = Some(folder);
    let committer = Committer::new(records.clone(), folder.clone(), &inner.shared, written);
    let mut open = inner.open.write().unwrap_or_else(PoisonError::into_inner);
    if matches!(&*open, OpenState::Closed) {
        return None;
    }
    inner.shared.replace(opened);
    inner.shared.health.heal(inner.shared.clock.now());
    *open = OpenState::Open(OpenStore { records, writer: Writer::Thread(sender), folder });
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
