//! A scripted publisher: what it answers is set by the test, what it was asked is kept.

use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use bytes::Bytes;
use http::{HeaderMap, StatusCode, header};
use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex};

/// What it answers to requests for one path.
#[derive(Debug, Clone)]
pub struct Answer {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: Vec<u8>,
    /// How much of the body is sent before the connection breaks.
    breaks_after: Option<usize>,
}

impl Answer {
    /// A document.
    pub fn document(media_type: &str, body: impl Into<Vec<u8>>) -> Self {
        let headers = vec![("content-type", media_type.to_owned())];
        Self { status: 200, headers, body: body.into(), breaks_after: None }
    }

    /// A status with a page that says so.
    pub fn status(status: u16) -> Self {
        let page = format!("<html><body><h1>{status}</h1></body></html>");
        Self { status, ..Self::document("text/html", page) }
    }

    /// A redirect.
    pub fn redirect(status: u16, to: &str) -> Self {
        Self::status(status).with("location", to)
    }

    /// With a header.
    pub fn with(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    /// Breaking off in the middle.
    pub fn breaking_after(mut self, bytes: usize) -> Self {
        self.breaks_after = Some(bytes);
        self
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| *n == name).map(|(_, value)| value.as_str())
    }

    fn response(self, asked: &HeaderMap) -> Response {
        let said = |name: http::HeaderName| asked.get(name).and_then(|v| v.to_str().ok());
        let has = |ours: Option<&str>, theirs: Option<&str>| ours.is_some() && ours == theirs;
        // As RFC 9110 section 13.2.2 has it: the date counts only where no entity tag is sent.
        let same = match said(header::IF_NONE_MATCH) {
            Some(tag) => has(self.header("etag"), Some(tag)),
            None => has(self.header("last-modified"), said(header::IF_MODIFIED_SINCE)),
        };
        let mut response = Response::builder();
        for (name, value) in &self.headers {
            response = response.header(*name, value);
        }
        if same && self.status == 200 {
            return response.status(StatusCode::NOT_MODIFIED).body(Body::empty()).unwrap();
        }
        let body = match self.breaks_after {
            None => Body::from(self.body),
            Some(length) => {
                response = response.header(header::CONTENT_LENGTH, self.body.len());
                let start = Bytes::copy_from_slice(&self.body[..length]);
                let broken = Err(io::Error::from(io::ErrorKind::ConnectionReset));
                Body::from_stream(futures_util::stream::iter([Ok(start), broken]))
            }
        };
        response.status(self.status).body(body).unwrap()
    }
}

#[derive(Default)]
struct Script {
    answers: HashMap<String, Answer>,
    /// What its pages answer that have no answer of their own.
    pages: Option<Answer>,
    /// What it answers to everything else; 503 where nothing is set.
    all: Option<Answer>,
    asked: Vec<(String, HeaderMap)>,
    methods: Vec<String>,
}

/// Where its pages are.
const PAGES: &str = "/2026/";

/// The publisher. It ends with the test.
pub struct Publisher {
    script: Arc<Mutex<Script>>,
    port: u16,
}

impl Publisher {
    pub async fn start() -> Self {
        let script = Arc::new(Mutex::new(Script::default()));
        let app = axum::Router::new().fallback(answer).with_state(Arc::clone(&script));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self { script, port }
    }

    /// Its port.
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// The address of a path.
    pub fn address(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// Sets what a path answers from now on; what is set for a path with a query goes before it.
    pub fn set(&self, path: &str, answer: Answer) {
        self.script.lock().unwrap().answers.insert(path.to_owned(), answer);
    }

    /// Sets what every other path answers.
    pub fn set_all(&self, answer: Answer) {
        self.script.lock().unwrap().all = Some(answer);
    }

    /// Sets what all pages answer that have no answer of their own; 503 until then.
    pub fn set_pages(&self, answer: Answer) {
        self.script.lock().unwrap().pages = Some(answer);
    }

    /// What was asked of its pages, like `HEAD /2026/a`; made-up addresses are told as such.
    pub fn pages_asked(&self) -> Vec<String> {
        let script = self.script.lock().unwrap();
        let pages = script.asked.iter().zip(&script.methods);
        let pages = pages.filter(|((path, _), _)| path.starts_with(PAGES));
        let is_story = |path: &str| path.contains("the-story-of-day-");
        let told = |path: &str| {
            if is_story(path) { path.to_owned() } else { format!("{PAGES}made-up") }
        };
        pages.map(|((path, _), method)| format!("{method} {}", told(path))).collect()
    }

    /// How often it was asked so far.
    pub fn requests(&self) -> usize {
        self.script.lock().unwrap().asked.len()
    }

    /// How often a path was asked for so far, with this query where it has one.
    pub fn asked(&self, path: &str) -> usize {
        self.script.lock().unwrap().asked.iter().filter(|(asked, _)| asked == path).count()
    }

    /// The path and the headers of the last request.
    pub fn last(&self) -> (String, HeaderMap) {
        self.script.lock().unwrap().asked.last().unwrap().clone()
    }
}

async fn answer(State(script): State<Arc<Mutex<Script>>>, request: Request) -> Response {
    let mut script = script.lock().unwrap();
    let whole = request.uri().path_and_query().map_or("/", |whole| whole.as_str()).to_owned();
    let path = request.uri().path();
    let own = script.answers.get(&whole).or_else(|| script.answers.get(path));
    let page = script.pages.as_ref().filter(|_| path.starts_with(PAGES));
    let answer = own.or(page).or(script.all.as_ref());
    let answer = answer.cloned().unwrap_or_else(|| Answer::status(503));
    script.asked.push((whole, request.headers().clone()));
    script.methods.push(request.method().to_string());
    answer.response(request.headers())
}
