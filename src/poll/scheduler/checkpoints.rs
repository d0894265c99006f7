//! Writes poll states to the store in batches, in a task of its own.

use super::ownership::by_feed;
use super::{PollContext, SLICE};
use crate::feeds::CHECKPOINT_EVERY;
use crate::polling::unless_it_breaks;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tidegate_core::model::{FeedName, HubSubscription, PollState, SubscriptionStanding};
use tidegate_store::StoreError;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, sleep_until};

/// Writes poll states and attempt marks as they fall due, until polling stops.
pub(super) async fn keep_written(context: Arc<PollContext>) {
    let mut not_before = Instant::now();
    while !context.cancel.is_cancelled() {
        let now = Instant::now();
        // Unsaved states wait while the store is closed.
        let may_write = context.writing_term().is_some();
        let is_open = may_write && context.store.condition().stop.is_none();
        let due =
            context.table.unsaved.lock().due().filter(|_| is_open).map(|at| at.max(not_before));
        let has_marks = is_open && not_before <= now && context.attempts.has_unwritten();
        if has_marks || due.is_some_and(|due| due <= now) {
            if !write_some(&context, true, false).await {
                // With several gateways retry soon: another gateway may wait for these states.
                let is_shared = context.store.gateways().is_some();
                not_before = Instant::now() + if is_shared { SLICE } else { CHECKPOINT_EVERY };
            }
            continue;
        }
        tokio::select! {
            () = context.cancel.cancelled() => {}
            () = context.table.has_unsaved.notified(), if is_open => {}
            () = sleep_until(due.unwrap_or(now + SLICE).min(now + SLICE)) => {}
        }
    }
}

/// Writes all unsaved states when polling stops; gives up at the first failure.
pub(super) async fn write_the_rest(context: &Arc<PollContext>) {
    for (name, cell) in context.table.all() {
        if cell.lock().memory.is_behind() {
            context.table.remember(&name, &cell, Duration::ZERO);
        }
    }
    context.attempts.close();
    let is_left = || !context.table.unsaved.lock().feeds.is_empty();
    let mut is_stored = write_some(context, true, true).await;
    // A mark that cannot be stored must not prevent the states from being stored.
    if context.attempts.has_unwritten() {
        is_stored = write_some(context, false, true).await;
    }
    while is_stored && is_left() {
        is_stored = write_some(context, false, true).await;
    }
}

/// Writes one batch of states if it is due or `at_once`. `with_marks`: writes the attempt marks first. Returns whether
/// the batch is stored.
async fn write_some(context: &Arc<PollContext>, with_marks: bool, at_once: bool) -> bool {
    // Fixed before the states are gathered: what predates a silence must not be written after it.
    let Some(term) = context.writing_term() else { return false };
    if with_marks && context.attempts.has_unwritten() {
        let flushed = while_live(context, term, context.attempts.flush()).await;
        if flushed != Some(true) {
            return false;
        }
    }
    let mut states = {
        let mut unsaved = context.table.unsaved.lock();
        let is_due = at_once || unsaved.due().is_some_and(|due| due <= Instant::now());
        if is_due { unsaved.begin(context.clock.now()) } else { Vec::new() }
    };
    if states.is_empty() {
        return true;
    }
    let writing = unless_it_breaks(async {
        if context.store.gateways().is_some() {
            take_over_leases(context, &mut states).await?;
        }
        Ok(context.store.checkpoint(&states).await?)
    });
    let stored = while_live(context, term, writing).await;
    let is_stored = matches!(stored, Some(Ok(())));
    context.table.unsaved.lock().end(is_stored);
    if let Some(Err(error)) = stored {
        let error = error.report();
        tracing::warn!(error, "what polling remembers could not be stored; it is tried again");
    }
    is_stored
}

/// Runs `writing` while this gateway is sure to be live, checking before each step. Otherwise another gateway may have
/// taken over its feeds. `None`: stopped.
async fn while_live<T>(
    context: &PollContext,
    term: u64,
    writing: impl Future<Output = T>,
) -> Option<T> {
    let mut look = interval(SLICE);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut writing = pin!(writing);
    poll_fn(|task| {
        // Polling the interval registers the wake-up for the next check.
        while look.poll_tick(task).is_ready() {}
        match context.writing_term() == Some(term) {
            true => writing.as_mut().poll(task).map(Some),
            false => Poll::Ready(None),
        }
    })
    .await
}

/// Keeps detecting silences while polling stops: the scheduler no longer does, and nothing may be written after one.
pub(super) async fn keep_checking(context: &PollContext) {
    loop {
        context.check_silence(Instant::now());
        sleep(SLICE).await;
    }
}

/// Adopts leases that another gateway stored because the hub sent it the verification.
async fn take_over_leases(
    context: &PollContext,
    states: &mut [PollState],
) -> Result<(), StoreError> {
    let subscribed = states.iter().filter(|state| state.subscription.is_some());
    let names: Vec<FeedName> = subscribed.map(|state| state.feed.clone()).collect();
    if names.is_empty() {
        return Ok(());
    }
    let mut stored = by_feed(context.store.poll_states_of(&names).await?);
    let now = context.clock.now();
    let until = |it: &HubSubscription| it.lease.map(|lease| lease.until);
    for state in states {
        let Some(own) = &mut state.subscription else { continue };
        let there = stored.remove(&state.feed).and_then(|stored| stored.subscription);
        let is_later = |it: &HubSubscription, own: &HubSubscription| {
            it.keys == own.keys && it.is_held(now) && until(it) > until(own)
        };
        let is_denied = own.standing == SubscriptionStanding::Denied;
        let Some(there) = there.filter(|it| !is_denied && is_later(it, own)) else { continue };
        if let Some(cell) = context.table.live(&state.feed) {
            let mut feed = cell.lock();
            let known = feed.memory.state.subscription.as_mut();
            if let Some(known) = known.filter(|known| is_later(&there, known)) {
                known.clone_from(&there);
                feed.wake_hub();
            }
        }
        *own = there;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Poller;
    use crate::memory::FeedMemory;
    use crate::testing::double::{NOW, name, poller_config, record, store_of};
    use crate::testing::gateway::{Publisher, gateway, live};
    use tidegate_core::clock::{Clock, ManualClock};
    use tokio::time::advance;

    /// The process was suspended and the writer task runs before the scheduler.
    #[tokio::test(start_paused = true)]
    async fn nothing_is_written_before_the_scheduler_has_dealt_with_a_silence() {
        let (store, owners) = (store_of(&["a"]), [gateway(1), gateway(2)]);
        live(&[&owners[0], &owners[1]]);
        let clock: Arc<dyn Clock> = Arc::new(ManualClock::at(NOW));
        let (real, services) =
            (store.shared_by(&owners[0]).real(), Publisher::new("one").services());
        let config = poller_config(real, &clock, services);
        let (poller, _scheduler, _inbox) = Poller::prepare(config);
        let context = poller.context;
        let memory = FeedMemory::new(&record("a"), NOW);
        let cell = context.table.insert(Arc::new(record("a")), memory);
        context.table.remember(&name("a"), &cell, Duration::ZERO);
        advance(Duration::from_secs(60)).await;
        tokio::spawn(keep_written(Arc::clone(&context)));
        let is_stored = async || {
            sleep(SLICE * 3).await;
            store.poll_state("a").is_some()
        };
        assert!(!is_stored().await, "the scheduler has not looked yet");
        assert_eq!(context.check_silence(Instant::now()), Some(true));
        assert!(!is_stored().await, "it has found the silence");
        context.check_silence(Instant::now());
        context.silence.end_silence();
        assert!(is_stored().await);
    }
}
