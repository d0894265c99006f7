use super::*;
use crate::config::PassMode;
use crate::model::FeedName;
use proptest::prelude::*;
use std::time::Duration;

pub(crate) fn site(url: &str, place: OriginPlace, public: &str) -> OriginSite {
    let config = OriginConfig {
        name: FeedName::new("blog").unwrap(),
        url: Url::parse(url).unwrap(),
        place,
        passes: PassMode::Through,
        first_wait: Duration::from_secs(5),
        idle: Duration::from_secs(86_400),
        feeds: 10,
    };
    OriginSite::new(config, &Url::parse(public).unwrap())
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
    for host in ["blog.gw.example", "BLOG.gw.example:8443", "blog.gw.example:1"] {
        assert_eq!(hosted().rest(Some(host), "/feeds/x"), Some("feeds/x"), "{host}");
    }
    for host in [None, Some("gw.example"), Some("x.blog.gw.example"), Some("blog.gw.example.")] {
        assert_eq!(hosted().rest(host, "/"), None, "{host:?}");
    }
}

#[test]
fn the_host_is_ready_where_requests_have_one() {
    let host = |site: OriginSite| site.host().map(|host| host.to_str().unwrap().to_owned());
    assert_eq!(host(hosted()).as_deref(), Some("127.0.0.1:9000"));
    let at = OriginPlace::At("/blog/".to_owned());
    let usual = site("http://Blog.example:80/", at, "https://gw.example/");
    assert_eq!(host(usual).as_deref(), Some("blog.example"));
    // It may be HTTP/2 that is spoken there.
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
        assert_eq!(there(dots, None), Err(AddressFault::Dots), "{dots}");
    }
    for wrong in ["a\\b", "a\0", "a\nb", "a#b"] {
        assert_eq!(there(wrong, None), Err(AddressFault::Character), "{wrong:?}");
    }
    assert_eq!(there(&"x".repeat(ADDRESS_LIMIT), None), Err(AddressFault::TooLong));
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
fn what_no_address_has_is_not_passed_on_as_it_is() {
    let target =
        |rest: &str, query: Option<&str>| below().target(rest, query).map(|it| it.to_string());
    let base = below().config.url.to_string();
    assert_eq!(target("a;b//c", Some("d='e'")), Some(format!("{base}a;b//c?d='e'")));
    assert_eq!(target("", Some("")), Some(format!("{base}?")));
    for foreign in ["ü", "a\"b", "a b", "{x}", "a|b"] {
        assert_eq!(target(foreign, None), None, "{foreign}");
        assert_eq!(target("", Some(foreign)), None, "{foreign}");
    }
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
