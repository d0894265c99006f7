//! Permits to judge documents.
//!
//! Large documents, and documents of large feeds, are judged one at a time, from reading the ledger until the commit.
//! So they use the memory of one at most, and do not delay other feeds. All others share a few permits; a judgement
//! that takes long returns its permit early.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::model::{Attempt, FeedName, FeedState, Time};
use tidegate_net::fetch::FetchBlame;
use tidegate_status::PollFailure;
use tidegate_store::{Store, StoreError, in_words};
use tokio::sync::Semaphore;
use tokio::time::sleep;

/// The most documents of usual size judged at the same time.
pub const MAX_JUDGED_AT_ONCE: usize = 4;
/// The most judgements that may continue after returning their permits.
pub const MAX_OVERDUE: usize = 4;
/// After this time a judgement no longer counts against [`MAX_JUDGED_AT_ONCE`].
pub const PERMIT_TIME: Duration = Duration::from_secs(2);
/// A document of more bytes is large.
pub const LARGE_BYTES: usize = 4 * 1024 * 1024;
/// A document or feed of more entries is large.
pub const LARGE_ENTRIES: usize = 10_000;

/// Marks of an entry: its start tag, with or without a prefix, or its id in JSON.
const ENTRY_SIGNS: [&[u8]; 6] = [b"<item", b":item", b"<entry", b":entry", b"<outline", b"\"id\""];

/// Returns the approximate number of entries of a document if comparing it with its feed takes much memory and time;
/// `None` if it does not. `has_index`: only the needed part of the feed's ledger is read.
pub fn count_large(state: Option<&FeedState>, document: &[u8], has_index: bool) -> Option<usize> {
    let entries = entries(document);
    let items = state.map_or(0, |state| match has_index {
        true => u64::from(state.current),
        false => ledger_size(state),
    });
    let is_large = document.len() > LARGE_BYTES
        || entries > LARGE_ENTRIES
        || items > u64::try_from(LARGE_ENTRIES).unwrap_or(u64::MAX);
    is_large.then_some(entries)
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
pub struct JudgePermits {
    usual: Semaphore,
    /// Its permit is held from reading the ledger until the commit.
    pub large: Semaphore,
    overdue: Semaphore,
}

impl Default for JudgePermits {
    fn default() -> Self {
        let [usual, large, overdue] = [MAX_JUDGED_AT_ONCE, 1, MAX_OVERDUE].map(Semaphore::new);
        Self { usual, large, overdue }
    }
}

impl JudgePermits {
    /// Runs `work` with a usual permit. After [`PERMIT_TIME`] the permit is returned, if fewer than [`MAX_OVERDUE`]
    /// others did so.
    pub async fn run<T>(&self, work: impl Future<Output = T>) -> T {
        let mut _permit = self.usual.acquire().await;
        tokio::pin!(work);
        tokio::select! {
            biased;
            done = &mut work => return done,
            () = sleep(PERMIT_TIME) => {}
        }
        if let Ok(overdue) = self.overdue.try_acquire() {
            _permit = Ok(overdue);
        }
        work.await
    }
}

/// A feed is no longer polled after the gateway has crashed this many times while judging its large documents, until an
/// operator acts.
pub const MAX_KILLS: u32 = 2;

/// The marks of large documents by feed, to survive documents that kill the gateway. A mark is stored before such a
/// document is judged.
pub struct Attempts {
    store: Arc<Store>,
    marks: Mutex<BTreeMap<FeedName, AttemptMark>>,
}

/// A mark, and whether its current value must still be stored. Finished marks are retained only until then.
struct AttemptMark {
    attempt: Attempt,
    is_unwritten: bool,
}

impl Attempts {
    pub fn new(store: Arc<Store>) -> Self {
        Self { store, marks: Mutex::default() }
    }

    fn set(&self, attempt: Attempt, is_unwritten: bool) {
        self.marks.lock().insert(attempt.feed.clone(), AttemptMark { attempt, is_unwritten });
    }

    /// Adopts the marks of feeds that this gateway polls from now on. An open mark shows that a gateway ended during
    /// the document.
    pub fn take_over(&self, attempts: impl IntoIterator<Item = Attempt>) {
        for mut attempt in attempts {
            let was_open = std::mem::take(&mut attempt.is_open);
            if was_open {
                attempt.kills = attempt.kills.saturating_add(1);
                tracing::warn!(
                    feed = %attempt.feed,
                    entries = attempt.entries,
                    kills = attempt.kills,
                    "the gateway ended while it took in a large document"
                );
            }
            self.set(attempt, was_open);
        }
    }

    /// Drops the mark of a feed that another gateway polls now and reads from the store.
    pub fn forget(&self, feed: &FeedName) {
        self.marks.lock().retain(|name, mark| name != feed || mark.is_unwritten);
    }

    /// Returns why a feed is not polled, if the gateway ended too often during its documents.
    pub fn stopped(&self, feed: &FeedName) -> Option<PollFailure> {
        let marks = self.marks.lock();
        let attempt = marks.get(feed).map(|mark| &mark.attempt)?;
        let error = format!(
            "it is not polled any more: the gateway ended {} times while it took in a document of \
             about {} entries, the last one begun at {}, which may take more memory than there is; \
             give the gateway more or make the feed smaller, and then poll it or put it again",
            attempt.kills, attempt.entries, attempt.begun
        );
        let failure = PollFailure { error, blame: FetchBlame::Operator, status: None };
        (attempt.kills >= MAX_KILLS).then_some(failure)
    }

    /// Stores a mark before a document is judged, if it is large. Returns the mark.
    pub async fn begin(
        &self,
        feed: &FeedName,
        entries: usize,
        now: Time,
    ) -> Result<Option<Attempt>, StoreError> {
        if entries <= LARGE_ENTRIES {
            return Ok(None);
        }
        let kills = self.marks.lock().get(feed).map_or(0, |before| before.attempt.kills);
        let entries = u32::try_from(entries).unwrap_or(u32::MAX);
        let attempt = Attempt { feed: feed.clone(), entries, begun: now, kills, is_open: true };
        self.set(attempt.clone(), false);
        if let Err(error) = self.store.note_attempt(&attempt).await {
            // The failed write may have stored it, so it must be closed; the document is not judged.
            self.set(Attempt { is_open: false, ..attempt }, true);
            return Err(error);
        }
        Ok(Some(attempt))
    }

    /// Closes a mark once its document is done, whatever the result. A newer mark of the feed stays open.
    pub async fn end(&self, mark: &Attempt) -> Result<(), StoreError> {
        if self.marks.lock().get(&mark.feed).is_none_or(|of| of.attempt != *mark) {
            return Ok(());
        }
        let over = mark.clone().over();
        // Retry later if the store fails now: the mark must not outlive the document.
        self.set(over.clone(), true);
        self.write(over).await
    }

    /// Stores the current value of a mark.
    async fn write(&self, attempt: Attempt) -> Result<(), StoreError> {
        self.store.note_attempt(&attempt).await?;
        let mut marks = self.marks.lock();
        // The mark may have changed meanwhile.
        if let Some(mark) = marks.get_mut(&attempt.feed).filter(|mark| mark.attempt == attempt) {
            mark.is_unwritten = false;
            if attempt.is_over() {
                marks.remove(&attempt.feed);
            }
        }
        Ok(())
    }

    /// Clears the mark of a stopped feed, because an operator wants it polled. Returns whether it was stopped.
    pub fn lift(&self, feed: &FeedName) -> bool {
        let is_stopped =
            |it: &&mut AttemptMark| it.attempt.kills >= MAX_KILLS && !it.attempt.is_open;
        let mut marks = self.marks.lock();
        let Some(mark) = marks.get_mut(feed).filter(is_stopped) else { return false };
        *mark = AttemptMark { attempt: mark.attempt.clone().over(), is_unwritten: true };
        true
    }

    /// Whether any mark must still be stored.
    pub fn has_unwritten(&self) -> bool {
        self.marks.lock().values().any(|mark| mark.is_unwritten)
    }

    /// Stores all changed marks. Returns whether that succeeded; if not, it must be retried.
    pub async fn flush(&self) -> bool {
        let next = || {
            let marks = self.marks.lock();
            marks.values().find(|mark| mark.is_unwritten).map(|mark| mark.attempt.clone())
        };
        while let Some(attempt) = next() {
            if let Err(error) = self.write(attempt).await {
                let error = in_words(&error);
                tracing::error!(error, "what polling remembers could not be stored");
                return false;
            }
        }
        true
    }

    /// Closes the open marks when the gateway stops in good order.
    pub fn close(&self) {
        for mark in self.marks.lock().values_mut().filter(|mark| mark.attempt.is_open) {
            mark.attempt.is_open = false;
            mark.is_unwritten = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::pending;
    use tidegate_core::model::{Format, Time};
    use tokio::time::timeout;

    const LONG: Duration = Duration::from_secs(3600);

    #[test]
    fn entries_are_counted_in_every_format() {
        let many = LARGE_ENTRIES + 1;
        for entry in ["<item>a</item>", "<a:entry/>", "{\"id\":1},", "<outline text='a'/>"] {
            let estimate = |count| count_large(None, entry.repeat(count).as_bytes(), false);
            assert!(estimate(many).is_some_and(|entries| entries >= many), "{entry}");
            assert_eq!(estimate(many / 2), None);
        }
        let wide: Vec<u8> = "<item/>".repeat(many * 5).bytes().flat_map(|byte| [byte, 0]).collect();
        assert!(count_large(None, &wide, false).is_some());
        assert_eq!(count_large(None, &[b' '; LARGE_BYTES + 1], false), Some(0));
    }

    #[test]
    fn of_a_ledger_with_an_index_only_what_is_listed_is_read() {
        let mut state = FeedState::untouched(Format::Atom10, Time::from_unix(0));
        state.living = u32::MAX;
        state.current = 20;
        assert!(is_large_ledger(&state));
        assert_eq!(count_large(Some(&state), b"<item/>", true), None);
        assert_eq!(count_large(Some(&state), b"<item/>", false), Some(1));
    }

    #[tokio::test(start_paused = true)]
    async fn judgements_without_an_end_keep_nobody_from_their_turn() {
        let permits = Arc::new(JudgePermits::default());
        let begin = async |count| {
            for _ in 0..count {
                let permits = Arc::clone(&permits);
                tokio::spawn(async move { permits.run(pending::<()>()).await });
            }
            tokio::task::yield_now().await;
        };
        begin(MAX_OVERDUE).await;
        for _ in 0..3 {
            timeout(2 * PERMIT_TIME, permits.run(async {})).await.expect("a turn was lent");
        }
        // But only up to a limit.
        begin(MAX_JUDGED_AT_ONCE).await;
        assert!(timeout(LONG, permits.run(async {})).await.is_err());
        // Large documents have their own, one after the other.
        let large = permits.large.try_acquire();
        assert!(large.is_ok() && permits.large.try_acquire().is_err());
    }
}
