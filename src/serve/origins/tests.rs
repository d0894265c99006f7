use super::*;
use crate::tests::{client, name, network_of_site};
use std::collections::HashMap;
use std::time::Duration;
use tidegate_core::model::{FeedRecord, FeedSource, FeedStanding, Time};
use tidegate_net::origin::{OriginConfig, OriginPlace};
use tidegate_net::testing::{site_of_config, url};
use tidegate_store::FeedList;

pub(crate) fn config(place: OriginPlace) -> OriginConfig {
    OriginConfig {
        passes: PassMode::Redirect,
        ..site_of_config("https://blog.example/", place, "https://gw.example", false)
            .config()
            .clone()
    }
}

fn site(place: OriginPlace) -> Arc<OriginSite> {
    Arc::new(OriginSite::new(config(place), &url("https://gw.example")))
}

fn at() -> Arc<OriginSite> {
    site(OriginPlace::At("/blog/".to_owned()))
}

fn record(feed: &str, url: &str) -> FeedRecord {
    FeedRecord::new(name(feed), url, FeedSource::File)
}

fn list(records: impl IntoIterator<Item = FeedRecord>) -> FeedList {
    records.into_iter().map(|it| (it.name.clone(), Arc::new(it))).collect()
}

fn places(records: Vec<FeedRecord>) -> FeedPlaces {
    let paths = HashMap::from([(name("own"), "/own.xml".to_owned())]);
    let rules = PlaceRules { sites: vec![at()], paths, base: "https://gw.example".to_owned() };
    FeedPlaces::new(&rules, &list(records), |name| name.as_str() == "hidden")
}

#[test]
fn feeds_of_an_origin_are_at_their_publishers_paths_without_keys() {
    let places = places(vec![
        record("a", "https://blog.example/atom.xml"),
        record("own", "https://elsewhere.example/x"),
        record("hidden", "https://blog.example/hidden.xml"),
        record("z", "https://other.example/atom.xml"),
    ]);
    assert_eq!(places.feed_of(&url("https://blog.example/atom.xml")), Some(&name("a")));
    assert_eq!(places.address(&name("a"), None), Some("https://gw.example/blog/atom.xml"));
    assert_eq!(places.feed_at("https://gw.example/blog/atom.xml"), Some(&name("a")));
    assert_eq!(places.feed_at("https://gw.example/own.xml"), Some(&name("own")));
    assert_eq!(places.address(&name("own"), None), Some("https://gw.example/own.xml"));
    // A private feed is nowhere but where its readers find it.
    assert_eq!(places.feed_of(&url("https://blog.example/hidden.xml")), None);
    assert_eq!(places.address(&name("hidden"), None), None);
    assert_eq!(places.address(&name("z"), None), None);
    // It is found in every spelling of its address.
    let places = self::places(vec![record("a", "https://blog.example/%7euser/%61tom.xml")]);
    let spelled = at().upstream("~user/atom%2Exml", None).unwrap();
    assert_eq!(places.feed_of(&spelled), Some(&name("a")));
    // An address with a key is named to nobody: whoever has the address of such a feed has the feed.
    let key = "https://blog.example/premium/k3Jx9QzLw8VtYp2R7mNb4cHd/feed.xml";
    let mut said = record("said", "https://blog.example/letters.xml");
    said.options.secret = Some(true);
    let mut open = record("open", "https://blog.example/a8f3c1d94be27760.xml");
    open.options.secret = Some(false);
    let places = self::places(vec![record("key", key), said, open]);
    for hidden in ["key", "said"] {
        assert_eq!(places.address(&name(hidden), None), None, "{hidden}");
    }
    let here = "https://gw.example/blog/premium/k3Jx9QzLw8VtYp2R7mNb4cHd/feed.xml";
    assert_eq!(places.feed_at(here), None);
    let open = "https://gw.example/blog/a8f3c1d94be27760.xml";
    assert_eq!(places.address(&name("open"), None), Some(open), "the operator says so");
    // It is no new one for who knows it.
    assert_eq!(places.feed_of(&url(key)), Some(&name("key")));
    // Of feeds with one upstream the operator's goes first.
    let upstream = "https://blog.example/atom.xml";
    let asked =
        || FeedRecord::on_demand(name("a"), upstream, "https://blog.example/", Time::from_unix(0));
    let both = self::places(vec![asked(), record("b", upstream)]);
    assert_eq!(both.feed_of(&url(upstream)), Some(&name("b")));
    assert_eq!(both.address(&name("a"), None), None);
    let gone = FeedRecord { standing: FeedStanding::Gone, ..record("b", upstream) };
    let both = self::places(vec![asked(), gone]);
    assert_eq!(both.feed_of(&url(upstream)), Some(&name("a")));
    // The base of a feed at a host has no key.
    let site = site(OriginPlace::Host("blog.gw.example".to_owned()));
    let rules = PlaceRules { sites: vec![site], ..PlaceRules::default() };
    let mut said = record("said", "https://blog.example/a/letters.xml");
    said.options.secret = Some(true);
    let all = [
        record("plain", "https://blog.example/a/atom.xml"),
        record("token", "https://blog.example/a/atom.xml?token=hunter2"),
        said,
    ];
    let places = FeedPlaces::new(&rules, &list(all), |_| false);
    let base = ["plain", "token", "said"].map(|feed| places.base(&name(feed)).unwrap());
    let [path, host] = ["https://blog.gw.example/a/atom.xml", "https://blog.gw.example/"];
    assert_eq!(base, [path, path, host]);
}

#[test]
fn only_admitted_addresses_are_asked() {
    let allow = AllowConfig {
        url: url("https://example.org/feeds/"),
        idle: Duration::from_secs(86_400),
        feeds: 3,
    };
    let settings =
        OriginSettings { sites: vec![at()], allow: vec![allow], ..OriginSettings::default() };
    let origins = Origins::new(&settings, "gw", None);
    let admitted = |text: &str| {
        let found = origins.admitted(&url(text));
        found.map(|(site, url)| (site.feeds, url.to_string()))
    };
    let here = "https://blog.example/atom.xml".to_owned();
    assert_eq!(admitted("https://blog.example/atom.xml"), Some((10, here.clone())));
    assert_eq!(admitted("https://gw.example/blog/atom.xml"), Some((10, here)));
    assert!(admitted("https://example.org/feeds/a").is_some_and(|(feeds, _)| feeds == 3));
    let spelled = "https://example.org/feeds/~a".to_owned();
    let (site, url) = origins.admitted(&url(&spelled)).unwrap();
    assert!(site.is_at("https://example.org/feeds/%7ea", &url) && site.is_at(&spelled, &url));
    assert!(!site.is_at("https://example.org/feeds/%7eb", &url));
    assert_eq!(admitted("https://example.org/feeds/%7e%61"), Some((3, spelled)));
    let others = "https://example.org/ https://example.org/feeds \
                  https://example.org/feeds/..%2fsecret/atom.xml https://example.org/feeds/a/%2E%2e%5Cb \
                  https://blog.example/..%2fatom.xml https://gw.example/blog/..%2fatom.xml \
                  http://example.org/feeds/a https://example.org:8443/feeds/a \
                  https://user@example.org/feeds/a https://example.org.evil.example/feeds/a \
                  https://blog.example:444/ file:///etc/passwd http://127.0.0.1/";
    for other in others.split(' ') {
        assert_eq!(admitted(other), None, "{other}");
    }
}

#[test]
fn what_calls_itself_a_feed_is_shown_as_xml() {
    for (sent, shown) in [
        (Some(Container::Atom.media_type()), Some(ANY_XML)),
        (Some(Container::Rss.media_type()), Some(ANY_XML)),
        (Some(Container::JsonFeed.media_type()), Some("application/feed+json")),
        (Some("text/html"), Some("text/html")),
        (None, None),
    ] {
        let sent = sent.map(|kind| (header::CONTENT_TYPE, HeaderValue::from_static(kind)));
        let mut headers = HeaderMap::from_iter(sent);
        show_as_xml(&mut headers);
        assert_eq!(headers.get(header::CONTENT_TYPE).map(|kind| kind.to_str().unwrap()), shown);
    }
}

#[test]
fn of_two_origins_with_one_address_polls_tell_the_first_ones_name() {
    let place = |host: &str| OriginPlace::Host(host.to_owned());
    let there = "http://127.0.0.1:9000/";
    let of = |place| Arc::new(site_of_config(there, place, "https://gw.example/", false));
    let sites = vec![of(place("a.example")), of(OriginPlace::At("/b/".to_owned()))];
    let rules = PlaceRules { sites: sites.clone(), ..PlaceRules::default() };
    let feed = url("http://127.0.0.1:9000/feed");
    let told: Vec<bool> = sites.iter().map(|site| rules.is_polled_as(site, &feed)).collect();
    assert_eq!(told, [true, false]);
    // A feed at a host is named after its address here.
    let there = url("https://blog.example/atom.xml");
    let named = |site: &Arc<OriginSite>| AdmittedSite::of_origin(site).naming_address(&there);
    let host = site(OriginPlace::Host("blog.gw.example".to_owned()));
    assert_eq!(named(&host), url("https://blog.gw.example/atom.xml"));
    assert_eq!(named(&at()), there);
}

/// Whoever has a /48 of IPv6 has as many networks as it likes.
#[tokio::test(start_paused = true)]
async fn networks_of_a_site_are_one_client_wherever_something_is_shared_out() {
    let site = url("http://a/");
    let (of_site, other) = (network_of_site, client(1));
    // Requests at a site: all of them drip, and none gives way to a newcomer of the same site.
    let slots = SiteSlots::new(16, None);
    let mut held = Vec::new();
    for n in 0..=8 {
        let mut request = http::Extensions::new();
        request.insert(of_site(n));
        held.extend(slots.acquire(&request, false).await.ok());
    }
    assert_eq!(held.len(), 8, "it has its share");
    // Looks at addresses.
    let looks = Looks::new();
    let looked = async |client| looks.acquire_permit((&site, client), Duration::ZERO).await.is_ok();
    let mut count = 0;
    for n in 0..100 {
        count += u32::from(looked(of_site(n)).await);
    }
    assert_eq!((count, looked(other).await), (20, true));
    // New feeds.
    let shares = NewFeedShares::default();
    let made = (0..100).filter(|n| shares.take_share(of_site(*n), 100).is_ok()).count();
    assert_eq!((made, shares.has_share(of_site(100), 100)), (20, false));
    assert!(shares.take_share(other, 100).is_ok());
    // Who asks for feeds.
    let (demand, now) = (FeedDemand::default(), Time::from_unix(0));
    (0..100).for_each(|n| demand.note_client("http://a/junk", of_site(n), now));
    assert_eq!(demand.of("http://a/junk", now).clients, 1);
}
