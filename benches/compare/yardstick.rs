//! What an answer from memory costs in itself: `yardstick hyper|tokio FOLDER` serves the files of a
//! folder, each `NAME` with the header lines of `NAME.head`, and 304 to whoever names a tag. `hyper` writes
//! them as the gateway's server would that looks nothing up; `tokio` reads and writes bytes, and knows no
//! HTTP.
//!
//! `yardstick proxy ADDRESS` passes each request on to an address and the answer back, over hyper's server and client and
//! with nothing around them: what a passed request costs in itself.
//!
//! `yardstick polls FILE` asks for each address of a file once a second, with the tag that it was given last, by the
//! gateway's client and nothing around it: what a poll costs in itself.

use bytes::Bytes;
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::collections::HashMap;
use std::convert::Infallible;
use std::io::{self, IoSlice};
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Duration, interval, sleep};

/// The longest request, in bytes.
const REQUEST: usize = 8 * 1024;

struct Document {
    headers: HeaderMap,
    body: Bytes,
    /// The answers as bytes, the body left out.
    found: Vec<u8>,
    not_modified: Vec<u8>,
}

impl Document {
    fn read(head: &str, body: Vec<u8>) -> Option<Self> {
        let mut headers = HeaderMap::new();
        for line in head.lines() {
            let (name, value) = line.split_once(": ")?;
            headers.append(name.parse::<HeaderName>().ok()?, HeaderValue::from_str(value).ok()?);
        }
        let common = head.lines().map(|line| format!("{line}\r\n")).collect::<String>();
        let found = format!("HTTP/1.1 200 OK\r\n{common}content-length: {}\r\n\r\n", body.len());
        let not_modified = format!("HTTP/1.1 304 Not Modified\r\n{common}\r\n");
        let (found, not_modified) = (found.into_bytes(), not_modified.into_bytes());
        Some(Self { headers, body: body.into(), found, not_modified })
    }
}

type Documents = Arc<HashMap<String, Document>>;

fn documents(folder: &str) -> io::Result<Documents> {
    let mut documents = HashMap::new();
    for file in std::fs::read_dir(folder)? {
        let path = file?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if let Some(of) = name.strip_suffix(".head") {
            let head = std::fs::read_to_string(&path)?;
            let document = Document::read(&head, std::fs::read(path.with_extension(""))?);
            documents.insert(format!("/{of}"), document.ok_or(io::ErrorKind::InvalidData)?);
        }
    }
    Ok(Arc::new(documents))
}

async fn over_hyper(stream: TcpStream, documents: Documents) {
    let service = hyper::service::service_fn(move |request: Request<Incoming>| {
        let mut response = Response::new(Full::new(Bytes::new()));
        match documents.get(request.uri().path()) {
            Some(document) => {
                *response.headers_mut() = document.headers.clone();
                if request.headers().contains_key(header::IF_NONE_MATCH) {
                    *response.status_mut() = StatusCode::NOT_MODIFIED;
                } else {
                    *response.body_mut() = Full::new(document.body.clone());
                }
            }
            None => *response.status_mut() = StatusCode::NOT_FOUND,
        }
        std::future::ready(Ok::<_, Infallible>(response))
    });
    let http = hyper::server::conn::http1::Builder::new();
    drop(http.serve_connection(TokioIo::new(stream), service).await);
}

/// A client that keeps its connections.
type Passer = Client<HttpConnector, Incoming>;

async fn passing(stream: TcpStream, client: Passer, origin: Arc<str>) {
    let service = hyper::service::service_fn(move |mut request: Request<Incoming>| {
        let path = request.uri().path_and_query().map_or("/", PathAndQuery::as_str);
        let to = format!("{origin}{path}").parse();
        request.headers_mut().remove(header::HOST);
        let client = client.clone();
        async move {
            *request.uri_mut() = to.map_err(io::Error::other)?;
            client.request(request).await.map_err(io::Error::other)
        }
    });
    let http = hyper::server::conn::http1::Builder::new();
    drop(http.serve_connection(TokioIo::new(stream), service).await);
}

async fn over_tokio(mut stream: TcpStream, documents: Documents) -> io::Result<()> {
    let mut buffer = Vec::with_capacity(REQUEST);
    while stream.read_buf(&mut buffer).await? > 0 && buffer.len() < REQUEST {
        let text = String::from_utf8_lossy(&buffer);
        let Some(request) = text.strip_suffix("\r\n\r\n") else { continue };
        let path = request.split(' ').nth(1).unwrap_or_default();
        let document = documents.get(path).ok_or(io::ErrorKind::NotFound)?;
        if request.contains("\r\nIf-None-Match:") {
            stream.write_all(&document.not_modified).await?;
        } else {
            let parts = [IoSlice::new(&document.found), IoSlice::new(&document.body)];
            let mut written = stream.write_vectored(&parts).await?;
            for part in [&document.found[..], &document.body] {
                let rest = part.get(written..).unwrap_or_default();
                stream.write_all(rest).await?;
                written = written.saturating_sub(part.len());
            }
        }
        buffer.clear();
    }
    Ok(())
}

/// Asks for an address for ever.
async fn ask(client: reqwest::Client, address: String) -> Result<(), reqwest::Error> {
    let mut tag: Option<HeaderValue> = None;
    let mut every = interval(Duration::from_secs(1));
    loop {
        every.tick().await;
        let mut request = client.get(&address);
        if let Some(tag) = &tag {
            request = request.header(header::IF_NONE_MATCH, tag);
        }
        let response = request.send().await?;
        tag = response.headers().get(header::ETAG).cloned();
        response.bytes().await?;
    }
}

async fn polls(file: &str) -> io::Result<()> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder().no_proxy().build().map_err(io::Error::other)?;
    let addresses: Vec<String> =
        std::fs::read_to_string(file)?.lines().map(str::to_owned).collect();
    let step = Duration::from_secs(1) / u32::try_from(addresses.len().max(1)).unwrap_or(u32::MAX);
    let mut asking = tokio::task::JoinSet::new();
    for address in addresses {
        asking.spawn(ask(client.clone(), address));
        sleep(step).await;
    }
    match asking.join_next().await {
        Some(Ok(Err(error))) => Err(io::Error::other(error)),
        _ => Ok(()),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, how, folder] = &arguments[..] else { return Err(io::ErrorKind::InvalidInput.into()) };
    if how == "polls" {
        return polls(folder).await;
    }
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    let client = Client::builder(TokioExecutor::new()).build(connector);
    let is_proxy = how == "proxy";
    let documents = if is_proxy { Documents::default() } else { documents(folder)? };
    let origin: Arc<str> = folder.trim_end_matches('/').into();
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("listening on http://{}", listener.local_addr()?);
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let documents = Arc::clone(&documents);
        if is_proxy {
            tokio::spawn(passing(stream, client.clone(), Arc::clone(&origin)));
        } else if how == "hyper" {
            tokio::spawn(over_hyper(stream, documents));
        } else {
            tokio::spawn(over_tokio(stream, documents));
        }
    }
}
