//! Large documents that the gateway was killed in: a mark is written before each, and a feed in whose
//! documents it ended twice is not polled until an operator says so.

use super::turns::LARGE_ENTRIES;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tidegate_core::model::{Attempt, FeedName, Time};
use tidegate_net::fetch::FetchBlame;
use tidegate_status::PollFailure;
use tidegate_store::{Store, StoreError, in_words};

/// A feed is stopped once the gateway ended so often in a document of it.
pub const KILLS_BORNE: u32 = 2;

/// The marks, as they stand in the store.
pub struct Attempts {
    store: Arc<dyn Store>,
    marks: Mutex<AttemptMarks>,
}

#[derive(Default)]
struct AttemptMarks {
    kept: BTreeMap<FeedName, Attempt>,
    /// What the store has still to be told.
    unwritten: Vec<Attempt>,
}

impl Attempts {
    /// Without marks.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store, marks: Mutex::default() }
    }

    /// Takes over the marks of feeds that this gateway polls from now on. One that is open shows that a gateway
    /// ended in the document.
    pub fn take_over(&self, attempts: impl IntoIterator<Item = Attempt>) {
        let mut marks = self.marks();
        for mut attempt in attempts {
            if std::mem::take(&mut attempt.is_open) {
                attempt.kills = attempt.kills.saturating_add(1);
                marks.unwritten.push(attempt.clone());
                tracing::warn!(
                    feed = %attempt.feed,
                    entries = attempt.entries,
                    kills = attempt.kills,
                    "the gateway ended while it took in a large document"
                );
            }
            marks.kept.insert(attempt.feed.clone(), attempt);
        }
    }

    /// Another gateway polls the feed from now on, which reads its mark in the store.
    pub fn forget(&self, feed: &FeedName) {
        self.marks().kept.remove(feed);
    }

    fn marks(&self) -> MutexGuard<'_, AttemptMarks> {
        self.marks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Why a feed is not polled, where the gateway ended too often in documents of it.
    pub fn stopped(&self, feed: &FeedName) -> Option<PollFailure> {
        let marks = self.marks();
        let attempt = marks.kept.get(feed).filter(|attempt| attempt.kills >= KILLS_BORNE)?;
        let error = format!(
            "it is not polled any more: the gateway ended {} times while it took in a document of \
             about {} entries, the last one begun at {}, which may take more memory than there is; \
             give the gateway more or make the feed smaller, and then poll it or put it again",
            attempt.kills, attempt.entries, attempt.begun
        );
        Some(PollFailure { error, blame: FetchBlame::Operator, status: None })
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
        let attempt = {
            let mut marks = self.marks();
            marks.unwritten.retain(|attempt| attempt.feed != *feed);
            let kills = marks.kept.get(feed).map_or(0, |before| before.kills);
            let entries = u32::try_from(entries).unwrap_or(u32::MAX);
            let feed = feed.clone();
            let attempt = Attempt { feed, entries, begun: now, kills, is_open: true };
            marks.kept.insert(attempt.feed.clone(), attempt.clone());
            attempt
        };
        let noted = self.store.note_attempt(&attempt).await;
        if let Err(error) = noted {
            // It may be stored all the same, and the document is not begun.
            let mut marks = self.marks();
            marks.kept.remove(feed);
            let unbegun = Attempt { is_open: false, ..attempt };
            if !unbegun.is_over() {
                marks.kept.insert(feed.clone(), unbegun.clone());
            }
            marks.unwritten.push(unbegun);
            return Err(error);
        }
        Ok(Some(attempt))
    }

    /// Notes that the document of a mark is over, whatever came of it. A mark that the feed has of another one stays.
    pub async fn end(&self, mark: &Attempt) -> Result<(), StoreError> {
        let open = {
            let mut marks = self.marks();
            let is_it = marks.kept.get(&mark.feed) == Some(mark);
            if is_it { marks.kept.remove(&mark.feed) } else { None }
        };
        match open {
            Some(attempt) => {
                let over = attempt.over();
                let noted = self.store.note_attempt(&over).await;
                // A store that cannot be written now can be later: the mark must not outlive the document.
                noted.inspect_err(|_| self.marks().unwritten.push(over))
            }
            None => Ok(()),
        }
    }

    /// An operator wants the feed polled, whatever happened. Whether it was stopped.
    pub fn lift(&self, feed: &FeedName) -> bool {
        let mut marks = self.marks();
        let is_stopped = |attempt: &Attempt| attempt.kills >= KILLS_BORNE && !attempt.is_open;
        if !marks.kept.get(feed).is_some_and(is_stopped) {
            return false;
        }
        let lifted = marks.kept.remove(feed).map(Attempt::over);
        marks.unwritten.extend(lifted);
        true
    }

    /// Whether the store has still to be told anything.
    pub fn has_unwritten(&self) -> bool {
        !self.marks().unwritten.is_empty()
    }

    /// What the store is told next, which stays unwritten until it is stored.
    fn next_unwritten(&self) -> Option<Attempt> {
        self.marks().unwritten.first().cloned()
    }

    /// Tells the store which marks are others. Whether it could be told; if not, it is to be tried again.
    pub async fn flush(&self) -> bool {
        while let Some(attempt) = self.next_unwritten() {
            if let Err(error) = self.store.note_attempt(&attempt).await {
                tracing::error!(
                    error = in_words(&error),
                    "what polling remembers could not be stored"
                );
                return false;
            }
            self.marks().unwritten.retain(|unwritten| *unwritten != attempt);
        }
        true
    }

    /// The gateway stops in good order: the marks that are open are closed, which the store is to be told first.
    pub fn close(&self) {
        let mut marks = self.marks();
        let AttemptMarks { kept, unwritten } = &mut *marks;
        let open = kept.values_mut().filter(|attempt| attempt.is_open);
        let closed = open.map(|attempt| {
            attempt.is_open = false;
            attempt.clone()
        });
        unwritten.splice(0..0, closed);
    }
}
