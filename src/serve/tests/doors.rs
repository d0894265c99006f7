//! `/changes` and `/events`.

use super::*;
use crate::event_streams::STREAMS_AT_ONCE;
use serde_json::Value;
use std::sync::OnceLock;

/// A site with the feeds `news` and `other`, and three epochs.
fn site() -> Site {
    site_over(TestStore::with_news())
}

fn site_over(store: TestStore) -> Site {
    let site = Site::announcing_over(store);
    let other = doubles::record("other", tidegate_core::model::FeedStanding::Active);
    site.store.set_record(&other);
    site.store.announce(-30, &["news"]);
    site.store.announce(-20, &["other", "news", "other"]);
    site.store.announce(-10, &["other"]);
    site
}

async fn lines(answer: Response<Body>) -> Vec<Value> {
    assert_eq!(answer.status(), 200);
    assert_eq!(header(&answer, "content-type"), "application/x-ndjson");
    assert_eq!(header(&answer, "cache-control"), "no-store");
    text(answer).await.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

async fn told(site: &Site, path: &str) -> Vec<String> {
    spelled(&lines(site.get(path).await).await)
}

/// Lines as text: the epoch and the feeds that changed in it.
fn spelled(lines: &[Value]) -> Vec<String> {
    let feeds = |line: &Value| {
        let changes = line["changes"].as_array().unwrap().iter();
        changes.map(|change| format!(" {}", change["feed"].as_str().unwrap())).collect::<String>()
    };
    lines.iter().map(|line| format!("{}{}", line["epoch"], feeds(line))).collect()
}

#[tokio::test]
async fn changes_are_answered_an_epoch_a_line() {
    let site = site();
    let all = lines(site.get("/changes?after=0").await).await;
    assert_eq!(spelled(&all), ["1 news", "2 other news other", "3 other"]);
    let sup_id = site.app.site.sup_id(&doubles::name("news")).unwrap().to_string();
    let (at, url) = ("2026-11-20T16:19:35Z", "https://feeds.example.org/feeds/news");
    let change = serde_json::json!({
        "feed": "news", "kind": "items", "url": url, "tick": at, "sup_id": sup_id,
        "update_id": "2026-11-20T16-19-35Z", "revision": 1, "versions": 1,
    });
    let first = serde_json::json!({ "epoch": 1, "id": "1", "at": at, "changes": [change] });
    assert_eq!(all[0], first);
    assert_eq!(told(&site, "/changes?after=2").await, ["3 other"]);
    let news = site.get("/changes?after=0&feed=news").await;
    assert_eq!(header(&news, "x-tidegate-after"), "3");
    assert_eq!(spelled(&lines(news).await), ["1 news", "2 news"]);
    // Without a place: where the log stands.
    assert_eq!(told(&site, "/changes").await, ["3"]);
    // A store that went back to a copy gives the same numbers out again, for something else.
    site.store
        .set_lineage(Lineage::new([Stretch { mark: 1, after: 0 }, Stretch { mark: 2, after: 2 }]));
    let ids = |lines: &[Value]| -> Vec<String> {
        lines.iter().map(|line| line["id"].as_str().unwrap().to_owned()).collect()
    };
    let all = lines(site.get("/changes?after=0").await).await;
    assert_eq!(ids(&all), ["00000001-1", "00000001-2", "00000002-3"]);
    let last = site.get("/changes").await;
    assert_eq!(header(&last, "x-tidegate-after"), "00000002-3");
    for known in ["00000001-2", "00000002-2"] {
        let next = lines(site.get(&format!("/changes?after={known}")).await).await;
        assert_eq!(ids(&next), ["00000002-3"], "{known}");
    }
    // The first life went on without this one; a third is another; a number alone says nothing.
    for strange in ["00000001-3", "00000003-1", "00000002-4", "00000001-3.1", "2", "3"] {
        let gone = problem(site.get(&format!("/changes?after={strange}")).await, 410).await;
        assert_eq!(gone["newest"], "00000002-3", "{strange}");
        let mut reader = Reader::new(&site, "/events", strange).await;
        assert_eq!(reader.event().await, format!("reset 00000002-3 {strange}"));
    }
    let mut reader = Reader::new(&site, "/events", "00000001-2.1").await;
    for event in ["00000001-2.2 news", "00000001-2 other", "00000002-3 other"] {
        assert_eq!(reader.event().await, format!("change {event}"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_waits_for_the_next_change_of_its_feeds() {
    let site = site();
    let asked = site.get("/changes?after=3&feed=news");
    let changing = async {
        tokio::time::sleep(Duration::from_secs(5)).await;
        site.store.announce(0, &["other"]);
        tokio::time::sleep(Duration::from_secs(5)).await;
        site.store.announce(1, &["news"]);
    };
    let (answer, ()) = tokio::join!(asked, changing);
    assert_eq!(spelled(&lines(answer).await), ["5 news"]);

    let begun = tokio::time::Instant::now();
    assert_eq!(told(&site, "/changes?after=5&wait=7").await, [""; 0]);
    assert_eq!(begun.elapsed().as_secs(), 7);
    // Only others changed: the place moves on all the same.
    site.store.announce(2, &["other"]);
    assert_eq!(told(&site, "/changes?after=5&feed=news&wait=0").await, ["6"]);
    // Many feeds may be named at once.
    for (length, status) in [(8192, 200), (8193, 400)] {
        for door in ["events", "changes"] {
            let query = format!("{:x<length$}", "after=5&wait=0&");
            assert_eq!(site.get(&format!("/{door}?{query}")).await.status(), status, "{door}");
        }
    }
    let (closing, begun) = (site.closing.clone(), tokio::time::Instant::now());
    let end = async { closing.cancel() };
    let (answer, ()) = tokio::join!(site.get("/changes?after=6"), end);
    assert_eq!(spelled(&lines(answer).await), [""; 0]);
    assert_eq!(begun.elapsed().as_secs(), 0, "a gateway that ends keeps nobody waiting");
    // Who waits is answered where the database falls silent, and learns of a change that it cannot read any more.
    for (wait, latest) in [("5", 18), ("20", 25)] {
        let (site, begun) = (site_over(TestStore::far()), tokio::time::Instant::now());
        let (address, held) = (format!("/changes?after=3&wait={wait}"), OnceLock::new());
        let falling_silent = async {
            tokio::time::sleep(Duration::from_secs(4)).await;
            site.store.feed_list().await.unwrap();
            held.set(site.store.hold_reads().await).unwrap();
            site.store.announce(0, &["news"]);
        };
        let (answer, ()) = tokio::join!(site.get(&address), falling_silent);
        is_retried(answer).await;
        assert_eq!(begun.elapsed().as_secs(), latest);
    }
}

#[tokio::test(start_paused = true)]
async fn a_place_ahead_of_a_store_that_does_not_answer_is_to_be_asked_again() {
    for (stop, is_unseen) in [(stopped("x"), false), (None, true)] {
        let site = site();
        site.store.set_stop(stop);
        site.store.set_unseen(is_unseen);
        is_retried(site.get("/changes?after=4&wait=0").await).await;
        let mut reader = Reader::new(&site, "/events", "4").await;
        assert_eq!(reader.block().await.unwrap(), "retry: 2000\nid: 4");
        assert_eq!(reader.block().await, None, "its client comes back where it was");
        // Once the store answers it is known.
        site.store.set_stop(None);
        site.store.set_unseen(false);
        problem(site.get("/changes?after=4").await, 410).await;
        let mut reader = Reader::new(&site, "/events", "4").await;
        assert_eq!(reader.event().await, "reset 3 4");
    }
}

struct Reader {
    body: Body,
    text: String,
}

impl Reader {
    async fn new(site: &Site, path: &str, last: &str) -> Self {
        Self::of(site, 0, path, last).await
    }

    async fn of(site: &Site, client: u8, path: &str, last: &str) -> Self {
        let asked = request("GET", path, &[("last-event-id", last)], "");
        let answer = site.ask(with_extension(asked, super::client(client))).await;
        assert_eq!(answer.status(), 200);
        assert_eq!(header(&answer, "content-type"), "text/event-stream");
        assert_eq!(header(&answer, "cache-control"), "no-store");
        Self { body: answer.into_body(), text: String::new() }
    }

    /// The next block; `None` at the end of the stream.
    async fn block(&mut self) -> Option<String> {
        while !self.text.contains("\n\n") {
            let frame = self.body.frame().await?.unwrap();
            self.text.push_str(std::str::from_utf8(frame.data_ref().unwrap()).unwrap());
        }
        let (block, rest) = self.text.split_once("\n\n").unwrap();
        let (block, rest) = (block.to_owned(), rest.to_owned());
        self.text = rest;
        Some(block)
    }

    /// The next event: its type, its id and its feed.
    async fn event(&mut self) -> String {
        loop {
            let block = self.block().await.expect("the stream goes on");
            let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name));
            let Some(data) = field("data: ") else { continue };
            let data: Value = serde_json::from_str(data).unwrap();
            let feed = data.get("feed").or_else(|| data.get("after")).unwrap().as_str().unwrap();
            return format!("{} {} {feed}", field("event: ").unwrap(), field("id: ").unwrap());
        }
    }
}

#[tokio::test]
async fn events_go_on_from_any_id_without_a_gap_and_without_one_twice() {
    let site = site();
    let places = ["0", "1", "2.1", "2.2", "2", "3", "4"];
    let feeds = ["news", "other", "news", "other", "other", "news"];
    for (begin, last) in places.iter().enumerate().take(feeds.len()) {
        let mut reader = Reader::new(&site, "/events", last).await;
        assert_eq!(reader.block().await.unwrap(), format!("retry: 2000\nid: {last}"));
        if begin == 0 {
            site.store.announce(0, &["news"]);
        }
        for (place, feed) in places[1..].iter().zip(feeds).skip(begin) {
            assert_eq!(reader.event().await, format!("change {place} {feed}"), "after {last}");
        }
    }
    let mut reader = Reader::new(&site, "/events?after=2&feed=news", "").await;
    assert_eq!(reader.event().await, "change 4 news");
    // Nothing asked: from where the log stands.
    let mut reader = Reader::new(&site, "/events", "").await;
    assert_eq!(reader.block().await.unwrap(), "retry: 2000\nid: 4");
    site.store.announce(1, &["other"]);
    assert_eq!(reader.event().await, "change 5 other");
    site.closing.cancel();
    assert_eq!(reader.block().await, None, "a gateway that ends lets go of its streams");
    // A place that is gone, or never was, is said to be.
    let site = self::site();
    site.store.trim_to(2);
    let gone = problem(site.get("/changes?after=1").await, 410).await;
    assert_eq!((&gone["oldest"], &gone["newest"]), (&Value::from(3), &Value::from("3")));
    assert_eq!(told(&site, "/changes?after=2").await, ["3 other"]);
    let ahead = problem(site.get("/changes?after=4").await, 410).await;
    assert_eq!(ahead["newest"], "3");
    for last in ["1", "2.1", "99", "0"] {
        let mut reader = Reader::new(&site, "/events", last).await;
        assert_eq!(reader.event().await, format!("reset 3 {last}"));
    }
    let mut reader = Reader::new(&site, "/events", "3.0").await;
    assert_eq!(reader.event().await, "change 3 other");
    let bad = site.get_with("/events", &[("last-event-id", "yesterday")]).await;
    assert_eq!(problem(bad, 400).await["parameter"], "Last-Event-ID");
    // Another gateway of the same database may have told of an epoch that this one has not seen yet.
    let (site, address) = (self::site(), "/changes?after=4&wait=0");
    problem(site.get(address).await, 410).await;
    let elsewhere = |store: &TestStore| {
        store.announce(0, &["news"]);
    };
    site.store.finds(elsewhere);
    assert_eq!(told(&site, address).await, [""; 0]);
    // An EventSource comes back to a gateway that does not see its database: any other status than 200 would be the end.
    let site = freshness::behind();
    site.store.set_unseen(true);
    let answer = site.get_with("/events", &[("accept", "text/event-stream")]).await;
    assert_eq!(answer.status(), 200);
    assert_eq!(header(&answer, "x-content-type-options"), "nosniff");
    assert_eq!(text(answer).await, "retry: 20000\n: ask another gateway\n\n");
    problem(site.get("/events").await, 503).await;
}

#[tokio::test(start_paused = true)]
async fn a_silent_stream_says_that_it_is_there_and_where() {
    let site = site();
    let mut reader = Reader::new(&site, "/events?feed=news", "").await;
    let begun = tokio::time::Instant::now();
    reader.block().await;
    assert_eq!(reader.block().await.unwrap(), ": still here");
    assert_eq!(begun.elapsed().as_secs(), 15);
    site.store.announce(1, &["other"]);
    assert_eq!(reader.block().await.unwrap(), ": still here\nid: 4");
    assert_eq!(reader.block().await.unwrap(), ": still here");
    while reader.block().await.is_some() {}
    assert_eq!(begun.elapsed().as_secs(), 600, "its client comes back");
    // A gateway that cannot see its database would be silent whatever changes: who waits there is let go.
    let site = self::site();
    let mut reader = Reader::new(&site, "/events?feed=news", "").await;
    reader.block().await;
    assert_eq!(reader.block().await.unwrap(), ": still here");
    let begun = tokio::time::Instant::now();
    let waiting = site.get("/changes?after=3&wait=7");
    let ending = async {
        site.store.set_unseen(true);
        assert_eq!(reader.block().await, None);
        assert_eq!(begun.elapsed().as_secs(), 15);
    };
    let (answer, ()) = tokio::join!(waiting, ending);
    let said = problem(answer, 503).await["detail"].to_string();
    said.assert_shows(&["has not seen its database for "]);
    // Who did not wait is told what is there.
    assert_eq!(told(&site, "/changes?after=3&wait=0").await, [""; 0]);
    // Who takes nothing loses the place.
    let site = self::site();
    let open = || site.app.event_streams.open_streams();
    let mut idle = Reader::new(&site, "/events", "0").await;
    let mut taking = Reader::new(&site, "/events", "0").await;
    assert_eq!(idle.event().await, "change 1 news");
    let takes = async { while taking.block().await.is_some() {} };
    let watches = async {
        tokio::time::sleep(Duration::from_secs(29)).await;
        assert_eq!(open(), 2);
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(open(), 1, "more waits for the one than it takes");
        while idle.block().await.is_some() {}
    };
    let begun = tokio::time::Instant::now();
    tokio::join!(takes, watches);
    assert_eq!((open(), begun.elapsed().as_secs()), (0, 600), "and no stream lasts for ever");
}

#[tokio::test]
async fn only_so_many_event_streams_are_open() {
    let site = site();
    let open = || site.app.event_streams.open_streams();
    let mut readers = Vec::new();
    for number in 0..STREAMS_AT_ONCE {
        // One client has a share of them.
        let client = u8::try_from(number / 32).unwrap();
        readers.push(Reader::of(&site, client, "/events", "0").await);
        if number == 31 {
            let said = Reader::of(&site, 0, "/events", "2").await.block().await.unwrap();
            said.assert_shows(&["id: 2\n: 32 event streams of your address are open"]);
            assert_eq!(open(), 32);
        }
    }
    // To an EventSource any other status than 200 would be the end.
    let mut full = Reader::of(&site, 99, "/events", "2").await;
    let said = full.block().await.unwrap();
    said.assert_shows(&["retry: 20000\nid: 2\n: 256 event streams are open"]);
    assert_eq!(full.block().await, None);
    readers.pop();
    eventually(|| open() < STREAMS_AT_ONCE).await;
    let mut last = Reader::of(&site, 99, "/events", "2").await;
    assert_eq!(last.block().await.unwrap(), "retry: 2000\nid: 2");
    site.closing.cancel();
    assert_eq!(last.block().await, None, "nothing more comes, though there is more to tell");
}
