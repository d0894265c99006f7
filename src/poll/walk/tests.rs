use super::*;
use ArchiveLayout::{Archives, Numbered, Pages};
use proptest::prelude::*;
use tidegate_core::model::testing::NOW;
use tidegate_format::parse::{self, Limits};

const FEED: &str = "https://pub.example/feed";

fn links(head: &str, entries: &[&str], url: &str, trail: Option<ArchiveLayout>) -> ArchiveLinks {
    let entries: String =
        entries.iter().map(|id| format!("<entry><id>{id}</id></entry>")).collect();
    let text = format!(
        "<feed xmlns=\"http://www.w3.org/2005/Atom\" \
         xmlns:at=\"http://purl.org/atompub/tombstones/1.0\"><title>t</title>{head}{entries}</feed>"
    );
    let base = Url::parse(url).unwrap();
    let document = parse::document(&text, Some(&base), &Limits::default()).unwrap();
    ArchiveLinks::from_document(&document, url, trail)
}

fn link(rel: &str, to: &str) -> String {
    format!("<link rel=\"{rel}\" href=\"{to}\"/>")
}

const WORD_PRESS: &str = "<generator>https://wordpress.org/?v=6.7</generator>";

#[test]
fn the_feed_says_how_its_past_is_laid_out() {
    for (head, trail, next) in [
        (link("prev-archive", "a/9"), Archives, "https://pub.example/a/9"),
        (link("previous", "/old"), Archives, "https://pub.example/old"),
        (link("next", "?page=2"), Pages, "https://pub.example/feed?page=2"),
        (WORD_PRESS.to_owned(), Numbered, "https://pub.example/feed?paged=2"),
    ] {
        let mut walk = Backfill::begin(NOW);
        continue_walk(&mut walk, links(&head, &["1"], FEED, None), None, NOW);
        assert_eq!((walk.trail, walk.next.as_deref()), (Some(trail), Some(next)));
        assert!(walk.is_walking() && walk.documents == 0);
    }
    let mut walk = Backfill::begin(NOW);
    continue_walk(&mut walk, links("", &["1"], FEED, None), None, NOW);
    assert_eq!((walk.standing, walk.ended), (WalkStanding::Done, Some(NOW)));
    assert_eq!(walk.note.as_deref(), Some("the feed leads to no older documents"));
    // What a publisher has a say in is bounded.
    let mut walk = Backfill::begin(NOW);
    let long = format!("/{}", "a".repeat(MAX_URL_BYTES));
    continue_walk(&mut walk, links(&link("prev-archive", &long), &["1"], FEED, None), None, NOW);
    assert_eq!((walk.standing, walk.next.as_deref()), (WalkStanding::Done, None));
    assert!(walk.note.is_some_and(|note| note.contains("the limit is 8192")));
}

#[test]
fn pages_are_numbered_on() {
    for (url, next) in [
        ("https://a.example/feed/", Some("https://a.example/feed/?paged=2")),
        ("https://a.example/?feed=rss2", Some("https://a.example/?feed=rss2&paged=2")),
        ("https://a.example/feed/?paged=2&x=1", Some("https://a.example/feed/?x=1&paged=3")),
        ("https://a.example/?paged=4294967295", None),
        ("https://a.example/?paged=last", None),
        ("nothing", None),
    ] {
        assert_eq!(next_number(url).as_deref(), next, "{url}");
    }
}

/// Creates a walk that has read its feed and found `next`.
fn set(trail: ArchiveLayout, next: &str) -> Backfill {
    let mut walk = Backfill::begin(NOW);
    let older = Some((trail, next.to_owned()));
    let first = ArchiveLinks { older, entries_hash: 1, has_entries: true, gone: vec![7] };
    continue_walk(&mut walk, first, None, NOW);
    walk
}

fn to(trail: ArchiveLayout, next: &str, entries_hash: u64) -> ArchiveLinks {
    let older = Some((trail, next.to_owned()));
    ArchiveLinks { older, entries_hash, has_entries: true, gone: vec![8] }
}

#[test]
fn a_walk_counts_and_ends_with_the_last_document() {
    let mut walk = set(Archives, "a");
    continue_walk(&mut walk, to(Archives, "b", 2), Some((5, 1)), NOW);
    let last = ArchiveLinks { older: None, ..to(Archives, "", 3) };
    continue_walk(&mut walk, last, Some((2, 0)), NOW);
    assert_eq!((walk.documents, walk.items, walk.known), (2, 7, 1));
    assert_eq!(walk.note.as_deref(), Some("the last older document was read"));
    assert_eq!((walk.standing, walk.gone), (WalkStanding::Done, vec![7, 8]));
}

#[test]
fn pages_that_repeat_or_are_empty_are_the_end_and_archives_are_not() {
    for (trail, entries_hash, has_entries, goes_on) in [
        (Pages, 1, true, false),
        (Numbered, 1, true, false),
        (Numbered, 2, false, false),
        (Numbered, 2, true, true),
        (Archives, 1, true, true),
        (Archives, 2, false, true),
    ] {
        let mut walk = set(trail, "p2");
        let next = ArchiveLinks { has_entries, ..to(trail, "p3", entries_hash) };
        continue_walk(&mut walk, next, Some((0, 3)), NOW);
        assert_eq!(walk.is_walking(), goes_on, "{trail:?} {entries_hash} {has_entries}");
    }
    let mut walk = set(Archives, "a");
    continue_walk(&mut walk, to(Archives, "b", 2), Some((1, 0)), NOW);
    continue_walk(&mut walk, to(Archives, "a", 3), Some((1, 0)), NOW);
    assert_eq!(walk.note.as_deref(), Some("the documents lead in a circle"));
}

#[test]
fn limits_stop_a_walk_and_it_goes_on_when_it_is_asked_to() {
    for (documents, bytes, taken) in
        [(MAX_DOCUMENTS, 5, 5), (5, MAX_BYTES, 5), (5, 5, MAX_TAKEN_BYTES)]
    {
        let mut walk = set(Archives, "a");
        (walk.documents, walk.bytes, walk.taken_bytes) = (documents, bytes, taken);
        continue_walk(&mut walk, to(Archives, "b", 2), Some((1, 0)), NOW);
        assert_eq!(walk.standing, WalkStanding::Stopped);
        assert!(walk.note.as_ref().unwrap().contains(", the limit is "), "{walk:?}");
        let mut again = restart(Some(walk.clone()), NOW);
        assert!(again.is_walking() && again.ended.is_none());
        assert_eq!((again.next.as_deref(), again.items), (Some("b"), walk.items));
        continue_walk(&mut again, to(Archives, "c", 3), Some((1, 0)), NOW);
        assert!(again.is_walking());
    }
    let mut walk = set(Archives, "a");
    walk.items = MAX_ITEMS - 1;
    continue_walk(&mut walk, to(Archives, "b", 2), Some((3, 0)), NOW);
    assert_eq!((walk.standing, walk.items), (WalkStanding::Stopped, MAX_ITEMS + 2));
    assert_eq!(walk.note.as_deref(), Some("50002 items were taken in, the limit is 50000"));
    let mut again = restart(Some(walk), NOW);
    continue_walk(&mut again, to(Archives, "c", 3), Some((1, 0)), NOW);
    assert_eq!((again.is_walking(), again.items), (true, 1));
    let done = Backfill { standing: WalkStanding::Done, items: 9, ..set(Pages, "x") };
    assert_eq!(restart(Some(done), NOW), Backfill::begin(NOW), "from the beginning");
    assert_eq!(restart(None, NOW), Backfill::begin(NOW));
    let walking = set(Pages, "x");
    assert_eq!(restart(Some(walking.clone()), NOW), walking);
}

#[test]
fn failures_are_waited_for_and_end_a_walk_when_they_last() {
    let minutes = |n: u64| Some(Duration::from_secs(n * 60));
    let mut walk = set(Archives, "a");
    let mut pauses = Vec::new();
    for _ in 0..MAX_FAILURES {
        pauses.push(fail(&mut walk, "no route", (None, Retry::Backoff), NOW));
    }
    let expected = [minutes(1), minutes(2), minutes(4), minutes(8), minutes(16), None];
    assert_eq!((pauses.as_slice(), walk.standing), (&expected[..], WalkStanding::Stopped));
    for (status, retry, pause) in [
        (503, Retry::After(Duration::from_secs(7200)), minutes(120)),
        (503, Retry::After(Duration::MAX), minutes(24 * 60)),
        (429, Retry::Busy, minutes(15)),
        (404, Retry::Backoff, None),
        (410, Retry::Seldom, None),
        (403, Retry::Seldom, None),
    ] {
        let mut walk = set(Archives, "a");
        assert_eq!(fail(&mut walk, "it failed", (Some(status), retry), NOW), pause, "{status}");
        assert_eq!(walk.is_walking(), pause.is_some());
        assert!(walk.note.as_ref().unwrap().starts_with("it failed"));
        // After a success, failures are counted anew.
        continue_walk(&mut walk, to(Archives, "b", 2), Some((0, 0)), NOW);
        assert_eq!((walk.failures, walk.note), (0, None));
    }
    let mut walk = set(Numbered, "p");
    assert_eq!(fail(&mut walk, "404", (Some(404), Retry::Backoff), NOW), None);
    assert_eq!((walk.standing, walk.documents), (WalkStanding::Done, 0));
}

proptest! {
    /// Whatever documents contain, a walk ends and its state stays small.
    #[test]
    fn every_walk_ends(steps in proptest::collection::vec((0..3u8, any::<u16>(), any::<u16>()), 1..300)) {
        let mut walk = set(Pages, "start");
        for (kind, address, entries_hash) in steps {
            let trail = [Archives, Pages, Numbered][usize::from(kind)];
            let gone = vec![u64::from(entries_hash); 3];
            let post = ArchiveLinks { gone, ..to(trail, &address.to_string(), u64::from(entries_hash)) };
            continue_walk(&mut walk, post, Some((1, 1)), NOW);
            prop_assert!(walk.marks.len() <= Backfill::MARKS_KEPT);
            prop_assert!(walk.gone.len() <= Backfill::GONE_KEPT);
            if !walk.is_walking() {
                prop_assert!(walk.note.is_some() && walk.ended.is_some());
                break;
            }
        }
    }
}
