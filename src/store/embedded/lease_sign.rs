//! Whether a gateway over a database that others may take still answers from memory.
//!
//! A process that was paused for longer than its lease (a stopped machine) cannot know whether another gateway
//! has written since. It finds out with its next sign of life; until then nothing is answered.

use crate::{DatabaseOwner, StoreError};
use rustix::time::{ClockId, clock_gettime};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::sleep;

/// How long a read goes on where the database is known to be silent, or another gateway's.
const SILENT_READ_TIME: Duration = Duration::from_secs(2);

/// How long another gateway counts that is not seen any more.
const OTHERS_REMEMBERED: Duration = Duration::from_secs(600);

/// The time since the machine was started. It goes on while the machine is suspended.
pub(crate) fn since_boot() -> Duration {
    let now = clock_gettime(ClockId::Boottime);
    let seconds = u64::try_from(now.tv_sec).unwrap_or_default();
    Duration::from_secs(seconds) + Duration::from_nanos(u64::try_from(now.tv_nsec).unwrap_or(0))
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(LeaseSign::LOST - 1)
}

/// What the last signs of life said of a lease. Times are of [`since_boot`].
pub(crate) struct LeaseSign {
    /// For how long one is good.
    limit: Duration,
    /// When the last one was, in milliseconds; [`LeaseSign::LOST`] where another gateway has the database.
    last: AtomicU64,
    /// When the last one was that the database answered.
    answered: AtomicU64,
    owner: Mutex<Option<DatabaseOwner>>,
    /// When other gateways were seen last, which take the database once this one is silent; [`LeaseSign::NEVER`] where
    /// they never were.
    others: AtomicU64,
}

impl LeaseSign {
    /// No time.
    const LOST: u64 = u64::MAX;
    const NEVER: u64 = u64::MAX;

    /// One that is good until `limit` from now.
    pub(crate) fn new(limit: Duration) -> Self {
        let now = millis(since_boot());
        let (owner, others) = (Mutex::default(), Self::NEVER.into());
        Self { limit, last: now.into(), answered: now.into(), owner, others }
    }

    /// Notes that the database was this process's at `begun`.
    pub(crate) fn held(&self, begun: Duration) {
        *self.owner.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.answered(begun);
        self.last.store(millis(begun), Ordering::Release);
    }

    /// Notes that the database knows at `begun` that this process lives.
    pub(crate) fn answered(&self, begun: Duration) {
        self.answered.store(millis(begun), Ordering::Release);
    }

    /// When the database answered last that it knows that this process lives.
    pub(crate) fn last_answer(&self) -> Duration {
        Duration::from_millis(self.answered.load(Ordering::Acquire))
    }

    /// Notes that at `seen` other gateways were there, as far as the database says.
    pub(crate) fn note_others(&self, seen: Duration) {
        self.others.store(millis(seen), Ordering::Release);
    }

    /// Whether other gateways were seen lately. One that was may only be cut off for a while, as this one is.
    fn has_others(&self, now: Duration) -> bool {
        let seen = self.others.load(Ordering::Acquire);
        let since = millis(now).saturating_sub(seen);
        seen != Self::NEVER && since <= millis(OTHERS_REMEMBERED)
    }

    /// Notes that the database could not be asked. Only a process that was not paused for longer than its lease, and
    /// that is alone, knows that it has the database as before: what it has in memory is what it has made public.
    /// Another gateway may be the one that reaches the database, and has taken it by now.
    pub(crate) fn not_answered(&self) {
        let now = since_boot();
        if self.is_good() && !self.has_others(now) {
            self.last.store(millis(now), Ordering::Release);
        }
    }

    /// Notes that another gateway has it, or `is_gone`: had it, and answers which. One without a name is the one that
    /// was known.
    pub(crate) fn lost(&self, name: String, is_gone: bool) -> DatabaseOwner {
        let mut owner = self.owner.lock().unwrap_or_else(PoisonError::into_inner);
        let known = owner.take().map(|owner| owner.name);
        let name = if name.is_empty() { known.unwrap_or_default() } else { name };
        let lost_to = DatabaseOwner { name, is_gone };
        *owner = Some(lost_to.clone());
        self.last.store(Self::LOST, Ordering::Release);
        lost_to
    }

    /// The gateway that has it, where that is another one.
    pub(super) fn owner(&self) -> Option<DatabaseOwner> {
        self.owner.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether nobody else can have written.
    pub(super) fn is_good(&self) -> bool {
        let last = self.last.load(Ordering::Acquire);
        let since = millis(since_boot()).saturating_sub(last);
        last != Self::LOST && since <= millis(self.limit)
    }

    /// For how long the database has not answered, where that is longer than a sign is good.
    pub(crate) fn unanswered(&self) -> Option<Duration> {
        let since = millis(since_boot()).saturating_sub(self.answered.load(Ordering::Acquire));
        let since = Duration::from_millis(since);
        (since > self.limit).then_some(since)
    }

    /// Why what is read is not waited for: another gateway has the database, or it is silent.
    fn vain_read(&self) -> Option<StoreError> {
        let overtaken = self.owner().map(|owner| StoreError::Overtaken { owner });
        let unseen = |silent: Duration| StoreError::Unseen { seconds: silent.as_secs() };
        overtaken.or_else(|| self.unanswered().map(unseen))
    }

    /// Ends once the database was known for [`SILENT_READ_TIME`] to be silent or another gateway's, with what whoever
    /// reads is told. Nobody who reads waits longer than this.
    pub(crate) async fn reads_end(&self) -> StoreError {
        let mut was_vain = self.vain_read().is_some();
        loop {
            sleep(SILENT_READ_TIME).await;
            match self.vain_read() {
                Some(why) if was_vain => return why,
                why => was_vain = why.is_some(),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::{Instant, timeout};

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn a_sign_is_good_until_it_is_old_or_another_has_the_database() {
        let sign = LeaseSign::new(LONG);
        assert!(sign.is_good());
        let another = |is_gone| Some(DatabaseOwner { name: "another".to_owned(), is_gone });
        sign.lost("another".to_owned(), false);
        assert!(!sign.is_good());
        assert_eq!(sign.owner(), another(false));
        sign.lost(String::new(), true);
        assert_eq!(sign.owner(), another(true));
        sign.not_answered();
        assert!(!sign.is_good());
        sign.held(since_boot());
        assert!(sign.is_good() && sign.owner().is_none());
    }

    #[test]
    fn a_gateway_beside_others_is_not_good_once_the_database_is_silent() {
        let sign = LeaseSign::new(Duration::from_millis(500));
        sign.note_others(since_boot());
        std::thread::sleep(Duration::from_millis(300));
        sign.not_answered();
        assert!(sign.is_good());
        std::thread::sleep(Duration::from_millis(300));
        assert!(!sign.is_good());
        let alone = LeaseSign::new(Duration::from_millis(500));
        std::thread::sleep(Duration::from_millis(300));
        alone.not_answered();
        std::thread::sleep(Duration::from_millis(300));
        assert!(alone.is_good());
    }

    /// One that is not seen any more may be cut off for a while, and take the database before this one reaches it again.
    #[test]
    fn others_count_for_a_while_after_they_were_seen() {
        let (sign, seen) = (LeaseSign::new(LONG), since_boot());
        assert!(!sign.has_others(seen));
        sign.note_others(seen);
        assert!(sign.has_others(seen + OTHERS_REMEMBERED));
        assert!(!sign.has_others(seen + OTHERS_REMEMBERED + Duration::from_secs(1)));
    }

    #[test]
    fn a_process_that_was_paused_is_not_good_before_the_database_has_answered() {
        let sign = LeaseSign::new(Duration::from_secs(1));
        // It was not paused: its memory is good, and it says that the database is away.
        for _ in 0..12 {
            std::thread::sleep(Duration::from_millis(100));
            sign.not_answered();
            assert!(sign.is_good());
        }
        assert!(sign.unanswered().is_some());
        sign.held(since_boot());
        assert!(sign.unanswered().is_none());
        // It was: neither a look that fails nor one that was begun before says anything.
        std::thread::sleep(Duration::from_millis(1_100));
        sign.not_answered();
        assert!(!sign.is_good());
        sign.held(since_boot() - Duration::from_millis(1_100));
        assert!(!sign.is_good());
        sign.held(since_boot());
        assert!(sign.is_good());
    }

    #[tokio::test(start_paused = true)]
    async fn a_read_is_not_waited_for_once_the_database_is_known_to_be_silent() {
        // The time since boot goes on by itself.
        let (sign, long_ago) = (LeaseSign::new(LONG / 10), || since_boot() - LONG / 5);
        assert!(timeout(100 * SILENT_READ_TIME, sign.reads_end()).await.is_err());
        sign.answered(long_ago());
        let begun = Instant::now();
        let told = sign.reads_end().await;
        let is_long = |seconds: u64| seconds >= (LONG / 5).as_secs();
        assert!(matches!(told, StoreError::Unseen { seconds } if is_long(seconds)), "{told}");
        assert!(begun.elapsed() < SILENT_READ_TIME * 3 / 2, "{:?}", begun.elapsed());
        // It becomes known while somebody waits.
        sign.answered(since_boot());
        let becoming = async {
            sleep(SILENT_READ_TIME * 5 / 2).await;
            sign.answered(long_ago());
        };
        let begun = Instant::now();
        tokio::join!(sign.reads_end(), becoming);
        assert!(begun.elapsed() < 5 * SILENT_READ_TIME, "{:?}", begun.elapsed());
    }

    /// It may have been asked for on a connection that nobody answers any more.
    #[tokio::test(start_paused = true)]
    async fn a_read_is_not_waited_for_once_another_gateway_has_the_database() {
        let sign = LeaseSign::new(LONG);
        sign.lost("another".to_owned(), false);
        let told = timeout(2 * SILENT_READ_TIME, sign.reads_end()).await.unwrap();
        let is_overtaken = |by: &DatabaseOwner| by.name == "another" && !by.is_gone;
        assert!(matches!(&told, StoreError::Overtaken { owner } if is_overtaken(owner)), "{told}");
        sign.held(since_boot());
        assert!(timeout(100 * SILENT_READ_TIME, sign.reads_end()).await.is_err());
    }
}
