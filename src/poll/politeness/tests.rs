//! Lines, paces and pauses.

use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn poll(text: &str) -> Errand {
    Errand::Poll(FeedName::new(text).unwrap())
}

fn host(text: &str) -> PoliteHost {
    let (name, full, domain_at) = (text.into(), text.into(), 0);
    let (spacing, is_said, parallel) = (SECOND, false, 1);
    PoliteHost(Arc::new(PolitePace { name, full, domain_at, spacing, is_said, parallel }))
}

/// The same host at another pace, or in another line.
fn with(host: &PoliteHost, change: impl FnOnce(&mut PolitePace)) -> PoliteHost {
    let mut pace = PolitePace::clone(&host.0);
    change(&mut pace);
    PoliteHost(Arc::new(pace))
}

/// The next errand that is run; nothing is put off.
fn next(polite: &mut Politeness, now: Instant) -> Option<Errand> {
    polite.next(now).map(|dispatch| match dispatch {
        Dispatch::Begin(errand) => errand,
        put_off => panic!("{put_off:?}"),
    })
}

#[test]
fn one_at_a_time_and_a_pause_between() {
    let mut polite = Politeness::new(10, SharedPauses::default());
    let (a, start) = (host("a"), Instant::now());
    polite.enqueue(poll("one"), &a, start);
    polite.enqueue(poll("two"), &a, start);
    assert_eq!(next(&mut polite, start), Some(poll("one")));
    assert_eq!(next(&mut polite, start + 9 * SECOND), None);
    assert_eq!(polite.wake_at(), None);
    polite.finish(&a, start + 9 * SECOND);
    assert_eq!(next(&mut polite, start + 9 * SECOND), None);
    assert_eq!(polite.wake_at(), Some(start + 10 * SECOND));
    assert_eq!(next(&mut polite, start + 10 * SECOND), Some(poll("two")));
}

#[test]
fn hosts_do_not_wait_for_each_other_but_for_room() {
    let mut polite = Politeness::new(2, SharedPauses::default());
    let now = Instant::now();
    for feed in ["a", "b", "c"] {
        polite.enqueue(poll(feed), &host(feed), now);
    }
    assert_eq!(next(&mut polite, now), Some(poll("a")));
    assert_eq!(next(&mut polite, now), Some(poll("b")));
    assert_eq!(next(&mut polite, now), None);
    polite.finish(&host("a"), now);
    assert_eq!(next(&mut polite, now), Some(poll("c")));
}

#[test]
fn a_request_out_of_turn_counts_for_the_pause() {
    let mut polite = Politeness::new(2, SharedPauses::default());
    let (a, now) = (host("a"), Instant::now());
    polite.asked(&a, now);
    polite.enqueue(poll("one"), &a, now);
    assert_eq!(next(&mut polite, now), None);
    assert_eq!(next(&mut polite, now + SECOND), Some(poll("one")));
}

#[test]
fn a_feed_can_be_taken_out_of_the_line() {
    let mut polite = Politeness::new(2, SharedPauses::default());
    let (a, now) = (host("a"), Instant::now());
    polite.enqueue(poll("one"), &a, now);
    polite.forget(&poll("one"), &a);
    assert_eq!(next(&mut polite, now), None);
}

#[test]
fn what_a_feed_waits_for_is_told_apart() {
    let mut polite = Politeness::new(2, SharedPauses::default());
    let (a, now) = (host("a"), Instant::now());
    let probe = Errand::Probe(FeedName::new("one").unwrap());
    polite.enqueue(poll("one"), &a, now);
    polite.enqueue(probe.clone(), &a, now);
    polite.forget(&poll("one"), &a);
    assert_eq!(next(&mut polite, now), Some(probe));
    polite.finish(&a, now);
    assert_eq!(next(&mut polite, now + SECOND), None);
}

#[test]
fn hosts_that_nobody_waits_for_are_forgotten() {
    let mut polite = Politeness::new(1, SharedPauses::default());
    let now = Instant::now();
    for n in 0..1000 {
        let each = host(&format!("host{n}"));
        polite.enqueue(poll("x"), &each, now);
        assert_eq!(next(&mut polite, now), Some(poll("x")));
        polite.finish(&each, now);
    }
    assert_eq!(next(&mut polite, now + SECOND), None);
    assert_eq!((polite.lines.len(), polite.free.len()), (0, 0));
}

#[test]
fn own_hosts_are_owed_no_pause_and_differ_by_port() {
    let of = |url: &str, allow: &AllowPrivate| PoliteHost::from_url(url, allow, SECOND);
    let own = of("http://127.0.0.1:8081/x", &AllowPrivate::All);
    let unpaced = |pace: &mut PolitePace| pace.spacing = Duration::ZERO;
    assert_eq!(own, with(&host("127.0.0.1:8081"), unpaced));
    let stranger = of("https://u:p@Example.org.:8443/x", &AllowPrivate::All);
    assert_eq!(stranger, host("example.org"));
    assert_eq!(of("http://127.0.0.1/", &AllowPrivate::No), host("127.0.0.1"));
}

#[test]
fn names_of_one_registrable_domain_are_one_host() {
    let of = |url: &str| PoliteHost::from_url(url, &AllowPrivate::No, SECOND);
    for url in ["https://a.news.co.uk/", "https://b.news.co.uk:81/x", "https://news.co.uk./"] {
        assert_eq!(of(url).name(), "news.co.uk", "{url}");
    }
    assert_eq!(of("https://a.news.co.uk/").full(), "a.news.co.uk");
    // Below a private suffix each name is somebody else's.
    assert_eq!(of("https://a.github.io/").name(), "a.github.io");
    assert_eq!(of("https://x.b.github.io/").name(), "b.github.io");
    // An address is no name.
    assert_eq!(of("http://93.184.216.34/").name(), "93.184.216.34");
    // What waits for one of them waits for all.
    let (mut polite, now) = (Politeness::new(9, SharedPauses::default()), Instant::now());
    polite.enqueue(poll("one"), &of("https://a.news.co.uk/"), now);
    polite.enqueue(poll("two"), &of("https://b.news.co.uk/"), now);
    assert_eq!(next(&mut polite, now), Some(poll("one")));
    polite.finish(&of("https://a.news.co.uk/"), now);
    assert_eq!(next(&mut polite, now), None);
    assert_eq!(next(&mut polite, now + SECOND), Some(poll("two")));
}

#[test]
fn what_is_listed_goes_first_and_closer() {
    let mut polite = Politeness::new(9, SharedPauses::default());
    let (a, start) = (host("a"), Instant::now());
    polite.asked(&a, start);
    polite.enqueue(poll("plain"), &a, start);
    polite.enqueue_listed(poll("one"), &a, start);
    polite.enqueue_listed(poll("two"), &a, start);
    assert_eq!(next(&mut polite, start), None);
    assert_eq!(polite.wake_at(), Some(start + LISTED_SPACING));
    let first = start + LISTED_SPACING;
    assert_eq!(next(&mut polite, first), Some(poll("one")));
    assert_eq!(next(&mut polite, first + SECOND), None, "one at a time");
    polite.finish(&a, first);
    assert_eq!(next(&mut polite, first + LISTED_SPACING), Some(poll("two")));
    polite.finish(&a, first + LISTED_SPACING);
    assert_eq!(next(&mut polite, first + 2 * LISTED_SPACING), None, "the others keep the pause");
    assert_eq!(next(&mut polite, first + LISTED_SPACING + SECOND), Some(poll("plain")));
}

#[test]
fn an_operator_may_say_how_a_host_is_asked() {
    let pace = |seconds, parallel| Pace { spacing: seconds * SECOND, parallel };
    let paces = BTreeMap::from([
        ("feeds.news.co.uk".to_owned(), pace(0, 2)),
        ("news.co.uk".to_owned(), pace(5, 1)),
        ("github.io".to_owned(), pace(7, 1)),
        ("127.0.0.1".to_owned(), pace(9, 1)),
    ]);
    let of = |url: &str| PoliteHost::from_url(url, &AllowPrivate::No, SECOND).with(&paces);
    let own = of("https://feeds.news.co.uk/");
    assert_eq!(
        (own.name(), own.spacing(), own.0.parallel),
        ("feeds.news.co.uk", Duration::ZERO, 2)
    );
    assert_eq!(of("https://x.feeds.news.co.uk/").name(), "feeds.news.co.uk");
    let other = of("https://www.news.co.uk/");
    assert_eq!(
        (other.name(), other.spacing(), other.listed()),
        ("news.co.uk", 5 * SECOND, 5 * SECOND)
    );
    let below = of("https://a.github.io/");
    assert_eq!((below.name(), below.spacing()), ("a.github.io", 7 * SECOND));
    assert_eq!(of("https://else.example/"), host("else.example"));
    let local =
        PoliteHost::from_url("http://127.0.0.1:81/", &AllowPrivate::All, SECOND).with(&paces);
    assert_eq!((local.name(), local.spacing()), ("127.0.0.1:81", 9 * SECOND));

    let (mut polite, now) = (Politeness::new(9, SharedPauses::default()), Instant::now());
    for feed in ["one", "two", "three"] {
        polite.enqueue(poll(feed), &own, now);
    }
    assert_eq!(next(&mut polite, now), Some(poll("one")));
    assert_eq!(next(&mut polite, now), Some(poll("two")));
    assert_eq!(next(&mut polite, now + SECOND), None, "two at a time");
    polite.finish(&own, now + SECOND);
    assert_eq!(next(&mut polite, now + SECOND), Some(poll("three")));
    polite.finish(&own, now + SECOND);
    polite.finish(&own, now + SECOND);
    assert_eq!(next(&mut polite, now + SECOND), None);
    assert_eq!((polite.lines.len(), polite.free.len(), polite.running), (0, 0, 0));
}

fn put_off(polite: &mut Politeness, now: Instant) -> Vec<(Errand, Duration)> {
    std::iter::from_fn(|| match polite.next(now) {
        Some(Dispatch::PutOff(errand, left)) => Some((errand, left)),
        Some(begun) => panic!("{begun:?}"),
        None => None,
    })
    .collect()
}

#[test]
fn what_waits_for_a_host_leaves_its_line_when_the_host_asks_for_a_pause() {
    let of = |url: &str| PoliteHost::from_url(url, &AllowPrivate::No, SECOND);
    let (a, b) = (of("https://a.news.co.uk/"), of("https://b.news.co.uk/"));
    let (mut polite, start) = (Politeness::new(9, SharedPauses::default()), Instant::now());
    let feed = |text: &str| FeedName::new(text).unwrap();
    let errands = [
        poll("one"),
        Errand::Walk(feed("one")),
        Errand::Probe(feed("one")),
        Errand::Hub(feed("x")),
    ];
    polite.enqueue(poll("first"), &a, start);
    assert_eq!(next(&mut polite, start), Some(poll("first")));
    for errand in errands.clone() {
        polite.enqueue(errand, &a, start);
    }
    polite.enqueue_listed(poll("listed"), &a, start);
    polite.enqueue(poll("other"), &b, start);
    polite.pause(&a, 60 * SECOND, start);
    polite.finish(&a, start);
    let mut expected = vec![(poll("listed"), 60 * SECOND)];
    expected.extend(errands.map(|errand| (errand, 60 * SECOND)));
    assert_eq!(put_off(&mut polite, start), expected);
    // What comes to it later is put off as well, and the other host of the domain is not.
    polite.enqueue(poll("late"), &a, start + 20 * SECOND);
    assert_eq!(polite.next(start + 20 * SECOND), Some(Dispatch::PutOff(poll("late"), 40 * SECOND)));
    assert_eq!(polite.ask_out_of_turn(&a, start + 20 * SECOND), Err(40 * SECOND));
    assert_eq!(next(&mut polite, start + 20 * SECOND), Some(poll("other")));
    polite.enqueue(poll("another"), &b, start + 21 * SECOND);
    // A second host of the domain speaks for all of it.
    polite.pause(&b, 60 * SECOND, start + 21 * SECOND);
    assert_eq!(put_off(&mut polite, start + 21 * SECOND), [(poll("another"), 60 * SECOND)]);
    polite.finish(&b, start + 22 * SECOND);
    polite.enqueue(poll("third"), &of("https://c.news.co.uk/"), start + 22 * SECOND);
    assert_eq!(put_off(&mut polite, start + 22 * SECOND), [(poll("third"), 59 * SECOND)]);
    polite.enqueue(poll("one"), &a, start + 82 * SECOND);
    assert_eq!(next(&mut polite, start + 82 * SECOND), Some(poll("one")));
    polite.finish(&a, start + 83 * SECOND);
    assert_eq!(next(&mut polite, start + 85 * SECOND), None);
    assert_eq!((polite.lines.len(), polite.free.len(), polite.put_off.len()), (0, 0, 0));
}

#[test]
fn a_host_with_a_pace_of_its_own_speaks_for_its_domain_too() {
    let pace = Pace { spacing: Duration::ZERO, parallel: 2 };
    let paces = BTreeMap::from([("feeds.news.co.uk".to_owned(), pace)]);
    let of = |url: &str| PoliteHost::from_url(url, &AllowPrivate::No, SECOND).with(&paces);
    let (mut polite, now) = (Politeness::new(9, SharedPauses::default()), Instant::now());
    polite.pause(&of("https://feeds.news.co.uk/"), 60 * SECOND, now);
    assert_eq!(polite.paused(&of("https://c.news.co.uk/"), now), None);
    polite.pause(&of("https://b.news.co.uk/"), 60 * SECOND, now);
    assert_eq!(polite.paused(&of("https://c.news.co.uk/"), now), Some(60 * SECOND));
}

#[test]
fn lines_take_another_pace_while_they_wait() {
    let (mut polite, start) = (Politeness::new(9, SharedPauses::default()), Instant::now());
    let slow = with(&host("a"), |pace| pace.spacing = 3600 * SECOND);
    for feed in ["one", "two", "three", "four", "five"] {
        polite.enqueue(poll(feed), &slow, start);
    }
    assert_eq!(next(&mut polite, start), Some(poll("one")));
    polite.finish(&slow, start);
    assert_eq!(next(&mut polite, start + 60 * SECOND), None);
    let quick = with(&host("a"), |pace| (pace.spacing, pace.parallel) = (10 * SECOND, 2));
    let own = with(&quick, |pace| pace.name = "own.a".into());
    polite.rearrange(
        |errand| match errand.feed().as_str() {
            "two" | "three" => Some(quick.clone()),
            "four" => Some(own.clone()),
            _ => None,
        },
        start + SECOND,
    );
    assert_eq!(polite.wake_at(), Some(start + 10 * SECOND), "what is owed still is");
    let begun: Vec<_> = std::iter::from_fn(|| next(&mut polite, start + 10 * SECOND)).collect();
    assert_eq!(begun.len(), 2, "{begun:?}");
    assert!(begun.contains(&poll("two")) && begun.contains(&poll("four")), "{begun:?}");
    assert_eq!(next(&mut polite, start + 20 * SECOND), Some(poll("three")), "two at a time");
    for ended in [&quick, &quick, &own] {
        polite.finish(ended, start + 20 * SECOND);
    }
    assert_eq!(next(&mut polite, start + 30 * SECOND), None);
    assert_eq!((polite.lines.len(), polite.free.len(), polite.running), (0, 0, 0));
}

#[test]
fn what_is_always_announced_keeps_nothing_from_its_turn() {
    let (mut polite, mut now) = (Politeness::new(9, SharedPauses::default()), Instant::now());
    let a = host("a");
    polite.enqueue(poll("plain"), &a, now);
    let mut listed = 0;
    loop {
        polite.enqueue_listed(poll("listed"), &a, now);
        now = polite.wake_at().unwrap();
        let errand = next(&mut polite, now);
        polite.finish(&a, now);
        if errand == Some(poll("plain")) {
            break;
        }
        listed += 1;
        assert!(listed <= 1000, "it never has its turn");
    }
    assert_eq!(listed, LISTED_IN_A_ROW);
}
