use super::*;
use proptest::prelude::*;

fn literal(text: &str) -> SecretSource {
    SecretSource::Literal(SecretText::new(text).unwrap())
}

/// One of every kind, each literal with `secret` in it.
fn full(secret: &str) -> FeedAccess {
    let pair = || UserPassword { user: literal(secret), password: literal(secret) };
    FeedAccess {
        headers: vec![
            ("X-Api-Key".to_owned(), literal(secret)),
            ("X-Other".to_owned(), SecretSource::File("/run/secrets/x".to_owned())),
        ],
        cookie: Some(literal(secret)),
        user_agent: Some("reader".to_owned()),
        login: Some(Login::Basic(pair())),
        route: Some(ProxyRoute::Proxy(ProxyAddress {
            url: "http://proxy:3128".to_owned(),
            login: Some(Box::new(pair())),
        })),
    }
}

#[test]
fn what_no_header_can_have_is_no_secret() {
    for bad in ["a\r\nX: y", "a\nb", "a\0", "\u{7f}", "a\u{85}b"] {
        let error = SecretText::new(bad).unwrap_err();
        assert!(error.to_string().contains("control character"), "{bad:?}");
        assert!(!error.to_string().contains(bad));
    }
    assert!(SecretText::new(&"x".repeat(SecretText::LIMIT)).is_ok());
    let long = SecretText::new(&"x".repeat(SecretText::LIMIT + 1)).unwrap_err();
    assert_eq!(long.to_string(), "is 8193 bytes long, the limit is 8192");
}

#[test]
fn what_is_left_out_is_filled_in_by_name() {
    let whole = full("hush");
    let mut told = whole.clone();
    assert!(told.leave_out_literals() && told.lacks_secrets());
    assert!(!told.clone().leave_out_literals(), "a file's name is no secret");
    let mut back = told.clone();
    assert_eq!(back.fill_in(Some(&whole)), Ok(()));
    assert_eq!(back, whole);
    assert_eq!(told.clone().fill_in(None), Err("headers.X-Api-Key".to_owned()));
    told.headers.clear();
    let less = FeedAccess { cookie: None, ..whole };
    assert_eq!(told.fill_in(Some(&less)), Err("cookie".to_owned()));
}

#[test]
fn only_what_says_something_is_kept() {
    assert_eq!(FeedAccess::default().or_none(), None);
    let named = FeedAccess { user_agent: Some("x".to_owned()), ..FeedAccess::default() };
    assert!(!named.has_credentials() && named.or_none().is_some());
    assert!(full("hush").has_credentials());
}

proptest! {
    /// Neither messages nor JSON show a secret; the store's encoding brings it back.
    #[test]
    fn no_secret_is_shown(secret in "[a-zA-Z0-9]{12,40}") {
        let access = full(&secret);
        let debug = [format!("{access:?}"), format!("{access:#?}")].concat();
        prop_assert!(!debug.contains(&secret));
        prop_assert!(!serde_json::to_string(&access).unwrap().contains(&secret));
        let stored = postcard::to_stdvec(&access).unwrap();
        prop_assert_eq!(postcard::from_bytes::<FeedAccess>(&stored).unwrap(), access.clone());
        let mut told = access;
        told.leave_out_literals();
        let told = postcard::to_stdvec(&told).unwrap();
        prop_assert!(!told.windows(secret.len()).any(|window| window == secret.as_bytes()));
    }
}
