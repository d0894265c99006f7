//! Marks of large documents, to survive documents that kill the gateway. A mark is stored before such a document is
//! judged. If the gateway ended twice during a feed's documents, polling stops until an operator acts.

use super::turns::LARGE_ENTRIES;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use tidegate_core::model::{Attempt, FeedName, Time};
use tidegate_net::fetch::FetchBlame;
use tidegate_status::PollFailure;
use tidegate_store::{Store, StoreError, in_words};

/// A feed is stopped after this many ends of the gateway during its documents.
pub const KILLS_BORNE: u32 = 2;

/// The attempt marks by feed.
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
        (attempt.kills >= KILLS_BORNE).then_some(failure)
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
            |it: &&mut AttemptMark| it.attempt.kills >= KILLS_BORNE && !it.attempt.is_open;
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
