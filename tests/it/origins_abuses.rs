//! Requests that an origin gets nothing of, and what it gets of bodies.

use crate::origins::{Front, HOST, start_site};
use futures_util::stream;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

async fn sent(front: &Front, bytes: &str) -> String {
    let mut socket = TcpStream::connect(front.gateway.address()).await.unwrap();
    socket.write_all(bytes.as_bytes()).await.unwrap();
    let mut answer = vec![0; 4096];
    let read = tokio::time::timeout(Duration::from_secs(10), socket.read(&mut answer));
    let read = read.await.unwrap_or_else(|_| panic!("no answer to {bytes:?}")).unwrap_or(0);
    let answer = String::from_utf8_lossy(&answer[..read]).into_owned();
    answer.lines().next().unwrap_or_default().to_owned()
}

/// What a request answers that is sent as it is written.
async fn raw(front: &Front, head: &str) -> String {
    sent(front, &format!("{head}\r\nconnection: close\r\n\r\n")).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_leads_elsewhere_is_refused() {
    let site = start_site().await;
    let front = Front::through(&site.address("/")).await;
    for head in [
        format!("GET /a/%2e%2e/b HTTP/1.1\r\nhost: {HOST}"),
        format!("GET / HTTP/1.1\r\nhost: {HOST}\r\ncontent-length: 1\r\n\r\nx"),
        format!("GET * HTTP/1.1\r\nhost: {HOST}"),
        format!("TRACE / HTTP/1.1\r\nhost: {HOST}"),
        format!("CONNECT {HOST}:80 HTTP/1.1\r\nhost: {HOST}"),
        format!("GET / HTTP/1.1\r\nhost: {HOST}\r\nhost: other.example"),
        format!("POST / HTTP/1.1\r\nhost: {HOST}\r\ncontent-length: 1\r\ncontent-length: 2"),
    ] {
        let status = raw(&front, &head).await;
        assert!(status.contains(" 4"), "{head}: {status}");
    }
    // What comes behind it is refused as well.
    let coded = format!(
        "POST / HTTP/1.1\r\nhost: {HOST}\r\ntransfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n\
         TRACE / HTTP/1.1\r\nhost: {HOST}"
    );
    let status = raw(&front, &coded).await;
    assert!(status.contains(" 501 "), "{status}");
    assert!(site.targets().is_empty(), "nothing was passed on");
    // Another host's pages are not asked for, whatever the target says.
    let head = format!("GET http://evil.example/ HTTP/1.1\r\nhost: {HOST}");
    let elsewhere = raw(&front, &head).await;
    assert!(site.targets().is_empty(), "{elsewhere}");
    front.gateway.stop().await;
}

/// What two servers could read as one request or as two is refused, or one request to both.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_request_is_hidden_in_another() {
    let site = start_site().await;
    let front = Front::through(&site.address("/")).await;
    let hidden = format!("GET /hidden HTTP/1.1\r\nhost: {HOST}\r\n\r\n");
    let (inner, whole) = (hidden.len(), hidden.len() + 5);
    let post = |path: &str, lines: &str, body: &str| {
        format!("POST {path} HTTP/1.1\r\nhost: {HOST}\r\n{lines}\r\n\r\n{body}{hidden}")
    };
    let chunked = "transfer-encoding: chunked";
    let lengths =
        ["+5", "-1", "0x10", "1 6", "", "1e1", "99999999999999999999999", "5\x0b", "0, 5"];
    let codings =
        ["xchunked", "chunked, identity", "\x0bchunked", "gzip, x", "chunked\0", "\"chunked\"", ""];
    let lines = [
        "transfer-encoding : chunked",
        " transfer-encoding: chunked",
        "transfer-encoding\0: chunked",
        "x: y\r\n transfer-encoding: chunked",
        "x: y\rtransfer-encoding: chunked",
        "x: y\0z",
        "x y: z",
        ": z",
        "no colon",
        "x(: y",
        "content-length : 5",
        "transfer-encoding: chunked\r\ntransfer-encoding: identity",
    ];
    let end = "0\r\n\r\n";
    let mut refused = vec![
        post("/x", &format!("content-length: 0\r\ncontent-length: {inner}"), ""),
        post("/x", chunked, end).replace("HTTP/1.1\r\nhost", "HTTP/1.0\r\nhost"),
    ];
    refused.extend(lengths.map(|value| post("/x", &format!("content-length: {value}"), "")));
    let codings = codings.map(|value| format!("transfer-encoding: {value}"));
    for line in codings.into_iter().chain(lines.map(str::to_owned)) {
        refused.push(post("/x", &format!("{line}\r\ncontent-length: {whole}"), end));
    }
    let starts = ["GET /x", "GET /x HTTP/2.0", "GE(T /x HTTP/1.1"];
    refused.extend(starts.map(|line| format!("{line}\r\nhost: {HOST}\r\n\r\n")));
    for request in refused {
        let status = sent(&front, &request).await;
        assert!(["", "4", "5"].contains(&status.get(9..10).unwrap_or("")), "{request:?}: {status}");
        assert!(!site.targets().contains(&"/x".to_owned()), "{request:?}: {status}");
    }
    // A body that is broken in the middle is one to the site as well.
    for size in
        ["0x5", "+5", "5 5", "", "g", "FFFFFFFFFFFFFFFFF", "10000000000000005", "5\0", "4", "6"]
    {
        let body = format!("{size}\r\nwords\r\n0\r\n\r\n");
        let status = sent(&front, &post("/upload", chunked, &body)).await;
        assert!(!status.contains(" 200 "), "{size:?}: {status}");
    }
    // Read as chunked, whatever length is said beside it, and nothing behind it is a request.
    for (first, second) in [(chunked, "content-length: 100"), ("content-length: 100", chunked)] {
        sent(&front, &post("/upload", &format!("{first}\r\n{second}"), "0\r\n\r\n")).await;
    }
    let length = format!("content-length: {inner}\r\nconnection: close");
    sent(&front, &post("/upload", &length, "")).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    let asked = site.targets();
    assert!(asked.iter().all(|target| target == "/upload"), "{asked:?}");
    front.gateway.stop().await;
}

/// The first bytes of either body arrive before the last are sent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bodies_are_handed_on_as_they_come() {
    // A site that says back what it is told.
    let app = axum::Router::new().fallback(async |body: axum::body::Body| body);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    let front = Front::through(&url).await;
    let (send, parts) = tokio::sync::mpsc::channel::<Result<&str, std::io::Error>>(1);
    send.send(Ok("first")).await.unwrap();
    let body = stream::unfold(parts, async |mut parts| Some((parts.recv().await?, parts)));
    let body = reqwest::Body::wrap_stream(body);
    let asked = front.ask(reqwest::Method::POST, "/said-back").body(body).send();
    let mut said = tokio::time::timeout(Duration::from_secs(10), asked).await.unwrap().unwrap();
    assert_eq!(said.chunk().await.unwrap().unwrap(), "first");
    send.send(Ok("last")).await.unwrap();
    drop(send);
    assert_eq!(said.text().await.unwrap(), "last");
    front.gateway.stop().await;
}
