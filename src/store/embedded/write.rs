//! Changes of a feed: the caller plans one, and the committer writes it; in a database that other gateways write to
//! as well, both are one transaction.

use super::committer::{Committer, WriteScope};
use super::feed::FeedRecords;
use super::plan::{LoadedRecords, keys_of, plan};
use super::{Store, StoreInner, Writer, prune};
use crate::engine::{FirstRead, Writes};
use crate::record::StateRecord;
use crate::{CommitError, Committed, FreeSpace, Pruned, Retention, StoreError};
use std::collections::HashSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tidegate_core::model::{Change, FeedName, NewVersion, Revision, SyncId, Time};
use tokio::time::{sleep, timeout};

/// How long the state of a feed is read after a commit without an answer, to learn whether it was made.
const LOST_ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// The first pause between two of these reads; each pause is twice the last.
const LOST_ANSWER_PAUSE: Duration = Duration::from_millis(100);

/// The most records that the first statement of a transaction reads.
const FIRST_READ: usize = 1024;

/// The entries, and the bytes of values, from which on a change is not written as one transaction.
const TRANSACTION_LIMIT: (usize, usize) = (if cfg!(test) { 20 } else { 4096 }, 8 * 1024 * 1024);

impl Store {
    /// Applies a change: all or nothing, durable and shown on return, compare-and-set on the feed's revision. One that
    /// comes from a document is refused where the feed has one that was asked for later ([`Change::asked_at`]). A feed
    /// without a state has the revision 0. The first changes of a feed
    /// whose name was purged are lifted above the purged one's revision, tick and render revision.
    pub async fn commit(&self, change: Change) -> Result<Committed, CommitError> {
        let space = self.space.clone().filter(|_| brings_text(&change));
        space.as_ref().map_or(Ok(()), |space| space.check_last())?;
        let commit = Arc::clone(&self.inner).commit(change, space);
        self.inner.run_to_end(commit).await
    }

    /// Removes versions and frames that `retention` does not keep at the time `now`: the oldest first, and a bounded
    /// number. Nothing that is shown changes. Durable on return.
    pub async fn prune(
        &self,
        feed: &FeedName,
        retention: &Retention,
        now: Time,
    ) -> Result<Pruned, CommitError> {
        let inner = Arc::clone(&self.inner);
        let prune = inner.prune(feed.clone(), *retention, now);
        self.inner.run_to_end(prune).await
    }

    /// Removes a feed's items, ledger, skeleton, archives, poll state and record. Durable on return; the change log
    /// keeps its entries. A feed of the same name that is added later starts above its last revision and tick.
    pub async fn purge_feed(&self, feed: &FeedName) -> Result<(), StoreError> {
        let purge = Arc::clone(&self.inner).purge(feed.clone());
        Ok(self.inner.run_to_end(purge).await?)
    }
}

impl StoreInner {
    /// Commits a change; a large one breaks off when `space` runs low.
    pub(super) async fn commit(
        self: Arc<Self>,
        change: Change,
        space: Option<Arc<FreeSpace>>,
    ) -> Result<Committed, CommitError> {
        let writer = self.opened()?.writer;
        self.check_not_closing()?;
        self.shared.health()?;
        let feed = change.feed.clone();
        let _changing = self.shared.changing.lock(&feed).await;
        if let Writer::Transactions(_) = writer {
            return self.commit_in_transaction(change).await;
        }
        let planned = self.read(move |records, shared| {
            let before = shared.head(&change.feed)?;
            let loaded = LoadedRecords::load(records, &change, before.as_ref())?;
            plan(loaded, before.as_ref(), shared.opening_mark(), change)
        });
        let planned = planned.await?;
        // Locked only now: readers wait for earlier readers and the write, not for the plan.
        let _lock = self.shared.locks.lock(&feed).await;
        if is_large(&planned.writes) {
            self.commit_large(planned, space.as_deref()).await
        } else {
            let scope = WriteScope::Feed(feed.clone());
            self.submit(scope, move |committer| committer.commit(planned)).await
        }
    }

    /// An error while the store is being closed: changes do not begin, and a large one breaks off before its redo
    /// mark.
    pub(super) fn check_not_closing(&self) -> Result<(), StoreError> {
        if self.is_closing.load(Ordering::Acquire) { Err(StoreError::Closed) } else { Ok(()) }
    }

    /// Commits a change as one transaction, which locks the feed. If the answer to the commit is lost, reads the
    /// state of the feed to learn whether it was made.
    async fn commit_in_transaction(&self, mut change: Change) -> Result<Committed, CommitError> {
        let (feed, base) = (change.feed.clone(), change.base);
        // Added at random to the write number, which tells apart equal states that two gateways make at once.
        let chance = crate::endpoint::random_mark().map_or(0, u64::from);
        let made = Arc::new(OnceLock::new());
        let making = Arc::clone(&made);
        // In the time of the database, which all gateways share.
        change.asked_at = change.asked_at.map(|asked| self.by_database(asked));
        // The change is probably planned over the state in memory.
        let shown = self.shared.head(&feed)?;
        let first = keys_of(&change, shown.as_ref()).into_iter().take(FIRST_READ).collect();
        let commit = move |committer: &mut Committer| {
            let before = committer.head(&change.feed)?;
            let loaded = LoadedRecords::load(&committer.records, &change, before.as_ref())?;
            let mut planned =
                plan(loaded, before.as_ref(), committer.shared.opening_mark(), change)?;
            planned.head.write = planned.head.write.saturating_add(chance);
            let _ = making.set(planned.head.clone());
            committer.commit(planned)
        };
        let done = self.transact(WriteScope::Feed(feed.clone()), first, commit).await;
        match (done, made.get()) {
            (Err(CommitError::Ambiguous(error)), Some(made)) => {
                self.resolve_lost_answer(feed, base, made.clone(), error).await
            }
            (done, _) => done,
        }
    }

    /// Whether a commit was made whose answer was lost: reads the state of the feed.
    async fn resolve_lost_answer(
        &self,
        feed: FeedName,
        base: Revision,
        made: StateRecord,
        lost: StoreError,
    ) -> Result<Committed, CommitError> {
        // The read waits for a transaction of the feed that may still be running.
        let asking = async {
            let mut pause = LOST_ANSWER_PAUSE;
            loop {
                let (scope, name) = (WriteScope::Feed(feed.clone()), feed.clone());
                let asked = self.transact(scope, Vec::new(), move |it| Ok(it.head(&name)?)).await;
                match asked.map_err(StoreError::from) {
                    Err(error) if error.is_passing() => sleep(pause).await,
                    found => return found,
                }
                pause = pause.saturating_mul(2);
            }
        };
        // The next change of the feed waits for the same transaction.
        let Ok(Ok(found)) = timeout(LOST_ANSWER_TIMEOUT, asking).await else {
            return Err(CommitError::Ambiguous(lost));
        };
        match found {
            // Catching up writes after the commit, and so waits until that is durable at the standby as well.
            Some(found) if found == made => match self.catch_up().await {
                Ok(()) => Ok(Committed { revision: made.state.revision }),
                Err(_) => Err(CommitError::Ambiguous(lost)),
            },
            Some(found) if found.state.revision <= base => Err(CommitError::Store(lost)),
            None if base == Revision(0) => Err(CommitError::Store(lost)),
            // Another change may have followed it, or was made in place of it.
            _ => Err(CommitError::Ambiguous(lost)),
        }
    }

    /// Removes what `retention` does not keep of the past of a feed.
    pub(super) async fn prune(
        self: Arc<Self>,
        feed: FeedName,
        retention: Retention,
        now: Time,
    ) -> Result<Pruned, CommitError> {
        let scope = WriteScope::Feed(feed.clone());
        let prune = move |feed: &FeedRecords, head: &StateRecord| {
            let (writes, pruned) = prune::prune(feed, &retention, now)?;
            Ok((writes, pruned, head.clone()))
        };
        let Some((writes, pruned, head)) =
            self.read_feed(&feed, FirstRead::default(), prune).await?
        else {
            return Ok(Pruned::default());
        };
        // Most often nothing is to be removed, and nothing is written.
        if writes.is_empty() {
            return Ok(pruned);
        }
        let _changing = self.shared.changing.lock(&feed).await;
        let _lock = self.shared.locks.lock(&feed).await;
        match self.submit(scope, move |committer| committer.prune(&feed, &head, writes)).await {
            Ok(()) => Ok(pruned),
            // The feed changed since it was read: the caller prunes again.
            Err(CommitError::Conflict(_)) => Ok(Pruned { more: true, ..Pruned::default() }),
            Err(error) => Err(error),
        }
    }

    /// Purges a feed.
    pub(super) async fn purge(self: Arc<Self>, feed: FeedName) -> Result<(), CommitError> {
        let _changing = self.shared.changing.lock(&feed).await;
        if let Writer::Transactions(_) = self.opened()?.writer {
            let scope = WriteScope::Feed(feed.clone());
            let purge = move |committer: &mut Committer| {
                let head = committer.head(&feed)?;
                let records = FeedRecords::new(&committer.records, &feed);
                let mark = head.map(|head| Committer::purge_mark(&records, &head)).transpose()?;
                committer.purge(&feed, mark.as_ref())?;
                mark.map_or(Ok(true), |mark| committer.sweep(&feed, &mark))
            };
            return self.submit(scope, purge).await.map(drop);
        }
        let (of, name) = (feed.clone(), feed.clone());
        let mark = self.read(move |records, shared| {
            let (records, head) = (FeedRecords::new(records, &of), shared.head(&of)?);
            head.map(|head| Committer::purge_mark(&records, &head)).transpose()
        });
        let mark = mark.await?;
        let purge = move |committer: &mut Committer| committer.purge(&name, mark.as_ref());
        let lock = self.shared.locks.lock(&feed).await;
        self.submit(WriteScope::Feeds, purge).await?;
        drop(lock);
        // Its content, which has no readers any more, is removed in portions, so that other requests are served
        // between them.
        let mut is_all = mark.is_none();
        while let Some(mark) = mark.filter(|_| !is_all) {
            let name = feed.clone();
            let sweep = move |committer: &mut Committer| committer.sweep(&name, &mark);
            is_all = self.submit(WriteScope::Feed(feed.clone()), sweep).await?;
        }
        Ok(())
    }
}

/// Whether a change is too large for one transaction.
fn is_large(writes: &Writes) -> bool {
    let bytes = writes.values().flatten().map(Vec::len).sum::<usize>();
    writes.len() >= TRANSACTION_LIMIT.0 || bytes >= TRANSACTION_LIMIT.1
}

/// Whether a change has new text. Removals, and changes of the ledger alone, are stored however little space there
/// is.
pub(super) fn brings_text(change: &Change) -> bool {
    // The markup of a tombstone is a placeholder.
    let tombstones: HashSet<&SyncId> =
        change.known.iter().filter(|known| known.is_tombstone()).map(|known| &known.id).collect();
    let is_text =
        |version: &NewVersion| version.markup.is_some() && !tombstones.contains(&version.id);
    let has_text = change.versions.iter().any(is_text);
    change.redacted.is_empty() && (has_text || !change.latest.is_empty() || change.kept.is_some())
}
