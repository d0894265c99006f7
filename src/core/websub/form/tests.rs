use super::*;
use proptest::prelude::*;

const TOPIC: &str = "https://feeds.example.org/feeds/news?as=rss";

fn url(text: &str) -> Url {
    Url::parse(text).unwrap()
}

#[test]
fn a_subscription_is_read_with_all_that_it_says() {
    let body = "hub.mode=subscribe&hub.topic=https%3A%2F%2Ffeeds.example.org%2Ffeeds%2Fnews%3Fas%3Drss\
                &hub.callback=https%3A%2F%2Freader.example%2Fpush%3Fid%3D7%26x%3Da%2520b\
                &hub.lease_seconds=864000&hub.secret=s%26%3D+cret&hub.verify=async";
    let HubRequest { intent, topic, callback, lease, secret } =
        HubRequest::read(body.as_bytes()).unwrap();
    assert_eq!(intent, Intent::Subscribe);
    assert_eq!(topic, TOPIC);
    assert_eq!(callback.as_str(), "https://reader.example/push?id=7&x=a%20b");
    assert_eq!(lease, Some(864_000));
    assert_eq!(secret.unwrap().reveal(), "s&= cret");
    // What is empty or 0 is left to the hub.
    let body = body.replace("864000", "0").replace("s%26%3D+cret", "");
    let HubRequest { lease, secret, .. } = HubRequest::read(body.as_bytes()).unwrap();
    assert_eq!((lease, secret), (None, None));
}

#[test]
fn mistakes_name_their_parameter() {
    let subscribe = |rest: &str| format!("hub.mode=subscribe&hub.topic=t{rest}");
    let long =
        format!("hub.mode=unsubscribe&hub.topic={}&hub.callback=http://a/", "t".repeat(2049));
    let secret = subscribe(&format!("&hub.callback=http://a/&hub.secret={}", "s".repeat(200)));
    let lease = subscribe("&hub.callback=http://a/&hub.lease_seconds=-5");
    for (body, parameter, said) in [
        ("", Some("hub.mode"), "hub.mode is missing"),
        ("hub.mode=publish", Some("hub.mode"), "this hub asks the publishers itself"),
        ("hub.mode=renew", Some("hub.mode"), "not subscribe or unsubscribe"),
        ("hub.mode=subscribe&hub.callback=http://a/", Some("hub.topic"), "missing"),
        (&subscribe(""), Some("hub.callback"), "missing"),
        (&subscribe("&hub.callback=/p"), Some("hub.callback"), "absolute"),
        (&subscribe("&hub.callback=ftp://a/"), Some("hub.callback"), "http"),
        (&subscribe("&hub.callback=http://u:p@a/"), Some("hub.callback"), "user"),
        (&subscribe("&hub.mode=subscribe"), Some("hub.mode"), "twice"),
        (&lease, Some("hub.lease_seconds"), "whole"),
        (&long, Some("hub.topic"), "2049 bytes long, the limit is 2048"),
        (&secret, Some("hub.secret"), "200 bytes long, the limit is 199"),
        (&"a&".repeat(80), None, "more than 64 parameters"),
        (&"a".repeat(20_000), None, "the limit is 16384"),
    ] {
        let error = HubRequest::read(body.as_bytes()).unwrap_err();
        assert_eq!(error.parameter, parameter, "{body}");
        assert!(error.to_string().contains(said), "{error}");
    }
}

fn verify(intent: Intent, topic: &str, challenge: &str, lease: Option<u64>) -> Verification {
    let (topic, challenge) = (topic.to_owned(), challenge.to_owned());
    Verification::Intent { intent, topic, challenge, lease }
}

#[test]
fn a_verification_is_appended_to_the_callbacks_own_query() {
    let asked = verify(Intent::Subscribe, TOPIC, "c0ffee", Some(60));
    let address = asked.address(&url("https://reader.example/push?id=7&hub.mode=mine#part"));
    assert_eq!(
        address.as_str(),
        "https://reader.example/push?id=7&hub.mode=mine&hub.mode=subscribe\
         &hub.topic=https%3A%2F%2Ffeeds.example.org%2Ffeeds%2Fnews%3Fas%3Drss\
         &hub.challenge=c0ffee&hub.lease_seconds=60"
    );
    let ended = verify(Intent::Unsubscribe, "t", "c", None).address(&url("http://a.example/?"));
    let expected = "http://a.example/?hub.mode=unsubscribe&hub.topic=t&hub.challenge=c";
    assert_eq!(ended.as_str(), expected);
}

#[test]
fn a_verification_needs_its_challenge_and_its_lease() {
    let read = Verification::read;
    let denied = Verification::Denied { topic: "t".into(), reason: Some("it is gone".into()) };
    assert_eq!(read("id=7&hub.mode=denied&hub.topic=t&hub.reason=it+is+gone"), Ok(denied));
    for (query, parameter) in [
        ("hub.mode=subscribe&hub.topic=t&hub.challenge=c", "hub.lease_seconds"),
        ("hub.mode=unsubscribe&hub.topic=t", "hub.challenge"),
    ] {
        assert_eq!(read(query), Err(FormError::missing(parameter)));
    }
    assert_eq!(read("hub.mode=publish").unwrap_err().parameter, Some("hub.mode"));
    let long = format!("hub.mode=unsubscribe&hub.topic=t&hub.challenge={}", "c".repeat(1025));
    assert_eq!(read(&long).unwrap_err().parameter, Some("hub.challenge"));
}

proptest! {
    #[test]
    fn what_one_side_writes_the_other_reads(
        topic in "[ -~éß☃]{1,60}",
        path in "[a-z0-9/&=+%é ]{0,30}",
        lease in proptest::option::of(1..10_000_000u64),
        secret in proptest::option::of("[ -~é]{1,90}"),
        challenge in "[ -~]{1,60}",
    ) {
        let callback = url(&format!("https://reader.example/push?{path}"));
        let secret = secret.map(|text| Secret::new(&text).unwrap());
        let begins =
            HubRequest { intent: Intent::Subscribe, topic: topic.clone(), callback, lease, secret };
        let ends =
            HubRequest { intent: Intent::Unsubscribe, lease: None, secret: None, ..begins.clone() };
        for request in [begins, ends] {
            prop_assert_eq!(HubRequest::read(request.write().as_bytes()).unwrap(), request);
        }
        let plain = url("https://reader.example/push?id=7");
        for asked in [
            verify(Intent::Subscribe, &topic, &challenge, lease.or(Some(1))),
            verify(Intent::Unsubscribe, &topic, &challenge, None),
            Verification::Denied { topic, reason: Some(challenge) },
        ] {
            let address = asked.address(&plain);
            prop_assert_eq!(Verification::read(address.query().unwrap()).unwrap(), asked);
        }
    }
}
