//! Pages for people and for machines that watch.

use super::super::{answers, explain};
use super::doubles::{hub_report, id, status};
use super::*;
use tidegate_core::model::{FeedName, FeedStanding};
use tidegate_judge::record::LeftOut;
use tidegate_status::{FeedStatus, GatherNote, HubNote, PollEnding, PollStatus, SourceTrouble};
use tidegate_store::StoreStop;

#[test]
fn what_is_not_polled_is_not_said_to_be() {
    let mut status = status("news");
    status.polling.polls.clear();
    status.pending_absences = 0;
    status.polling.document = None;
    assert_eq!(explain::why(&status, None), "it has not been polled since the start");
    status.polled_by = Some("there".to_owned());
    assert_eq!(explain::why(&status, None), "the gateway there polls it");
    status.polling.stored_error = Some("it answered 503".to_owned());
    let said = explain::why(&status, None);
    assert!(
        said.starts_with("the last poll failed") && said.ends_with("it answered 503"),
        "{said}"
    );
    (status.polled_by, status.polling.stored_error) = (None, None);
    let mut unread = doubles::status("new");
    (unread.pending_absences, unread.polling.document) = (0, None);
    let said = explain::why(&unread, None);
    assert!(
        said.starts_with("the last poll failed, and the feed was never read, so nothing"),
        "{said}"
    );
    let mut read = unread.clone();
    read.polling.polls[0].outcome = PollEnding::NotModified;
    let said = explain::why(&read, None);
    let expected = "its polls fail, and what the site answers its readers is read instead: for an \
                    unknown reason; the publisher says that nothing has changed (304)";
    assert!(said.starts_with(expected), "{said}");
    status.options.sharing.local = true;
    assert_eq!(
        explain::why(&status, None),
        "its items are made here; it has not been polled since the start"
    );
    assert_eq!(feed_json(&status)["url"], status.url);
    status.url = String::new();
    assert_eq!(explain::why(&status, None), "its items are made here");
    assert_eq!(feed_json(&status)["url"], serde_json::Value::Null);
    let sources = |count| (0..count).map(|n| FeedName::new(&format!("s{n}")).unwrap()).collect();
    status.options.sharing.local = false;
    status.options.sharing.sources = sources(2);
    assert_eq!(explain::why(&status, None), "it gathers s0, s1");
    status.options.sharing.sources = sources(10);
    let said = explain::why(&status, None);
    assert_eq!(said, "it gathers s0, s1, s2, s3, s4, s5, s6, s7 and 2 more");
}

fn feed_json(status: &FeedStatus) -> serde_json::Value {
    answers::value(&answers::FeedAnswer::new(status.clone(), None, None, false, at(0)))
}

/// What is told of hubs and walks holds no more of a secret address than is shown elsewhere.
#[test]
fn the_topic_of_a_hub_and_the_next_document_of_a_walk_are_masked() {
    let mut status = status("news");
    let mut report = hub_report("https://upstream.example/feed?token=4fJ9xQ2mLp7Rk1Zt");
    status.hub = Some(HubNote::new(&report, at(0), None));
    let told = feed_json(&status);
    assert_eq!(told["hub"]["topic"], "https://upstream.example/feed?***");
    assert_eq!(told["hub"]["others"][0], "https://hub.example/?***");
    // What looks like none is one where the operator says so, and only then.
    let plain = "https://upstream.example/feed?page=3";
    plain.clone_into(&mut report.subscription.topic);
    status.polling.backfill.as_mut().unwrap().next = Some(plain.to_owned());
    for (secret, shown) in [(None, plain), (Some(true), "https://upstream.example/feed?***")] {
        status.options.secret = secret;
        status.hub = Some(HubNote::new(&report, at(0), secret));
        let told = feed_json(&status);
        assert_eq!(
            (&told["hub"]["topic"], &told["backfill"]["next"]),
            (&shown.into(), &shown.into())
        );
    }
}

/// An aggregate of three feeds, of which two bring nothing, and one item is another's.
fn aggregate() -> FeedStatus {
    let name = |text: &str| FeedName::new(text).unwrap();
    let mut status = status("news");
    status.url = String::new();
    status.polling.polls.clear();
    (status.polling.failures, status.held) = (0, None);
    status.options.sharing.sources = ["a", "b", "c"].map(name).to_vec();
    status.gathered = Some(GatherNote {
        troubles: vec![
            SourceTrouble { source: name("a"), why: "its polls fail: <tt>404</tt>".to_owned() },
            SourceTrouble { source: name("c"), why: "it is paused".to_owned() },
        ],
        troubled: 2,
        left_out: vec![LeftOut {
            source: name("b"),
            id: id("x.1"),
            why: "the item <s>x.1</s> is another's".to_owned(),
        }],
        error: Some("the disk is <q>full</q>".to_owned()),
    });
    status
}

#[test]
fn what_an_aggregate_does_not_have_is_a_reason() {
    let mut status = aggregate();
    status.pending_absences = 0;
    status.polling.document = None;
    assert_eq!(
        explain::why(&status, None),
        "it gathers a, b, c; it could not be brought up to date: the disk is <q>full</q>; nothing \
         new comes from a: its polls fail: <tt>404</tt>; nor from 1 more; one item is not taken over \
         as its source has it"
    );
    let told = &serde_json::to_value(&status).unwrap()["gathered"];
    assert_eq!(told["troubles"][1]["source"], "c");
    assert_eq!(told["troubled_sources"], 2);
    assert_eq!(told["left_out"][0]["sync_id"], "x.1");
    assert_eq!(told["error"], "the disk is <q>full</q>");
    status.gathered = Some(GatherNote::default());
    assert_eq!(explain::why(&status, None), "it gathers a, b, c");
}

/// What attributes of a page name.
fn named<'p>(page: &'p str, attribute: &str) -> Vec<&'p str> {
    let pieces = page.split(attribute).skip(1);
    pieces.filter_map(|piece| piece.split('"').next()).collect()
}

/// As a proxy asks that serves the gateway at `/gate` and takes that off.
#[tokio::test]
async fn every_link_of_a_page_leads_below_the_path_of_the_public_address() {
    let public_url = "https://feeds.example.org/gate/".to_owned();
    let site = Site::with(TestStore::with_news(), ServeSettings { public_url, ..settings() });
    let mut waiting = vec!["/".to_owned()];
    let mut seen = std::collections::BTreeSet::new();
    while let Some(path) = waiting.pop() {
        if !seen.insert(path.clone()) || seen.len() > 200 {
            continue;
        }
        let answer = site.get(&path).await;
        assert_ne!(answer.status(), StatusCode::NOT_FOUND, "{path}");
        let is_page = header(&answer, "content-type").starts_with("text/html");
        let page = text(answer).await;
        let links = if is_page { named(&page, "href=\"") } else { Vec::new() };
        for link in
            links.into_iter().chain(named(&page, "action=\"").into_iter().filter(|_| is_page))
        {
            let link = link.replace("&amp;", "&");
            if link.starts_with('#') || link.starts_with("https://") {
                continue;
            }
            let below = link.strip_prefix("/gate/");
            let below = below.unwrap_or_else(|| panic!("{path} leads to {link}"));
            waiting.push(format!("/{}", below.split('#').next().unwrap()));
        }
    }
    for expected in
        ["/feeds/news/about", "/feeds/news/conflicts", "/subscriptions.opml", "/assets/icon.svg"]
    {
        assert!(seen.contains(expected), "{seen:?}");
    }
    // What documents name is absolute, and has the path as well.
    let answer = site.get("/feeds/news").await;
    assert!(text(answer).await.contains("https://feeds.example.org/gate/feeds/news/complete"));
}

/// The key to a private feed is in its address.
#[tokio::test]
async fn a_secret_address_is_on_no_page_and_in_no_document() {
    let url = "https://up.example/p/feed?token=hunter2".to_owned();
    let store = TestStore::with_news();
    store.edit_record("news", |record| record.url.clone_from(&url));
    let site = Site::over(store);
    for path in [
        "/",
        "/feeds/news",
        "/feeds/news/sync",
        "/feeds/news/about",
        "/subscriptions.opml?upstream=1",
    ] {
        let page = text(site.get(path).await).await;
        assert!(!page.contains("hunter2"), "{path}: {page}");
    }
    let page = text(site.get("/").await).await;
    assert!(page.contains("https://up.example/p/feed?***"), "{page}");
    assert!(!text(site.get("/subscriptions.opml?upstream=1").await).await.contains("***"));
    // References lead where they led, and the operator may know.
    assert!(
        text(site.get("/feeds/news").await).await.contains("upstream https://up.example/p/feed\n")
    );
    let told = json(site.call("GET", "/feeds/news", "").await).await;
    assert_eq!(told["url"], "https://up.example/p/feed?token=hunter2");
}

#[tokio::test]
async fn the_address_that_a_hub_knows_is_masked_where_the_feed_is_secret() {
    for (option, shown) in [(None, true), (Some(false), true), (Some(true), false)] {
        let site = Site::new();
        site.store.edit_record("news", |record| record.options.secret = option);
        let hub = Some(hub_report("https://upstream.example/letters/marion"));
        let record = doubles::record("news", FeedStanding::Active);
        site.polling.tell(&record, PollStatus { hub, ..PollStatus::default() });
        let page = text(site.get("/feeds/news/about").await).await;
        assert!(page.contains("the hub knows the feed as https://upstream.example/"), "{page}");
        assert_eq!(page.contains("/letters/marion"), shown, "{page}");
    }
}

#[tokio::test]
async fn what_pages_are_made_of_can_be_kept() {
    let site = Site::new();
    for (path, kind) in [
        ("/favicon.ico", "image/svg+xml"),
        ("/assets/icon.svg", "image/svg+xml"),
        ("/assets/style.css", "text/css; charset=utf-8"),
    ] {
        let answer = site.get(path).await;
        assert_eq!(header(&answer, "content-type"), kind, "{path}");
        assert!(header(&answer, "content-security-policy").contains("img-src 'self'"));
        let etag = header(&answer, "etag").to_owned();
        assert_eq!(site.get_with(path, &[("if-none-match", &etag)]).await.status(), 304, "{path}");
    }
}

#[tokio::test]
async fn what_is_not_there_is_a_problem() {
    let site = Site::new();
    for unknown in ["nothing", "%20", "%00", "a%0ab", "..%2f..%2fa", "%3Cscript%3E"] {
        problem(site.get(&format!("/feeds/news/items/{unknown}")).await, 404).await;
        problem(site.call("GET", &format!("/feeds/news/items/{unknown}"), "").await, 404).await;
    }
    for (path, status) in
        [("/feeds/nobody/about", 404), ("/feeds/dead/about", 410), ("/websub", 405)]
    {
        problem(site.get(path).await, status).await;
    }
    // There is no hub.
    problem(site.ask(request("POST", "/websub", &[], "hub.mode=subscribe")).await, 404).await;
    problem(site.call("GET", "/subscriptions", "").await, 404).await;
}

#[tokio::test]
async fn subscriptions_lead_here_and_not_upstream() {
    let opml = text(Site::new().get("/subscriptions.opml").await).await;
    for name in ["news", "radio", "new", "still"] {
        assert!(opml.contains(&format!("xmlUrl=\"https://feeds.example.org/feeds/{name}\"")));
    }
    assert!(!opml.contains("dead") && !opml.contains("secret"));
    assert!(opml.contains("htmlUrl=\"https://upstream.example/?a=1&amp;b=2\""));
    assert_eq!(opml.matches("<outline").count(), 4);
}

#[tokio::test]
async fn life_and_readiness_are_two_things() {
    let (ending, broken) = (Site::new(), Site::new());
    assert_eq!(ending.get("/readyz").await.status(), 200);
    ending.closing.cancel();
    let (cause, since) = ("no disk".to_owned(), at(0));
    let stop = StoreStop { cause, since, next_try: Some(since), failed_tries: 0 };
    broken.store.set_stop(Some(stop));
    let said = problem(ending.get("/readyz").await, 503).await;
    assert!(said["detail"].as_str().unwrap().contains("shutting down"));
    problem(broken.get("/readyz").await, 503).await;
    assert_eq!(broken.get("/healthz").await.status(), 200);
    assert_eq!(ending.get("/healthz").await.status(), 200);
}
