//! Feeds of the gateway's own: items made, changed and deleted through the API, and a conflict from
//! its beginning to its end.

use crate::e2e::support::{Answer, Format, Stage, Subscriber, TOKEN};
use serde_json::{Value, json};

const NOTES: &str = "http://gateway.example/feeds/notes";
const FORM: &str = "application/x-www-form-urlencoded";

async fn titles(stage: &Stage, feed: &str) -> Vec<String> {
    let address = format!("http://gateway.example/feeds/{feed}");
    let text = stage.net.text(&address).await;
    let read = feed_titles(&text);
    read.into_iter().skip(1).collect()
}

/// The titles in a document, that of the feed first.
fn feed_titles(text: &str) -> Vec<String> {
    let titles = text.split("<title").skip(1).filter_map(|rest| {
        let inner = rest.split_once('>')?.1;
        Some(inner.split_once("</title>")?.0.to_owned())
    });
    titles.collect()
}

async fn create(stage: &Stage, feed: &str, title: &str) -> String {
    let body = json!({ "title": title, "content": format!("About {title}") });
    let (status, made) = stage.admin("POST", &format!("/feeds/{feed}/items"), Some(body)).await;
    assert_eq!(status, 201, "{made}");
    made["sync_id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_local_feed_lives_through_the_api_alone() {
    let local = "[[feed]]\nname = \"notes\"\nlocal = true\ntitle = \"Our notes\"\n\
                 [[aggregate]]\nname = \"all\"\nsources = [\"notes\"]\ntitle = \"All of it\"\n";
    let mut stage = Stage::with(Format::Atom10, "", local).await;
    // It is there before it has an item, and so is an aggregate.
    let empty = stage.net.text(NOTES).await;
    assert_eq!(feed_titles(&empty), ["Our notes"]);
    assert!(!empty.contains("rel=\"via\""), "{empty}");
    assert!(stage.net.text("http://gateway.example/feeds/all").await.contains("All of it"));
    assert_eq!(stage.admin("POST", "/feeds/notes/poll", None).await.0, 409);
    // Nobody says of either that it is polled.
    for (feed, why) in [("notes", "its items are made here"), ("all", "it gathers notes")] {
        let status = stage.admin("GET", &format!("/feeds/{feed}"), None).await.1;
        assert_eq!((&status["url"], &status["why"]), (&json!(null), &json!(why)));
        let about = stage.net.text(&format!("http://gateway.example/feeds/{feed}/about")).await;
        assert!(about.contains(why) && !about.contains("polled"), "{about}");
        let dashboard = stage.net.text("http://gateway.example/").await;
        assert!(dashboard.contains(why), "{dashboard}");
    }

    let first = create(&stage, "notes", "first").await;
    let mut subscriber = Subscriber::new(&stage.net, "notes", false);
    subscriber.consume().await;
    stage.later(std::time::Duration::from_secs(60));
    let second = create(&stage, "notes", "second").await;
    assert_eq!(titles(&stage, "notes").await, ["second", "first"]);

    let of = format!("/feeds/notes/items/{first}");
    stage.later(std::time::Duration::from_secs(60));
    let (status, changed) = stage.admin("PUT", &of, Some(json!({ "title": "First" }))).await;
    assert_eq!((status, &changed["updates"]), (200, &json!(2)));
    stage.later(std::time::Duration::from_secs(60));
    let (status, gone) = stage.admin("DELETE", &format!("/feeds/notes/items/{second}"), None).await;
    assert_eq!((status, &gone["deleted"]), (200, &json!(true)));
    assert_eq!(titles(&stage, "notes").await, ["First"]);
    subscriber.consume().await;
    assert_eq!(subscriber.resets, 0);
    let first = subscriber.item("First");
    assert_eq!((first.0, first.1), (2, false));
    assert_eq!(subscriber.living().len(), 1);

    let back = format!("/feeds/notes/items/{second}/restore");
    assert_eq!(stage.admin("POST", &back, None).await.0, 200);
    assert_eq!(titles(&stage, "notes").await, ["second", "First"]);
    // All of it is there after a restart of whoever reads, and nobody else's items can be changed.
    let mut late = Subscriber::new(&stage.net, "notes", true);
    late.consume().await;
    subscriber.consume().await;
    assert_eq!(late.known(), subscriber.known());
    stage.posts(&crate::e2e::support::posts(1..=3)).await;
    let (status, refused) =
        stage.admin("POST", "/feeds/news/items", Some(json!({ "title": "x" }))).await;
    assert_eq!(status, 409, "{refused}");

    // Another one, through the API.
    let put = json!({ "local": true, "title": "A diary", "shares_with": ["notes"] });
    let (status, diary) = stage.admin("PUT", "/feeds/diary", Some(put)).await;
    assert_eq!((status, &diary["options"]["local"]), (201, &json!(true)), "{diary}");
    create(&stage, "diary", "today").await;
    let diary = stage.net.text("http://gateway.example/feeds/diary").await;
    assert_eq!(feed_titles(&diary), ["A diary", "today"]);
    for other in ["nobody", "diary"] {
        let wrong = json!({ "local": true, "shares_with": [other] });
        let (status, said) = stage.admin("PUT", "/feeds/diary", Some(wrong)).await;
        let there_is = format!("shares_with: there is no other feed {other}");
        assert!(status == 400 && said.to_string().contains(&there_is), "{said}");
    }
    stage.stop().await;
}

/// A local feed whose address another endpoint answers. Both change one item without knowing of each
/// other; a person decides on the page, and the other endpoint is not asked again.
async fn contested(stage: &mut Stage) -> (String, String) {
    let id = create(stage, "news", "The beginning").await;
    let document = stage.net.text("http://gateway.example/feeds/news/complete").await;
    stage.hours(1);
    let theirs = document.replacen("updates=\"1\"", "updates=\"2\"", 1);
    let (before, behind) = theirs.split_once("<sx:history").expect("the dialect is SSE's");
    let theirs = format!(
        "{before}<sx:history sequence=\"2\" when=\"{}\" by=\"other.example\"/><sx:history{behind}",
        stage.now()
    );
    let theirs = theirs.replace("The beginning", "What they wrote");
    stage.hours(1);
    let body = Some(json!({ "title": "What we wrote" }));
    let (status, _) = stage.admin("PUT", &format!("/feeds/news/items/{id}"), body).await;
    assert_eq!(status, 200);
    stage.answers(Answer::document("application/atom+xml", theirs.as_str()));
    let step = stage.poll_alone().await;
    assert_eq!(step.outcome, "changed", "{step:?}");
    (id, theirs)
}

async fn conflicts(stage: &Stage) -> Value {
    stage.admin("GET", "/feeds/news/conflicts", None).await.1
}

#[tokio::test]
async fn a_conflict_is_shown_and_resolved_for_good() {
    let mut stage = Stage::with(Format::Atom10, "local = true", "").await;
    let (id, theirs) = contested(&mut stage).await;
    let listed = conflicts(&stage).await;
    assert_eq!(listed["count"], 1, "{listed}");
    let contest = &listed["conflicts"][0];
    assert_eq!(contest["winner"]["title"], "What we wrote");
    assert_eq!(contest["conflicts"][0]["title"], "What they wrote");
    assert_eq!(contest["conflicts"][0]["by"], "other.example");
    let page = stage.net.text("http://gateway.example/feeds/news/conflicts").await;
    assert!(page.contains("<del>we</del>") && page.contains("<ins>they</ins>"), "{page}");

    let etag = contest["etag"].as_str().unwrap();
    let form = |token: &str| format!("token={token}&item={id}&etag={etag}&keep=0");
    let post = |body: String, site: &'static str| {
        let address = "http://gateway.example/feeds/news/conflicts";
        let request = stage.net.request(reqwest::Method::POST, address);
        request.header("content-type", FORM).header("sec-fetch-site", site).body(body).send()
    };
    let token = TOKEN;
    assert_eq!(post(form("wrong"), "same-origin").await.unwrap().status(), 403);
    assert_eq!(post(form(token), "cross-site").await.unwrap().status(), 403);
    assert_eq!(conflicts(&stage).await["count"], 1);
    // The client follows back to the page.
    let done = post(form(token), "same-origin").await;
    assert!(done.is_ok() || done.is_err_and(|error| error.is_redirect()));
    assert_eq!(conflicts(&stage).await["count"], 0);
    assert_eq!(titles(&stage, "news").await, ["What they wrote"]);
    let stale = json!({ "keep": "winner", "etag": etag });
    let (status, _) =
        stage.admin("POST", &format!("/feeds/news/items/{id}/resolve"), Some(stale)).await;
    assert_eq!(status, 409);

    // What the other endpoint goes on saying is known, so that nobody is asked twice.
    stage.hours(1);
    stage.answers(Answer::document("application/atom+xml", theirs.replace("</feed>", "\n</feed>")));
    stage.poll_alone().await;
    assert_eq!(conflicts(&stage).await["count"], 0);
    let item = stage.admin("GET", &format!("/feeds/news/items/{id}"), None).await.1;
    assert_eq!((&item["updates"], &item["title"]), (&json!(3), &json!("What they wrote")));
    stage.stop().await;
}

#[tokio::test]
async fn what_the_operator_prefers_is_kept_without_asking() {
    for (policy, kept) in [("winner", "What we wrote"), ("prefer:other.example", "What they wrote")]
    {
        let options = format!("local = true\nconflicts = \"{policy}\"");
        let mut stage = Stage::with(Format::Atom10, &options, "").await;
        let (id, _) = contested(&mut stage).await;
        assert_eq!(conflicts(&stage).await["count"], 0, "{policy}");
        assert_eq!(titles(&stage, "news").await, [kept], "{policy}");
        let item = stage.admin("GET", &format!("/feeds/news/items/{id}"), None).await.1;
        assert_eq!(item["updates"], 3, "{policy}: an update that knows of both");
        stage.stop().await;
    }
}
