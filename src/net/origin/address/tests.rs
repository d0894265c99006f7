use super::*;
use crate::testing::site_of_config;
use proptest::prelude::*;

fn site(url: &str, place: OriginPlace, public: &str) -> OriginSite {
    site_of_config(url, place, public, false)
}

fn below() -> OriginSite {
    let at = OriginPlace::At("/blog/".to_owned());
    site("https://blog.example/site/", at, "https://gw.example/tide")
}

fn hosted() -> OriginSite {
    let host = OriginPlace::Host("blog.gw.example".to_owned());
    site("http://127.0.0.1:9000/", host, "https://gw.example:8443/")
}

#[test]
fn a_request_is_an_origins_by_its_path_or_its_host() {
    assert_eq!(below().rest(Some("any"), "/blog/a/b"), Some("a/b"));
    assert_eq!(below().rest(None, "/blog/"), Some(""));
    for other in ["/blog", "/blogs/", "/", "/feeds/blog/"] {
        assert_eq!(below().rest(None, other), None, "{other}");
    }
    for host in [
        "blog.gw.example",
        "BLOG.gw.example:8443",
        "blog.gw.example:1",
        "blog.gw.example.",
        "blog.gw.example.:8443",
    ] {
        assert_eq!(hosted().rest(Some(host), "/feeds/x"), Some("feeds/x"), "{host}");
    }
    for host in [None, Some("gw.example"), Some("x.blog.gw.example"), Some("blog.gw.example..")] {
        assert_eq!(hosted().rest(host, "/"), None, "{host:?}");
    }
}

#[test]
fn an_address_of_ours_may_have_a_dot_at_the_end_of_its_host() {
    let there = |site: &OriginSite, text: &str| {
        site.there(&Url::parse(text).unwrap()).map(|url| url.to_string())
    };
    let found = there(&hosted(), "https://blog.gw.example.:8443/a?b");
    assert_eq!(found.as_deref(), Some("http://127.0.0.1:9000/a?b"));
    let found = there(&below(), "https://gw.example./tide/blog/a");
    assert_eq!(found.as_deref(), Some("https://blog.example/site/a"));
    let host = OriginPlace::Host("blog.example".to_owned());
    let named = site_of_config("http://127.0.0.1:9000/", host, "https://gw.example/", true);
    let found = there(&named, "http://blog.example.:9000/a");
    assert_eq!(found.as_deref(), Some("http://127.0.0.1:9000/a"));
    assert_eq!(there(&hosted(), "https://gw.example./"), None);
}

#[test]
fn the_host_is_ready_where_requests_have_one() {
    let host = |site: OriginSite| site.host().map(|host| host.to_str().unwrap().to_owned());
    assert_eq!(host(hosted()).as_deref(), Some("127.0.0.1:9000"));
    let at = OriginPlace::At("/blog/".to_owned());
    let usual = site("http://Blog.example:80/", at, "https://gw.example/");
    assert_eq!(host(usual).as_deref(), Some("blog.example"));
    // Over TLS, HTTP/2 may be used, which has no `Host`.
    assert_eq!(host(below()), None);
}

#[test]
fn what_follows_is_put_behind_the_address_as_it_is() {
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
        let expected =
            format!("{base}{rest}{}", query.map(|q| format!("?{q}")).unwrap_or_default());
        assert_eq!(there(rest, query), Ok(expected));
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
}

#[test]
fn all_spellings_of_an_address_are_one_and_what_the_client_wrote_is_passed_on() {
    let there = |rest: &str, query: Option<&str>| below().upstream(rest, query).map(String::from);
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
        let url = Url::parse(&format!("https://blog.example/{other}")).unwrap();
        let base = Url::parse("https://blog.example/").unwrap();
        let once = normalize(url, &base);
        assert_eq!(normalize(once.clone(), &base), once, "{other}");
        assert!(once.as_str().contains('%'), "{once}");
    }
    // The operator's own part keeps its spelling.
    let at = OriginPlace::At("/blog/".to_owned());
    let user = site("https://blog.example/%7euser/", at, "https://gw.example");
    assert_eq!(user.upstream("%61", None).unwrap().path(), "/%7euser/a");
    let named = Url::parse("https://gw.example/tide/blog/%61?%62").unwrap();
    assert_eq!(below().there(&named).unwrap().as_str(), "https://blog.example/site/a?b");
    let named = Url::parse("https://blog.example/site/%61").unwrap();
    assert_eq!(below().there(&named).unwrap().as_str(), "https://blog.example/site/a");
}

#[test]
fn an_address_with_a_key_is_known_by_what_is_shown_of_it() {
    let url = |text: &str| Url::parse(text).unwrap();
    let site = |base: &str| site(base, OriginPlace::At("/blog/".to_owned()), "https://gw.example");
    let plain = site("https://blog.example/");
    assert!(!plain.shows_key(&url("https://blog.example/2026/05/atom.xml")));
    for key in ["premium/k3Jx9QzLw8VtYp2R7mNb4cHd/feed.xml", "feed.xml?token=hunter2"] {
        assert!(plain.shows_key(&url(&format!("https://blog.example/{key}"))), "{key}");
    }
    // The secret part of the operator's address does not appear in public addresses.
    let secret = site("https://blog.example/a8f3c1d94be27760/");
    assert!(!secret.shows_key(&url("https://blog.example/a8f3c1d94be27760/atom.xml")));
}

#[test]
fn addresses_and_redirects_of_the_origin_have_one_here() {
    let url = |text: &str| Url::parse(text).unwrap();
    let here = |text: &str| below().public_address(&url(text));
    assert_eq!(
        here("https://blog.example/site/a?b"),
        Some("https://gw.example/tide/blog/a?b".to_owned())
    );
    assert_eq!(
        hosted().public_address(&url("http://127.0.0.1:9000/atom.xml")).as_deref(),
        Some("https://blog.gw.example:8443/atom.xml")
    );
    for other in
        ["https://blog.example/", "http://blog.example/site/a", "https://u@blog.example/site/a"]
    {
        assert_eq!(here(other), None, "{other}");
    }
    let asked = url("https://blog.example/site/a/b");
    let leads = |location: &str| below().redirected(location, &asked);
    assert_eq!(leads("/site/c?d#e").as_deref(), Some("/tide/blog/c?d#e"));
    assert_eq!(leads("../c").as_deref(), Some("/tide/blog/c"));
    assert_eq!(leads("https://blog.example/site/").as_deref(), Some("/tide/blog/"));
    assert_eq!(leads("/").as_deref(), Some("https://blog.example/"));
    assert_eq!(leads("/other?x").as_deref(), Some("https://blog.example/other?x"));
    let evil = hosted()
        .redirected("http://127.0.0.1:9000//evil.example/x", &url("http://127.0.0.1:9000/"));
    let base = url("https://blog.gw.example/");
    assert_eq!(
        base.join(&evil.unwrap()).unwrap().as_str(),
        "https://blog.gw.example//evil.example/x"
    );
    for elsewhere in ["https://other.example/site/", "//other.example/", "mailto:a@b"] {
        assert_eq!(leads(elsewhere), None, "{elsewhere}");
    }
    assert_eq!(
        hosted()
            .redirected("http://127.0.0.1:9000/dir/", &url("http://127.0.0.1:9000/dir"))
            .as_deref(),
        Some("/dir/")
    );
}

#[test]
fn a_fragment_is_no_part_of_an_address_there() {
    let there = |text: &str| below().there(&Url::parse(text).unwrap()).map(String::from);
    for typed in ["https://blog.example/site/a?b#c", "https://gw.example/tide/blog/a?b#c"] {
        assert_eq!(there(typed).as_deref(), Some("https://blog.example/site/a?b"), "{typed}");
    }
    assert_eq!(there("https://blog.example/other#c"), None);
}

#[test]
fn the_configuration_says_under_which_name_a_site_is_reached() {
    let told = |site: &OriginSite| {
        let mut headers = http::HeaderMap::new();
        site.public_name().unwrap().write(&mut headers);
        let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap().to_owned());
        (text("x-forwarded-host").unwrap(), text("x-forwarded-proto").unwrap(), text("host"))
    };
    let of = |host: &str| (host.to_owned(), "https".to_owned(), None);
    assert_eq!(told(&below()), of("gw.example"));
    assert_eq!(told(&hosted()), of("blog.gw.example:8443"));
    let host = || OriginPlace::Host("blog.example".to_owned());
    let site = site_of_config("http://127.0.0.1:9000/", host(), "https://gw.example/", true);
    assert_eq!(told(&site).2.as_deref(), Some("blog.example"));
    // A site to which readers are redirected has its own names.
    let config = OriginConfig { passes: PassMode::Redirect, ..site.config.clone() };
    let site = OriginSite::new(config, &Url::parse("https://gw.example/").unwrap());
    assert!(site.public_name().is_none());
    let sites = [Arc::new(below()), Arc::new(hosted())];
    let of = |url: &str| site_of(&sites, &Url::parse(url).unwrap());
    assert_eq!(of("http://127.0.0.1:9000/feed"), sites.last());
    assert_eq!(of("https://blog.gw.example:8443/feed"), None);
}

#[test]
fn a_site_that_is_told_our_host_redirects_to_it_by_its_own_port() {
    let url = |text: &str| Url::parse(text).unwrap();
    let host = || OriginPlace::Host("blog.example".to_owned());
    let asked = url("http://127.0.0.1:9000/dir");
    let of = |sends_host: bool, public: &str| {
        site_of_config("http://127.0.0.1:9000/", host(), public, sends_host)
    };
    let site = of(true, "https://gw.example/");
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
    assert_eq!(site.there(&url(ours)).unwrap().as_str(), "http://127.0.0.1:9000/dir/");
    for other in ["http://blog.example:8080/", "ftp://blog.example/", "http://www.blog.example/"] {
        assert_eq!(site.redirected(other, &asked), None, "{other}");
        assert_eq!(site.there(&url(other)), None, "{other}");
    }
    let site = of(true, "https://gw.example:8443/");
    let by_port = site.redirected("http://blog.example:8443/dir/", &asked);
    assert_eq!(by_port.as_deref(), Some("/dir/"));
    // If the site is not told our host, that host is somebody else's.
    let site = of(false, "https://gw.example/");
    assert_eq!(site.redirected("http://blog.example/dir/", &asked), None);
}

#[test]
fn a_page_that_leads_on_later_leads_to_its_address_here() {
    let asked = Url::parse("http://127.0.0.1:9000/a/b").unwrap();
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
}

#[test]
fn what_is_not_of_ascii_leads_to_its_address_here_too() {
    let asked = Url::parse("http://127.0.0.1:9000/a").unwrap();
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
}

#[test]
fn what_no_address_has_is_not_passed_on_as_it_is() {
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
