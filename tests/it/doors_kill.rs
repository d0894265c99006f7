//! `serve` is killed at random moments while two event streams and a long poll follow its changes.
//! Each goes on where it was, and at the end has seen what the change log holds: no gap, nothing
//! twice.
//!
//! `TIDEGATE_KILLS` sets how many times; a few where it is not set.

use crate::support::process;

use process::{Process, TOKEN};
use serde_json::Value;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::process::Child;

const FEEDS: [&str; 4] = ["ash", "birch", "cedar", "elm"];

/// A feed that has one more post at every request.
fn document(step: u64) -> String {
    let mut xml = String::from(
        "<rss version=\"2.0\"><channel><title>Churn</title><link>http://churn.example/</link>\
         <description>d</description>",
    );
    for n in (step + 1..=step + 10).rev() {
        let (day, hour) = (1 + n / 24 % 28, n % 24);
        xml.push_str(&format!(
            "<item><title>Post {n}</title><guid isPermaLink=\"false\">post-{n}</guid>\
             <pubDate>{day:02} Jan 2026 {hour:02}:00:00 GMT</pubDate>\
             <description>Text of {n}</description></item>"
        ));
    }
    xml + "</channel></rss>"
}

async fn publisher() -> u16 {
    let step = Arc::new(AtomicU64::new(0));
    let app = axum::Router::new().fallback(move || {
        let step = step.fetch_add(1, Ordering::SeqCst);
        async move { ([("content-type", "application/rss+xml")], document(step)) }
    });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    port
}

async fn start(folder: &std::path::Path) -> (Child, String) {
    let process = Process::configured(folder).await;
    (process.child, process.address)
}

/// What a client has seen, as `epoch feed tick`.
type Seen = Arc<Mutex<Vec<String>>>;
/// Where the gateway is now.
type Where = Arc<Mutex<String>>;

fn change(epoch: &Value, change: &Value) -> String {
    let text = |key: &str| change[key].as_str().unwrap_or_else(|| panic!("{change}"));
    format!("{epoch} {} {}", text("feed"), text("tick"))
}

/// Reads the event stream, and comes back with the last id whenever it ends.
async fn events(client: reqwest::Client, gateway: Where, query: &str, seen: Seen) {
    let mut last = "0".to_owned();
    loop {
        let address = format!("{}/events{query}", gateway.lock().unwrap());
        let asked = client.get(address).header("last-event-id", &last).send().await;
        let Ok(mut stream) = asked else {
            tokio::time::sleep(Duration::from_millis(20)).await;
            continue;
        };
        assert_eq!(stream.status(), 200);
        let mut text = String::new();
        while let Ok(Some(chunk)) = stream.chunk().await {
            text.push_str(std::str::from_utf8(&chunk).unwrap());
            while let Some((block, rest)) = text.split_once("\n\n") {
                let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name));
                assert_ne!(field("event: "), Some("reset"), "{block}");
                if let Some(data) = field("data: ") {
                    let data: Value = serde_json::from_str(data).unwrap();
                    seen.lock().unwrap().push(change(&data["epoch"], &data));
                }
                if let Some(id) = field("id: ") {
                    id.clone_into(&mut last);
                }
                text = rest.to_owned();
            }
        }
    }
}

/// Asks for changes, again and again.
async fn changes(client: reqwest::Client, gateway: Where, seen: Seen) {
    let mut after = "0".to_owned();
    loop {
        let address = format!("{}/changes?after={after}&wait=2", gateway.lock().unwrap());
        let answer = match client.get(address).send().await {
            Ok(answer) => answer,
            Err(_) => {
                tokio::time::sleep(Duration::from_millis(20)).await;
                continue;
            }
        };
        assert_eq!(answer.status(), 200);
        let next = answer.headers()["x-tidegate-after"].to_str().unwrap().to_owned();
        let Ok(text) = answer.text().await else { continue };
        for line in text.lines() {
            let line: Value = serde_json::from_str(line).unwrap();
            for one in line["changes"].as_array().unwrap() {
                seen.lock().unwrap().push(change(&line["epoch"], one));
            }
        }
        after = next;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_comes_back_misses_nothing_and_gets_nothing_twice() {
    let kills: u32 = std::env::var("TIDEGATE_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(5);
    let folder = tempfile::tempdir().unwrap();
    let upstream = publisher().await;
    let mut config = String::from(
        "[server]\nlisten = \"127.0.0.1:0\"\n[polling]\nallow_private = true\nhost_spacing = \"0s\"\n",
    );
    for feed in FEEDS {
        let url = format!("http://127.0.0.1:{upstream}/{feed}");
        config.push_str(&format!("[[feed]]\nname = \"{feed}\"\nurl = \"{url}\"\n"));
    }
    std::fs::write(folder.path().join("t.toml"), config).unwrap();
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder().no_proxy().build().unwrap();

    let (mut child, address) = start(folder.path()).await;
    let gateway: Where = Arc::new(Mutex::new(address));
    let (all, some, polled) = (Seen::default(), Seen::default(), Seen::default());
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(events(client.clone(), Arc::clone(&gateway), "", Arc::clone(&all)));
    let query = "?feed=birch&feed=elm";
    tasks.spawn(events(client.clone(), Arc::clone(&gateway), query, Arc::clone(&some)));
    tasks.spawn(changes(client.clone(), Arc::clone(&gateway), Arc::clone(&polled)));

    let mut seed = u64::from(std::process::id());
    for round in 0..=kills {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let pause = Duration::from_millis(200 + (seed >> 33) % 700);
        let at = gateway.lock().unwrap().clone();
        let mut churn = tokio::task::JoinSet::new();
        for feed in FEEDS {
            let (client, address) = (client.clone(), format!("{at}/api/v1/feeds/{feed}/poll"));
            churn.spawn(async move {
                while let Ok(answer) = client.post(&address).bearer_auth(TOKEN).send().await {
                    assert_eq!(answer.status(), 200);
                }
            });
        }
        tokio::time::sleep(pause).await;
        if round < kills {
            child.kill().await.unwrap();
            churn.shutdown().await;
            let (again, address) = start(folder.path()).await;
            child = again;
            *gateway.lock().unwrap() = address;
        } else {
            churn.shutdown().await;
        }
    }
    // What the log holds at the end, once nothing is polled any more.
    let log = Seen::default();
    let at = gateway.lock().unwrap().clone();
    let mut newest = String::new();
    loop {
        let text = client.get(format!("{at}/changes")).send().await.unwrap().text().await.unwrap();
        if text == newest {
            break;
        }
        newest = text;
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    let newest: Value = serde_json::from_str(newest.trim()).unwrap();
    let mut after = Value::from("0");
    while after != newest["id"] {
        let place = after.as_str().unwrap();
        let address = format!("{at}/changes?after={place}&wait=0");
        let text = client.get(address).send().await.unwrap().text().await.unwrap();
        for line in text.lines() {
            let line: Value = serde_json::from_str(line).unwrap();
            let changes = line["changes"].as_array().unwrap().iter();
            log.lock().unwrap().extend(changes.map(|one| change(&line["epoch"], one)));
            after = line["id"].clone();
        }
    }
    let log = log.lock().unwrap().clone();
    assert!(log.len() > kills as usize * FEEDS.len(), "only {} changes", log.len());
    let named: Vec<String> =
        log.iter().filter(|c| c.contains(" birch ") || c.contains(" elm ")).cloned().collect();
    for (who, seen, wanted) in [
        ("the stream of all feeds", &all, &log),
        ("the stream of two feeds", &some, &named),
        ("the long poll", &polled, &log),
    ] {
        for _ in 0..600 {
            if seen.lock().unwrap().len() >= wanted.len() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert_eq!(*seen.lock().unwrap(), *wanted, "{who}");
    }
    tasks.shutdown().await;
    child.kill().await.unwrap();
}
