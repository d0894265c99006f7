//! Requests that an origin gets nothing of.

use crate::origins::{Front, HOST, Site};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// What a request answers that is sent as it is written.
async fn raw(front: &Front, head: &str) -> String {
    let mut socket = TcpStream::connect(front.gateway.address()).await.unwrap();
    socket.write_all(format!("{head}\r\nconnection: close\r\n\r\n").as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    socket.read_to_end(&mut answer).await.unwrap();
    let answer = String::from_utf8_lossy(&answer).into_owned();
    answer.lines().next().unwrap_or_default().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_leads_elsewhere_is_refused() {
    let site = Site::start().await;
    let front = Front::through(&site).await;
    for target in ["/a/../b", "/a/%2e%2e/b", "/%2E/", "/..", "/a/..;x/b"] {
        let status = raw(&front, &format!("GET {target} HTTP/1.1\r\nhost: {HOST}")).await;
        assert!(status.contains(" 400 "), "{target}: {status}");
    }
    for head in [
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
    assert!(site.asked.lock().unwrap().is_empty(), "nothing was passed on");
    // Another host's pages are not asked for, whatever the target says.
    let elsewhere =
        raw(&front, &format!("GET http://evil.example/ HTTP/1.1\r\nhost: {HOST}")).await;
    assert!(site.asked.lock().unwrap().is_empty(), "{elsewhere}");
    front.gateway.stop().await.unwrap();
}
