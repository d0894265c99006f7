//! An HTTP/2 origin: requests it receives, answers, and streams it resets.

use super::super::super::Pass;
use super::*;
use crate::testing::{all_private, our_ca, tls};
use futures_util::stream::{self, StreamExt as _};
use http::Version;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{Collected, StreamBody};
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::io;
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio_rustls::TlsAcceptor;

/// Larger than the windows of a stream and of a connection.
const PIECE: usize = 1 << 20;
const PIECES: usize = 5;

/// A received request with its body.
type Arrived = (http::request::Parts, Collected<Bytes>);

/// An origin's answer; an error resets the stream.
type Answer = io::Result<Response<UnsyncBoxBody<Bytes, io::Error>>>;

/// An origin that speaks only HTTP/2 over TLS, and the requests it received.
struct Http2Origin {
    port: u16,
    arrived: Arc<Mutex<Vec<Arrived>>>,
}

impl Http2Origin {
    async fn start(answer: impl Fn() -> Answer + Send + Sync + 'static) -> Self {
        let acceptor = TlsAcceptor::from(tls(&[b"h2"]));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let arrived = Arc::new(Mutex::new(Vec::new()));
        let (answer, noted) = (Arc::new(answer), Arc::clone(&arrived));
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let (acceptor, answer, noted) =
                    (acceptor.clone(), Arc::clone(&answer), Arc::clone(&noted));
                tokio::spawn(async move {
                    let Ok(stream) = acceptor.accept(socket).await else { return };
                    let service = service_fn(move |request: Request<Incoming>| {
                        let (answer, noted) = (Arc::clone(&answer), Arc::clone(&noted));
                        async move {
                            let (head, body) = request.into_parts();
                            let body = body.collect().await.map_err(io::Error::other)?;
                            noted.lock().unwrap().push((head, body));
                            answer()
                        }
                    });
                    let server = http2::Builder::new(TokioExecutor::new());
                    // Ends when the client closes the connection.
                    let _ = server.serve_connection(TokioIo::new(stream), service).await;
                });
            }
        });
        Self { port, arrived }
    }

    fn request(&self, method: Method, path: &str) -> PassRequest {
        let request = request(&format!("https://localhost:{}{path}", self.port));
        PassRequest { method, ..request }
    }

    /// Returns the requests received since the last call.
    fn arrived(&self) -> Vec<Arrived> {
        std::mem::take(&mut *self.arrived.lock().unwrap())
    }
}

fn passing() -> Pass {
    services(FetchSettings { ca_file: Some(our_ca()), ..all_private() }).unwrap().passing.pass
}

fn streamed<E: Send + 'static>(pieces: Vec<Result<Frame<Bytes>, E>>) -> UnsyncBoxBody<Bytes, E> {
    StreamBody::new(stream::iter(pieces)).boxed_unsync()
}

fn piece<E>(byte: u8) -> Result<Frame<Bytes>, E> {
    Ok(Frame::data(Bytes::from(vec![byte; PIECE])))
}

fn trailers<E>() -> Result<Frame<Bytes>, E> {
    let trailers = HeaderMap::from_iter([(http::header::SET_COOKIE, "a=b".parse().unwrap())]);
    Ok(Frame::trailers(trailers))
}

#[tokio::test]
async fn a_request_and_its_answer_are_passed_on_over_http_2() {
    let origin = Http2Origin::start(|| {
        let mut answer = Response::new(streamed(vec![Ok(Frame::data(Bytes::from("words")))]));
        *answer.status_mut() = StatusCode::NOT_FOUND;
        for value in ["1", "2"] {
            answer.headers_mut().append("x-a", value.parse().unwrap());
        }
        Ok(answer)
    })
    .await;
    let mut asked = origin.request(Method::GET, "/a%20b?c=%2F");
    asked.headers.insert("x-mine", "7".parse().unwrap());
    let answer = passing().send(asked).await.unwrap();
    assert_eq!(answer.status, StatusCode::NOT_FOUND);
    let twice: Vec<_> = answer.headers.get_all("x-a").iter().collect();
    assert_eq!(twice, ["1", "2"]);
    assert_eq!(answer.body.collect().await.unwrap().to_bytes(), "words");
    let (head, _) = origin.arrived().remove(0);
    assert_eq!(head.version, Version::HTTP_2);
    assert_eq!(head.uri, format!("https://localhost:{}/a%20b?c=%2F", origin.port).as_str());
    assert_eq!(head.headers["x-mine"], "7");
    assert_eq!(head.headers.len(), 1, "nothing is added: {:?}", head.headers);
}

#[tokio::test]
async fn large_bodies_go_both_ways_and_trailers_go_nowhere() {
    let origin = Http2Origin::start(|| {
        let pieces = (0..PIECES).map(|_| piece(b'a')).chain([trailers()]);
        Ok(Response::new(streamed(pieces.collect())))
    })
    .await;
    let mut upload = origin.request(Method::PUT, "/");
    let pieces = (0..PIECES).map(|_| piece(b'u')).chain([trailers()]);
    upload.body = Some(streamed(pieces.collect()));
    let answer = passing().send(upload).await.unwrap();
    let body = answer.body.collect().await.unwrap();
    assert!(body.trailers().is_none(), "{:?}", body.trailers());
    let bytes = body.to_bytes();
    assert!(bytes.len() == PIECES * PIECE && bytes.iter().all(|byte| *byte == b'a'));
    let (_, uploaded) = origin.arrived().remove(0);
    assert_eq!(uploaded.trailers(), None);
    assert_eq!(uploaded.to_bytes().len(), PIECES * PIECE);
}

#[tokio::test]
async fn a_stream_that_is_reset_before_an_answer_is_repeated_once_where_that_is_safe() {
    let origin = Http2Origin::start(|| Err(io::Error::other("not now"))).await;
    let passing = passing();
    let reset = passing.send(origin.request(Method::GET, "/")).await.unwrap_err();
    assert!(matches!(reset, FetchError::CutOff { .. }), "{reset:?}");
    assert_eq!(origin.arrived().len(), 2);
    for body in [None, Some(streamed(vec![piece(b'u')]))] {
        let posted = PassRequest { body, ..origin.request(Method::POST, "/") };
        let reset = passing.send(posted).await.unwrap_err();
        assert!(matches!(reset, FetchError::CutOff { .. }), "{reset:?}");
        assert_eq!(origin.arrived().len(), 1);
    }
}

#[tokio::test]
async fn an_answer_that_is_reset_is_not_whole() {
    let has_begun = Arc::new(Notify::new());
    let waits = Arc::clone(&has_begun);
    let origin = Http2Origin::start(move || {
        let waits = Arc::clone(&waits);
        let beginning = stream::iter([Ok(Frame::data(Bytes::from("some of it")))]);
        let broken = stream::once(async move {
            waits.notified().await;
            Err(io::Error::other("not the rest"))
        });
        Ok(Response::new(StreamBody::new(beginning.chain(broken)).boxed_unsync()))
    })
    .await;
    for method in [Method::GET, Method::POST] {
        let answer = passing().send(origin.request(method.clone(), "/")).await.unwrap();
        assert_eq!(answer.status, StatusCode::OK);
        let mut body = answer.body;
        let first = body.frame().await.unwrap().unwrap();
        assert_eq!(first.into_data().unwrap(), "some of it");
        has_begun.notify_one();
        assert!(body.collect().await.is_err(), "{method}");
        assert_eq!(origin.arrived().len(), 1, "{method}");
    }
}
