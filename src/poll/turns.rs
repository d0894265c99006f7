//! Permits to judge documents.
//!
//! Large documents, and documents of large feeds, are judged one at a time, from reading the ledger until the commit.
//! So they use the memory of one at most, and do not delay other feeds. All others share a few permits; a judgement
//! that takes long returns its permit early.

use std::sync::Arc;
use std::time::Duration;
use tidegate_core::model::FeedState;
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};
use tokio::time::sleep;

/// The most documents of usual size judged at the same time.
pub const MAX_JUDGED_AT_ONCE: usize = 4;
/// The most judgements that may continue after returning their permits.
pub const MAX_OVERDUE: usize = 4;
/// After this time a judgement no longer counts against [`MAX_JUDGED_AT_ONCE`].
pub const PATIENCE: Duration = Duration::from_secs(2);
/// A document of more bytes is large.
pub const LARGE_BYTES: usize = 4 * 1024 * 1024;
/// A document or feed of more entries is large.
pub const LARGE_ENTRIES: usize = 10_000;

/// Marks of an entry: its start tag, with or without a prefix, or its id in JSON.
const ENTRY_SIGNS: [&[u8]; 6] = [b"<item", b":item", b"<entry", b":entry", b"<outline", b"\"id\""];

/// The estimated cost of judging a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JudgeCost {
    Usual,
    /// Much memory and time; the approximate number of entries in the document.
    Large(usize),
}

impl JudgeCost {
    /// Estimates the cost of comparing a document with its feed. `has_index`: only the needed part of the feed's ledger
    /// is read.
    pub fn estimate(state: Option<&FeedState>, document: &[u8], has_index: bool) -> Self {
        let entries = entries(document);
        let items = state.map_or(0, |state| match has_index {
            true => u64::from(state.current),
            false => ledger_size(state),
        });
        let is_large = document.len() > LARGE_BYTES
            || entries > LARGE_ENTRIES
            || items > u64::try_from(LARGE_ENTRIES).unwrap_or(u64::MAX);
        if is_large { Self::Large(entries) } else { Self::Usual }
    }
}

/// Returns the number of items in the feed's ledger.
fn ledger_size(state: &FeedState) -> u64 {
    u64::from(state.living) + u64::from(state.tombstones)
}

/// Whether reading the whole ledger counts as large.
pub(super) fn is_large_ledger(state: &FeedState) -> bool {
    ledger_size(state) > u64::try_from(LARGE_ENTRIES).unwrap_or(u64::MAX)
}

/// Estimates the number of entries in a document, rather too high than too low.
fn entries(document: &[u8]) -> usize {
    let is_wide = document.iter().take(4).any(|byte| *byte == 0)
        || document.starts_with(&[0xfe, 0xff])
        || document.starts_with(&[0xff, 0xfe]);
    if is_wide {
        // UTF-16 or UTF-32: assume a minimum size per entry, since marks cannot be counted.
        return document.len() / 64;
    }
    let count = |sign: &&[u8]| memchr::memmem::find_iter(document, *sign).count();
    ENTRY_SIGNS.iter().map(count).sum()
}

/// The semaphores for judgements.
#[derive(Debug)]
pub struct Turns {
    usual: Arc<Semaphore>,
    large: Arc<Semaphore>,
    overdue: Arc<Semaphore>,
}

impl Default for Turns {
    fn default() -> Self {
        let semaphore = |count| Arc::new(Semaphore::new(count));
        Self {
            usual: semaphore(MAX_JUDGED_AT_ONCE),
            large: semaphore(1),
            overdue: semaphore(MAX_OVERDUE),
        }
    }
}

impl Turns {
    /// Waits for a permit, which is held until dropped.
    pub async fn acquire(&self, cost: JudgeCost) -> Result<OwnedSemaphorePermit, AcquireError> {
        let semaphore = if cost == JudgeCost::Usual { &self.usual } else { &self.large };
        Arc::clone(semaphore).acquire_owned().await
    }

    /// Runs `work` with a usual permit. After [`PATIENCE`] the permit is returned, if fewer than [`MAX_OVERDUE`] others
    /// did so.
    pub async fn wait<T>(
        &self,
        mut permit: OwnedSemaphorePermit,
        work: impl Future<Output = T>,
    ) -> T {
        tokio::pin!(work);
        tokio::select! {
            biased;
            done = &mut work => return done,
            () = sleep(PATIENCE) => {}
        }
        if let Ok(overdue) = Arc::clone(&self.overdue).try_acquire_owned() {
            permit = overdue;
        }
        let done = work.await;
        drop(permit);
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;
    use std::future::pending;
    use tidegate_core::model::{Format, Time};
    use tokio::time::timeout;

    const LONG: Duration = Duration::from_secs(3600);

    #[test]
    fn entries_are_counted_in_every_format() {
        let many = LARGE_ENTRIES + 1;
        for entry in ["<item>a</item>", "<a:entry/>", "{\"id\":1},", "<outline text='a'/>"] {
            let estimate = |count| JudgeCost::estimate(None, entry.repeat(count).as_bytes(), false);
            let large = estimate(many);
            assert!(matches!(large, JudgeCost::Large(entries) if entries >= many), "{entry}");
            assert_eq!(estimate(many / 2), JudgeCost::Usual);
        }
        let wide: Vec<u8> = "<item/>".repeat(many * 5).bytes().flat_map(|byte| [byte, 0]).collect();
        assert!(matches!(JudgeCost::estimate(None, &wide, false), JudgeCost::Large(_)));
        let long = JudgeCost::estimate(None, &[b' '; LARGE_BYTES + 1], false);
        assert!(matches!(long, JudgeCost::Large(0)));
    }

    #[test]
    fn of_a_ledger_with_an_index_only_what_is_listed_is_read() {
        let mut state = FeedState::untouched(Format::Atom10, Time::from_unix(0));
        state.living = u32::MAX;
        state.current = 20;
        assert!(is_large_ledger(&state));
        assert_eq!(JudgeCost::estimate(Some(&state), b"<item/>", true), JudgeCost::Usual);
        assert_eq!(JudgeCost::estimate(Some(&state), b"<item/>", false), JudgeCost::Large(1));
    }

    #[tokio::test(start_paused = true)]
    async fn judgements_without_an_end_keep_nobody_from_their_turn() {
        let turns = Arc::new(Turns::default());
        for _ in 0..MAX_OVERDUE {
            let turns = Arc::clone(&turns);
            tokio::spawn(async move {
                let permit = turns.acquire(JudgeCost::Usual).await.unwrap();
                turns.wait(permit, pending::<()>()).await;
            });
        }
        tokio::task::yield_now().await;
        for _ in 0..3 {
            let permit = timeout(2 * PATIENCE, turns.acquire(JudgeCost::Usual)).await;
            let permit = permit.expect("a turn was lent").unwrap();
            turns.wait(permit, async {}).await;
        }
        // But only up to a limit.
        for _ in 0..MAX_JUDGED_AT_ONCE {
            let turns = Arc::clone(&turns);
            tokio::spawn(async move {
                let permit = turns.acquire(JudgeCost::Usual).await.unwrap();
                turns.wait(permit, pending::<()>()).await;
            });
        }
        tokio::task::yield_now().await;
        assert!(timeout(LONG, turns.acquire(JudgeCost::Usual)).await.is_err());
    }

    #[test]
    fn large_documents_take_one_turn_after_another_and_no_other() {
        let turns = Turns::default();
        let permit = |cost| turns.acquire(cost).now_or_never().map(Result::unwrap);
        let first = permit(JudgeCost::Large(20_000)).unwrap();
        assert!(permit(JudgeCost::Large(20_000)).is_none());
        let all = [(); MAX_JUDGED_AT_ONCE].map(|()| permit(JudgeCost::Usual).unwrap());
        assert!(permit(JudgeCost::Usual).is_none());
        drop((first, all));
        assert!(permit(JudgeCost::Large(0)).is_some() && permit(JudgeCost::Usual).is_some());
    }
}
