//! Large documents that the gateway was killed in: a mark is written before each, and a feed in whose
//! documents it ended twice is not polled until an operator says so.

use super::turns::LARGE_ENTRIES;
use crate::fetch::FetchBlame;
use crate::model::{Attempt, FeedName, Time};
use crate::status::PollFailure;
use crate::store::{Store, StoreError};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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
    /// Those that are to be taken out of the store.
    lifted: Vec<Attempt>,
}

impl Attempts {
    /// Reads the marks. One that is open shows that the gateway ended in the document.
    pub async fn load(store: Arc<dyn Store>) -> Result<Self, StoreError> {
        let mut kept = BTreeMap::new();
        for mut attempt in store.attempts().await? {
            if std::mem::take(&mut attempt.is_open) {
                attempt.kills = attempt.kills.saturating_add(1);
                store.note_attempt(&attempt).await?;
                tracing::warn!(
                    feed = %attempt.feed,
                    entries = attempt.entries,
                    kills = attempt.kills,
                    "the gateway ended while it took in a large document"
                );
            }
            kept.insert(attempt.feed.clone(), attempt);
        }
        Ok(Self { store, marks: Mutex::new(AttemptMarks { kept, lifted: Vec::new() }) })
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

    /// Notes that a document is begun, where it is so large that it needs a mark.
    pub async fn begin(
        &self,
        feed: &FeedName,
        entries: usize,
        now: Time,
    ) -> Result<(), StoreError> {
        if entries <= LARGE_ENTRIES {
            return Ok(());
        }
        let attempt = {
            let mut marks = self.marks();
            marks.lifted.retain(|lifted| lifted.feed != *feed);
            let kills = marks.kept.get(feed).map_or(0, |before| before.kills);
            let entries = u32::try_from(entries).unwrap_or(u32::MAX);
            let feed = feed.clone();
            let attempt = Attempt { feed, entries, begun: now, kills, is_open: true };
            marks.kept.insert(attempt.feed.clone(), attempt.clone());
            attempt
        };
        self.store.note_attempt(&attempt).await
    }

    /// Notes that it is over, whatever came of it.
    pub async fn end(&self, feed: &FeedName) -> Result<(), StoreError> {
        let open = {
            let mut marks = self.marks();
            let is_open = marks.kept.get(feed).is_some_and(|attempt| attempt.is_open);
            if is_open { marks.kept.remove(feed) } else { None }
        };
        match open {
            Some(attempt) => {
                let over = attempt.over();
                let noted = self.store.note_attempt(&over).await;
                // A store that cannot be written now can be later: the mark must not outlive the document.
                noted.inspect_err(|_| self.marks().lifted.push(over))
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
        marks.lifted.extend(lifted);
        true
    }

    /// Takes the marks that were lifted out of the store. What cannot be written is tried again.
    pub async fn flush(&self) {
        let lifted = std::mem::take(&mut self.marks().lifted);
        for attempt in lifted {
            if let Err(error) = self.store.note_attempt(&attempt).await {
                tracing::error!(%error, "what polling remembers could not be stored");
                self.marks().lifted.push(attempt);
            }
        }
    }

    /// Closes the marks that are open: the gateway stops in good order.
    pub async fn close(&self) {
        let open: Vec<Attempt> = {
            let mut marks = self.marks();
            let open = marks.kept.values_mut().filter(|attempt| attempt.is_open);
            open.map(|attempt| {
                attempt.is_open = false;
                attempt.clone()
            })
            .collect()
        };
        for attempt in open {
            if let Err(error) = self.store.note_attempt(&attempt).await {
                tracing::error!(%error, "what polling remembers could not be stored");
            }
        }
        self.flush().await;
    }
}
