//! What a standby answers, whose database another gateway writes.

use super::*;
use crate::store::{DatabaseOwner, StoreCondition};
use std::sync::atomic::Ordering;

/// A standby of a gateway that lives.
fn standby() -> Site {
    let site = Site::announcing();
    let owner = DatabaseOwner { name: "process 7 elsewhere".to_owned(), is_gone: false };
    *site.store.condition.lock().unwrap() =
        StoreCondition { owner: Some(owner), ..StoreCondition::default() };
    site
}

#[tokio::test]
async fn readers_are_answered_as_by_the_other_gateway() {
    let (first, standby) = (Site::announcing(), standby());
    for path in ["/feeds/news", "/feeds/news/sync", "/sup.json", "/changes", "/feeds/news/items"] {
        let (one, other) = (first.get(path).await, standby.get(path).await);
        assert_eq!((one.status(), other.status()), (StatusCode::OK, StatusCode::OK), "{path}");
        assert_eq!(one.headers().get("etag"), other.headers().get("etag"), "{path}");
    }
    let ready = standby.get("/readyz").await;
    assert_eq!(ready.status(), 200);
    assert_eq!(text(ready).await, "standby: the gateway process 7 elsewhere has the feeds\n");
    assert!(text(standby.get("/").await).await.contains("this gateway is a standby"));
    assert!(text(standby.get("/metrics").await).await.contains("tidegate_standby 1\n"));
    assert!(text(first.get("/metrics").await).await.contains("tidegate_standby 0\n"));
}

#[tokio::test]
async fn whatever_would_change_something_is_for_the_other_gateway() {
    let (site, bearer) = (standby(), format!("Bearer {TOKEN}"));
    let ask = |method, path| site.ask(request(method, path, &[("authorization", &bearer)], ""));
    for (method, path) in [
        ("PUT", "/api/v1/feeds/more"),
        ("DELETE", "/api/v1/feeds/news"),
        ("POST", "/api/v1/feeds/news/poll"),
        ("POST", "/websub"),
        ("POST", "/websub/callback/known"),
        ("GET", "/websub/callback/known?hub.mode=subscribe"),
        ("GET", "/api/v1/export"),
        ("GET", "/api/v1/subscriptions"),
        ("GET", "/api/v1/feeds/news/webhook"),
    ] {
        let answer = ask(method, path).await;
        assert_eq!(header(&answer, "retry-after"), "30", "{method} {path}");
        let said = problem(answer, 503).await["detail"].as_str().unwrap().to_owned();
        assert!(said.contains("the gateway process 7 elsewhere has the feeds"), "{path}: {said}");
    }
    assert_eq!(ask("GET", "/api/v1/feeds").await.status(), 200);
}

#[tokio::test]
async fn a_gateway_that_its_database_does_not_answer_says_so_and_serves_what_it_has() {
    let site = Site::announcing();
    let unanswered = Some(std::time::Duration::from_secs(17));
    *site.store.condition.lock().unwrap() =
        StoreCondition { unanswered, ..StoreCondition::default() };
    let said = problem(site.get("/readyz").await, 503).await["detail"].to_string();
    assert!(said.contains("the database has not answered for 17 seconds"), "{said}");
    assert_eq!(site.get("/feeds/news").await.status(), 200);
}

#[tokio::test]
async fn nothing_old_is_answered_while_the_database_is_not_seen() {
    let site = standby();
    assert_eq!(site.get("/feeds/news").await.status(), 200);
    site.store.is_unseen.store(true, Ordering::Release);
    for path in ["/feeds/news", "/sup.json", "/changes", "/readyz", "/", "/nowhere"] {
        let answer = site.get(path).await;
        assert_eq!(header(&answer, "retry-after"), "30", "{path}");
        let said = problem(answer, 503).await["detail"].as_str().unwrap().to_owned();
        assert!(said.contains("has not seen its database for 6 seconds"), "{path}: {said}");
    }
    for path in ["/healthz", "/metrics"] {
        assert_eq!(site.get(path).await.status(), 200, "{path}");
    }
    site.store.is_unseen.store(false, Ordering::Release);
    assert_eq!(site.get("/feeds/news").await.status(), 200);
}
