//! An HTTP/2 origin: requests it receives, answers, and streams it resets.

use super::*;
use crate::testing::{our_ca, tls};
use futures_util::stream::{self, StreamExt as _};
use http::Version;
use http_body_util::{Collected, StreamBody};
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::io;
use tokio::net::TcpListener;
use tokio::time::sleep;
use tokio_rustls::TlsAcceptor;

/// Larger than the windows of a stream and of a connection.
const LARGE: usize = 5 << 20;

type Arrived = Arc<Mutex<Vec<(http::request::Parts, Collected<Bytes>)>>>;

fn large<E>() -> Result<Frame<Bytes>, E> {
    Ok(Frame::data(Bytes::from(vec![b'a'; LARGE])))
}

fn trailers<E>() -> Result<Frame<Bytes>, E> {
    let trailers = HeaderMap::from_iter([(http::header::SET_COOKIE, "a=b".parse().unwrap())]);
    Ok(Frame::trailers(trailers))
}

/// Starts an origin that speaks only HTTP/2 over TLS. It resets the stream of `/reset`, and that of `/broken` within
/// the answer.
async fn origin() -> (u16, Arrived) {
    let acceptor = TlsAcceptor::from(tls(&[b"h2"]));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (port, arrived) = (listener.local_addr().unwrap().port(), Arrived::default());
    let noted = Arc::clone(&arrived);
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let (accepting, noted) = (acceptor.accept(socket), Arc::clone(&noted));
            tokio::spawn(async move {
                let Ok(stream) = accepting.await else { return };
                let service = service_fn(move |request: Request<Incoming>| {
                    let noted = Arc::clone(&noted);
                    async move {
                        let (head, body) = request.into_parts();
                        let body = body.collect().await.map_err(io::Error::other)?;
                        let path = head.uri.path().to_owned();
                        noted.lock().unwrap().push((head, body));
                        if path == "/reset" {
                            return Err(io::Error::other("not now"));
                        }
                        let end = stream::once(async move {
                            if path == "/broken" {
                                // A reset drops what was not sent before.
                                sleep(Duration::from_millis(50)).await;
                                return Err(io::Error::other("not the rest"));
                            }
                            trailers()
                        });
                        let body = StreamBody::new(stream::iter([large()]).chain(end));
                        let answer = Response::builder().status(404).header("x-a", "1");
                        answer.header("x-a", "2").body(body).map_err(io::Error::other)
                    }
                });
                let server = http2::Builder::new(TokioExecutor::new());
                // Ends when the client closes the connection.
                let _ = server.serve_connection(TokioIo::new(stream), service).await;
            });
        }
    });
    (port, arrived)
}

#[tokio::test]
async fn requests_and_answers_are_passed_on_over_http_2_without_trailers() {
    let (port, arrived) = origin().await;
    let settings = FetchSettings { ca_file: Some(our_ca()), ..all_private() };
    let passing = services(settings).unwrap().passing.pass;
    let ask = |method: &Method, path: &str, is_upload: bool| {
        let pieces = stream::iter([large(), trailers()]);
        let body = is_upload.then(|| StreamBody::new(pieces).boxed_unsync());
        let request = request(&format!("https://localhost:{port}{path}"));
        PassRequest { method: method.clone(), body, ..request }
    };
    let mut asked = ask(&Method::PUT, "/a%20b?c=%2F", true);
    asked.headers.insert("x-mine", "7".parse().unwrap());
    let answer = passing(asked).await.unwrap();
    assert_eq!(answer.status, StatusCode::NOT_FOUND);
    let twice: Vec<_> = answer.headers.get_all("x-a").iter().collect();
    assert_eq!(twice, ["1", "2"]);
    let (head, uploaded) = arrived.lock().unwrap().remove(0);
    for body in [uploaded, answer.body.collect().await.unwrap()] {
        assert!(body.trailers().is_none(), "{:?}", body.trailers());
        assert_eq!(body.to_bytes().len(), LARGE);
    }
    assert_eq!(head.version, Version::HTTP_2);
    assert_eq!(head.uri, format!("https://localhost:{port}/a%20b?c=%2F").as_str());
    assert_eq!(head.headers["x-mine"], "7");
    assert_eq!(head.headers.len(), 1, "nothing is added: {:?}", head.headers);
    // A request is repeated once where that is safe, and not once its answer has begun.
    for (method, path, is_upload, requests) in [
        (Method::GET, "/reset", false, 2),
        (Method::POST, "/reset", false, 1),
        (Method::POST, "/reset", true, 1),
        (Method::GET, "/broken", false, 1),
        (Method::POST, "/broken", false, 1),
    ] {
        match passing(ask(&method, path, is_upload)).await {
            Err(FetchError::CutOff { .. }) => assert_eq!(path, "/reset"),
            answered => assert!(answered.unwrap().body.collect().await.is_err(), "{path}"),
        }
        assert_eq!(std::mem::take(&mut *arrived.lock().unwrap()).len(), requests, "{path}");
    }
}
