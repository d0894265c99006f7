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

#[test]
fn an_origin_needs_a_name_an_address_and_one_place() {
    for (text, said) in [
        ("[[origin]]\nurl = \"https://a\"\nat = \"/a/\"", "f:1: origin.name: is missing"),
        ("[[origin]]\nname = \"a\"\nat = \"/a/\"", "f:1: origin.url: is missing"),
        (
            "[[origin]]\nname = \"a\"\nurl = \"https://a\"",
            "f:1: origin.at: is missing; each [[origin]] has",
        ),
        (
            "[[origin]]\nname = \"a\"\nurl = \"https://a\"\nat = \"/a/\"\nhost = \"a.example\"",
            "f:5: origin.host: stands beside at; write one of the two",
        ),
        ("[[origin]]\nname = \"A\"\nurl = \"https://a\"\nat = \"/a/\"", "f:2: origin.name: "),
        ("[origin]\nname = \"a\"", "f:1: origin: is a table; write one [[origin]] for each"),
        ("[[allow]]\nfeeds = 1", "f:1: allow.url: is missing; each [[allow]] has its own"),
    ] {
        assert_fault(text, said);
    }
    let two = origin("a", "at = \"/a/\"", "") + &origin("a", "at = \"/b/\"", "");
    assert_fault(&two, "f:7: origin.name: \"a\" is taken by line 1; each needs its own");
    // Feeds have names of their own.
    good(&(origin("a", "at = \"/a/\"", "") + "[[feed]]\nname = \"a\"\nurl = \"https://a\"\n"));
}

#[test]
fn addresses_of_sites_are_bare() {
    for (address, said) in [
        ("https://u:hunter2@a/", "the address has credentials"),
        ("https://a/?q", "the address has a query"),
        ("https://a/#f", "the address has a fragment"),
        ("ftp://a/", "the address has the scheme \"ftp\""),
        ("a", "\"a\" is not a web address"),
        ("https://a/ b", "the address has white space"),
    ] {
        let place = "name = \"a\"\nat = \"/a/\"";
        assert_fault(
            &format!("[[origin]]\nurl = {address:?}\n{place}"),
            &format!("f:2: origin.url: {said}"),
        );
        assert_fault(&format!("[[allow]]\nurl = {address:?}"), &format!("f:2: allow.url: {said}"));
    }
    let twice = "[[allow]]\nurl = \"https://a/b\"\n[[allow]]\nurl = \"https://A:443/b/\"";
    assert_fault(twice, "f:4: allow.url: \"https://a/b/\" is that of line 1; write it once");
    // Of a site and a part of it each has its own.
    good("[[allow]]\nurl = \"https://a/\"\n[[allow]]\nurl = \"https://a/b\"");
}

#[test]
fn the_path_of_an_origin_is_a_folder_that_is_free() {
    for (path, said) in [
        ("", "\"\" does not begin and end with a slash"),
        ("/", "\"/\" does not begin and end with a slash"),
        ("blog/", "\"blog/\" does not begin and end with a slash"),
        ("/blog", "\"/blog\" does not begin and end with a slash"),
        ("//", "\"//\" has two slashes in a row"),
        ("/a//b/", "\"/a//b/\" has two slashes in a row"),
        ("/a/../b/", "\"/a/../b/\" has a step of dots alone"),
        ("/./", "\"/./\" has a step of dots alone"),
        ("/a?b/", "\"/a?b/\" has '?'"),
        ("/a#b/", "\"/a#b/\" has '#'"),
        ("/a%2fb/", "\"/a%2fb/\" has '%'"),
        ("/a b/", "\"/a b/\" has ' '"),
        ("/a\\b/", "\"/a\\\\b/\" has '\\\\'"),
        ("/ä/", "\"/ä/\" has 'ä'"),
        ("/{a}/", "\"/{a}/\" has '{'"),
    ] {
        let text = origin("a", &format!("at = {path:?}"), "");
        assert_fault(&text, &format!("f:4: origin.at: {said}"));
    }
    for own in OWN_STEPS {
        for below in ["", "x/"] {
            let text = origin("a", &format!("at = \"/{own}/{below}\""), "");
            let said = format!("f:4: origin.at: \"/{own}/{below}\" is the gateway's own");
            assert_fault(&text, &said);
        }
    }
    let long = format!("/{}/", "a".repeat(PATH_LIMIT));
    let text = origin("a", &format!("at = {long:?}"), "");
    assert_fault(&text, "f:4: origin.at: the path is 1026 bytes long, the limit is 1024");
    for free in ["/feed/", "/Feeds/", "/.well-known/", "/a/feeds/", "/~ann/b;c=d,e/", "/a.b/...x/"]
    {
        good(&origin("a", &format!("at = {free:?}"), ""));
    }
}

#[test]
fn the_host_of_an_origin_is_a_name_that_is_free() {
    let long = ["a"; 128].join(".");
    let label = format!("{}.example", "a".repeat(64));
    for host in [
        "",
        ".",
        "a b",
        "a:8080",
        "https://a/",
        "127.0.0.1",
        "[::1]",
        "*.a.example",
        "a..example",
        "a/b",
        "u@a",
        &long,
        &label,
    ] {
        let said = format!("f:4: origin.host: {host:?} is no name of a host; write one like");
        assert_fault(&origin("a", &format!("host = {host:?}"), ""), &said);
    }
    let public = "[server]\npublic_url = \"https://Gate.example:8443/x\"\n";
    assert_fault(
        &(public.to_owned() + &origin("a", "host = \"gate.EXAMPLE\"", "")),
        "f:6: origin.host: is the host of server.public_url",
    );
    good(&(public.to_owned() + &origin("a", "host = \"blog.gate.example\"", "pass = true")));
    assert_fault(
        &(public.replace("example:", "example.:") + &origin("a", "host = \"gate.example\"", "")),
        "f:6: origin.host: is the host of server.public_url",
    );
    // Who names no public address may have a host all the same.
    good(&origin("a", "host = \"blog.example\"", "pass = true"));
}

#[test]
fn places_of_origins_do_not_cover_each_other() {
    for (one, other, said) in [
        (
            "at = \"/a/\"",
            "at = \"/a/\"",
            Some("at: \"/a/\" and \"/a/\" of line 1 cover each other"),
        ),
        (
            "at = \"/a/\"",
            "at = \"/a/b/\"",
            Some("at: \"/a/b/\" and \"/a/\" of line 1 cover each other"),
        ),
        (
            "at = \"/a/b/\"",
            "at = \"/a/\"",
            Some("at: \"/a/\" and \"/a/b/\" of line 1 cover each other"),
        ),
        ("at = \"/a/\"", "at = \"/ab/\"", None),
        ("at = \"/a/\"", "at = \"/A/\"", None),
        (
            "host = \"a.example\"",
            "host = \"A.example.\"",
            Some("host: \"a.example\" and \"a.example\" of line 1 cover each other"),
        ),
        ("host = \"a.example\"", "host = \"b.a.example\"", None),
        ("at = \"/a/\"", "host = \"a.example\"", None),
    ] {
        let text = origin("one", one, "") + &origin("other", other, "");
        match said {
            Some(said) => assert_fault(&text, &format!("f:9: origin.{said}")),
            None => assert_eq!(good(&text).origins.len(), 2),
        }
    }
}

#[test]
fn what_passes_through_is_apart_from_administration() {
    let text = origin("a", "at = \"/a/\"", "pass = true");
    assert_fault(&text, "f:5: origin.pass: needs a host instead of at, or server.admin_listen");
    let apart = "[server]\nadmin_listen = \"127.0.0.1:8081\"\n".to_owned() + &text;
    good(&apart);
    // A browser has its reader's password for the whole host.
    let reader = "[[reader]]\nname = \"ann\"\ntoken_env = \"ANN\"\nall_private = true\n";
    let diary = "[[feed]]\nname = \"d\"\nlocal = true\nprivate = true\n";
    for private in [reader, diary] {
        let wanted = "f:7: origin.pass: needs a host instead of at where there are readers";
        assert_fault(&format!("{apart}{private}"), wanted);
        good(&(origin("a", "host = \"a.example\"", "pass = true") + private));
        good(&(origin("a", "at = \"/a/\"", "pass = \"redirect\"") + private));
    }
    good(&origin("a", "host = \"a.example\"", "pass = true"));
    good(&origin("a", "at = \"/a/\"", "pass = \"redirect\""));
    for (bad, said) in [
        ("pass = false", "false is unknown; write true or \"redirect\""),
        ("pass = \"true\"", "\"true\" is unknown; write true or \"redirect\""),
        ("pass = 1", "is a number; write true or \"redirect\""),
    ] {
        assert_fault(
            &origin("a", "host = \"a.example\"", bad),
            &format!("f:5: origin.pass: {said}"),
        );
    }
}

#[test]
fn a_site_is_told_the_host_that_it_has_here() {
    let send = "pass = true\nsend_host = true";
    let config = good(&origin("a", "host = \"a.example.org\"", send));
    assert!(config.origins[0].sends_host);
    for (place, more) in [
        ("at = \"/a/\"", "send_host = true"),
        ("host = \"a.example.org\"", "send_host = true"),
        ("host = \"a.example.org\"", "pass = \"redirect\"\nsend_host = true"),
    ] {
        let line = if more.contains('\n') { 6 } else { 5 };
        let said = format!("f:{line}: origin.send_host: needs host and pass = true");
        assert_fault(&origin("a", place, more), &said);
    }
    assert_fault(
        &origin("a", "host = \"a.example.org\"", "pass = true\nsend_host = 1"),
        "f:6: origin.send_host: is a number; write true or false, without quotes",
    );
    // Two hosts with one address would have one feed for two.
    let two = |more: &str, url: &str| {
        let other = origin("b", "host = \"b.example.org\"", more);
        origin("a", "host = \"a.example.org\"", send) + &other.replace("https://b.example/", url)
    };
    let said = "f:9: origin.url: \"https://a.example/sub/\" is an address of the origin \"a\" too";
    assert_fault(&two("pass = true", "https://a.example/sub"), said);
    good(&two(send, "https://a.example:8443/"));
    good(&two(send, "https://b.example/"));
}

#[test]
fn times_and_numbers_have_bounds() {
    for (key, good_ones, bad_ones) in [
        ("first_wait", ["\"1s\"", "\"60s\""], ["\"0s\"", "\"61s\""]),
        ("idle", ["\"1d\"", "\"3650d\""], ["\"23h\"", "\"3651d\""]),
        ("feeds", ["1", "100000"], ["0", "100001"]),
    ] {
        for (value, is_good) in
            good_ones.map(|v| (v, true)).into_iter().chain(bad_ones.map(|v| (v, false)))
        {
            let line = format!("{key} = {value}");
            let text = origin("a", "at = \"/a/\"", &line);
            let allow = format!("[[allow]]\nurl = \"https://a\"\n{line}\n");
            if is_good {
                good(&text);
                assert!(key == "first_wait" || !good(&allow).allow.is_empty());
            } else {
                assert_fault(&text, &format!("f:5: origin.{key}: {} is out of bounds", value));
                if key != "first_wait" {
                    assert_fault(&allow, &format!("f:3: allow.{key}: {} is out of bounds", value));
                }
            }
        }
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

#[test]
fn the_path_of_a_feed_is_plain_and_free() {
    for good_one in ["/atom.xml", "/feed/", "/feed", "/a/feeds/b", "/@ann/posts.rss", "/blog"] {
        let config = good(&(origin("a", "at = \"/blog/\"", "") + &feed("news", good_one)));
        assert_eq!(config.feeds[0].path.as_deref(), Some(good_one));
    }
    assert_eq!(good("[[feed]]\nname = \"a\"\nurl = \"https://a\"").feeds[0].path, None);
    for (path, said) in [
        ("", "\"\" is no path; write one that begins with a slash"),
        ("/", "\"/\" is the gateway's own"),
        ("atom.xml", "\"atom.xml\" is no path"),
        ("https://a/atom.xml", "\"https://a/atom.xml\" is no path"),
        ("/feed?a", "\"/feed?a\" has '?'"),
        ("/feed#a", "\"/feed#a\" has '#'"),
        ("/a%20b", "\"/a%20b\" has '%'"),
        ("/a b", "\"/a b\" has ' '"),
        ("/a\tb", "\"/a\\tb\" has '\\t'"),
        ("/a//b", "\"/a//b\" has two slashes in a row"),
        ("/a/..", "\"/a/..\" has a step of dots alone"),
        ("/./a", "\"/./a\" has a step of dots alone"),
        ("/feeds", "\"/feeds\" is the gateway's own, as all of \"/feeds\""),
        ("/feeds/other", "\"/feeds/other\" is the gateway's own"),
        ("/sup.json", "\"/sup.json\" is the gateway's own"),
        ("/t/x", "\"/t/x\" is the gateway's own"),
        ("/blog/", "\"/blog/\" is below the origin \"a\"; write another"),
        ("/blog/atom.xml", "\"/blog/atom.xml\" is below the origin \"a\"; write another"),
    ] {
        let text = feed("news", path) + &origin("a", "at = \"/blog/\"", "");
        assert_fault(&text, &format!("f:4: feed.path: {said}"));
    }
    let twice = feed("one", "/atom.xml") + &feed("two", "/atom.xml");
    assert_fault(&twice, "f:8: feed.path: \"/atom.xml\" is taken by line 1; each needs its own");
    // A local feed has readers as well.
    let local = "[[feed]]\nname = \"own\"\nlocal = true\npath = \"/own.xml\"";
    assert_eq!(check("f", local).unwrap().warnings, []);
}

#[test]
fn the_api_gives_no_path_to_a_feed() {
    let settings = serde_json::json!({ "url": "https://a", "path": "/atom.xml" });
    let said = crate::feed_settings(settings.as_object().unwrap()).unwrap_err();
    assert_eq!(said.1, "the key \"path\" is unknown");
}
