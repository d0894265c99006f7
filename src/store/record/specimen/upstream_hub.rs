//! Random subscriptions.

use super::{text, time};
use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;
use proptest::sample::select;
use tidegate_core::model::*;

pub(super) fn any_subscription() -> impl Strategy<Value = HubSubscription> {
    use SubscriptionStanding::*;
    let addresses = (text(), vec(text(), 1..4), text(), text(), text(), of(text()));
    let standing = select(vec![Waiting, Asked, Verified, Denied]);
    let trust = (of(time()), any::<u32>(), of(time()));
    let times = (time(), of(time()), of((time(), time())), of(time()));
    (addresses, standing, trust, times, any::<[u32; 2]>(), any::<u64>()).prop_map(
        |(addresses, standing, trust, times, counts, pushes)| {
            let (topic, hubs, token, secret, callbacks, note) = addresses;
            let (next, spent, lease, last_push) = times;
            let [hub, failures] = counts;
            let (awaited, missed, distrusted_until) = trust;
            HubSubscription {
                topic,
                hubs,
                hub,
                keys: SubscriptionKeys { token, secret },
                callbacks,
                standing,
                next,
                lease: lease.map(|(since, until)| Lease { since, until }),
                failures,
                spent,
                note,
                trust: PushTrust { awaited, missed, distrusted_until },
                last_push,
                pushes,
            }
        },
    )
}
