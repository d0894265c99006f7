//! Answers that are given again: whoever asks later gets what the first one got, and never what is no more.

use super::private::{ANN, SECRET, readers};
use super::sockets::{PATIENT, raw, serving};
use super::*;
use crate::client::Peer;
use crate::connections::{Connection, SweepClock};
use crate::ready::{AnswerBasis, PlainRequest};
use crate::router::ListenerSite;
use crate::site_service::SentContent;
use http::HeaderMap;

const PEER: Peer = Peer(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST));
const HOST: (&str, &str) = ("host", "here:8080");

fn listener(site: &Site) -> ListenerSite {
    ListenerSite::new(Arc::clone(&site.app), Listener::Everybody)
}

fn asking(path: &str, headers: &[(&str, &str)]) -> Request<Body> {
    let headers: Vec<_> = [HOST].into_iter().chain(headers.to_vec()).collect();
    request("GET", path, &headers, "")
}

fn find(of: &ListenerSite, request: &Request<Body>) -> Option<Response<SentContent>> {
    let connection = Arc::new(Connection::new(SweepClock::default(), false));
    let plain = PlainRequest::read(request)?;
    of.ready.answer(&of.app, (PEER, &connection), (&plain, request))
}

fn ready(of: &ListenerSite, path: &str, headers: &[(&str, &str)]) -> Response<SentContent> {
    find(of, &asking(path, headers)).unwrap_or_else(|| panic!("{path} {headers:?} is not ready"))
}

fn is_ready(of: &ListenerSite, path: &str, headers: &[(&str, &str)]) -> bool {
    find(of, &asking(path, headers)).is_some()
}

/// Has the normal path answer, and keeps that.
async fn made(of: &ListenerSite, path: &str, headers: &[(&str, &str)]) -> Response<Body> {
    let mut request = asking(path, headers);
    let plain = PlainRequest::read(&request);
    // The first who asks has it read.
    of.app.directory.listing_or_error().await.unwrap();
    let basis = AnswerBasis::now(&of.app);
    request.extensions_mut().insert(PEER);
    let mut answer = of.answer(request).await;
    if let Some(kept_for) = plain.zip(basis) {
        keep(of, kept_for, &mut answer);
    }
    answer
}

fn keep(of: &ListenerSite, kept_for: (PlainRequest, AnswerBasis), answer: &mut Response<Body>) {
    of.ready.keep((&of.app.metrics, of.app.clock.now()), kept_for, answer);
}

/// The headers of an answer. How long the body is that is handed over whole, HTTP says.
fn headers(headers: &HeaderMap) -> Vec<(String, String)> {
    let pairs = headers.iter().filter(|(name, _)| *name != http::header::CONTENT_LENGTH);
    let mut pairs: Vec<_> =
        pairs.map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned())).collect();
    pairs.sort();
    pairs
}

fn whole(answer: Response<SentContent>) -> Vec<u8> {
    match answer.into_body() {
        SentContent::Whole(bytes) => bytes.to_vec(),
        SentContent::Made(_) => panic!("it is handed over in pieces"),
    }
}

/// Checks that what is ready is the answer that was made first.
async fn is_same(ready: Response<SentContent>, first: Response<Body>, status: u16) {
    assert_eq!((ready.status().as_u16(), first.status().as_u16()), (status, status));
    assert_eq!(headers(ready.headers()), headers(first.headers()));
    let body = whole(ready);
    assert_eq!(body, bytes(first).await);
    assert_eq!(body.is_empty(), status == 304);
}

#[tokio::test]
async fn what_is_ready_is_what_the_normal_path_answers() {
    let site = Site::announcing();
    let of = listener(&site);
    let paths = "/feeds/news /feeds/news/sync /feeds/radio/complete /feeds/news?as=rss \
                 /feeds/news?whatever=1 /sup.json";
    for path in paths.split(' ') {
        for coding in ["", "gzip", "zstd, gzip;q=0.5"] {
            let asked = [("accept-encoding", coding)];
            assert!(!is_ready(&of, path, &asked), "{path} {coding}");
            let first = made(&of, path, &asked).await;
            let tag = header(&first, "etag").to_owned();
            is_same(ready(&of, path, &asked), first, 200).await;
            for tag in [tag.clone(), format!("\"x\", W/{tag}"), "*".to_owned()] {
                let known = [asked[0], ("if-none-match", tag.as_str())];
                let first = made(&of, path, &known).await;
                is_same(ready(&of, path, &known), first, 304).await;
            }
            let unknown = [asked[0], ("if-none-match", "\"x\"")];
            assert_eq!(ready(&of, path, &unknown).status(), StatusCode::OK);
        }
    }
    // Of a tag of another encoding, the normal path says which one is meant.
    let [plain, gzip] = ["", "gzip"].map(|coding| [("accept-encoding", coding)]);
    let tag = header(&made(&of, "/feeds/news", &gzip).await, "etag").to_owned();
    assert!(!is_ready(&of, "/feeds/news", &[plain[0], ("if-none-match", &tag)]));
    // Nor is that answer kept for who has the chosen one.
    let zstd = ("accept-encoding", "zstd, gzip");
    let own = header(&made(&of, "/feeds/news", &[zstd]).await, "etag").to_owned();
    let others = made(&of, "/feeds/news", &[zstd, ("if-none-match", &tag)]).await;
    assert_eq!((others.status().as_u16(), header(&others, "etag")), (304, &*tag));
    let known = [zstd, ("if-none-match", &*own)];
    assert!(!is_ready(&of, "/feeds/news", &known));
    drop(made(&of, "/feeds/news", &known).await);
    assert_eq!(ready(&of, "/feeds/news", &known).headers()["etag"], &*own);
}

#[tokio::test(start_paused = true)]
async fn what_changed_is_made_anew_at_once() {
    let site = Site::announcing();
    let of = listener(&site);
    for path in ["/feeds/news", "/feeds/radio", "/sup.json"] {
        drop(made(&of, path, &[]).await);
        assert!(is_ready(&of, path, &[]), "{path}");
    }
    site.store.edit("news", |feed| feed.state.render_revision += 1);
    assert!(!is_ready(&of, "/feeds/news", &[]));
    assert!(is_ready(&of, "/feeds/radio", &[]), "another feed is as it was");
    let changed = made(&of, "/feeds/news", &[]).await;
    is_same(ready(&of, "/feeds/news", &[]), changed, 200).await;

    site.store.announce(0, &["news"]);
    tokio::time::advance(Duration::from_secs(1)).await;
    assert!(!is_ready(&of, "/sup.json", &[]), "an epoch was closed");

    site.store.edit_record("radio", |record| record.standing = FeedStanding::Gone);
    assert!(!is_ready(&of, "/feeds/news", &[]), "nor another one of that list, once");
    drop(made(&of, "/feeds/news", &[]).await);
    site.store.edit_record("news", |record| record.private = true);
    for (path, status) in [("/feeds/radio", 410), ("/feeds/news", 404)] {
        for _ in 0..2 {
            assert!(!is_ready(&of, path, &[]));
            assert_eq!(made(&of, path, &[]).await.status(), status);
        }
    }
}

#[tokio::test]
async fn neither_what_was_redacted_is_ready_nor_a_delta() {
    let site = Site::new();
    let of = listener(&site);
    drop(made(&of, "/feeds/news", &[]).await);
    let asked = asking("/feeds/news", &[]);
    let kept_for = (PlainRequest::read(&asked).unwrap(), AnswerBasis::now(&of.app).unwrap());
    assert!(is_ready(&of, "/feeds/news", &[]));
    let mut late = of.answer(asked).await;
    of.app.documents.forget(&doubles::name("news"));
    assert!(!is_ready(&of, "/feeds/news", &[]));
    keep(&of, kept_for, &mut late);
    assert!(!is_ready(&of, "/feeds/news", &[]));
    // Who may get a delta is told at once that nothing changed, and nothing else: which delta it is, the normal path says.
    let site = Site::new();
    let of = listener(&site);
    let wanted = ("a-im", "feed");
    let tag = header(&made(&of, "/feeds/news/sync", &[wanted]).await, "etag").to_owned();
    let known = [wanted, ("if-none-match", &*tag)];
    drop(made(&of, "/feeds/news/sync", &known).await);
    assert!(is_ready(&of, "/feeds/news/sync", &known));
    assert!(!is_ready(&of, "/feeds/news/sync", &[wanted]));
    // An answer is not given again for long, nor before it was made.
    let site = Site::new();
    let of = listener(&site);
    drop(made(&of, "/feeds/news", &[]).await);
    for (time, expected) in [(0, true), (59, true), (60, false), (-1, false)] {
        site.clock.leap(at(time));
        assert_eq!(is_ready(&of, "/feeds/news", &[]), expected, "{time}");
    }
    // Nothing is ready before the database was looked at.
    let site = Site::sharing();
    let of = listener(&site);
    drop(made(&of, "/feeds/news", &[]).await);
    site.store.set_age(Some(Duration::ZERO));
    assert!(is_ready(&of, "/feeds/news", &[]));
    site.store.set_age(Some(Duration::from_secs(1)));
    assert!(!is_ready(&of, "/feeds/news", &[]));
}

#[tokio::test]
async fn what_is_not_plain_or_not_for_everybody_is_not_ready() {
    let settings = with(settings(), |it| it.readers = readers());
    let site = Site::with(private::store(), settings);
    let of = listener(&site);
    let basic = private::password("x", ANN);
    let (secret, below) = (format!("/feeds/{SECRET}"), format!("/t/{ANN}/feeds/{SECRET}"));
    let plain = ("accept", "*/*");
    let long = format!("/feeds/radio?{}", "x".repeat(256));
    for (path, header, status) in [
        ("/feeds/radio", BEARER, 200),
        (&secret, ("authorization", &basic), 200),
        (&below, plain, 200),
        ("/feeds/radio", ("cookie", "a=b"), 200),
        (&long, plain, 200),
        ("/feeds/none", plain, 404),
        ("/healthz", plain, 200),
        ("/", plain, 200),
        ("/feeds/radio?as-of=x", plain, 400),
    ] {
        assert_eq!(made(&of, path, &[header]).await.status(), status, "{path}");
        assert!(!is_ready(&of, path, &[header]), "{path} {header:?}");
    }
    drop(made(&of, "/feeds/radio", &[]).await);
    for header in [
        ("accept", "application/atom+xml"),
        ("accept-encoding", "gzip"),
        ("sec-fetch-dest", "document"),
        ("a-im", "feed"),
        ("host", "another"),
    ] {
        assert!(!is_ready(&of, "/feeds/radio", &[header]), "{header:?}");
    }
    // Nothing depends on others.
    assert!(is_ready(&of, "/feeds/radio", &[("user-agent", "a"), ("x-forwarded-for", "b")]));
    for other in [
        request("HEAD", "/feeds/radio", &[HOST], ""),
        request("GET", "/feeds/radio", &[HOST], "body"),
        request("GET", "/feeds/radio", &[], ""),
    ] {
        assert!(find(&of, &other).is_none(), "{other:?}");
    }
}

#[tokio::test]
async fn what_is_ready_counts_like_what_is_made() {
    let site = Site::new();
    let of = listener(&site);
    let first = made(&of, "/feeds/news", &[]).await;
    let known = [("if-none-match", header(&first, "etag"))];
    drop(made(&of, "/feeds/news", &known).await);
    for (whole, unchanged) in [(1, 1), (4, 2)] {
        let count = |status, number| counted("GET", "/feeds/{name}", status, number);
        let hits = format!("tidegate_cache_hits_total {}", whole + unchanged - 1);
        site.metrics_with(&[count(200, whole), count(304, unchanged), hits]).await;
        (0..3).for_each(|_| assert!(is_ready(&of, "/feeds/news", &[])));
        assert!(is_ready(&of, "/feeds/news", &known));
    }
    // Over HTTP/2 a client may ask for much and take nothing: what is on its way is counted.
    let site = Site::new();
    let of = listener(&site);
    let mut first = asking("/feeds/news", &[]);
    *first.version_mut() = http::Version::HTTP_2;
    let plain = PlainRequest::read(&first).unwrap();
    let answer = made(&of, "/feeds/news", &[]).await;
    assert!(find(&of, &first).is_none(), "{answer:?}");
    let mut answer_again = of.answer(asking("/feeds/news", &[])).await;
    keep(&of, (plain, AnswerBasis::now(&of.app).unwrap()), &mut answer_again);
    drop((answer, answer_again));
    let ready = find(&of, &first).unwrap();
    assert_eq!(site.app.bodies.held().0, 1);
    drop(ready);
    assert_eq!(site.app.bodies.held(), (0, 0));
}

#[tokio::test]
async fn the_wire_bears_the_same() {
    let site = Site::with(private::store(), private::announcing());
    let (at, server) = serving(&site, PATIENT).await;
    // A reader's token leaves nothing for who asks next on the same connection.
    let with_token = format!("/t/{ANN}");
    let paths = ["/feeds/news", &format!("/feeds/{SECRET}")];
    let asks = paths.iter().flat_map(|path| [&*with_token, "", ""].map(|below| (below, path)));
    let asks = asks.map(|(below, path)| format!("GET {below}{path} HTTP/1.1\r\nhost: x\r\n\r\n"));
    let close = "GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    let answers = raw(at, &(asks.collect::<String>() + close)).await.1;
    let answers = answers.split("HTTP/1.1 ").skip(1);
    let answers = answers.map(|said| (said.split(' ').next().unwrap(), said.contains(ANN)));
    let (own, open, closed) = (("200", true), ("200", false), ("404", false));
    assert!(answers.eq([own, open, open, own, closed, closed, open]));
    let ask = async |path: &str, more: &str| {
        let said =
            format!("GET {path} HTTP/1.1\r\nhost: here:8080\r\nconnection: close\r\n{more}\r\n");
        let answer = raw(at, &said).await.1;
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let mut head: Vec<String> =
            head.lines().filter(|line| !line.starts_with("date: ")).map(str::to_owned).collect();
        head.sort();
        (head, body.to_owned())
    };
    for (path, coding) in
        [("/feeds/news", "accept-encoding: gzip\r\n"), ("/sup.json?seconds=60", "")]
    {
        let first = ask(path, coding).await;
        let tag = first.0.iter().find_map(|line| line.strip_prefix("etag: ")).unwrap();
        assert_eq!(ask(path, coding).await, first, "{path}");
        let known = format!("{coding}if-none-match: {tag}\r\n");
        let unchanged = ask(path, &known).await;
        assert!(unchanged.0.iter().any(|line| line.starts_with("HTTP/1.1 304")));
        assert_eq!(ask(path, &known).await, unchanged, "{path}");
    }
    assert_eq!(site.app.bodies.held(), (0, 0));
    site.closing.cancel();
    server.await.unwrap().unwrap();
}
