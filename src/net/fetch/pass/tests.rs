mod http2;

use super::super::{AllowPrivate, FetchLimits, FetchRequest, FetchSettings, Services, services};
use super::*;
use crate::origin::WholeAnswer;
use crate::testing::{Publisher, all_private, document, passed as request, response, whole};
use http::{HeaderMap, Method, StatusCode};
use http_body_util::Full;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use url::Url;

fn all(allow_private: AllowPrivate) -> Services {
    let limits = FetchLimits { pass_idle: Duration::from_millis(300), ..FetchLimits::STANDARD };
    services(FetchSettings { allow_private, limits, ..FetchSettings::default() }).unwrap()
}

async fn pass(request: PassRequest) -> Result<PassAnswer, FetchError> {
    (all(AllowPrivate::All).passing.pass)(request).await
}

#[tokio::test]
async fn a_request_and_its_answer_are_passed_on_as_they_are() {
    let publisher = Publisher::start(|_| {
        let many = "x-a: 1\r\n".repeat(150);
        response("404 Not Here", &format!("{many}content-encoding: gzip\r\n"), b"no gzip")
    })
    .await;
    let mut asked = request(&publisher.url("/a?b=%27"));
    asked.target = Some(publisher.url("/A;b=1//c?d='e'&%7e").parse().unwrap());
    asked.headers.insert("x-mine", "7".parse().unwrap());
    let answer = pass(asked).await.unwrap();
    assert_eq!(answer.status, StatusCode::NOT_FOUND);
    assert_eq!(answer.headers.get_all("x-a").iter().count(), 150);
    assert_eq!(answer.body.collect().await.unwrap().to_bytes(), "no gzip");
    let head = publisher.heads().remove(0);
    assert!(head.starts_with("get /a;b=1//c?d='e'&%7e http/1.1\r\n"), "{head}");
    for absent in ["user-agent", "accept-encoding", "application/atom"] {
        assert!(!head.contains(absent), "{head}");
    }
    assert!(head.contains("x-mine: 7"), "{head}");

    let mut posted = request(&publisher.url("/"));
    posted.method = Method::POST;
    posted.headers.insert("content-length", "4".parse().unwrap());
    posted.body =
        Some(Full::new(Bytes::from_static(b"abcd")).map_err(|e| match e {}).boxed_unsync());
    pass(posted).await.unwrap();
    let head = publisher.heads().remove(1);
    assert!(head.contains("content-length: 4\r\n") && !head.contains("chunked"), "{head}");
}

#[tokio::test]
async fn it_is_said_why_an_origin_cannot_be_reached() {
    let error = pass(request("http://127.0.0.1:1/")).await.unwrap_err();
    let is_refused = |why: &str| why.contains("refused");
    assert!(matches!(&error, FetchError::Connect { why, .. } if is_refused(why)), "{error:?}");
    let error = pass(request("http://nowhere.invalid/")).await.unwrap_err();
    assert!(matches!(&error, FetchError::Name { .. }), "{error:?}");
    // The guard checks addresses, and what names resolve to.
    let publisher = Publisher::start(|_| response("200 OK", "", b"")).await;
    for url in [publisher.url("/"), publisher.url("/").replace("127.0.0.1", "localhost")] {
        let refused = (all(AllowPrivate::No).passing.pass)(request(&url)).await;
        assert!(matches!(refused, Err(FetchError::Refused { .. })), "{refused:?}");
    }
    assert!(publisher.heads().is_empty());
    let chatter = Publisher::start(|_| b"SSH-2.0-OpenSSH\r\n\r\n".to_vec()).await;
    let error = pass(request(&chatter.url("/"))).await.unwrap_err();
    assert!(error.to_string().contains("does not speak HTTP"), "{error}");
    assert_eq!(chatter.heads().len(), 1, "it was asked again");
}

#[tokio::test]
async fn an_origin_that_never_shakes_hands_is_given_up_with_the_connection() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}/", listener.local_addr().unwrap());
    let silent = tokio::spawn(async move {
        let (connection, _) = listener.accept().await.unwrap();
        std::future::pending::<()>().await;
        drop(connection);
    });
    let connect = Duration::from_millis(200);
    let limits = FetchLimits { connect, ..FetchLimits::STANDARD };
    let pass = services(FetchSettings { limits, ..all_private() }).unwrap().passing.pass;
    let error = match pass(request(&url)).await {
        // A machine without root certificates makes no request.
        Err(FetchError::NoRoots) => return,
        answered => answered.unwrap_err(),
    };
    let is_connect = matches!(&error, FetchError::Timeout { limit, .. } if *limit == connect);
    assert!(is_connect, "{error:?}");
    silent.abort();
}

#[test]
fn no_other_server_is_asked_than_the_guard_saw() {
    let url = Url::parse("http://a.example:81/b?c").unwrap();
    let named = |target: &str| named_address(&url, Some(target.parse().unwrap())).unwrap();
    assert_eq!(named("http://a.example:81/B"), "http://a.example:81/B");
    for other in ["http://a.example/B", "https://a.example:81/B", "http://u@a.example:81/B", "/B"] {
        assert_eq!(named(other), "http://a.example:81/b?c", "{other}");
    }
}

#[tokio::test]
async fn an_origin_that_stalls_is_given_up() {
    let stalls = b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\nSTALL";
    let publisher = Publisher::start(move |head| match head.contains("/body") {
        true => stalls.to_vec(),
        false => Vec::new(),
    })
    .await;
    let never = pass(request(&publisher.url("/"))).await;
    assert!(matches!(never, Err(FetchError::Timeout { .. })), "{never:?}");
    let broken = pass(request(&publisher.url("/body"))).await.unwrap();
    let error = broken.body.collect().await.unwrap_err();
    assert!(error.to_string().contains("sent nothing"), "{error}");
    // A body that the client breaks is its own fault.
    let publisher = Publisher::start(|_| Vec::new()).await;
    let mut asked = request(&publisher.url("/"));
    asked.method = Method::POST;
    let pieces: [Result<Frame<Bytes>, BodyError>; 2] =
        [Ok(Frame::data(Bytes::from_static(b"ab"))), Err("broken off".into())];
    let body = http_body_util::StreamBody::new(futures_util::stream::iter(pieces));
    asked.body = Some(body.boxed_unsync());
    let error = pass(asked).await.unwrap_err();
    assert!(matches!(error, FetchError::Unsent), "{error:?}");
}

#[tokio::test]
async fn a_poll_of_a_feed_that_a_request_made_takes_what_was_handed_over() {
    let publisher = Publisher::start(|_| response("200 OK", "", b"<asked/>")).await;
    let services = all(AllowPrivate::All);
    let url = publisher.url("/feed");
    let mut headers = HeaderMap::new();
    headers.insert("etag", "\"7\"".parse().unwrap());
    let answer = WholeAnswer { headers, body: Bytes::from_static(b"<handed/>") };
    services.passing.handover.give(&url, answer.clone());
    let fetch = |request: FetchRequest| services.fetch.clone().oneshot(request);
    let configured = whole(&url);
    let made = FetchRequest { for_everybody: true, ..configured.clone() };
    assert_eq!(document(&fetch(configured).await.unwrap()).bytes, "<asked/>");
    let first = fetch(made.clone()).await.unwrap();
    assert_eq!(document(&first).bytes, "<handed/>");
    assert_eq!(first.validators.etag.as_deref(), Some("\"7\""));
    assert_eq!(document(&fetch(made.clone()).await.unwrap()).bytes, "<asked/>");
    // A poll that knows an earlier document takes the answer too.
    services.passing.handover.give(&url, answer);
    let known = FetchRequest { known_wire: Some(1), ..made };
    assert_eq!(document(&fetch(known).await.unwrap()).bytes, "<handed/>");
}

/// Starts a server that answers the first request of each connection and closes it on a second one. Counts the latter.
async fn closing() -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (place, closed) = (listener.local_addr().unwrap(), Arc::default());
    let count = Arc::clone(&closed);
    tokio::spawn(async move {
        while let Ok((mut connection, _)) = listener.accept().await {
            let count: Arc<AtomicUsize> = Arc::clone(&count);
            tokio::spawn(async move {
                let mut piece = [0; 4096];
                assert!(connection.read(&mut piece).await.unwrap() > 0);
                let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nwords";
                connection.write_all(answer).await.unwrap();
                if connection.read(&mut piece).await.unwrap() > 0 {
                    count.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
    });
    (place, closed)
}

#[tokio::test]
async fn a_get_survives_kept_connections_that_end() {
    let (place, closed) = closing().await;
    let passing = all(AllowPrivate::All).passing.pass;
    let body = |answer: PassAnswer| async { answer.body.collect().await.unwrap().to_bytes() };
    let get = || passing(request(&format!("http://{place}/")));
    // Two requests in parallel, so that two connections are kept.
    let (one, other) = tokio::join!(get(), get());
    let (one, other) = tokio::join!(body(one.unwrap()), body(other.unwrap()));
    assert_eq!((&one[..], &other[..]), (&b"words"[..], &b"words"[..]));
    tokio::time::sleep(Duration::from_millis(50)).await;
    let third = get().await.unwrap();
    assert_eq!(body(third).await, "words");
    assert_eq!(closed.load(Ordering::SeqCst), 1, "none was kept");
}
