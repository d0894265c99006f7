//! The rules of the protocol's validator, for our documents and our consumer; and discovery.

use super::super::*;
use crate::model::{SupId, Tick, Time};

pub(super) fn at(seconds: i64) -> Time {
    Time::from_unix(1_800_000_000 + seconds)
}

pub(super) fn id(text: &str) -> SupId {
    SupId::new(text).unwrap()
}

pub(super) fn closed(epoch: u64, seconds: i64, feeds: &[&str]) -> Closed {
    let changes = feeds.iter().map(|feed| (id(feed), Tick::at(at(seconds)))).collect();
    Closed { epoch, at: at(seconds), changes }
}

fn address(period: u32) -> String {
    format!("https://feeds.example.org/sup.json?seconds={period}")
}

fn listed(windows: &Windows, period: u32) -> Vec<String> {
    windows.window(period).updates().map(|(id, _)| id.to_string()).collect()
}

#[test]
fn what_is_written_is_read_back() {
    let mut windows = Windows::new(86_400);
    windows.add_epoch(closed(1, 0, &["a", "b"]));
    windows.add_epoch(closed(2, 5, &["a", "c-3"]));
    windows.finish(at(7), at(7));
    for period in PERIODS {
        let text = windows.window(period).write(&PERIODS, address, |_| true);
        let document = read(text.as_bytes()).unwrap();
        assert_eq!((document.period, document.updated), (period, at(6)));
        let length = slack(period) + Duration::from_secs(u64::from(period));
        assert_eq!(document.since, at(6).minus(length));
        assert_eq!(document.available.len(), PERIODS.len());
        assert_eq!(document.available[&300], address(300));
        let ids: Vec<_> = document.updates.iter().map(|u| (u.id.as_str(), &*u.update)).collect();
        let (first, second) = ("2027-01-15T08-00-00Z", "2027-01-15T08-00-05Z");
        assert_eq!(ids, [("c-3", second), ("a", second), ("b", first)]);
    }
}

#[test]
fn an_update_is_listed_for_its_period_and_the_slack() {
    let mut windows = Windows::new(600);
    windows.add_epoch(closed(1, 0, &["a"]));
    windows.finish(at(0), at(0));
    assert_eq!(listed(&windows, 60), ["a"]);
    // 60 s of period, 16 s of slack, and the second by which `updated_time` lags behind.
    windows.finish(at(76), at(76));
    assert_eq!(listed(&windows, 60), ["a"]);
    windows.finish(at(77), at(77));
    assert_eq!(listed(&windows, 60), [""; 0]);
    assert_eq!(listed(&windows, 300), ["a"]);
}

#[test]
fn documents_reach_back_a_tenth_further_and_age_a_twentieth() {
    let periods = [1, 60, 300, 600, 3600, 86_400];
    assert_eq!(periods.map(|period| slack(period).as_secs()), [10, 16, 40, 70, 370, 8650]);
    assert_eq!(periods.map(|period| step(period).as_secs()), [1, 3, 15, 30, 60, 60]);
}

#[test]
fn epochs_of_before_a_restart_bear_the_closing_of_the_next() {
    let mut windows = Windows::new(600);
    for (epoch, seconds, feed) in [(5, 0, "a"), (6, 100, "b"), (7, 101, "c")] {
        windows.add_epoch(closed(epoch, seconds, &[feed]));
    }
    windows.add_epoch(closed(6, 100, &["b"]));
    windows.finish(at(150), at(153));
    assert_eq!((windows.epoch(), windows.window(60).updated), (7, at(149)));
    assert_eq!(listed(&windows, 60), ["c", "b", "a"]);
    // A slow reading may have found `c`, and a slow clock closes `d`.
    windows.add_epoch(closed(8, 151, &["d"]));
    // For the last epochs it is unknown how late they became readable; for `a` and `b` it is known.
    for (now, ids) in [
        (152, &["d", "c", "b", "a"][..]),
        (177, &["d", "c", "b"]),
        (178, &["d", "c"]),
        (229, &["d", "c"]),
        (230, &[]),
    ] {
        windows.finish(at(now), at(now));
        assert_eq!(listed(&windows, 60), ids, "{now}");
    }
}

#[test]
fn a_clock_that_goes_back_takes_nothing_out_and_nothing_back() {
    let mut windows = Windows::new(600);
    windows.add_epoch(closed(1, 0, &["a"]));
    windows.finish(at(1000), at(1000));
    let before = windows.window(60).updated;
    windows.add_epoch(closed(2, 1, &["b"]));
    windows.add_epoch(closed(3, 2, &["c"]));
    windows.finish(at(3), at(3));
    assert_eq!(windows.window(60).updated, before);
    assert_eq!(listed(&windows, 60), ["c", "b", "a"]);
    // The last document was later than any update.
    windows.finish(at(1500), at(1500));
    windows.add_epoch(closed(4, 3, &["d"]));
    windows.finish(at(4), at(4));
    assert_eq!(listed(&windows, 60), ["d"]);
}

const GOOD: &str = r#"{"updates":[["a-1","u"]],"period":60,"since_time":"2026-11-20T16:20:05Z",
    "updated_time":"2026-11-20T17:21:05+01:00","more":[1],
    "available_periods":{"60":"http://a.example/1","300":"http://a.example/5"}}"#;

#[test]
fn what_the_validator_takes_is_read() {
    let document = read(GOOD.as_bytes()).unwrap();
    assert_eq!(document.updated.since(document.since).as_secs(), 60);
    assert_eq!(document.updates, [UpdateMember { id: id("a-1"), update: "u".into() }]);
    let digits = GOOD.replace(":60,", ":\"60\",");
    assert_eq!(read(digits.as_bytes()).unwrap(), document);
    // The validator requires two periods of publishers; a consumer accepts fewer.
    let one = read(GOOD.replace("\"60\":\"http://a.example/1\",", "").as_bytes()).unwrap();
    assert_eq!(one.available.keys().collect::<Vec<_>>(), [&300]);
    let marked = format!("\u{feff}{GOOD}");
    assert_eq!(read(marked.as_bytes()).unwrap(), document);
    let (head, _) = GOOD.split_once(",\n    \"available").unwrap();
    assert_eq!(read(format!("{head}}}").as_bytes()).unwrap().available.len(), 0);
}

#[test]
fn what_the_validator_rejects_is_refused() {
    let long = "x".repeat(129);
    let pairs = [r#"["a-1","u"],"#, r#"["a-1"]"#, r#"["a-1","u","v"]"#, r#"["a-1",1]"#, r#""a-1""#];
    let cases: [(&str, &[&str]); 10] = [
        (r#"["a-1","u"]"#, &pairs),
        ("a-1", &["", "a_1", "é", &long]),
        (r#""u""#, &[r#""""#, r#""u u""#]),
        (":60,", &[":0,", ":-60,", ":60.5,", ":\"+60\",", ":\"\",", ":null,", ":61,"]),
        ("2026-11-20T16:20:05Z", &["yesterday", "2026-11-20T16:20:06Z"]),
        ("since_time", &["start_time"]),
        ("updates", &["update"]),
        ("period\"", &["periods\""]),
        ("http://a.example/1", &["/sup.json?seconds=60", "ftp://a.example/1"]),
        ("\"60\":", &["\"minute\":"]),
    ];
    for (good, bad) in cases.iter().flat_map(|(good, all)| all.iter().map(move |bad| (good, bad))) {
        let text = GOOD.replacen(good, bad, 1);
        assert_ne!(text, GOOD, "{good}");
        assert!(read(text.as_bytes()).is_err(), "{text}");
    }
    for bad in ["", "[]", "{}", "null", "\u{0}", &"[".repeat(100_000)] {
        assert!(read(bad.as_bytes()).is_err());
    }
    let said = read(GOOD.replace(":60,", ":61,").as_bytes()).unwrap_err().to_string();
    let why = "period 61 but covers only 60 s, from 2026-11-20T16:20:05Z to 2026-11-20T16:21:05Z";
    assert!(said.ends_with(why), "{said}");
}

#[test]
fn places_are_found_in_header_link_element_and_link_header() {
    let document = "http://a.example/sup.json?seconds=60".to_owned();
    let place = SupAnnouncement { document, id: id("4496672d") };
    let address = "http://a.example/sup.json?seconds=60#4496672d";
    assert_eq!(in_header(address), Some(place.clone()));
    assert_eq!(in_header(&format!("  {address} ")), Some(place.clone()));
    let base = "http://a.example/feeds/news";
    assert_eq!(in_link("/sup.json?seconds=60#4496672d", base), Some(place.clone()));
    let link = format!(
        "<http://a.example/>; rel=self; title=\"a, <b>; \\\"c\\\"\" , <{address}>; type=x; REL=\"x {RELATION}\""
    );
    assert_eq!(in_links(&link, base), Some(place.clone()));
    let secret = address.replace("//", "//me:secret@");
    assert_eq!(in_header(&secret), Some(place));
    for none in [
        "http://a.example/sup.json",
        "http://a.example/sup.json#",
        "http://a.example/sup.json#a_b",
        "/sup.json#a",
        "ftp://a.example/#a",
        "",
    ] {
        assert_eq!(in_header(none), None, "{none}");
    }
    for none in ["", "<", "<a", "<http://a.example/#a>", "<http://a.example/#a>; rel=sup,"] {
        assert_eq!(in_links(none, base), None, "{none}");
    }
}

fn document(period: u32, since: i64, updated: i64, updates: &[(&str, &str)]) -> SupDocument {
    let update =
        |(feed, update): &(&str, &str)| UpdateMember { id: id(feed), update: (*update).into() };
    let updates = updates.iter().map(update).collect();
    let available = PERIODS.map(|period| (period, address(period))).into();
    SupDocument { period, since: at(since), updated: at(updated), available, updates }
}

fn told(news: &News) -> Vec<&str> {
    news.updates.iter().map(|update| update.id.as_str()).collect()
}

#[test]
fn a_follower_is_told_each_update_once_and_asks_for_the_period_that_reaches_back() {
    let mut follower = Follower::default();
    let news = follower.apply_document(&document(60, -136, -60, &[("d", "2"), ("c", "1")]));
    assert_eq!((told(&news), &news.standing), (vec!["c", "d"], &FollowerStatus::Complete));
    let next = [("c", "3"), ("d", "2"), ("c", "1")];
    let news = follower.apply_document(&document(60, -76, 0, &next));
    assert_eq!((told(&news), &news.standing), (vec!["c"], &FollowerStatus::Complete));
    assert_eq!(follower.known(), Some(at(0)));
    // It was away.
    let news = follower.apply_document(&document(60, 374, 450, &[("a", "1")]));
    assert_eq!(told(&news), ["a"]);
    assert_eq!(news.standing, FollowerStatus::Ask { period: 600, address: address(600) });
    // The longer document may be slightly older than the short one.
    let news = follower.apply_document(&document(600, -230, 440, &[("a", "1"), ("b", "1")]));
    assert_eq!((told(&news), &news.standing), (vec!["b"], &FollowerStatus::Complete));
    assert_eq!(follower.known(), Some(at(450)));
}

#[test]
fn a_follower_that_no_document_reaches_back_to_has_missed_something() {
    let mut follower = Follower::default();
    follower.apply_document(&document(60, -76, 0, &[]));
    let day = 86_400;
    let news = follower.apply_document(&document(60, 3 * day, 3 * day + 76, &[]));
    assert_eq!(news.standing, FollowerStatus::Ask { period: 86_400, address: address(86_400) });
    let news = follower.apply_document(&document(86_400, 2 * day, 3 * day + 70, &[]));
    assert_eq!(news.standing, FollowerStatus::Missed);
    assert_eq!(follower.known(), Some(at(3 * day + 76)));
    // The same holds if the publisher went back in time.
    let news = follower.apply_document(&document(60, 24, 100, &[]));
    assert_eq!(news.standing, FollowerStatus::Missed);
    assert_eq!(follower.known(), Some(at(100)));
}
