use super::*;
use crate::model::testing::{self, at, name};
use crate::websub::Leases;
use proptest::prelude::*;

const LEASE: u64 = 600;

fn tick(seconds: i64) -> Option<Tick> {
    Some(testing::tick(seconds))
}

fn fresh() -> Subscription {
    let callback = Url::parse("https://reader.example/push?id=7").unwrap();
    Subscription::new(Manner::WebSub, name("news"), "https://g/feeds/news".into(), callback)
}

fn wanted(told: Option<Tick>) -> CallbackPurpose {
    CallbackPurpose::Subscribe { lease: LEASE, secret: None, told }
}

fn failed(after: Option<u64>) -> CallbackAnswer {
    let why = "the callback answered 500".to_owned();
    CallbackAnswer::Failed { why, after: after.map(Duration::from_secs) }
}

fn active() -> Subscription {
    let mut subscription = fresh();
    subscription.ask(wanted(tick(0)), at(0));
    subscription.heard(CallbackAnswer::Taken, at(1));
    subscription
}

#[test]
fn leases_are_bounded() {
    let seconds = Duration::from_secs;
    let leases = Leases { usual: seconds(500), least: seconds(60), most: seconds(900) };
    for (asked, granted) in [(None, 500), (Some(1), 60), (Some(70), 70), (Some(u64::MAX), 900)] {
        assert_eq!(leases.grant(asked), granted);
    }
}

#[test]
fn nothing_is_delivered_before_it_is_verified_and_what_came_meanwhile_is() {
    let mut subscription = fresh();
    subscription.ask(wanted(tick(0)), at(0));
    let before = subscription.clone();
    subscription.ask(wanted(tick(2)), at(2));
    assert!(subscription.asks_the_same(&before), "asked for again, it is no other request");
    let verify = Some((at(0), Duty::Verify(Intent::Subscribe)));
    assert_eq!(subscription.next(tick(5), at(5)), verify);
    assert_eq!(subscription.standing(), "unverified");
    subscription.heard(CallbackAnswer::Taken, at(6));
    assert_eq!(subscription.standing(), "active");
    assert_eq!(subscription.next(tick(5), at(6)), Some((at(6), Duty::Deliver)));
    subscription.pushed(CallbackAnswer::Taken, tick(5), at(7));
    let end = at(6 + LEASE as i64);
    assert_eq!(subscription.next(tick(5), at(7)), Some((end, Duty::Expire)));
    let told = subscription.active.as_ref().unwrap();
    assert_eq!((told.deliveries, told.delivered), (1, Some(at(7))));
    // A feed without a document has its first one delivered.
    let mut subscription = fresh();
    subscription.ask(wanted(None), at(0));
    subscription.heard(CallbackAnswer::Taken, at(1));
    assert_eq!(subscription.next(None, at(1)).unwrap().1, Duty::Expire);
    assert_eq!(subscription.next(tick(2), at(2)).unwrap().1, Duty::Deliver);
}

#[test]
fn a_verification_is_tried_a_few_times_with_growing_pauses() {
    let mut subscription = fresh();
    subscription.ask(wanted(None), at(0));
    let trouble = |after| CallbackAnswer::Failed { why: "x".repeat(999), after };
    subscription.heard(trouble(None), at(0));
    assert_eq!(subscription.next(None, at(0)).unwrap().0, at(30));
    subscription.heard(trouble(Some(Duration::from_secs(500))), at(30));
    // An unverified callback's longer pause is not granted.
    assert_eq!(subscription.next(None, at(30)).unwrap().0, at(330));
    let pending = subscription.pending.as_ref().unwrap();
    assert_eq!(pending.trouble.as_ref().map(String::len), Some(256));
    subscription.heard(trouble(None), at(330));
    assert!(subscription.is_over());
}

#[test]
fn an_unverified_renewal_leaves_the_subscription_as_it_was() {
    for answer in [
        CallbackAnswer::Refused("the callback does not want this (404)".into()),
        CallbackAnswer::to_challenge((200, None), b"something else", true, "challenge"),
    ] {
        let mut subscription = active();
        let before = subscription.active.clone();
        let secret = Secret::new("another").ok();
        subscription.ask(CallbackPurpose::Subscribe { lease: 10, secret, told: None }, at(50));
        subscription.heard(answer, at(51));
        assert_eq!((&subscription.active, &subscription.pending), (&before, &None));
    }
}

#[test]
fn a_verified_renewal_takes_over_lease_and_secret_and_misses_nothing() {
    let mut subscription = active();
    subscription.pushed(failed(None), tick(10), at(10));
    let secret = Secret::new("another").ok();
    let renewal = CallbackPurpose::Subscribe { lease: 60, secret: secret.clone(), told: tick(20) };
    subscription.ask(renewal, at(20));
    subscription.heard(CallbackAnswer::Taken, at(21));
    let renewed = subscription.active.as_ref().unwrap();
    assert_eq!((renewed.until, &renewed.secret), (at(81), &secret));
    assert_eq!((renewed.since, renewed.told), (at(1), tick(0)), "the change of 10 is not lost");
    // The callback answered, so a failed delivery is retried at once.
    assert_eq!(subscription.next(tick(10), at(21)), Some((at(1), Duty::Deliver)));
}

#[test]
fn an_unsubscription_needs_its_verification_too() {
    let mut subscription = active();
    subscription.ask(CallbackPurpose::Unsubscribe, at(5));
    assert_eq!(subscription.standing(), "ending");
    let verify = Some((at(5), Duty::Verify(Intent::Unsubscribe)));
    assert_eq!(subscription.next(tick(0), at(5)), verify);
    subscription.heard(CallbackAnswer::Refused("no".into()), at(6));
    assert_eq!(subscription.standing(), "active");
    subscription.ask(CallbackPurpose::Unsubscribe, at(7));
    subscription.heard(CallbackAnswer::Taken, at(8));
    assert!(subscription.is_over());
}

#[test]
fn a_lease_ends_and_nothing_is_delivered_after_it() {
    let mut subscription = active();
    let late = at(1 + LEASE as i64);
    subscription.expire(at(LEASE as i64));
    assert!(!subscription.is_over());
    assert_eq!(subscription.next(tick(9), late).unwrap().1, Duty::Expire);
    subscription.expire(late);
    assert!(subscription.is_over());
}

#[test]
fn a_denial_ends_it_at_once_and_is_said() {
    let mut subscription = active();
    assert!(subscription.deny("the feed news is no longer published here", at(3)));
    assert!(!subscription.deny("again", at(4)));
    assert_eq!(subscription.standing(), "denied");
    assert_eq!(subscription.next(tick(9), at(4)), Some((at(3), Duty::Deny)));
    subscription.heard(CallbackAnswer::Refused("404".into()), at(5));
    assert!(subscription.is_over());
    assert!(!subscription.deny("there is nothing left", at(6)));
    // A registration with the cloud ends without a word.
    let mut cloud = Subscription { manner: Manner::RssCloud, ..active() };
    assert!(cloud.deny("gone", at(3)) && cloud.is_over());
}

#[test]
fn deliveries_are_tried_with_growing_pauses_and_given_up() {
    let mut subscription = active();
    let mut now = at(10);
    let mut pauses = Vec::new();
    for _ in 1..DELIVERIES {
        subscription.pushed(failed(None), tick(9), now);
        let (due, duty) = subscription.next(tick(9), now).unwrap();
        if duty == Duty::Expire {
            break;
        }
        pauses.push(due.since(now).as_secs());
        now = due;
    }
    assert_eq!(pauses, [30, 60, 120, 240]);
    // With a longer lease, pauses grow to their limit; then the change is given up.
    let active = subscription.active.as_mut().unwrap();
    (active.failures, active.until) = (DELIVERIES - 1, at(999_999));
    subscription.pushed(failed(None), tick(9), now);
    assert_eq!(subscription.next(tick(9), now).unwrap().1, Duty::Expire);
    // A newer change is tried once.
    assert_eq!(subscription.next(tick(11), now).unwrap().1, Duty::Deliver);
    subscription.pushed(failed(None), tick(11), now);
    assert_eq!(subscription.next(tick(11), now).unwrap().1, Duty::Expire);
    assert_eq!(subscription.next(tick(12), now).unwrap().1, Duty::Deliver);
    subscription.pushed(CallbackAnswer::Taken, tick(12), now);
    let active = subscription.active.as_ref().unwrap();
    assert_eq!((active.failures, &active.trouble), (0, &None));
    // A callback may ask for a pause within the limit.
    for (asked, pause) in [(100, 100), (u64::MAX, 6 * 3600)] {
        subscription.pushed(failed(Some(asked)), tick(13), at(10));
        assert_eq!(subscription.next(tick(13), at(10)).unwrap().0, at(10 + pause));
    }
}

#[test]
fn a_clock_that_went_back_delays_nothing_for_long() {
    let mut subscription = active();
    subscription.active.as_mut().unwrap().until = at(9_999_999);
    subscription.pushed(failed(None), tick(9), at(8_000_000));
    assert_eq!(subscription.next(tick(9), at(20)), Some((at(20), Duty::Deliver)));
    let mut subscription = fresh();
    subscription.ask(wanted(None), at(8_000_000));
    assert_eq!(subscription.next(None, at(20)).unwrap().0, at(20));
    // Nor if it went back by minutes.
    let mut subscription = fresh();
    subscription.ask(wanted(tick(0)), at(600));
    assert_eq!(subscription.next(tick(0), at(20)).unwrap().0, at(20));
    subscription.heard(CallbackAnswer::Taken, at(600));
    assert_eq!(subscription.next(tick(9), at(20)), Some((at(20), Duty::Deliver)));
    subscription.pushed(failed(Some(900)), tick(9), at(600));
    subscription.turned_back(at(1490));
    let active = subscription.active.as_ref().unwrap();
    assert_eq!(active.not_before, Some(at(1500)), "it is as long as it would be");
    subscription.turned_back(at(20));
    assert_eq!(subscription.next(tick(9), at(20)), Some((at(50), Duty::Deliver)));
}

#[test]
fn gone_twice_is_the_end() {
    let mut subscription = active();
    let gone = |subscription: &mut Subscription, now| {
        subscription.pushed(CallbackAnswer::to_delivery(410, None), tick(9), at(now));
    };
    gone(&mut subscription, 10);
    assert_eq!(subscription.next(tick(9), at(10)), Some((at(310), Duty::Deliver)));
    // A call that began before the pause does not count as a second 410 and does not extend the pause.
    gone(&mut subscription, 12);
    assert_eq!(subscription.next(tick(9), at(12)), Some((at(310), Duty::Deliver)));
    // A failure in between does not change that; a success does.
    subscription.pushed(failed(None), tick(9), at(200));
    let mut well = subscription.clone();
    gone(&mut subscription, 310);
    assert!(subscription.is_over());
    well.pushed(CallbackAnswer::Taken, tick(9), at(310));
    assert_eq!(well.active.as_ref().unwrap().gone, None);
    subscription = active();
    gone(&mut subscription, 320);
    // The clock was set back meanwhile, so the pause begins anew.
    subscription.turned_back(at(100));
    gone(&mut subscription, 100);
    assert_eq!(subscription.next(tick(9), at(100)), Some((at(400), Duty::Deliver)));
    gone(&mut subscription, 400);
    assert!(subscription.is_over());
}

/// Only the operator ends a webhook: whatever it answers, it is told until that arrives.
#[test]
fn a_webhook_is_never_given_up() {
    let mut hook = Subscription { manner: Manner::Webhook, ..active() };
    hook.active.as_mut().unwrap().until = at(9_999_999);
    let mut now = at(10);
    for number in 0..2 * DELIVERIES {
        let answer =
            if number % 2 == 0 { CallbackAnswer::to_delivery(410, None) } else { failed(None) };
        hook.pushed(answer, tick(9), now);
        let (due, duty) = hook.next(tick(9), now).unwrap();
        assert_eq!(duty, Duty::Deliver, "{number}");
        now = due;
    }
}

#[test]
fn answers_are_read_as_the_recommendation_says() {
    let heard = |status, body: &[u8], whole| {
        CallbackAnswer::to_challenge((status, None), body, whole, "c0ffee")
    };
    assert_eq!(heard(200, b"c0ffee", true), CallbackAnswer::Taken);
    assert_eq!(heard(299, b"c0ffee", true), CallbackAnswer::Taken);
    for (body, whole) in [(b"c0ffee".as_slice(), false), (b"c0ffee\n", true), (b"", true)] {
        assert!(matches!(heard(200, body, whole), CallbackAnswer::Refused(_)), "{body:?}");
    }
    for status in [404, 302, 401, 410] {
        assert!(matches!(heard(status, b"c0ffee", true), CallbackAnswer::Refused(_)), "{status}");
    }
    let is_failed = |answer| matches!(answer, CallbackAnswer::Failed { .. });
    for status in [429, 500, 503] {
        assert!(is_failed(heard(status, b"c0ffee", true)), "{status}");
    }
    assert_eq!(CallbackAnswer::to_delivery(204, None), CallbackAnswer::Taken);
    for status in [199, 301, 307, 400, 404, 429, 500] {
        assert!(is_failed(CallbackAnswer::to_delivery(status, None)), "{status}");
    }
}

#[test]
fn topic_and_callback_are_the_key() {
    let id = |(manner, topic, callback): (Manner, &str, &str)| {
        SubscriptionId::new(manner, topic, &Url::parse(callback).unwrap())
    };
    let one = (Manner::WebSub, "t", "http://a/?x");
    assert_eq!(id(one), id(one));
    assert_ne!(id(one), id((Manner::RssCloud, "t", "http://a/?x")));
    assert_ne!(id(one), id((Manner::WebSub, "t", "http://a/?y")));
    assert_ne!(id(one), id((Manner::WebSub, "u", "http://a/?x")));
}

proptest! {
    /// Invariants for any order of events: a subscription ends with its lease, its settled change never goes back, and
    /// it has a next duty unless it is over.
    #[test]
    fn no_order_of_events_breaks_it(events in proptest::collection::vec((0..9_u8, 0..400_i64), 0..60)) {
        let mut subscription = fresh();
        let (mut now, mut tick) = (at(0), None);
        for (event, later) in events {
            now = now.plus(Duration::from_secs(later as u64));
            let before = subscription.active.as_ref().map(|active| active.told);
            match event {
                0 => subscription.ask(wanted(tick), now),
                1 => subscription.ask(CallbackPurpose::Unsubscribe, now),
                2 => drop(subscription.deny("gone", now)),
                3 => subscription.heard(CallbackAnswer::Taken, now),
                4 => subscription.heard(CallbackAnswer::Refused("no".into()), now),
                5 => subscription.heard(CallbackAnswer::Failed { why: "x".into(), after: None }, now),
                6 => subscription.pushed(CallbackAnswer::Taken, tick, now),
                7 => subscription.pushed(failed(None), tick, now),
                _ => tick = Some(Tick::at(now)),
            }
            subscription.expire(now);
            if let (Some(before), Some(active)) = (before, &subscription.active) {
                prop_assert!(active.told >= before);
                prop_assert!(active.until > now);
            }
            let next = subscription.next(tick, now);
            prop_assert_eq!(next.is_none(), subscription.is_over());
        }
    }
}
