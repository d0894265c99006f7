//! A clock that jumps, before a whole gateway with a publisher beside it.

use std::sync::{Arc, Mutex};
use tidegate::app::{Gateway, Outside};
use tidegate_config as config;
use tidegate_core::clock::ManualClock;
use tidegate_core::model::{FeedName, FeedState, Time};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// 2026-06-01T00:00:00Z.
const NOW: i64 = 1_780_272_000;
const YEAR: i64 = 365 * 86_400;

fn feed(edited: u32) -> String {
    let entries = (0..6).map(|n| {
        let text = if n == edited % 6 { edited } else { 0 };
        format!("<entry><id>urn:{n}</id><title>Post {n}</title><content>{text}</content></entry>")
    });
    let entries: String = entries.collect();
    format!(
        "<feed xmlns='http://www.w3.org/2005/Atom'><id>urn:f</id><title>T</title>{entries}</feed>"
    )
}

async fn publisher(document: Arc<Mutex<String>>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/feed", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.read(&mut [0; 4096]).await;
            let body = document.lock().unwrap().clone();
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                body.len()
            );
            let _ = stream.write_all((head + &body).as_bytes()).await;
        }
    });
    url
}

#[tokio::test(flavor = "multi_thread")]
async fn ticks_go_on_whatever_the_clock_does() {
    let document = Arc::new(Mutex::new(feed(0)));
    let url = publisher(Arc::clone(&document)).await;
    let text = format!(
        "[server]\nlisten = \"127.0.0.1:0\"\nadmin_token = \"a-token-for-tests\"\n\
         [store]\nkind = \"memory\"\n[polling]\nallow_private = true\n\
         [[feed]]\nname = \"news\"\nurl = \"{url}\"\n"
    );
    let config = config::check("test", &text).unwrap().config;
    let clock = ManualClock::at(Time::from_unix(NOW));
    let gateway =
        Gateway::start(&config, Outside { clock: Arc::new(clock.clone()), ..Outside::default() })
            .await
            .unwrap();
    let name = FeedName::new("news").unwrap();
    let operator = gateway.operator();
    operator.poll_now(&name).await.unwrap();
    let state = || async { gateway.store().state(&name).await.unwrap().unwrap() };
    let mut before: FeedState = state().await;
    let jumps = [-YEAR, 0, -50 * YEAR, 1, YEAR, 0, 7000 * YEAR, -YEAR, 0];
    for (edited, jump) in (1..).zip(jumps) {
        clock.set(Time::from_unix(NOW + jump));
        *document.lock().unwrap() = feed(edited);
        operator.poll_now(&name).await.unwrap();
        let after = state().await;
        assert!(after.tick > before.tick, "{jump}");
        let text = after.tick.map(|tick| tick.to_string()).unwrap_or_default();
        assert_eq!(text.len(), "2026-06-01T00:00:00Z".len(), "{jump}: {text}");
        assert!(after.window_start >= before.window_start, "{jump}");
        assert!(after.updated_at > before.updated_at, "{jump}");
        assert_eq!((after.current, after.living, after.tombstones), (6, 6, 0), "{jump}");
        before = after;
    }
    gateway.stop().await.unwrap();
}

/// What a change made while the clock was ahead is told, for as long as it is ahead.
#[tokio::test(flavor = "multi_thread")]
async fn a_tick_that_is_far_ahead_is_reported() {
    let document = Arc::new(Mutex::new(feed(0)));
    let url = publisher(Arc::clone(&document)).await;
    let text = format!(
        "[server]\nlisten = \"127.0.0.1:0\"\nadmin_token = \"a-token-for-tests\"\n\
         [store]\nkind = \"memory\"\n[polling]\nallow_private = true\n\
         [[feed]]\nname = \"news\"\nurl = \"{url}\"\n"
    );
    let config = config::check("test", &text).unwrap().config;
    let clock = ManualClock::at(Time::from_unix(NOW));
    let outside = Outside { clock: Arc::new(clock.clone()), ..Outside::default() };
    let gateway = Gateway::start(&config, outside).await.unwrap();
    let (name, operator) = (FeedName::new("news").unwrap(), gateway.operator());
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let get = async |path: &str| {
        let asked = client
            .get(format!("http://{}{path}", gateway.address()))
            .bearer_auth("a-token-for-tests");
        asked.send().await.unwrap().text().await.unwrap()
    };
    let told = async || {
        let metrics = get("/metrics").await;
        let line = metrics.lines().find(|line| line.starts_with("tidegate_tick_lead_seconds "));
        let gauge: i64 = line.unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let of_feed: serde_json::Value =
            serde_json::from_str(&get("/api/v1/feeds/news").await).unwrap();
        let all: serde_json::Value = serde_json::from_str(&get("/api/v1/feeds").await).unwrap();
        assert_eq!(all["feeds"][0]["tick_lead"], of_feed["tick_lead"]);
        assert_eq!(of_feed["tick_lead"].as_i64().unwrap_or(0), gauge);
        let is_shown = get("/").await.contains("news 364 days ahead: the clock was ahead then");
        (gauge, is_shown)
    };
    operator.poll_now(&name).await.unwrap();
    assert_eq!(told().await, (0, false));
    // Nothing tells while it is ahead; a feed's times are told once it is right again.
    clock.leap(Time::from_unix(NOW + YEAR));
    *document.lock().unwrap() = feed(1);
    operator.poll_now(&name).await.unwrap();
    assert_eq!(told().await, (0, false));
    clock.leap(Time::from_unix(NOW + 60));
    assert_eq!(told().await, (YEAR - 60, true));
    gateway.stop().await.unwrap();
}
