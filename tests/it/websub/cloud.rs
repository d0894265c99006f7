use super::*;
use crate::support::channel;

const REGISTER: &str = "/rsscloud/pleaseNotify";

/// A publisher's document in RSS, with a cloud of its own.
fn rss(posts: usize) -> String {
    let item = |n| format!("<item><title>{n}</title><guid>http://p.example/{n}</guid></item>");
    let cloud = "<cloud domain=\"p.example\" port=\"80\" path=\"/c\" registerProcedure=\"\" protocol=\"xml-rpc\"/>";
    channel("R", std::iter::once(cloud.to_owned()).chain((1..=posts).rev().map(item)))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_registers_answers_and_is_told_for_25_hours() {
    let mut stage = Stage::of_document(&rss(1), "").await;
    let document = stage.text("/feeds/news").await;
    let cloud = "<cloud domain=\"gate.example\" port=\"443\" path=\"/rsscloud/pleaseNotify\" \
                 registerProcedure=\"\" protocol=\"http-post\"/>";
    assert!(document.contains(cloud), "{document}");
    assert_eq!(document.matches("<cloud").count(), 1, "the publisher's own is not there");

    let callback = Callback::start().await;
    let (port, news) = (callback.port.to_string(), topic("/feeds/news"));
    let body = form(&[
        ("notifyProcedure", ""),
        ("port", &port),
        ("path", "/told?me=1"),
        ("protocol", "http-post"),
        ("domain", "127.0.0.1"),
        ("url1", &news),
    ]);
    let call = stage.client().post(stage.url(REGISTER)).header("content-type", FORM);
    let answer = call.body(body).send().await.unwrap();
    assert_eq!(answer.status(), 200);
    assert!(answer.headers()["content-type"].to_str().unwrap().starts_with("text/xml"));
    assert!(answer.text().await.unwrap().contains("<notifyResult success=\"true\""));
    until("it is in force", async || stage.active().await == 1).await;
    let asked = callback.seen().remove(0).query;
    assert!(asked.starts_with(&format!("me=1&{}&challenge=", form(&[("url", &news)]))), "{asked}");

    stage.says_text(&rss(2));
    stage.poll("news").await;
    stage.delivers(&callback, 1).await;
    let told = &callback.deliveries()[0];
    assert_eq!(told.header("content-type"), FORM);
    assert_eq!(told.text(), "url=https%3A%2F%2Fgate.example%2Ffeeds%2Fnews");
    assert_eq!((told.path.as_str(), told.query.as_str()), ("/told", "me=1"));
    until("it is noted", async || stage.subscriptions().await["delivered"] == 1).await;
    assert_eq!(stage.subscriptions().await["subscriptions"][0]["manner"], "rsscloud");

    // A day later it is still told, and not after 25 hours.
    stage.pass(24 * 3600);
    stage.says_text(&rss(3));
    stage.poll("news").await;
    stage.delivers(&callback, 2).await;
    stage.pass(3600);
    until("it has ended", async || stage.active().await == 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cloud_that_is_switched_off_is_not_there() {
    let stage = Stage::of_document(&rss(1), "[websub]\nrsscloud = false\n").await;
    let (_, headers, document) = stage.get("/feeds/news").await;
    assert!(!document.contains("<cloud"), "{document}");
    assert!(format!("{headers:?}").contains("/websub"), "the hub is");
    let (_, said) = stage.post_form(REGISTER, String::new()).await;
    assert!(said.contains("there is no cloud here"), "{said}");
}
