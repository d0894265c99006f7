//! Tests against publishers in this process, each with its own port and so its own origin.

use super::super::{FetchAnswer, FetchBlame, FetchRequest, Fetched, Validators};
use super::*;
use crate::testing::{Publisher, all_private, fetch, literal, response, with_access};
use proptest::prelude::*;
use proptest::sample::select;
use tidegate_core::model::UserPassword;

fn everything() -> FeedAccess {
    let login = UserPassword { user: literal("me"), password: literal("pässword") };
    FeedAccess {
        headers: vec![("X-Api-Key".to_owned(), literal("key-hush"))],
        cookie: Some(literal("cookie-hush")),
        user_agent: Some("our reader".to_owned()),
        login: Some(Login::Basic(login)),
        route: None,
    }
}

async fn ask(request: FetchRequest) -> Result<Fetched, FetchError> {
    fetch(all_private(), request).await
}

/// Returns which requests carried the credentials: all of them or none.
fn known(publisher: &Publisher) -> Vec<bool> {
    let is_known = |head: String| {
        let lines = ["x-api-key: key-hush", "cookie: cookie-hush", "authorization: basic "];
        let sent = lines.map(|line| head.contains(line));
        assert!(sent == [true; 3] || sent == [false; 3], "{head}");
        assert!(sent[0] || !head.contains("hush"), "{head}");
        sent[0]
    };
    publisher.heads().into_iter().map(is_known).collect()
}

#[tokio::test]
async fn credentials_go_to_the_feeds_own_origin_alone() {
    let other = Publisher::start(|_| response("200 OK", "", b"<feed/>")).await;
    let elsewhere = other.url("/feed");
    let publisher = Publisher::start(move |head| match head {
        head if head.starts_with("GET /same ") => response("302 Found", "location: /feed\r\n", b""),
        head if head.starts_with("GET /other ") => {
            response("301 Moved", &format!("location: {elsewhere}\r\n"), b"")
        }
        _ => response("200 OK", "", b"<feed/>"),
    })
    .await;
    ask(with_access(&publisher.url("/same"), &everything())).await.unwrap();
    assert_eq!(known(&publisher), [true, true]);
    let moved = ask(with_access(&publisher.url("/other"), &everything())).await.unwrap();
    assert_eq!(moved.moved_to, Some(other.url("/feed")));
    // With a remembered redirect, the other origin is asked first.
    let remembered = with_access(&publisher.url("/other"), &everything());
    ask(FetchRequest { start: moved.moved_to, ..remembered }).await.unwrap();
    assert_eq!(known(&other), [false, false]);
    for head in publisher.heads().iter().chain(&other.heads()) {
        assert!(head.contains("user-agent: our reader\r\n"), "{head}");
        assert_eq!(head.matches("user-agent").count(), 1);
    }
    // An origin that wants what it does not get is named.
    let other = Publisher::start(|_| response("401 No", "", b"")).await;
    let elsewhere = other.url("/feed");
    let publisher = Publisher::start(move |_| {
        response("302 Found", &format!("location: {elsewhere}\r\n"), b"")
    })
    .await;
    let error = ask(with_access(&publisher.url("/"), &everything())).await.unwrap_err();
    let origin = publisher.url("");
    assert_eq!(
        error.to_string(),
        format!(
            "a redirect of the publisher leads to 127.0.0.1, which answered 401; the credentials of \
             this feed go to {origin} alone: if that host is to have them, make its address the url \
             of the feed"
        )
    );
    assert_eq!((error.blame(), error.status()), (FetchBlame::Operator, Some(401)));
}

#[tokio::test]
async fn validators_are_for_whom_they_were_given_to() {
    let publisher = Publisher::start(|head| {
        let is_same = head.to_lowercase().contains("if-none-match");
        let status = if is_same { "304 Not Modified" } else { "200 OK" };
        response(status, "etag: \"1\"\r\n", if is_same { b"" } else { b"<feed/>" })
    })
    .await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("token");
    let source = SecretSource::File(path.display().to_string());
    let access = FeedAccess { login: Some(Login::Bearer(source)), ..FeedAccess::default() };
    let with = |validators: &Validators, access: &FeedAccess| FetchRequest {
        validators: validators.clone(),
        ..with_access(&publisher.url("/"), access)
    };
    std::fs::write(&path, "one\r\n").unwrap();
    let first = ask(with(&Validators::default(), &access)).await.unwrap().validators;
    let again = ask(with(&first, &access)).await.unwrap();
    assert_eq!(again.answer, FetchAnswer::NotModified);
    assert_eq!(again.validators.credentials_id, first.credentials_id);
    // First the file has another token, then the feed has no credentials.
    std::fs::write(&path, "two\n").unwrap();
    let second = ask(with(&first, &access)).await.unwrap();
    assert!(matches!(second.answer, FetchAnswer::Document(_)));
    let nobody = ask(with(&first, &FeedAccess::default())).await.unwrap();
    assert!(matches!(nobody.answer, FetchAnswer::Document(_)));
    assert!(first.credentials_id != 0 && nobody.validators.credentials_id == 0);
    let heads = publisher.heads();
    let tokens: Vec<_> = heads
        .iter()
        .filter_map(|head| head.lines().find_map(|line| line.strip_prefix("authorization: ")))
        .collect();
    assert_eq!(tokens, ["bearer one", "bearer one", "bearer two"]);
}

#[tokio::test]
async fn a_secret_that_cannot_be_had_is_the_operators() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        SecretSource::File(path.display().to_string())
    };
    let unset = SecretSource::Env("TIDEGATE_NO_SUCH_VARIABLE".to_owned());
    let missing = SecretSource::File("/nowhere/token".to_owned());
    for (source, said) in [
        (unset, "is not set; start the gateway with it"),
        (missing, "the file /nowhere/token cannot be read: "),
        (SecretSource::LeftOut, "was left out of the export"),
        (file("two-lines", b"hush\nhush\n"), "has a line break or a control character"),
        (file("long", &[b'x'; SecretText::LIMIT + 9]), "is 8194 bytes long, the limit is 8192"),
        (file("bytes", b"\xff\xfehush"), "cannot be read"),
        (file("empty", b"\n"), "is empty"),
    ] {
        let access = FeedAccess { login: Some(Login::Bearer(source)), ..FeedAccess::default() };
        let error = ask(with_access("http://127.0.0.1:1/", &access)).await.unwrap_err();
        let text = error.to_string();
        assert!(text.starts_with("the secret bearer of the feed cannot be used: "), "{text}");
        assert!(text.contains(said) && !text.contains("hush"), "{text}");
        assert_eq!(error.blame(), FetchBlame::Operator);
    }
}

#[test]
fn a_password_may_be_empty_and_nothing_is_shown() {
    let login = UserPassword { user: literal("key-hush"), password: literal("") };
    let access = FeedAccess { login: Some(Login::Basic(login)), ..everything() };
    let sent = headers(&access).unwrap();
    assert_eq!(sent[AUTHORIZATION], "Basic a2V5LWh1c2g6");
    assert!(!format!("{sent:?}").contains("hush"), "{sent:?}");
    let asked = with_access("http://a.example/", &access);
    assert!(!format!("{asked:?} {:?}", asked.access).contains("hush"));
}

/// An address with its scheme, host and port.
fn address() -> impl Strategy<Value = (String, (&'static str, String, u16))> {
    let scheme = select(vec![("http", 80), ("https", 443)]);
    let host = select(vec!["a.example", "A.Example", "b.a.example", "127.0.0.1", "[::1]"]);
    let port = select(vec![None, Some(80), Some(443), Some(8080)]);
    let rest = select(vec!["/", "/feed?x=@a.example", "/a.example/"]);
    (scheme, host, port, rest).prop_map(|((scheme, usual), host, port, rest)| {
        let written = port.map(|port: u16| format!(":{port}")).unwrap_or_default();
        let origin = (scheme, host.to_ascii_lowercase(), port.unwrap_or(usual));
        (format!("{scheme}://{host}{written}{rest}"), origin)
    })
}

proptest! {
    /// An address gets credentials if and only if scheme, host and port are those of the feed.
    #[test]
    fn no_other_origin_gets_credentials(feed in address(), asked in address()) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let access = RequestAccess::new(&feed.0, &everything());
        let url = Url::parse(&asked.0).unwrap();
        let read = |feed: &Url, access| {
            let identity = runtime.block_on(RequestIdentity::read(feed, access)).unwrap();
            let mut sent = HeaderMap::new();
            identity.apply(&url, &mut sent);
            (sent, identity)
        };
        let (sent, identity) = read(&url, Some(&access));
        let is_own = feed.1 == asked.1;
        for name in ["x-api-key", "cookie", "authorization"] {
            prop_assert_eq!(sent.contains_key(name), is_own, "{} {}", name, &asked.0);
        }
        prop_assert_eq!(identity.withheld_from(&url).is_some(), !is_own);
        prop_assert!(sent.contains_key("user-agent"));
        // The same of a login in the address of the feed.
        let login = Url::parse(&feed.0.replace("//", "//me:s%20t@")).unwrap();
        let (sent, _) = read(&login, None);
        // "me:s t"
        let told = sent.get(AUTHORIZATION).map(|value| value == "Basic bWU6cyB0");
        prop_assert_eq!(told, is_own.then_some(true));
    }
}
