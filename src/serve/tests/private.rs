//! Private feeds: nobody learns of them who may not, and who may is led on below his own path.

use super::*;
use crate::readers::{ReaderAccess, ReaderKey, WRONG_TOKEN_PAUSE};
use data_encoding::BASE64;
use tidegate_poll::hub::{NoHubDocument, TopicRequest};

/// The private feed. Nothing else is called so.
pub(super) const SECRET: &str = "hidden-diary";
/// A token of a reader of it, and one of a reader of another feed.
pub(super) const ANN: &str = "0123456789abcdef0123456789abcdef";
pub(super) const BOB: &str = "AbCdEfGhIjKlMnOpQrStUvWx";
const BELOW: &str =
    " /sync /complete /archive/1 /items /items/one /conflicts /about ?as=html /changes";
/// What is below no token of a reader.
const NOT_BELOW: &str = "/feeds/other-secret /feeds/radio /feeds/nothing /session /add /metrics \
                         /api/v1/feeds /readyz /nothing \
                         /t/AbCdEfGhIjKlMnOpQrStUvWx/feeds/other-secret";

/// As a browser asks where somebody goes.
const HTML: [(&str, &str); 2] = [("accept", "text/html"), ("sec-fetch-dest", "document")];

pub(crate) fn access(reader: &str, token: &str, feeds: &[&str]) -> ReaderAccess {
    let feeds = feeds.iter().map(|feed| name(feed)).collect();
    ReaderAccess { name: reader.to_owned(), key: ReaderKey::new(token), feeds, all_private: false }
}

pub(super) fn readers() -> Vec<ReaderAccess> {
    vec![access("ann", ANN, &[SECRET, "news"]), access("bob", BOB, &["other-secret"])]
}

/// A site with public feeds, two private ones, and one that was private and deleted.
pub(super) fn store() -> TestStore {
    let store = TestStore::with_news();
    for (text, standing) in [
        (SECRET, FeedStanding::Active),
        ("other-secret", FeedStanding::Active),
        ("buried-secret", FeedStanding::Gone),
    ] {
        let mut private = record(text, standing);
        private.private = true;
        store.set_record(&private);
        store.put(text, feed(Format::Atom10));
    }
    store.announce(-30, &["news", SECRET]);
    store.announce(-20, &[SECRET]);
    store.announce(-10, &["other-secret", "news"]);
    store
}

pub(super) fn announcing() -> ServeSettings {
    with(settings(), |it| {
        it.sup.periods = vec![60, 300];
        (it.websub.hub, it.websub.rsscloud) = (true, false);
        it.readers = readers();
    })
}

pub(super) fn site() -> Site {
    Site::with(store(), announcing())
}

pub(super) fn password(reader: &str, token: &str) -> String {
    format!("Basic {}", BASE64.encode(format!("{reader}:{token}").as_bytes()))
}

async fn whole(answer: Response<Body>) -> String {
    let mut said = format!("{} ", answer.status());
    for (name, value) in answer.headers() {
        said.push_str(&format!("{name}: {}\n", value.to_str().unwrap()));
    }
    said + &String::from_utf8_lossy(&bytes(answer).await)
}

fn sup_id(site: &Site, feed: &str) -> String {
    site.app.site.sup_id(&name(feed)).unwrap().to_string()
}

#[tokio::test(start_paused = true)]
async fn a_private_feed_is_as_unknown_as_one_that_is_none() {
    let bob = password("bob", BOB);
    let page = ("accept", "text/html");
    let asks: [&[(&str, &str)]; 4] = [
        &[],
        &[("if-none-match", "*"), page, ("a-im", "feed")],
        &[("origin", "https://x.example"), ("access-control-request-method", "GET")],
        &[("authorization", &bob)],
    ];
    let methods = ["GET", "HEAD", "OPTIONS", "POST", "DELETE"];
    for challenge in [false, true] {
        let site = Site::with(store(), with(announcing(), |it| it.server.challenge = challenge));
        let ways = asks.iter().flat_map(|asked| methods.map(|method| (*asked, method)));
        let all = ways.flat_map(|way| BELOW.split(' ').map(move |below| (way, below)));
        for ((headers, method), below) in all {
            let ask = async |feed: &str| {
                let path = format!("/feeds/{feed}{below}");
                whole(site.ask(request(method, &path, headers, "")).await).await
            };
            for (feed, other) in [("buried-secret", "unknown-names"), (SECRET, "unknown-name")] {
                // Signing in leads back to what was asked for.
                let private = ask(feed).await.replace(feed, other);
                let unknown = ask(other).await;
                assert_eq!(private, unknown, "{method} {feed}{below} {headers:?}");
                if method == "GET" && headers != asks[3] {
                    let status = if challenge { "401" } else { "404" };
                    assert!(unknown.starts_with(status), "{unknown}");
                    assert_eq!(unknown.contains("www-authenticate: Basic"), challenge, "{unknown}");
                    let is_page = unknown.contains("content-type: text/html");
                    assert_eq!(is_page, headers.contains(&page), "{below}: {unknown}");
                }
            }
        }
        for door in ["events", "changes"] {
            problem(site.get(&format!("/{door}?feed={SECRET}")).await, 404).await;
        }
    }
}

#[tokio::test]
async fn everything_below_a_token_leads_on_below_it() {
    let site = site();
    let base = format!("https://feeds.example.org/t/{ANN}");
    let at = |path: &str| format!("/t/{ANN}{path}");
    for view in ["", "/sync", "/complete", "/changes"] {
        let path = at(&format!("/feeds/{SECRET}{view}"));
        let answer = site.get(&path).await;
        assert_eq!(answer.status(), 200, "{path}");
        let private = ["cache-control", "referrer-policy", "x-robots-tag"];
        let private = private.map(|name| header(&answer, name));
        assert_eq!(private, ["private, no-cache", "no-referrer", "noindex"], "{path}");
        if view != "/changes" {
            let id = format!("{base}/sup.json#{}", sup_id(&site, SECRET));
            assert_eq!(header(&answer, "x-sup-id"), id);
            header(&answer, "link").assert_shows(&["rel=\"self\"", "rel=\"hub\""]);
        }
        let tag = header(&answer, "etag").to_owned();
        assert_all_below(&whole(answer).await, &base);
        let again = site.get_with(&path, &[("if-none-match", &tag)]).await;
        let kept = (again.status().as_u16(), header(&again, "cache-control"));
        assert_eq!(kept, (304, "private, no-cache"));
        assert_all_below(&whole(again).await, &base);
    }
    for path in ["/", "/recent", "/feeds/news/about", "/feeds/hidden-diary/items", "/feeds/news"] {
        let answer = site.get_with(&at(path), &HTML).await;
        let shown = (answer.status().as_u16(), header(&answer, "referrer-policy"));
        assert_eq!(shown, (200, "no-referrer"));
        let page = text(answer).await;
        for attribute in [" href=\"/", " action=\"/"] {
            let below = format!("t/{ANN}/");
            let mut all = page.split(attribute).skip(1);
            assert!(all.all(|address| address.starts_with(&below)), "{path}: {page}");
        }
        page.assert_lacks(&["/session", "/add", "/metrics", "<form method=\"post\""]);
        assert_all_below(&page, &base);
    }
    let (own, news) = (format!("{base}/feeds/{SECRET}"), format!("{base}/feeds/news"));
    let [own_id, news_id, other_id] =
        [SECRET, "news", "other-secret"].map(|feed| sup_id(&site, feed));
    let change = format!("\"url\":\"{own}\"");
    for (path, shown, hidden) in [
        ("/subscriptions.opml", [&own, &news], "radio"),
        ("/sup.json", [&own_id, &news_id], &other_id),
        ("/changes?after=0&wait=0", [&change, &news], "other-secret"),
    ] {
        let said = site.text(&at(path)).await;
        assert_all_below(&said, &base);
        said.assert_shows(&shown.map(|part| &**part));
        said.assert_lacks(&[hidden]);
    }
    // What is kept is never given to another.
    let paths = ["/feeds/news", "/feeds/news/sync", "/feeds/news?as=rss", "/feeds/news/changes"];
    for (path, round) in paths.into_iter().flat_map(|path| [(path, 0), (path, 1), (path, 2)]) {
        let ask = async |path: &str| whole(site.get(path).await).await;
        let public = ask(path).await;
        let ann = ask(&format!("/t/{ANN}{path}")).await;
        assert!(public.starts_with("200") && ann.starts_with("200"), "{path} {round}");
        public.assert_lacks(&[ANN, "/t/"]);
        assert_all_below(&ann, &format!("https://feeds.example.org/t/{ANN}"));
        assert_ne!(public, ann);
    }
}

/// Checks that every address of the gateway in a text is below the base.
fn assert_all_below(said: &str, base: &str) {
    let below = base.strip_prefix("https://feeds.example.org").unwrap();
    for address in said.split("https://feeds.example.org").skip(1) {
        let shown: String = address.chars().take(60).collect();
        assert!(address.starts_with(below), "{shown}");
    }
}

#[tokio::test]
async fn the_operator_sees_for_whom_a_private_feed_is_and_readers_do_not() {
    let site = site();
    let ann = password("ann", ANN);
    let reader = [("authorization", ann.as_str()), ("accept", "text/html")];
    let words = "for ann, below /t/TOKEN/feeds/hidden-diary";
    let address = format!("https://feeds.example.org/feeds/{SECRET}</code>");
    for path in ["/feeds/hidden-diary/about", "/feeds/hidden-diary?as=html"] {
        // Whoever looks first, nobody is given what was made for another.
        for _ in 0..2 {
            let page = site.text_for_operator(path).await;
            page.assert_shows(&[words, "pill\">private"]);
            page.assert_lacks(&[&address, ANN]);
            let of_readers = [
                text(site.get_with(path, &reader).await).await,
                site.text(&format!("/t/{ANN}{path}")).await,
            ];
            for page in of_readers {
                page.assert_lacks(&["for ann", "private"]);
                page.assert_shows(&[&format!("/feeds/{SECRET}</code>")]);
            }
        }
        let page = site.text_for_operator(&path.replace(SECRET, "news")).await;
        page.assert_lacks(&["private"]);
        page.assert_shows(&["/feeds/news</code>"]);
    }
    let page = site.text_for_operator("/").await;
    assert_eq!(page.matches(">private</a>").count(), 2, "{page}");
    site.text_for_operator("/subscriptions.opml").await.assert_shows(&[SECRET]);
    let path = format!("/feeds/{SECRET}");
    let answer = site.get_with(&path, &[BEARER]).await;
    let private = (answer.status().as_u16(), header(&answer, "cache-control"));
    assert_eq!(private, (200, "private, no-cache"));
    // And nobody is given what was made for the operator.
    for path in ["/", "/subscriptions.opml"] {
        site.text(path).await.assert_lacks(&[SECRET]);
    }
    problem(site.get(&path).await, 404).await;
    let told = site.told("/feeds/hidden-diary").await;
    assert_eq!((&told["private"], &told["readers"]["names"][0]), (&true.into(), &"ann".into()));
    assert_eq!(told["readers"]["words"], format!("private: {words}"));
    let told = site.told("/feeds?q=diary&show=all").await;
    let private = told["feeds"].as_array().unwrap().iter().filter(|feed| feed["private"] == true);
    assert_eq!(private.count(), 1, "{told}");
    let told = site.told("/feeds/news").await;
    assert_eq!((&told["private"], &told["readers"]), (&false.into(), &serde_json::Value::Null));
}

#[tokio::test(start_paused = true)]
async fn a_token_or_a_password_opens_its_own_feeds_and_no_administration() {
    let site = site();
    for path in NOT_BELOW.split(' ') {
        problem(site.get(&format!("/t/{ANN}{path}")).await, 404).await;
    }
    let about = format!("/t/{ANN}/feeds/{SECRET}/about");
    problem(site.ask(request("POST", &about, &[], "do=poll")).await, 404).await;
    // As an unknown path, and slowly.
    let begun = tokio::time::Instant::now();
    let wrong =
        problem(site.get("/t/0123456789abcdef0123456789abcdee/feeds/news").await, 404).await;
    assert!(begun.elapsed() >= WRONG_TOKEN_PAUSE);
    assert_eq!(wrong["detail"], "there is nothing at /t/***");
    // What a reader may see does not depend on the bearer of another token.
    let other = site.get(&format!("/t/{BOB}/feeds/other-secret")).await;
    assert_eq!(other.status(), 200);
    // A password opens the plain address.
    let path = format!("/feeds/{SECRET}");
    let ask = async |path: &str, authorization: &str| {
        site.get_with(path, &[("authorization", authorization)]).await
    };
    let answer = ask(&path, &password("ann", ANN)).await;
    assert_eq!(answer.status(), 200);
    assert_eq!(header(&answer, "cache-control"), "private, no-cache");
    let mut vary = answer.headers().get_all("vary").iter();
    assert!(vary.any(|vary| vary == "Authorization"), "{answer:?}");
    let said = whole(answer).await;
    said.assert_shows(&[&format!("https://feeds.example.org/feeds/{SECRET}")]);
    said.assert_lacks(&[ANN, "/t/"]);
    let bearer = format!("Bearer {ANN}");
    for wrong in ["Basic %%%", &password("ann", BOB), &password("ann", "wrong"), &bearer] {
        problem(ask(&path, wrong).await, 404).await;
    }
    // Whoever sends a password of something else still reads what is for everybody, at once.
    let begun = tokio::time::Instant::now();
    let news = ask("/feeds/news", &password("ann", "of a proxy")).await;
    assert_eq!((news.status().as_u16(), header(&news, "cache-control")), (200, "public, no-cache"));
    assert_eq!(begun.elapsed(), Duration::ZERO);
    // Without a password it is not there, whatever was read before.
    problem(site.get(&path).await, 404).await;
    // A feed that becomes private is gone at once.
    let site = self::site();
    let radio = sup_id(&site, "radio");
    site.store.announce(-1, &["radio"]);
    site.text("/sup.json").await.assert_shows(&[&radio]);
    assert_eq!(site.get("/feeds/radio").await.status(), 200);
    site.store.edit_record("radio", |record| record.private = true);
    problem(site.get("/feeds/radio").await, 404).await;
    site.text("/sup.json").await.assert_lacks(&[&radio]);
    site.text("/changes?after=0&wait=0").await.assert_lacks(&["radio"]);
    // An aggregate that is paused and has items of it goes with it.
    site.store.edit_record("still", |record| {
        record.options.sharing.sources = vec![name("radio")];
    });
    problem(site.get("/feeds/still").await, 404).await;
}

/// Those of an older file than the one that another gateway has lack a reader, and a feed of another.
#[tokio::test]
async fn no_topic_of_a_reader_has_gone_while_another_gateway_has_other_readers() {
    let exists = async |site: &Site, topic: &str| {
        let known = site.app.hub_document(TopicRequest::Exists(topic.to_owned())).await;
        let document = site.app.hub_document(TopicRequest::Document(topic.to_owned())).await;
        assert_eq!(known.is_ok(), document.is_ok(), "{topic}");
        known.map(drop)
    };
    let topic = |path: &str| format!("https://feeds.example.org{path}/feeds/{SECRET}");
    let site = Site::with(store().shared(), announcing());
    let missing = [ANN, BOB].map(|token| topic(&format!("/t/{token}")));
    let public = exists(&site, &topic("")).await;
    assert!(matches!(public, Err(NoHubDocument::Gone(_))), "{public:?}");
    let site =
        site.followed_by(ServeSettings { readers: vec![readers().remove(1)], ..announcing() });
    let other = KnownGateway { differing: vec!["reader".to_owned()], ..KnownGateway::default() };
    site.store.confirm(vec![other]);
    for topic in &missing {
        let found = exists(&site, topic).await;
        assert!(matches!(found, Err(NoHubDocument::Later(_))), "{found:?}");
    }
    assert_eq!(exists(&site, &topic("")).await, public, "no reader's");
    // The operator has the other one read a file that has no more readers, or this one a file that has them.
    site.store.confirm(Vec::<KnownGateway>::new());
    for topic in &missing {
        let found = exists(&site, topic).await;
        assert!(matches!(found, Err(NoHubDocument::Gone(_))), "{found:?}");
    }
    let site = site.followed_by(announcing());
    assert!(exists(&site, &missing[0]).await.is_ok());
}
