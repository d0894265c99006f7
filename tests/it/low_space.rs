//! A gateway whose disk is nearly full takes nothing new in, goes on being read, and goes on by itself
//! when there is space again.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tidegate::app::{Gateway, Outside};
use tidegate_config as config;
use tidegate_store::{FreeSpace, MeasuredSpace};

const TOKEN: &str = "a-token-for-this-test";
const MIB: u64 = 1 << 20;

/// A gateway, and the bytes that its disk has free.
struct Bench {
    gateway: Gateway,
    space: Arc<FreeSpace>,
    free: Arc<AtomicU64>,
}

impl Bench {
    async fn new() -> Self {
        let text = format!(
            "[server]\nlisten = \"127.0.0.1:0\"\nadmin_token = \"{TOKEN}\"\n\
             [store]\nkind = \"memory\"\n[polling]\nallow_private = true\n"
        );
        let config = config::check("t.toml", &text).unwrap().config;
        let free = Arc::new(AtomicU64::new(1 << 40));
        let left = Arc::clone(&free);
        let measure = move || {
            let free = left.load(Ordering::SeqCst);
            Ok(MeasuredSpace { free, total: 1 << 40 })
        };
        let space = Arc::new(FreeSpace::measured_by(config.store.space.min_free, measure));
        let outside = Outside { space: Some(Arc::clone(&space)), ..Outside::default() };
        let gateway = Gateway::start(&config, outside).await.unwrap();
        Self { gateway, space, free }
    }

    fn has_free(&self, bytes: u64) {
        self.free.store(bytes, Ordering::SeqCst);
        self.space.measure();
    }

    async fn call(&self, method: &str, path: &str, body: &str) -> (u16, String) {
        let address = format!("http://{}{path}", self.gateway.address());
        let method = reqwest::Method::from_bytes(method.as_bytes()).unwrap();
        let form = if path == "/websub" {
            "application/x-www-form-urlencoded"
        } else {
            "application/json"
        };
        let call = reqwest::Client::new().request(method, address).bearer_auth(TOKEN);
        let answer = call.header("content-type", form).body(body.to_owned()).send().await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    }
}

#[tokio::test]
async fn nothing_new_is_taken_in_while_space_is_low() {
    let bench = Bench::new().await;
    let made = bench.call("PUT", "/api/v1/feeds/own", "{\"local\": true}").await;
    assert!(made.0 < 300, "{made:?}");
    let upstream = "{\"url\": \"http://127.0.0.1:1/feed.xml\"}";
    assert_eq!(bench.call("PUT", "/api/v1/feeds/news", upstream).await.0, 201);
    let item = |title: &str| format!("{{\"title\": \"{title}\"}}");
    let items = "/api/v1/feeds/own/items";
    let (status, first) = bench.call("POST", items, &item("first")).await;
    assert_eq!(status, 201, "{first}");
    let first: serde_json::Value = serde_json::from_str(&first).unwrap();
    let first = format!("{items}/{}", first["sync_id"].as_str().unwrap());

    bench.has_free(200 * MIB);
    let subscription = format!(
        "hub.mode=subscribe&hub.callback=http://127.0.0.1:1/&hub.topic=http://{}/feeds/own",
        bench.gateway.address()
    );
    for (method, path, body, refused) in [
        ("POST", items, item("second"), 507),
        ("PUT", &*first, item("changed"), 507),
        ("PUT", "/api/v1/feeds/other", "{\"local\": true}".to_owned(), 507),
        ("POST", "/api/v1/feeds/news/poll", String::new(), 507),
        ("POST", "/websub", subscription, 503),
    ] {
        let (status, said) = bench.call(method, path, &body).await;
        assert_eq!(status, refused, "{method} {path}: {said}");
        for part in ["200.0 MiB", "256.0 MiB", "store.min_free"] {
            assert!(said.contains(part), "{method} {path}: {said}");
        }
    }
    // Reading goes on, and so does what takes nothing in.
    assert!(bench.call("GET", "/feeds/own", "").await.1.contains("first"));
    let (status, said) = bench.call("GET", "/readyz", "").await;
    assert!(status == 200 && said.contains("200.0 MiB"), "{status} {said}");
    let (_, news) = bench.call("GET", "/api/v1/feeds/news", "").await;
    assert!(news.contains("it waits: nothing new is taken in"), "{news}");
    assert_eq!(bench.call("DELETE", &first, "").await.0, 200);
    assert_eq!(bench.call("DELETE", "/api/v1/feeds/news", "").await.0, 204);

    // A little more than the limit is not enough yet.
    bench.has_free(300 * MIB);
    assert_eq!(bench.call("POST", items, &item("second")).await.0, 507);
    bench.has_free(400 * MIB);
    assert_eq!(bench.call("POST", items, &item("second")).await.0, 201);
    assert_eq!(bench.call("GET", "/readyz", "").await.1, "ready\n");
    bench.gateway.stop().await.unwrap();
}
