//! Answers that are ready: whoever comes later gets what the first one got, and never what is no more.

use super::*;
use crate::client::Peer;
use crate::ready;
use axum::body::to_bytes;
use bytes::Bytes;
use doubles::TestStore;
use doubles::name;
use freshness::behind;
use futures_util::FutureExt as _;
use http::HeaderMap;
use sockets::{PATIENT, raw, serving};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use tidegate_core::model::FeedStanding;

const PEER: Peer = Peer(IpAddr::V4(Ipv4Addr::LOCALHOST));

impl Site {
    /// What is ready for a request.
    fn ready(&self, path: &str, headers: &[(&str, &str)]) -> Option<Response<Bytes>> {
        let answer = ready::answer(&self.room, PEER, &self.named(path, headers))?;
        // It is there as a whole.
        Some(answer.map(|body| to_bytes(body, usize::MAX).now_or_never().unwrap().unwrap()))
    }

    fn named(&self, path: &str, headers: &[(&str, &str)]) -> Request<Body> {
        let headers: Vec<_> = [("host", "here:8080")].into_iter().chain(headers.to_vec()).collect();
        request("GET", path, &headers, "")
    }

    /// Asks the router, and keeps what it answered.
    async fn routed(&self, path: &str, headers: &[(&str, &str)]) -> Response<Body> {
        let mut answer = self.ask(self.named(path, headers)).await;
        self.room.ready.keep(&mut answer);
        answer
    }
}

fn sorted(headers: &HeaderMap) -> Vec<(String, String)> {
    let pairs = headers.iter();
    let mut pairs: Vec<_> =
        pairs.map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned())).collect();
    pairs.sort();
    pairs
}

#[tokio::test(start_paused = true)]
async fn what_is_ready_is_what_the_router_answers() {
    let site = Site::announcing();
    // The documents of SUP are there once the log was read.
    for path in [
        "/feeds/news",
        "/feeds/news/sync",
        "/feeds/radio/complete",
        "/feeds/news?as=rss",
        "/sup.json",
    ] {
        for coding in ["", "gzip", "zstd;q=1, gzip;q=0.5"] {
            let asked = [("accept-encoding", coding)];
            assert!(site.ready(path, &asked).is_none(), "{path} {coding}");
            // The first answer reads the list of feeds, whose age what is ready has.
            drop(site.routed(path, &asked).await);
            let routed = site.routed(path, &asked).await;
            let ready = site.ready(path, &asked).unwrap_or_else(|| panic!("{path} {coding}"));
            assert_eq!((ready.status(), routed.status()), (StatusCode::OK, StatusCode::OK));
            let mut headers = routed.headers().clone();
            // HTTP says how long a body is that stands ready as a whole.
            let length =
                headers.remove("content-length").map(|length| length.to_str().unwrap().parse());
            assert!(
                length.is_none_or(|length| length == Ok(ready.body().len())),
                "{path} {coding}"
            );
            assert_eq!(sorted(ready.headers()), sorted(&headers), "{path} {coding}");
            let tag = header(&routed, "etag").to_owned();
            assert_eq!(ready.into_body(), bytes(routed).await, "{path} {coding}");
            let known = [asked[0], ("if-none-match", tag.as_str())];
            let unchanged = site.ready(path, &known).unwrap();
            let routed = site.routed(path, &known).await;
            assert_eq!((unchanged.status().as_u16(), routed.status().as_u16()), (304, 304));
            let mut headers = routed.headers().clone();
            // That nothing follows is not said on the wire.
            assert!(headers.remove("content-length").is_none_or(|length| length == "0"));
            assert_eq!(sorted(unchanged.headers()), sorted(&headers), "{path} {coding}");
            assert!(unchanged.into_body().is_empty());
            // Kept from a 304 it is the same.
            let again = site.ready(path, &asked).unwrap();
            assert_eq!(header(&again.map(Body::from), "etag"), tag);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_changed_is_asked_for_anew() {
    let site = Site::new();
    for _ in 0..2 {
        drop(site.routed("/feeds/news", &[]).await);
        drop(site.routed("/feeds/radio", &[]).await);
    }
    assert!(site.ready("/feeds/news", &[]).is_some());
    site.store.edit("news", |feed| feed.state.render_revision += 1);
    assert!(site.ready("/feeds/news", &[]).is_none());
    assert!(site.ready("/feeds/radio", &[]).is_some(), "another feed is as it was");
    site.store.edit_record("radio", |record| record.standing = FeedStanding::Gone);
    assert!(site.ready("/feeds/radio", &[]).is_none());
    assert_eq!(site.routed("/feeds/radio", &[]).await.status(), StatusCode::GONE);
    assert!(site.ready("/feeds/radio", &[]).is_none());
}

#[tokio::test(start_paused = true)]
async fn what_the_router_alone_can_answer_is_not_ready() {
    let site = Site::new();
    for path in ["/feeds/news", "/feeds/news?x=1", "/feeds/n%65ws", "/feeds/none", "/healthz"] {
        for _ in 0..2 {
            drop(site.routed(path, &[]).await);
        }
    }
    for path in ["/feeds/news?x=1", "/feeds/n%65ws", "/feeds/none", "/healthz"] {
        assert!(site.ready(path, &[]).is_none(), "{path}");
    }
    assert!(site.ready("/feeds/news", &[]).is_some());
    let is_ready = |request: Request<Body>| ready::answer(&site.room, PEER, &request).is_some();
    let asked = site.named("/feeds/news", &[]);
    assert!(is_ready(asked));
    for headers in [
        [("a-im", "feed")],
        [("host", "another")],
        [("accept", "application/rss+xml")],
        [("accept-encoding", "gzip")],
    ] {
        assert!(!is_ready(site.named("/feeds/news", &headers)), "{headers:?}");
    }
    assert!(is_ready(site.named("/feeds/news", &[("accept", "application/rss+xml, */*;q=0.1")])));
    assert!(!is_ready(request("GET", "/feeds/news", &[], "")), "no host is named");
    assert!(!is_ready(request("HEAD", "/feeds/news", &[("host", "here")], "")));
    assert!(!is_ready(request("GET", "/feeds/news", &[("host", "here")], "body")));
    let mut over_http_2 = site.named("/feeds/news", &[]);
    *over_http_2.version_mut() = http::Version::HTTP_2;
    assert!(!is_ready(over_http_2));
}

#[tokio::test(start_paused = true)]
async fn what_is_ready_counts_like_what_the_router_answers() {
    let site = Site::new();
    let counted = async |site: &Site| {
        let text = text(site.get("/metrics").await).await;
        let line = |begin: &str| {
            let found = text.lines().find(|line| line.starts_with(begin));
            found.and_then(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).unwrap_or(0)
        };
        let answers = "tidegate_http_requests_total{method=\"GET\",route=\"/feeds/{name}\"";
        (line(answers), line("tidegate_cache_hits_total"))
    };
    for _ in 0..2 {
        drop(site.routed("/feeds/news", &[]).await);
    }
    let before = counted(&site).await;
    for _ in 0..3 {
        assert!(site.ready("/feeds/news", &[]).is_some());
    }
    assert_eq!(counted(&site).await, (before.0 + 3, before.1 + 3));
    assert!(site.room.store.watch_state(&name("news")).is_some());
}

#[tokio::test(start_paused = true)]
async fn what_was_redacted_is_not_ready() {
    let site = Site::new();
    for _ in 0..2 {
        drop(site.routed("/feeds/news", &[]).await);
    }
    assert!(site.ready("/feeds/news", &[]).is_some());
    let mut late = site.ask(site.named("/feeds/news", &[])).await;
    let done = site.call("POST", "/feeds/news/items/a/redact", "{}").await;
    assert_eq!(done.status(), StatusCode::OK);
    assert!(site.ready("/feeds/news", &[]).is_none());
    // Nor what was made before, and is kept after it.
    site.room.ready.keep(&mut late);
    assert!(site.ready("/feeds/news", &[]).is_none());
}

/// What comes over the wire, line by line, is the same from the router, which alone answers `A-IM`.
#[tokio::test]
async fn the_wire_bears_the_same() {
    let site = Site::announcing();
    let (at, server) = serving(&site, PATIENT).await;
    let ask = async |begin: &str, more: &str| {
        let said = format!("{begin}\r\nhost: here:8080\r\nconnection: close\r\n{more}\r\n");
        let answer = raw(at, &said).await.1;
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let mut head: Vec<String> =
            head.lines().filter(|line| !line.starts_with("date: ")).map(str::to_owned).collect();
        head.sort();
        (head, body.to_owned())
    };
    let etag = |head: &[String]| {
        let found = head.iter().find_map(|line| line.strip_prefix("etag: "));
        found.unwrap().to_owned()
    };
    for path in ["/feeds/news", "/feeds/news/sync?as=rss", "/sup.json?seconds=60"] {
        for coding in ["", "gzip", "gzip;q=0", "br, gzip;q=0.9", "*"] {
            let with = format!("accept-encoding: {coding}\r\n");
            while site.ready(path, &[("accept-encoding", coding)]).is_none() {
                ask(&format!("GET {path} HTTP/1.1"), &with).await;
            }
            for version in ["HTTP/1.1", "HTTP/1.0"] {
                let get = format!("GET {path} {version}");
                let ready = ask(&get, &with).await;
                assert_eq!(ready, ask(&get, &format!("{with}a-im: x\r\n")).await, "{get} {with}");
                let tag = etag(&ready.0);
                for condition in [
                    format!("if-none-match: {tag}\r\n"),
                    format!("if-none-match: \"a\", W/{tag}\r\n"),
                    "if-none-match: \"a\"\r\nif-none-match: *\r\n".to_owned(),
                    "if-none-match: \"a\"\r\n".to_owned(),
                    "if-modified-since: Wed, 01 Jan 2098 00:00:00 GMT\r\n".to_owned(),
                    "if-modified-since: Thu, 01 Jan 1998 00:00:00 GMT\r\n".to_owned(),
                    "range: bytes=0-3\r\n".to_owned(),
                ] {
                    let more = format!("{with}{condition}");
                    let routed = ask(&get, &format!("{more}a-im: x\r\n")).await;
                    assert_eq!(ask(&get, &more).await, routed, "{get} {more}");
                }
            }
        }
    }
    site.closing.cancel();
    server.await.unwrap().unwrap();
}

/// How long it may take until something is ready.
const WARMING: Duration = Duration::from_secs(10);

/// The answer to a feed reader over the wire, without what names the second.
async fn read(at: SocketAddr) -> String {
    let said = "GET /feeds/news HTTP/1.1\r\nhost: here:8080\r\nconnection: close\r\n\r\n";
    let answer = raw(at, said).await.1;
    answer.lines().filter(|line| !line.starts_with("date: ")).collect::<Vec<_>>().join("\n")
}

/// Where what is in memory may be old, what is ready is answered after one look at the database, and only where the
/// look found nothing new.
#[tokio::test]
async fn what_is_ready_is_answered_after_a_look_where_it_may_be_old() {
    let site = behind();
    let (at, server) = serving(&site, PATIENT).await;
    let is_ready = || site.ready("/feeds/news", &[]).is_some();
    let warm = async || {
        let warming = async {
            while !is_ready() {
                read(at).await;
            }
        };
        tokio::time::timeout(WARMING, warming).await.unwrap();
    };
    let looks = || site.store.looks();
    let finds = |write: fn(&TestStore)| {
        site.store.finds(write);
    };
    warm().await;
    let (before, views) = (looks(), site.store.reads_of("skeletons"));
    let first = read(at).await;
    assert!(first.starts_with("HTTP/1.1 200"), "{first}");
    assert_eq!(read(at).await, first);
    assert_eq!((looks() - before, site.store.reads_of("skeletons")), (2, views));

    finds(|store| store.edit("news", |feed| feed.state.render_revision += 1));
    let changed = read(at).await;
    assert!(changed.starts_with("HTTP/1.1 200") && changed != first, "{changed}");

    warm().await;
    finds(|store| store.edit_record("news", |record| record.private = true));
    let private = read(at).await;
    assert!(private.starts_with("HTTP/1.1 404"), "{private}");
    assert!(!is_ready());

    site.store.edit_record("news", |record| record.private = false);
    warm().await;
    finds(|store| store.set_unseen(true));
    let unseen = read(at).await;
    assert!(unseen.starts_with("HTTP/1.1 503") && unseen.contains("retry-after"), "{unseen}");
    let metrics = text(site.get("/metrics").await).await;
    assert!(metrics.contains("route=\"/feeds/{name}\",status=\"503\"} 1\n"), "{metrics}");
    site.closing.cancel();
    server.await.unwrap().unwrap();
}
