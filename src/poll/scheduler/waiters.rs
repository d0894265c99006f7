//! Callers that want something of a feed whose shard another gateway polls: they wait for a while until it is given
//! over to this one, where this gateway writes the store. The pages of the others ask there.

use super::{CommandReply, MAX_WAITING, PollScheduler, SLICE};
use crate::error::PollError;
use std::time::Duration;
use tidegate_core::model::FeedName;
use tidegate_status::WalkOrder;
use tidegate_store::Shard;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// How long a caller waits for a shard.
const SHARD_WAIT: Duration = Duration::from_secs(8);

/// What a caller wants of a feed.
pub(super) enum WaitingCall {
    Poll(CommandReply),
    Walk(WalkOrder, oneshot::Sender<Result<(), PollError>>),
}

impl WaitingCall {
    fn refuse(self, error: PollError) {
        // Who asked may have gone away.
        match self {
            Self::Poll(reply) => drop(reply.send(Err(error))),
            Self::Walk(_, reply) => drop(reply.send(Err(error))),
        }
    }
}

/// A caller that waits for a shard.
pub(super) struct ShardWaiter {
    feed: FeedName,
    shard: Shard,
    until: Instant,
    /// When the store was last asked for the shard.
    asked: Option<Instant>,
    call: WaitingCall,
}

impl PollScheduler {
    /// Whether an operator's order for a feed can be carried out at once. Where not, it has to wait for the shard.
    pub(super) fn can_begin(&self, name: &FeedName) -> bool {
        self.share.is_none()
            || (self.may_begin() && self.feeds.get(name).is_some_and(|feed| feed.begins()))
    }

    /// Whether a feed is here of which nothing begins, for the time being at least.
    pub(super) fn waits_for_shard(&self, name: &FeedName) -> bool {
        self.feeds.contains_key(name) && !self.can_begin(name)
    }

    /// Has a caller wait until the feeds of a shard are polled here; `None`: no feed of that name is polled.
    pub(super) fn wait_for_shard(
        &mut self,
        feed: FeedName,
        shard: Option<Shard>,
        call: WaitingCall,
    ) {
        let (Some(shard), Some(share)) = (shard, &mut self.share) else {
            return call.refuse(PollError::Unknown);
        };
        if share.is_follower() && !share.takes(shard) && !share.shards.polls(shard) {
            let owner = share.shards.owner(shard);
            return call.refuse(PollError::PolledElsewhere { owner });
        }
        if share.waiters.len() >= MAX_WAITING {
            return call.refuse(PollError::TooMany { limit: MAX_WAITING });
        }
        let until = Instant::now() + SHARD_WAIT;
        share.waiters.push_back(ShardWaiter { feed, shard, until, asked: None, call });
    }

    /// Serves those whose feed is polled here by now, asks for the shards of the others, and refuses those that
    /// have waited too long.
    pub(super) fn serve_waiters(&mut self) {
        let Some(share) = &mut self.share else { return };
        let now = Instant::now();
        for mut waiter in std::mem::take(&mut share.waiters) {
            if self.can_begin(&waiter.feed) {
                self.serve_waiter(waiter);
                continue;
            }
            if waiter.until <= now {
                let owner = self.owner_of(waiter.shard);
                waiter.call.refuse(PollError::PolledElsewhere { owner });
                continue;
            }
            let Some(share) = &mut self.share else { return };
            if waiter.asked.is_none_or(|asked| now.duration_since(asked) >= SLICE) {
                waiter.asked = Some(now);
                share.shards.want(waiter.shard);
            }
            share.waiters.push_back(waiter);
        }
    }

    fn serve_waiter(&mut self, waiter: ShardWaiter) {
        match waiter.call {
            WaitingCall::Poll(reply) => self.poll_now(&waiter.feed, None, reply),
            WaitingCall::Walk(order, reply) => {
                // Who asked may have gone away.
                drop(reply.send(self.order_walk(&waiter.feed, order)));
            }
        }
    }

    /// Refuses all that wait.
    pub(super) fn refuse_waiters(&mut self) {
        let waiters = self.share.as_mut().map(|share| std::mem::take(&mut share.waiters));
        for waiter in waiters.into_iter().flatten() {
            waiter.call.refuse(PollError::Stopped);
        }
    }
}
