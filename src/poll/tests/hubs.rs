//! When the hub of a feed is asked.

use super::*;
use crate::testing::idle::{CALLBACKS, IdlePolling};
use std::sync::Mutex;
use tidegate_core::clock::{Clock, ManualClock};
use tidegate_core::model::SubscriptionStanding;
use tidegate_net::fetch::{Call, CallRequest, Called, LeadScope, Services};
use tokio::time::sleep;

/// Starts polling whose hub is due after `seconds`. Returns it with its clock and the scopes of requests to the hub.
async fn asking_after(seconds: u64) -> (IdlePolling, ManualClock, Arc<Mutex<Vec<LeadScope>>>) {
    let (store, clock) = (store_of(&["a"]), ManualClock::at(NOW));
    let (mut state, _) = ownership::subscribed("a");
    let subscription = state.subscription.as_mut().unwrap();
    subscription.callbacks = CALLBACKS.to_owned();
    (subscription.standing, subscription.next) = (SubscriptionStanding::Waiting, later(seconds));
    store.set_poll(&state);
    let asked = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&asked);
    let call = Call::new(tower::service_fn(move |request: CallRequest| {
        seen.lock().unwrap().push(request.leads);
        std::future::ready(Ok(Called { status: 202, ..Called::default() }))
    }));
    // The feed's poll never ends, so that it reports nothing about hubs.
    let services = Services { call, ..Publisher::gated("one").services() };
    let known: Arc<dyn Clock> = Arc::new(clock.clone());
    let polling = IdlePolling::new(&store.real(), &known, services);
    polling.start().await;
    (polling, clock, asked)
}

/// A task that sleeps for hours wakes when the clock leaps ahead to its time.
#[tokio::test(start_paused = true)]
async fn a_hub_is_asked_soon_after_the_clock_leapt_to_its_time() {
    let (_polling, clock, asked) = asking_after(3 * 3600).await;
    for (at, times) in [(0, 0), (3 * 3600 - 1, 0), (3 * 3600 + 1, 1)] {
        clock.set(later(at));
        sleep(Duration::from_secs(5)).await;
        assert_eq!(asked.lock().unwrap().len(), times, "{at}");
    }
    let scope = LeadScope::Places(vec![record("a").url.parse().unwrap()]);
    assert_eq!(*asked.lock().unwrap(), [scope]);
}

/// A lease follows the wall clock, which may run faster than a sleep in steps too small for a leap.
#[tokio::test(start_paused = true)]
async fn a_hub_is_asked_in_time_though_the_clock_runs_fast() {
    let (_polling, clock, asked) = asking_after(3600).await;
    for second in 1..=3600 {
        assert_eq!(asked.lock().unwrap().len(), 0);
        sleep(Duration::from_millis(800)).await;
        clock.set(later(second));
    }
    sleep(Duration::from_secs(600)).await;
    assert_eq!(asked.lock().unwrap().len(), 1);
}
