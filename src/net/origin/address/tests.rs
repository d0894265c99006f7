use super::*;
use crate::testing::{site_of_config, url};
use proptest::prelude::*;

fn site_at(url: &str, public: &str) -> OriginSite {
    site_of_config(url, OriginPlace::At("/blog/".to_owned()), public, false)
}

fn below() -> OriginSite {
    site_at("https://blog.example/site/", "https://gw.example/tide")
}

fn hosted() -> OriginSite {
    let host = OriginPlace::Host("blog.gw.example".to_owned());
    site_of_config("http://127.0.0.1:9000/", host, "https://gw.example:8443/", false)
}

/// Creates a site at a host of its own, which may be told that name.
fn named(public: &str, sends_host: bool) -> OriginSite {
    let host = OriginPlace::Host("blog.example".to_owned());
    site_of_config("http://127.0.0.1:9000/", host, public, sends_host)
}

fn there(site: &OriginSite, text: &str) -> Option<String> {
    site.there(&url(text)).map(String::from)
}

#[test]
fn a_request_is_an_origins_by_its_path_or_its_host() {
    assert_eq!(below().rest(Some("any"), "/blog/a/b"), Some("a/b"));
    assert_eq!(below().rest(None, "/blog/"), Some(""));
    for other in ["/blog", "/blogs/", "/", "/feeds/blog/"] {
        assert_eq!(below().rest(None, other), None, "{other}");
    }
    for end in ["", ":8443", ":1", ".", ".:8443"] {
        for host in [format!("blog.gw.example{end}"), format!("BLOG.gw.example{end}")] {
            assert_eq!(hosted().rest(Some(&host), "/feeds/x"), Some("feeds/x"), "{host}");
        }
    }
    for host in [None, Some("gw.example"), Some("x.blog.gw.example"), Some("blog.gw.example..")] {
        assert_eq!(hosted().rest(host, "/"), None, "{host:?}");
    }
    // The host is ready where requests have one.
    let host = |site: OriginSite| site.host().map(|host| host.to_str().unwrap().to_owned());
    assert_eq!(host(hosted()).as_deref(), Some("127.0.0.1:9000"));
    let usual = site_at("http://Blog.example:80/", "https://gw.example/");
    assert_eq!(host(usual).as_deref(), Some("blog.example"));
    // Over TLS, HTTP/2 may be used, which has no `Host`.
    assert_eq!(host(below()), None);
    // An address of ours, or of the site, has one there without its fragment.
    let own = named("https://gw.example/", true);
    for (site, ours, found) in [
        (hosted(), "https://blog.gw.example.:8443/a?b", Some("http://127.0.0.1:9000/a?b")),
        (below(), "https://gw.example./tide/blog/a", Some("https://blog.example/site/a")),
        (own, "http://blog.example.:9000/a", Some("http://127.0.0.1:9000/a")),
        (hosted(), "https://gw.example./", None),
        (below(), "https://blog.example/site/a?b#c", Some("https://blog.example/site/a?b")),
        (below(), "https://gw.example/tide/blog/%61?%62#c", Some("https://blog.example/site/a?b")),
        (below(), "https://blog.example/site/%61", Some("https://blog.example/site/a")),
        (below(), "https://blog.example/other#c", None),
    ] {
        assert_eq!(there(&site, ours).as_deref(), found, "{ours}");
    }
}

#[test]
fn what_follows_is_put_behind_the_address_as_it_is_and_all_spellings_are_one() {
    let there = |rest: &str, query: Option<&str>| below().upstream(rest, query).map(String::from);
    let base = "https://blog.example/site/";
    for (rest, query) in [
        ("", None),
        ("a/b.html", Some("x=1&y=%20")),
        ("%C3%BC/a%2Fb", Some("")),
        ("/evil.example/", None),
        ("@evil.example", None),
        ("http://evil.example/", None),
        ("a..b/...", None),
    ] {
        let query_after = query.map(|query| format!("?{query}")).unwrap_or_default();
        assert_eq!(there(rest, query), Ok(format!("{base}{rest}{query_after}")));
    }
    for dots in
        ["..", "a/../b", "%2e%2e/x", "a/.%2E", ".", "..;x=1/a", "..%2fx", "a%5C..", "%2e%2e%2Fx"]
    {
        assert_eq!(there(dots, None), Err(DOTS), "{dots}");
    }
    for wrong in ["a\\b", "a\0", "a\nb", "a#b"] {
        assert_eq!(there(wrong, None), Err(CHARACTER), "{wrong:?}");
    }
    assert_eq!(there(&"x".repeat(MAX_URL_BYTES), None), Err(TOO_LONG));
    // All spellings of an address are one, and what the client wrote is passed on.
    let plain = there("~a/atom.xml", Some("a=b%2Fc"));
    for (rest, query) in [
        ("%7ea/%61tom%2Exml", "a=b%2fc"),
        ("%7Ea/%61%74%6f%6D.xml", "%61=%62%2Fc"),
        ("~a/atom.xml", "a=b%2Fc"),
    ] {
        assert_eq!(there(rest, Some(query)), plain, "{rest}?{query}");
        let own = below().target(rest, Some(query)).unwrap().to_string();
        assert!(own.ends_with(&format!("/{rest}?{query}")), "{own}");
    }
    // An invalid escape stays, and does not combine with what follows.
    for other in ["a%2fb", "a%%34%31", "a%", "a%4", "a%+1", "%25%41"] {
        let base = url("https://blog.example/");
        let once = normalize(url(&format!("{base}{other}")), &base);
        assert_eq!(normalize(once.clone(), &base), once, "{other}");
        assert!(once.as_str().contains('%'), "{once}");
    }
    // The operator's own part keeps its spelling.
    let user = site_at("https://blog.example/%7euser/", "https://gw.example");
    assert_eq!(user.upstream("%61", None).unwrap().path(), "/%7euser/a");
}

#[test]
fn addresses_and_redirects_of_the_origin_have_one_here() {
    for (site, address, here) in [
        (below(), "https://blog.example/site/a?b", Some("https://gw.example/tide/blog/a?b")),
        (hosted(), "http://127.0.0.1:9000/a.xml", Some("https://blog.gw.example:8443/a.xml")),
        (below(), "https://blog.example/", None),
        (below(), "http://blog.example/site/a", None),
        (below(), "https://u@blog.example/site/a", None),
    ] {
        assert_eq!(site.public_address(&url(address)).as_deref(), here, "{address}");
    }
    let asked = url("https://blog.example/site/a/b");
    for (location, here) in [
        ("/site/c?d#e", Some("/tide/blog/c?d#e")),
        ("../c", Some("/tide/blog/c")),
        ("https://blog.example/site/", Some("/tide/blog/")),
        ("/", Some("https://blog.example/")),
        ("/other?x", Some("https://blog.example/other?x")),
        ("https://other.example/site/", None),
        ("//other.example/", None),
        ("mailto:a@b", None),
    ] {
        assert_eq!(below().redirected(location, &asked).as_deref(), here, "{location}");
    }
    let asked = url("http://127.0.0.1:9000/dir");
    let leads = |path: &str| hosted().redirected(&format!("http://127.0.0.1:9000{path}"), &asked);
    assert_eq!(leads("/dir/").as_deref(), Some("/dir/"));
    let evil = url("https://blog.gw.example/").join(&leads("//evil.example/x").unwrap()).unwrap();
    assert_eq!(evil.as_str(), "https://blog.gw.example//evil.example/x");
    // An address with a key is known by what is shown of it.
    let plain = site_at("https://blog.example/", "https://gw.example");
    assert!(!plain.shows_key(&url("https://blog.example/2026/05/atom.xml")));
    for key in ["premium/k3Jx9QzLw8VtYp2R7mNb4cHd/feed.xml", "feed.xml?token=hunter2"] {
        assert!(plain.shows_key(&url(&format!("https://blog.example/{key}"))), "{key}");
    }
    // The secret part of the operator's address does not appear in public addresses.
    let secret = site_at("https://blog.example/a8f3c1d94be27760/", "https://gw.example");
    assert!(!secret.shows_key(&url("https://blog.example/a8f3c1d94be27760/atom.xml")));
}

#[test]
fn the_configuration_says_under_which_name_a_site_is_reached() {
    let told = |site: &OriginSite| {
        let mut headers = http::HeaderMap::new();
        headers.insert("x-forwarded-host", http::HeaderValue::from_static("other.example"));
        site.public_name().unwrap().write(&mut headers);
        ["x-forwarded-host", "x-forwarded-proto", "forwarded", "host"].map(|name| {
            headers.get_all(name).iter().map(|value| value.to_str().unwrap()).collect::<String>()
        })
    };
    let of_hosted = "host=\"blog.gw.example:8443\";proto=https";
    assert_eq!(told(&below()), ["gw.example", "https", "host=gw.example;proto=https", ""]);
    assert_eq!(told(&hosted()), ["blog.gw.example:8443", "https", of_hosted, ""]);
    let site = named("https://gw.example/", true);
    assert_eq!(told(&site)[3], "blog.example");
    assert!(PublicName::new("http", "a\nb", false).is_none());
    // A site to which readers are redirected has its own names.
    let config = OriginConfig { passes: PassMode::Redirect, ..site.config.clone() };
    assert!(OriginSite::new(config, &url("https://gw.example/")).public_name().is_none());
    let sites = [Arc::new(below()), Arc::new(hosted())];
    assert_eq!(site_of(&sites, &url("http://127.0.0.1:9000/feed")), sites.last());
    assert_eq!(site_of(&sites, &url("https://blog.gw.example:8443/feed")), None);
}

#[test]
fn a_site_that_is_told_our_host_redirects_to_it_by_its_own_port() {
    let asked = url("http://127.0.0.1:9000/dir");
    let site = named("https://gw.example/", true);
    for own in [
        "http://blog.example:9000/dir/?a#b",
        "http://blog.example/dir/?a#b",
        "http://127.0.0.1:9000/dir/?a#b",
        "/dir/?a#b",
    ] {
        assert_eq!(site.redirected(own, &asked).as_deref(), Some("/dir/?a#b"), "{own}");
        let there = site.there(&asked.join(own).unwrap()).unwrap();
        assert_eq!(&there[..Position::AfterQuery], "http://127.0.0.1:9000/dir/?a", "{own}");
    }
    // Our own address stays unchanged, and leads a poll to the site.
    let ours = "https://blog.example/dir/";
    assert_eq!(site.redirected(ours, &asked), None);
    assert_eq!(there(&site, ours).unwrap(), "http://127.0.0.1:9000/dir/");
    for other in ["http://blog.example:8080/", "ftp://blog.example/", "http://www.blog.example/"] {
        assert_eq!(site.redirected(other, &asked), None, "{other}");
        assert_eq!(there(&site, other), None, "{other}");
    }
    let by_port = named("https://gw.example:8443/", true);
    let led = by_port.redirected("http://blog.example:8443/dir/", &asked);
    assert_eq!(led.as_deref(), Some("/dir/"));
    // If the site is not told our host, that host is somebody else's.
    let untold = named("https://gw.example/", false);
    assert_eq!(untold.redirected("http://blog.example/dir/", &asked), None);
}

#[test]
fn a_page_that_leads_on_later_leads_to_its_address_here() {
    let asked = url("http://127.0.0.1:9000/a/b");
    let leads = |refresh: &str| hosted().refreshed(refresh, &asked);
    for (refresh, here) in [
        ("0; url=http://127.0.0.1:9000/x?y#z", "0;url=/x?y#z"),
        ("5;URL='http://127.0.0.1:9000/x'; more", "5;url=/x"),
        ("0,\"c\"", "0;url=/a/c"),
        ("1.5; c?url=d ", "1.5;url=/a/c?url=d"),
        ("0; Url = /c", "0;url=/c"),
    ] {
        assert_eq!(leads(refresh).as_deref(), Some(here), "{refresh}");
    }
    for kept in ["5", "0; url=https://other.example/", "0; url='", ";"] {
        assert!(leads(kept).is_none_or(|here| !here.contains("127.0.0.1")), "{kept}");
    }
    assert_eq!(leads("0; url=https://other.example/"), None);
    // So does what is not of ASCII.
    let asked = url("http://127.0.0.1:9000/a");
    let leads = |name: HeaderName, value: &[u8]| {
        hosted().led_here(&name, &HeaderValue::from_bytes(value).unwrap(), &asked)
    };
    let (utf8, latin): (&[u8], &[u8]) =
        (b"http://127.0.0.1:9000/\xc3\xbc?\xc3\xbc", b"http://127.0.0.1:9000/\xfc");
    for name in [header::LOCATION, header::CONTENT_LOCATION] {
        assert_eq!(leads(name.clone(), utf8).as_deref(), Some("/%C3%BC?%C3%BC"), "{name}");
        assert_eq!(leads(name.clone(), latin).as_deref(), Some("/%FC"), "{name}");
    }
    let refresh = [b"0; url=".as_slice(), utf8].concat();
    assert_eq!(leads(header::REFRESH, &refresh).as_deref(), Some("0;url=/%C3%BC?%C3%BC"));
    assert_eq!(leads(header::LOCATION, "https://ü.example/ü".as_bytes()), None);
    // What no address has is not passed on as it is.
    let target =
        |rest: &str, query: Option<&str>| below().target(rest, query).map(|it| it.to_string());
    let base = below().config.url.to_string();
    assert_eq!(target("a;b//c", Some("d='e'")), Some(format!("{base}a;b//c?d='e'")));
    assert_eq!(target("", Some("")), Some(format!("{base}?")));
    // The rest of the client's spelling stays.
    assert_eq!(target("%7ea\"", Some("ü%41")), Some(format!("{base}%7ea%22?%C3%BC%41")));
    assert_eq!(target("%7e a", Some("{x}%c3")), Some(format!("{base}%7e%20a?{{x}}%c3")));
}

proptest! {
    #[test]
    fn nothing_leads_out_of_the_origin(rest in "([a-z./%\\\\@:?#;\u{0}]|%2e|%2f|%5c|//){0,24}", query in proptest::option::of("[a-z/.:@]{0,8}")) {
        for site in [below(), hosted()] {
            if let Ok(url) = site.upstream(&rest, query.as_deref()) {
                prop_assert!(site.holds(&url));
                prop_assert_eq!(url.host_str(), site.config.url.host_str());
                let back = site.public_address(&url).unwrap();
                prop_assert!(back.starts_with(&site.public));
            }
        }
    }
}
