//! Changes of a feed: each is planned where it is asked for, and goes to the committer, or is a transaction of a database
//! that others write to as well.

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

/// How long it is asked what became of a commit whose answer was lost.
const SETTLE_TIME: Duration = Duration::from_secs(30);
/// The first pause between two questions; each is twice the last.
const SETTLE_PAUSE: Duration = Duration::from_millis(100);

/// The most records that are read as a transaction begins.
const FIRST_READ: usize = 1024;

/// The entries of the largest change that is written in one transaction, and the bytes of its values.
const WHOLE: (usize, usize) = (if cfg!(test) { 20 } else { 4096 }, 8 * 1024 * 1024);

impl Store {
    /// Applies a change: all or nothing, durable and shown on return, compare-and-set on the feed's revision. One that
    /// comes from a document is refused where the feed has one that was asked for later ([`Change::asked_at`]). A feed
    /// without a state has the revision 0. The first changes of a feed
    /// whose name was purged are lifted above the purged one's revision, tick and render revision.
    pub async fn commit(&self, change: Change) -> Result<Committed, CommitError> {
        let space = self.space.clone().filter(|_| takes_in(&change));
        space.as_ref().map_or(Ok(()), |space| space.check_last())?;
        let commit = Arc::clone(&self.inner).commit(change, space);
        self.inner.to_the_end(commit).await
    }

    /// Takes out what `retention` does not keep of the feed's past, given the time, oldest first and
    /// a bounded number at a time. Nothing that is shown changes. Durable on return.
    pub async fn prune(
        &self,
        feed: &FeedName,
        retention: &Retention,
        now: Time,
    ) -> Result<Pruned, CommitError> {
        let inner = Arc::clone(&self.inner);
        let prune = inner.prune(feed.clone(), *retention, now);
        self.inner.to_the_end(prune).await
    }

    /// Removes a feed's items, ledger, skeleton, archives, poll state and record. Durable on return; the log
    /// keeps what it said. A feed of that name that is added later starts at a revision and tick
    /// above the purged one's.
    pub async fn purge_feed(&self, feed: &FeedName) -> Result<(), StoreError> {
        let purge = Arc::clone(&self.inner).purge(feed.clone());
        Ok(self.inner.to_the_end(purge).await?)
    }
}

impl StoreInner {
    /// Commits a change; a large one breaks off where too little of `space` is left.
    pub(super) async fn commit(
        self: Arc<Self>,
        change: Change,
        space: Option<Arc<FreeSpace>>,
    ) -> Result<Committed, CommitError> {
        let writer = self.opened()?.writer;
        self.goes_on()?;
        self.shared.health()?;
        let feed = change.feed.clone();
        let _turn = self.shared.changing.lock(&feed).await;
        if let Writer::Transactions(_) = writer {
            return self.commit_in_transaction(change).await;
        }
        let planned = self.read(move |records, shared| {
            let before = shared.head(&change.feed)?;
            let loaded = LoadedRecords::load(records, &change, before.as_ref())?;
            plan(loaded, before.as_ref(), shared.mark(), change)
        });
        let planned = planned.await?;
        // Readers wait only now: for no longer than those before them, and the write.
        let _lock = self.shared.locks.lock(&feed).await;
        if is_large(&planned.writes) {
            self.commit_large(planned, space.as_deref()).await
        } else {
            let scope = WriteScope::Feed(feed.clone());
            self.ask(scope, move |committer| committer.commit(planned)).await
        }
    }

    /// An error where the store is about to be closed: no change is begun, and a large one breaks off that is not
    /// certain yet.
    pub(super) fn goes_on(&self) -> Result<(), StoreError> {
        if self.is_closing.load(Ordering::Acquire) { Err(StoreError::Closed) } else { Ok(()) }
    }

    /// Commits a change as one transaction, which has the feed to itself. Where its answer is lost, the feed's state
    /// says whether it was made.
    async fn commit_in_transaction(&self, mut change: Change) -> Result<Committed, CommitError> {
        let (feed, base) = (change.feed.clone(), change.base);
        // Two gateways that make the same state of different changes at once number their writes differently.
        let chance = crate::endpoint::random_mark().map_or(0, u64::from);
        let made = Arc::new(OnceLock::new());
        let making = Arc::clone(&made);
        // By the database's clock, which all gateways have.
        change.asked_at = change.asked_at.map(|asked| self.by_database(asked));
        // Most often it is planned over the state that is shown here.
        let shown = self.shared.head(&feed)?;
        let first = keys_of(&change, shown.as_ref()).into_iter().take(FIRST_READ).collect();
        let commit = move |committer: &mut Committer| {
            let before = committer.head(&change.feed)?;
            let loaded = LoadedRecords::load(&committer.records, &change, before.as_ref())?;
            let mut planned = plan(loaded, before.as_ref(), committer.shared.mark(), change)?;
            planned.head.write = planned.head.write.saturating_add(chance);
            let _ = making.set(planned.head.clone());
            committer.commit(planned)
        };
        let done = self.transact(WriteScope::Feed(feed.clone()), first, commit).await;
        match (done, made.get()) {
            (Err(CommitError::Ambiguous(error)), Some(made)) => {
                self.settle(feed, base, made.clone(), error).await
            }
            (done, _) => done,
        }
    }

    /// What became of a commit whose answer was lost.
    async fn settle(
        &self,
        feed: FeedName,
        base: Revision,
        made: StateRecord,
        lost: StoreError,
    ) -> Result<Committed, CommitError> {
        // It waits for a transaction of the feed that is still under way.
        let asking = async {
            let mut pause = SETTLE_PAUSE;
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
        // Whoever changes the feed next waits as long.
        let Ok(Ok(found)) = timeout(SETTLE_TIME, asking).await else {
            return Err(CommitError::Ambiguous(lost));
        };
        match found {
            // A write behind it waits until it is durable at the standby, too.
            Some(found) if found == made => match self.catch_up().await {
                Ok(()) => Ok(Committed { revision: made.state.revision }),
                Err(_) => Err(CommitError::Ambiguous(lost)),
            },
            Some(found) if found.state.revision <= base => Err(CommitError::Store(lost)),
            None if base == Revision(0) => Err(CommitError::Store(lost)),
            // Another change may have followed it, or taken its place.
            _ => Err(CommitError::Ambiguous(lost)),
        }
    }

    /// Takes out what `retention` does not keep of a feed's past.
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
        // What is kept as it should be costs no write.
        if writes.is_empty() {
            return Ok(pruned);
        }
        let _turn = self.shared.changing.lock(&feed).await;
        let _lock = self.shared.locks.lock(&feed).await;
        match self.ask(scope, move |committer| committer.prune(&feed, &head, writes)).await {
            Ok(()) => Ok(pruned),
            // What was read is old: it is to be done anew.
            Err(CommitError::Conflict(_)) => Ok(Pruned { more: true, ..Pruned::default() }),
            Err(error) => Err(error),
        }
    }

    /// Forgets a feed.
    pub(super) async fn purge(self: Arc<Self>, feed: FeedName) -> Result<(), CommitError> {
        let _turn = self.shared.changing.lock(&feed).await;
        if let Writer::Transactions(_) = self.opened()?.writer {
            let scope = WriteScope::Feed(feed.clone());
            let purge = move |committer: &mut Committer| {
                let head = committer.head(&feed)?;
                let records = FeedRecords::new(&committer.records, &feed);
                let floor = head.map(|head| Committer::purge_mark(&records, &head)).transpose()?;
                committer.purge(&feed, floor.as_ref())?;
                floor.map_or(Ok(true), |floor| committer.sweep(&feed, &floor))
            };
            return self.ask(scope, purge).await.map(drop);
        }
        let (of, name) = (feed.clone(), feed.clone());
        let floor = self.read(move |records, shared| {
            let (records, head) = (FeedRecords::new(records, &of), shared.head(&of)?);
            head.map(|head| Committer::purge_mark(&records, &head)).transpose()
        });
        let floor = floor.await?;
        let purge = move |committer: &mut Committer| committer.purge(&name, floor.as_ref());
        let lock = self.shared.locks.lock(&feed).await;
        self.ask(WriteScope::Feeds, purge).await?;
        drop(lock);
        // The rest, which nobody reads any more, goes in portions, so that others are served between them.
        let mut is_all = floor.is_none();
        while let Some(floor) = floor.filter(|_| !is_all) {
            let name = feed.clone();
            let sweep = move |committer: &mut Committer| committer.sweep(&name, &floor);
            is_all = self.ask(WriteScope::Feed(feed.clone()), sweep).await?;
        }
        Ok(())
    }
}

/// Whether a change is too large for one transaction.
fn is_large(writes: &Writes) -> bool {
    let bytes = writes.values().flatten().map(Vec::len).sum::<usize>();
    writes.len() >= WHOLE.0 || bytes >= WHOLE.1
}

/// Whether a change brings text that was not kept before. What takes something away, or only moves on
/// what is known, is stored however little space there is.
pub(super) fn takes_in(change: &Change) -> bool {
    // What stands in for the text of a tombstone is none.
    let tombstones: HashSet<&SyncId> =
        change.known.iter().filter(|known| known.is_tombstone()).map(|known| &known.id).collect();
    let is_text =
        |version: &NewVersion| version.markup.is_some() && !tombstones.contains(&version.id);
    let has_text = change.versions.iter().any(is_text);
    change.redacted.is_empty() && (has_text || !change.latest.is_empty() || change.kept.is_some())
}
