//! Reads that another gateway may overtake, and how a gateway learns what that one made durable.

use super::follow::{LOOK_PAUSE, UNSEEN_LIMIT};
use super::lease_sign::LeaseSign;
use super::pins::Pin;
use super::read_turns::ReadTurn;
use super::request::Touches;
use super::shared::StoreShared;
use super::{Records, StoreInner, Writer, keys, open};
use crate::engine::Class;
use crate::record::StateRecord;
use crate::{DatabaseOwner, StoreError};
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::TrySendError;
use std::time::Duration;
use tidegate_core::model::FeedName;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, timeout};

/// How often a read is made anew that was overtaken, and the first pause before it is; each is twice the last.
const READ_TRIES: (u32, Duration) = (9, Duration::from_millis(5));

impl StoreInner {
    /// An error where another gateway writes.
    pub(super) fn check_writes(&self) -> Result<(), StoreError> {
        self.following.as_ref().map_or(Ok(()), |following| Err(following.refusal()))
    }

    /// An error where nothing may be answered, because another gateway writes and was not seen for too long.
    pub(super) fn check_seen(&self) -> Result<(), StoreError> {
        self.following.as_ref().map_or(Ok(()), |following| following.check_seen())
    }

    /// The gateway that has the database, where that is not this one.
    pub(super) fn owner(&self) -> Option<DatabaseOwner> {
        let lease = || self.lease.as_ref().and_then(|lease| lease.owner());
        let own = || self.shared.health.owner().or_else(lease);
        self.following.as_ref().map_or_else(own, |following| Some(following.owner()))
    }

    /// Whether what is in memory is what the database has.
    pub(super) fn is_current(&self) -> bool {
        let holds =
            |lease: &Arc<LeaseSign>| lease.is_good() && self.shared.health.owner().is_none();
        self.following.is_none() && self.lease.as_ref().is_none_or(holds)
    }

    /// For how long the database has not answered, where that is longer than what is in memory is sure to be current.
    pub(super) fn unanswered(&self) -> Option<Duration> {
        let lease = || self.lease.as_ref().and_then(|lease| lease.unanswered());
        self.following.as_ref().map_or_else(lease, |following| following.unseen())
    }

    /// A turn to read. An error where those that read stand still, or as of [`LeaseSign::reads_end`].
    pub(super) async fn read_turn(&self) -> Result<ReadTurn, StoreError> {
        self.until_reads_end(self.reads.next(self.records()?.is_far())).await?
    }

    /// A feed as it is published, to be read so ([`StoreShared::pin`]). An error as of [`LeaseSign::reads_end`].
    pub(super) async fn pin(&self, feed: &FeedName) -> Result<Option<Pin>, StoreError> {
        self.until_reads_end(self.shared.pin(feed)).await?
    }

    async fn until_reads_end<T>(&self, work: impl Future<Output = T>) -> Result<T, StoreError> {
        let Some(lease) = &self.lease else { return Ok(work.await) };
        tokio::select! {
            biased;
            done = work => Ok(done),
            why = lease.reads_end() => Err(why),
        }
    }

    /// Waits until it is known whether this process still has the database; an error where another one has, which
    /// stops the store.
    async fn check_lease(&self) -> Result<(), StoreError> {
        let begun = Instant::now();
        while !self.is_current() {
            if let Some(owner) = self.owner() {
                if self.shared.health().is_ok() {
                    let source = io::Error::other("another gateway has taken it over");
                    self.shared.fail(&StoreError::Io { doing: "keep the database", source });
                    // The committer notices with the next request.
                    let noticed = |_: &mut _, _: &mut _| Ok::<_, StoreError>(());
                    let _ = timeout(UNSEEN_LIMIT, self.ask(Touches::Feed, noticed)).await;
                }
                return Err(StoreError::Overtaken { owner });
            }
            if begun.elapsed() > UNSEEN_LIMIT {
                let unseen = self.unanswered().unwrap_or_default().max(begun.elapsed());
                return Err(StoreError::Unseen { seconds: unseen.as_secs() });
            }
            sleep(LOOK_PAUSE / 10).await;
        }
        Ok(())
    }

    /// Shows what was durable when this was called, where another gateway writes. Waits as long as the database
    /// may be unseen.
    pub(super) async fn catch_up(&self) -> Result<(), StoreError> {
        let Some(following) = &self.following else { return self.check_lease().await };
        let begun = Instant::now();
        loop {
            self.shared.health()?;
            let Writer::Elsewhere(looks) = self.opened()?.writer else { return Ok(()) };
            let (reply, answer) = oneshot::channel();
            if let Err(TrySendError::Disconnected(_)) = looks.try_send(reply) {
                return Err(StoreError::Closed);
            }
            let left = UNSEEN_LIMIT.saturating_sub(begun.elapsed());
            match timeout(left, answer).await {
                Ok(Ok(true)) => return Ok(()),
                Ok(_) if begun.elapsed() < UNSEEN_LIMIT => sleep(LOOK_PAUSE).await,
                _ => {
                    following.check_seen()?;
                    return Err(StoreError::Unseen { seconds: begun.elapsed().as_secs() });
                }
            }
        }
    }

    /// Waits until a feed is shown as of another write than `write`: the one that overtook a reader may not be
    /// durable yet.
    pub(super) async fn see_change(&self, feed: &FeedName, write: u64) -> Result<(), StoreError> {
        let mut pause = READ_TRIES.1;
        for _ in 1..READ_TRIES.0 {
            self.catch_up().await?;
            let shown = self.shared.published(feed).map(|published| published.write);
            if self.following.is_none() || shown != Some(write) {
                break;
            }
            sleep(pause).await;
            pause = pause.saturating_mul(2);
        }
        Ok(())
    }

    /// Makes a read anew on what is durable by then, where a write of another gateway overtook it. A write that is
    /// not durable yet is waited for.
    pub(super) async fn retried<T, F>(&self, mut read: impl FnMut() -> F) -> Result<T, StoreError>
    where
        F: Future<Output = Result<T, StoreError>>,
    {
        let mut pause = READ_TRIES.1;
        for _ in 1..READ_TRIES.0 {
            match read().await {
                Err(StoreError::Outdated) if self.following.is_some() => {
                    self.catch_up().await?;
                    sleep(pause).await;
                    pause = pause.saturating_mul(2);
                }
                done => return done,
            }
        }
        read().await
    }
}

/// Runs `read` of a feed that is read as of `head`. Where another gateway writes, what was read is believed only if
/// the feed is still at that write: the state is moved in the transaction that moves content, and what a write that
/// is not committed has moved already is kept.
pub(super) fn verified<T>(
    records: &Records,
    feed: &FeedName,
    head: &StateRecord,
    read: impl FnOnce(&Records) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    let found = read(&records.at(head.write));
    if !records.engine().is_followed() {
        return found;
    }
    let now = records.record::<StateRecord>(Class::States, &keys::feed(feed)).map_err(cut_off)?;
    if now.as_ref() == Some(head) { found.map_err(cut_off) } else { Err(StoreError::Outdated) }
}

/// A read that the end of a connection cut off, which is made anew once the database answers.
fn cut_off(error: StoreError) -> StoreError {
    if matches!(error, StoreError::Away { .. }) { StoreError::Outdated } else { error }
}

/// Runs `read` of what is read over all feeds. Where another gateway writes, it is believed only if none of these
/// records were written meanwhile: their count moves in the same transaction.
pub(super) fn verified_lists<T>(
    records: &Records,
    shared: &StoreShared,
    read: impl FnOnce(&Records) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    if !records.engine().is_followed() {
        return read(records);
    }
    let shown = shared.list_writes.load(Ordering::Acquire);
    let is_shown = || Ok::<_, StoreError>(open::list_writes(records).map_err(cut_off)? == shown);
    let was_shown = is_shown()?;
    let found = read(records);
    if was_shown && is_shown()? { found.map_err(cut_off) } else { Err(StoreError::Outdated) }
}
