use super::*;
use crate::hub::{PUSH_LIMIT, PUSH_TIME, PUSHES_AT_ONCE, SHORT_PUSH};
use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::future::{join_all, poll_immediate};
use tidegate_core::websub::Secret;
use tidegate_poll::testing::double::hub_subscription;
use tidegate_status::HubReport;

const KNOWN: &str = "/websub/callback/known.news";

/// A site whose feeds are subscribed to at a hub under the topic `t`.
fn subscribed() -> Site {
    let site = Site::new();
    let others = (0..PUSHES_AT_ONCE).map(|n| format!("n{n}"));
    for feed in others.chain(["news".to_owned()]) {
        let (record, subscription) = (record(&feed, FeedStanding::Active), subscription(&feed));
        if feed == "news" {
            let subscription = Some(Box::new(subscription.clone()));
            let state = PollState::new(&record.name, &record.url);
            site.store.set_poll(&PollState { subscription, ..state });
        }
        let hub = HubReport { subscription, disbelieved: Default::default() };
        site.polling.tell(&record, PollStatus { hub: Some(hub), ..PollStatus::default() });
    }
    site
}

fn subscription(feed: &str) -> HubSubscription {
    let keys = SubscriptionKeys { token: format!("known.{feed}"), secret: "s".repeat(64) };
    let (topic, standing, next) = ("t".to_owned(), SubscriptionStanding::Asked, at(86_400));
    HubSubscription { topic, standing, next, ..hub_subscription(feed, keys) }
}

async fn answered(answer: Response<Body>) -> (u16, String) {
    (answer.status().as_u16(), text(answer).await)
}

fn verification(mode: &str, topic: &str) -> String {
    format!(
        "{KNOWN}?hub.mode={mode}&hub.topic={topic}&hub.challenge=%3Cb%3E1+2&hub.lease_seconds=900"
    )
}

#[tokio::test]
async fn a_push_is_handed_on_whether_or_not_it_is_believed_and_a_challenge_echoed() {
    let site = subscribed();
    let push = |path: &str, headers: &[(&str, &str)], body: &str| {
        site.ask(request("POST", path, headers, body))
    };
    let signature = Secret::new(&"s".repeat(64)).unwrap().sign(b"<feed/>");
    let signed = [("x-hub-signature", &*signature), ("content-type", "application/atom+xml")];
    for headers in [&signed[..], &[]] {
        let answer = push(KNOWN, headers, "<feed/>").await;
        assert_eq!(answered(answer).await, (202, String::new()));
    }
    // More than other requests may have, and not without end.
    let large = "x".repeat(1024 * 1024);
    assert_eq!(push(KNOWN, &signed, &large).await.status(), 202);
    problem(push(KNOWN, &signed, &"x".repeat(PUSH_LIMIT + 1)).await, 413).await;
    problem(push("/websub/callback/unknown", &signed, "<feed/>").await, 410).await;
    let hub = site.polling.poller.status(&name("news")).unwrap().hub.unwrap();
    assert_eq!(hub.disbelieved.count, 2, "the one that is signed is believed");
    problem(site.ask(request("PUT", KNOWN, &[], "")).await, 405).await;
    // A challenge is echoed as plain text, for what was asked alone.
    site.polling.start().await;
    let answer = site.get(&verification("subscribe", "t")).await;
    let plain = ["content-type", "x-content-type-options", "cache-control"];
    let plain = plain.map(|name| header(&answer, name));
    assert_eq!(plain, ["text/plain; charset=utf-8", "nosniff", "no-store"]);
    assert_eq!(answered(answer).await, (200, "<b>1 2".to_owned()));
    let standing = || {
        let hub = site.polling.poller.status(&name("news")).unwrap().hub.unwrap();
        hub.subscription.standing
    };
    assert_eq!(standing(), SubscriptionStanding::Verified);

    let unknown = verification("subscribe", "t").replace("known", "unknown");
    let long = unknown.replace("unknown", &"x".repeat(1000));
    for wrong in [
        verification("subscribe", "other"),
        verification("publish", "t"),
        KNOWN.to_owned(),
        format!("{KNOWN}?hub.mode=subscribe&hub.topic=t&hub.challenge=1"),
        format!("{KNOWN}?hub.mode=subscribe&hub.topic=t&hub.lease_seconds=1"),
        unknown,
        long,
        "/websub/callback/%FF?hub.mode=subscribe".to_owned(),
    ] {
        problem(site.get(&wrong).await, 404).await;
    }
    let denied = site.get(&format!("{KNOWN}?hub.mode=denied&hub.topic=t&hub.reason=no")).await;
    assert_eq!(answered(denied).await, (200, String::new()));
    assert_eq!(standing(), SubscriptionStanding::Denied);
}

/// A push whose body says no more after so many bytes, and never ends.
pub(super) fn slow(path: &str, bytes: usize) -> Request<Body> {
    let begun = Bytes::from(vec![b'x'; bytes]);
    let begun = futures_util::stream::once(async { Ok::<_, std::io::Error>(begun) });
    let body = Body::from_stream(begun.chain(futures_util::stream::pending()));
    Request::builder().method("POST").uri(path).body(body).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_slow_push_keeps_out_nobody_but_its_own_hub() {
    let site = subscribed();
    let push = |path: &str| site.ask(request("POST", path, &[], "x"));
    let other = "/websub/callback/known.n0";
    let slow = site.ask(slow(KNOWN, 1));
    tokio::pin!(slow);
    assert!(poll_immediate(slow.as_mut()).await.is_none());
    is_retried(push(KNOWN).await).await;
    assert_eq!(push(other).await.status(), 202);
    let begun = tokio::time::Instant::now();
    problem(slow.await, 408).await;
    assert_eq!(begun.elapsed().as_secs(), PUSH_TIME.as_secs());
    assert_eq!(push(KNOWN).await.status(), 202, "it is over");
    assert_eq!(site.app.pushing.keys(), 0);
    // So many long ones are read at once, and short ones beside them.
    let long = "x".repeat(SHORT_PUSH + 1);
    let long_ones = (0..PUSHES_AT_ONCE).map(|n| format!("/websub/callback/known.n{n}"));
    let slow: Vec<_> =
        long_ones.map(|path| Box::pin(site.ask(self::slow(&path, SHORT_PUSH + 1)))).collect();
    let mut slow = join_all(slow);
    assert!(poll_immediate(&mut slow).await.is_none());
    assert_eq!(site.app.pushes.available_permits(), 0);
    assert_eq!(push(KNOWN).await.status(), 202);
    // Also one that does not say how long it is.
    let bytes = (0..SHORT_PUSH).map(|_| Ok::<_, std::io::Error>(Bytes::from_static(b"x")));
    let body = Body::from_stream(futures_util::stream::iter(bytes));
    let push = Request::builder().method("POST").uri(KNOWN).body(body).unwrap();
    assert_eq!(site.ask(push).await.status(), 202);
    // A long one has its turn when the slow ones have had theirs.
    tokio::time::advance(Duration::from_secs(1)).await;
    let waits = site.ask(request("POST", KNOWN, &[], &long));
    let (gone, answer) = tokio::join!(slow, waits);
    assert_eq!(answer.status(), 202);
    for answer in gone {
        problem(answer, 408).await;
    }
    assert_eq!(site.app.pushes.available_permits(), PUSHES_AT_ONCE);
}
