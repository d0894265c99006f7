use super::*;
use tidegate_core::sup::{SupDocument, read};
use tokio::task::JoinHandle;

async fn document(site: &Site, path: &str) -> SupDocument {
    let answer = site.get(path).await;
    assert_eq!(answer.status(), 200);
    read(&bytes(answer).await).unwrap()
}

fn ids(site: &Site, document: &SupDocument) -> Vec<String> {
    let names = ["news", "other", "third"].map(doubles::name);
    let of = |id: &tidegate_core::model::SupId| {
        names.iter().find(|feed| site.app.site.sup_id(feed).unwrap() == *id).unwrap().to_string()
    };
    document.updates.iter().map(|update| of(&update.id)).collect()
}

/// Checks which feeds a document lists, and gives it.
async fn lists(site: &Site, path: &str, feeds: &[&str]) -> SupDocument {
    let document = document(site, path).await;
    assert_eq!(ids(site, &document), feeds, "{path}");
    document
}

/// Follows the log until the site is closed.
fn keep_following(site: &Site) -> JoinHandle<()> {
    let app = site.app.clone();
    tokio::spawn(async move { app.keep_following().await })
}

#[tokio::test]
async fn a_document_says_what_changed_and_where_the_others_are() {
    let site = Site::announcing();
    site.store.announce(-3000, &["third"]);
    site.store.announce(-5, &["news", "other"]);
    site.store.announce(-2, &["news"]);
    let answer = site.get("/sup.json").await;
    assert_eq!(header(&answer, "content-type"), "application/json");
    assert_eq!(header(&answer, "cache-control"), "public, max-age=1");
    let usual = read(&bytes(answer).await).unwrap();
    assert_eq!((usual.period, usual.updated), (60, at(-1)));
    // `third` changed long ago, but may not have been readable before the next epoch was closed.
    assert_eq!(ids(&site, &usual), ["news", "other", "third"]);
    assert_eq!(&*usual.updates[0].update, "2026-11-20T16-20-03Z");
    let longer = usual.available[&3600].strip_prefix("https://feeds.example.org").unwrap();
    let other = document(&site, longer).await;
    assert_eq!((other.period, other.available), (3600, usual.available));
    assert_eq!(document(&site, "/sup.json?x=1&seconds=300").await.period, 300);
    problem(Site::new().get("/sup.json").await, 404).await;
    // Who asks may have asked another gateway before, whose clock is not the one of this gateway.
    let all = ["news", "other", "third"];
    for (gateways, listed) in [(0, &all[..2]), (1, &all)] {
        let site = Site::sharing();
        site.store.confirm(vec![KnownGateway::default(); gateways]);
        site.store.announce(-80, &["third"]);
        site.store.announce(-79, &["other"]);
        site.store.announce(-1, &["news"]);
        assert_eq!(lists(&site, "/sup.json", listed).await.since, at(-77));
    }
    // A log whose old end is gone, and one that is long, are read whole.
    let site = Site::announcing();
    for _ in 0..700 {
        site.store.announce(-100, &["third"]);
    }
    site.store.announce(-90, &["other"]);
    site.store.announce(-1, &["news"]);
    site.store.trim_to(30);
    // Of `third` and `other` the time is known, since epochs followed.
    lists(&site, "/sup.json", &["news", "other"]).await;
    lists(&site, "/sup.json?seconds=300", &["news", "other", "third"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_change_is_listed_within_a_second_and_one_build_serves_all() {
    let site = Site::announcing();
    site.store.announce(-2, &["news"]);
    lists(&site, "/sup.json", &["news"]).await;
    let reads = site.store.reads_of("log");
    site.store.announce(0, &["other"]);
    // Within a second of the last build its document is good enough.
    lists(&site, "/sup.json", &["news"]).await;
    tokio::time::advance(Duration::from_secs(1)).await;
    let all = futures_util::future::join_all((0..20).map(|_| site.get("/sup.json"))).await;
    for answer in all {
        assert_eq!(ids(&site, &read(&bytes(answer).await).unwrap()), ["other", "news"]);
    }
    assert_eq!(site.store.reads_of("log"), reads + 1);
    // While nothing changes a document stands until its time is old.
    let site = Site::announcing();
    site.store.announce(-2, &["news"]);
    let tag = |answer: &Response<Body>| header(answer, "etag").to_owned();
    let first = tag(&site.get("/sup.json").await);
    for (seconds, same) in [(2, true), (3, false)] {
        tokio::time::advance(Duration::from_secs(5)).await;
        site.clock.set(at(seconds));
        assert_eq!(tag(&site.get("/sup.json").await) == first, same, "after {seconds} s");
    }
    site.clock.set(at(200));
    tokio::time::advance(Duration::from_secs(5)).await;
    let later = document(&site, "/sup.json").await;
    assert_eq!((later.updated, later.updates.len()), (at(199), 0));
    // The log is read before the next request.
    let site = Site::announcing();
    site.store.announce(-2, &["news"]);
    document(&site, "/sup.json").await;
    let keeping = keep_following(&site);
    tokio::time::sleep(Duration::from_secs(2)).await;
    site.store.announce(0, &["other"]);
    tokio::time::sleep(Duration::from_secs(2)).await;
    let reads = site.store.reads_of("log");
    lists(&site, "/sup.json", &["other", "news"]).await;
    assert_eq!(site.store.reads_of("log"), reads, "it was there already");
    site.closing.cancel();
    keeping.await.unwrap();
    // Where another gateway writes, a document goes as far as was looked there.
    let site = Site::announcing();
    site.store.announce(-2, &["news"]);
    let elsewhere = |store: &TestStore| {
        store.announce(-1, &["other"]);
    };
    site.store.finds(elsewhere);
    lists(&site, "/sup.json", &["other", "news"]).await;
    let keeping = keep_following(&site);
    site.store.set_unseen(true);
    site.clock.set(at(200));
    tokio::time::sleep(Duration::from_secs(100)).await;
    problem(site.get("/sup.json").await, 503).await;
    site.store.announce(100, &["news"]);
    site.store.set_unseen(false);
    assert_eq!(lists(&site, "/sup.json", &["news"]).await.updated, at(199));
    site.closing.cancel();
    keeping.await.unwrap();
}
