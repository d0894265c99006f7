use super::super::{AllowPrivate, FetchBlame, FetchError, FetchRequest, FetchSettings, Fetched};
use super::*;
use crate::testing::{Publisher, all_private, fetch, redirect, response, url, whole};
use tidegate_core::model::{FeedName, FeedSource, Time};

fn feed(url: &str) -> FeedRecord {
    FeedRecord::new(FeedName::new("a").unwrap(), url, FeedSource::Api)
}

fn made_by_request(url: &str, site: &str) -> FeedRecord {
    FeedRecord::on_demand(FeedName::new("a").unwrap(), url, site, Time::from_unix(0))
}

const INTRANET: [&str; 3] = ["intranet.example:80", "wiki.intranet.example:80", "127.0.0.1:9000"];

#[test]
fn a_private_host_leads_to_another_one_and_a_public_host_to_none() {
    let only = AllowPrivate::only(INTRANET).unwrap();
    let (own, public) = (feed("http://intranet.example/feed"), feed("http://news.example/feed"));
    let made = made_by_request("http://127.0.0.1:9000/blog/feed", "http://127.0.0.1:9000/blog/");
    for (to, allow, by_own, by_public, by_made) in [
        ("http://wiki.intranet.example/2", &only, true, false, false),
        ("http://127.0.0.1:9000/2", &only, true, false, false),
        ("http://127.0.0.1:9000/blog/2", &only, true, false, true),
        ("https://elsewhere.example/2", &only, true, true, true),
        ("http://news.example/2", &only, true, true, true),
        // It is unknown here what a name resolves to.
        ("http://10.0.0.1/2", &AllowPrivate::All, false, false, false),
        ("http://127.0.0.1:9000/blog/2", &AllowPrivate::All, false, false, true),
    ] {
        let admits = |feed: &FeedRecord| LeadScope::of_feed(feed).admits(&url(to), allow);
        let found = [admits(&own), admits(&public), admits(&made)];
        assert_eq!(found, [by_own, by_public, by_made], "{to}");
    }
    let plain = feed("http://127.0.0.1:8000/feed");
    assert!(LeadScope::of_feed(&plain).admits(&url("http://10.0.0.1/2"), &AllowPrivate::All));
    // A requester who names the address personally needs no permission.
    assert!(LeadScope::default().admits(&url("http://wiki.intranet.example/"), &only));
}

fn led(scope: LeadScope, to: Url, is_secret: bool, is_within: bool) -> LeadScope {
    LedRequest { scope, from: None, to, is_secret, is_within, unknown: None }.into_scope()
}

#[test]
fn no_way_leads_from_a_public_host_back_to_a_private_one() {
    let mut scope = LeadScope::of_feed(&feed("http://intranet.example/feed"));
    let is_own = |at: &Url| at.host_str() == Some("intranet.example");
    // An address may lead to its own place; another port is another place.
    assert!(scope.contains(&url("http://intranet.example/new"), |_| false));
    assert!(!scope.contains(&url("https://intranet.example/new"), |_| false));
    for (to, is_within) in [
        ("https://news.example/", true),
        ("http://intranet.example/secret", false),
        ("http://intranet.example/more", false),
    ] {
        let to = url(to);
        assert_eq!(scope.contains(&to, is_own), is_within, "{to}");
        scope = led(scope, to, false, is_within);
    }
    assert_eq!(scope, LeadScope::Public);
    // A secret address is told by its host alone.
    let mut secret = feed("https://news.example/hidden/feed?a");
    secret.options.secret = Some(true);
    let scope = LeadScope::of_feed(&secret);
    assert_eq!(scope, LeadScope::Places(vec![url("https://news.example")]));
    assert!(scope.contains(&url("https://news.example/sup.json"), |_| false));
    // The same holds after the request.
    assert_eq!(led(scope.clone(), url(&secret.url), true, true), scope);
    let open = LeadScope::Places(vec![url("https://me:pass@news.example/hidden?a")]);
    assert_eq!(format!("{open:?}"), "[\"https://news.example\"]");
}

async fn asked(
    feed: &FeedRecord,
    url: &str,
    allow_private: AllowPrivate,
) -> Result<Fetched, FetchError> {
    ask(whole(url).for_feed(feed, LeadScope::of_feed(feed)), allow_private).await
}

async fn ask(request: FetchRequest, allow_private: AllowPrivate) -> Result<Fetched, FetchError> {
    fetch(FetchSettings { allow_private, ..FetchSettings::default() }, request).await
}

/// Starts a publisher that redirects paths containing `/to/` to the address after it; other paths return a feed.
async fn redirecting() -> Publisher {
    Publisher::start(|head| match head.split(' ').nth(1) {
        Some(path) if path.contains("/to/") => {
            let (_, to) = path.split_once("/to/").unwrap();
            redirect("302 Found", &format!("http://{to}"))
        }
        _ => response("200 OK", "", b"<feed/>"),
    })
    .await
}

#[tokio::test]
async fn a_feed_that_a_request_made_leads_to_its_site_and_not_behind_the_walls() {
    let (site, other) = (redirecting().await, redirecting().await);
    let [site_at, other_at] = [&site, &other].map(|it| format!("127.0.0.1:{}", it.port));
    let lists = || AllowPrivate::only([site_at.as_str(), other_at.as_str()]).unwrap();
    let base = site.url("/sub/");
    for allow in [lists(), AllowPrivate::All] {
        let within = format!("{base}to/{site_at}/sub/feed");
        asked(&made_by_request(&within, &base), &within, allow.clone()).await.unwrap();
        for there in [format!("{other_at}/secret"), format!("{site_at}/admin")] {
            let trap = format!("{base}to/{there}");
            let refused = asked(&made_by_request(&trap, &base), &trap, allow.clone()).await;
            let refused = refused.unwrap_err();
            assert_eq!(refused.blame(), FetchBlame::Upstream);
            let said = format!(
                "a redirect was not followed: {trap} leads to http://{there}, which has a loopback \
                 address; a feed that a request made leads to its site, {base}, and to public addresses \
                 alone; if that is meant, put a feed with this address into the configuration"
            );
            assert_eq!(refused.to_string(), said);
            // A secret address is told by its host alone.
            let mut secret = made_by_request(&trap, &base);
            secret.options.secret = Some(true);
            let refused = asked(&secret, &trap, allow.clone()).await.unwrap_err().to_string();
            let host = there.split('/').next().unwrap();
            let led = format!("{} leads to http://{host}/, which has", site.url("/"));
            assert!(refused.contains(&led) && !refused.contains(&there), "{refused}");
            // The same for a feed that the operator created.
            asked(&feed(&trap), &trap, allow.clone()).await.unwrap();
        }
        // An older document that the feed names.
        let made = made_by_request(&format!("{base}feed"), &base);
        asked(&made, &format!("{base}2"), allow.clone()).await.unwrap();
        let refused = asked(&made, &other.url("/2"), allow).await.unwrap_err();
        assert_eq!(refused.blame(), FetchBlame::Upstream);
        assert!(refused.to_string().starts_with(&format!("{base} leads to ")), "{refused}");
    }
    let heads = other.heads();
    assert!(heads.iter().all(|head| head.starts_with("get /secret ")), "{heads:?}");
    assert_eq!(heads.len(), 2);
}

#[tokio::test]
async fn what_a_public_feed_names_is_asked_for_at_public_addresses_alone() {
    let private = redirecting().await;
    let there = format!("127.0.0.1:{}", private.port);
    for allow in [AllowPrivate::only([there.as_str()]).unwrap(), AllowPrivate::All] {
        for public in ["http://198.51.101.1/feed", "http://name.invalid/feed"] {
            let public = feed(public);
            let refused = asked(&public, &private.url("/2"), allow.clone()).await.unwrap_err();
            let (from, to) = (&public.url, private.url("/2"));
            let said = format!(
                "{from} leads to {to}, which has a loopback address; what is published at a public \
                 address leads to public addresses alone; if that is meant, give the feed an address at \
                 a host that polling.allow_private lists"
            );
            assert_eq!(refused.to_string(), said);
            // The address to which an earlier permanent redirect led.
            let moved = FetchRequest { start: Some(private.url("/3")), ..whole(&public.url) };
            for leads in [LeadScope::Own, LeadScope::of_feed(&public)] {
                let refused = ask(moved.clone().for_feed(&public, leads), allow.clone()).await;
                assert!(matches!(refused, Err(FetchError::Refused { .. })), "{refused:?}");
            }
            // A name is refused because of what it resolves to.
            let by_name = format!("http://localhost:{}/2", private.port);
            let refused = asked(&public, &by_name, allow.clone()).await.unwrap_err();
            assert_eq!(refused.blame(), FetchBlame::Upstream);
            let said = format!("{} leads to {by_name}, which has a loopback address", public.url);
            assert!(refused.to_string().starts_with(&said), "{refused}");
        }
    }
    assert!(private.heads().is_empty());
    // Whoever led to a private address had to be private.
    let private = redirecting().await;
    let asked_by = async |leads: LeadScope, path: &str| {
        fetch(all_private(), FetchRequest { leads, ..whole(&private.url(path)) }).await
    };
    let is_refused =
        |asked: &Result<Fetched, FetchError>| matches!(asked, Err(FetchError::Refused { .. }));
    let (member, public) = (feed(&private.url("/feed")), feed("http://198.51.101.1/feed"));
    let inside = feed("http://127.0.0.1:1/list");
    // The feed's own address, and another one that it names at its own host.
    for path in ["/feed", "/2"] {
        let by = |list: &FeedRecord| LeadScope::of_feed(&member).added_by(list);
        let asked = asked_by(by(&public), path).await;
        assert!(is_refused(&asked), "{path}: {asked:?}");
        asked_by(by(&inside), path).await.unwrap();
    }
    // If the list's name cannot be resolved, it is unknown whether the list is private.
    let lost = LeadScope::of_feed(&member).added_by(&feed("http://lists.invalid/list"));
    let asked = asked_by(lost, "/feed").await;
    assert!(matches!(asked, Err(FetchError::Name { .. })), "{asked:?}");
    // A private list does not extend the scope of a public feed.
    let asked = asked_by(LeadScope::of_feed(&public).added_by(&inside), "/2").await;
    assert!(is_refused(&asked), "{asked:?}");
    assert_eq!(private.heads().len(), 2);
}
