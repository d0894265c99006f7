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
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tidegate_core::model::FeedRecord;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep, timeout};

/// How often the database is looked at while nobody asks.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How far apart looks begin that somebody asked for, so that many share one.
const LOOK_PACE: Duration = Duration::from_millis(5);
/// For how long what was seen is answered without another look: what one gateway shows, all show from then on.
pub const SHOWN_WITHIN: Duration = Duration::from_millis(300);
/// How long the database may be unseen before nothing is answered.
pub(super) const UNSEEN_LIMIT: Duration = Duration::from_secs(5);
/// The pause after a look that failed.
const LOOK_PAUSE: Duration = Duration::from_millis(100);
/// The most that wait for a look.
const LOOK_READERS: usize = 4096;

/// Asks for a look; answers whether there was one.
pub(super) type LookRequest = oneshot::Sender<bool>;

/// What is known of a database that others write to as well.
pub(super) struct Following {
    looks: mpsc::Sender<LookRequest>,
    /// When the last look that succeeded was begun, in milliseconds of [`since_boot`].
    pub(super) seen: AtomicU64,
    is_failing: AtomicBool,
    /// For how long a look is waited for.
    patience: Duration,
}

pub(super) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl Following {
    /// One that has just seen the database, and the looks that it is asked for.
    pub(super) fn new(patience: Duration) -> (Arc<Self>, mpsc::Receiver<LookRequest>) {
        let (looks, requests) = mpsc::channel(LOOK_READERS);
        let (seen, is_failing) = (millis(since_boot()).into(), AtomicBool::new(false));
        (Arc::new(Self { looks, seen, is_failing, patience }), requests)
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

    /// Notes how a look went that was begun at `begun`.
    fn looked(&self, begun: Duration, done: &Result<(), StoreError>) {
        if done.is_ok() {
            self.seen.store(millis(begun), Ordering::Release);
        }
        let was_failing = self.is_failing.swap(done.is_err(), Ordering::AcqRel);
        match done {
            Err(error) if !was_failing => {
                tracing::warn!(error = %in_words(error), "the database cannot be followed");
            }
            Ok(()) if was_failing => tracing::info!("the database is followed again"),
            _ => {}
        }
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
        let begun = Instant::now();
        loop {
            self.shared.health()?;
            drop(self.opened()?);
            let (reply, answer) = oneshot::channel();
            let left = following.patience.saturating_sub(begun.elapsed());
            let looked = async {
                following.looks.send(reply).await.map_err(|_| StoreError::Closed)?;
                Ok(answer.await.unwrap_or_default())
            };
            match timeout(left, looked).await {
                Ok(Ok(true)) => return Ok(()),
                Ok(Err(error)) => return Err(error),
                Ok(Ok(false)) if begun.elapsed() + LOOK_PAUSE < following.patience => {
                    sleep(LOOK_PAUSE).await;
                }
                _ => return Err(StoreError::Unseen { seconds: following.age().as_secs() }),
            }
        }
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

/// Follows a database, as long as the store is open, which alone holds it.
pub(super) async fn follow(
    within: Weak<StoreInner>,
    database: Weak<Database>,
    following: Arc<Following>,
    mut requests: mpsc::Receiver<LookRequest>,
    mut position: i64,
) {
    let mut told: Option<Epoch> = None;
    loop {
        let mut waiting = Vec::new();
        let begun = Instant::now();
        match timeout(LOOK_EVERY, requests.recv()).await {
            Ok(Some(first)) => waiting.push(first),
            Ok(None) => return,
            Err(_) => {}
        }
        sleep(LOOK_PACE.saturating_sub(begun.elapsed())).await;
        while let Ok(next) = requests.try_recv() {
            waiting.push(next);
        }
        let Some(database) = database.upgrade() else { return };
        let shared = within.upgrade().map(|inner| Arc::clone(&inner.shared));
        let Some(shared) = shared else { return let_go(database) };
        let begun = since_boot();
        let done = match shared.health() {
            Ok(()) => look(&shared, &database, &mut position, !waiting.is_empty()).await,
            Err(error) => Err(error),
        };
        if let Err(error @ (StoreError::Damaged { .. } | StoreError::Format { .. })) = &done {
            shared.end(database.shown(), error);
            // Others poll what was this gateway's.
            database.gateways().set_polls(false);
        }
        following.looked(begun, &done);
        let newest = *shared.sealed.borrow();
        if told.replace(newest) != Some(newest) {
            announce_later(&shared, newest);
        }
        for reply in waiting {
            let _ = reply.send(done.is_ok());
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
    if seen.position < *position {
        let what = "it went back behind what was shown: restart every gateway".to_owned();
        return Err(records.damage(what));
    }
    let is_forgotten = *position < seen.forgotten;
    if is_forgotten || seen.entries.iter().any(|entry| entry.key.is_empty()) {
        let reading = Arc::clone(database);
        let image = tokio::task::spawn_blocking(move || read_image(&reading)).await;
        let image = image.unwrap_or_else(|error| {
            let source = std::io::Error::other(error);
            Err(StoreError::Io { doing: "read what is kept in memory", source })
        })?;
        let (opened, at) = image;
        shared.replace(opened);
        *position = at;
        return Ok(());
    }
    show(shared, &records, &seen)?;
    *position = seen.position;
    Ok(())
}

/// Shows what a look saw. The epoch comes last: whoever hears of it finds the states that it announces.
fn show(shared: &StoreShared, records: &Records, seen: &MemoryLook) -> Result<(), StoreError> {
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
        let is_shown = shared.published(&feed).is_some_and(|shown| {
            let shown = (shown.revision, shown.write);
            head.as_ref().is_some_and(|head| shown == (head.state.revision, head.write))
        });
        if !is_shown {
            shared.publish(&feed, head);
        }
    }
    let epoch = Epoch(seen.epoch);
    shared.sealed.send_if_modified(|sealed| std::mem::replace(sealed, epoch.max(*sealed)) < epoch);
    Ok(())
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
