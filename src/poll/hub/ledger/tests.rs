//! The ledger: its limits, what is due, and what is written when the store does not work.

use super::books::{UNVERIFIED, UNVERIFIED_PER_HOST};
use super::*;
use tidegate_core::clock::ManualClock;
use tidegate_core::model::EndpointId;
use tidegate_core::websub::{Intent, Push, VerificationResult};
use tidegate_store::EmbeddedStore;

const TOPIC: &str = "https://gate.example/feeds/news";

fn at(seconds: i64) -> Time {
    Time::from_unix(1_795_191_605 + seconds)
}

fn tick(seconds: i64) -> Option<Tick> {
    Some(Tick::at(at(seconds)))
}

fn news() -> FeedName {
    FeedName::new("news").unwrap()
}

struct Bench {
    store: Arc<EmbeddedStore>,
    ledger: Ledger,
}

impl Bench {
    fn new(settings: HubSettings) -> Self {
        let clock = Arc::new(ManualClock::at(at(0)));
        let store = Arc::new(
            EmbeddedStore::in_memory(Some(EndpointId::own("gate").unwrap()), clock).unwrap(),
        );
        let ledger = Ledger::new(Arc::clone(&store) as Arc<dyn Store>, settings, Vec::new(), at(0));
        Self { store, ledger }
    }

    fn ask(&self, callback: &str, now: i64) -> Result<(), AskError> {
        self.ask_as(None, callback, now)
    }

    fn ask_as(&self, client: Option<&str>, callback: &str, now: i64) -> Result<(), AskError> {
        let client = client.map(|client| client.parse().unwrap());
        let callback = Url::parse(callback).unwrap();
        let request =
            HubRequest::Subscribe { topic: TOPIC.to_owned(), callback, lease: None, secret: None };
        self.ledger.ask(&news(), request, client, tick(0), at(now))
    }

    /// Whom to call now, and what for.
    fn begun(&self, now: i64) -> Vec<(SubscriptionId, Task)> {
        let due = self.ledger.due(at(now), |_| true);
        due.into_iter()
            .filter_map(|turn| {
                self.ledger.begin(turn.id, at(now), |_| true).map(|task| (turn.id, task))
            })
            .collect()
    }

    fn agree(&self, now: i64) {
        for (id, task) in self.begun(now) {
            assert_eq!(task.duty, Duty::Verify(Intent::Subscribe));
            let agreed = |of: &mut Subscription| of.heard(VerificationResult::Agreed, at(now));
            self.ledger.finish(id, Some(task.serial), at(now), agreed);
        }
    }
}

#[tokio::test]
async fn what_is_settled_is_in_the_store_and_comes_back() {
    let bench = Bench::new(HubSettings::default());
    bench.ask("https://reader.example/a", 0).unwrap();
    bench.agree(1);
    assert!(bench.ledger.is_dirty());
    bench.ledger.flush().await.unwrap();
    assert!(!bench.ledger.is_dirty());
    let kept = bench.store.subscriptions().await.unwrap();
    assert_eq!(kept, bench.ledger.list(None, 9));
    let store = Arc::clone(&bench.store) as Arc<dyn Store>;
    let again = Ledger::new(store, HubSettings::default(), kept, at(2));
    assert_eq!((again.count().active, again.feeds()), (1, vec![news()]));
    again.saw(&news(), tick(5), at(5));
    assert_eq!(again.due(at(5), |_| true).len(), 1);
    assert!(again.list(FeedName::new("other").ok().as_ref(), 9).is_empty());
}

#[tokio::test]
async fn what_could_not_be_written_is_written_later_as_it_then_stands() {
    let bench = Bench::new(HubSettings::default());
    bench.store.close().await.unwrap();
    bench.ask("https://reader.example/a", 0).unwrap();
    assert!(bench.ledger.flush().await.is_err());
    assert!(bench.ledger.is_dirty(), "it is not forgotten");
    // What is asked for again is answered only once it is stored.
    bench.ask("https://reader.example/a", 1).unwrap();
    assert!(bench.ledger.flush().await.is_err());
}

#[test]
fn requests_that_nobody_verifies_have_a_limit_for_each_domain() {
    let bench = Bench::new(HubSettings::default());
    for number in 0..UNVERIFIED_PER_HOST {
        bench.ask(&format!("https://n{number}.reader.example/"), 0).unwrap();
    }
    let full = bench.ask("https://one-more.reader.example/", 0).unwrap_err();
    assert!(matches!(full, AskError::Full { limit: UNVERIFIED_PER_HOST, .. }), "{full}");
    bench.ask("https://other.example/", 0).unwrap();
    // Verified, they make room; refused, too.
    bench.agree(1);
    bench.ask("https://one-more.reader.example/", 2).unwrap();
    assert_eq!(bench.ledger.count().active, UNVERIFIED_PER_HOST + 1);
}

#[test]
fn settings_limit_all_and_those_of_one_domain() {
    let settings = HubSettings { subscriptions: 3, per_host: 2, ..HubSettings::default() };
    let bench = Bench::new(settings);
    bench.ask("https://a.reader.example/1", 0).unwrap();
    bench.ask("https://b.reader.example/2", 0).unwrap();
    assert!(bench.ask("https://c.reader.example/3", 0).is_err());
    bench.ask("https://other.example/", 0).unwrap();
    assert!(bench.ask("https://third.example/", 0).is_err());
    bench.ask("https://a.reader.example/1", 1).unwrap();
    for (id, task) in bench.begun(2) {
        let refuse =
            |of: &mut Subscription| of.heard(VerificationResult::Refused("no".into()), at(2));
        bench.ledger.finish(id, Some(task.serial), at(2), refuse);
    }
    assert_eq!(bench.ledger.count(), SubscriptionCount::default());
    assert!(bench.ledger.inner().hosts.is_empty() && bench.ledger.inner().feeds.is_empty());
    bench.ask("https://c.reader.example/3", 3).unwrap();
}

#[test]
fn an_answer_to_an_earlier_request_says_nothing_of_a_later_one() {
    let bench = Bench::new(HubSettings::default());
    bench.ask("https://reader.example/a", 0).unwrap();
    let (id, task) = bench.begun(1).remove(0);
    // Meanwhile the subscriber changes its mind.
    let callback = Url::parse("https://reader.example/a").unwrap();
    let (topic, lease) = (TOPIC.to_owned(), Some(600));
    let request = HubRequest::Subscribe { topic, callback, lease, secret: None };
    bench.ledger.ask(&news(), request, None, tick(0), at(2)).unwrap();
    assert!(bench.begun(2).is_empty(), "one call at a time");
    let agreed = |of: &mut Subscription| of.heard(VerificationResult::Agreed, at(3));
    bench.ledger.finish(id, Some(task.serial), at(3), agreed);
    assert_eq!(bench.ledger.count().active, 0);
    assert_eq!(bench.begun(3)[0].1.duty, Duty::Verify(Intent::Subscribe));
}

#[test]
fn an_end_that_nobody_verifies_does_not_displace_what_is_asked_for() {
    let bench = Bench::new(HubSettings::default());
    let end = |now| {
        let callback = Url::parse("https://reader.example/a").unwrap();
        let request = HubRequest::Unsubscribe { topic: TOPIC.to_owned(), callback };
        bench.ledger.ask(&news(), request, None, tick(0), at(now))
    };
    bench.ask("https://reader.example/a", 0).unwrap();
    assert!(matches!(end(0), Err(AskError::Pending)));
    bench.agree(1);
    assert_eq!(bench.ledger.count().active, 1);
    end(2).unwrap();
    assert_eq!(bench.begun(2)[0].1.duty, Duty::Verify(Intent::Unsubscribe));
}

#[test]
fn when_all_room_is_taken_who_failed_once_gives_way() {
    let bench = Bench::new(HubSettings::default());
    for number in 0..UNVERIFIED {
        bench.ask(&format!("https://reader{number}.example/"), 0).unwrap();
    }
    let full = bench.ask("https://late.example/", 1).unwrap_err();
    assert!(matches!(full, AskError::Full { limit: UNVERIFIED, .. }), "{full}");
    let (id, task) = bench.begun(1).remove(0);
    let failed = VerificationResult::Failed { why: "it hangs".to_owned(), after: None };
    let edit = |of: &mut Subscription| of.heard(failed, at(2));
    bench.ledger.finish(id, Some(task.serial), at(2), edit);
    bench.ask("https://late.example/", 3).unwrap();
    let kept = bench.ledger.list(None, UNVERIFIED);
    assert_eq!((kept.len(), kept.iter().any(|of| of.id() == id)), (UNVERIFIED, false));
    assert!(bench.ask("https://later.example/", 4).is_err(), "nobody else has failed");
}

/// With one callback after the other that never answers.
#[test]
fn a_client_leaves_room_for_the_requests_of_others() {
    let bench = Bench::new(HubSettings::default());
    let mut taken = 0;
    let full = loop {
        // Of one network, each time at another address of it.
        let client = format!("2001:db8:1:{taken:x}::1");
        match bench.ask_as(Some(&client), &format!("https://silent{taken}.example/"), 0) {
            Ok(()) => taken += 1,
            Err(full) => break full,
        }
    };
    assert_eq!(taken, UNVERIFIED / 2);
    assert!(matches!(full, AskError::Full { limit: UNVERIFIED, .. }), "{full}");
    let mut others =
        (0..100).map(|n| (format!("192.0.2.{n}"), format!("https://reader{n}.example/")));
    assert!(others.all(|(client, callback)| bench.ask_as(Some(&client), &callback, 1).is_ok()));
    // Only what is not verified counts.
    bench.agree(2);
    let (client, callback) = (Some("2001:db8:1::1"), "https://silent.example/");
    bench.ask_as(client, callback, 3).unwrap();
    // Nor is a host one client's.
    let bench = Bench::new(HubSettings::default());
    let of = |client, n| bench.ask_as(Some(client), &format!("https://reader.example/{n}"), 0);
    assert_eq!((0..1000).filter(|n| of("192.0.2.1", *n).is_ok()).count(), UNVERIFIED_PER_HOST / 2);
    assert!((1000..1100).all(|n| of("192.0.2.2", n).is_ok()));
}

/// What the operator allows to feeds and webhooks is for no stranger to use.
#[test]
fn strangers_name_private_addresses_only_where_the_operator_says_so() {
    let allowed = AllowPrivate::only(["10.0.0.1:81"]).unwrap();
    let settings = HubSettings { private_callbacks: allowed, ..HubSettings::default() };
    let bench = Bench::new(settings);
    bench.ask("http://10.0.0.1:81/a", 0).unwrap();
    for callback in ["http://10.0.0.1/a", "http://10.0.0.2:81/", "http://[::ffff:7f00:1]:81/"] {
        let refused = bench.ask(callback, 0).unwrap_err();
        assert!(refused.to_string().contains("websub.private_callbacks"), "{refused}");
        let key = (TOPIC.to_owned(), Url::parse(callback).unwrap());
        let refused = bench.ledger.register(&news(), key, None, tick(0), at(0));
        assert!(matches!(refused, Err(AskError::Callback(_))), "{refused:?}");
    }
    let secret = Secret::new("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
    let hook = Some((Url::parse("http://10.0.0.2:81/").unwrap(), secret));
    let set = |allow| bench.ledger.set_webhook(&news(), hook.clone(), &allow, None, at(0));
    assert!(set(AllowPrivate::No).is_err() && set(AllowPrivate::All).is_ok());
}

/// A document that cannot be had, for hours.
#[test]
fn what_cannot_be_delivered_for_long_is_tried_seldom_said_once_and_not_written() {
    let bench = Bench::new(HubSettings::default());
    for host in ["a", "b"] {
        bench.ask(&format!("https://{host}.example/"), 0).unwrap();
    }
    bench.agree(1);
    bench.ledger.saw(&news(), tick(2), at(2));
    bench.ledger.inner().dirty.clear();
    let (mut tried, mut said) = (0, 0);
    for now in 2..36_002 {
        for (id, task) in bench.begun(now) {
            let first = bench.ledger.put_off(id, task.duty, Some("it is not there"), at(now));
            (tried, said) = (tried + 1, said + usize::from(first));
        }
    }
    assert_eq!((tried, said, bench.ledger.is_dirty()), (2 * 44, 1, false));
    let troubles = bench.ledger.list(None, 9).into_iter().map(|of| of.active.unwrap().trouble);
    assert!(troubles.into_iter().all(|trouble| trouble.as_deref() == Some("it is not there")));
    // A host that has had its calls of a minute is called in the next one, however often.
    let ids: Vec<_> = bench.begun(37_000).into_iter().map(|(id, task)| (id, task.duty)).collect();
    for now in [37_000, 37_030, 37_060] {
        for (id, duty) in &ids {
            assert!(!bench.ledger.put_off(*id, *duty, None, at(now)));
        }
        assert_eq!(bench.begun(now + 30).len(), 2);
    }
    // Once it is there, it is said anew that it is not.
    bench.ledger.counted(ids[0].0, true);
    assert!(bench.ledger.put_off(ids[0].0, Duty::Deliver, Some("gone again"), at(38_000)));
}

#[test]
fn a_denial_is_no_unverified_request() {
    let bench = Bench::new(HubSettings::default());
    for number in 0..UNVERIFIED_PER_HOST {
        bench.ask(&format!("https://reader.example/{number}"), 0).unwrap();
    }
    bench.agree(1);
    bench.ledger.deny(at(2), |_| Some("gone"));
    assert_eq!(bench.ledger.count().pending, UNVERIFIED_PER_HOST);
    bench.ask("https://reader.example/one-more", 3).unwrap();
}

#[test]
fn a_clock_that_is_set_back_delays_nobody() {
    let bench = Bench::new(HubSettings::default());
    bench.ask("https://reader.example/a", 9000).unwrap();
    assert!(bench.ledger.due(at(8999), |_| true).is_empty());
    assert_eq!(bench.begun(20).len(), 1, "an hour and more was taken back");
}

#[test]
fn a_change_is_due_once_for_each_and_expired_ones_go() {
    let bench = Bench::new(HubSettings::default());
    bench.ask("https://a.example/", 0).unwrap();
    bench.ask("https://b.example/", 0).unwrap();
    bench.agree(1);
    assert!(bench.begun(2).is_empty(), "what they know is not delivered");
    bench.ledger.saw(&news(), tick(3), at(3));
    bench.ledger.saw(&news(), tick(2), at(3));
    let begun = bench.begun(3);
    assert_eq!(begun.len(), 2);
    assert!(begun.iter().all(|(_, task)| task.duty == Duty::Deliver));
    for (id, _) in &begun {
        bench.ledger.finish(*id, None, at(4), |of| of.pushed(Push::Taken, tick(3), at(4)));
        bench.ledger.counted(*id, true);
    }
    assert!(bench.begun(5).is_empty());
    assert_eq!(bench.ledger.count().delivered, 2);
    let end = bench.ledger.next().unwrap();
    assert_eq!(end, at(1).plus(HubSettings::default().leases.usual));
    assert!(bench.ledger.due(end, |_| true).is_empty());
    assert_eq!(
        (bench.ledger.count(), bench.ledger.next()),
        (SubscriptionCount { delivered: 2, ..SubscriptionCount::default() }, None)
    );
}

#[test]
fn a_lease_that_ends_while_its_delivery_waits_is_not_delivered() {
    let bench = Bench::new(HubSettings::default());
    bench.ask("https://a.example/", 0).unwrap();
    bench.agree(1);
    bench.ledger.saw(&news(), tick(3), at(3));
    let id = bench.ledger.due(at(3), |_| true).remove(0).id;
    let end = at(1).plus(HubSettings::default().leases.usual);
    assert!(bench.ledger.begin(id, end, |_| true).is_none());
    assert_eq!(bench.ledger.count().active, 0);
}

/// A registration with the cloud may name ten feeds, and is one question to one reader.
#[test]
fn a_registration_with_the_cloud_is_one_question() {
    let callback = Url::parse("https://reader.example/told").unwrap();
    let bench = Bench::new(HubSettings::default());
    let register = |topics: std::ops::Range<usize>, now| {
        for n in topics {
            let key = (format!("{TOPIC}{n}"), callback.clone());
            bench.ledger.register(&news(), key, None, tick(0), at(now)).unwrap();
        }
    };
    let answered = |task: &Task, heard: VerificationResult, now| {
        bench.ledger.finish_cloud(task, &heard, at(now));
        let id = task.subscription.id();
        bench.ledger.finish(id, Some(task.serial), at(now), |of| of.heard(heard, at(now)));
    };
    register(0..10, 0);
    let begun = bench.begun(1);
    assert_eq!(begun.len(), 1, "one challenge");
    register(0..10, 1);
    assert_eq!(bench.begun(2).len(), 0, "nor another while it is asked");
    answered(&begun[0].1, VerificationResult::Agreed, 2);
    assert_eq!(bench.ledger.count().active, 10);
    // A registration that is renewed is one question as well, and a no counts for all of it.
    register(0..10, 100);
    let begun = bench.begun(101);
    assert_eq!(begun.len(), 1);
    answered(&begun[0].1, VerificationResult::Refused("no".to_owned()), 102);
    assert_eq!(bench.begun(50_000).len(), 0);
    // One that cannot be asked is given up as a whole.
    let bench = Bench::new(HubSettings::default());
    for n in 0..10 {
        let key = (format!("{TOPIC}{n}"), callback.clone());
        bench.ledger.register(&news(), key, None, tick(0), at(0)).unwrap();
    }
    let mut calls = 0;
    for now in (0..20_000).step_by(10) {
        for (id, task) in bench.begun(now) {
            calls += 1;
            let failed = VerificationResult::Failed { why: "down".to_owned(), after: None };
            bench.ledger.finish_cloud(&task, &failed, at(now));
            bench.ledger.finish(id, Some(task.serial), at(now), |of| of.heard(failed, at(now)));
        }
    }
    assert_eq!((calls, bench.ledger.count().pending), (3, 0));
}

#[test]
fn what_another_gateway_took_or_called_is_taken_in_and_the_owner_alone_calls() {
    let (one, other) = (Bench::new(HubSettings::default()), Bench::new(HubSettings::default()));
    one.ask("https://a.example/", 0).unwrap();
    let stored = || one.ledger.list(None, 9);
    assert!(other.ledger.take_in(stored(), 0, at(1)));
    assert!(!other.ledger.take_in(stored(), 0, at(1)), "nothing is new");
    assert!(other.ledger.due(at(1), |_| false).is_empty(), "another gateway owns the feed");
    other.ledger.schedule_all(at(1));
    assert_eq!(other.ledger.due(at(1), |_| true).len(), 1);
    // What is being called stays as it is, but for a later request.
    one.agree(2);
    assert!(!other.ledger.take_in(stored(), 0, at(2)));
    assert_eq!(other.ledger.count().active, 0);
    one.ask("https://a.example/", 5).unwrap();
    other.ledger.take_in(stored(), 0, at(5));
    let asked = other.ledger.list(None, 9)[0].pending.as_ref().unwrap().asked;
    assert_eq!(asked, at(5));
    // What is gone from the store goes, once nothing of it is under way.
    let third = Bench::new(HubSettings::default());
    third.ledger.take_in(stored(), 0, at(6));
    third.ledger.take_in(Vec::new(), 0, at(7));
    assert_eq!(third.ledger.count(), SubscriptionCount::default());
}

/// The store may be read before a write of this gateway and taken in after it.
#[test]
fn what_was_written_since_the_store_was_read_is_not_taken_back() {
    let bench = Bench::new(HubSettings::default());
    bench.ask("https://a.example/", 0).unwrap();
    let (read, writes) = (bench.ledger.list(None, 9), bench.ledger.writes());
    bench.agree(1);
    let write = || {
        let mut inner = bench.ledger.inner();
        let written: Vec<_> = inner.dirty.drain().map(|(_, change)| change).collect();
        inner.note_written(&written, true);
    };
    bench.ledger.take_in(read.clone(), writes, at(1));
    assert_eq!(bench.ledger.count().active, 1, "it is to be written");
    write();
    bench.ledger.take_in(read.clone(), writes, at(2));
    assert_eq!(bench.ledger.count().active, 1, "it was written since");
    // One that ended is not brought back.
    assert_eq!(bench.ledger.deny(at(3), |_| Some("gone")), 1);
    for (id, task) in bench.begun(3) {
        bench.ledger.finish(id, Some(task.serial), at(3), |of| {
            of.heard(VerificationResult::Agreed, at(3));
        });
    }
    write();
    bench.ledger.take_in(read.clone(), writes + 1, at(4));
    assert_eq!(bench.ledger.count(), SubscriptionCount::default());
    // What others have written since is.
    let writes = bench.ledger.writes();
    assert!(bench.ledger.take_in(read, writes, at(5)));
}

/// A delivery that waits for its turn is made by the owner that the feed has then.
#[test]
fn who_lost_a_feed_meanwhile_calls_nobody() {
    let bench = Bench::new(HubSettings::default());
    bench.ask("https://a.example/", 0).unwrap();
    let id = bench.ledger.due(at(0), |_| true).remove(0).id;
    assert!(bench.ledger.begin(id, at(1), |_| false).is_none());
    assert_eq!(bench.ledger.due(at(1), |_| true).len(), 1);
    bench.ledger.put_back([id], at(2));
    assert_eq!(bench.ledger.due(at(2), |_| true).len(), 1);
}
