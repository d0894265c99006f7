//! `/subscribe`: the feeds of a site that is admitted, by whatever address leads to them.

use crate::origins::{Front, Site, TOKEN};
use reqwest::{RequestBuilder, StatusCode};
use serde_json::Value;
use std::time::Duration;
use tokio::time::Instant;

/// What is said of one feed.
async fn feed_of(request: RequestBuilder) -> Value {
    let answer = request.send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    let said: Value = serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap();
    assert_eq!(said["feeds"].as_array().unwrap().len(), 1, "{said}");
    said["feeds"][0].clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_address_leads_to_a_feed_it_is_one() {
    let site = Site::start().await;
    let allow = format!("[[allow]]\nurl = \"{}\"\nfeeds = 5\n", site.url);
    let front = Front::start(&allow, None).await;
    let at = format!("http://{}/subscribe", front.gateway.address());
    let look =
        |url: &str| front.client.get(reqwest::Url::parse_with_params(&at, [("url", url)]).unwrap());
    let subscribe = |url: &str| {
        let form =
            url::form_urlencoded::Serializer::new(String::new()).append_pair("url", url).finish();
        let kind = "application/x-www-form-urlencoded";
        front.client.post(&at).header("content-type", kind).body(form)
    };
    let there = |path: &str| format!("{}{path}", site.url);
    // A page that never ends names it in its head.
    let begun = Instant::now();
    assert_eq!(feed_of(look(&there("endless"))).await["url"], there("atom.xml").as_str());
    assert!(begun.elapsed() < Duration::from_secs(4), "its end was waited for");
    let made = feed_of(subscribe(&there("endless"))).await;
    let (address, title) = (made["address"].as_str().unwrap(), made["title"].as_str().unwrap());
    assert!(!address.is_empty() && !title.is_empty() && !address.ends_with(title), "{made}");
    let without_scheme = there("atom.xml").replace("http://", "");
    for typed in [
        there("atom.xml"),
        there("atom.xml#second"),
        there("moved.xml"),
        there("today.xml"),
        without_scheme,
    ] {
        for request in [look(&typed), subscribe(&typed)] {
            assert_eq!(feed_of(request).await, made, "{typed}");
        }
    }
    assert_eq!(front.feeds().await.into_keys().collect::<Vec<_>>(), [there("atom.xml")]);
    // What moved for good is polled where it is now.
    feed_of(subscribe(&there("moved-slow.xml"))).await;
    assert!(front.feeds().await.contains_key(&there("slow.xml")));
    front.gateway.stop().await;
}

/// The operator admits a site, and not what else the gateway can reach.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_feed_of_an_admitted_site_leads_to_no_other_host_of_the_operator() {
    let (site, other) = (Site::start().await, Site::start().await);
    let front =
        Front::start(&format!("[[allow]]\nurl = \"{}\"\nfeeds = 5\n", site.url), None).await;
    let trap = format!("{}trap/{}atom.xml", site.url, other.url.replace("http://", ""));
    let at = format!("http://{}/subscribe", front.gateway.address());
    let form =
        url::form_urlencoded::Serializer::new(String::new()).append_pair("url", &trap).finish();
    let kind = "application/x-www-form-urlencoded";
    let asked =
        front.client.post(&at).header("content-type", kind).body(form).send().await.unwrap();
    // What the look found is the site's own, and may be published; what polls are led to is not.
    assert_ne!(asked.status(), StatusCode::FORBIDDEN);
    let name = front.feeds().await[&trap].clone();
    let api = format!("http://{}/api/v1/feeds/{name}", front.gateway.address());
    let poll = front.client.post(format!("{api}/poll")).bearer_auth(TOKEN);
    let said = poll.send().await.unwrap().text().await.unwrap();
    for part in ["a redirect was not followed", trap.as_str(), "leads to its site"] {
        assert!(said.contains(part), "{part} is not in {said}");
    }
    assert!(other.asked.lock().unwrap().is_empty(), "the other host was asked");
    front.gateway.stop().await;
}
