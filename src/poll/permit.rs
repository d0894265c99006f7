//! Whether a round may still commit what it found, where several gateways poll the feeds of one store.
//!
//! A gateway may be paused between a fetch and its commit for so long that another one takes the shard, fetches a newer
//! document and commits it. When the first one wakes, its commit is refused, since the feed has another revision. It
//! must not judge its older document anew over the newer state: so its permit is checked before each commit.

use super::error::RoundError;
use std::sync::Arc;
use tidegate_store::{PollShards, Shard};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The permit of a round, a walk or a round of probes to commit. The default one never ends: no other gateway polls
/// the feed.
#[derive(Debug, Clone, Default)]
pub struct CommitPermit(Option<Arc<SharedPermit>>);

/// What a permit depends on, where several gateways poll.
#[derive(Debug)]
struct SharedPermit {
    shards: Arc<PollShards>,
    basis: PermitBasis,
    cancel: CancellationToken,
}

/// How long a permit lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PermitBasis {
    /// As long as this gateway has the feed's shard under this fence.
    Fence(Shard, i64),
    /// Until this time: the shard is another gateway's, which leaves the feed alone until then.
    Until(Instant),
}

impl CommitPermit {
    /// A permit that ends with its basis, when `cancel` is cancelled, or when the store has not confirmed the shards
    /// lately.
    pub(super) fn new(
        shards: Arc<PollShards>,
        basis: PermitBasis,
        cancel: CancellationToken,
    ) -> Self {
        Self(Some(Arc::new(SharedPermit { shards, basis, cancel })))
    }

    /// [`RoundError::Cancelled`] where the permit has ended.
    ///
    /// Another gateway may take the shard between this check and the commit. The commit names the revision that
    /// was decided over, so that it is carried out only if that gateway has committed nothing since. Where it is
    /// refused, it is decided anew, and checked again.
    pub(super) fn check(&self) -> Result<(), RoundError> {
        match &self.0 {
            Some(permit) if !permit.is_valid() => Err(RoundError::Cancelled),
            _ => Ok(()),
        }
    }

    /// Waits as long as the permit lasts; [`RoundError::Cancelled`] where it ends before.
    pub(super) async fn wait<T>(&self, work: impl Future<Output = T>) -> Result<T, RoundError> {
        let Some(permit) = &self.0 else { return Ok(work.await) };
        let done = tokio::select! {
            biased;
            () = permit.cancel.cancelled() => return Err(RoundError::Cancelled),
            done = work => done,
        };
        self.check().map(|()| done)
    }
}

impl SharedPermit {
    fn is_valid(&self) -> bool {
        let lasts = match self.basis {
            PermitBasis::Fence(shard, fence) => self.shards.has_fence(shard, fence),
            PermitBasis::Until(end) => Instant::now() < end,
        };
        lasts && self.shards.may_go_on() && !self.cancel.is_cancelled()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::time::Duration;

    const LEASE: Duration = Duration::from_secs(3600);

    fn give(shards: &PollShards, held: impl IntoIterator<Item = (Shard, i64)>) {
        shards.confirm(Duration::MAX, held.into_iter().collect::<BTreeMap<_, _>>());
    }

    #[test]
    fn a_permit_ends_with_the_fence_under_which_it_was_given() {
        let shard = Shard::numbered(7).unwrap();
        let shards = Arc::new(PollShards::new(LEASE, false));
        let basis = PermitBasis::Fence(shard, 4);
        let cancel = CancellationToken::new();
        let permit = CommitPermit::new(Arc::clone(&shards), basis, cancel.clone());
        assert!(permit.check().is_err(), "the store has confirmed nothing yet");
        give(&shards, [(shard, 4)]);
        assert!(permit.check().is_ok());
        // What is in flight may end before the shard is given back.
        shards.give_back([shard]);
        assert!(permit.check().is_ok());
        // It was another gateway's meanwhile.
        give(&shards, [(shard, 6)]);
        assert!(matches!(permit.check(), Err(RoundError::Cancelled)));
        give(&shards, []);
        assert!(permit.check().is_err());
        give(&shards, [(shard, 4)]);
        assert!(permit.check().is_ok());
        cancel.cancel();
        assert!(permit.check().is_err());
        assert!(CommitPermit::default().check().is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn the_permit_of_a_guest_ends_with_its_time() {
        let shards = Arc::new(PollShards::new(LEASE, true));
        give(&shards, []);
        let basis = PermitBasis::Until(Instant::now() + Duration::from_secs(60));
        let permit = CommitPermit::new(shards, basis, CancellationToken::new());
        tokio::time::advance(Duration::from_secs(59)).await;
        assert!(permit.check().is_ok());
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(permit.check().is_err());
    }
}
