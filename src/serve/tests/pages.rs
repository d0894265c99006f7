//! Pages for people and for machines that watch.

use super::super::{answers, explain};
use super::doubles::{hub_report, id, status};
use super::*;
use tidegate_core::model::{FeedName, ShownAddress};
use tidegate_judge::record::LeftOut;
use tidegate_status::{FeedStatus, GatherNote, HubNote, PollEnding, SourceTrouble};
use tidegate_store::testing::StoreFault;

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
    answers::value(&answers::FeedAnswer::new(status.clone(), None, None, Some(0), false, at(0)))
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

#[tokio::test]
async fn pages_tell_what_an_aggregate_does_not_have_and_escape_it() {
    let site = Site::new();
    site.store.edit_record("news", |record| record.options = aggregate().options);
    *site.operator.said.lock().unwrap() = Some(aggregate());
    let page = text(site.get("/").await).await;
    for shown in [
        "it could not be brought up to date: the disk is &lt;q&gt;full&lt;/q&gt;; nothing new comes from a",
        "href=\"/feeds/news/about#sources\">incomplete</a>",
        "one item is not taken over as its source has it",
    ] {
        assert!(page.contains(shown), "no {shown:?} in {page}");
    }
    let page = text(site.get("/feeds/news/about").await).await;
    for shown in [
        "which is tried again: the disk is &lt;q&gt;full&lt;/q&gt;.",
        "<a href=\"/feeds/a/about\">a</a>: its polls fail: &lt;tt&gt;404&lt;/tt&gt;.",
        "href=\"/feeds/b/items/x.1\"",
        "the item &lt;s&gt;x.1&lt;/s&gt; is another's.",
    ] {
        assert!(page.contains(shown), "no {shown:?} in {page}");
    }
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

#[tokio::test]
async fn there_is_an_icon() {
    let site = Site::new();
    for path in ["/favicon.ico", "/assets/icon.svg"] {
        let answer = site.get(path).await;
        assert_eq!(header(&answer, "content-type"), "image/svg+xml", "{path}");
        assert!(header(&answer, "content-security-policy").contains("img-src 'self'"));
    }
    let page = text(site.get("/").await).await;
    assert!(page.contains("<link rel=\"icon\" type=\"image/svg+xml\" href=\"/assets/icon.svg\">"));
    // One form of time on a page.
    assert!(!page.contains("<time>"), "{page}");
}

/// The key to a private feed is in its address.
#[tokio::test]
async fn a_secret_address_is_on_no_page_and_in_no_document() {
    let url = "https://up.example/p/feed?token=hunter2".to_owned();
    let store = TestStore::with_news();
    store.edit_record("news", |record| record.url.clone_from(&url));
    let site = Site::over(store);
    let mut said = status("news");
    said.url = url;
    *site.operator.said.lock().unwrap() = Some(said);
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
async fn the_dashboard_tells_what_happens_and_escapes_it() {
    let site = Site::new();
    site.store.edit("news", |feed| {
        feed.state.hold = Some(doubles::hold("<u>empty</u>"));
    });
    let answer = site.get("/").await;
    assert_eq!(header(&answer, "content-type"), "text/html; charset=utf-8");
    let page = text(answer).await;
    for shown in [
        "href=\"/feeds/news/sync\"",
        "<strong>1</strong><span>failing</span>",
        "failing</span><span class=\"quiet\"> 3 in a row",
        "href=\"/feeds/news/about#held\">held</a>",
        "&lt;u&gt;empty&lt;/u&gt;",
        "items may have been missed",
        "&lt;script&gt;alert('upstream')&lt;/script&gt;",
        "href=\"/feeds/news/about\"",
        "next <time datetime=",
        ">in 5 min</time>",
        "moved to https://elsewhere.example/",
        "its hub is not believed",
        &at(-10).to_string(),
    ] {
        assert!(page.contains(shown), "no {shown:?} in {page}");
    }
    for never in ["<script", "<u>", "secret", "style=", "javascript:"] {
        assert!(!page.contains(never), "{never:?} in {page}");
    }
}

#[tokio::test]
async fn the_page_about_a_feed_tells_the_reasons_and_escapes_them() {
    let site = Site::new();
    site.store.edit("news", |feed| feed.state.hold = Some(doubles::hold("<u>empty</u>")));
    let answer = site.get("/feeds/news/about").await;
    assert_eq!(header(&answer, "content-type"), "text/html; charset=utf-8");
    assert!(header(&answer, "content-security-policy").contains("default-src"));
    let page = text(answer).await;
    for shown in [
        "the last poll failed",
        "failing, 3 in a row</span> since <time datetime=",
        "href=\"/feeds/news/about#held\">held</a>",
        "<strong>A document is held: </strong>&lt;u&gt;empty&lt;/u&gt;.",
        "<td>gone from the middle</td>",
        "Missing, to be confirmed",
        "href=\"/feeds/news/items/a\"",
        "&lt;u&gt;A&lt;/u&gt;",
        "urn:&lt;s&gt;a&lt;/s&gt;",
        "gone while &lt;tt&gt;older&lt;/tt&gt; items stay; seen twice since",
        "it is deleted if it is so at",
        "its own address answered &lt;samp&gt;404&lt;/samp&gt;",
        "https://example.org/&lt;kbd&gt;a&lt;/kbd&gt; is gone (404)",
        "17 items taken in, 0 known already: walking, it answered &lt;dfn&gt;503&lt;/dfn&gt;.",
        "The next one is https://upstream.example/?page=3.",
        "too little was seen to say anything",
        "it changed in counters at",
        "it breaks off &lt;b&gt;here&lt;/b&gt;",
        "at byte 7: &lt;q&gt;odd&lt;/q&gt;",
        "&lt;em&gt;an odd redirect&lt;/em&gt;",
        "a hole that stayed",
        "https://hub.example/?&lt;i&gt;: the hub delivers: &lt;code&gt;no&lt;/code&gt;.",
        "Pushes: 7, the last at",
        "Pushes that were not believed since the start: 2, the last at",
        "the &lt;cite&gt;signature&lt;/cite&gt;",
        "the feed's ttl",
        "3 kept: 2 current, 1 missing, 0 retired; 1 tombstone",
        "4, 241 bytes",
    ] {
        assert!(page.contains(shown), "no {shown:?} in {page}");
    }
    for never in [
        "<script",
        "<u>",
        "<s>",
        "<tt>",
        "<q>",
        "<em>",
        "<kbd>",
        "<samp>",
        "<dfn>",
        "<code>no",
        "<cite>",
        "?<b>",
        "secret",
        "style=",
        "javascript:",
    ] {
        assert!(!page.contains(never), "{never:?} in {page}");
    }
    problem(Site::new().get("/feeds/nobody/about").await, 404).await;
    problem(Site::new().get("/feeds/dead/about").await, 410).await;
}

#[tokio::test]
async fn the_style_sheet_is_there_and_can_be_kept() {
    let site = Site::new();
    let answer = site.get("/assets/style.css").await;
    assert_eq!(header(&answer, "content-type"), "text/css; charset=utf-8");
    let etag = header(&answer, "etag").to_owned();
    let again = site.get_with("/assets/style.css", &[("if-none-match", &etag)]).await;
    assert_eq!(again.status(), 304);
}

#[tokio::test]
async fn an_item_shows_its_versions_with_their_reasons() {
    let site = Site::new();
    let answer = site.get("/feeds/news/items/gone").await;
    assert_eq!(header(&answer, "vary"), "Accept");
    let page = text(answer).await;
    assert!(page.contains("&lt;i&gt;because&lt;/i&gt;") && page.contains("tombstone"));
    assert!(page.contains("&lt;b&gt;gone&lt;/b&gt;"));
    for never in ["<script", "<i>", "<b>", "href=\"javascript:"] {
        assert!(!page.contains(never), "{never:?} in {page}");
    }
    let accept = [("accept", "application/json")];
    let item = json(site.get_with("/feeds/news/items/gone", &accept).await).await;
    for (pointer, value) in [
        ("/feed", "news".into()),
        ("/sync_id", "gone".into()),
        ("/published_id", "urn:gone".into()),
        ("/standing", "deleted".into()),
        ("/deleted", true.into()),
        ("/updates", 1.into()),
        ("/history/0/by", "gate".into()),
        ("/history/0/when", at(-5 * DAY).to_string().into()),
        ("/versions/0/reason", "<i>because</i>".into()),
        ("/versions/0/updates", 1.into()),
        ("/versions/0/deleted", true.into()),
    ] {
        assert_eq!(item.pointer(pointer), Some(&value), "{pointer}");
    }
    for unknown in ["nothing", "%20", "%00", "a%0ab", "..%2f..%2fa", "%3Cscript%3E"] {
        problem(site.get(&format!("/feeds/news/items/{unknown}")).await, 404).await;
    }
}

#[tokio::test]
async fn no_conflicts_are_said_in_both_forms() {
    let site = Site::new();
    let accept = [("accept", "application/json")];
    let said = json(site.get_with("/feeds/news/conflicts", &accept).await).await;
    assert_eq!(
        said,
        serde_json::json!({ "feed": "news", "count": 0, "conflicts": [], "next": null })
    );
    assert!(text(site.get("/feeds/news/conflicts").await).await.contains("No item"));
}

#[tokio::test]
async fn subscriptions_lead_here_and_not_upstream() {
    let opml = text(Site::new().get("/subscriptions.opml").await).await;
    for name in ["news", "radio", "new", "still"] {
        assert!(opml.contains(&format!("xmlUrl=\"https://feeds.example.org/feeds/{name}\"")));
    }
    assert!(!opml.contains("dead") && !opml.contains("secret"));
    assert!(opml.contains("htmlUrl=\"https://upstream.example/?a=1&amp;b=2\""));
    let mut reader = quick_xml::Reader::from_str(&opml);
    let mut outlines = 0;
    loop {
        match reader.read_event().unwrap() {
            quick_xml::events::Event::Start(tag) if tag.name().as_ref() == "outline" => {
                outlines += 1;
            }
            quick_xml::events::Event::Eof => break,
            _ => {}
        }
    }
    assert_eq!(outlines, 4);
}

#[tokio::test]
async fn a_site_without_a_hub_says_so() {
    let site = Site::new();
    problem(site.get("/websub").await, 405).await;
    problem(site.ask(request("POST", "/websub", &[], "hub.mode=subscribe")).await, 404).await;
    problem(site.call("GET", "/subscriptions", "").await, 404).await;
}

#[tokio::test]
async fn life_and_readiness_are_two_things() {
    let site = Site::new();
    assert_eq!(site.get("/readyz").await.status(), 200);
    site.closing.cancel();
    let shutting_down = problem(site.get("/readyz").await, 503).await;
    assert!(shutting_down["detail"].as_str().unwrap().contains("shutting down"));
    assert_eq!(site.get("/healthz").await.status(), 200);
    let broken = Site::new();
    broken.store.fault(StoreFault::Reads);
    problem(broken.get("/readyz").await, 503).await;
    assert_eq!(broken.get("/healthz").await.status(), 200);
}

#[tokio::test]
async fn a_store_that_stopped_is_not_ready_though_the_last_good_feeds_are_served() {
    let site = Site::new();
    assert_eq!(site.get("/readyz").await.status(), 200);
    assert_eq!(site.get("/feeds/news").await.status(), 200);
    let (cause, since) = ("no disk".to_owned(), at(0));
    let stop = tidegate_store::StoreStop { cause, since, next_try: None, failed_tries: 0 };
    site.store.set_stop(Some(stop));
    problem(site.get("/readyz").await, 503).await;
    assert_eq!(site.get("/feeds/news").await.status(), 200);
}

#[tokio::test]
async fn of_many_who_ask_the_same_of_an_item_one_has_it_made() {
    let site = Site::new();
    for query in ["", "?version=newest", "?diff=1..newest"] {
        let before = site.store.reads_of("heads");
        let path = format!("/feeds/news/items/a{query}");
        let answers = (0..300).map(|_| site.get(&path));
        let mut first = None;
        for answer in futures_util::future::join_all(answers).await {
            assert_eq!(answer.status(), 200);
            let text = text(answer).await;
            assert!(first.get_or_insert(text.clone()) == &text, "{text}");
        }
        // What is said of an item, its versions and each of two of them take a few looks each.
        let looks = site.store.reads_of("heads") - before;
        assert!(looks <= 10, "{looks} looks at an item for {query:?}");
    }
}

#[tokio::test]
async fn the_address_that_a_hub_knows_is_masked_where_the_feed_is_secret() {
    let site = Site::new();
    let mut secret = status("news");
    for (option, shown) in [(None, true), (Some(false), true), (Some(true), false)] {
        // A page is kept for a while.
        let site = if shown { &site } else { &Site::new() };
        secret.options.secret = option;
        secret.hub.as_mut().unwrap().topic =
            ShownAddress::new("https://upstream.example/letters/marion", option);
        *site.operator.said.lock().unwrap() = Some(secret.clone());
        let page = text(site.get("/feeds/news/about").await).await;
        assert!(page.contains("the hub knows the feed as https://upstream.example/"), "{page}");
        assert_eq!(page.contains("/letters/marion"), shown, "{page}");
    }
}
