//! A scripted publisher: what it answers is set by the test, what it was asked is kept.

use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, StatusCode, header};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// What it answers to requests for one path.
#[derive(Debug, Clone)]
pub struct Answer {
    status: u16,
    header: (http::HeaderName, String),
    body: Vec<u8>,
}

impl Answer {
    /// A document.
    pub fn document(media_type: &str, body: impl Into<Vec<u8>>) -> Self {
        let header = (header::CONTENT_TYPE, media_type.to_owned());
        Self { status: 200, header, body: body.into() }
    }

    /// A status with a page that says so.
    pub fn status(status: u16) -> Self {
        let page = format!("<html><body><h1>{status}</h1></body></html>");
        Self { status, ..Self::document("text/html", page) }
    }

    /// A redirect.
    pub fn redirect(status: u16, to: &str) -> Self {
        Self { header: (header::LOCATION, to.to_owned()), ..Self::status(status) }
    }
}

#[derive(Default)]
struct Script {
    answers: HashMap<String, Answer>,
    /// What it answers to everything else; 503 where nothing is set.
    all: Option<Answer>,
    asked: Vec<(String, HeaderMap)>,
}

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
    let own = script.answers.get(&whole).or_else(|| script.answers.get(request.uri().path()));
    let answer = own.or(script.all.as_ref()).cloned().unwrap_or_else(|| Answer::status(503));
    script.asked.push((whole, request.headers().clone()));
    let status = StatusCode::from_u16(answer.status).unwrap();
    (status, [answer.header], answer.body).into_response()
}
