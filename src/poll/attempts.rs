//! Large documents that the gateway was killed in: a mark is written before each, and a feed in whose
//! documents it ended twice is not polled until an operator says so.

use super::turns::LARGE_ENTRIES;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use tidegate_core::model::{Attempt, FeedName, Time};
use tidegate_net::fetch::FetchBlame;
use tidegate_status::PollFailure;
use tidegate_store::{Store, StoreError, in_words};

/// A feed is stopped once the gateway ended so often in a document of it.
pub const KILLS_BORNE: u32 = 2;

/// The marks, by feed.
pub struct Attempts {
    store: Arc<Store>,
    marks: Mutex<BTreeMap<FeedName, AttemptMark>>,
}

/// A mark, and whether the store has still to be told of it. One that is over is kept for that alone.
struct AttemptMark {
    attempt: Attempt,
    is_unwritten: bool,
}

impl Attempts {
    /// Without marks.
    pub fn new(store: Arc<Store>) -> Self {
        Self { store, marks: Mutex::default() }
    }

    fn set(&self, attempt: Attempt, is_unwritten: bool) {
        self.marks.lock().insert(attempt.feed.clone(), AttemptMark { attempt, is_unwritten });
    }

    /// Takes over the marks of feeds that this gateway polls from now on. One that is open shows that a gateway
    /// ended in the document.
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

    /// Another gateway polls the feed from now on, which reads its mark in the store.
    pub fn forget(&self, feed: &FeedName) {
        self.marks.lock().retain(|name, mark| name != feed || mark.is_unwritten);
    }

    /// Why a feed is not polled, where the gateway ended too often in documents of it.
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
        (attempt.kills >= KILLS_BORNE).then_some(failure)
    }

    /// Notes that a document is begun, where it is so large that it needs a mark. Answers that mark.
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
            // It may be stored all the same, and the document is not begun.
            self.set(Attempt { is_open: false, ..attempt }, true);
            return Err(error);
        }
        Ok(Some(attempt))
    }

    /// Notes that the document of a mark is over, whatever came of it. A mark that the feed has of another one stays.
    pub async fn end(&self, mark: &Attempt) -> Result<(), StoreError> {
        if self.marks.lock().get(&mark.feed).is_none_or(|of| of.attempt != *mark) {
            return Ok(());
        }
        let over = mark.clone().over();
        // A store that cannot be written now can be later: the mark must not outlive the document.
        self.set(over.clone(), true);
        self.write(over).await
    }

    /// Tells the store of a mark as it is now.
    async fn write(&self, attempt: Attempt) -> Result<(), StoreError> {
        self.store.note_attempt(&attempt).await?;
        let mut marks = self.marks.lock();
        // It may be another one meanwhile.
        if let Some(mark) = marks.get_mut(&attempt.feed).filter(|mark| mark.attempt == attempt) {
            mark.is_unwritten = false;
            if attempt.is_over() {
                marks.remove(&attempt.feed);
            }
        }
        Ok(())
    }

    /// An operator wants the feed polled, whatever happened. Whether it was stopped.
    pub fn lift(&self, feed: &FeedName) -> bool {
        let is_stopped =
            |it: &&mut AttemptMark| it.attempt.kills >= KILLS_BORNE && !it.attempt.is_open;
        let mut marks = self.marks.lock();
        let Some(mark) = marks.get_mut(feed).filter(is_stopped) else { return false };
        *mark = AttemptMark { attempt: mark.attempt.clone().over(), is_unwritten: true };
        true
    }

    /// Whether the store has still to be told anything.
    pub fn has_unwritten(&self) -> bool {
        self.marks.lock().values().any(|mark| mark.is_unwritten)
    }

    /// Tells the store which marks are others. Whether it could be told; if not, it is to be tried again.
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

    /// The gateway stops in good order: the marks that are open are closed.
    pub fn close(&self) {
        for mark in self.marks.lock().values_mut().filter(|mark| mark.attempt.is_open) {
            mark.attempt.is_open = false;
            mark.is_unwritten = true;
        }
    }
}
