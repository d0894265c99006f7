//! Where several gateways poll, a change waits for the one that writes, which may answer nothing for minutes. What waits
//! for it gives its place among the errands at the same time to others, as far as there is room for what it found.

use super::error::RoundError;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::{Id, try_id};
use tokio::time::{Instant, timeout_at};

/// How much may wait without a place, by the size of its documents, in KiB.
const ROOM: u32 = 64 * 1024;
/// What counts at least and at most of a document, in KiB.
const WEIGHTS: (u32, u32) = (256, ROOM / 2);
/// Where there has been no room for so long, what comes next is given up.
const PATIENCE: Duration = Duration::from_secs(5);

/// The room for what waits for the gateway that writes.
pub(super) struct WaitingRoom {
    room: Arc<Semaphore>,
    full_since: Mutex<Option<Instant>>,
    /// Takes the tasks whose places are free.
    free: mpsc::UnboundedSender<Id>,
}

impl WaitingRoom {
    /// One without anybody in it, and the tasks whose places become free.
    pub(super) fn new() -> (Arc<Self>, mpsc::UnboundedReceiver<Id>) {
        let (free, freed) = mpsc::unbounded_channel();
        let room = Arc::new(Semaphore::new(usize::try_from(ROOM).unwrap_or(usize::MAX)));
        (Arc::new(Self { room, full_since: Mutex::default(), free }), freed)
    }

    fn full_since(&self) -> MutexGuard<'_, Option<Instant>> {
        self.full_since.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for room for a document of so many bytes; `None` where there has been none for [`PATIENCE`].
    async fn enter(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        let weight = u32::try_from(bytes / 1024).unwrap_or(u32::MAX).clamp(WEIGHTS.0, WEIGHTS.1);
        let entered = match Arc::clone(&self.room).try_acquire_many_owned(weight) {
            Ok(entered) => entered,
            Err(_) => {
                let since = *self.full_since().get_or_insert_with(Instant::now);
                let entering = Arc::clone(&self.room).acquire_many_owned(weight);
                timeout_at(since + PATIENCE, entering).await.ok()?.ok()?
            }
        };
        *self.full_since() = None;
        Some(entered)
    }
}

/// The place of an errand, where it can be given back before the errand ends. The default one cannot.
#[derive(Clone, Default)]
pub struct PollPlace(Option<Arc<ReturnablePlace>>);

struct ReturnablePlace {
    room: Arc<WaitingRoom>,
    /// What the errand has since its place was given back.
    entered: OnceLock<OwnedSemaphorePermit>,
}

impl PollPlace {
    /// That of an errand which may wait in this room.
    pub(super) fn new(room: &Arc<WaitingRoom>) -> Self {
        let (room, entered) = (Arc::clone(room), OnceLock::new());
        Self(Some(Arc::new(ReturnablePlace { room, entered })))
    }

    /// Gives the place back, to be called in the errand's own task, where that asks its publisher for nothing more.
    /// `bytes`: the size of the document that waits from now on. [`RoundError::Crowded`] where too much waits already.
    pub(super) async fn give_back(&self, bytes: usize) -> Result<(), RoundError> {
        let Some(place) = &self.0 else { return Ok(()) };
        if place.entered.get().is_some() {
            return Ok(());
        }
        let entered = place.room.enter(bytes).await.ok_or(RoundError::Crowded)?;
        if place.entered.set(entered).is_ok()
            && let Some(id) = try_id()
        {
            // Polling may be about to stop.
            let _ = place.room.free.send(id);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::pending;

    #[tokio::test(start_paused = true)]
    async fn what_finds_no_room_for_long_is_given_up() {
        let (room, mut freed) = WaitingRoom::new();
        let places: Vec<PollPlace> = (0..3).map(|_| PollPlace::new(&room)).collect();
        // A document counts for half of the room at most.
        places[0].give_back(usize::MAX).await.unwrap();
        places[1].give_back(usize::MAX).await.unwrap();
        places[1].give_back(usize::MAX).await.unwrap();
        let begun = Instant::now();
        let refused = places[2].give_back(1).await;
        assert!(matches!(refused, Err(RoundError::Crowded)), "{refused:?}");
        assert_eq!(begun.elapsed().as_secs(), PATIENCE.as_secs());
        let begun = Instant::now();
        assert!(places[2].give_back(1).await.is_err());
        assert!(begun.elapsed() < Duration::from_secs(1), "others wait as long again");
        // What leaves makes room, also for what waits.
        drop(places);
        for _ in 0..ROOM / WEIGHTS.0 {
            let place = PollPlace::new(&room);
            tokio::spawn(async move {
                place.give_back(1).await.unwrap();
                pending::<()>().await;
            });
            freed.recv().await.unwrap();
        }
        assert!(freed.try_recv().is_err());
        assert!(PollPlace::new(&room).give_back(1).await.is_err());
        assert!(PollPlace::default().give_back(1).await.is_ok());
    }
}
