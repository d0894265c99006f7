use super::private::announcing;
use super::*;
use std::collections::BTreeSet;

pub(super) fn links(response: &Response<Body>) -> String {
    let links = response.headers().get_all("link").iter();
    links.map(|link| link.to_str().unwrap()).collect::<Vec<_>>().join(", ")
}

const CODINGS: [&str; 3] = ["", "gzip", "zstd"];
const VIEWS: [&str; 4] =
    ["/feeds/news", "/feeds/news/sync", "/feeds/news/complete", "/feeds/radio"];

/// Two commits within a second put the second one ahead of the clock, where both have one date.
#[tokio::test]
async fn a_date_tells_nothing_while_the_state_is_ahead_of_the_clock() {
    let site = Site::new();
    site.clock.set(at(-6));
    let full = site.get("/feeds/news").await;
    let known = async |name: &str, value: &str| {
        site.get_with("/feeds/news", &[(name, value)]).await.status().as_u16()
    };
    assert_eq!(header(&full, "last-modified"), at(-6).rfc822());
    assert_eq!(known("if-modified-since", &at(-6).rfc822()).await, 200);
    assert_eq!(known("if-none-match", header(&full, "etag")).await, 304);
    site.clock.set(at(-5));
    assert_eq!(known("if-modified-since", &at(-5).rfc822()).await, 304);
    // Nor does a document depend on the time of the request.
    let (site, mut tags) = (Site::new(), BTreeSet::new());
    for days in 0..3 {
        let again = Site::new();
        for (site, coding) in [&site, &again].into_iter().flat_map(|it| CODINGS.map(|of| (it, of)))
        {
            site.clock.set(at(days * DAY));
            let answer = site.get_with("/feeds/news/sync", &[("accept-encoding", coding)]).await;
            tags.insert(header(&answer, "etag").to_owned());
        }
    }
    assert_eq!(tags.len(), CODINGS.len());
}

/// A page that is packed anew each time has one tag for all encodings. What a condition says is shown where it is read.
#[tokio::test]
async fn who_has_a_document_is_told_that_it_is_as_it_was() {
    let site = Site::new();
    for (path, accept) in VIEWS.map(|view| (view, "*/*")).into_iter().chain([
        ("/feeds/news", "application/feed+json"),
        ("/", "text/html"),
        ("/feeds/news?as=html", "text/html"),
        ("/feeds/news/changes?as=html", "text/html"),
        ("/feeds/news/items", "text/html"),
        ("/feeds/news/items", "application/json"),
        ("/feeds/news/items/a", "text/html"),
        ("/feeds/news/items/a", "application/json"),
        ("/feeds/news/conflicts", "application/json"),
    ]) {
        let asked = [("accept", accept), ("accept-encoding", "gzip")];
        let full = site.get_with(path, &asked).await;
        let (tag, is_view) = (header(&full, "etag"), VIEWS.contains(&path));
        assert_eq!(tag.starts_with("W/\""), !is_view, "{path}");
        // The tag may be that of another representation, which is as new.
        let cases = [("gzip", tag, 304), ("zstd", tag, 304), ("gzip", "\"x\"", 200)];
        for (encoding, known, status) in cases {
            let asked = [asked[0], ("accept-encoding", encoding), ("if-none-match", known)];
            let answer = site.get_with(path, &asked).await;
            assert_eq!(answer.status(), status, "{path} {known}");
            let same = ["cache-control", "vary", "last-modified", "x-sup-id"];
            for name in if is_view { &same[..] } else { &same[..1] } {
                assert_eq!(header(&answer, name), header(&full, name), "{path} {status} {name}");
            }
            assert_eq!(links(&answer), links(&full));
            if status == 304 {
                assert!(encoding == "zstd" || header(&answer, "etag") == tag, "{path}");
                assert_eq!(header(&answer, "content-encoding"), "", "{path}");
                assert_eq!(bytes(answer).await.len(), 0);
            }
        }
    }
    // HEAD has the headers of GET and no body.
    let since = format!("/feeds/news/sync?since={}", tick(-5 * DAY));
    for path in VIEWS.into_iter().chain([since.as_str(), "/feeds/nobody", "/feeds/news?as=exe"]) {
        for encoding in CODINGS {
            let asked = [("accept-encoding", encoding)];
            let get = site.get_with(path, &asked).await;
            let head = site.ask(request("HEAD", path, &asked, "")).await;
            assert_eq!((head.status(), head.headers()), (get.status(), get.headers()), "{path}");
            assert_eq!(bytes(head).await.len(), 0);
        }
    }
}

#[tokio::test]
async fn sup_and_hub_are_linked_and_pages_listed_where_the_operator_wants_it() {
    let neither = links(&Site::new().get("/feeds/news").await);
    neither.assert_lacks(&["sup.json", "hub", "upstream"]);
    let site = Site::with(TestStore::with_news(), announcing());
    let answer = site.get("/feeds/news").await;
    let said = links(&answer);
    let hub = "<https://feeds.example.org/websub>; rel=\"hub\"";
    said.assert_shows(&["sup.json#", "friendfeed.com/2008/03#sup", hub]);
    let sup = format!("sup Some(\"{}\")", header(&answer, "x-sup-id"));
    text(answer).await.assert_shows(&[&sup]);
    // Pages copy publishers' texts with all their versions: that none is listed otherwise is in the golden answers.
    let indexed = with(announcing(), |it| it.server.indexed = true);
    let (site, open) = (Site::new(), Site::with(TestStore::with_news(), indexed));
    for path in ["/recent", "/feeds/news/about", "/feeds/news?as=html"] {
        assert_eq!(header(&open.get(path).await, "x-robots-tag"), "", "{path}");
    }
    let rules = ["User-agent: *\n", "Disallow: /recent\n", "Disallow: /feeds/*/items\n"];
    site.text("/robots.txt").await.assert_shows(&rules);
    assert_eq!(open.text("/robots.txt").await, "User-agent: *\nDisallow: /api/\n");
}

#[tokio::test]
async fn what_is_made_for_one_request_is_compressed_when_asked() {
    let site = Site::new();
    let short = bytes(site.get_with("/healthz", &[("accept-encoding", "gzip")]).await).await;
    assert_eq!(short, b"ok\n");
    for path in ["/", "/feeds/news/about", "/metrics"] {
        let plain = site.get(path).await;
        assert_eq!(header(&plain, "content-encoding"), "", "{path}");
        let plain = bytes(plain).await;
        for encoding in ["zstd", "gzip"] {
            let asked = [("accept-encoding", encoding)];
            let packed = site.get_with(path, &asked).await;
            assert_eq!(header(&packed, "content-encoding"), encoding, "{path}");
            let head = site.ask(request("HEAD", path, &asked, "")).await;
            // How long the body is shows when it is packed.
            let names = |answer: &Response<Body>| {
                let names = answer.headers().keys().filter(|name| *name != "content-length");
                names.map(ToString::to_string).collect::<BTreeSet<_>>()
            };
            assert_eq!(names(&head), names(&packed), "{path}");
            assert!(!head.headers().contains_key("content-length"), "{path}");
            let mut vary = packed.headers().get_all("vary").iter();
            assert!(vary.any(|value| value == "Accept-Encoding"), "{path}");
            let packed = bytes(packed).await;
            assert!(packed.len() < plain.len(), "{path}");
            // Metrics count what was asked meanwhile.
            let is_same = encoding == "zstd" || unpacked(&packed) == plain;
            assert!(is_same || path == "/metrics", "{path}");
        }
    }
}

/// Whoever waits for the turn of a comparison holds what the answer was admitted with.
#[tokio::test(start_paused = true)]
async fn a_comparison_waits_for_its_turn_for_a_bounded_time() {
    let site = Site::new();
    let path = "/feeds/news/items/a?diff=1..newest";
    let all = u32::try_from(crate::items::COMPARED_AT_ONCE).unwrap();
    let held = site.app.comparisons.try_acquire_many(all).unwrap();
    let answer = tokio::time::timeout(Duration::from_secs(25), site.get(path)).await.unwrap();
    is_retried(answer).await;
    drop(held);
    assert_eq!(site.get(path).await.status(), 200);
}
