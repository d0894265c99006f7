use super::*;
use tidegate_core::model::testing::at;
use tidegate_core::model::{Absence, FeedState, Format, ProbeAnswer};

const FEED: &str = "https://feeds.example.org/news.xml";

fn url(text: &str) -> Url {
    Url::parse(text).unwrap()
}

fn known(name: &str, link: &str) -> LedgerEntry {
    LedgerEntry {
        id: SyncId::new(name).unwrap(),
        title: name.to_owned(),
        link: Some(link.to_owned()),
        standing: ItemStatus::Current,
        ..LedgerEntry::left(name)
    }
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

fn missing(name: &str, evidence: Evidence, probe: Option<Probe>) -> LedgerEntry {
    let absence = Absence { probe, ..Absence::seen_once(evidence, at(0)) };
    let link = format!("https://www.example.org/{name}");
    LedgerEntry { absence: Some(absence), ..known(name, &link) }
}

fn hole(name: &str) -> LedgerEntry {
    missing(name, Evidence::Hole, None)
}

#[test]
fn only_what_the_operator_wants_and_what_can_be_believed_is_asked() {
    let feed = snapshot(vec![hole("a")]);
    assert_eq!(planned(&asking(), &feed, 0, 4), ["a"]);
    let off = FeedOptions { deletions: Deletions::Off, ..asking() };
    for (options, room) in [(FeedOptions::default(), 4), (off, 4), (asking(), 0)] {
        assert!(planned(&options, &feed, 0, room).is_empty(), "{options:?} {room}");
    }
    let bare = Snapshot { order: vec![], ..feed };
    assert!(planned(&asking(), &bare, 0, 4).is_empty(), "nothing to compare with");
}

/// Evidence that an answer can turn; what one more answer decides first, then what is older.
#[test]
fn what_is_asked_first() {
    let heard = ProbeAnswer { gone: true, status: 404, first: at(0), last: at(0) };
    let probe = Probe { asked: 1, last: at(0), heard: Some(heard), silence: None };
    let mut older = hole("z");
    older.absence.as_mut().unwrap().since = at(-60);
    let retired = LedgerEntry { standing: ItemStatus::Retired { since: at(0) }, ..hole("f") };
    let feed = snapshot(vec![
        missing("a", Evidence::Unplaced, None),
        missing("c", Evidence::Unplaced, Some(probe)),
        missing("d", Evidence::Aged, None),
        missing("e", Evidence::Said, None),
        missing("g", Evidence::Complete, None),
        older,
        retired,
    ]);
    assert_eq!(planned(&asking(), &feed, 7200, 9), ["c", "z", "g", "a"]);
    assert_eq!(planned(&asking(), &feed, 7200, 2), ["c", "z"]);
}

#[test]
fn no_other_domain_no_other_host_and_no_shared_page_is_asked() {
    let of = |name: &str, link: &str| LedgerEntry {
        link: (!link.is_empty()).then(|| link.to_owned()),
        ..hole(name)
    };
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
        let item = missing("a", evidence, Some(probe));
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

const FRONT: &str = "https://www.example.org/";

/// `end`: a status, with the address that answered where a redirect led there, or why there was no answer.
fn reply(asked: &str, end: &str) -> ProbeReply {
    let asked = url(&format!("{FRONT}{asked}"));
    let (code, at) = end.split_once(' ').unwrap_or((end, ""));
    let end = match code.parse() {
        Ok(code) if at.is_empty() => ProbeEnd::Status { code, at: asked.clone() },
        Ok(code) => ProbeEnd::Status { code, at: url(at) },
        Err(_) => ProbeEnd::NoStatus(end.to_owned()),
    };
    ProbeReply { asked, end }
}

/// What the reply about `/a` means beside those of a listed item and of a made-up address; `-` was not asked.
fn meant(listed: &str, made_up: &str, page: &str) -> String {
    let feed = snapshot(vec![hole("a"), known("b", "https://www.example.org/b")]);
    let asked = |path, end: &str| (end != "-").then(|| reply(path, end));
    let items = vec![(SyncId::new("a").unwrap(), asked("a", page))];
    let made_up = asked("0123456789abcdef", made_up);
    match answers(&feed, &Replies { listed: reply("listed", listed), made_up, items }).remove(0).1 {
        ProbeVerdict::Gone(code) => format!("gone {code}"),
        ProbeVerdict::There(code) => format!("there {code}"),
        ProbeVerdict::Nothing(why) => why,
    }
}

#[test]
fn plain_answers_of_a_site_that_works_are_believed_and_nothing_else_is() {
    for code in [201, 204, 206, 304, 400, 401, 403, 405, 406, 418, 429, 451, 500, 502, 503, 599] {
        assert_eq!(meant("200", "404", &code.to_string()), format!("it answered {code}"));
    }
    for code in [200, 404, 410] {
        let led = |to: &str| meant("200", "404", &format!("{code} {to}"));
        assert_eq!(led(FRONT), "it leads to the site's front page");
        assert_eq!(led("https://www.example.org/b"), "it leads to another item's page");
    }
    let not_asked = "it was not asked, because";
    for (listed, made_up, page, expected) in [
        ("200", "404", "404", "gone 404"),
        ("200", "404", "410", "gone 410"),
        ("200", "404", "200", "there 200"),
        // Within the domain, a redirect to the same page is plain too.
        ("200", "404", "200 http://example.org/a", "there 200"),
        ("200", "404", "200 https://m.example.org/A/", "there 200"),
        ("200", "404", "410 https://m.example.org/A/", "gone 410"),
        ("200", "404", "404 https://www.example.org/not-found", "gone 404"),
        ("200", "404", "no connection", "no connection"),
        ("200", "404", "200 https://www.example.org/login?next=/a", "it leads to another page, h"),
        // A wall of 404s confirms nothing.
        ("404", "404", "404", "but what the document lists answers 404 too"),
        ("410", "404", "404", "but what the document lists answers 410 too"),
        ("403", "404", "404", "but what the document lists answers 403 too"),
        ("500", "404", "404", "but what the document lists answers 500 too"),
        ("200 https://www.example.org/", "404", "404", "leads to the front page"),
        ("no connection", "-", "-", "cannot be read (no connection)"),
        // A site that answers 200 to everything refutes nothing.
        ("200", "200", "200", "but a made-up address answers 200 too"),
        ("200", "403", "200", "but a made-up address answers 403 too"),
        ("200", "500", "200", "but a made-up address answers 500 too"),
        ("200", "no connection", "200", "but a made-up address cannot be read"),
        ("200", "-", "200", "which was not compared"),
        // One that sends strange addresses to its front page tells them apart.
        ("200", "200 https://www.example.org/", "200", "there 200"),
        // A 404 beside a soft 404 is a strong one.
        ("200", "200", "404", "gone 404"),
        ("503", "-", "-", &format!("{not_asked} the site answers 503 too")),
        ("404", "-", "-", &format!("{not_asked} what the document lists answers 404 too")),
    ] {
        let found = meant(listed, made_up, page);
        assert!(found.contains(expected), "{listed} {made_up} {page}: {found}");
    }
}

#[test]
fn head_is_given_up_where_it_may_be_what_was_refused() {
    for code in ["400", "403", "405", "500", "501"] {
        assert!(wants_get(&reply("a", code)), "{code}");
    }
    for code in ["200", "204", "404", "410", "429", "503"] {
        assert!(!wants_get(&reply("a", code)), "{code}");
    }
}
