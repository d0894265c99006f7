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

/// The marks, by feed: of documents that are being taken in, and of feeds in whose documents the gateway ended.
pub struct Attempts {
    store: Arc<Store>,
    marks: Mutex<BTreeMap<FeedName, Attempt>>,
}

impl Attempts {
    /// Without marks.
    pub fn new(store: Arc<Store>) -> Self {
        Self { store, marks: Mutex::default() }
    }

    /// The marks of some feeds. One that is open shows that a gateway ended in the document, which is counted.
    pub async fn read(
        store: &Store,
        is_wanted: impl Fn(&FeedName) -> bool,
    ) -> Result<Vec<Attempt>, StoreError> {
        let mut marks = store.attempts().await?;
        marks.retain(|mark| is_wanted(&mark.feed));
        for attempt in marks.iter_mut().filter(|mark| mark.is_open) {
            attempt.is_open = false;
            attempt.kills = attempt.kills.saturating_add(1);
            tracing::warn!(
                feed = %attempt.feed,
                entries = attempt.entries,
                kills = attempt.kills,
                "the gateway ended while it took in a large document"
            );
            write_or_warn(store, attempt).await;
        }
        Ok(marks)
    }

    /// Takes over the marks of feeds that this gateway polls from now on.
    pub fn take_over(&self, attempts: impl IntoIterator<Item = Attempt>) {
        self.marks.lock().extend(attempts.into_iter().map(|mark| (mark.feed.clone(), mark)));
    }

    /// Another gateway polls the feed from now on, which reads its mark in the store.
    pub fn forget(&self, feed: &FeedName) {
        self.marks.lock().remove(feed);
    }

    /// Why a feed is not polled, where the gateway ended too often in documents of it.
    pub fn stopped(&self, feed: &FeedName) -> Option<PollFailure> {
        let marks = self.marks.lock();
        let attempt = marks.get(feed).filter(|mark| mark.kills >= KILLS_BORNE)?;
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
        let kills = self.marks.lock().get(feed).map_or(0, |before| before.kills);
        let entries = u32::try_from(entries).unwrap_or(u32::MAX);
        let attempt = Attempt { feed: feed.clone(), entries, begun: now, kills, is_open: true };
        self.take_over([attempt.clone()]);
        self.store.note_attempt(&attempt).await?;
        Ok(Some(attempt))
    }

    /// Notes that the document of a mark is over, whatever came of it. A mark that the feed has of another one stays.
    pub async fn end(&self, mark: &Attempt) -> Result<(), StoreError> {
        let is_last = |marks: &BTreeMap<_, _>| marks.get(&mark.feed) == Some(mark);
        if !is_last(&self.marks.lock()) {
            return Ok(());
        }
        self.store.note_attempt(&mark.clone().over()).await?;
        let mut marks = self.marks.lock();
        // It may be another one meanwhile.
        if is_last(&marks) {
            marks.remove(&mark.feed);
        }
        Ok(())
    }

    /// An operator wants the feed polled, whatever happened. What tells the store of that, where it was stopped.
    pub fn lift(&self, feed: &FeedName) -> Option<impl Future<Output = ()> + Send + use<>> {
        let mut marks = self.marks.lock();
        let is_stopped = |mark: &Attempt| mark.kills >= KILLS_BORNE && !mark.is_open;
        let mark = marks.get(feed).is_some_and(is_stopped).then(|| marks.remove(feed)).flatten()?;
        let store = Arc::clone(&self.store);
        Some(async move { write_or_warn(&store, &mark.over()).await })
    }

    /// The gateway stops in good order: the marks that are open are closed.
    pub async fn close(&self) {
        let marks = std::mem::take(&mut *self.marks.lock());
        for mark in marks.into_values().filter(|mark| mark.is_open) {
            write_or_warn(&self.store, &Attempt { is_open: false, ..mark }).await;
        }
    }
}

async fn write_or_warn(store: &Store, mark: &Attempt) {
    if let Err(error) = store.note_attempt(mark).await {
        let error = in_words(&error);
        tracing::error!(feed = %mark.feed, error, "the mark of a large document could not be stored");
    }
}
