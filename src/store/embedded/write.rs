//! Changes of a feed: each is planned where it is asked for, and goes to the committer. A large one goes in
//! portions under a number that nobody reads as of yet; what remains of one that breaks off is undone, at
//! once or at the next start.

use super::plan::PlannedCommit;
use super::records::Records;
use super::request::Touches;
use super::shared::StoreShared;
use super::{StoreInner, keys, plan, prune, undo};
use crate::engine::Class;
use crate::feed_locks::FeedLock;
use crate::{Claim, CommitError, Committed, FreeSpace, Pruned, Retention, StoreError};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tidegate_core::model::{Change, FeedName, Time};

impl StoreInner {
    /// Commits a change; a large one breaks off where too little of `space` is left.
    pub(super) async fn commit(
        self: Arc<Self>,
        claim: Claim,
        change: Change,
        space: Option<Arc<FreeSpace>>,
    ) -> Result<Committed, CommitError> {
        self.opened()?;
        self.goes_on()?;
        if let Some(following) = self.following.clone() {
            return self.forward_commit(following, claim, change).await;
        }
        self.shared.health()?;
        self.shared.claimed(&claim)?;
        let feed = change.feed.clone();
        let lock = self.shared.lock(&feed).await;
        let (planner, claimed) = (Arc::clone(&self), claim.clone());
        let planned = self
            .read(move |records, shared| {
                planner.plan(records, shared, &claimed, change, space.as_deref())
            })
            .await?;
        let (is_begun, base) = (planned.is_begun, planned.base.1);
        let done = self
            .ask(Touches::Feed, move |committer, group| committer.commit(&claim, planned, group))
            .await;
        if is_begun && matches!(&done, Err(error) if !matches!(error, CommitError::Ambiguous(_))) {
            let inner = Arc::clone(&self);
            self.read(move |records, _| {
                inner.undo(records, &feed, base);
                Ok::<_, StoreError>(())
            })
            .await?;
        }
        drop(lock);
        done
    }

    /// An error where the store is about to be closed: no change is begun, and one that goes in portions
    /// breaks off.
    fn goes_on(&self) -> Result<(), StoreError> {
        if self.is_closing.load(Ordering::Acquire) { Err(StoreError::Closed) } else { Ok(()) }
    }

    /// Plans a change. Blocks.
    fn plan(
        &self,
        records: &Records,
        shared: &StoreShared,
        claim: &Claim,
        change: Change,
        space: Option<&FreeSpace>,
    ) -> Result<PlannedCommit, CommitError> {
        let feed = change.feed.clone();
        let before = shared.published(&feed).map(|published| published.head()).transpose()?;
        let base = before.as_ref().map_or(0, |head| head.write);
        self.end_unfinished(records, &feed, base)?;
        let mut is_begun = false;
        let planned = plan::plan(
            &records.at(base),
            before.as_ref(),
            Some(shared.mark()),
            change,
            false,
            &mut |writes| {
                self.goes_on()?;
                space.map_or(Ok(()), FreeSpace::check)?;
                let is_first = !std::mem::replace(&mut is_begun, true);
                let (claim, feed) = (claim.clone(), feed.clone());
                let written = self.ask_blocking(move |committer, group| {
                    committer.portion(&claim, (&feed, base), writes, is_first, group)
                });
                written.map_err(|error| match error {
                    // Whatever is there of it, it is not committed.
                    CommitError::Ambiguous(error) => CommitError::Store(error),
                    other => other,
                })
            },
        );
        if planned.is_err() && is_begun {
            self.undo(records, &feed, base);
        }
        planned
    }

    /// Undoes what is left of a change whose thread broke off: it would come out with the next write.
    fn end_unfinished(
        &self,
        records: &Records,
        feed: &FeedName,
        base: u64,
    ) -> Result<(), StoreError> {
        if records.contains(Class::Unfinished, &keys::feed(feed))? {
            self.undo(records, feed, base);
            self.shared.health()?;
        }
        Ok(())
    }

    /// The same of a feed as it is published. Whoever calls is the only one who changes it.
    pub(super) async fn end_unfinished_of(
        self: &Arc<Self>,
        feed: &FeedName,
    ) -> Result<(), StoreError> {
        let (inner, feed) = (Arc::clone(self), feed.clone());
        self.read(move |records, shared| {
            let base = shared.published(&feed).map_or(0, |published| published.write);
            inner.end_unfinished(records, &feed, base)
        })
        .await
    }

    /// Undoes what was written of a change that is not committed. Blocks.
    fn undo(&self, records: &Records, feed: &FeedName, base: u64) {
        let undone = undo::roll_back::<StoreError>(records, feed, base, &mut |writes| {
            self.ask_blocking(move |committer, group| committer.put_back(writes, group))
        });
        // The next opening does it; nothing may be built on it.
        if let Err(error) = undone
            && !matches!(error, StoreError::Closed)
        {
            self.shared.fail(&error);
            // The committer notices with the next request.
            let _ = self.ask_blocking(|_, _| Ok::<_, StoreError>(()));
        }
    }

    /// Takes out what `retention` does not keep of a feed's past.
    pub(super) async fn prune(
        self: Arc<Self>,
        claim: Claim,
        feed: FeedName,
        retention: Retention,
        now: Time,
    ) -> Result<Pruned, CommitError> {
        self.check_writes()?;
        let lock = self.shared.lock(&feed).await;
        self.end_unfinished_of(&feed).await?;
        let list = move |records: &Records, feed: &FeedName, state: &_| {
            let list = prune::list(records, feed, state, &retention, now)?;
            // What is kept as it should be costs no write.
            let writes = if list.is_empty() { None } else { Some(prune::remove(records, &list)?) };
            Ok(Some((list.pruned, writes)))
        };
        let Some((pruned, writes)) = self.of_feed(&feed, list).await? else {
            return Ok(Pruned::default());
        };
        if let Some(writes) = writes {
            self.ask(Touches::Feed, move |committer, group| {
                committer.prune(&claim, &feed, writes, group)
            })
            .await?;
        }
        drop::<FeedLock>(lock);
        Ok(pruned)
    }

    /// Forgets a feed.
    pub(super) async fn purge(self: Arc<Self>, feed: FeedName) -> Result<(), StoreError> {
        let lock = self.shared.lock(&feed).await;
        let name = feed.clone();
        let floor =
            self.ask(Touches::Lists, move |committer, group| committer.purge(&name, group)).await?;
        // The rest goes in portions, so that others are served between them.
        let mut is_all = floor.is_none();
        while let Some(floor) = floor.filter(|_| !is_all) {
            let name = feed.clone();
            let sweep = move |committer: &mut super::Committer, group: &mut _| {
                committer.sweep(&name, &floor, group)
            };
            is_all = self.ask(Touches::Feed, sweep).await?;
        }
        drop(lock);
        Ok(())
    }
}
