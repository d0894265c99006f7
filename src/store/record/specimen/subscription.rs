//! Random subscriptions of the hub.

use super::*;
use tidegate_core::websub::{
    Active, CallbackPurpose, Manner, PendingRequest, Secret, Subscription,
};
use url::Url;

fn secret() -> impl Strategy<Value = Option<Secret>> {
    of("[ -~é]{1,90}".prop_map(|text| Secret::new(&text).unwrap()))
}

fn tick() -> impl Strategy<Value = Option<Tick>> {
    of(time().prop_map(Tick::at))
}

fn any_active() -> impl Strategy<Value = Active> {
    let times = (time(), time(), tick(), of(time()), of(time()), of(time()));
    (secret(), times, any::<u64>(), any::<u32>(), of(text())).prop_map(
        |(
            secret,
            (since, until, told, delivered, not_before, gone),
            deliveries,
            failures,
            trouble,
        )| {
            Active {
                secret,
                since,
                until,
                told,
                delivered,
                deliveries,
                failures,
                not_before,
                gone,
                trouble,
            }
        },
    )
}

fn any_pending() -> impl Strategy<Value = PendingRequest> {
    let wanted = prop_oneof![
        (any::<u64>(), secret(), tick())
            .prop_map(|(lease, secret, told)| CallbackPurpose::Subscribe { lease, secret, told }),
        Just(CallbackPurpose::Unsubscribe),
        text().prop_map(|reason| CallbackPurpose::Denial { reason }),
    ];
    (wanted, time(), any::<u32>(), of(time()), of(text())).prop_map(
        |(wanted, asked, attempts, not_before, trouble)| PendingRequest {
            wanted,
            asked,
            attempts,
            not_before,
            trouble,
        },
    )
}

pub(crate) fn any_subscription() -> impl Strategy<Value = Subscription> {
    let path = "[a-z0-9/?&=%é ]{0,40}";
    let manner = select(vec![Manner::WebSub, Manner::RssCloud, Manner::Webhook]);
    (manner, feed(), text(), path, of(any_active()), of(any_pending())).prop_map(
        |(manner, feed, topic, path, active, pending)| Subscription {
            manner,
            feed,
            topic,
            callback: Url::parse(&format!("https://reader.example/{path}")).unwrap(),
            active,
            pending,
        },
    )
}

/// Random schedules of polls.
pub(super) fn any_schedule() -> impl Strategy<Value = PollSchedule> {
    let span = || of(any::<Duration>());
    let skipped = || vec(any::<u8>(), 0..5);
    let hints = (span(), span(), skipped(), skipped());
    let hints = hints.prop_map(|(ttl, period, skip_hours, skip_days)| UpdateHints {
        ttl,
        period,
        skip_hours,
        skip_days,
        expires: None,
    });
    (hints, (time(), time(), time()), span(), span(), of((time(), text()))).prop_map(
        |(hints, (noted, polled, last_change), freshness, gap, retry)| PollSchedule {
            noted,
            polled,
            hints,
            freshness,
            last_change,
            gap,
            retry,
        },
    )
}
