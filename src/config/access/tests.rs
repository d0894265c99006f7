use crate::{Checked, External, Fault, Overrides, check, feed_address, feed_settings, look_up};
use proptest::prelude::*;
use serde_json::json;
use tidegate_core::model::{FeedAccess, Login, ProxyRoute, SecretSource, SecretText, UserPassword};
use url::Url;

fn feed(keys: &str) -> Result<Checked, String> {
    let text = format!("[[feed]]\nname = \"a\"\nurl = \"https://a.example/\"\n{keys}\n");
    check("f.toml", &text).map_err(|faults| faults.to_string())
}

fn literal(text: &str) -> SecretSource {
    SecretSource::Literal(SecretText::new(text).unwrap())
}

#[test]
fn credentials_in_an_address_become_secrets_however_it_is_given() {
    const BARE: &str = "https://a.example/x?y";
    let login = |password: &str| {
        let (user, password) = (literal("me"), literal(password));
        Some(Login::Basic(UserPassword { user, password }))
    };
    let url = Url::parse("https://me:p%40ss@a.example/x?y").unwrap();
    let text = format!("[[feed]]\nname = \"a\"\nurl = \"{url}\"\ncookie = \"c\"\n");
    let mut config = check("f", &text).unwrap().config;
    // And of the command line, where it is another feed: it has no cookie.
    Overrides { feeds: vec![url], ..Overrides::default() }.complete(&mut config);
    assert_eq!(config.feeds.len(), 2);
    for feed in &config.feeds {
        let access = feed.access.as_deref().unwrap();
        assert_eq!((&*feed.url, &access.login), (BARE, &login("p@ss")));
    }
    // Those that are stored give way to those of a new address.
    let stored = json!({ "stored": true, "from": "literal" });
    let settings = json!({
        "url": "https://me:new@a.example/x?y", "basic": { "user": stored, "password": stored },
    });
    let read = feed_settings(settings.as_object().unwrap()).unwrap();
    assert_eq!((read.url.unwrap().as_str(), read.access.login), (BARE, login("new")));
    let said = feed_address("https://me:hush%0a@a.example/").unwrap_err().to_string();
    assert!(said.contains("has credentials of which one has a line break"), "{said}");
    assert!(!said.contains("hush"), "{said}");
    // Those of a proxy as well.
    let feed = feed("proxy = \"socks5://u:p%40ss@127.0.0.1:9050\"").unwrap().config.feeds.remove(0);
    let Some(ProxyRoute::Proxy(proxy)) = &feed.access.as_ref().unwrap().route else { panic!() };
    let UserPassword { user, password } = &**proxy.login.as_ref().unwrap();
    assert_eq!((user, password), (&literal("u"), &literal("p@ss")));
}

#[test]
fn how_much_there_may_be_is_limited() {
    let many = |count: usize| {
        let headers: Vec<_> = (0..count).map(|n| format!("X-{n} = \"v\"")).collect();
        feed(&format!("headers = {{ {} }}", headers.join(", ")))
    };
    assert!(many(FeedAccess::HEADERS_LIMIT).is_ok());
    let said = many(FeedAccess::HEADERS_LIMIT + 1).unwrap_err();
    assert!(said.contains("has 33 headers, the limit is 32"), "{said}");
    let long = "x".repeat(SecretText::LIMIT);
    let three = feed(&format!("headers = {{ A = \"{long}\", B = \"{long}\", C = \"{long}\" }}"));
    assert!(three.unwrap_err().contains("bytes of names and secrets in all, the limit is 24576"));
    let said = feed(&format!("cookie = \"{long}x\"")).unwrap_err();
    assert!(said.contains("is 8193 bytes long, the limit is 8192"), "{said}");
}

#[test]
fn what_is_missing_elsewhere_is_a_fault_at_its_place() {
    let checked = feed("cookie = { file = \"/nowhere\" }\nbearer = { env = \"THERE\" }").unwrap();
    let find = |_: &Fault, external: &External| match external {
        External::Secret(SecretSource::File(path)) => Err(format!("{path} is missing")),
        _ => Ok(()),
    };
    let faults: Vec<String> = look_up(&checked, find).iter().map(Fault::to_string).collect();
    assert_eq!(faults, ["f.toml:4: feed.cookie: /nowhere is missing"]);
    assert_eq!(look_up(&checked, |_, _| Ok(())), []);
}

#[test]
fn the_api_reads_the_same_keys() {
    let settings = json!({
        "headers": { "X-Key": { "stored": true, "from": "literal" } },
        "bearer": "t", "cookie": null, "basic": null, "proxy": null,
    });
    let read = feed_settings(settings.as_object().unwrap()).unwrap().access;
    assert_eq!(read.headers, [("X-Key".to_owned(), SecretSource::LeftOut)]);
    let access = (read.login, read.cookie, read.route);
    assert_eq!(access, (Some(Login::Bearer(literal("t"))), None, None));
    let both = json!({ "bearer": "hush", "basic": { "user": "a", "password": "hush" } });
    let refused = feed_settings(both.as_object().unwrap()).unwrap_err();
    let said = "bearer stands beside basic; write one of the two";
    assert_eq!(refused, ("bearer".to_owned(), said.to_owned()));
}

proptest! {
    /// Whatever a secret is, it is taken whole or refused without being repeated.
    #[test]
    fn a_secret_is_taken_or_refused(secret in "\\PC{12,40}|[a-z]{12}[\\x00-\\x1f][a-z]{12}") {
        let settings = json!({ "bearer": secret });
        match feed_settings(settings.as_object().unwrap()) {
            Ok(read) => prop_assert_eq!(read.access.login, Some(Login::Bearer(literal(&secret)))),
            Err((_, said)) => prop_assert!(!said.contains(&secret)),
        }
    }
}
