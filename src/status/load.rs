//! How hard pressed the gateway is, and what it leaves for later then.
//!
//! Two delays tell: by how much too late a task wakes that sleeps, which is what all wait for a processor, and how long
//! commits of polls take to be durable, which is what they wait for the disk. Of each the least counts that was seen in
//! [`WINDOW`]: a burst delays much for a moment and is over, and only a load that does not end delays all of them.
//!
//! What readers and aggregators count on is never left: acknowledged commits, reads from caches, SUP, events.

mod meter;

use self::meter::LoadMeter;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

/// How often it is looked how late a task wakes.
pub const TICK: Duration = Duration::from_millis(250);
/// Over how long the least delay counts.
pub const WINDOW: Duration = Duration::from_secs(5);

/// What is left for later, the first one first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Deferrable {
    /// Asking for the pages of missing items.
    Probe,
    /// Walking through publishers' older documents.
    Backfill,
    /// Making complete views that no cache has: 503.
    CompleteView,
    /// Taking in feeds that were never polled.
    NewFeed,
    /// Polling as many feeds at a time as is configured: a quarter of them are.
    Poll,
}

impl Deferrable {
    /// All, in the order in which they are left.
    pub const ALL: [Self; 5] =
        [Self::Probe, Self::Backfill, Self::CompleteView, Self::NewFeed, Self::Poll];

    /// Its name in metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Probe => "probes",
            Self::Backfill => "backfill",
            Self::CompleteView => "complete_views",
            Self::NewFeed => "new_feeds",
            Self::Poll => "polls",
        }
    }
}

/// How hard pressed the gateway is. Shared by all who leave something for later.
#[derive(Debug)]
pub struct Load {
    /// How many of [`Deferrable::ALL`] are left for later.
    level: AtomicU8,
    /// How often each was.
    deferred: [AtomicU64; Deferrable::ALL.len()],
    /// The shortest wait for a commit since the last look, in microseconds, and how many commits there were.
    least_commit: AtomicU64,
    commits: AtomicU32,
}

impl Default for Load {
    fn default() -> Self {
        Self {
            level: AtomicU8::new(0),
            deferred: Default::default(),
            least_commit: AtomicU64::new(u64::MAX),
            commits: AtomicU32::new(0),
        }
    }
}

impl Load {
    /// Whether this is left for later, which is counted.
    pub fn defers(&self, what: Deferrable) -> bool {
        let is_left = self.is_left(what);
        if is_left && let Some(count) = self.deferred.get(what as usize) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        is_left
    }

    /// Whether this is left for later, for who only asks.
    pub fn is_left(&self, what: Deferrable) -> bool {
        usize::from(self.level()) > what as usize
    }

    /// How many of [`Deferrable::ALL`] are left for later.
    pub fn level(&self) -> u8 {
        self.level.load(Ordering::Relaxed)
    }

    /// How often each was left, since the start.
    pub fn deferred(&self) -> impl Iterator<Item = (Deferrable, u64)> {
        let counts = self.deferred.iter().map(|count| count.load(Ordering::Relaxed));
        Deferrable::ALL.into_iter().zip(counts)
    }

    /// A commit of a poll took so long to be durable.
    pub fn committed(&self, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.least_commit.fetch_min(micros, Ordering::Relaxed);
        self.commits.fetch_add(1, Ordering::Relaxed);
    }

    /// Sets what is left for later; for tests, and for [`Load::watch`].
    pub fn set(&self, level: u8) {
        self.level.store(level, Ordering::Relaxed);
    }

    /// Measures until it is cancelled.
    pub async fn watch(&self, cancel: CancellationToken) {
        let mut meter = LoadMeter::default();
        let mut wake = Instant::now() + TICK;
        while cancel.run_until_cancelled(sleep_until(wake)).await.is_some() {
            let late = Instant::now().saturating_duration_since(wake);
            wake = Instant::now() + TICK;
            let commits = self.commits.swap(0, Ordering::Relaxed);
            let least = self.least_commit.swap(u64::MAX, Ordering::Relaxed);
            let commit = (commits > 0).then(|| Duration::from_micros(least));
            let (before, level) = (self.level(), meter.add(late, commit));
            self.set(level);
            match Deferrable::ALL.get(usize::from(level.max(before)).saturating_sub(1)) {
                Some(what) if level > before => {
                    tracing::warn!(
                        level,
                        last = what.name(),
                        "the gateway is hard pressed and leaves more for later"
                    );
                }
                Some(_) if level == 0 && before > 0 => {
                    tracing::info!("the gateway leaves nothing for later any more");
                }
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_left_in_their_order_and_counted() {
        let load = Load::default();
        assert!(Deferrable::ALL.into_iter().all(|what| !load.defers(what)));
        for (at, last) in Deferrable::ALL.into_iter().enumerate() {
            load.set(u8::try_from(at).unwrap() + 1);
            for what in Deferrable::ALL {
                assert_eq!(load.is_left(what), what <= last, "{what:?} at {last:?}");
            }
        }
        load.set(2);
        assert!(load.defers(Deferrable::Backfill) && !load.defers(Deferrable::CompleteView));
        let counts: Vec<u64> = load.deferred().map(|(_, count)| count).collect();
        assert_eq!(counts, [0, 1, 0, 0, 0]);
    }

    #[tokio::test(start_paused = true)]
    async fn slow_commits_raise_it_and_quiet_lowers_it() {
        let load = std::sync::Arc::new(Load::default());
        let cancel = CancellationToken::new();
        let (watched, until) = (std::sync::Arc::clone(&load), cancel.clone());
        let task = tokio::spawn(async move { watched.watch(until).await });
        for _ in 0..60 {
            load.committed(Duration::from_secs(5));
            tokio::time::sleep(TICK).await;
        }
        assert!(load.is_left(Deferrable::Backfill) && !load.is_left(Deferrable::CompleteView));
        tokio::time::sleep(WINDOW * 4).await;
        assert_eq!(load.level(), 0);
        cancel.cancel();
        task.await.unwrap();
    }
}
