use super::*;
use crate::model::DISTRUST_TIME;
use crate::model::testing::at;
use proptest::prelude::*;

const TOPIC: &str = "https://news.example/feed";
const CALLBACKS: &str = "https://gateway.example/websub/callback";
const A: &str = "https://a.example/";
const B: &str = "https://b.example/";

fn found(hubs: &[&str]) -> Discovery {
    let hubs = hubs.iter().map(|hub| (*hub).to_owned()).collect();
    Discovery { hubs, topic: TOPIC.to_owned() }
}

fn keys() -> SubscriptionKeys {
    SubscriptionKeys { token: "token".to_owned(), secret: "secret".to_owned() }
}

fn new(hubs: &[&str]) -> Subscription {
    begin(&found(hubs), keys(), CALLBACKS, None, at(0))
}

/// Creates a subscription whose hub was asked at time 0.
fn asked(hubs: &[&str]) -> Subscription {
    let mut subscription = new(hubs);
    assert!(due(&mut subscription, at(0)));
    subscription
}

fn intent(intent: Intent, topic: &str, lease: u64) -> Verification {
    let (topic, challenge) = (topic.to_owned(), "c".to_owned());
    Verification::Intent { intent, topic, challenge, lease: Some(lease) }
}

fn subscribe(lease: u64) -> Verification {
    intent(Intent::Subscribe, TOPIC, lease)
}

fn denied(topic: &str) -> Verification {
    Verification::Denied { topic: topic.to_owned(), reason: Some("you are too slow".to_owned()) }
}

fn confirmed() -> Option<String> {
    Some("c".to_owned())
}

/// Creates a subscription with a lease of 900 seconds from time 0.
fn held() -> Subscription {
    let mut subscription = asked(&[A]);
    assert_eq!(called(&mut subscription, &subscribe(900), at(0)), confirmed());
    subscription
}

#[test]
fn a_hub_is_asked_and_asks_back_and_is_asked_again_in_time() {
    let mut it = new(&[A]);
    assert_eq!(it.state(at(0)), "waiting");
    assert_eq!(called(&mut it, &subscribe(900), at(0)), None);
    assert!(due(&mut it, at(0)));
    assert_eq!(it.state(at(1)), "asked");
    assert!(!due(&mut it, at(1)), "one request is enough");
    assert_eq!(called(&mut it, &subscribe(900), at(2)), confirmed());
    assert_eq!((it.state(at(3)), it.lease.unwrap().until), ("subscribed", at(902)));
    assert_eq!(it.next, at(602));

    assert!(due(&mut it, at(602)));
    assert_eq!(it.state(at(603)), "renewing");
    assert_eq!(called(&mut it, &subscribe(900), at(604)), confirmed());
    let lease = it.lease.unwrap();
    assert_eq!((lease.since, lease.until), (at(2), at(1504)), "without a break");
}

fn unasked() -> [Verification; 2] {
    let other = intent(Intent::Subscribe, "https://news.example/other", 900);
    [other, intent(Intent::Unsubscribe, TOPIC, 900)]
}

#[test]
fn only_what_was_asked_is_confirmed_and_again_while_it_stands() {
    let mut it = asked(&[A]);
    for other in unasked().into_iter().chain([denied("https://news.example/other")]) {
        assert_eq!(called(&mut it, &other, at(1)), None, "{other:?}");
    }
    assert_eq!(it.state(at(1)), "asked");
    let mut it = held();
    // Our first answer was lost; the lease of the repeated verification counts.
    assert_eq!(called(&mut it, &subscribe(1200), at(3)), confirmed());
    let lease = it.lease.unwrap();
    assert_eq!((it.state(at(3)), lease.since, lease.until), ("subscribed", at(0), at(1203)));
    assert_eq!(it.next, at(803));
    let before = it.clone();
    for other in unasked() {
        assert_eq!(called(&mut it, &other, at(4)), None, "{other:?}");
    }
    assert_eq!(it, before);
    assert_eq!(called(&mut it, &subscribe(900), at(1203)), None, "it is over");
}

#[test]
fn leases_are_neither_too_short_nor_too_long() {
    for (said, kept) in [(0, LEASE_LEAST), (1, LEASE_LEAST), (u64::MAX, LEASE_MOST)] {
        let mut it = asked(&[A]);
        assert_eq!(called(&mut it, &subscribe(said), at(0)), confirmed());
        assert_eq!(it.lease.unwrap().until, at(0).plus(kept), "{said}");
    }
}

#[test]
fn hubs_are_tried_in_their_order_and_then_ever_more_seldom() {
    let mut it = new(&[A, B]);
    let mut now = at(0);
    let mut asked = Vec::new();
    for _ in 0..6 {
        assert!(due(&mut it, now));
        asked.push((it.address().to_owned(), now.since(at(0)).as_secs()));
        failed(&mut it, "it answered 500", None, now);
        now = it.next;
    }
    let pauses: Vec<_> = asked.windows(2).map(|pair| pair[1].1 - pair[0].1).collect();
    assert_eq!(pauses, [5, 600, 5, 1200, 5]);
    assert!(asked.iter().step_by(2).all(|(hub, _)| hub == A));
    assert!(asked.iter().skip(1).step_by(2).all(|(hub, _)| hub == B));
    assert_eq!(it.note.as_deref(), Some("it answered 500"));

    // The pause that a hub asks for is respected, up to a limit.
    let mut it = new(&[A]);
    for (wait, pause) in [(7000, 7000), (10_000_000, 86_400)] {
        now = it.next;
        assert!(due(&mut it, now));
        failed(&mut it, "it answered 503", Some(Duration::from_secs(wait)), now);
        assert_eq!(it.next.since(now).as_secs(), pause);
    }
}

#[test]
fn a_hub_that_never_asks_back_has_failed_and_may_still_do_so() {
    let mut it = asked(&[A]);
    assert!(!due(&mut it, at(600)));
    assert_eq!((it.standing, it.failures, it.next), (Standing::Waiting, 1, at(1200)));
    assert!(it.note.as_deref().unwrap().contains("did not ask back within 10 minutes"));
    assert_eq!(called(&mut it, &subscribe(900), at(700)), confirmed());
    assert_eq!(it.state(at(701)), "subscribed");
    // After the hub has verified the request, its failure does not count.
    let mut it = held();
    failed(&mut it, "it answered 500", None, at(1));
    assert_eq!(it.state(at(1)), "subscribed");
}

#[test]
fn a_renewal_that_fails_is_tried_again_while_the_hub_delivers() {
    let mut it = held();
    it.hubs.push(B.to_owned());
    assert!(due(&mut it, at(600)));
    failed(&mut it, "it answered 500", None, at(600));
    assert_eq!((it.address(), it.state(at(601))), (A, "subscribed"));
    assert_eq!(it.next, at(1200));
    // The lease has ended meanwhile.
    assert!(due(&mut it, at(1200)));
    assert_eq!((it.lease, it.state(at(1200))), (None, "asked"));
    failed(&mut it, "it answered 500", None, at(1200));
    assert_eq!(it.address(), B);
}

#[test]
fn a_hub_that_says_no_is_left_alone_for_a_week() {
    let mut it = held();
    assert_eq!(called(&mut it, &denied(TOPIC), at(5)), Some(String::new()));
    assert_eq!((it.state(at(5)), it.lease), ("denied", None));
    assert_eq!(it.note.as_deref(), Some("it said no: you are too slow"));
    assert_eq!(it.next, at(5).plus(DENIED_PAUSE));
    assert_eq!(called(&mut it, &subscribe(900), at(6)), None);
    assert!(describe(&it, at(6)).starts_with("the hub does not deliver: it said no: you are too"));

    // If the feed names another hub, that is tried.
    let mut it = asked(&[A, B]);
    assert_eq!(called(&mut it, &denied(TOPIC), at(1)), Some(String::new()));
    assert!(due(&mut it, at(6)));
    assert_eq!(it.address(), B);
}

#[test]
fn requests_have_a_pause_whatever_is_discovered_and_however_short_leases_are() {
    let (mut it, mut asked) = (new(&[A]), 0);
    for second in 0..3 * 3600 {
        if due(&mut it, at(second)) {
            asked += 1;
            // The feed names another hub each time.
            let hub = format!("https://h{second}.example/");
            it = begin(&found(&[&hub]), keys(), CALLBACKS, it.spent, at(second));
        }
    }
    assert_eq!(asked, 24 + 2);
    let (mut it, mut asked) = (new(&[A]), 0);
    for second in 0..86_400 {
        if due(&mut it, at(second)) {
            asked += 1;
            called(&mut it, &subscribe(60), at(second));
        }
    }
    assert!(asked <= 2 * 24, "{asked}");
}

/// The publisher runs a malicious hub that knows the callback and denies requests made to the other hub.
#[test]
fn a_hub_that_says_no_again_and_again_does_not_drive_us_to_another_one() {
    let (mut it, mut asked) = (new(&[A, B]), 0);
    for second in 0..86_400 {
        asked += u32::from(due(&mut it, at(second)));
        called(&mut it, &subscribe(60), at(second));
        called(&mut it, &denied(TOPIC), at(second));
    }
    assert!(asked <= 2 * 24, "{asked}");
    let mut it = held();
    it.standing = Standing::Waiting;
    let next = it.next;
    assert_eq!(called(&mut it, &denied(TOPIC), at(1)), Some(String::new()));
    assert_eq!((it.lease, it.next), (None, next), "it delivers no more");
}

#[test]
fn what_is_discovered_again_goes_on() {
    let mut it = held();
    assert_eq!(goes_on(&mut it, &found(&[A])), Some(false));
    let more = found(&[B, A]);
    assert_eq!(goes_on(&mut it, &more), Some(true));
    assert_eq!((it.address(), it.hubs.len()), (A, 2));
    assert_eq!(goes_on(&mut it, &found(&[B])), None, "its hub is gone");
    let topic = "https://news.example/other".to_owned();
    assert_eq!(goes_on(&mut it, &Discovery { topic, ..more }), None);
}

#[test]
fn a_hub_is_relied_on_while_it_delivers_and_is_not_silent() {
    let mut it = held();
    assert!(covers(&it, at(10), at(10)));
    assert!(describe(&it, at(10)).ends_with("; polls are fewer meanwhile"));
    assert!(!covers(&it, at(10), at(900)), "the lease is over");
    let lease = Lease { since: at(30), until: at(900) };
    let later = Subscription { lease: Some(lease), ..it.clone() };
    assert!(!covers(&later, at(29), at(31)), "the poll was before it");
    let silent = PushedPoll { changed: true, told: false, expected: true };
    polled(&mut it, PushedPoll { expected: false, ..silent }, at(20));
    assert_eq!(it.trust, PushTrust::default(), "it could not have told of that");
    for found in [40, 700] {
        assert!(polled(&mut it, silent, at(found)));
    }
    assert!(describe(&it, at(701)).contains("did not tell of the last change"));
    assert_eq!(called(&mut it, &subscribe(5000), at(800)), confirmed());
    polled(&mut it, PushedPoll::default(), at(1301));
    assert!(!covers(&it, at(1301), at(1301)));
    assert!(describe(&it, at(1301)).contains("polls go on as without it until"));
    it.lease = Some(Lease { since: at(0), until: at(0).plus(2 * DISTRUST_TIME) });
    assert!(covers(&it, at(1302), at(1301).plus(DISTRUST_TIME)));
}

#[test]
fn a_clock_that_is_set_back_puts_nothing_off() {
    let mut it = held();
    set_back(&mut it, Duration::from_secs(500));
    assert!(due(&mut it, at(100)), "two thirds of its lease are over");
    assert!(!it.is_held(at(400)));
}

proptest! {
    /// Invariants: there is always a next step, and a hub is only trusted while it delivers.
    #[test]
    fn whatever_happens(acts in proptest::collection::vec(
        (0..6_u8, any::<[bool; 3]>(), any::<u64>(), prop_oneof![0u64..20, 0u64..200_000]), 1..200
    )) {
        let mut it = new(&[A, B]);
        let mut now = at(0);
        for (act, [changed, told, expected], lease, wait) in acts {
            now = now.plus(Duration::from_secs(wait));
            let (is_ours, mode) = (told, if changed { Intent::Subscribe } else { Intent::Unsubscribe });
            let topic = if is_ours { TOPIC } else { "https://x.example/" };
            match act {
                0 => _ = due(&mut it, now),
                1 => failed(&mut it, "no", None, now),
                2 | 3 => {
                    let said = if act == 2 { intent(mode, topic, lease) } else { denied(topic) };
                    prop_assert!(called(&mut it, &said, now).is_none() || is_ours);
                }
                4 => _ = pushed(&mut it, now),
                _ => _ = polled(&mut it, PushedPoll { changed, told, expected }, now),
            }
            prop_assert!(it.hubs.get(it.hub as usize).is_some());
            prop_assert!(it.next.since(now) <= LEASE_MOST);
            if covers(&it, now, now) {
                prop_assert!(it.is_held(now) && it.trust.is_relied_on(now));
            }
            prop_assert!(!describe(&it, now).is_empty());
        }
    }
}

/// A request that waits for the hub's host was not sent yet.
#[test]
fn a_request_that_is_put_off_has_not_failed() {
    let mut it = asked(&[A]);
    put_off(&mut it, "its host asked for a pause", at(3600));
    assert_eq!((it.standing, it.failures, it.spent), (Standing::Waiting, 0, Some(at(0))));
    assert!(describe(&it, at(0)).contains("its host asked for a pause; it is asked again at"));
    assert!(!due(&mut it, at(3599)) && due(&mut it, at(3600)));
}

/// A lease lasts as long as the clock ran, whatever it was set to before a restart.
#[test]
fn a_clock_that_was_set_back_ends_no_lease_and_makes_none_longer() {
    let year = Duration::from_secs(365 * 86_400);
    let ahead = || {
        let it = held();
        let later = |time: Time| time.plus(year);
        let lease = |of: Lease| Lease { since: later(of.since), until: later(of.until) };
        let (spent, lease) = (it.spent.map(later), it.lease.map(lease));
        Subscription { next: later(it.next), spent, lease, ..it }
    };
    for (mut it, back, now, goes_on) in [
        // The clock was a year ahead, and the difference is known.
        (ahead(), year, at(10), true),
        // The difference is unknown: the hub is asked again at once.
        (ahead(), Duration::ZERO, at(10), false),
        // No pause exceeds the longest one either.
        (Subscription { lease: None, ..ahead() }, Duration::ZERO, at(10), false),
        // The clock was not changed.
        (held(), Duration::ZERO, at(10), true),
        // The clock was behind and is corrected: the lease seems to have ended, and the hub is asked again.
        (held(), Duration::ZERO, at(0).plus(year), false),
    ] {
        resume(&mut it, back, now);
        match goes_on {
            true => assert_eq!(it, held()),
            false => assert!(!it.is_held(now) && due(&mut it, now), "{it:?}"),
        }
    }
}
