//! Documents that came by another way than a poll: the first poll of a feed that a request made takes the one
//! that answered the request, instead of asking the publisher twice; and so does one where the publisher does not answer
//! the gateway's own polls.

use crate::origin::WholeAnswer;
use moka::policy::EvictionPolicy;
use moka::sync::Cache;
use std::time::Duration;

/// How long a document waits for its poll.
const HANDED_AGE: Duration = Duration::from_secs(30);
/// The most bytes that wait together, and how many a document counts as beside its own; the oldest gives way.
const HANDED_BYTES: u32 = 64 * 1024 * 1024;
const HANDED_HEAD: u32 = 1024 * 1024;

/// What waits for a poll, by the feed's address.
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
    /// Hands an answer over to the next poll of a feed at this address.
    pub fn give(&self, url: &str, answer: WholeAnswer) {
        self.0.insert(url.to_owned(), answer);
        // What is too much goes at once, and not some time later.
        self.0.run_pending_tasks();
    }

    /// The answer that waits for a poll of this address, once.
    pub fn take(&self, url: &str) -> Option<WholeAnswer> {
        // Removal alone would give out what is too old and not swept yet.
        self.0.contains_key(url).then(|| self.0.remove(url)).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use http::HeaderMap;

    fn answer(bytes: usize) -> WholeAnswer {
        WholeAnswer { headers: HeaderMap::new(), body: Bytes::from(vec![b'x'; bytes]) }
    }

    #[test]
    fn an_answer_waits_for_one_poll_and_not_for_long() {
        let handover = Handover::default();
        handover.give("a", answer(1));
        handover.give("a", answer(2));
        assert!(handover.take("b").is_none());
        assert_eq!(handover.take("a").map(|answer| answer.body.len()), Some(2));
        assert!(handover.take("a").is_none());
        assert_eq!(handover.0.policy().time_to_live(), Some(HANDED_AGE));
    }

    #[test]
    fn only_so_much_waits() {
        let handover = Handover::default();
        let most = HANDED_BYTES / HANDED_HEAD;
        (0..most).for_each(|n| handover.give(&n.to_string(), answer(1)));
        assert!(handover.take("0").is_none() && handover.take("1").is_some());
        handover.give("large", answer((HANDED_BYTES - HANDED_HEAD) as usize));
        assert_eq!((handover.0.entry_count(), handover.take("large").is_some()), (1, true));
        handover.give("too large", answer(HANDED_BYTES as usize));
        assert!(handover.take("too large").is_none());
    }
}
