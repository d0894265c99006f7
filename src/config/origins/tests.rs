use super::*;
use crate::{Config, FAULTS_SHOWN, check};

/// Every fault of a text, one a line.
fn faults(text: &str) -> String {
    check("f", text).map_or_else(|faults| faults.to_string(), |_| String::new())
}

fn good(text: &str) -> Config {
    check("f", text)
        .map(|checked| checked.config)
        .unwrap_or_else(|faults| panic!("{text}: {faults}"))
}

/// A table `[[origin]]` of five lines; `place` is the fourth, `more` the fifth.
fn origin(name: &str, place: &str, more: &str) -> String {
    format!("[[origin]]\nname = {name:?}\nurl = \"https://{name}.example/\"\n{place}\n{more}\n")
}

/// A table `[[feed]]` of four lines, of which the last has the path.
fn feed(name: &str, path: &str) -> String {
    format!("[[feed]]\nname = {name:?}\nurl = \"https://example.org/{name}\"\npath = {path:?}\n")
}

/// The one fault of a text begins so.
fn assert_fault(text: &str, said: &str) {
    let found = faults(text);
    assert!(found.starts_with(said), "{text}\n{found}");
    assert_eq!(found.lines().count(), 1, "{text}\n{found}");
}

#[test]
fn origins_have_defaults() {
    let config = good(&origin("blog", "at = \"/blog/\"", ""));
    let days = |days: u64| Duration::from_secs(days * 86_400);
    let expected = OriginConfig {
        name: FeedName::new("blog").unwrap(),
        url: Url::parse("https://blog.example/").unwrap(),
        place: OriginPlace::At("/blog/".to_owned()),
        passes: PassMode::Redirect,
        sends_host: false,
        first_wait: Duration::from_secs(5),
        idle: days(30),
        feeds: 1000,
        requests: 256,
    };
    assert_eq!(config.origins, [expected]);
    let config = good("[[allow]]\nurl = \"https://example.org\"");
    let url = Url::parse("https://example.org/").unwrap();
    assert_eq!(config.allow, [AllowConfig { url, idle: days(30), feeds: 100 }]);
    let none = Config::default();
    assert_eq!((none.origins, none.allow), (Vec::new(), Vec::new()));
}

#[test]
fn origins_say_where_they_are_and_what_they_get() {
    let written = "[[origin]]\nname = \"site\"\nurl = \"http://127.0.0.1:8081/blog\"\n\
                   host = \"Blog.GW.example.\"\npass = true\nfirst_wait = \"1m\"\nidle = \"1d\"\n\
                   feeds = 100000\n";
    let config =
        good(&format!("{written}{}", origin("docs", "at = \"/docs/v1/\"", "pass = \"redirect\"")));
    let [site, docs] = &config.origins[..] else { panic!("{:?}", config.origins) };
    assert_eq!(site.url.as_str(), "http://127.0.0.1:8081/blog/");
    assert_eq!(site.place, OriginPlace::Host("blog.gw.example".to_owned()));
    assert_eq!((site.passes, site.feeds), (PassMode::Through, 100_000));
    assert_eq!((site.first_wait.as_secs(), site.idle.as_secs()), (60, 86_400));
    assert_eq!(
        (docs.passes, &docs.place),
        (PassMode::Redirect, &OriginPlace::At("/docs/v1/".to_owned()))
    );
    for host in ["müsli.example", "blog", "blog_1.internal"] {
        assert!(host_name(host).is_ok(), "{host}");
    }
}

/// Those beside them that are refused stand in `tests/wrong.toml`.
#[test]
fn what_is_good_is_taken() {
    let at = |path: &str, more: &str| origin("a", &format!("at = {path:?}"), more);
    let host = |host: &str, more: &str| origin("a", &format!("host = {host:?}"), more);
    let other = |place: &str, more: &str| origin("other", place, more);
    let public = "[server]\npublic_url = \"https://Gate.example:8443/x\"\n";
    let apart = "[server]\nadmin_listen = \"127.0.0.1:8081\"\n";
    let reader = "[[reader]]\nname = \"ann\"\ntoken = { env = \"ANN\" }\nall_private = true\n";
    let send = "pass = true\nsend_host = true";
    for text in [
        // Feeds have names of their own.
        at("/a/", "") + "[[feed]]\nname = \"a\"\nurl = \"https://a\"\n",
        // Of a site and a part of it each has its own.
        "[[allow]]\nurl = \"https://a/\"\n[[allow]]\nurl = \"https://a/b\"".to_owned(),
        at("/a/", "") + &other("at = \"/ab/\"", ""),
        at("/a/", "") + &other("at = \"/A/\"", ""),
        at("/a/", "") + &other("host = \"a.example\"", ""),
        host("a.example", "") + &other("host = \"b.a.example\"", ""),
        public.to_owned() + &host("blog.gate.example", "pass = true"),
        // Who names no public address may have a host all the same.
        host("blog.example", "pass = true"),
        apart.to_owned() + &at("/a/", "pass = true"),
        host("a.example", "pass = true") + reader,
        at("/a/", "pass = \"redirect\"") + reader,
        at("/a/", "first_wait = \"60s\"\nidle = \"3650d\"\nfeeds = 100000"),
        host("a.example", send) + &other("host = \"b.example\"", send),
    ] {
        good(&text);
    }
    for free in ["/feed/", "/Feeds/", "/.well-known/", "/a/feeds/", "/~ann/b;c=d,e/", "/a.b/...x/"]
    {
        good(&at(free, ""));
    }
    assert!(good(&host("a.example.org", send)).origins[0].sends_host);
    for free in ["/atom.xml", "/feed/", "/feed", "/a/feeds/b", "/@ann/posts.rss", "/blog"] {
        let config = good(&(at("/blog/", "") + &feed("news", free)));
        assert_eq!(config.feeds[0].path.as_deref(), Some(free));
    }
    // A local feed has readers as well.
    let local = "[[feed]]\nname = \"own\"\nlocal = true\npath = \"/own.xml\"";
    assert_eq!(check("f", local).unwrap().warnings, []);
}

#[test]
fn no_place_is_below_what_the_gateway_answers() {
    for own in OWN_STEPS {
        let text = origin("a", &format!("at = \"/{own}/x/\""), "");
        assert_fault(&text, &format!("f:4: origin.at: \"/{own}/x/\" is the gateway's own"));
    }
    let long = format!("/{}/", "a".repeat(PATH_LIMIT));
    let text = origin("a", &format!("at = {long:?}"), "");
    assert_fault(&text, "f:4: origin.at: the path is 1026 bytes long, the limit is 1024");
    for host in [["a"; 128].join("."), format!("{}.example", "a".repeat(64))] {
        let text = origin("a", &format!("host = {host:?}"), "");
        assert_fault(&text, &format!("f:4: origin.host: {host:?} is no name of a host"));
    }
}

#[test]
fn there_are_only_so_many_tables() {
    let origins: String = (0..=ORIGIN_LIMIT)
        .map(|n| origin(&format!("n{n}"), &format!("at = \"/n{n}/\""), ""))
        .collect();
    assert_fault(&origins, "f:5001: origin: there are 1001 of these, the limit is 1000");
    let allowed: String =
        (0..=ALLOW_LIMIT).map(|n| format!("[[allow]]\nurl = \"https://a/{n}\"\n")).collect();
    assert_fault(&allowed, "f:2001: allow: there are 1001 of these, the limit is 1000");
    const { assert!(ORIGIN_LIMIT > FAULTS_SHOWN) };
}
