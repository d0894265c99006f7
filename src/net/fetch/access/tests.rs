//! Tests against publishers in this process, each with its own port and so its own origin.

use super::super::{FetchAnswer, FetchBlame, FetchRequest, Fetched, Validators};
use super::*;
use crate::testing::{Publisher, all_private, fetch, literal, redirect, response, with_access};
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
        head if head.starts_with("GET /same ") => redirect("302 Found", "/feed"),
        head if head.starts_with("GET /other ") => redirect("301 Moved", &elsewhere),
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
    let publisher = Publisher::start(move |_| redirect("302 Found", &elsewhere)).await;
    let error = ask(with_access(&publisher.url("/"), &everything())).await.unwrap_err();
    let origin = publisher.url("");
    let said = format!(
        "a redirect of the publisher leads to 127.0.0.1, which answered 401; the credentials of this \
         feed go to {origin} alone: if that host is to have them, make its address the url of the feed"
    );
    assert_eq!(error.to_string(), said);
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

/// An address gets credentials if and only if scheme, host and port are those of the feed: those that were configured,
/// and those in the address itself.
#[tokio::test]
async fn no_other_origin_gets_credentials() {
    for (asked, is_own) in [
        ("http://a.example/other?x=@b.example", true),
        ("http://A.Example:80/", true),
        ("https://a.example/feed", false),
        ("http://a.example:443/feed", false),
        ("http://b.a.example/feed", false),
        ("http://example/a.example/", false),
        ("http://[::1]/feed", false),
    ] {
        let asked = Url::parse(asked).unwrap();
        let access = RequestAccess::new("http://a.example/feed", &everything());
        let identity = RequestIdentity::read(&asked, Some(&access)).await.unwrap();
        let mut sent = HeaderMap::new();
        identity.apply(&asked, &mut sent);
        for name in ["x-api-key", "cookie", "authorization"] {
            assert_eq!(sent.contains_key(name), is_own, "{name} {asked}");
        }
        assert_eq!(identity.withheld_from(&asked).is_some(), !is_own);
        assert!(sent.contains_key("user-agent"));
        let login = Url::parse("http://me:s%20t@a.example/feed").unwrap();
        let identity = RequestIdentity::read(&login, None).await.unwrap();
        let mut sent = HeaderMap::new();
        identity.apply(&asked, &mut sent);
        // "me:s t"
        let told = sent.get(AUTHORIZATION).map(|value| value == "Basic bWU6cyB0");
        assert_eq!(told, is_own.then_some(true));
    }
}
