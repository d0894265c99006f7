//! Answers to readers' requests that polls use instead of asking the publisher. The first poll of an on-demand feed
//! takes the answer to the request that created it. A poll may also take one if the publisher refuses the gateway's own
//! polls.

use crate::origin::WholeAnswer;
use moka::policy::EvictionPolicy;
use moka::sync::Cache;
use std::time::Duration;

/// How long an answer waits for its poll.
const HANDED_AGE: Duration = Duration::from_secs(30);
/// The most bytes waiting in all, and the surcharge per answer for its head; the oldest are dropped first.
const HANDED_BYTES: u32 = 64 * 1024 * 1024;
const HANDED_HEAD: u32 = 1024 * 1024;

/// The waiting answers, by feed address.
#[derive(Debug, Clone)]
pub struct Handover(Cache<String, WholeAnswer>);

impl Default for Handover {
    fn default() -> Self {
        let weigh = |_: &String, answer: &WholeAnswer| {
            let bytes = u32::try_from(answer.body.len()).unwrap_or(u32::MAX);
            bytes.saturating_add(HANDED_HEAD)
        };
        let waiting = Cache::builder().weigher(weigh).max_capacity(HANDED_BYTES.into());
        let waiting = waiting.eviction_policy(EvictionPolicy::lru()).time_to_live(HANDED_AGE);
        Self(waiting.build())
    }
}

impl Handover {
    /// Leaves an answer for the next poll of the feed at `url`.
    pub fn give(&self, url: &str, answer: WholeAnswer) {
        self.0.insert(url.to_owned(), answer);
        // Evict a surplus now rather than at some later time.
        self.0.run_pending_tasks();
    }

    /// Takes the answer that waits for a poll of `url`.
    pub fn take(&self, url: &str) -> Option<WholeAnswer> {
        // `remove` alone would return an expired answer that is not evicted yet.
        self.0.contains_key(url).then(|| self.0.remove(url)).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use http::HeaderMap;

    #[test]
    fn only_so_much_waits_and_not_for_long() {
        let handover = Handover::default();
        let give = |url: &str, bytes: u32| {
            let body = Bytes::from(vec![b'x'; bytes as usize]);
            handover.give(url, WholeAnswer { headers: HeaderMap::new(), body });
        };
        (0..HANDED_BYTES / HANDED_HEAD).for_each(|n| give(&n.to_string(), 1));
        assert!(handover.take("0").is_none() && handover.take("1").is_some());
        give("large", HANDED_BYTES - HANDED_HEAD);
        assert_eq!((handover.0.entry_count(), handover.take("large").is_some()), (1, true));
        give("too large", HANDED_BYTES);
        assert!(handover.take("too large").is_none());
        // The last one given to an address counts.
        (1..3).for_each(|bytes| give("a", bytes));
        assert_eq!(handover.take("a").map(|answer| answer.body.len()), Some(2));
        assert_eq!(handover.0.policy().time_to_live(), Some(HANDED_AGE));
    }
}
