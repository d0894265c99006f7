//! The sockets, over real connections. Times are limits of the server, never of the test.

use super::*;
use crate::budget::BudgetShares;
use crate::connections::{ConnectionLimits, shares};
use crate::listen::{ServeError, SiteHandle, serve};
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

const LONG: Duration = Duration::from_secs(3600);
const SHORT: Duration = Duration::from_millis(50);

/// Nothing is cut within the time that a test takes.
pub(super) const PATIENT: ConnectionLimits = ConnectionLimits {
    first_request: LONG,
    head: LONG,
    stall: LONG,
    untaken: LONG,
    lifetime: LONG,
    drain: LONG,
};

pub(super) async fn serving(
    site: &Site,
    limits: ConnectionLimits,
) -> (SocketAddr, JoinHandle<Result<(), ServeError>>) {
    serving_shares(site, limits, |_| shares(1024)).await
}

async fn serving_shares(
    site: &Site,
    limits: ConnectionLimits,
    shares: fn(&AppState) -> BudgetShares,
) -> (SocketAddr, JoinHandle<Result<(), ServeError>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    let (handle, ends) = (SiteHandle::new(&site.app), site.closing.clone());
    (at, tokio::spawn(serve((listener, Listener::Everybody), handle, (limits, shares), ends)))
}

pub(super) async fn raw(at: SocketAddr, said: &str) -> (TcpStream, String) {
    let mut stream = TcpStream::connect(at).await.unwrap();
    stream.write_all(said.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    // A connection that is reset has been cut as well.
    let _ = stream.read_to_end(&mut answer).await;
    (stream, String::from_utf8_lossy(&answer).into_owned())
}

async fn served(limits: ConnectionLimits) -> (Site, SocketAddr) {
    let site = Site::new();
    let at = serving(&site, limits).await.0;
    (site, at)
}

/// A request that is the only one of its connection.
fn once(request: &str) -> String {
    format!("{request} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
}

#[tokio::test]
async fn http_1_and_cleartext_http_2_are_answered_within_limits() {
    let (_site, at) = served(PATIENT).await;
    let (_, answer) = raw(at, &once("GET /healthz")).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("ok\n"), "{answer}");
    // Of a stream nobody knows how long it will be.
    for (path, has_length) in [("/feeds/news", true), ("/events", false)] {
        let (_, head) = raw(at, &once(&format!("HEAD {path}"))).await;
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && head.ends_with("\r\n\r\n"), "{head}");
        assert_eq!(head.contains("content-length: "), has_length, "{head}");
        assert_eq!(head.contains("event-stream"), !has_length, "{head}");
    }
    // Heads have limits.
    let many = "x: y\r\n".repeat(200);
    let long = format!("x: {}\r\n", "y".repeat(100_000));
    for fields in [many, long] {
        let (_, answer) = raw(at, &format!("GET / HTTP/1.1\r\nhost: x\r\n{fields}\r\n")).await;
        assert!(!answer.contains("200 OK"), "{answer}");
    }
    // HTTP/1.1 names one host.
    for (fields, version, status) in [
        ("host: x\r\n", "1.1", 200),
        ("host: x:8080\r\n", "1.1", 200),
        ("", "1.1", 400),
        ("host: x\r\nhost: x\r\n", "1.1", 400),
        ("host: a b\r\n", "1.1", 400),
        ("", "1.0", 200),
    ] {
        let asked = format!("GET /healthz HTTP/{version}\r\n{fields}connection: close\r\n\r\n");
        let (_, answer) = raw(at, &asked).await;
        assert!(answer.contains(&format!(" {status} ")), "{fields:?} {version}: {answer}");
    }
    // A client that writes all of its request before it reads sees the answer all the same.
    let length = 10_000_000;
    let head = format!(
        "PUT /api/v1/feeds/news HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\
         content-type: application/json\r\nauthorization: Bearer {TOKEN}\r\n"
    );
    let asked = format!("{head}content-length: {length}\r\n\r\n{}", "x".repeat(length));
    let (_, answer) = raw(at, &asked).await;
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
    // HTTP/2 is spoken with prior knowledge.
    let stream = TokioIo::new(TcpStream::connect(at).await.unwrap());
    let executor = TokioExecutor::new();
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake::<_, _, Body>(executor, stream).await.unwrap();
    tokio::spawn(connection);
    let path = format!("http://{at}/feeds/news");
    let answer = sender.send_request(request("GET", &path, &[], "")).await.unwrap();
    assert_eq!((answer.version(), answer.status().as_u16()), (http::Version::HTTP_2, 200));
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    assert!(body.starts_with(b"Reader"));
}

#[tokio::test]
async fn whoever_does_not_ask_is_cut() {
    let (_site, at) = served(ConnectionLimits { first_request: SHORT, ..PATIENT }).await;
    // Nothing, the beginning of the HTTP/2 preface, all of it, and a head without an end.
    for said in ["", "PRI", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "GET / HTTP/1.1\r\nhost: x\r\n"] {
        let (_, answer) = raw(at, said).await;
        assert!(!answer.contains("200 OK"), "{answer}");
    }
    // So is a later head that does not end.
    let (_site, at) = served(ConnectionLimits { head: SHORT, ..PATIENT }).await;
    let asked = "GET /healthz HTTP/1.1\r\nhost: x\r\n\r\nGET /healthz HTTP/1.1\r\nhost:";
    let (_, answer) = raw(at, asked).await;
    assert_eq!(answer.matches("HTTP/1.1 200 OK\r\n").count(), 1, "{answer}");
}

/// Streams without a window: nothing of an answer is taken, and the connection itself is not stalled.
#[tokio::test]
async fn bodies_of_streams_that_take_nothing_count_and_end_their_connection() {
    let (site, at) = served(ConnectionLimits { untaken: SHORT * 10, ..PATIENT }).await;
    let stream = TokioIo::new(TcpStream::connect(at).await.unwrap());
    let mut client = hyper::client::conn::http2::Builder::new(TokioExecutor::new());
    client.initial_stream_window_size(0);
    let (mut sender, connection) = client.handshake::<_, Body>(stream).await.unwrap();
    let connection = tokio::spawn(connection);
    let mut answers = Vec::new();
    let mut length = 0;
    for _ in 0..40 {
        let path = format!("http://{at}/feeds/news");
        let answer = sender.send_request(request("GET", &path, &[], "")).await.unwrap();
        assert_eq!(answer.status(), 200);
        length = answer.headers()["content-length"].to_str().unwrap().parse().unwrap();
        answers.push(answer);
    }
    assert_eq!(site.app.bodies.held(), (40, length), "a document counts once");
    let path = format!("http://{at}/feeds/radio");
    answers.push(sender.send_request(request("GET", &path, &[], "")).await.unwrap());
    let (bodies, bytes) = site.app.bodies.held();
    assert!(bodies == 41 && bytes > length, "{bodies} {bytes}");
    // It ends though the client is there, and answers pings.
    let _ = connection.await.unwrap();
    eventually(|| site.app.bodies.held() == (0, 0)).await;
}

/// What the system takes ahead of a client is seen by nobody: so much at most may be between the client's
/// progress and what the server sees of it.
#[tokio::test]
async fn the_system_takes_little_of_an_answer_ahead_of_its_client() {
    let site = Site::new();
    // The document names its publisher's address.
    let long = format!("https://a.example/{}", "x".repeat(12 << 20));
    site.store.edit_record("news", |record| record.url = long);
    let (at, _server) = serving(&site, ConnectionLimits { stall: SHORT * 4, ..PATIENT }).await;
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(64 * 1024).unwrap();
    let mut stream = socket.connect(at).await.unwrap();
    stream.write_all(b"GET /feeds/news HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    for held in [1, 0] {
        eventually(|| site.app.bodies.held().0 == held).await;
    }
    // It was cut, and what the system had taken by then comes still.
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    assert!((1..1 << 20).contains(&answer.len()), "{}", answer.len());
}

/// A visitor whose answer waits for the store as the site is closed.
async fn close_on_visitor(site: &Site, at: SocketAddr) -> JoinHandle<String> {
    let asked = "GET /feeds/news/sync HTTP/1.1\r\nhost: x\r\n\r\n";
    let visitor = tokio::spawn(async move { raw(at, asked).await.1 });
    eventually(|| site.store.waiting(&doubles::name("news")) > 0).await;
    site.closing.cancel();
    visitor
}

#[tokio::test]
async fn shutting_down_lets_answers_in_flight_finish_within_the_limit() {
    let site = Site::new();
    let held = site.store.hold_feed(&doubles::name("news"));
    let (at, server) = serving(&site, PATIENT).await;
    let idle = TcpStream::connect(at).await.unwrap();
    let visitor = close_on_visitor(&site, at).await;
    while TcpStream::connect(at).await.is_ok() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert!(!server.is_finished(), "the answer in flight was not waited for");
    drop(held);
    let answer = visitor.await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.contains("Sync Sse"), "{answer}");
    server.await.unwrap().unwrap();
    drop(idle);
    // But not for ever.
    let site = Site::new();
    let _held = site.store.hold_feed(&doubles::name("news"));
    let (at, server) = serving(&site, ConnectionLimits { drain: SHORT, ..PATIENT }).await;
    let visitor = close_on_visitor(&site, at).await;
    server.await.unwrap().unwrap();
    assert_eq!(visitor.await.unwrap(), "");
}

/// All are taken by streams, which give way to nobody.
#[tokio::test]
async fn a_full_gateway_says_whether_it_is_alive_and_nothing_else() {
    let site = Site::new();
    let shares = |_: &AppState| BudgetShares { all: 2, each: 1, network: 1 };
    let (at, _server) = serving_shares(&site, PATIENT, shares).await;
    let ask = async |last: u8, path: &str| {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind(SocketAddr::from(([127, 0, 0, last], 0))).unwrap();
        let mut stream = socket.connect(at).await.unwrap();
        stream.write_all(once(&format!("GET {path}")).as_bytes()).await.unwrap();
        let mut got = [0; 12];
        // What is closed at once may be reset.
        let is_answered = stream.read_exact(&mut got).await.is_ok();
        (stream, is_answered && &got == b"HTTP/1.1 200")
    };
    let mut streams = vec![ask(2, "/events").await, ask(3, "/events").await];
    assert!(streams.iter().all(|(_, is_answered)| *is_answered));
    // 2 has its own share taken, 9 has none of it.
    for last in [2, 9] {
        let paths = ["/healthz", "/readyz", "/feeds/news", "/events"];
        for (path, expected) in paths.into_iter().zip([true, true, false, false]) {
            assert_eq!(ask(last, path).await.1, expected, "{path}");
        }
    }
    assert_eq!(site.app.event_streams.open_streams(), 2, "and nobody gave way");
    drop(streams.pop());
    // Once there is room all is answered again; until then the end of the stream was not seen.
    while !ask(9, "/feeds/news").await.1 {}
}

#[tokio::test]
async fn a_trusted_proxy_says_whose_a_request_is() {
    let proxies = vec!["127.0.0.1".parse::<std::net::IpAddr>().unwrap().into()];
    let behind = with(settings(), |it| it.server.trusted_proxies = proxies);
    let site = Site::with(TestStore::with_news(), behind);
    let (at, _server) = serving(&site, PATIENT).await;
    let mut open = Vec::new();
    for of in [[1; 33].as_slice(), &[2]].concat() {
        let mut stream = TcpStream::connect(at).await.unwrap();
        let forwarded = format!("host: x\r\nx-forwarded-for: 192.0.2.{of}\r\n\r\n");
        stream.write_all(format!("GET /events HTTP/1.1\r\n{forwarded}").as_bytes()).await.unwrap();
        assert!(stream.read(&mut [0; 64]).await.unwrap() > 0);
        open.push(stream);
    }
    assert_eq!(site.app.event_streams.open_streams(), 33, "32 of one client, 1 of the other");
}
