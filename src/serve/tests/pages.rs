use super::super::{answers, explain};
use super::*;
use tidegate_judge::record::LeftOut;
use tidegate_status::{FeedStatus, GatherNote, HubNote, PollEnding, SourceTrouble};

/// What is said of `news`, which is polled and fails.
async fn status() -> FeedStatus {
    Site::new().app.operator.status(&name("news")).await.unwrap()
}

/// The same, without anything that waits or was read.
async fn unread() -> FeedStatus {
    let mut status = status().await;
    (status.pending_absences, status.polling.document) = (0, None);
    status.polling.failure = None;
    status
}

fn feed_json(status: &FeedStatus) -> serde_json::Value {
    answers::value(&answers::FeedAnswer::new(status.clone(), None, false, at(0)))
}

fn record_of(status: &mut FeedStatus) -> &mut FeedRecord {
    Arc::make_mut(&mut status.record)
}

#[tokio::test]
async fn what_is_not_polled_is_not_said_to_be() {
    let mut status = unread().await;
    let said = explain::why(&status, None);
    assert!(said.starts_with("the last poll failed, and the feed was never read, so nothing"));
    status.polling.polls[0].outcome = PollEnding::NotModified;
    let said = explain::why(&status, None);
    let expected = "its polls fail, and what the site answers its readers is read instead: for an \
                    unknown reason; the publisher says that nothing has changed (304)";
    assert!(said.starts_with(expected), "{said}");
    status.polling.polls.clear();
    assert_eq!(explain::why(&status, None), "it has not been polled since the start");
    status.polled_by = Some("there".to_owned());
    assert_eq!(explain::why(&status, None), "the gateway there polls it");
    status.polling.stored_error = Some("it answered 503".to_owned());
    let said = explain::why(&status, None);
    let is_told = said.starts_with("the last poll failed") && said.ends_with("it answered 503");
    assert!(is_told, "{said}");
    (status.polled_by, status.polling.stored_error) = (None, None);
    record_of(&mut status).options.sharing.local = true;
    let here = "its items are made here";
    let both = format!("{here}; it has not been polled since the start");
    assert_eq!(explain::why(&status, None), both);
    assert_eq!(feed_json(&status)["url"], status.record.url);
    record_of(&mut status).url.clear();
    assert_eq!(explain::why(&status, None), here);
    assert_eq!(feed_json(&status)["url"], serde_json::Value::Null);
    record_of(&mut status).options.sharing.local = false;
    let s = "it gathers s0, s1";
    let cases = [(2, s.to_owned()), (10, format!("{s}, s2, s3, s4, s5, s6, s7 and 2 more"))];
    for (count, expected) in cases {
        record_of(&mut status).options.sharing.sources =
            (0..count).map(|n| name(&format!("s{n}"))).collect();
        assert_eq!(explain::why(&status, None), expected);
    }
    // What an aggregate does not have is a reason.
    let mut status = unread().await;
    record_of(&mut status).url.clear();
    status.polling.polls.clear();
    status.polling.failures = 0;
    record_of(&mut status).options.sharing.sources = ["a", "b", "c"].map(name).to_vec();
    let trouble = |of, why: &str| SourceTrouble { source: name(of), why: why.to_owned() };
    let why = "the item <s>x.1</s> is another's".to_owned();
    status.gathered = Some(GatherNote {
        troubles: vec![trouble("a", "its polls fail: <tt>404</tt>"), trouble("c", "it is paused")],
        troubled: 2,
        left_out: vec![LeftOut { source: name("b"), id: id("x.1"), why }],
        error: Some("the disk is <q>full</q>".to_owned()),
    });
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
async fn the_topic_of_a_hub_and_the_next_document_of_a_walk_are_masked() {
    let mut status = status().await;
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
        record_of(&mut status).options.secret = secret;
        status.hub = Some(HubNote::new(&report, at(0), secret));
        let told = feed_json(&status);
        let addresses = (&told["hub"]["topic"], &told["backfill"]["next"]);
        assert_eq!(addresses, (&shown.into(), &shown.into()));
    }
    for (option, is_shown) in [(Some(false), true), (Some(true), false)] {
        let site = Site::new();
        site.store.edit_record("news", |record| record.options.secret = option);
        let record = doubles::record("news", FeedStanding::Active);
        let hub = Some(report.clone());
        site.polling.tell(&record, PollStatus { hub, ..PollStatus::default() });
        let page = site.text("/feeds/news/about").await;
        page.assert_shows(&["the hub knows the feed as https://upstream.example/"]);
        assert_eq!(page.contains("page=3"), is_shown, "{page}");
    }
}

fn named<'p>(page: &'p str, attribute: &str) -> Vec<&'p str> {
    let pieces = page.split(attribute).skip(1);
    pieces.filter_map(|piece| piece.split('"').next()).collect()
}

/// As a proxy asks that serves the gateway at `/gate` and takes that off.
#[tokio::test]
async fn every_link_of_a_page_leads_below_the_path_of_the_public_address() {
    let public_url = "https://feeds.example.org/gate/".to_owned();
    let site = Site::with(TestStore::with_news(), ServeSettings { public_url, ..settings() });
    let (mut waiting, mut seen) = (vec!["/".to_owned()], std::collections::BTreeSet::new());
    while let Some(path) = waiting.pop() {
        if !seen.insert(path.clone()) || seen.len() > 200 {
            continue;
        }
        let answer = site.get(&path).await;
        assert_ne!(answer.status(), StatusCode::NOT_FOUND, "{path}");
        let is_page = header(&answer, "content-type").starts_with("text/html");
        let page = if is_page { text(answer).await } else { String::new() };
        for link in named(&page, "href=\"").into_iter().chain(named(&page, "action=\"")) {
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
    let complete = "https://feeds.example.org/gate/feeds/news/complete";
    site.text("/feeds/news").await.assert_shows(&[complete]);
}

#[tokio::test]
async fn the_dashboard_has_the_folders_of_the_list() {
    let label = |text: &'static str| OutlineLabel::new(|name| (name == "text").then_some(text));
    let place = |folder, position| ListPlace {
        number: 0,
        folders: vec![ListFolder { position, label: label(folder) }],
        position: 0,
        label: label("My <news>"),
        site: None,
    };
    let site = Site::new();
    site.store.edit_record("news", |record| {
        record.enrolment.set_places(vec![place("Else", 1), place("A & <b>", 0)]);
    });
    site.text("/").await.assert_shows(&[
        "<th class=\"folder\" colspan=\"6\" scope=\"colgroup\">A &amp; &lt;b&gt;</th>",
        "<a class=\"title\" href=\"/feeds/news/about\">My &lt;news&gt;</a>",
        "also in Else",
    ]);
    let told = site.told("/feeds/news").await;
    assert_eq!(told["listed"]["places"][1]["folder"][0], "A & <b>");
    assert_eq!(told["listed"]["places"][0]["title"], "My <news>");
}
