//! Readers that register by rssCloud, as its walkthrough says.

use super::*;

/// A publisher's document in RSS, with a cloud of its own.
fn rss(posts: usize) -> String {
    let item =
        |n: usize| format!("<item><title>{n}</title><guid>http://p.example/{n}</guid></item>");
    let items: String = (1..=posts).rev().map(item).collect();
    format!(
        "<rss version=\"2.0\"><channel><title>R</title><link>http://p.example/</link>\
         <description>d</description><cloud domain=\"p.example\" port=\"80\" path=\"/c\" \
         registerProcedure=\"\" protocol=\"xml-rpc\"/>{items}</channel></rss>"
    )
}

async fn stage_of_rss(more: &str) -> Stage {
    let mut stage = Stage::without_feeds(more).await;
    stage.says_text(&rss(1));
    stage.add("news").await;
    assert_ne!(stage.poll("news").await["outcome"], "failed");
    stage
}

async fn register(stage: &Stage, form: &[(&str, &str)]) -> String {
    let mut body = url::form_urlencoded::Serializer::new(String::new());
    body.extend_pairs(form);
    let call = reqwest::Client::new().post(stage.at("/rsscloud/pleaseNotify"));
    let call = call.header("content-type", "application/x-www-form-urlencoded");
    let answer = call.body(body.finish()).send().await.unwrap();
    assert_eq!(answer.status(), 200);
    assert!(answer.headers()["content-type"].to_str().unwrap().starts_with("text/xml"));
    answer.text().await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_registers_answers_and_is_told_for_25_hours() {
    let mut stage = stage_of_rss("").await;
    let (_, _, document) = stage.get("/feeds/news").await;
    let cloud = "<cloud domain=\"gate.example\" port=\"443\" path=\"/rsscloud/pleaseNotify\" \
                 registerProcedure=\"\" protocol=\"http-post\"/>";
    assert!(document.contains(cloud), "{document}");
    assert_eq!(document.matches("<cloud").count(), 1, "the publisher's own is not there");

    let callback = Callback::start().await;
    let at = callback.host_and_port();
    let port = at.rsplit_once(':').unwrap().1;
    let news = topic("/feeds/news");
    let form = [
        ("notifyProcedure", ""),
        ("port", port),
        ("path", "/told?me=1"),
        ("protocol", "http-post"),
        ("domain", "127.0.0.1"),
        ("url1", &news),
    ];
    let said = register(&stage, &form).await;
    assert!(said.contains("<notifyResult success=\"true\""), "{said}");
    until("it is in force", async || stage.active().await == 1).await;
    let asked = &callback.seen()[0];
    let pairs: Vec<(String, String)> =
        url::form_urlencoded::parse(asked.query.as_bytes()).into_owned().collect();
    assert_eq!(pairs[0], ("me".to_owned(), "1".to_owned()));
    assert_eq!(pairs[1], ("url".to_owned(), news.clone()));
    assert_eq!(pairs[2].0, "challenge");

    stage.says_text(&rss(2));
    stage.poll("news").await;
    stage.delivers(&callback, 1).await;
    let told = &callback.deliveries()[0];
    assert_eq!(told.header("content-type"), "application/x-www-form-urlencoded");
    assert_eq!(told.text(), "url=https%3A%2F%2Fgate.example%2Ffeeds%2Fnews");
    assert_eq!((told.path.as_str(), told.query.as_str()), ("/told", "me=1"));
    until("it is noted", async || stage.seen().await["delivered"] == 1).await;
    assert_eq!(stage.seen().await["subscriptions"][0]["manner"], "rsscloud");

    // A day later it is still told, and not after 25 hours.
    stage.later(24 * 3600);
    stage.says_text(&rss(3));
    stage.poll("news").await;
    stage.delivers(&callback, 2).await;
    stage.later(3600);
    until("it has ended", async || stage.active().await == 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cloud_that_is_switched_off_is_not_there() {
    let stage = stage_of_rss("[websub]\nrsscloud = false\n").await;
    let (_, headers, document) = stage.get("/feeds/news").await;
    assert!(!document.contains("<cloud"), "{document}");
    assert!(format!("{headers:?}").contains("/websub"), "the hub is");
    assert!(register(&stage, &[]).await.contains("there is no cloud here"));
}
