//! The turns of those who read: so many at a time. Reads that a database leaves without an answer keep those that wait
//! for a turn no longer than [`STANDSTILL`].

use crate::StoreError;
use crate::error::AWAY;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep};

/// The most reads at a time.
pub(super) const READS: u32 = 16;
/// A read that waits for its turn gives up once no other one has ended for so long that did not take as long itself.
const STANDSTILL: Duration = Duration::from_secs(10);

/// The turns that there are.
pub(super) struct ReadTurns {
    free: Arc<Semaphore>,
    /// How many reads ended within [`STANDSTILL`].
    ended: Arc<AtomicU64>,
}

/// Leave to read.
pub(super) struct ReadTurn {
    _permit: OwnedSemaphorePermit,
    begun: Instant,
    ended: Arc<AtomicU64>,
}

impl Drop for ReadTurn {
    fn drop(&mut self) {
        if self.begun.elapsed() < STANDSTILL {
            self.ended.fetch_add(1, Ordering::AcqRel);
        }
    }
}

impl ReadTurns {
    /// All of them, free.
    pub(super) fn new() -> Self {
        Self { free: Arc::new(Semaphore::new(READS as usize)), ended: Arc::default() }
    }

    /// Waits for a turn; an error where the database is far and those that read stand still.
    pub(super) async fn next(&self, is_far: bool) -> Result<ReadTurn, StoreError> {
        let free = Arc::clone(&self.free).acquire_owned();
        tokio::select! {
            biased;
            permit = free => {
                let permit = permit.map_err(|_| StoreError::Closed)?;
                let (begun, ended) = (Instant::now(), Arc::clone(&self.ended));
                Ok(ReadTurn { _permit: permit, begun, ended })
            }
            () = self.standstill(), if is_far => {
                let source = io::Error::other("those that read before this one are not answered");
                Err(StoreError::Away { doing: "read", why: AWAY, source })
            }
        }
    }

    /// Waits for all of them, however long that takes.
    pub(super) async fn all(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.free).acquire_many_owned(READS).await.ok()
    }

    async fn standstill(&self) {
        loop {
            let ended = self.ended.load(Ordering::Acquire);
            sleep(STANDSTILL).await;
            if self.ended.load(Ordering::Acquire) == ended {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As many as read at a time.
    async fn taken(turns: &ReadTurns) -> Vec<ReadTurn> {
        let mut taken = Vec::new();
        for _ in 0..READS {
            taken.push(turns.next(true).await.unwrap());
        }
        taken
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_long_behind_reads_that_hang() {
        let turns = ReadTurns::new();
        let mut hanging = taken(&turns).await;
        let begun = Instant::now();
        let waiting = futures_util::future::join_all((0..100).map(|_| turns.next(true))).await;
        assert!(begun.elapsed() < 2 * STANDSTILL, "{:?}", begun.elapsed());
        for waited in waiting {
            assert!(matches!(waited, Err(StoreError::Away { .. })));
        }
        // That one of them fails at last is no sign that the next one will be answered.
        let failing = async {
            sleep(STANDSTILL / 2).await;
            drop(hanging.pop());
        };
        let (next, other, ()) = tokio::join!(turns.next(true), turns.next(true), failing);
        assert!(next.is_ok() && other.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn a_turn_is_waited_for_while_others_end() {
        let (turns, begun) = (ReadTurns::new(), Instant::now());
        let reading = (0..100).map(|_| async {
            let turn = turns.next(true).await?;
            sleep(STANDSTILL / 4).await;
            drop(turn);
            Ok::<_, StoreError>(())
        });
        let read = futures_util::future::join_all(reading).await;
        assert!(begun.elapsed() > STANDSTILL && read.iter().all(Result::is_ok), "{read:?}");
        assert!(turns.all().await.is_some());
    }
}
