//! Subscription lists whose feeds are feeds of the gateway (`add_feeds`): they follow what the list says once
//! it is believed, and never what somebody did by hand.

use crate::support::gateways::{Paper, Running, until};
use crate::support::prelude::*;

/// A publisher of a list and one of the feeds that it names.
struct Town {
    list: Paper,
    posts: Paper,
    _folder: tempfile::TempDir,
    gateway: Running,
}

const ONE: &str = "<item><guid>1</guid><title>One</title></item>";

/// A list of outlines: the last word of a path is a feed, those before it are folders.
fn written(posts: &str, outlines: &[(&str, &str)]) -> String {
    let mut text = String::from("<opml version=\"2.0\"><head><title>Ours</title></head><body>\n");
    for (path, feed) in outlines {
        let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
        let folders: Vec<&str> = folders.split('/').filter(|f| !f.is_empty()).collect();
        for folder in &folders {
            text.push_str(&format!("<outline text=\"{folder}\">"));
        }
        text.push_str(&format!("<outline text=\"{name}\" type=\"rss\" xmlUrl=\"{posts}{feed}\"/>"));
        text.push_str(&"</outline>".repeat(folders.len()));
        text.push('\n');
    }
    text + "</body></opml>\n"
}

impl Town {
    async fn start(outlines: &[(&str, &str)], more: &str) -> Self {
        let posts = Paper::start("application/rss+xml", &channel("Posts", [ONE.to_owned()])).await;
        let list = Paper::start("text/x-opml", "").await;
        let folder = tempfile::tempdir().unwrap();
        list.print(&written(&posts.url, outlines));
        let text = format!(
            "[store]\npath = {:?}\n[websub]\nhub = false\nsubscribe = false\n[[feed]]\n\
             name = \"ours\"\nurl = \"{}\"\ndeletions = \"eager\"\n{}",
            folder.path().join("store"),
            list.url,
            more,
        );
        Self { list, posts, _folder: folder, gateway: Running::start(&text).await }
    }

    async fn restart(&mut self) {
        self.gateway.close().await;
        self.gateway.open().await;
    }

    fn print(&self, outlines: &[(&str, &str)]) {
        self.list.print(&written(&self.posts.url, outlines));
    }

    async fn says(&self, outlines: &[(&str, &str)]) -> Value {
        self.print(outlines);
        self.poll().await
    }

    async fn poll(&self) -> Value {
        self.gateway.call("POST", "/feeds/ours/poll", Value::Null).await
    }

    /// Every feed but the list: where it stands and whether it is polled.
    async fn feeds(&self) -> Vec<String> {
        let records = self.records().await;
        let said = |record: &FeedRecord| {
            let places = record.enrolment.places.iter().map(|place| {
                let folders = place.folders.iter().filter_map(|folder| folder.label.name());
                folders.chain(place.label.name()).collect::<Vec<_>>().join("/")
            });
            let feed = record.url.strip_prefix(&self.posts.url).unwrap_or(&record.url).to_owned();
            format!("{feed} {} {}", record.standing.name(), places.collect::<Vec<_>>().join(","))
        };
        let others = records.iter().filter(|record| record.name.as_str() != "ours");
        let mut all: Vec<String> = others.map(said).collect();
        all.sort();
        all
    }

    async fn records(&self) -> Vec<FeedRecord> {
        let mut records = self.gateway.store().feeds().await.unwrap();
        // What the documents of the feeds say of themselves comes when it comes.
        for record in &mut records {
            record.enrolment.title = None;
            record.enrolment.history.clear();
            record.enrolment.version = tidegate_core::model::Count::ONE;
        }
        records
    }

    async fn expect(&self, feeds: &[&str]) {
        until("the feeds are as they should be", async || self.feeds().await == feeds).await;
    }

    async fn feed(&self, feed: &str) -> Value {
        let url = format!("{}{feed}", self.posts.url);
        let records = self.records().await;
        let record = records.iter().find(|record| record.url == url).unwrap();
        self.gateway.call("GET", &format!("/feeds/{}", record.name), Value::Null).await
    }

    /// Time for the gateway to do what it must not.
    async fn rest(&self) {
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn feeds_follow_their_list_over_restarts() {
    let mut town = Town::start(&[("News/A", "a"), ("News/B", "b")], "add_feeds = true\n").await;
    town.expect(&["a active News/A", "b active News/B"]).await;
    // They are feeds like any other.
    let feed = town.feed("a").await;
    let at = format!("/feeds/{}", feed["name"].as_str().unwrap());
    town.gateway.call("POST", &format!("{at}/poll"), Value::Null).await;
    assert!(town.gateway.text(&at).await.contains("<title>One</title>"));
    let list = json!({ "name": "ours", "standing": "listed", "followed": true });
    assert_eq!((&feed["list"], &feed["listed"]["places"][0]["folder"]), (&list, &json!(["News"])));

    let before = town.records().await;
    town.restart().await;
    town.poll().await;
    town.rest().await;
    assert_eq!(town.records().await, before, "a restart changes nothing");

    town.says(&[("News/A", "a"), ("Science/Beta", "b"), ("C", "c")]).await;
    town.expect(&["a active News/A", "b active Science/Beta", "c active C"]).await;

    // A broken document and one that is cut off change nothing.
    for text in ["<html><body>Sign in</body></html>", "<opml><body><outline text=\"x\""] {
        town.list.print(text);
        town.poll().await;
    }
    town.rest().await;
    town.expect(&["a active News/A", "b active Science/Beta", "c active C"]).await;

    let deleted = town.says(&[("Science/Beta", "b"), ("C", "c")]).await;
    assert_eq!(deleted["deleted"], 2, "the feed and its folder: {deleted}");
    let dropped = ["a paused News/A", "b active Science/Beta", "c active C"];
    town.expect(&dropped).await;
    let feed = town.feed("a").await;
    let why = feed["why"].as_str().unwrap();
    assert!(why.contains("it is paused, since the list ours no longer has it"), "{why}");
    let page = town.gateway.text(&format!("{at}/about")).await;
    assert!(page.contains("the list <a href=\"/feeds/ours/about\">ours</a> no longer has it"));
    let note = town.gateway.call("GET", "/feeds/ours", Value::Null).await["feeds_of_list"].clone();
    assert_eq!((&note["following"], &note["dropped"]), (&json!(3), &json!(1)), "{note}");
    town.restart().await;
    town.rest().await;
    town.expect(&dropped).await;

    town.says(&[("Back/A", "a"), ("Science/Beta", "b"), ("C", "c")]).await;
    town.expect(&["a active Back/A", "b active Science/Beta", "c active C"]).await;
    town.gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_that_is_purged_lets_go_of_its_feeds() {
    let town = Town::start(&[("a", "a"), ("b", "b")], "").await;
    let list = json!({ "url": town.list.url, "add_feeds": true, "deletions": "eager" });
    town.gateway.call("PUT", "/feeds/second", list.clone()).await;
    town.gateway.call("POST", "/feeds/second/poll", Value::Null).await;
    let second = format!("{} active ", town.list.url);
    town.expect(&["a active a", "b active b", &second]).await;
    town.gateway.call("DELETE", "/feeds/second?purge=true", Value::Null).await;
    assert_eq!(town.feed("a").await["list"]["standing"], "own");
    // Whatever takes its name.
    town.print(&[("b", "b"), ("c", "c")]);
    town.gateway.call("PUT", "/feeds/second", list).await;
    town.gateway.call("POST", "/feeds/second/poll", Value::Null).await;
    town.expect(&["a active a", "b active b", "c active c", &second]).await;
    town.gateway.stop().await;
}
