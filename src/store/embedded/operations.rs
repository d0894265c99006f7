//! The operations of a store.

use super::request::Touches;
use super::shared::StoreShared;
use super::transfer::ExportAbandoned;
use super::{EmbeddedStore, READS, Records};
use super::{archives, conflicts, past, plan, prune, read, stubs, transfer};
use crate::model::{
    Archive, ArchiveId, ArchiveNote, ArchivePlace, Attempt, Change, Count, EndpointId, Event,
    FeedName, FeedRecord, FeedState, Item, LedgerEntry, PollState, Snapshot, Stub, SupIdBasis,
    SyncId, Time,
};
use crate::store::portable::ExportRecord;
use crate::store::{
    Claim, ClosedEpoch, CommitError, Committed, Epoch, Holdings, KeptVersion, Past, PastSelect,
    Pruned, Retention, Select, Store, StoreCondition, StoreError, VersionNote, View, condition,
};
use crate::websub::Subscription;
use async_trait::async_trait;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};

#[async_trait]
impl Store for EmbeddedStore {
    fn endpoint(&self) -> &EndpointId {
        &self.endpoint
    }

    fn sup_ids(&self) -> SupIdBasis {
        self.sup_ids
    }

    fn condition(&self) -> StoreCondition {
        StoreCondition { stop: None, space: self.space.as_ref().and_then(|space| space.last()) }
    }

    async fn claims(&self, _node: u64, _ttl: Duration) -> Result<Vec<Claim>, StoreError> {
        self.opened()?;
        self.shared.health()?;
        Ok(vec![Claim { shard: 0, fence: self.fence }])
    }

    async fn feeds(&self) -> Result<Vec<FeedRecord>, StoreError> {
        self.of_all(read::feeds).await
    }

    async fn put_feed(&self, record: &FeedRecord) -> Result<(), StoreError> {
        let record = record.clone();
        self.ask(Touches::Lists, move |committer, group| committer.put_feed(&record, group)).await
    }

    async fn purge_feed(&self, feed: &FeedName) -> Result<(), StoreError> {
        let name = feed.clone();
        let touches = Touches::FeedAndLists(feed.clone());
        self.ask(touches, move |committer, group| committer.purge(&name, group)).await
    }

    async fn purged_updates(&self, feed: &FeedName) -> Result<u32, StoreError> {
        let feed = feed.clone();
        self.read(move |records, _| read::purged_updates(records, &feed)).await
    }

    async fn state(&self, feed: &FeedName) -> Result<Option<FeedState>, StoreError> {
        self.opened()?;
        self.shared.health()?;
        Ok(self.shared.published(feed).map(|published| published.state))
    }

    async fn snapshot(&self, feed: &FeedName) -> Result<Option<Snapshot>, StoreError> {
        self.of_feed(feed, read::snapshot).await
    }

    async fn contested(&self, feed: &FeedName) -> Result<Vec<SyncId>, StoreError> {
        self.of_feed(feed, |records, feed, _| conflicts::ids(records, feed)).await
    }

    async fn view(&self, feed: &FeedName, select: Select) -> Result<Option<View>, StoreError> {
        self.of_feed(feed, move |records, feed, state| read::view(records, feed, state, select))
            .await
    }

    async fn item(&self, feed: &FeedName, id: &SyncId) -> Result<Option<Item>, StoreError> {
        let id = id.clone();
        self.of_feed(feed, move |records, feed, _| read::item(records, feed, &id)).await
    }

    async fn known(&self, feed: &FeedName, id: &SyncId) -> Result<Option<LedgerEntry>, StoreError> {
        let id = id.clone();
        self.of_feed(feed, move |records, feed, _| past::known(records, feed, &id)).await
    }

    async fn stubs(&self, feed: &FeedName, names: &[String]) -> Result<Vec<Stub>, StoreError> {
        let names = names.to_vec();
        self.of_feed(feed, move |records, feed, _| stubs::find(records, feed, &names)).await
    }

    async fn versions(
        &self,
        feed: &FeedName,
        id: &SyncId,
        limit: usize,
    ) -> Result<Vec<VersionNote>, StoreError> {
        let id = id.clone();
        self.of_feed(feed, move |records, feed, _| read::versions(records, feed, &id, limit)).await
    }

    async fn version(
        &self,
        feed: &FeedName,
        id: &SyncId,
        updates: Count,
    ) -> Result<Option<KeptVersion>, StoreError> {
        let id = id.clone();
        self.of_feed(feed, move |records, feed, _| past::version(records, feed, &id, updates)).await
    }

    async fn past(
        &self,
        feed: &FeedName,
        select: PastSelect,
        at: Time,
    ) -> Result<Option<Past>, StoreError> {
        self.of_feed(feed, move |records, feed, state| {
            past::past(records, feed, state, select, at).map(Some)
        })
        .await
    }

    async fn holdings(&self, feed: &FeedName) -> Result<Holdings, StoreError> {
        self.of_feed(feed, past::holdings).await
    }

    async fn events(&self, feed: &FeedName, limit: usize) -> Result<Vec<Event>, StoreError> {
        self.of_feed(feed, move |records, feed, _| read::events(records, feed, limit)).await
    }

    async fn archives(
        &self,
        feed: &FeedName,
        limit: usize,
    ) -> Result<Vec<ArchiveNote>, StoreError> {
        self.of_feed(feed, move |records, feed, state| archives::kept(records, feed, state, limit))
            .await
    }

    async fn archive_place(
        &self,
        feed: &FeedName,
        id: &ArchiveId,
    ) -> Result<Option<ArchivePlace>, StoreError> {
        let id = id.clone();
        self.of_feed(feed, move |records, feed, _| archives::place(records, feed, &id)).await
    }

    async fn archive(
        &self,
        feed: &FeedName,
        id: &ArchiveId,
    ) -> Result<Option<Archive>, StoreError> {
        let id = id.clone();
        self.of_feed(feed, move |records, feed, _| archives::archive(records, feed, &id)).await
    }

    async fn commit(&self, claim: &Claim, change: Change) -> Result<Committed, CommitError> {
        if condition::takes_in(&change) {
            self.condition().check_intake()?;
        }
        let (claim, feed) = (claim.clone(), change.feed.clone());
        let prepare =
            move |records: &Records, shared: &StoreShared| plan::prepare(records, shared, change);
        let mut prepared = Box::new(self.read(prepare).await?);
        self.ask(Touches::Feed(feed), move |committer, group| {
            committer.commit(&claim, &mut prepared, group)
        })
        .await
    }

    async fn checkpoint(&self, claim: &Claim, states: &[PollState]) -> Result<(), CommitError> {
        let (claim, states) = (claim.clone(), states.to_vec());
        self.ask(Touches::Lists, move |committer, group| {
            committer.checkpoint(&claim, &states, group)
        })
        .await
    }

    async fn poll_states(&self) -> Result<Vec<PollState>, StoreError> {
        self.of_all(read::poll_states).await
    }

    async fn note_attempt(&self, attempt: &Attempt) -> Result<(), StoreError> {
        let attempt = attempt.clone();
        self.ask(Touches::Lists, move |committer, group| committer.note_attempt(&attempt, group))
            .await
    }

    async fn attempts(&self) -> Result<Vec<Attempt>, StoreError> {
        self.of_all(read::attempts).await
    }

    async fn subscriptions(&self) -> Result<Vec<Subscription>, StoreError> {
        self.of_all(read::subscriptions).await
    }

    async fn put_subscriptions(&self, subscriptions: &[Subscription]) -> Result<(), StoreError> {
        let subscriptions = subscriptions.to_vec();
        self.ask(Touches::Lists, move |committer, group| {
            committer.put_subscriptions(&subscriptions, group)
        })
        .await
    }

    async fn prune(
        &self,
        claim: &Claim,
        feed: &FeedName,
        retention: &Retention,
        now: Time,
    ) -> Result<Pruned, CommitError> {
        let retention = *retention;
        let list = move |records: &Records, feed: &FeedName, state: &FeedState| {
            prune::list(records, feed, state, &retention, now).map(Some)
        };
        let Some(gone) = self.of_feed(feed, list).await? else { return Ok(Pruned::default()) };
        let pruned = gone.pruned;
        // What is kept as it should be costs no write.
        if !gone.is_empty() {
            let claim = claim.clone();
            self.ask(Touches::Feed(feed.clone()), move |committer, group| {
                committer.prune(&claim, &gone, group)
            })
            .await?;
        }
        Ok(pruned)
    }

    async fn trim_log(&self, claim: &Claim, before: Time) -> Result<usize, CommitError> {
        let claim = claim.clone();
        self.ask(Touches::Lists, move |committer, group| committer.trim(&claim, before, group))
            .await
    }

    async fn epochs_after(
        &self,
        after: Epoch,
        limit: usize,
    ) -> Result<Vec<ClosedEpoch>, StoreError> {
        let newest = *self.shared.sealed.borrow();
        self.of_all(move |records| read::epochs_after(records, after, newest, limit)).await
    }

    fn watch_epochs(&self) -> watch::Receiver<Epoch> {
        self.shared.sealed.subscribe()
    }

    async fn export(&self, to: mpsc::Sender<ExportRecord>) -> Result<(), StoreError> {
        if self.blocks {
            let export = move |records: &Records, shared: &StoreShared| {
                let mut send = |piece| to.blocking_send(piece).map_err(|_| ExportAbandoned);
                transfer::export(records, shared, &mut send)
            };
            return self.read(export).await;
        }
        // Nobody waits for a taker while a feed cannot be written to.
        let collect = |records: &Records, shared: &StoreShared| {
            let mut pieces = Vec::new();
            transfer::export(records, shared, &mut |piece| {
                pieces.push(piece);
                Ok(())
            })?;
            Ok(pieces)
        };
        for piece in self.read(collect).await? {
            if to.send(piece).await.is_err() {
                break;
            }
        }
        Ok(())
    }

    async fn import(
        &self,
        claim: &Claim,
        mut from: mpsc::Receiver<ExportRecord>,
    ) -> Result<(), CommitError> {
        loop {
            let mut pieces = Vec::new();
            let taken = from.recv_many(&mut pieces, transfer::AT_ONCE).await;
            if let Some(space) = &self.space {
                space.measure();
            }
            self.condition().check_intake()?;
            let (claim, end) = (claim.clone(), taken == 0);
            self.ask(Touches::Lists, move |committer, group| {
                committer.import(&claim, &pieces, end, group)
            })
            .await?;
            if end {
                return Ok(());
            }
        }
    }

    async fn close(&self) -> Result<(), StoreError> {
        let Some(rest) = self.take() else { return Err(StoreError::Closed) };
        if !self.blocks {
            rest();
            return self.shared.health();
        }
        // Every reader that began before has let go of the records once all permits are here.
        let all = Arc::clone(&self.reads).acquire_many_owned(READS).await;
        let ended = tokio::task::spawn_blocking(rest).await;
        drop(all);
        let source = match ended {
            Ok(()) => return self.shared.health(),
            Err(error) => std::io::Error::other(error),
        };
        Err(StoreError::Io { doing: "close", source })
    }
}
