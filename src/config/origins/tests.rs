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

/// Those beside them that are refused stand in `tests/wrong.toml`.
#[test]
fn what_is_good_is_taken() {
    let at = |path: &str| origin("a", &format!("at = {path:?}"), "");
    for host in ["müsli.example", "blog", "blog_1.internal"] {
        assert!(host_name(host).is_ok(), "{host}");
    }
    for free in ["/feed/", "/Feeds/", "/.well-known/", "/a/feeds/", "/~ann/b;c=d,e/", "/a.b/...x/"]
    {
        good(&at(free));
    }
    for free in ["/atom.xml", "/feed/", "/feed", "/a/feeds/b", "/@ann/posts.rss", "/blog"] {
        let config = good(&(at("/blog/") + &feed("news", free)));
        assert_eq!(config.feeds[0].path.as_deref(), Some(free));
    }
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
