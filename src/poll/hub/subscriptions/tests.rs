use super::entries::{UNVERIFIED, UNVERIFIED_PER_HOST};
use super::*;
use tidegate_core::model::testing::{self, at, name};

const TOPIC: &str = "https://gate.example/feeds/news";

fn tick(seconds: i64) -> Option<Tick> {
    Some(testing::tick(seconds))
}

fn news() -> FeedName {
    name("news")
}

fn request(intent: Intent, callback: &str, lease: Option<u64>) -> HubRequest {
    let (topic, callback) = (TOPIC.to_owned(), Url::parse(callback).unwrap());
    HubRequest { intent, topic, callback, lease, secret: None }
}

fn new_table() -> SubscriptionTable {
    SubscriptionTable::new(HubSettings::default(), Vec::new(), at(0))
}

impl SubscriptionTable {
    fn subscribe(&mut self, callback: &str, now: i64) -> Result<(), AskError> {
        self.subscribe_as(None, callback, now)
    }

    fn subscribe_as(
        &mut self,
        client: Option<&str>,
        callback: &str,
        now: i64,
    ) -> Result<(), AskError> {
        let client = client.map(|client| client.parse().unwrap());
        let request = request(Intent::Subscribe, callback, None);
        self.ask(&news(), Manner::WebSub, request, client, tick(0), at(now))
    }

    fn begun(&mut self, now: i64) -> Vec<(SubscriptionId, Task)> {
        let ids: Vec<_> = self.due(at(now), |_| true).into_iter().map(|queued| queued.id).collect();
        let begin = |id| Some((id, self.begin(id, at(now), |_| true)?));
        ids.into_iter().filter_map(begin).collect()
    }

    /// Answers the due calls; returns how many there were.
    fn answer(&mut self, answer: &CallbackAnswer, now: i64) -> usize {
        let begun = self.begun(now);
        for (_, task) in &begun {
            self.verified(task, answer.clone(), at(now));
        }
        begun.len()
    }

    fn agree(&mut self, now: i64) {
        for (_, task) in self.begun(now) {
            assert_eq!(task.duty, Duty::Verify(Intent::Subscribe));
            self.verified(&task, CallbackAnswer::Taken, at(now));
        }
    }

    fn write(&mut self) {
        let written = self.unwritten(9);
        self.note_written(written);
    }
}

#[test]
fn what_is_settled_comes_back_and_what_changed_while_it_was_written_is_written_again() {
    let mut table = new_table();
    table.subscribe("https://reader.example/a", 0).unwrap();
    // Changes stay unwritten until a write succeeds.
    assert_eq!(table.unwritten(9), table.unwritten(9));
    let written = table.unwritten(9);
    table.agree(1);
    table.note_written(written.clone());
    let [change] = table.unwritten(9).try_into().unwrap();
    assert_eq!(change.before.as_ref(), Some(&written[0].after));
    assert!(change.after.active.is_some() && written[0].after.active.is_none());
    assert!(table.is_dirty());
    let changes = table.unwritten(9);
    table.note_written(changes.clone());
    assert!(!table.is_dirty());
    let kept: Vec<_> = changes.into_iter().map(|change| change.after).collect();
    assert_eq!(kept, table.list(None, 9));
    let mut again = SubscriptionTable::new(HubSettings::default(), kept, at(2));
    assert_eq!((again.count().active, again.feeds()), (1, vec![news()]));
    again.note_tick(&news(), tick(5), at(5));
    assert_eq!(again.due(at(5), |_| true).len(), 1);
    assert!(again.list(Some(&name("other")), 9).is_empty());
}

#[test]
fn requests_that_nobody_verifies_have_a_limit_for_each_domain() {
    let mut table = new_table();
    for number in 0..UNVERIFIED_PER_HOST {
        table.subscribe(&format!("https://n{number}.reader.example/"), 0).unwrap();
    }
    let full = table.subscribe("https://one-more.reader.example/", 0).unwrap_err();
    assert!(matches!(full, AskError::Full { limit: UNVERIFIED_PER_HOST, .. }), "{full}");
    table.subscribe("https://other.example/", 0).unwrap();
    // Verified requests make room, and so do refused ones.
    table.agree(1);
    table.subscribe("https://one-more.reader.example/", 2).unwrap();
    assert_eq!(table.count().active, UNVERIFIED_PER_HOST + 1);
    // Denials are no such requests.
    table.deny(at(3), |_| Some("gone"));
    assert_eq!(table.count().pending, UNVERIFIED_PER_HOST + 2);
    table.subscribe("https://two-more.reader.example/", 4).unwrap();
    // Settings limit all, and those of one domain.
    let settings = HubSettings { subscriptions: 3, per_host: 2, ..HubSettings::default() };
    let mut table = SubscriptionTable::new(settings, Vec::new(), at(0));
    table.subscribe("https://a.reader.example/1", 0).unwrap();
    table.subscribe("https://b.reader.example/2", 0).unwrap();
    assert!(table.subscribe("https://c.reader.example/3", 0).is_err());
    table.subscribe("https://other.example/", 0).unwrap();
    assert!(table.subscribe("https://third.example/", 0).is_err());
    table.subscribe("https://a.reader.example/1", 1).unwrap();
    table.answer(&CallbackAnswer::Refused("no".into()), 2);
    assert_eq!(table.count(), SubscriptionCount::default());
    assert!(table.unverified.is_empty() && table.feeds.is_empty());
    table.subscribe("https://c.reader.example/3", 3).unwrap();
}

#[test]
fn an_answer_to_an_earlier_request_says_nothing_of_a_later_one() {
    let mut table = new_table();
    table.subscribe("https://reader.example/a", 0).unwrap();
    let (_, task) = table.begun(1).remove(0);
    // Meanwhile the subscriber sends another request.
    let request = request(Intent::Subscribe, "https://reader.example/a", Some(600));
    table.ask(&news(), Manner::WebSub, request, None, tick(0), at(2)).unwrap();
    assert!(table.begun(2).is_empty(), "one call at a time");
    table.verified(&task, CallbackAnswer::Taken, at(3));
    assert_eq!(table.count().active, 0);
    assert_eq!(table.begun(3)[0].1.duty, Duty::Verify(Intent::Subscribe));
    // Nor does an end that nobody verifies displace what is asked for.
    let mut table = new_table();
    let end = |table: &mut SubscriptionTable, now| {
        let request = self::request(Intent::Unsubscribe, "https://reader.example/a", None);
        table.ask(&news(), Manner::WebSub, request, None, tick(0), at(now))
    };
    table.subscribe("https://reader.example/a", 0).unwrap();
    assert!(matches!(end(&mut table, 0), Err(AskError::Pending)));
    table.agree(1);
    assert_eq!(table.count().active, 1);
    end(&mut table, 2).unwrap();
    assert_eq!(table.begun(2)[0].1.duty, Duty::Verify(Intent::Unsubscribe));
}

#[test]
fn a_client_leaves_room_for_the_requests_of_others() {
    let mut table = new_table();
    let mut taken = 0;
    let full = loop {
        // The client uses another address of its network each time.
        let client = format!("2001:db8:1:{taken:x}::1");
        match table.subscribe_as(Some(&client), &format!("https://silent{taken}.example/"), 0) {
            Ok(()) => taken += 1,
            Err(full) => break full,
        }
    };
    assert_eq!(taken, UNVERIFIED / 2);
    assert!(matches!(full, AskError::Full { limit: UNVERIFIED, .. }), "{full}");
    for n in 0..100 {
        let (client, callback) = (format!("192.0.2.{n}"), format!("https://reader{n}.example/"));
        table.subscribe_as(Some(&client), &callback, 1).unwrap();
    }
    // Only unverified requests count.
    table.agree(2);
    let (client, callback) = (Some("2001:db8:1::1"), "https://silent.example/");
    table.subscribe_as(client, callback, 3).unwrap();
    // One client cannot use up a host either.
    let mut table = new_table();
    let mut of =
        |client, n| table.subscribe_as(Some(client), &format!("https://reader.example/{n}"), 0);
    assert_eq!((0..1000).filter(|n| of("192.0.2.1", *n).is_ok()).count(), UNVERIFIED_PER_HOST / 2);
    assert!((1000..1100).all(|n| of("192.0.2.2", n).is_ok()));
    // Private addresses that are allowed for feeds and webhooks are not open to strangers.
    let allowed = AllowPrivate::only(["10.0.0.1:81"]).unwrap();
    let settings = HubSettings { private_callbacks: allowed, ..HubSettings::default() };
    let mut table = SubscriptionTable::new(settings, Vec::new(), at(0));
    table.subscribe("http://10.0.0.1:81/a", 0).unwrap();
    for callback in ["http://10.0.0.1/a", "http://10.0.0.2:81/", "http://[::ffff:7f00:1]:81/"] {
        let refused = table.subscribe(callback, 0).unwrap_err();
        assert!(refused.to_string().contains("websub.private_callbacks"), "{refused}");
        let request = request(Intent::Subscribe, callback, None);
        let refused = table.ask(&news(), Manner::RssCloud, request, None, tick(0), at(0));
        assert!(matches!(refused, Err(AskError::Callback(_))), "{refused:?}");
    }
    let secret = Secret::new("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
    let hook = Some((Url::parse("http://10.0.0.2:81/").unwrap(), secret));
    let mut set = |allow| table.set_webhook(&news(), hook.clone(), &allow, None, at(0));
    assert!(set(AllowPrivate::No).is_err() && set(AllowPrivate::All).is_ok());
}

#[test]
fn a_change_is_due_once_for_each_and_expired_ones_go() {
    let mut table = new_table();
    table.subscribe("https://a.example/", 0).unwrap();
    table.subscribe("https://b.example/", 0).unwrap();
    table.agree(1);
    assert!(table.begun(2).is_empty(), "what they know is not delivered");
    table.note_tick(&news(), tick(3), at(3));
    table.note_tick(&news(), tick(2), at(3));
    let begun = table.begun(3);
    assert_eq!(begun.len(), 2);
    assert!(begun.iter().all(|(_, task)| task.duty == Duty::Deliver));
    for (id, _) in &begun {
        table.delivered(*id, CallbackAnswer::Taken, tick(3), at(4));
    }
    assert!(table.begun(5).is_empty());
    assert_eq!(table.count().delivered, 2);
    let end = table.next().unwrap();
    assert_eq!(end, at(1).plus(HubSettings::default().leases.usual));
    assert!(table.due(end, |_| true).is_empty());
    let count = SubscriptionCount { delivered: 2, ..SubscriptionCount::default() };
    assert_eq!((table.count(), table.next()), (count, None));
    // A lease that ends while its delivery waits is not delivered.
    let mut table = new_table();
    table.subscribe("https://a.example/", 0).unwrap();
    table.agree(1);
    table.note_tick(&news(), tick(3), at(3));
    let id = table.due(at(3), |_| true).remove(0).id;
    // It is made by the feed's owner at that time.
    assert!(table.begin(id, at(4), |_| false).is_none());
    assert_eq!(table.due(at(4), |_| true).len(), 1);
    table.release(id, at(5));
    assert_eq!(table.due(at(5), |_| true).len(), 1);
    let end = at(1).plus(HubSettings::default().leases.usual);
    assert!(table.begin(id, end, |_| true).is_none());
    assert_eq!(table.count().active, 0);
    // A clock that is set back delays nobody.
    let mut table = new_table();
    table.subscribe("https://reader.example/a", 9000).unwrap();
    assert!(table.due(at(8999), |_| true).is_empty());
    assert_eq!(table.begun(20).len(), 1, "an hour and more was taken back");
    // What cannot be delivered for hours is tried seldom, said once and not written.
    let mut table = new_table();
    for host in ["a", "b"] {
        table.subscribe(&format!("https://{host}.example/"), 0).unwrap();
    }
    table.agree(1);
    table.note_tick(&news(), tick(2), at(2));
    table.write();
    let (mut tried, mut said) = (0, 0);
    for now in 2..36_002 {
        for (id, task) in table.begun(now) {
            let first = table.put_off(id, task.duty, "it is not there", at(now));
            (tried, said) = (tried + 1, said + usize::from(first));
        }
    }
    assert_eq!((tried, said, table.is_dirty()), (2 * 44, 1, false));
    let troubles = table.list(None, 9).into_iter().map(|of| of.active.unwrap().trouble);
    assert!(troubles.into_iter().all(|trouble| trouble.as_deref() == Some("it is not there")));
    // After a delivery, the next failure is reported anew.
    let (id, task) = table.begun(37_000).remove(0);
    table.delivered(id, CallbackAnswer::Taken, tick(1), at(37_100));
    assert!(table.put_off(id, task.duty, "gone again", at(38_000)));
}

#[test]
fn what_another_gateway_took_or_called_is_taken_in_and_the_owner_alone_calls() {
    let mut one = new_table();
    let mut other = new_table();
    one.subscribe("https://a.example/", 0).unwrap();
    let stored = |one: &SubscriptionTable| one.list(None, 9);
    assert!(other.adopt_stored(stored(&one), at(1)));
    assert!(!other.adopt_stored(stored(&one), at(1)), "nothing is new");
    assert!(other.due(at(1), |_| false).is_empty(), "another gateway owns the feed");
    other.schedule_all(at(1));
    assert_eq!(other.due(at(1), |_| true).len(), 1);
    // A subscription with a call in flight only adopts a newer request.
    one.agree(2);
    assert!(!other.adopt_stored(stored(&one), at(2)));
    assert_eq!(other.count().active, 0);
    one.subscribe("https://a.example/", 5).unwrap();
    other.adopt_stored(stored(&one), at(5));
    let asked = other.list(None, 9)[0].pending.as_ref().unwrap().asked;
    assert_eq!(asked, at(5));
    // A subscription deleted from the store is removed, unless it has a call in flight or unwritten changes.
    let mut third = new_table();
    third.adopt_stored(stored(&one), at(6));
    third.adopt_stored(Vec::new(), at(7));
    assert_eq!(third.count(), SubscriptionCount::default());
    // What is to be written here is not taken back.
    let mut table = new_table();
    table.subscribe("https://a.example/", 0).unwrap();
    let read = table.list(None, 9);
    table.agree(1);
    table.adopt_stored(read.clone(), at(1));
    assert_eq!(table.count().active, 1);
    // An ended subscription is not restored.
    assert_eq!(table.deny(at(3), |_| Some("gone")), 1);
    table.answer(&CallbackAnswer::Taken, 3);
    table.adopt_stored(read.clone(), at(4));
    assert_eq!(table.count(), SubscriptionCount::default());
    table.write();
    // Once written, what others stored later is adopted.
    assert!(table.adopt_stored(read, at(5)));
}

/// An rssCloud registration may name ten feeds, but asks its reader once.
#[test]
fn a_registration_with_the_cloud_is_one_question() {
    let mut table = new_table();
    let register = |table: &mut SubscriptionTable, now| {
        for n in 0..10 {
            let of_one = request(Intent::Subscribe, "https://reader.example/told", None);
            let of_one = HubRequest { topic: format!("{TOPIC}{n}"), ..of_one };
            table.ask(&news(), Manner::RssCloud, of_one, None, tick(0), at(now)).unwrap();
        }
    };
    register(&mut table, 0);
    let begun = table.begun(1);
    assert_eq!(begun.len(), 1, "one challenge");
    register(&mut table, 1);
    assert_eq!(table.begun(2).len(), 0, "nor another while it is asked");
    table.verified(&begun[0].1, CallbackAnswer::Taken, at(2));
    assert_eq!(table.count().active, 10);
    // A renewal asks once too, and a refusal counts for all its feeds.
    register(&mut table, 100);
    let begun = table.begun(101);
    assert_eq!(begun.len(), 1);
    table.verified(&begun[0].1, CallbackAnswer::Refused("no".to_owned()), at(102));
    assert_eq!(table.begun(50_000).len(), 0);
    // If the callback fails, the whole registration is dropped; repeating a request does not delay it.
    let mut table = new_table();
    register(&mut table, 0);
    register(&mut table, 0);
    assert_eq!(table.next(), Some(at(0)));
    let failed = CallbackAnswer::Failed { why: "down".to_owned(), after: None };
    let calls: usize = (0..20_000).step_by(10).map(|now| table.answer(&failed, now)).sum();
    assert_eq!((calls, table.count().pending), (3, 0));
    // A registration does not wait for the answer of one that waits itself.
    let mut table = new_table();
    register(&mut table, 0);
    let (id, task) = table.begun(1).remove(0);
    table.put_off(id, task.duty, "later", at(1));
    let late = request(Intent::Subscribe, "https://reader.example/told", None);
    table.ask(&news(), Manner::RssCloud, late, None, tick(0), at(2)).unwrap();
    assert_eq!(table.begun(2).len(), 1);
}
