use super::*;

const SECOND: Duration = Duration::from_secs(1);
const A: &str = "https://a.example/";

fn rules() -> HostRules {
    HostRules { spacing: SECOND, ..HostRules::default() }
}

fn lines(at_once: usize) -> Politeness<&'static str> {
    Politeness::new(at_once, rules())
}

fn next_of(
    polite: &mut Politeness<&'static str>,
    now: Instant,
) -> Option<(&'static str, Result<PoliteHost, Duration>)> {
    polite.next(now, |who| *who != "gone")
}

/// Returns the next requester that may ask; panics if one is put off.
fn next(polite: &mut Politeness<&'static str>, now: Instant) -> Option<&'static str> {
    next_of(polite, now).map(|dispatch| match dispatch {
        (who, Ok(_)) => who,
        put_off => panic!("{put_off:?}"),
    })
}

fn finish(polite: &mut Politeness<&'static str>, address: &str, now: Instant) {
    let host = polite.rules.host(address);
    polite.finish(&host, now);
}

#[test]
fn one_at_a_time_and_a_pause_between() {
    let (mut polite, start) = (lines(10), Instant::now());
    polite.enqueue("one", A, HostRank::Usual, start);
    polite.enqueue("two", A, HostRank::Usual, start);
    assert_eq!(next(&mut polite, start), Some("one"));
    assert_eq!(next(&mut polite, start + 9 * SECOND), None);
    assert_eq!(polite.wake_at(), None);
    finish(&mut polite, A, start + 9 * SECOND);
    assert_eq!(next(&mut polite, start + 9 * SECOND), None);
    assert_eq!(polite.wake_at(), Some(start + 10 * SECOND));
    assert_eq!(next(&mut polite, start + 10 * SECOND), Some("two"));
}

#[test]
fn who_waits_no_more_costs_nobody_the_turn() {
    let (mut polite, now) = (lines(2), Instant::now());
    for who in ["gone", "gone", "one", "gone"] {
        polite.enqueue(who, A, HostRank::Usual, now);
    }
    assert_eq!(next(&mut polite, now), Some("one"));
    finish(&mut polite, A, now);
    assert_eq!(next(&mut polite, now + SECOND), None);
    assert!(polite.lines.is_empty());
}

/// How hosts are grouped is shown in `domains.rs`.
#[test]
fn hosts_differ_by_domain_and_own_ones_by_port_without_a_pause() {
    let rules = HostRules { allow_private: AllowPrivate::All, ..rules() };
    for (url, name, full, spacing) in [
        ("http://127.0.0.1:8081/x", "127.0.0.1:8081", "127.0.0.1:8081", Duration::ZERO),
        ("https://u:p@A.Example.org.:8443/x", "example.org", "a.example.org", SECOND),
    ] {
        let host = rules.host(url);
        assert_eq!((&*host.name, &*host.full, host.pace.spacing), (name, full, spacing));
    }
}

#[test]
fn what_is_listed_goes_first_and_closer() {
    let (mut polite, start) = (lines(9), Instant::now());
    polite.note_request(A, start);
    polite.enqueue("plain", A, HostRank::Usual, start);
    polite.enqueue("one", A, HostRank::Listed, start);
    polite.enqueue("two", A, HostRank::Listed, start);
    assert_eq!(next(&mut polite, start), None);
    assert_eq!(polite.wake_at(), Some(start + LISTED_SPACING));
    let first = start + LISTED_SPACING;
    assert_eq!(next(&mut polite, first), Some("one"));
    assert_eq!(next(&mut polite, first + SECOND), None, "one at a time");
    finish(&mut polite, A, first);
    assert_eq!(next(&mut polite, first + LISTED_SPACING), Some("two"));
    finish(&mut polite, A, first + LISTED_SPACING);
    assert_eq!(next(&mut polite, first + 2 * LISTED_SPACING), None, "the others keep the pause");
    assert_eq!(next(&mut polite, first + LISTED_SPACING + SECOND), Some("plain"));
}

/// A document that announced a thousand feeds is read again before they are polled.
#[test]
fn an_announcement_goes_before_what_announcements_list() {
    let (mut polite, mut now) = (lines(9), Instant::now());
    for who in ["one", "two"] {
        polite.enqueue(who, A, HostRank::Listed, now);
    }
    for who in ["document", "another document"] {
        polite.enqueue(who, A, HostRank::Announcement, now);
    }
    polite.reconfigure(rules(), now);
    for who in ["document", "another document", "one", "two"] {
        assert_eq!(next(&mut polite, now), Some(who));
        finish(&mut polite, A, now);
        now += LISTED_SPACING;
    }
}

fn paced(paces: &[(&str, u32, usize)]) -> HostRules {
    let pace = |(name, seconds, parallel): &(&str, u32, usize)| {
        ((*name).to_owned(), Pace { spacing: *seconds * SECOND, parallel: *parallel })
    };
    HostRules { paces: Arc::new(paces.iter().map(pace).collect()), ..rules() }
}

#[test]
fn an_operator_may_say_how_a_host_is_asked() {
    let paces = [("feeds.news.co.uk", 0, 2), ("news.co.uk", 5, 1), ("github.io", 7, 1)];
    let rules = paced(&[&paces[..], &[("127.0.0.1", 9, 1)]].concat());
    let of = |url: &str| rules.host(url);
    let own = of("https://feeds.news.co.uk/");
    let pace = Pace { spacing: Duration::ZERO, parallel: 2 };
    assert_eq!((own.name.as_ref(), own.pace), ("feeds.news.co.uk", pace));
    assert_eq!(of("https://x.feeds.news.co.uk/").name.as_ref(), "feeds.news.co.uk");
    let other = of("https://www.news.co.uk/");
    assert_eq!((&*other.name, other.pace.spacing), ("news.co.uk", 5 * SECOND));
    assert_eq!(other.listed_spacing, 5 * SECOND);
    let below = of("https://a.github.io/");
    assert_eq!((&*below.name, below.pace.spacing), ("a.github.io", 7 * SECOND));
    assert_eq!(of("https://else.example/").pace.spacing, SECOND);
    let local = HostRules { allow_private: AllowPrivate::All, ..rules.clone() };
    let local = local.host("http://127.0.0.1:81/");
    assert_eq!((&*local.name, local.pace.spacing), ("127.0.0.1:81", 9 * SECOND));

    let (mut polite, now) = (Politeness::new(9, rules.clone()), Instant::now());
    for feed in ["one", "two", "three"] {
        polite.enqueue(feed, "https://feeds.news.co.uk/", HostRank::Usual, now);
    }
    assert_eq!(next(&mut polite, now), Some("one"));
    assert_eq!(next(&mut polite, now), Some("two"));
    assert_eq!(next(&mut polite, now + SECOND), None, "two at a time");
    polite.finish(&own, now + SECOND);
    assert_eq!(next(&mut polite, now + SECOND), Some("three"));
    polite.finish(&own, now + SECOND);
    polite.finish(&own, now + SECOND);
    assert_eq!(next(&mut polite, now + SECOND), None);
    assert_eq!((polite.lines.len(), polite.free.len(), polite.running), (0, 0, 0));
}

fn put_off(polite: &mut Politeness<&'static str>, now: Instant) -> Vec<(&'static str, Duration)> {
    std::iter::from_fn(|| match next_of(polite, now) {
        Some((who, Err(left))) => Some((who, left)),
        Some(begun) => panic!("{begun:?}"),
        None => None,
    })
    .collect()
}

#[test]
fn what_waits_for_a_host_leaves_its_line_when_the_host_asks_for_a_pause() {
    let (a, b) = ("https://a.news.co.uk/", "https://b.news.co.uk/");
    let (mut polite, start) = (lines(9), Instant::now());
    polite.enqueue("first", a, HostRank::Usual, start);
    assert_eq!(next(&mut polite, start), Some("first"));
    polite.enqueue("one", a, HostRank::Usual, start);
    polite.enqueue("gone", a, HostRank::Usual, start);
    polite.enqueue("listed", a, HostRank::Listed, start);
    polite.enqueue("other", b, HostRank::Usual, start);
    polite.pause(a, 600 * SECOND, start);
    finish(&mut polite, a, start);
    assert_eq!(put_off(&mut polite, start), [("listed", 600 * SECOND), ("one", 600 * SECOND)]);
    // Later requests are put off too; those to the other host of the domain are not.
    let then = start + 20 * SECOND;
    polite.enqueue("late", a, HostRank::Usual, then);
    assert_eq!(next_of(&mut polite, then), Some(("late", Err(580 * SECOND))));
    assert_eq!(polite.paused(a, then), Some(580 * SECOND));
    assert_eq!(next(&mut polite, then), Some("other"));
    finish(&mut polite, b, start + 22 * SECOND);
    polite.enqueue("one", a, HostRank::Usual, start + 622 * SECOND);
    assert_eq!(next(&mut polite, start + 622 * SECOND), Some("one"));
    finish(&mut polite, a, start + 623 * SECOND);
    assert_eq!(next(&mut polite, start + 625 * SECOND), None);
    assert_eq!((polite.lines.len(), polite.free.len(), polite.put_off.len()), (0, 0, 0));
}

/// The host accepts one request a minute: none is put off, and each gets its turn.
#[test]
fn a_short_pause_is_waited_for_in_line() {
    let (mut polite, mut now) = (lines(9), Instant::now());
    let minute = 60 * SECOND;
    for feed in ["one", "two", "three"] {
        polite.enqueue(feed, A, HostRank::Usual, now);
    }
    for feed in ["one", "two", "three", "one"] {
        assert_eq!(next(&mut polite, now), Some(feed));
        polite.pause(A, minute, now);
        finish(&mut polite, A, now);
        // It joins the line again before the others had their turn.
        if feed == "one" {
            polite.enqueue("one", A, HostRank::Usual, now);
        }
        assert_eq!(next(&mut polite, now + minute - SECOND), None);
        now += minute;
        assert_eq!(polite.wake_at(), Some(now));
    }
}

#[test]
fn lines_take_another_pace_while_they_wait() {
    let (slow, start) = (paced(&[("news.co.uk", 3600, 1)]), Instant::now());
    let (plain, own) = ("https://news.co.uk/", "https://own.news.co.uk/");
    let mut polite = Politeness::new(9, slow);
    for (feed, address) in [("one", plain), ("two", plain), ("three", plain), ("four", own)] {
        polite.enqueue(feed, address, HostRank::Usual, start);
    }
    assert_eq!(next(&mut polite, start), Some("one"));
    finish(&mut polite, plain, start);
    assert_eq!(next(&mut polite, start + 60 * SECOND), None);
    let quick = paced(&[("news.co.uk", 10, 2), ("own.news.co.uk", 10, 2)]);
    polite.reconfigure(quick, start + SECOND);
    assert_eq!(polite.wake_at(), Some(start + 10 * SECOND), "what is owed still is");
    let begun: Vec<_> = std::iter::from_fn(|| next(&mut polite, start + 10 * SECOND)).collect();
    assert_eq!(begun.len(), 2, "{begun:?}");
    assert!(begun.contains(&"two") && begun.contains(&"four"), "{begun:?}");
    assert_eq!(next(&mut polite, start + 20 * SECOND), Some("three"), "two at a time");
    for ended in [plain, plain, own] {
        finish(&mut polite, ended, start + 20 * SECOND);
    }
    assert_eq!(next(&mut polite, start + 30 * SECOND), None);
    assert_eq!((polite.lines.len(), polite.free.len(), polite.running), (0, 0, 0));
}

#[test]
fn what_is_always_announced_keeps_nothing_from_its_turn() {
    let (mut polite, mut now) = (lines(9), Instant::now());
    polite.enqueue("plain", A, HostRank::Usual, now);
    let mut listed = 0;
    loop {
        polite.enqueue("listed", A, HostRank::Listed, now);
        now = polite.wake_at().unwrap();
        let who = next(&mut polite, now);
        finish(&mut polite, A, now);
        if who == Some("plain") {
            break;
        }
        listed += 1;
        assert!(listed <= 1000, "it never has its turn");
    }
    assert_eq!(listed, LISTED_IN_A_ROW);
}

fn paused_host(name: &str) -> PoliteHost {
    HostRules::default().host(&format!("https://{name}/"))
}

#[test]
fn a_host_speaks_for_itself_and_two_for_their_domain() {
    let (mut pauses, start) = (Pauses::default(), Instant::now());
    let minutes = |n: u64| Duration::from_secs(60 * n);
    pauses.note_pause(&paused_host("a.news.example"), minutes(30), start);
    assert_eq!(pauses.left(&paused_host("a.news.example"), start), Some(minutes(30)));
    assert_eq!(pauses.left(&paused_host("c.news.example"), start), None);
    // A second pause of the same host does not pause others, nor does one an hour later.
    pauses.note_pause(&paused_host("a.news.example"), minutes(30), start + minutes(1));
    assert_eq!(pauses.left(&paused_host("c.news.example"), start + minutes(1)), None);
    let late = start + minutes(62);
    pauses.note_pause(&paused_host("b.news.example"), minutes(5), late);
    assert_eq!(pauses.left(&paused_host("c.news.example"), late), None);
    pauses.note_pause(&paused_host("a.news.example"), minutes(20), late + minutes(2));
    assert_eq!(pauses.left(&paused_host("c.news.example"), late + minutes(2)), Some(minutes(20)));
    assert_eq!(pauses.left(&paused_host("b.news.example"), late + minutes(2)), Some(minutes(20)));
    assert_eq!(pauses.left(&paused_host("c.news.example"), late + minutes(22)), None);
    assert_eq!(pauses.left(&paused_host("news.other.example"), late), None);
    pauses.note_pause(&paused_host("a.example"), MAX_HOST_PAUSE * 9, late);
    assert_eq!(pauses.left(&paused_host("a.example"), late), Some(MAX_HOST_PAUSE));
    // So does one with a pace of its own.
    let rules = paced(&[("feeds.news.co.uk", 0, 2)]);
    let (mut polite, now) = (Politeness::<()>::new(9, rules), Instant::now());
    for (host, left) in [("feeds", None), ("b", Some(60 * SECOND))] {
        polite.pause(&format!("https://{host}.news.co.uk/"), 60 * SECOND, now);
        assert_eq!(polite.paused("https://c.news.co.uk/", now), left);
    }
}
