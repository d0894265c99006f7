//! Following a database that several gateways write: what each has in memory is what the database has numbered.
//!
//! A transaction notes which feeds it changed. Whoever looks numbers the notes that are committed and reads what those
//! feeds are now; so every gateway shows a change at most one look after any other, and an epoch is told once what it
//! announces is shown: by this gateway, and a moment later, when it is announced, by all. Content is read from the database as it is asked for, as of one moment.

use super::open::inspect;
use super::shared::StoreShared;
use super::{Opened, Records, StoreInner, open};
use crate::boot_time::since_boot;
use crate::engine::Class;
use crate::postgres::{Database, MemoryLook, let_go};
use crate::record::{IdentityRecord, StateRecord};
use crate::{Epoch, StoreError, in_words};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tidegate_core::model::FeedRecord;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, timeout};

/// How often the database is looked at while nobody asks.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How far apart looks begin that somebody asked for, so that many share one.
const LOOK_PACE: Duration = Duration::from_millis(5);
/// For how long what was seen is answered without another look: what one gateway shows, all show from then on.
pub const SHOWN_WITHIN: Duration = Duration::from_millis(300);
/// How long the database may be unseen before nothing is answered.
pub(super) const UNSEEN_LIMIT: Duration = Duration::from_secs(5);

/// What is known of a database that others write to as well.
pub(super) struct Following {
    /// Asks for a look.
    pub(super) asked: Notify,
    /// How many looks were begun.
    pub(super) begun: AtomicU64,
    /// The number of the last one that succeeded. Whoever looks has the sender: nobody waits for one that is gone.
    done: watch::Receiver<u64>,
    /// When that was begun, in milliseconds of [`since_boot`].
    pub(super) seen: AtomicU64,
    /// For how long a look is waited for.
    patience: Duration,
}

pub(super) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl Following {
    /// One that has just seen the database, and what says which look succeeded.
    pub(super) fn new(patience: Duration) -> (Arc<Self>, watch::Sender<u64>) {
        let (asked, begun, (looked, done)) = (Notify::new(), AtomicU64::new(0), watch::channel(0));
        (Arc::new(Self { asked, begun, done, seen: millis(since_boot()).into(), patience }), looked)
    }

    /// For how long the database was not seen.
    fn age(&self) -> Duration {
        let seen = self.seen.load(Ordering::Acquire);
        Duration::from_millis(millis(since_boot()).saturating_sub(seen))
    }

    /// The same, where that is too long.
    pub(super) fn unseen(&self) -> Option<Duration> {
        Some(self.age()).filter(|age| *age > UNSEEN_LIMIT)
    }

    /// An error where nothing may be answered, because the database was not seen for too long.
    pub(super) fn check_seen(&self) -> Result<(), StoreError> {
        let unseen = self.unseen();
        unseen.map_or(Ok(()), |unseen| Err(StoreError::Unseen { seconds: unseen.as_secs() }))
    }
}

impl StoreInner {
    /// Whether what is in memory is what the database had within [`SHOWN_WITHIN`].
    pub(super) fn is_current(&self) -> bool {
        self.following.as_ref().is_none_or(|following| following.age() <= SHOWN_WITHIN)
    }

    /// Shows what was committed when this was called, where others write to the database. Waits as long as it may be
    /// unseen.
    pub(super) async fn catch_up(&self) -> Result<(), StoreError> {
        let Some(following) = &self.following else { return Ok(()) };
        self.shared.health()?;
        drop(self.opened()?);
        // One that is under way may have missed what was committed since.
        let last = following.begun.load(Ordering::Acquire);
        let mut done = following.done.clone();
        following.asked.notify_one();
        if let Ok(Ok(_)) = timeout(following.patience, done.wait_for(|done| *done > last)).await {
            return Ok(());
        }
        self.shared.health().and_then(|()| self.opened().map(drop))?;
        Err(StoreError::Unseen { seconds: following.age().as_secs() })
    }
}

/// Reads everything that a gateway has in memory, as of one moment, and the number of the last note that it has. Blocks.
pub(crate) fn read_image(database: &Arc<Database>) -> Result<(Opened, i64), StoreError> {
    let (engine, position) = database.snapshot_with_position()?;
    let records = Records::of(Arc::new(engine));
    let mut found = inspect(&records)?;
    let missing = || records.damage("it does not say whose it is".to_owned());
    let identity = found.identity.take().ok_or_else(missing)?;
    Ok(((identity, found), position))
}

/// Follows a database, as long as the store is open, which alone holds it, and it can be believed.
pub(super) async fn follow(
    within: Weak<StoreInner>,
    database: Weak<Database>,
    (following, looked): (Arc<Following>, watch::Sender<u64>),
    mut position: i64,
) {
    let (mut told, mut is_failing): (Option<Epoch>, _) = (None, false);
    loop {
        let waiting = Instant::now();
        let is_asked = timeout(LOOK_EVERY, following.asked.notified()).await.is_ok();
        sleep(LOOK_PACE.saturating_sub(waiting.elapsed())).await;
        let Some(database) = database.upgrade() else { return };
        let shared = within.upgrade().map(|inner| Arc::clone(&inner.shared));
        let Some(shared) = shared else { return let_go(database) };
        let begun = since_boot();
        let number = following.begun.fetch_add(1, Ordering::AcqRel) + 1;
        let done = look(&shared, &database, &mut position, is_asked).await;
        match &done {
            Err(error) if !is_failing => {
                tracing::warn!(error = %in_words(error), "the database cannot be followed");
            }
            Ok(()) if is_failing => tracing::info!("the database is followed again"),
            _ => {}
        }
        if let Err(
            error @ (StoreError::Damaged { .. }
            | StoreError::Format { .. }
            | StoreError::WentBack { .. }),
        ) = &done
        {
            shared.end(database.shown(), error);
            // Others poll what was this gateway's.
            database.gateways().set_polls(false);
            return let_go(database);
        }
        is_failing = done.is_err();
        let newest = *shared.sealed.borrow();
        if told.replace(newest) != Some(newest) {
            announce_later(&shared, newest);
        }
        if !is_failing {
            following.seen.store(millis(begun), Ordering::Release);
            looked.send_replace(number);
        }
        let_go(database);
    }
}

/// Announces an epoch once no gateway answers any more with what it had in memory before that.
fn announce_later(shared: &Arc<StoreShared>, epoch: Epoch) {
    let shared = Arc::clone(shared);
    tokio::spawn(async move {
        sleep(SHOWN_WITHIN).await;
        let tell = |told: &mut Epoch| std::mem::replace(told, epoch.max(*told)) < epoch;
        shared.announced.send_if_modified(tell);
    });
}

/// Shows what was committed until now. `numbers`: notes are numbered first, whether there are any or not.
async fn look(
    shared: &Arc<StoreShared>,
    database: &Arc<Database>,
    position: &mut i64,
    numbers: bool,
) -> Result<(), StoreError> {
    let mut seen = database.look(*position, numbers).await?;
    if seen.has_more {
        seen = database.look(*position, true).await?;
    }
    let records = Records::of(Arc::new(database.engine()));
    let went_back = || StoreError::WentBack { database: database.shown().to_owned() };
    if seen.position < *position {
        return Err(went_back());
    }
    let is_forgotten = *position < seen.forgotten;
    if is_forgotten || seen.entries.iter().any(|entry| entry.key.is_empty()) {
        let reading = Arc::clone(database);
        let image = tokio::task::spawn_blocking(move || read_image(&reading)).await;
        let image = image.unwrap_or_else(|error| {
            Err(StoreError::failed("read what is kept in memory", error))
        })?;
        let (opened, at) = image;
        shared.replace(opened);
        *position = at;
        return Ok(());
    }
    if !show(shared, &records, &seen)? {
        return Err(went_back());
    }
    *position = seen.position;
    Ok(())
}

/// Shows what a look saw. The epoch comes last: whoever hears of it finds the states that it announces. Returns false
/// where a feed is at an earlier revision than it was shown at.
fn show(shared: &StoreShared, records: &Records, seen: &MemoryLook) -> Result<bool, StoreError> {
    let (mut heads, mut listed) = (Vec::new(), Vec::new());
    for entry in &seen.entries {
        let key = &entry.key;
        if key.as_slice() == open::IDENTITY_KEY {
            if let Some(value) = &entry.identity {
                let identity: IdentityRecord = records.decode(Class::Gateway, key, value)?;
                shared.open_as(identity);
            }
            continue;
        }
        let feed = open::name(records, key)?;
        let head = entry.state.as_ref();
        let head: Option<StateRecord> =
            head.map(|value| records.decode(Class::States, key, value)).transpose()?;
        let record = entry.record.as_ref();
        let record: Option<FeedRecord> =
            record.map(|value| records.decode(Class::Feeds, key, value)).transpose()?;
        heads.push((feed.clone(), head));
        listed.push((feed, record.map(Arc::new)));
    }
    shared.change_list(listed);
    for (feed, head) in heads {
        let found = head.as_ref().map(|head| (head.state.revision, head.write));
        let shown = shared.published(&feed).map(|shown| (shown.revision, shown.write));
        if found.zip(shown).is_some_and(|((found, _), (shown, _))| found < shown) {
            return Ok(false);
        }
        if shown.is_none() || found != shown {
            shared.publish(&feed, head);
        }
    }
    let epoch = Epoch(seen.epoch);
    shared.sealed.send_if_modified(|sealed| std::mem::replace(sealed, epoch.max(*sealed)) < epoch);
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::{SHOWN_WITHIN, UNSEEN_LIMIT};
    use crate::condition::CLOCK_LIMIT;
    use std::time::Duration;
    use tidegate_core::sup::GATEWAYS_APART;

    #[test]
    fn sup_documents_allow_for_what_gateways_are_apart() {
        let clocks = 2 * Duration::from_millis(CLOCK_LIMIT);
        assert!(clocks + UNSEEN_LIMIT + SHOWN_WITHIN < GATEWAYS_APART);
    }
}
