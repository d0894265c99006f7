use super::*;
use tidegate_core::model::{Absence, FeedState, Format, ProbeAnswer};

const FEED: &str = "https://feeds.example.org/news.xml";
const NOW: i64 = 1_795_191_605;

fn at(seconds: i64) -> Time {
    Time::from_unix(NOW + seconds)
}

fn url(text: &str) -> Url {
    Url::parse(text).unwrap()
}

fn known(name: &str, link: &str) -> LedgerEntry {
    LedgerEntry {
        id: SyncId::new(name).unwrap(),
        title: name.to_owned(),
        link: (!link.is_empty()).then(|| link.to_owned()),
        standing: ItemStatus::Current,
        ..LedgerEntry::left(name)
    }
}

fn missing(name: &str, link: &str, evidence: Evidence, probe: Option<Probe>) -> LedgerEntry {
    let absence = Absence { probe, ..Absence::seen_once(evidence, at(0)) };
    LedgerEntry { absence: Some(absence), ..known(name, link) }
}

/// A feed that lists one item, at `/listed`.
fn snapshot(others: Vec<LedgerEntry>) -> Snapshot {
    let listed = known("listed", "https://www.example.org/listed");
    let order = vec![listed.id.clone()];
    let mut known = others;
    known.push(listed);
    let mut state = FeedState::untouched(Format::Atom10, at(0));
    state.next_decision_at = Some(at(60));
    Snapshot { state, known, order, ..Snapshot::untouched(Format::Atom10, at(0)) }
}

fn asking() -> FeedOptions {
    FeedOptions { probe: Probing::All, ..FeedOptions::default() }
}

fn planned(options: &FeedOptions, snapshot: &Snapshot, now: i64, room: usize) -> Vec<String> {
    let feed = FeedName::new("news").unwrap();
    let plan = plan(&feed, FEED, options, snapshot, at(now), room);
    plan.map_or_else(Vec::new, |plan| {
        assert_eq!(plan.listed.as_str(), "https://www.example.org/listed");
        plan.items.iter().map(|(id, _)| id.to_string()).collect()
    })
}

fn hole(name: &str) -> LedgerEntry {
    missing(name, &format!("https://www.example.org/{name}"), Evidence::Hole, None)
}

#[test]
fn only_what_the_operator_wants_and_what_can_be_believed_is_asked() {
    let feed = snapshot(vec![hole("a")]);
    assert_eq!(planned(&asking(), &feed, 0, 4), ["a"]);
    assert!(planned(&FeedOptions::default(), &feed, 0, 4).is_empty());
    let off = FeedOptions { deletions: Deletions::Off, ..asking() };
    assert!(planned(&off, &feed, 0, 4).is_empty());
    assert!(planned(&asking(), &feed, 0, 0).is_empty(), "no room");
    let mut bare = feed.clone();
    bare.order.clear();
    assert!(planned(&asking(), &bare, 0, 4).is_empty(), "nothing to compare with");
}

#[test]
fn only_evidence_that_an_answer_can_turn_is_asked_for() {
    let all = [
        ("a", Evidence::Hole),
        ("b", Evidence::Complete),
        ("c", Evidence::Unplaced),
        ("d", Evidence::Aged),
        ("e", Evidence::Said),
    ];
    let link = |name| format!("https://www.example.org/{name}");
    let all = all.map(|(name, evidence)| missing(name, &link(name), evidence, None));
    let mut retired = hole("f");
    retired.standing = ItemStatus::Retired { since: at(0) };
    let feed = snapshot([all.to_vec(), vec![retired]].concat());
    assert_eq!(planned(&asking(), &feed, 0, 9), ["a", "b", "c"]);
    assert_eq!(planned(&asking(), &feed, 0, 2), ["a", "b"]);
}

#[test]
fn no_other_domain_no_other_host_and_no_shared_page_is_asked() {
    let of = |name: &str, link: &str| missing(name, link, Evidence::Hole, None);
    let feed = snapshot(vec![
        of("a", "https://victim.example.net/a"),
        of("b", "http://127.0.0.1/b"),
        of("c", "https://blog.example.org/c"),
        of("d", "https://www.example.org/"),
        of("e", "https://www.example.org/news#e"),
        of("f", ""),
        of("g", "https://www.example.org/same"),
        of("h", "https://www.example.org/same?utm_source=rss"),
        of("i", "https://www.example.org/i"),
    ]);
    // `c` is of the feed's domain, but nothing is listed there to compare it with.
    assert_eq!(planned(&asking(), &feed, 0, 9), ["i"]);
}

#[test]
fn what_was_asked_is_asked_again_after_a_while_and_not_for_ever() {
    let heard = |gone| Some(ProbeAnswer { gone, status: 404, first: at(0), last: at(0) });
    let again = |evidence, heard, now, asked| {
        let probe = Probe { asked, last: at(0), heard, silence: None };
        let item = missing("a", "https://www.example.org/a", evidence, Some(probe));
        !planned(&asking(), &snapshot(vec![item]), now, 4).is_empty()
    };
    for (evidence, heard, pause) in [
        (Evidence::Unplaced, heard(true), 3600),
        (Evidence::Hole, None, 6 * 3600),
        (Evidence::Hole, heard(false), 12 * 3600),
    ] {
        assert!(!again(evidence, heard, pause - 1, 1), "{heard:?}");
        assert!(again(evidence, heard, pause, 1), "{heard:?}");
        assert!(!again(evidence, heard, pause, 6), "{heard:?}");
    }
}

#[test]
fn what_one_more_answer_decides_comes_first() {
    let link = |name: &str| format!("https://www.example.org/{name}");
    let heard = ProbeAnswer { gone: true, status: 404, first: at(0), last: at(0) };
    let probe = Probe { asked: 1, last: at(0), heard: Some(heard), silence: None };
    let mut older = hole("z");
    older.absence.as_mut().unwrap().since = at(-60);
    let feed = snapshot(vec![
        missing("a", &link("a"), Evidence::Unplaced, None),
        hole("b"),
        missing("c", &link("c"), Evidence::Unplaced, Some(probe)),
        older,
    ]);
    assert_eq!(planned(&asking(), &feed, 7200, 9), ["c", "z", "b", "a"]);
}

fn reply(asked: &str, code: u16) -> ProbeReply {
    ProbeReply { asked: url(asked), end: ProbeEnd::Status { code, at: url(asked) } }
}

fn led(asked: &str, code: u16, to: &str) -> ProbeReply {
    ProbeReply { asked: url(asked), end: ProbeEnd::Status { code, at: url(to) } }
}

const LISTED: &str = "https://www.example.org/listed";
const PAGE: &str = "https://www.example.org/a";
const MADE_UP: &str = "https://www.example.org/0123456789abcdef";

/// What a reply about `/a` means beside those of a listed item and of a made-up address.
fn meant(
    listed: ProbeReply,
    made_up: Option<ProbeReply>,
    page: Option<ProbeReply>,
) -> ProbeVerdict {
    let feed = snapshot(vec![hole("a"), known("b", "https://www.example.org/b")]);
    let items = vec![(SyncId::new("a").unwrap(), page)];
    let found = answers(&feed, &Replies { listed, made_up, items });
    found.into_iter().next().unwrap().1
}

/// The same on a site that works.
fn on_a_good_site(page: ProbeReply) -> ProbeVerdict {
    meant(reply(LISTED, 200), Some(reply(MADE_UP, 404)), Some(page))
}

fn nothing(answer: &ProbeVerdict) -> &str {
    match answer {
        ProbeVerdict::Nothing(why) => why,
        other => panic!("{other:?} was believed"),
    }
}

#[test]
fn plain_answers_are_believed() {
    for code in [404, 410] {
        assert_eq!(on_a_good_site(reply(PAGE, code)), ProbeVerdict::Gone(code));
    }
    assert_eq!(on_a_good_site(reply(PAGE, 200)), ProbeVerdict::There(200));
    // Within the domain, a redirect to the same page is plain too.
    for to in ["http://example.org/a", "https://m.example.org/A/", "https://www.example.org/a"] {
        assert_eq!(on_a_good_site(led(PAGE, 200, to)), ProbeVerdict::There(200), "{to}");
        assert_eq!(on_a_good_site(led(PAGE, 410, to)), ProbeVerdict::Gone(410), "{to}");
    }
    let moved = led(PAGE, 404, "https://www.example.org/not-found");
    assert_eq!(on_a_good_site(moved), ProbeVerdict::Gone(404));
}

#[test]
fn anything_else_says_nothing() {
    for code in [201, 204, 206, 304, 400, 401, 403, 405, 406, 418, 429, 451, 500, 502, 503, 599] {
        let answer = on_a_good_site(reply(PAGE, code));
        assert_eq!(nothing(&answer), format!("it answered {code}"));
    }
    let silent =
        ProbeReply { asked: url(PAGE), end: ProbeEnd::Without("no connection".to_owned()) };
    assert_eq!(nothing(&on_a_good_site(silent)), "no connection");
}

#[test]
fn redirects_to_the_front_page_and_to_other_items_are_no_answer() {
    for code in [200, 404, 410] {
        let front = on_a_good_site(led(PAGE, code, "https://www.example.org/"));
        assert_eq!(nothing(&front), "it leads to the site's front page");
        let other = on_a_good_site(led(PAGE, code, "https://www.example.org/b"));
        assert_eq!(nothing(&other), "it leads to another item's page");
    }
    let login = on_a_good_site(led(PAGE, 200, "https://www.example.org/login?next=/a"));
    assert!(nothing(&login).starts_with("it leads to another page, https://"), "{login:?}");
}

#[test]
fn a_wall_of_404s_confirms_nothing() {
    for wall in [reply(LISTED, 404), reply(LISTED, 410), reply(LISTED, 403), reply(LISTED, 500)] {
        let answer = meant(wall, Some(reply(MADE_UP, 404)), Some(reply(PAGE, 404)));
        assert!(nothing(&answer).contains("but what the document lists answers "), "{answer:?}");
    }
    let front = led(LISTED, 200, "https://www.example.org/");
    let answer = meant(front, Some(reply(MADE_UP, 404)), Some(reply(PAGE, 404)));
    assert!(nothing(&answer).ends_with("leads to the front page"), "{answer:?}");
    let away =
        ProbeReply { asked: url(LISTED), end: ProbeEnd::Without("no connection".to_owned()) };
    let answer = meant(away, None, None);
    assert!(nothing(&answer).ends_with("cannot be read (no connection)"), "{answer:?}");
}

#[test]
fn a_site_that_answers_200_to_everything_refutes_nothing() {
    let there = || Some(reply(PAGE, 200));
    for echo in [reply(MADE_UP, 200), reply(MADE_UP, 403), reply(MADE_UP, 500)] {
        let answer = meant(reply(LISTED, 200), Some(echo), there());
        assert!(nothing(&answer).contains("but a made-up address"), "{answer:?}");
    }
    let silent =
        ProbeReply { asked: url(MADE_UP), end: ProbeEnd::Without("no connection".to_owned()) };
    nothing(&meant(reply(LISTED, 200), Some(silent), there()));
    nothing(&meant(reply(LISTED, 200), None, there()));
    // One that sends strange addresses to its front page tells them apart.
    let led = led(MADE_UP, 200, "https://www.example.org/");
    assert_eq!(meant(reply(LISTED, 200), Some(led), there()), ProbeVerdict::There(200));
    // A 404 beside a soft 404 is a strong one.
    let strong = meant(reply(LISTED, 200), Some(reply(MADE_UP, 200)), Some(reply(PAGE, 404)));
    assert_eq!(strong, ProbeVerdict::Gone(404));
}

#[test]
fn what_was_not_asked_says_why() {
    let busy = meant(reply(LISTED, 503), None, None);
    assert_eq!(nothing(&busy), "it was not asked, because the site answers 503 too");
    let wall = meant(reply(LISTED, 404), None, None);
    let said = "it was not asked, because what the document lists answers 404 too";
    assert_eq!(nothing(&wall), said);
}

#[test]
fn head_is_given_up_where_it_may_be_what_was_refused() {
    for code in [400, 403, 405, 500, 501] {
        assert!(wants_get(&reply(PAGE, code)), "{code}");
    }
    for code in [200, 204, 404, 410, 429, 503] {
        assert!(!wants_get(&reply(PAGE, code)), "{code}");
    }
}
