//! Tests of proxies and certificates, with a proxy and a TLS publisher in this process.

use super::super::{AllowPrivate, CallRequest, FetchBlame, Fetched, Refusal, services};
use super::*;
use crate::testing::{
    self, Publisher, all_private, document, literal, our_ca, redirect, response, with_access,
};
use std::sync::Mutex;
use tidegate_core::model::{FeedAccess, ProxyAddress, ProxyRoute, UserPassword};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tower::ServiceExt as _;

fn proxy(url: &str) -> ProxyAddress {
    ProxyAddress { url: url.to_owned(), login: None }
}

/// Returns settings by which one proxy serves all, and resolves names.
fn by_proxy(proxy: ProxyAddress) -> FetchSettings {
    FetchSettings { proxy: Some(proxy), proxy_resolves: true, ..FetchSettings::default() }
}

fn with_login(url: &str) -> ProxyAddress {
    let login = UserPassword { user: literal("me"), password: literal("a:b@/c") };
    ProxyAddress { login: Some(Box::new(login)), ..proxy(url) }
}

async fn fetch(
    url: &str,
    route: Option<ProxyRoute>,
    settings: FetchSettings,
) -> Result<Fetched, FetchError> {
    let access = FeedAccess { route, ..FeedAccess::default() };
    testing::fetch(settings, with_access(url, &access)).await
}

/// Starts a proxy that opens tunnels to a local port, whatever host is requested. Returns its address and the heads of
/// its requests.
async fn tunnels_to(port: u16) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let heads = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&heads);
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(socket.read_u8().await.unwrap());
            }
            seen.lock().unwrap().push(String::from_utf8(head).unwrap());
            socket.write_all(b"HTTP/1.1 200 Go on\r\n\r\n").await.unwrap();
            let mut to = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
            tokio::spawn(async move { copy_bidirectional(&mut socket, &mut to).await });
        }
    });
    (address, heads)
}

#[tokio::test]
async fn certificates_of_an_own_authority_are_believed_where_the_operator_names_it() {
    let publisher = Publisher::start_tls(&[], |_| response("200 OK", "", b"<feed/>")).await;
    let url = format!("https://localhost:{}/feed", publisher.port);
    let refused = fetch(&url, None, all_private()).await.unwrap_err();
    assert!(matches!(refused, FetchError::Unusable { .. } | FetchError::NoRoots), "{refused}");
    let settings = FetchSettings { ca_file: Some(our_ca()), ..all_private() };
    assert_eq!(document(&fetch(&url, None, settings.clone()).await.unwrap()).bytes, "<feed/>");
    // So are they behind the tunnel of a proxy.
    let (address, heads) = tunnels_to(publisher.port).await;
    let route = Some(ProxyRoute::Proxy(with_login(&address)));
    // The proxy leads to the publisher regardless of the port.
    let fetched = fetch("https://localhost:4433/feed", route, settings).await.unwrap();
    assert_eq!(document(&fetched).bytes, "<feed/>");
    let head = heads.lock().unwrap().remove(0).to_lowercase();
    assert!(head.starts_with("connect localhost:4433 http/1.1\r\n"), "{head}");
    let pair = data_encoding::BASE64.encode(b"me:a:b@/c").to_lowercase();
    assert!(head.contains(&format!("proxy-authorization: basic {pair}\r\n")), "{head}");
    // A proxy that gives no connection is named without its credentials.
    let refusing = Publisher::start(|_| response("407 Who are you", "", b"")).await;
    let closed = "http://127.0.0.1:1".to_owned();
    for (proxy, why, blame) in [
        (refusing.url(""), "authorization required", FetchBlame::Operator),
        (closed, "refused", FetchBlame::Network),
    ] {
        let route = Some(ProxyRoute::Proxy(with_login(&proxy)));
        let error = fetch("https://localhost/feed", route, all_private()).await.unwrap_err();
        let said = error.to_string();
        let start = format!("the proxy {proxy} gave no connection to localhost: ");
        assert!(said.starts_with(&start) && said.contains(why), "{said}");
        assert_eq!(error.blame(), blame);
    }
}

#[tokio::test]
async fn the_proxy_of_all_is_for_all_but_the_operators_own_hosts_and_feeds_with_another_way() {
    let through = Publisher::start(|_| response("200 OK", "", b"by proxy")).await;
    let direct = Publisher::start(|_| response("200 OK", "", b"direct")).await;
    let proxied = by_proxy(with_login(&through.url("")));
    let settings = FetchSettings { allow_private: AllowPrivate::All, ..proxied };
    let known_by_proxy = "http://news.invalid/feed?a=b";
    let fetched = fetch(known_by_proxy, None, settings.clone()).await.unwrap();
    assert_eq!(document(&fetched).bytes, "by proxy");
    let head = through.heads().remove(0);
    assert!(head.starts_with("get http://news.invalid/feed?a=b http/1.1\r\n"), "{head}");
    assert!(head.contains("proxy-authorization: basic "), "{head}");
    let own = direct.url("/feed");
    let fetched = fetch(&own, None, settings.clone()).await.unwrap();
    assert_eq!(document(&fetched).bytes, "direct");
    let by = Some(ProxyRoute::Proxy(proxy(&through.url(""))));
    let fetched = fetch(&own, by.clone(), all_private()).await.unwrap();
    assert_eq!(document(&fetched).bytes, "by proxy");
    let straight = fetch(known_by_proxy, Some(ProxyRoute::Direct), settings.clone()).await;
    assert!(matches!(straight, Err(FetchError::Name { .. })), "{straight:?}");
    // The same applies to pages.
    let services = services(settings).unwrap();
    let page = |route| CallRequest { route, ..testing::page(&own) };
    services.call.clone().oneshot(page(by)).await.unwrap();
    assert_eq!(through.heads().len(), 3);
    services.call.oneshot(page(None)).await.unwrap();
    assert_eq!(direct.heads().len(), 2);
}

#[tokio::test]
async fn the_guard_stands_before_proxies_as_well() {
    let through = Publisher::start(|_| redirect("302 Found", "http://localhost/admin")).await;
    for scheme in ["http", "socks5", "socks5h"] {
        let address = format!("{scheme}://127.0.0.1:{}", through.port);
        let settings = by_proxy(proxy(&address));
        for url in [
            "http://10.0.0.1/feed",
            "http://[::ffff:169.254.169.254]/",
            "http://2130706433/",
            "http://localhost/feed",
            "https://localhost:8443/feed",
        ] {
            for route in [None, Some(ProxyRoute::Proxy(proxy(&address)))] {
                let refused = fetch(url, route, settings.clone()).await;
                let is_refused = matches!(
                    refused,
                    Err(FetchError::Refused { refusal: Refusal::Address { .. }, .. })
                );
                assert!(is_refused, "{scheme} {url}: {refused:?}");
            }
        }
        // An unresolvable name is left to the proxy only if the operator allows it.
        let strict = FetchSettings { proxy_resolves: false, ..settings };
        let error = fetch("http://news.invalid/feed", None, strict).await.unwrap_err();
        assert!(matches!(error, FetchError::Unusable { .. }), "{error}");
        assert_eq!(error.blame(), FetchBlame::Operator);
    }
    assert_eq!(through.heads().len(), 0);
    let settings = by_proxy(proxy(&through.url("")));
    let refused = fetch("http://news.invalid/", None, settings).await.unwrap_err();
    assert!(matches!(refused, FetchError::Refused { hop: 1, .. }), "{refused:?}");
}

#[test]
fn clients_for_proxies_are_kept_within_the_limit_and_others_while_they_are_used() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let maker = ClientMaker::new(&FetchSettings::default()).unwrap();
    let ready = |n: u64| ReadyProxy::read(&proxy(&format!("http://127.0.0.1:{}", n + 1))).unwrap();
    let use_one = |proxy: Option<&ReadyProxy>| {
        maker.clients(proxy, Openness::Public, HttpVersions::All).unwrap();
        maker.made.run_pending_tasks();
    };
    for n in 0..MAX_CLIENTS + 2 {
        use_one(Some(&ready(n)));
        use_one(None);
    }
    let has = |proxy| maker.made.contains_key(&(proxy, Openness::Public, HttpVersions::All));
    let has_proxy = |n| has(Some(ready(n)));
    assert_eq!(maker.made.entry_count(), MAX_CLIENTS);
    assert!(has(None) && has_proxy(MAX_CLIENTS + 1) && !has_proxy(0), "the oldest goes");
    // So many hosts have a place, and keep it for a while.
    let kept = KeptHosts::default();
    let admitted = |hosts: std::ops::Range<u64>, soon| {
        hosts.filter(|host| kept.admit(*host, soon)).count() as u64
    };
    assert_eq!(admitted(0..MAX_KEPT_HOSTS, false), MAX_KEPT_HOSTS / 2);
    assert_eq!(admitted(10_000..20_000, true), MAX_KEPT_HOSTS / 2);
    assert!(kept.admit(0, false) && !kept.admit(u64::MAX, true));
    assert_eq!(kept.0.policy().time_to_idle(), Some(KEPT_IDLE));
}
