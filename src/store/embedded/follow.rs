//! Follows a database that several gateways write: updates the copy in memory from the numbered notes of changes.
//!
//! A transaction notes the feeds that it changed. A refresh numbers the committed notes and reads the present records
//! of those feeds. So a change shows at every gateway at most one refresh later than at any other. An epoch is
//! visible here once its changes are, and announced a moment later, when all gateways show them. Content is read from
//! a snapshot of the database when a reader asks for it.

use super::open::inspect;
use super::shared::StoreShared;
use super::{Opened, Records, StoreInner, open};
use crate::boot_time::since_boot;
use crate::condition::CLOCK_LIMIT;
use crate::engine::Class;
use crate::postgres::{Database, SeenNotes, release_database};
use crate::record::{IdentityRecord, StateRecord};
use crate::{Epoch, StoreError, in_words};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tidegate_core::model::FeedRecord;
use tidegate_core::sup::GATEWAYS_APART;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, timeout};

/// The pause between refreshes that no caller asked for.
const REFRESH_EVERY: Duration = Duration::from_millis(100);
/// The least time between refreshes that callers ask for, so that many callers share one.
const REFRESH_PACE: Duration = Duration::from_millis(5);
/// How long the copy in memory is answered without another refresh: the longest time until all gateways show a
/// change.
pub const SHOWN_WITHIN: Duration = Duration::from_millis(300);
/// How long refreshes may fail before requests are refused.
pub(super) const UNSEEN_LIMIT: Duration = Duration::from_secs(5);

// SUP documents allow for how far apart gateways are, and twice their clocks.
const _: () = assert!(
    Duration::from_millis(2 * CLOCK_LIMIT).as_millis()
        + UNSEEN_LIMIT.as_millis()
        + SHOWN_WITHIN.as_millis()
        < GATEWAYS_APART.as_millis()
);

/// How current the copy in memory is.
pub(super) struct Following {
    /// Wakes the task that refreshes.
    pub(super) asked: Notify,
    /// The number of refreshes begun.
    pub(super) begun: AtomicU64,
    /// The number of the last refresh that succeeded. The refreshing task owns the sender, so waiting ends when that
    /// task does.
    done: watch::Receiver<u64>,
    /// When that refresh began, in milliseconds of [`since_boot`].
    pub(super) seen: AtomicU64,
    /// How long callers wait for a refresh.
    patience: Duration,
}

pub(super) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl Following {
    /// A copy that was read just now, and the sender of the numbers of successful refreshes.
    pub(super) fn new(patience: Duration) -> (Arc<Self>, watch::Sender<u64>) {
        let (asked, begun, (sender, done)) = (Notify::new(), AtomicU64::new(0), watch::channel(0));
        (Arc::new(Self { asked, begun, done, seen: millis(since_boot()).into(), patience }), sender)
    }

    /// The age of the copy in memory.
    fn age(&self) -> Duration {
        let seen = self.seen.load(Ordering::Acquire);
        Duration::from_millis(millis(since_boot()).saturating_sub(seen))
    }

    /// The age of the copy, where it is too old to be answered.
    pub(super) fn unseen(&self) -> Option<Duration> {
        Some(self.age()).filter(|age| *age > UNSEEN_LIMIT)
    }

    /// An error where the copy is too old to be answered.
    pub(super) fn check_seen(&self) -> Result<(), StoreError> {
        let unseen = self.unseen();
        unseen.map_or(Ok(()), |unseen| Err(StoreError::Unseen { seconds: unseen.as_secs() }))
    }
}

impl StoreInner {
    /// Whether the copy in memory is at most [`SHOWN_WITHIN`] old.
    pub(super) fn is_current(&self) -> bool {
        self.following.as_ref().is_none_or(|following| following.age() <= SHOWN_WITHIN)
    }

    /// Waits until every change that was committed before this call is shown, where other gateways write to the
    /// database.
    pub(super) async fn catch_up(&self) -> Result<(), StoreError> {
        let Some(following) = &self.following else { return Ok(()) };
        self.shared.health()?;
        drop(self.opened()?);
        // A refresh that has already begun may have missed the latest commit.
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

/// Reads the records that a gateway keeps in memory from one snapshot, and the number of its last note. Blocks.
pub(crate) fn read_image(database: &Arc<Database>) -> Result<(Opened, i64), StoreError> {
    let (engine, position) = database.snapshot_with_position()?;
    let records = Records::new(Arc::new(engine));
    let mut found = inspect(&records)?;
    let missing = || records.damage("it does not say whose it is".to_owned());
    let identity = found.identity.take().ok_or_else(missing)?;
    Ok(((identity, found), position))
}

/// Refreshes until the store is dropped, which alone owns the database, or the database turns out to be damaged.
pub(super) async fn follow(
    within: Weak<StoreInner>,
    database: Weak<Database>,
    (following, sender): (Arc<Following>, watch::Sender<u64>),
    mut position: i64,
) {
    let (mut told, mut is_failing): (Option<Epoch>, _) = (None, false);
    loop {
        let waiting = Instant::now();
        let is_asked = timeout(REFRESH_EVERY, following.asked.notified()).await.is_ok();
        sleep(REFRESH_PACE.saturating_sub(waiting.elapsed())).await;
        let Some(database) = database.upgrade() else { return };
        let shared = within.upgrade().map(|inner| Arc::clone(&inner.shared));
        let Some(shared) = shared else { return release_database(database) };
        let begun = since_boot();
        let number = following.begun.fetch_add(1, Ordering::AcqRel) + 1;
        let done = refresh(&shared, &database, &mut position, is_asked).await;
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
            // Hands the polling of this gateway's feeds to the others.
            database.gateways().set_polls(false);
            return release_database(database);
        }
        is_failing = done.is_err();
        let newest = *shared.newest.borrow();
        if told.replace(newest) != Some(newest) {
            announce_later(&shared, newest);
        }
        if !is_failing {
            following.seen.store(millis(begun), Ordering::Release);
            sender.send_replace(number);
        }
        release_database(database);
    }
}

/// Announces an epoch once no gateway answers from an older copy.
fn announce_later(shared: &Arc<StoreShared>, epoch: Epoch) {
    let shared = Arc::clone(shared);
    tokio::spawn(async move {
        sleep(SHOWN_WITHIN).await;
        let tell = |told: &mut Epoch| std::mem::replace(told, epoch.max(*told)) < epoch;
        shared.announced.send_if_modified(tell);
    });
}

/// Updates the copy in memory. `numbers`: number the committed notes first, even if there are none.
async fn refresh(
    shared: &Arc<StoreShared>,
    database: &Arc<Database>,
    position: &mut i64,
    numbers: bool,
) -> Result<(), StoreError> {
    let mut seen = database.read_notes(*position, numbers).await?;
    if seen.has_more {
        seen = database.read_notes(*position, true).await?;
    }
    let records = Records::new(Arc::new(database.engine()));
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

/// Publishes the noted changes. The epoch comes last: its listeners find the states that it announces. Returns false
/// where a feed is at an earlier revision than it was shown at.
fn show(shared: &StoreShared, records: &Records, seen: &SeenNotes) -> Result<bool, StoreError> {
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
    shared.newest.send_if_modified(|newest| std::mem::replace(newest, epoch.max(*newest)) < epoch);
    Ok(true)
}
