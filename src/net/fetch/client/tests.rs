//! Tests against a publisher in this process.

use super::*;
use crate::fetch::clients::MAX_HEADERS;
use crate::fetch::{Fetch, Validators};
use crate::testing::{
    Publisher, all_private, document, literal, page, redirect, response, whole, with_access,
};
use std::io::Write as _;
use std::time::Duration;
use tidegate_core::model::{FeedAccess, FeedName, FeedRecord, FeedSource, Time};
use tower::ServiceExt as _;

fn quick() -> FetchLimits {
    FetchLimits {
        total: Duration::from_secs(30),
        idle: Duration::from_millis(400),
        wire_bytes: 100_000,
        decoded_bytes: 200_000,
        ..FetchLimits::STANDARD
    }
}

fn fetch(allow_private: AllowPrivate) -> Fetch {
    let about_url = Some("https://feeds.example.org/".to_owned());
    let limits = quick();
    let settings = FetchSettings { about_url, allow_private, limits, ..FetchSettings::default() };
    services(settings).unwrap().fetch
}

async fn ask(url: &str) -> Result<Fetched, FetchError> {
    fetch(AllowPrivate::All).oneshot(whole(url)).await
}

fn gzip(data: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

#[tokio::test]
async fn a_document_comes_with_everything_that_stood_around_it() {
    let publisher = Publisher::start(|_| {
        let headers = "content-type: application/atom+xml\r\netag: \"1\"\r\n\
             last-modified: some day\r\ncache-control: max-age=60\r\n";
        response("200 OK", headers, b"<feed/>")
    })
    .await;
    let fetched = ask(&publisher.url("/a?b#c")).await.unwrap();
    let found = document(&fetched);
    assert_eq!(found.bytes, "<feed/>");
    assert_eq!(found.content_type.as_deref(), Some("application/atom+xml"));
    assert_eq!(found.prints.wire, found.prints.body);
    assert!(!found.delta);
    assert_eq!(fetched.freshness, Some(Duration::from_secs(60)));
    assert_eq!(fetched.final_url, publisher.url("/a?b"));
    assert_eq!(fetched.validators.etag.as_deref(), Some("\"1\""));
    assert_eq!(fetched.validators.last_modified.as_deref(), Some("some day"));
    assert_eq!((fetched.moved_to, fetched.wire_bytes, fetched.status), (None, 7, 200));
    let head = publisher.heads().remove(0);
    let version = env!("CARGO_PKG_VERSION");
    for line in [
        "get /a?b http/1.1\r\n",
        &format!("user-agent: tidegate/{version} (+https://feeds.example.org/)\r\n"),
        "accept: application/atom+xml, ",
        "accept-encoding: gzip, br, zstd, deflate\r\n",
    ] {
        assert!(head.contains(line), "{line:?} is not in {head}");
    }
    for absent in ["if-none-match", "if-modified-since", "cookie", "referer", "authorization"] {
        assert!(!head.contains(absent), "{absent} is in {head}");
    }
}

#[tokio::test]
async fn validators_go_back_verbatim_and_only_to_whom_they_belong() {
    let publisher = Publisher::start(|head| {
        if head.starts_with("GET /old") {
            return response("302 Found", "location: /new\r\n", b"");
        }
        if head.to_lowercase().contains("if-none-match: w/\"x y\"\r\n") {
            return response("304 Not Modified", "etag: W/\"2\"\r\n", b"");
        }
        response("200 OK", "", b"<rss/>")
    })
    .await;
    let mut asked = whole(&publisher.url("/old"));
    asked.validators = Validators {
        etag: Some("W/\"x y\"".into()),
        last_modified: Some("whenever".into()),
        answered_by: Some(publisher.url("/new")),
        credentials_id: 0,
    };
    let fetched = fetch(AllowPrivate::All).oneshot(asked.clone()).await.unwrap();
    assert_eq!(fetched.answer, FetchAnswer::NotModified);
    // The ETag of a document that was not received would hide that document.
    assert_eq!(fetched.validators.etag.as_deref(), Some("W/\"x y\""));
    assert_eq!(fetched.validators.last_modified, None);
    let heads = publisher.heads();
    assert!(!heads[0].contains("if-none-match"), "{}", heads[0]);
    assert!(heads[1].contains("if-modified-since: whenever\r\n"), "{}", heads[1]);

    asked.validators.answered_by = Some(publisher.url("/other"));
    let fetched = fetch(AllowPrivate::All).oneshot(asked).await.unwrap();
    assert_eq!(document(&fetched).bytes, "<rss/>");
}

/// On-demand feeds are public, so an answer that its site restricts is refused; an operator's feed may have it.
#[tokio::test]
async fn what_is_not_for_everybody_is_not_taken_for_everybody() {
    let publisher = Publisher::start(|head| {
        let closed = "cache-control: private, max-age=60\r\nset-cookie: a=b\r\netag: \"1\"\r\n";
        match (head.starts_with("GET /open"), head.to_lowercase().contains("if-none-match")) {
            (true, _) => response("200 OK", "cache-control: max-age=60\r\n", b"<feed/>"),
            (false, true) => response("304 Not Modified", closed, b""),
            (false, false) => response("200 OK", closed, b"<feed/>"),
        }
    })
    .await;
    let name = FeedName::new("a").unwrap();
    let asked = |path: &str, etag: Option<&str>, feed: &FeedRecord| {
        let url = publisher.url(path);
        let answered_by = etag.map(|_| url.clone());
        let etag = etag.map(str::to_owned);
        let validators = Validators { etag, answered_by, ..Validators::default() };
        let request = FetchRequest { validators, ..whole(&url) };
        request.for_feed(feed, LeadScope::of_feed(feed))
    };
    let (feed, site) = (publisher.url("/f"), publisher.url("/"));
    let made = FeedRecord::on_demand(name.clone(), &feed, &site, Time::from_unix(0));
    let fetch = fetch(AllowPrivate::All);
    for (path, etag) in [("/closed", None), ("/closed", Some("\"1\""))] {
        let error = fetch.clone().oneshot(asked(path, etag, &made)).await.unwrap_err();
        let said = "the site says that this is not for everybody (Cache-Control: private)";
        assert_eq!((error.to_string().as_str(), error.blame()), (said, FetchBlame::Upstream));
    }
    assert!(fetch.clone().oneshot(asked("/open", None, &made)).await.is_ok());
    let own = FeedRecord::new(name, feed, FeedSource::File);
    assert!(fetch.oneshot(asked("/closed", None, &own)).await.is_ok());
}

#[tokio::test]
async fn an_answer_that_is_of_no_use_says_why() {
    let ok = |headers: &str, body: &[u8]| response("200 OK", headers, body);
    let raw = |header: &str, body: &[u8]| {
        [b"HTTP/1.1 200 OK\r\n".as_slice(), header.as_bytes(), b"\r\n\r\n", body].concat()
    };
    let (zipped, long) = ("content-encoding: gzip\r\n", vec![b'x'; 100_001]);
    let upstream = [
        (response("304 Not Modified", "", b""), "304 to a request without validators"),
        (ok(zipped, b"no gzip"), "is damaged or cut off"),
        (ok(zipped, &gzip(&vec![b' '; 200_001])), "more than 200000 bytes once decompressed"),
        (ok("", &long), "more than 100000 bytes"),
        (raw("connection: close", &long), "more than 100000 bytes"),
        (ok(&"x-y: z\r\n".repeat(MAX_HEADERS + 1), b""), "header fields beyond the limit"),
        (ok(&format!("x-y: {}\r\n", "x".repeat(MAX_HEADER_BYTES)), b""), "beyond the limit"),
    ];
    let network = [
        (raw("transfer-encoding: chunked", b"5\r\n<feed\r\n"), "the connection ended before"),
        (raw("content-length: 100", b"<feed/>"), "the connection ended before"),
        (Vec::new(), "did not answer within 0.4 s"),
        (raw("content-length: 100", b"<feed/>STALL"), "did not send anything within 0.4 s"),
        (b"SSH-2.0-server\r\n\r\n".to_vec(), "does not speak HTTP"),
        (raw("content-length: 7x", b"<feed/>"), "does not speak HTTP"),
    ];
    let upstream = upstream.map(|case| (case, FetchBlame::Upstream));
    let silent = Publisher::start(|_| Vec::new()).await;
    let limits = FetchLimits { total: Duration::from_millis(50), ..quick() };
    let hasty = services(FetchSettings { limits, ..all_private() }).unwrap().fetch;
    let error = hasty.oneshot(whole(&silent.url("/"))).await.unwrap_err();
    assert!(matches!(error, FetchError::Timeout { limit, .. } if limit == limits.total));
    // The same bytes as before are not decompressed.
    let publisher = Publisher::start(move |_| response("200 OK", zipped, b"no gzip")).await;
    let known_wire = Some(xxhash_rust::xxh3::xxh3_128(b"no gzip"));
    let asked = FetchRequest { known_wire, ..whole(&publisher.url("/")) };
    let fetched = fetch(AllowPrivate::All).oneshot(asked).await.unwrap();
    assert_eq!((fetched.answer, fetched.wire_bytes), (FetchAnswer::Same, 7));
    let said = ask("http://127.0.0.1:1/").await.unwrap_err().to_string();
    assert!(said.starts_with("could not connect to 127.0.0.1: Connection refused"), "{said}");
    let cases = upstream.into_iter().chain(network.map(|it| (it, FetchBlame::Network)));
    let fetch = fetch(AllowPrivate::All);
    for ((answer, why), blame) in cases {
        let publisher = Publisher::start(move |_| answer.clone()).await;
        let error = fetch.clone().oneshot(whole(&publisher.url("/"))).await.unwrap_err();
        assert!(error.to_string().contains(why), "{why}: {error}");
        assert_eq!(error.blame(), blame, "{why}");
    }
}

#[tokio::test]
async fn bad_header_lines_cost_no_document() {
    for (line, content_type) in [
        ("content-type: a/b;\r\n c=d", Some("a/b; c=d")),
        ("content-type : a/b", Some("a/b")),
        ("content type: a/b", None),
        ("no colon", None),
    ] {
        let answer = response("200 OK", &format!("{line}\r\n"), b"<feed/>");
        let publisher = Publisher::start(move |_| answer.clone()).await;
        let fetched = ask(&publisher.url("/")).await.unwrap();
        assert_eq!(document(&fetched).content_type.as_deref(), content_type, "{line}");
    }
}

#[tokio::test]
async fn redirects_are_followed_and_shown() {
    let publisher = Publisher::start(|head| match head.split(' ').nth(1) {
        Some("/a") => response("301 Moved", "location: /b\r\n", b""),
        Some("/b") => response("308 Moved", "location: c\r\n", b""),
        Some("/c") => response("307 Moved", "location: /d\r\n", b""),
        _ => response("200 OK", "", b"<feed/>"),
    })
    .await;
    let first = FetchRequest { start: None, ..whole(&publisher.url("/a")) };
    let again = FetchRequest { start: Some(publisher.url("/c")), ..first.clone() };
    for asked in [first, again] {
        let fetched = fetch(AllowPrivate::All).oneshot(asked).await.unwrap();
        let (last, moved) = (publisher.url("/d"), publisher.url("/c"));
        assert_eq!((fetched.final_url, fetched.moved_to), (last, Some(moved)));
    }
    let asked: Vec<_> =
        publisher.heads().iter().map(|h| h.split(' ').nth(1).unwrap().to_owned()).collect();
    assert_eq!(asked, ["/a", "/b", "/c", "/d", "/c", "/d"]);
    // A failure says where they led, unless that is secret.
    let publisher = Publisher::start(|head| match head.split(' ').nth(1) {
        Some("/old") => response("301 Moved", "location: /new?key=k-0123456789abcdef\r\n", b""),
        _ => response("404 Not Found", "", b""),
    })
    .await;
    let asked = whole(&publisher.url("/old"));
    let said = |error: FetchError| error.to_string();
    let open = fetch(AllowPrivate::All).oneshot(asked.clone()).await.unwrap_err();
    let led = format!("its redirects led to {}", publisher.url("/new?"));
    assert!(said(open.clone()).contains(&led) && !said(open.clone()).contains("k-0"), "{open}");
    let asked = FetchRequest { is_secret: true, ..asked };
    let closed = said(fetch(AllowPrivate::All).oneshot(asked).await.unwrap_err());
    assert!(closed.ends_with(&format!("led to {}", publisher.url(""))), "{closed}");
}

#[tokio::test]
async fn cookies_live_within_one_fetch() {
    let publisher = Publisher::start(|head| match head {
        head if head.contains("cookie: own=1; seen=2\r\n") => response("200 OK", "", b"<feed/>"),
        head if head.starts_with("GET /auth") => {
            response("302 Found", "location: /feed\r\nset-cookie: seen=2; Path=/\r\n", b"")
        }
        _ => response("302 Found", "location: /auth\r\n", b""),
    })
    .await;
    let url = publisher.url("/feed");
    let access = FeedAccess { cookie: Some(literal("own=1")), ..FeedAccess::default() };
    let asked = with_access(&url, &access);
    let fetch = fetch(AllowPrivate::All);
    for _ in 0..2 {
        let fetched = fetch.clone().oneshot(asked.clone()).await.unwrap();
        assert_eq!(fetched.final_url, url);
    }
    let with_cookie = |head: &String| head.contains("seen=2");
    assert_eq!(publisher.heads().iter().filter(|head| with_cookie(head)).count(), 2);
    // An answer for everybody must not need a cookie.
    let asked = FetchRequest { for_everybody: true, ..asked };
    let refused = fetch.oneshot(asked).await;
    assert!(refused.unwrap_err().to_string().ends_with("sets a cookie on the way"));
}

#[tokio::test]
async fn who_accepts_pages_alone_is_asked_again_and_whole_parts_are_documents() {
    let publisher = Publisher::start(|head| match head.split(' ').nth(1) {
        Some("/page") if !head.contains("text/html") => response("406 Not Acceptable", "", b""),
        Some("/made") => response("201 Created", "", b"<feed/>"),
        Some("/all") => response("206 Part", "content-range: bytes 0-6/7\r\n", b"<feed/>"),
        Some("/part") => response("206 Part", "content-range: bytes 0-6/9\r\n", b"<feed/>"),
        Some("/unknown") => response("206 Part", "content-range: bytes 0-6/*\r\n", b"<feed/>"),
        Some("/none") => response("204 No Content", "", b""),
        _ => response("200 OK", "", b"<feed/>"),
    })
    .await;
    for path in ["/page", "/made", "/all"] {
        let answer = ask(&publisher.url(path)).await.unwrap().answer;
        assert!(matches!(answer, FetchAnswer::Document(_)), "{path}");
    }
    for (path, status) in [("/part", 206), ("/unknown", 206), ("/none", 204)] {
        let error = ask(&publisher.url(path)).await.unwrap_err();
        let is_named = matches!(error, FetchError::Status { code, .. } if code == status);
        assert!(is_named, "{path}: {error:?}");
    }
}

#[tokio::test]
async fn the_guard_stands_before_every_hop_and_behind_every_name() {
    let inside = Publisher::start(|_| response("200 OK", "", b"secret")).await;
    let (literal, name) = (inside.url("/"), format!("http://localhost:{}/", inside.port));
    let targets = [literal.clone(), name.clone(), "file:///etc/passwd".to_owned()];
    let entry = Publisher::start(move |head| {
        let at: usize = head.split(['/', ' ']).nth(2).unwrap().parse().unwrap();
        redirect("302 Found", &targets[at])
    })
    .await;
    let listed = AllowPrivate::only([format!("127.0.0.1:{}", entry.port).as_str()]).unwrap();
    for at in 0..3 {
        let asked = whole(&entry.url(&format!("/{at}")));
        let error = fetch(listed.clone()).oneshot(asked).await.unwrap_err();
        assert!(matches!(error, FetchError::Refused { hop: 1, .. }), "{at}: {error:?}");
    }
    let closed = services(FetchSettings::default()).unwrap();
    for url in [literal, name] {
        let fetched = closed.fetch.clone().oneshot(whole(&url)).await.unwrap_err();
        let called = closed.call.clone().oneshot(page(&url)).await.unwrap_err();
        for error in [fetched, called] {
            assert!(matches!(error, FetchError::Refused { hop: 0, .. }), "{url}: {error:?}");
        }
    }
    assert_eq!(inside.heads().len(), 0);
    let listed = AllowPrivate::only([format!("localhost:{}", inside.port).as_str()]).unwrap();
    let url = format!("http://localhost:{}/", inside.port);
    assert!(fetch(listed).oneshot(whole(&url)).await.is_ok());
}

/// The pause belongs to the host that answered.
#[tokio::test]
async fn statuses_carry_what_the_publisher_asks() {
    let busy = Publisher::start(|_| response("503 X", "retry-after: 90\r\n", b"sorry")).await;
    let (elsewhere, retry_after) = (busy.url("/503"), Some(Duration::from_secs(90)));
    let there = elsewhere.clone();
    let before = Publisher::start(move |_| redirect("302 Found", &there)).await;
    for (url, redirected_to) in [(elsewhere.clone(), None), (before.url("/"), Some(elsewhere))] {
        let error = ask(&url).await.unwrap_err();
        assert_eq!(error, FetchError::Status { code: 503, retry_after, redirected_to, says: None });
    }
}

/// RFC 3229: a delta is requested against a known document and must apply to it.
#[tokio::test]
async fn a_delta_that_is_asked_for_begins_with_what_is_known() {
    let publisher = Publisher::start(|head| {
        let base = head.lines().next().unwrap().split('?').nth(1).unwrap_or_default();
        let base = base.split(' ').next().unwrap_or_default().replace('~', "\"");
        let base = if base.is_empty() { base } else { format!("delta-base: {base}\r\n") };
        response("226 IM Used", &format!("im: feed\r\n{base}"), b"<feed/>")
    })
    .await;
    for (path, etag, is_taken) in [
        ("/", Some("\"1\""), true),
        ("/", Some("W/\"1\""), true),
        ("/?~1~", Some("\"1\""), true),
        ("/?~2~", Some("\"1\""), false),
        ("/", None, false),
    ] {
        let url = publisher.url(path);
        let validators = Validators {
            etag: etag.map(str::to_owned),
            last_modified: Some("Fri, 20 Nov 2026 16:20:05 GMT".to_owned()),
            answered_by: Some(url.clone()),
            credentials_id: 0,
        };
        let asked = FetchRequest { validators, deltas: true, ..whole(&url) };
        match fetch(AllowPrivate::All).oneshot(asked).await {
            Ok(fetched) => assert!(is_taken && document(&fetched).delta, "{path} {etag:?}"),
            Err(error) => {
                let is_other = error.to_string().contains("a delta from a document that is not");
                assert_eq!((is_other, is_taken), (true, false), "{path} {etag:?}");
            }
        }
        let head = publisher.heads().pop().unwrap();
        assert_eq!(head.contains("a-im: feed"), etag.is_some(), "{head}");
    }
    let _ = ask(&publisher.url("/")).await;
    assert!(!publisher.heads().pop().unwrap().contains("a-im"), "who polls reads the whole");
}
