//! Documents that came by another way than a poll: the first poll of a feed that a request made takes the one
//! that answered the request, instead of asking the publisher twice; and so does one where the publisher does not answer
//! the gateway's own polls.

use crate::origin::WholeAnswer;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// How long a document waits for its poll.
const HANDED_AGE: Duration = Duration::from_secs(30);
/// The most documents that wait; the oldest gives way.
const HANDED: usize = 64;
/// The most bytes of them together.
const HANDED_BYTES: usize = 64 * 1024 * 1024;

/// What waits for a poll, by the feed's address.
#[derive(Debug, Clone, Default)]
pub struct Handover(Arc<Mutex<Vec<(String, Instant, WholeAnswer)>>>);

impl Handover {
    /// Hands an answer over to the next poll of a feed at this address.
    pub fn give(&self, url: &str, answer: WholeAnswer) {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.retain(|(known, at, _)| known != url && at.elapsed() < HANDED_AGE);
        waiting.push((url.to_owned(), Instant::now(), answer));
        while waiting.len() > HANDED
            || waiting.iter().map(|(_, _, answer)| answer.body.len()).sum::<usize>() > HANDED_BYTES
        {
            waiting.remove(0);
        }
    }

    /// The answer that waits for a poll of this address, once.
    pub fn take(&self, url: &str) -> Option<WholeAnswer> {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = waiting.iter().position(|(known, _, _)| known == url)?;
        let (_, since, answer) = waiting.remove(at);
        (since.elapsed() < HANDED_AGE).then_some(answer)
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

    #[tokio::test(start_paused = true)]
    async fn an_answer_waits_for_one_poll_and_not_for_long() {
        let handover = Handover::default();
        handover.give("a", answer(1));
        handover.give("a", answer(2));
        assert!(handover.take("b").is_none());
        assert_eq!(handover.take("a").map(|answer| answer.body.len()), Some(2));
        assert!(handover.take("a").is_none());
        handover.give("a", answer(1));
        tokio::time::advance(HANDED_AGE).await;
        assert!(handover.take("a").is_none());
    }

    #[test]
    fn only_so_much_waits() {
        let handover = Handover::default();
        for n in 0..=HANDED {
            handover.give(&n.to_string(), answer(1));
        }
        assert!(handover.take("0").is_none() && handover.take("1").is_some());
        handover.give("large", answer(HANDED_BYTES));
        assert!(handover.take("2").is_none() && handover.take("large").is_some());
        handover.give("too large", answer(HANDED_BYTES + 1));
        assert!(handover.take("too large").is_none());
    }
}
