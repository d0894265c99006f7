//! Opening a store again after a failure, in the process that it failed in.
//!
//! After a failed write or barrier the handle of the database is useless: the system may have dropped pages, and a
//! second barrier would not report it. So the committer thread drops the handle, waits until the readers have done
//! so, and opens the folder again, whose lock the process holds all the time. It checks that the store has every
//! acknowledged write. Meanwhile states are answered from memory.

use super::committer::{CommitRequest, Committer};
use super::open::{Found, Opened};
use super::shared::{StoreShared, committer_failed};
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

/// How many tries in a row must find damage before it is reported: a failing disk can look like damage for a while.
const DAMAGED_TRIES: u32 = 3;
/// The step in an error while readers still hold the database.
const LET_GO: &str = "be let go of";
/// How often a pause checks whether the store was closed.
const SLICE: Duration = Duration::from_millis(20);

/// The pauses between tries to open a store; each failure doubles the pause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ReopenPauses {
    pub(crate) first: Duration,
    pub(crate) longest: Duration,
    /// The first and the longest pause after damage: a try copies the whole store.
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
    /// The pause after `pause` and a try that failed with `error`. A full disk and readers that hold the database are
    /// tried at the first pause: such a try is cheap, and ends soon after they free it.
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

/// Describes the first acknowledged write that the opened store lacks. A write that was never acknowledged may be
/// there or not.
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
    let (reached, newest) = (shared.newest.borrow().0, found.newest.0.0);
    if newest < reached {
        return Some(format!("the change log ends at epoch {newest}, {reached} was published"));
    }
    shared.heads().into_iter().find_map(|(feed, (revision, write))| {
        let head = found.committed.get(&feed);
        let stored = head.map(|head| (head.state.revision, head.write));
        let is_purged = found.purged.get(&feed).is_some_and(|it| it.mark.revision >= revision);
        let is_there = stored.map_or(is_purged, |stored| stored >= (revision, write));
        let at = stored.map_or(0, |(revision, _)| revision.0);
        let revision = revision.0;
        (!is_there)
            .then(|| format!("the feed {feed} is at revision {at}, {revision} was acknowledged"))
    })
}

/// Serves requests, and opens the store again after each failure, until it is closed.
pub(super) fn keep_open(
    inner: &Weak<StoreInner>,
    mut committer: Committer,
    mut requests: mpsc::Receiver<CommitRequest>,
    opener: &StoreOpener,
) {
    loop {
        let shared = Arc::clone(&committer.shared);
        if catch_unwind(AssertUnwindSafe(|| committer.run(&mut requests))).is_err() {
            shared.fail(&committer_failed());
        }
        if shared.health().is_ok() {
            return;
        }
        // The waiting requests are answered with the failure.
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

/// Drops the database and tries to open it again, until that succeeds, acknowledged state is missing, or the store is
/// closed.
pub(super) fn try_until_open(
    inner: &StoreInner,
    opener: &StoreOpener,
) -> Option<(Committer, mpsc::Receiver<CommitRequest>)> {
    let (engine, path) = release_engine(inner)?;
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
                // A reader may wait for the failed write.
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
        let error = match tried.unwrap_or_else(|_| Err(committer_failed())) {
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

/// Takes the database out of the store, which readers may still hold; answers a weak handle and its name. `None`
/// where the store is closed.
fn release_engine(inner: &StoreInner) -> Option<(Weak<dyn Engine>, String)> {
    let mut open = inner.open.write().unwrap_or_else(PoisonError::into_inner);
    let OpenState::Open(OpenStore { records, writer, folder }) = &*open else { return None };
    let (records, writer, folder) = (records.clone(), writer.clone(), folder.clone());
    *open = OpenState::Reopening;
    drop(open);
    let (engine, path) = (records.watch(), records.engine().path().to_owned());
    // The engine may panic because its last writes cannot be made durable; none of them was acknowledged.
    let _ = catch_unwind(AssertUnwindSafe(|| drop((writer, records))));
    drop(folder);
    Some((engine, path))
}

/// Waits for a pause; answers whether the store was closed within it.
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

/// Publishes the content of the opened store, and serves requests again. `None` where the store is closed.
fn install(
    inner: &StoreInner,
    Reopened { records, opened, folder }: Reopened,
) -> Option<(Committer, mpsc::Receiver<CommitRequest>)> {
    let written = (opened.1.list_writes, opened.1.newest);
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
