//! Administration with a listener of its own, and pages that are for operators alone.

use super::private::{ANN, announcing, store};
use super::*;
use tidegate_config::PageAudience;

#[tokio::test]
async fn operators_may_have_their_own_listener() {
    let apart =
        |it: &mut ServeSettings| it.server.admin_listen = Some(([127, 0, 0, 1], 8081).into());
    let site = Site::with(store(), with(announcing(), apart));
    let readers = site_router(site.app.clone(), Listener::Readers);
    let operators = site_router(site.app.clone(), Listener::Operators);
    let ask = async |router: &Router, method: &str, path: &str| {
        router.clone().oneshot(request(method, path, &[BEARER], "")).await.unwrap()
    };
    for (method, path) in [
        ("GET", "/api/v1/feeds"),
        ("GET", "/metrics"),
        ("GET", "/session"),
        ("POST", "/session"),
        ("POST", "/session/end"),
        ("GET", "/add"),
        ("POST", "/feeds/news/about"),
        ("POST", "/feeds/news/conflicts"),
        // The token of the operator opens nothing where readers ask.
        ("GET", "/feeds/hidden-diary"),
    ] {
        assert_eq!(ask(&readers, method, path).await.status(), 404, "{method} {path}");
        assert_ne!(ask(&operators, method, path).await.status(), 404, "{method} {path}");
    }
    for router in [&readers, &operators] {
        for path in ["/", "/recent", "/feeds/news", "/feeds/news/about", "/readyz"] {
            assert_eq!(ask(router, "GET", path).await.status(), 200, "{path}");
        }
    }
    for path in ["/", "/feeds/news/about", "/feeds/news/conflicts"] {
        let page = text(ask(&readers, "GET", path).await).await;
        page.assert_lacks(&["/session", "/add\"", "/metrics"]);
    }
    text(ask(&operators, "GET", "/").await).await.assert_shows(&["href=\"/add\""]);
    // Nor is a browser offered what is not there, whatever cookie it has.
    let browser = [("accept", "text/html"), ("cookie", "tidegate-session=00")];
    let below = format!("/t/{ANN}/feeds/news/about");
    for (path, status) in [("/feeds/news/about", 200), (&below, 200), ("/session", 404)] {
        let page = readers.clone().oneshot(request("GET", path, &browser, "")).await.unwrap();
        assert_eq!(page.status(), status, "{path}");
        let page = text(page).await;
        page.assert_lacks(&["Sign in", "<form", "href=\"/session"]);
        assert_eq!(page.contains("There is nothing here"), status == 404, "{path}");
    }
    // A form is taken from the listener of operators alone: scripts of a site in front may run at the public address.
    // Browsers send the cookie to every port of a host, and over plain http they say no more than the origin.
    let send = async |path: &str, origin: &str, cookie: &str, body: &str| {
        let host = ("host", "feeds.example.org:8081");
        let headers = [FORM, host, ("origin", origin), ("cookie", cookie)];
        operators.clone().oneshot(request("POST", path, &headers, body)).await.unwrap()
    };
    site.polling.start().await;
    let (before, own, token) =
        (site.writes(), "https://feeds.example.org:8081", format!("token={TOKEN}&to=/"));
    let answer = send("/session", own, "", &token).await;
    assert_eq!(answer.status(), 303);
    let cookie = header(&answer, "set-cookie").split(';').next().unwrap();
    let about = "/feeds/news/about";
    for origin in ["https://feeds.example.org", "https://feeds.example.org:8082", "null"] {
        for (path, body) in [("/session", &*token), (about, "do=pause")] {
            assert_eq!(send(path, origin, cookie, body).await.status(), 403, "{origin} {path}");
        }
    }
    assert_eq!(site.writes(), before);
    assert_eq!(send(about, own, cookie, "do=pause").await.status(), 303);
    // Pages may be for operators alone.
    let closed = with(announcing(), |it| it.server.pages = PageAudience::Operators);
    let site = Site::with(store(), closed);
    let browser = [("accept", "text/html")];
    for path in ["/", "/recent", "/feeds/news/about", "/feeds/news/items", "/feeds/unknown/items"] {
        problem(site.get(path).await, 401).await;
        let leads = site.get_with(path, &browser).await;
        assert_eq!(leads.status(), 303, "{path}");
        assert!(header(&leads, "location").starts_with("/session?to=%2F"), "{path}");
    }
    assert_eq!(site.get_with("/recent", &[BEARER]).await.status(), 200);
    // Feeds are for everybody all the same, and a reader's pages for the reader.
    assert_eq!(site.get("/feeds/news").await.status(), 200);
    assert_eq!(site.get(&format!("/t/{ANN}/feeds/news/about")).await.status(), 200);
}
