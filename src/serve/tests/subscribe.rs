//! Subscribing by address where feeds are private: a reader's own are found by the token, and by nothing else.

use super::private::{ANN, BOB, SECRET, announcing, password, store};
use super::*;
use crate::readers::WRONG_TOKEN_PAUSE;
use serde_json::{Value, json as value};
use tidegate_config::{AllowConfig, PageAudience};
use tokio::time::Instant;
use url::Url;

/// A site that readers may subscribe to: its page, and the feed that it names, which is private here.
const PAGE: &str = "https://diary.example/";
const DIARY: &str = "https://diary.example/diary.xml";
/// A feed of it that nobody has here.
const OTHER: &str = "https://diary.example/other.xml";
/// Addresses that lead to that of [`OTHER`], and a page that names one of them.
const MOVED: &str = "https://diary.example/moved.xml";
const MOVED_PAGE: &str = "https://diary.example/moved";
/// Addresses where nothing is begin with this.
const NOWHERE: &str = "https://diary.example/nowhere";
/// A site without TLS that is admitted too.
const PLAIN: &str = "http://plain.example/";
const WRONG: &str = "fedcba9876543210fedcba9876543210";

/// The feed that is made of [`OTHER`].
const MADE: &str = "diary-example-other-xml";

/// A gateway whose readers may subscribe to the site, of which Ann has a private feed.
fn gateway(settings: ServeSettings) -> (Site, Arc<ScriptedSite>) {
    let store = store();
    store.edit_record(SECRET, |record| record.url = DIARY.to_owned());
    let page = |feed: &str| {
        let link = format!("type=\"application/rss+xml\" title=\"Diary\" href=\"{feed}\"");
        let head = format!("<title>x</title><link rel=\"alternate\" {link}>");
        SiteAnswer::Text(format!("<html><head>{head}</head><body></body></html>"))
    };
    let feed = "<rss version='2.0'><channel><title>Diary</title><link>https://diary.example/</link>\
                <description/><item><guid>a</guid><title>A</title></item></channel></rss>";
    let site = ScriptedSite::new(100, move |url| match &url[..url::Position::AfterPath] {
        PAGE => page(DIARY),
        MOVED_PAGE => page(MOVED),
        MOVED => SiteAnswer::Moved(OTHER),
        at if at.starts_with(NOWHERE) => SiteAnswer::Nothing,
        _ => SiteAnswer::Text(feed.to_owned()),
    });
    let idle = Duration::from_secs(30 * 86_400);
    let allowed = |url: &str| AllowConfig { url: Url::parse(url).unwrap(), idle, feeds: 3 };
    let allow = [PAGE, PLAIN].map(allowed).to_vec();
    let origins = OriginSettings { allow, ..OriginSettings::default() };
    let gateway = Site::before(store, settings, origins, site.services());
    gateway.polling.start_empty();
    (gateway, site)
}

fn own_address() -> String {
    format!("https://feeds.example.org/t/{ANN}/feeds/{SECRET}")
}

fn asked(method: &str, path: &str, url: &str, headers: &[(&str, &str)]) -> Request<Body> {
    let pair =
        url::form_urlencoded::Serializer::new(String::new()).append_pair("url", url).finish();
    match method {
        "POST" => request(method, path, &[headers, &[FORM][..]].concat(), &pair),
        _ => request(method, &format!("{path}?{pair}"), headers, ""),
    }
}

async fn offers(answer: Response<Body>) -> Value {
    assert_eq!(answer.status(), StatusCode::OK);
    assert_eq!(header(&answer, "cache-control"), "no-store");
    json(answer).await["feeds"].clone()
}

fn is_made(site: &Site) -> bool {
    site.store.record(&name(MADE)).is_some()
}

#[tokio::test]
async fn a_reader_is_given_the_address_of_the_private_feed() {
    let (gateway, site) = gateway(announcing());
    let (below, ann) = (format!("/t/{ANN}/subscribe"), password("ann", ANN));
    let by_password = [("authorization", ann.as_str())];
    for (path, headers, base) in [
        (below.as_str(), &[][..], format!("https://feeds.example.org/t/{ANN}")),
        // Documents that a password opens have no token in them.
        ("/subscribe", &by_password[..], "https://feeds.example.org".to_owned()),
    ] {
        for method in ["GET", "POST"] {
            for typed in [DIARY, PAGE] {
                let answer = gateway.ask(asked(method, path, typed, headers)).await;
                assert_eq!(header(&answer, "referrer-policy"), "no-referrer", "{path}");
                let expected = value!([{
                    "url": DIARY, "title": "News", "address": format!("{base}/feeds/{SECRET}"),
                }]);
                assert_eq!(offers(answer).await, expected, "{method} {path} {typed}");
                let looks = if typed == PAGE { vec![PAGE.to_owned()] } else { Vec::new() };
                assert_eq!(site.looked(), looks, "{method} {path} {typed}");
            }
        }
        // What there is for everybody is found by readers too.
        let answer = gateway.ask(asked("GET", path, OTHER, headers)).await;
        assert_eq!(offers(answer).await[0]["address"], Value::Null);
        site.looked();
    }
    assert!(!is_made(&gateway), "the feed was there");
    // What is on a reader's list is below the token, and for everybody where it was.
    gateway.store.edit_record("news", |record| record.url = OTHER.to_owned());
    for below in ["", &format!("/t/{ANN}")] {
        let asked = asked("GET", &format!("{below}/subscribe"), OTHER, &[]);
        let address = format!("https://feeds.example.org{below}/feeds/news");
        assert_eq!(offers(gateway.ask(asked).await).await[0]["address"], address);
    }
    assert!(site.looked().is_empty());
    // An address that leads to a known feed is that feed.
    let fragment = format!("{OTHER}#second");
    for (method, typed, asked_for) in [
        ("GET", fragment.as_str(), &[][..]),
        ("POST", &fragment, &[]),
        ("GET", MOVED, &[MOVED, OTHER]),
        ("POST", MOVED, &[MOVED, OTHER]),
        ("POST", MOVED_PAGE, &[MOVED_PAGE, MOVED, OTHER]),
    ] {
        let found = offers(gateway.ask(asked(method, "/subscribe", typed, &[])).await).await;
        let address = "https://feeds.example.org/feeds/news";
        let expected = value!([{ "url": OTHER, "title": "News", "address": address }]);
        assert_eq!(found, expected, "{method} {typed}");
        assert_eq!(site.looked(), asked_for, "{method} {typed}");
    }
    // What nobody has is one address with any fragment.
    let typed = format!("{DIARY}#x");
    let found = offers(gateway.ask(asked("GET", "/subscribe", &typed, &[])).await).await;
    assert_eq!((&found[0]["url"], site.looked()), (&DIARY.into(), vec![DIARY.to_owned()]));
    assert!(!is_made(&gateway));
}

#[tokio::test(start_paused = true)]
async fn for_everybody_else_the_private_feed_is_none() {
    let (gateway, site) = gateway(announcing());
    let (bob, wrong) = (password("ann", BOB), password("ann", WRONG));
    let below_bob = &*format!("/t/{BOB}/subscribe");
    for (path, credentials) in [
        ("/subscribe", None),
        (below_bob, None),
        ("/subscribe", Some(&*bob)),
        ("/subscribe", Some(&*wrong)),
        ("/subscribe", Some(BEARER.1)),
    ] {
        let headers: Vec<_> = credentials.iter().map(|sent| ("authorization", *sent)).collect();
        let begun = Instant::now();
        for url in [DIARY, OTHER] {
            let found = offers(gateway.ask(asked("GET", path, url, &headers)).await).await;
            // As of an address of which there is no feed.
            assert_eq!(found, value!([{ "url": url, "title": "Diary", "address": null }]));
        }
        assert_eq!(site.looked(), [DIARY, OTHER]);
        let is_slow = begun.elapsed() >= WRONG_TOKEN_PAUSE * 2;
        assert_eq!(is_slow, credentials == Some(&*wrong), "{path} {credentials:?}");
    }
    // Nothing is below a token that opens nothing, and nothing is asked for it.
    let unknown = format!("/t/{WRONG}/subscribe");
    problem(gateway.ask(asked("GET", &unknown, DIARY, &[])).await, 404).await;
    assert!(site.looked().is_empty());
    // Whoever subscribes to it gets a feed of his own, which changes nothing for the reader.
    let made = offers(gateway.ask(asked("POST", "/subscribe", DIARY, &[])).await).await;
    let public = "https://feeds.example.org/feeds/diary-example-diary-xml";
    assert_eq!(made[0]["address"], public);
    let (below_ann, own) = (format!("/t/{ANN}/subscribe"), own_address());
    for (path, address) in [("/subscribe", public), (below_bob, public), (&below_ann, &own)] {
        let found = offers(gateway.ask(asked("GET", path, DIARY, &[])).await).await;
        assert_eq!(found[0]["address"], address, "{path}");
    }
    // Nobody has the gateway ask a site as fast as they send, whether there is something or not.
    let (gateway, site) = self::gateway(announcing());
    let ask = async |last: u8, method: &str, url: &str| {
        let request = asked(method, "/subscribe", url, &[]);
        gateway.ask(with_extension(request, client(last))).await
    };
    for method in ["GET", "POST", "GET"] {
        problem(ask(1, method, NOWHERE).await, 404).await;
    }
    assert_eq!(site.looked(), [NOWHERE], "what was not found is remembered");
    for number in 0..50 {
        ask(1, "POST", &format!("{NOWHERE}/{number}")).await;
        ask(2, "GET", OTHER).await;
    }
    let refused = ask(1, "GET", &format!("{NOWHERE}/more")).await;
    assert_ne!(header(&refused, "retry-after"), "0");
    problem(refused, 429).await;
    assert!(site.looked().len() <= 40);
    offers(ask(4, "GET", OTHER).await).await;
}

/// The form is refused before it has a feed made. A browser shows why, and asks for another password only where readers
/// are asked for theirs: that of a proxy would be wrong each time.
#[tokio::test(start_paused = true)]
async fn a_form_with_a_password_that_opens_nothing_does_nothing() {
    let wrong = password("ann", WRONG);
    for challenge in [false, true] {
        let (gateway, site) = gateway(with(announcing(), |it| it.server.challenge = challenge));
        for (accept, kind) in [("*/*", "application/problem+json"), ("text/html", "text/html")] {
            let begun = Instant::now();
            let headers = [("authorization", wrong.as_str()), ("accept", accept)];
            let refused = gateway.ask(asked("POST", "/subscribe", OTHER, &headers)).await;
            assert_eq!(refused.status(), StatusCode::UNAUTHORIZED);
            assert!(header(&refused, "content-type").starts_with(kind), "{refused:?}");
            let is_asked = header(&refused, "www-authenticate").starts_with("Basic");
            assert_eq!(is_asked, challenge, "{refused:?}");
            text(refused).await.assert_shows(&["the password opens nothing"]);
            assert!(begun.elapsed() >= WRONG_TOKEN_PAUSE);
        }
        assert!(site.looked().is_empty() && !is_made(&gateway));
    }
}

/// A page below a token has no referrer, so that browsers do not say from where its form comes.
#[tokio::test]
async fn the_page_works_below_a_token() {
    let (gateway, _) = gateway(announcing());
    let browser = [("accept", "text/html"), ("origin", "null")];
    let path = format!("/t/{ANN}/subscribe");
    let link = |address: &str| format!("href=\"{address}\"");
    let made = link("https://feeds.example.org/feeds/diary-example-other-xml");
    for (method, url, shown) in [
        ("GET", OTHER, format!("method=\"post\" action=\"{path}\"")),
        ("POST", OTHER, made),
        ("POST", DIARY, link(&own_address())),
    ] {
        let answer = gateway.ask(asked(method, &path, url, &browser)).await;
        assert_eq!(answer.status(), StatusCode::OK);
        text(answer).await.assert_shows(&[&shown]);
    }
    // A browser sends a password along with what other sites make it send.
    let ann = password("ann", ANN);
    let foreign = [&browser[..], &[("authorization", ann.as_str())][..]].concat();
    let refused = gateway.ask(asked("POST", "/subscribe", DIARY, &foreign)).await;
    assert_eq!(refused.status(), StatusCode::FORBIDDEN);
    text(refused).await.assert_lacks(&[SECRET]);
    // The reader's own page leads there, where there is something to subscribe to.
    let bookmark = format!("javascript:location.href=&quot;https://feeds.example.org{path}&quot;");
    for (site, is_linked) in [(&gateway, true), (&Site::with(store(), announcing()), false)] {
        let page = text(site.get_with(&format!("/t/{ANN}/"), &browser).await).await;
        for part in [&link(&path), &bookmark] {
            assert_eq!(page.contains(part), is_linked, "{page}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn where_pages_are_closed_a_token_is_asked_for_before_anything_else() {
    let closed = |it: &mut ServeSettings| it.server.pages = PageAudience::Operators;
    let (gateway, site) = gateway(with(announcing(), closed));
    let (ann, wrong) = (password("ann", ANN), password("ann", WRONG));
    for method in ["GET", "POST"] {
        for credentials in [&[][..], &[("authorization", wrong.as_str())][..]] {
            let begun = Instant::now();
            let refused = gateway.ask(asked(method, "/subscribe", OTHER, credentials)).await;
            let challenge = "Basic realm=\"feeds\", charset=\"UTF-8\"";
            assert_eq!(header(&refused, "www-authenticate"), challenge);
            let said = problem(refused, 401).await;
            assert!(said["detail"].as_str().unwrap().contains("a reader's token"), "{said}");
            assert_eq!(begun.elapsed() >= WRONG_TOKEN_PAUSE, !credentials.is_empty());
        }
        let browser = [("accept", "text/html")];
        let leads = gateway.ask(asked(method, "/subscribe", OTHER, &browser)).await;
        assert_eq!(leads.status(), StatusCode::SEE_OTHER);
        assert!(site.looked().is_empty() && !is_made(&gateway), "nothing went out");
    }
    let below = format!("/t/{ANN}/subscribe");
    // The same where operators have a listener of their own.
    let readers = site_router(gateway.app.clone(), Listener::Readers);
    for (router, path, authorization) in [
        (&gateway.router, &*below, ""),
        (&gateway.router, "/subscribe", &ann),
        (&gateway.router, "/subscribe", BEARER.1),
        (&readers, &below, ""),
    ] {
        let headers = [("authorization", authorization)];
        let headers = if authorization.is_empty() { &[][..] } else { &headers };
        let asked = asked("GET", path, OTHER, headers);
        offers(router.clone().oneshot(asked).await.unwrap()).await;
        assert_eq!(site.looked(), [OTHER], "{path}");
    }
    problem(readers.oneshot(asked("GET", "/subscribe", OTHER, &[])).await.unwrap(), 401).await;
    // Without readers it is an operator's page.
    let none = with(with(announcing(), closed), |it| it.readers.clear());
    let refused = self::gateway(none).0.ask(asked("GET", "/subscribe", OTHER, &[])).await;
    assert!(header(&refused, "www-authenticate").starts_with("Bearer"));
}

#[tokio::test]
async fn what_is_typed_may_have_no_scheme_and_what_is_found_has_a_title() {
    let (gateway, site) = gateway(announcing());
    for (typed, found) in [
        ("plain.example/a.xml", "http://plain.example/a.xml"),
        ("feed:https://plain.example/d.xml", "http://plain.example/d.xml"),
        ("diary.example/other.xml", OTHER),
    ] {
        let answer = gateway.ask(asked("GET", "/subscribe", typed, &[])).await;
        assert_eq!(offers(answer).await[0]["url"], found, "{typed}");
        assert_eq!(site.looked(), [found]);
    }
    problem(gateway.ask(asked("GET", "/subscribe", "https://plain.example/a", &[])).await, 403)
        .await;
    assert!(site.looked().is_empty());
    // A feed is called by its title, or else by its address.
    let made = offers(gateway.ask(asked("POST", "/subscribe", OTHER, &[])).await).await;
    assert_eq!(made[0]["title"], "Diary");
    // It has no document yet, and the list of feeds no title.
    let url = "https://diary.example/new.xml";
    gateway.store.edit_record("new", |record| record.url = url.to_owned());
    let browser = [("accept", "text/html")];
    let page = text(gateway.ask(asked("GET", "/subscribe", url, &browser)).await).await;
    page.assert_shows(&[&format!("<li>{url}: point your feed reader at")]);
    gateway.store.edit_record("new", |record| record.enrolment.title = Some("Ours".to_owned()));
    let found = offers(gateway.ask(asked("GET", "/subscribe", url, &[])).await).await;
    assert_eq!(found[0]["title"], "Ours");
}
