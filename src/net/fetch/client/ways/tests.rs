use crate::fetch::{FetchError, FetchRequest, FetchSettings, LeadScope, Services, services};
use crate::origin::{OriginPlace, OriginSite, PassRequest};
use crate::testing::{
    self, Publisher, all_private, our_ca, page, redirect, response, site_of_config, whole,
};
use std::sync::Arc;
use tower::ServiceExt as _;
use url::Url;

fn site(url: &str, sends_host: bool) -> OriginSite {
    let host = OriginPlace::Host("blog.example".to_owned());
    site_of_config(url, host, "https://gw.example/", sends_host)
}

fn in_front_of(site: &OriginSite) -> Services {
    let sites = vec![Arc::new(site.clone())];
    services(FetchSettings { ca_file: Some(our_ca()), sites, ..all_private() }).unwrap()
}

/// Builds a passed request with the site's public name, as the gateway's own search for a feed sends.
fn passed(site: &OriginSite, url: &str) -> PassRequest {
    let mut request = testing::passed(url);
    site.public_name().unwrap().write(&mut request.headers);
    request
}

const NAMES: [&str; 3] = [
    "x-forwarded-host: blog.example\r\n",
    "x-forwarded-proto: https\r\n",
    "forwarded: host=blog.example;proto=https\r\n",
];

#[tokio::test]
async fn polls_and_looks_tell_a_site_the_name_that_passed_requests_do() {
    let publisher = Publisher::start(|_| response("200 OK", "", b"<feed/>")).await;
    let site = site(&publisher.url("/site/"), false);
    let services = in_front_of(&site);
    let url = publisher.url("/site/feed");
    services.fetch.clone().oneshot(whole(&url)).await.unwrap();
    services.call.clone().oneshot(page(&url)).await.unwrap();
    (services.passing.pass)(passed(&site, &url)).await.unwrap();
    // Other hosts are told no public name.
    services.fetch.clone().oneshot(whole(&publisher.url("/feed"))).await.unwrap();
    let mut heads = publisher.heads();
    let outside = heads.pop().unwrap();
    assert!(!outside.contains("forwarded"), "{outside}");
    assert_eq!(heads.len(), 3);
    let own = format!("host: 127.0.0.1:{}\r\n", publisher.port);
    for head in heads {
        for line in NAMES.into_iter().chain([own.as_str()]) {
            assert!(head.contains(line), "{line} is not in {head}");
        }
        assert!(!head.contains("for=") && !head.contains("x-forwarded-for"), "{head}");
    }
}

#[tokio::test]
async fn redirects_to_the_public_name_of_a_site_stay_at_the_site() {
    let publisher = Publisher::start(|head| {
        if head.starts_with("GET /old ") {
            return redirect("301 Moved Permanently", "https://blog.example/new?a");
        }
        response("200 OK", "", b"<feed/>")
    })
    .await;
    let services = in_front_of(&site(&publisher.url("/"), false));
    let new = publisher.url("/new?a");
    let fetched = services.fetch.clone().oneshot(whole(&publisher.url("/old"))).await.unwrap();
    assert_eq!((&fetched.final_url, fetched.moved_to.as_ref()), (&new, Some(&new)));
    let asked = services.call.clone().oneshot(page(&publisher.url("/old"))).await.unwrap();
    assert_eq!(asked.location.map(String::from), Some(new));
    // An older document that the site names by its public name.
    let fetched = services.fetch.clone().oneshot(whole("https://blog.example/2")).await.unwrap();
    assert_eq!(fetched.final_url, publisher.url("/2"));
}

/// Also for a list at a public address, which may lead to no other private address.
#[tokio::test]
async fn who_may_lead_to_a_site_is_led_on_within_it_and_no_further() {
    let other = Publisher::start(|_| response("200 OK", "", b"<feed/>")).await;
    let out = other.url("/");
    let publisher = Publisher::start(move |head| match head.split(' ').nth(1) {
        Some("/feed") => redirect("301 Moved Permanently", "https://blog.example/feed/"),
        Some("/out") => redirect("302 Found", &out),
        _ => response("200 OK", "", b"<feed/>"),
    })
    .await;
    let services = in_front_of(&site(&publisher.url("/"), false));
    let fetch = |url: &str, start: Option<String>| {
        let leads = LeadScope::Places(vec![Url::parse("http://198.51.101.1/list").unwrap()]);
        services.fetch.clone().oneshot(FetchRequest { leads, start, ..whole(url) })
    };
    let there = publisher.url("/feed/");
    for start in [None, Some(there.clone())] {
        let fetched = fetch("https://blog.example/feed", start).await.unwrap();
        assert_eq!(fetched.moved_to.as_ref(), Some(&there));
    }
    for (url, start) in [
        ("https://blog.example/out", None),
        ("https://blog.example/feed", Some(other.url("/"))),
        // Only its public address gives what everybody gets.
        (there.as_str(), None),
    ] {
        let refused = fetch(url, start).await;
        assert!(matches!(refused, Err(FetchError::Refused { .. })), "{url}: {refused:?}");
    }
    assert!(other.heads().is_empty());
}

#[tokio::test]
async fn a_host_of_its_own_goes_over_http_1_to_a_server_proved_by_its_address() {
    // It prefers HTTP/2.
    let (protocols, feed) = ([b"h2".as_slice(), b"http/1.1"], response("200 OK", "", b"<feed/>"));
    let publisher = Publisher::start_tls(&protocols, move |_| feed.clone()).await;
    let base = format!("https://localhost:{}/", publisher.port);
    let url = format!("{base}feed");
    let site = site(&base, true);
    let services = in_front_of(&site);
    services.fetch.clone().oneshot(whole(&url)).await.unwrap();
    services.call.clone().oneshot(page(&url)).await.unwrap();
    (services.passing.pass)(passed(&site, &url)).await.unwrap();
    let told = publisher.heads();
    assert_eq!(told.len(), 3);
    for head in told {
        assert!(head.starts_with("get /feed http/1.1\r\n"), "{head}");
        assert!(head.contains("\r\nhost: blog.example\r\n"), "{head}");
    }
    // Otherwise HTTP/2 is chosen.
    let plain = in_front_of(&self::site(&base, false));
    let _ = plain.fetch.clone().oneshot(whole(&url)).await;
    let head = publisher.heads().remove(3);
    assert!(head.starts_with("pri * http/2"), "{head}");
}
