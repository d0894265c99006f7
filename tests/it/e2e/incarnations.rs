//! A gateway that is carried elsewhere: what a copy says to clients that are ahead of it.

use crate::e2e::support::{FEED, Format, Stage, Subscriber, described, on_disk, posts};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tidegate::app::{ConfigSource, export, import};
use tidegate_config::Overrides;

const SITE: &str = "http://gateway.example";

fn of(data: PathBuf) -> ConfigSource {
    let overrides = Overrides { data: Some(data), ..Overrides::default() };
    ConfigSource::File { path: None, overrides }
}

/// Runs a future where nothing else waits for it.
fn wait<T>(future: impl Future<Output = T>) -> T {
    tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(future))
}

fn write(folder: &Path) {
    let settings = of(folder.join("data"));
    wait(export(&folder.join("gate.tg"), &settings)).unwrap();
}

/// Brings the file in where the store was.
fn bring_in(stage_clock: tidegate_core::clock::ManualClock, folder: &Path) {
    let settings = of(folder.join("data"));
    wait(import(&folder.join("gate.tg"), &settings, false, Arc::new(stage_clock))).unwrap();
}

/// What a client of the log carries from one request to the next.
async fn place(stage: &Stage) -> String {
    let answer = stage.net.get(&format!("{SITE}/changes")).send().await.unwrap();
    answer.headers()["x-tidegate-after"].to_str().unwrap().to_owned()
}

/// The status of `/changes` after a place, and the kinds of changes.
async fn changes(stage: &Stage, after: &str) -> (u16, Vec<String>) {
    let address = format!("{SITE}/changes?after={after}&wait=0");
    let answer = stage.net.get(&address).send().await.unwrap();
    let status = answer.status().as_u16();
    let text = answer.text().await.unwrap();
    let lines = text.lines().filter(|_| status == 200);
    let lines = lines.map(|line| {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        described::check_named("ChangeLine", &line);
        line
    });
    let kinds = lines.flat_map(|line| line["changes"].as_array().unwrap().clone());
    (status, kinds.map(|change| change["kind"].as_str().unwrap().to_owned()).collect())
}

/// The first event of a stream that goes on from a place.
async fn event(stage: &Stage, last: &str) -> String {
    let asked = stage.net.get(&format!("{SITE}/events")).header("last-event-id", last);
    let mut stream = asked.send().await.unwrap();
    let mut seen = String::new();
    loop {
        let kind = seen.lines().find_map(|line| line.strip_prefix("event: "));
        if let Some(kind) = kind.filter(|_| seen.ends_with("\n\n")) {
            return kind.to_owned();
        }
        seen.push_str(std::str::from_utf8(&stream.chunk().await.unwrap().unwrap()).unwrap());
    }
}

/// The tag of the reader view.
async fn tag(stage: &Stage) -> String {
    let asked = stage.net.get(&format!("{SITE}/feeds/{FEED}")).header("a-im", "feed");
    asked.send().await.unwrap().headers()["etag"].to_str().unwrap().to_owned()
}

/// How a client of deltas with this tag is answered.
async fn delta(stage: &Stage, tag: &str) -> u16 {
    let asked = stage.net.get(&format!("{SITE}/feeds/{FEED}")).header("a-im", "feed");
    asked.header("if-none-match", tag).send().await.unwrap().status().as_u16()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_ahead_of_a_copy_is_reset() {
    let folder = tempfile::tempdir().unwrap();
    let mut stage = Stage::with(Format::Atom10, "", &on_disk(folder.path())).await;
    stage.posts(&posts(1..=4)).await;
    stage.posts(&posts(1..=5)).await;
    let at_copy = place(&stage).await;
    stage.restart_after(|| write(folder.path())).await;
    stage.posts(&posts(1..=6)).await;
    stage.posts(&posts(1..=7)).await;
    let mut follower = Subscriber::new(&stage.net, FEED, true);
    follower.consume().await;
    let (ahead, tag) = (place(&stage).await, tag(&stage).await);
    assert_eq!(changes(&stage, &ahead).await, (200, Vec::new()));

    // The folder is lost, and the copy takes its place.
    stage.later(Duration::from_secs(3600));
    let clock = stage.clock();
    stage
        .restart_after(|| {
            std::fs::remove_dir_all(folder.path().join("data")).unwrap();
            bring_in(clock, folder.path());
        })
        .await;
    // Each is reset in its own way, now and when the numbers have come to where they were.
    for newest in 8..=12 {
        assert_eq!(changes(&stage, &ahead).await.0, 410, "before post {newest}");
        assert_eq!(event(&stage, &ahead).await, "reset");
        assert_eq!(delta(&stage, &tag).await, 200);
        stage.poll_alone().await;
        stage.publishes(&posts(1..=newest));
        stage.poll_alone().await;
        if newest == 8 {
            let (status, kinds) = changes(&stage, &at_copy).await;
            // Who was not ahead goes on, and hears that the feed begins anew.
            assert_eq!((status, kinds.first().map(String::as_str)), (200, Some("feed")));
        }
    }
    follower.consume().await;
    assert_eq!(follower.resets, 1);
    let mut newcomer = Subscriber::new(&stage.net, FEED, true);
    newcomer.consume().await;
    assert_eq!(follower.known(), newcomer.known());
    stage.stop().await;
}
