use super::*;
use crate::config::{OriginConfig, OriginPlace};
use crate::model::{FeedName, FeedRecord, FeedSource, FeedStanding, Time};
use crate::origin::site_of_config;
use crate::store::FeedList;
use std::collections::HashMap;

fn site(place: OriginPlace) -> Arc<OriginSite> {
    let config = OriginConfig {
        name: FeedName::new("blog").unwrap(),
        url: Url::parse("https://blog.example/").unwrap(),
        place,
        passes: PassMode::Redirect,
        sends_host: false,
        first_wait: Duration::from_secs(5),
        idle: Duration::from_secs(86_400),
        feeds: 10,
    };
    Arc::new(OriginSite::new(config, &Url::parse("https://gw.example").unwrap()))
}

fn at() -> Arc<OriginSite> {
    site(OriginPlace::At("/blog/".to_owned()))
}

fn record(name: &str, url: &str) -> FeedRecord {
    FeedRecord::new(FeedName::new(name).unwrap(), url, FeedSource::File)
}

fn places(records: Vec<FeedRecord>) -> FeedPlaces {
    let paths = HashMap::from([(FeedName::new("own").unwrap(), "/own.xml".to_owned())]);
    let rules = PlaceRules { sites: vec![at()], paths, base: "https://gw.example".to_owned() };
    let feeds: FeedList = records.into_iter().map(|it| (it.name.clone(), Arc::new(it))).collect();
    FeedPlaces::new(&rules, &feeds, |name| name.as_str() == "hidden")
}

#[test]
fn feeds_of_an_origin_are_at_their_publishers_paths() {
    let name = |text: &str| FeedName::new(text).unwrap();
    let url = |text: &str| Url::parse(text).unwrap();
    let places = places(vec![
        record("a", "https://blog.example/atom.xml"),
        record("own", "https://elsewhere.example/x"),
        record("hidden", "https://blog.example/hidden.xml"),
        record("z", "https://other.example/atom.xml"),
    ]);
    assert_eq!(places.feed_of(&url("https://blog.example/atom.xml")), Some(&name("a")));
    assert_eq!(places.address(&name("a"), None), Some("https://gw.example/blog/atom.xml"));
    assert_eq!(places.feed_at("https://gw.example/blog/atom.xml"), Some(&name("a")));
    assert_eq!(places.feed_at_path("/own.xml"), Some(&name("own")));
    assert_eq!(places.address(&name("own"), None), Some("https://gw.example/own.xml"));
    // A private feed is nowhere but where its readers find it.
    assert_eq!(places.feed_of(&url("https://blog.example/hidden.xml")), None);
    assert_eq!(places.address(&name("hidden"), None), None);
    assert_eq!(places.address(&name("z"), None), None);
}

#[test]
fn of_feeds_with_one_upstream_the_operators_goes_first() {
    let at = Time::from_unix(0);
    let upstream = "https://blog.example/atom.xml";
    let url = Url::parse(upstream).unwrap();
    let asked = || {
        FeedRecord::on_demand(FeedName::new("a").unwrap(), upstream, "https://blog.example/", at)
    };
    let both = places(vec![asked(), record("b", upstream)]);
    assert_eq!(both.feed_of(&url).map(FeedName::as_str), Some("b"));
    assert_eq!(both.address(&FeedName::new("a").unwrap(), None), None);
    let gone = FeedRecord { standing: FeedStanding::Gone, ..record("b", upstream) };
    let both = places(vec![asked(), gone]);
    assert_eq!(both.feed_of(&url).map(FeedName::as_str), Some("a"));
}

#[test]
fn only_admitted_addresses_are_asked() {
    let allow = AllowConfig {
        url: Url::parse("https://example.org/feeds/").unwrap(),
        idle: Duration::from_secs(86_400),
        feeds: 3,
    };
    let settings =
        OriginSettings { sites: vec![at()], allow: vec![allow], ..OriginSettings::default() };
    let origins = Origins::new(&settings, "gw");
    let admitted = |text: &str| {
        let found = origins.admitted(&Url::parse(text).unwrap());
        found.map(|(site, url)| (site.feeds, url.to_string()))
    };
    let here = "https://blog.example/atom.xml".to_owned();
    assert_eq!(admitted("https://blog.example/atom.xml"), Some((10, here.clone())));
    assert_eq!(admitted("https://gw.example/blog/atom.xml"), Some((10, here)));
    assert!(admitted("https://example.org/feeds/a").is_some_and(|(feeds, _)| feeds == 3));
    for other in [
        "https://example.org/",
        "https://example.org/feeds",
        "http://example.org/feeds/a",
        "https://example.org:8443/feeds/a",
        "https://user@example.org/feeds/a",
        "https://example.org.evil.example/feeds/a",
        "https://blog.example:444/",
        "file:///etc/passwd",
        "http://127.0.0.1/",
    ] {
        assert_eq!(admitted(other), None, "{other}");
    }
}

#[test]
fn of_two_origins_with_one_address_polls_tell_the_first_ones_name() {
    let place = |host: &str| OriginPlace::Host(host.to_owned());
    let url = "http://127.0.0.1:9000/";
    let of = |place| Arc::new(site_of_config(url, place, "https://gw.example/", false));
    // Requests are looked up in another order than this.
    let sites =
        vec![of(OriginPlace::At("/b/".to_owned())), of(place("a.example")), of(place("c.example"))];
    let settings = OriginSettings { sites: sites.clone(), ..OriginSettings::default() };
    let origins = Origins::new(&settings, "gw");
    let feed = Url::parse("http://127.0.0.1:9000/feed").unwrap();
    let told: Vec<bool> = sites.iter().map(|site| origins.is_polled_as(site, &feed)).collect();
    assert_eq!(told, [true, false, false]);
}
