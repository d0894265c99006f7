//! Plain feeds and their archives (Feed History draft-05 section 6; READINGS 3).

use super::*;

fn link(rel: &str, to: &str) -> String {
    format!("<link rel=\"{rel}\" href=\"{to}\"/>")
}

fn atom(head: &str, entries: &[(&str, &str)]) -> String {
    let entries = entries.iter().map(|(id, title)| {
        format!(
            "<entry><id>urn:{id}</id><title>{title}</title><updated>2026-01-01T00:00:00Z</updated>\
             <link href=\"posts/{id}\"/></entry>"
        )
    });
    format!(
        "<?xml version=\"1.0\"?><feed xmlns=\"http://www.w3.org/2005/Atom\" \
         xmlns:fh=\"http://purl.org/syndication/history/1.0\" \
         xmlns:at=\"http://purl.org/atompub/tombstones/1.0\"><title>News</title><id>urn:feed</id>\
         <updated>2026-01-01T00:00:00Z</updated>{head}{}</feed>",
        entries.collect::<String>()
    )
}

/// A feed with three archives: 1 is the oldest.
fn three(rel: &str) -> Publisher {
    let mut publisher = Publisher { conditional: true, ..Publisher::default() };
    publisher.set(FEED, atom(&link(rel, "archive/3"), &[("e", "e"), ("d", "d, edited")]));
    let third = link(rel, "2") + &link("current", "/feed");
    publisher.set(&at("archive/3"), atom(&third, &[("d", "d"), ("c", "c, edited")]));
    publisher.set(&at("archive/2"), atom(&link(rel, "1"), &[("c", "c"), ("b", "b")]));
    publisher.set(&at("archive/1"), atom("", &[("a", "a")]));
    publisher
}

#[test]
fn a_feed_is_reconstructed_and_later_pulls_read_what_is_new() {
    for rel in ["previous", "prev-archive"] {
        let mut publisher = three(rel);
        let mut local = Local::default();
        let outcome = local.pull(&publisher);
        assert_eq!(local.titles(), ["e", "d, edited", "c, edited", "b", "a"]);
        assert_eq!(local.asked, ["feed", "archive/3", "archive/2", "archive/1"]);
        assert!(outcome.warnings.is_empty() && outcome.living == 5 && outcome.tombstones == 0);
        assert_eq!(said(&outcome).len(), 5);
        // What the links of one document say means nothing of the replica.
        assert!(!local.text().contains("rel=\"prev"), "{}", local.text());
        // References lead where they led.
        for base in ["feed", "archive/2"] {
            assert!(local.text().contains(&format!("<entry xml:base=\"{}\">", at(base))));
        }
        let outcome = local.pull(&publisher);
        assert_eq!((local.asked.as_slice(), outcome.replica), (&["feed".to_owned()][..], None));
        publisher.set(FEED, atom(&link(rel, "archive/4"), &[("f", "f"), ("b", "b again")]));
        let entries = [("e", "e, edited"), ("b", "b, again")];
        publisher.set(&at("archive/4"), atom(&link(rel, "3"), &entries));
        let outcome = local.pull(&publisher);
        assert_eq!(local.asked, ["feed", "archive/4"]);
        assert_eq!(said(&outcome), ["new f", "changed b again", "changed e, edited"]);
        let titles = ["f", "b again", "e, edited", "d, edited", "c, edited", "a"];
        assert_eq!(local.titles(), titles);
    }
}

/// "The value of the self link relation, if present, SHOULD be used as the URI of the feed document
/// it occurs in."
#[test]
fn an_archive_is_known_by_its_self() {
    let mut publisher = Publisher::default();
    let own = |n: &str| link("self", &at(&format!("kept/{n}")));
    publisher.set(FEED, atom(&link("previous", "get?n=1"), &[("b", "b")]));
    publisher.set(&at("get?n=1"), atom(&own("1"), &[("a", "a")]));
    let mut local = publisher.pulled();
    publisher.set(FEED, atom(&link("previous", "get?n=2"), &[("c", "c")]));
    publisher.set(&at("get?n=2"), atom(&(own("2") + &link("previous", "get?n=1")), &[("b", "b")]));
    publisher.set(&at("get?n=1"), atom(&own("1"), &[("a", "not read again")]));
    local.pull(&publisher);
    assert_eq!(local.titles(), ["c", "b", "a"]);
    assert_eq!(local.asked, ["feed", "get", "get"]);
}

#[test]
fn a_missing_archive_is_a_warning_and_read_when_it_is_there() {
    let mut publisher = three("prev-archive");
    let second = publisher.documents.remove(&at("archive/2")).unwrap();
    let mut local = Local::default();
    let outcome = local.pull(&publisher);
    assert_eq!(local.titles(), ["e", "d, edited", "c, edited"]);
    assert_eq!(outcome.warnings.len(), 1);
    let why = "was not read: the publisher answered 404";
    let wanted = format!("the archive {} {why}", at("archive/2"));
    assert!(outcome.warnings[0].starts_with(&wanted), "{:?}", outcome.warnings);
    // It is asked for again, also where nothing else is new, and warned of again.
    let outcome = local.pull(&publisher);
    assert_eq!((local.asked.len(), outcome.warnings.len(), outcome.replica), (2, 1, None));
    publisher.set(&at("archive/2"), second);
    let outcome = local.pull(&publisher);
    assert!(outcome.warnings.is_empty(), "{:?}", outcome.warnings);
    local.pull(&publisher);
    assert_eq!(local.asked, ["feed"], "nothing is missing any more");
}

#[test]
fn a_circle_ends() {
    let mut publisher = Publisher::of(atom(&link("prev-archive", "1"), &[("c", "c")]));
    publisher.set(&at("1"), atom(&link("prev-archive", "2"), &[("b", "b")]));
    publisher.set(&at("2"), atom(&link("prev-archive", "1"), &[("a", "a")]));
    let mut local = Local::default();
    let outcome = local.pull(&publisher);
    assert_eq!((local.asked.len(), local.titles().len()), (3, 3));
    assert!(outcome.warnings[0].ends_with("back to https://pub.example/1, which was read already"));
    publisher.set(FEED, atom(&link("prev-archive", "/feed"), &[("c", "c")]));
    assert_eq!(Local::default().pull(&publisher).warnings.len(), 0, "it leads nowhere");
}

#[test]
fn what_is_beyond_a_limit_is_read_the_next_time() {
    let publisher = three("previous");
    let all = PullLimits::STANDARD;
    for limits in [PullLimits { requests: 2, ..all }, PullLimits { bytes: 700, ..all }] {
        let mut local = Local::default();
        let mut warnings = 0;
        for _ in 0..10 {
            let outcome = local.try_pull(&publisher, limits).unwrap();
            assert!(local.asked.len() <= 3, "{:?}", local.asked);
            warnings += outcome.warnings.len();
        }
        assert_eq!(local.titles(), ["e", "d, edited", "c, edited", "b", "a"], "{limits:?}");
        assert!((1..=3).contains(&warnings), "{warnings} warnings");
    }
}

#[test]
fn a_document_that_lists_everything_replaces_what_is_kept() {
    let mut publisher = three("prev-archive");
    let mut local = publisher.pulled();
    let head = "<fh:complete/>".to_owned() + &link("prev-archive", "archive/3");
    publisher.set(FEED, atom(&head, &[("e", "e"), ("z", "z"), ("z", "z twice")]));
    let outcome = local.pull(&publisher);
    assert_eq!((local.titles(), local.asked.len()), (vec!["e".to_owned(), "z".to_owned()], 1));
    let gone = said(&outcome).iter().filter(|said| said.starts_with("forgotten")).count();
    assert_eq!((gone, outcome.living), (4, 2));
    // A delta of it does not list everything.
    publisher.conditional = false;
    publisher.deltas.insert(FEED.to_owned(), atom("<fh:complete/>", &[("y", "y")]));
    local.pull(&publisher);
    assert_eq!(local.titles(), ["y", "e", "z"]);
}

#[test]
fn one_current_link_is_followed() {
    let mut publisher = three("prev-archive");
    publisher.set(&at("current"), publisher.documents[FEED].clone());
    publisher.set(FEED, atom(&link("current", "/current"), &[("old", "an old archive")]));
    let mut local = publisher.pulled();
    assert_eq!(local.titles()[0], "e");
    assert_eq!(local.asked[..2], ["feed", "current"]);
    local.pull(&publisher);
    assert_eq!(local.asked, ["current"], "from then on it is what is subscribed to");
    // One hop only, whatever that one says (READINGS 3, row 4).
    publisher.set(&at("current"), atom(&link("current", "/feed"), &[("x", "x")]));
    let local = publisher.pulled();
    assert_eq!(local.asked, ["feed", "current"]);
}

#[test]
fn where_a_current_link_leads_nowhere_the_given_document_counts() {
    let mut publisher = three("prev-archive");
    let head = link("prev-archive", "archive/3") + &link("current", "/current");
    publisher.set(FEED, atom(&head, &[("e", "e"), ("d", "d, edited")]));
    let mut local = Local::default();
    publisher.conditional = false;
    for broken in [None, Some("no feed")] {
        if let Some(text) = broken {
            publisher.set(&at("current"), text);
        }
        let outcome = local.pull(&publisher);
        let warned = outcome.warnings.iter().filter(|warning| warning.contains("calls current"));
        assert_eq!(warned.count(), 1, "{:?}", outcome.warnings);
        assert_eq!(local.asked[..2], ["feed", "current"], "{broken:?}");
        assert_eq!(local.titles(), ["e", "d, edited", "c, edited", "b", "a"], "{broken:?}");
        assert_eq!(local.saved.as_ref().unwrap().0.subscription, FEED);
    }
    // It is followed as soon as it is there.
    publisher.set(&at("current"), atom("", &[("f", "f")]));
    local.pull(&publisher);
    assert_eq!(local.titles()[0], "f");
    assert_eq!(local.saved.as_ref().unwrap().0.subscription, at("current"));
}

#[test]
fn a_walk_stops_before_the_replica_is_too_large_to_be_written() {
    let mut publisher = three("prev-archive");
    let long = "x".repeat(1_000);
    // Only the newest state of an entry counts.
    let archives: [(_, _, &[_]); 3] =
        [("archive/3", "2", &["c"]), ("archive/2", "1", &["c", "b"]), ("archive/1", "1", &["a"])];
    for (archive, older, ids) in archives {
        let entries: Vec<_> = ids.iter().map(|id| (*id, long.as_str())).collect();
        publisher.set(&at(archive), atom(&link("prev-archive", older), &entries));
    }
    let limits = PullLimits { items: 3_000, ..PullLimits::STANDARD };
    let mut local = Local::default();
    for _ in 0..2 {
        let outcome = local.try_pull(&publisher, limits).unwrap();
        let [warning] = &outcome.warnings[..] else { panic!("{:?}", outcome.warnings) };
        assert!(warning.contains("archive/1 was not read: the replica would have"), "{warning}");
        assert!(warning.contains("above the limit, 3000; what is only there"), "{warning}");
        assert_eq!(outcome.living, 4);
    }
    // With more room it is had.
    local.pull(&publisher);
    assert_eq!(local.titles().len(), 5);
}

#[test]
fn deleted_entries_go_and_come_back_and_a_delta_says_nothing_by_what_it_leaves_out() {
    let mut publisher = Publisher::of(atom("", &[("a", "a"), ("b", "b")]));
    let mut local = publisher.pulled();
    let gone = "<at:deleted-entry ref=\"urn:a\" when=\"2026-02-01T00:00:00Z\"/>";
    publisher.set(FEED, atom(gone, &[("b", "b")]));
    assert_eq!(said(&local.pull(&publisher)), ["deleted a"]);
    assert_eq!(local.titles(), ["b"]);
    // Beside its own tombstone an entry is there again.
    publisher.set(FEED, atom(gone, &[("a", "a"), ("b", "b")]));
    assert_eq!(said(&local.pull(&publisher)), ["new a"]);
    publisher.deltas.insert(FEED.to_owned(), atom("", &[("c", "c"), ("a", "a, edited")]));
    assert_eq!(said(&local.pull(&publisher)), ["new c", "changed a, edited"]);
    assert_eq!(local.titles(), ["c", "a, edited", "b"]);
}

#[test]
fn rss_is_known_by_its_guids() {
    let rss = |links: &str, items: &str| {
        format!(
            "<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?><rss version=\"2.0\" \
             xmlns:atom=\"http://www.w3.org/2005/Atom\"><channel><title>N</title>\
             <link>https://pub.example/</link><description/>{links}{items}</channel></rss>"
        )
    };
    let item = |id: &str, title: &str| format!("<item><title>{title}</title>{id}</item>");
    let guid = |id: &str| format!("<guid isPermaLink=\"false\">{id}</guid>");
    let mut publisher = Publisher::default();
    let older = "<atom:link rel=\"prev-archive\" href=\"https://pub.example/1\"/>";
    let items = item(&guid("x"), "x &amp; more") + &item("<link>https://pub.example/y</link>", "y");
    publisher.set(FEED, rss(older, &items));
    let items = item(&guid("x"), "x") + &item("", "z") + "<item/>";
    publisher.set(&at("1"), rss("", &items));
    let mut local = publisher.pulled();
    assert_eq!(local.titles(), ["x & more", "y", "z", ""]);
    let declaration = local.text().lines().next().unwrap_or_default().to_lowercase();
    assert!(declaration.contains("utf-8"), "{declaration}");
    publisher.set(FEED, rss("", &item("<link>https://pub.example/y</link>", "y, edited")));
    assert_eq!(said(&local.pull(&publisher)), ["changed y, edited"]);
}

#[test]
fn an_archive_in_another_format_is_written_in_the_feeds() {
    let mut publisher = Publisher::of(atom(&link("prev-archive", "1"), &[("b", "b")]));
    let rss = "<rss version=\"2.0\"><channel><title>t</title><item><guid>urn:a</guid>\
               <title>a</title></item></channel></rss>";
    publisher.set(&at("1"), rss);
    let local = publisher.pulled();
    assert_eq!(local.titles(), ["b", "a"]);
    assert_eq!(local.text().matches("<entry").count(), 2);
}

#[test]
fn a_damaged_document_is_mended_and_another_format_refused() {
    let mut publisher = Publisher::of(atom("", &[("a", "AT&T &nbsp; <br> x"), ("b", "b")]));
    let mut local = publisher.pulled();
    assert_eq!(local.titles().len(), 2);
    let rdf = "<rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\" \
               xmlns=\"http://purl.org/rss/1.0/\"><channel><title>t</title></channel>\
               <item rdf:about=\"a\"/></rdf:RDF>";
    for (text, wanted) in [
        ("<html><body>Sign in</body></html>", "is no feed"),
        ("{\"version\":\"https://jsonfeed.org/version/1.1\",\"items\":[]}", "is JSON Feed, and"),
        (rdf, "is RSS 1.0, and"),
    ] {
        publisher.set(FEED, text);
        let error = local.refused(&publisher);
        assert!(error.starts_with(&format!("{FEED} ")) && error.contains(wanted), "{error}");
    }
}

#[test]
fn pages_are_not_followed_and_said_to_be_there() {
    let publisher = Publisher::of(atom(&link("next", "?page=2"), &[("a", "a")]));
    let outcome = Local::default().pull(&publisher);
    assert!(outcome.warnings[0].starts_with("the feed has pages"), "{:?}", outcome.warnings);
}
