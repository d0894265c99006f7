//! Servers of a test, which keep what they were asked; and a scripted publisher, which answers what the test sets.

use super::post::{Post, SITE, atom};
use crate::support::prelude::*;
use axum::body::Bytes;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, Method, StatusCode};
use std::ops::Deref;

/// A request that came.
#[derive(Debug, Clone)]
pub struct SeenRequest {
    pub method: Method,
    pub path: String,
    pub query: String,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl SeenRequest {
    pub fn all(&self, name: &str) -> Vec<String> {
        let all = self.headers.get_all(name).into_iter();
        all.map(|value| value.to_str().unwrap().to_owned()).collect()
    }

    /// The only value of a header.
    pub fn header(&self, name: &str) -> String {
        let all = self.all(name);
        assert_eq!(all.len(), 1, "{name}: {all:?}");
        all.into_iter().next().unwrap()
    }

    pub fn text(&self) -> String {
        String::from_utf8(self.body.to_vec()).unwrap()
    }

    /// The path, with the query where there is one.
    pub fn target(&self) -> String {
        if self.query.is_empty() {
            self.path.clone()
        } else {
            format!("{}?{}", self.path, self.query)
        }
    }
}

/// A server on a port of its own, which ends with the test.
pub struct Server {
    pub port: u16,
    seen: Arc<Mutex<Vec<SeenRequest>>>,
    /// What was asked for, also where its body did not come whole.
    targets: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// Where `answer` says nothing, a request is never answered.
    pub async fn start(
        answer: impl Fn(&SeenRequest) -> Option<Response> + Send + Sync + 'static,
    ) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen = Arc::<Mutex<Vec<SeenRequest>>>::default();
        let targets = Arc::<Mutex<Vec<String>>>::default();
        let (kept, begun, answer) = (Arc::clone(&seen), Arc::clone(&targets), Arc::new(answer));
        let app = axum::Router::new().fallback(move |request: Request| {
            begun.lock().unwrap().push(request.uri().path_and_query().unwrap().to_string());
            let (kept, answer) = (Arc::clone(&kept), Arc::clone(&answer));
            async move {
                let (parts, body) = request.into_parts();
                let one = SeenRequest {
                    method: parts.method,
                    path: parts.uri.path().to_owned(),
                    query: parts.uri.query().unwrap_or_default().to_owned(),
                    headers: parts.headers,
                    body: axum::body::to_bytes(body, 1 << 24).await.unwrap(),
                };
                let answer = answer(&one);
                kept.lock().unwrap().push(one);
                match answer {
                    Some(answer) => answer,
                    None => std::future::pending().await,
                }
            }
        });
        tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self { port, seen, targets }
    }

    pub fn address(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    pub fn seen(&self) -> Vec<SeenRequest> {
        self.seen.lock().unwrap().clone()
    }

    pub fn targets(&self) -> Vec<String> {
        self.targets.lock().unwrap().clone()
    }

    /// How often a path was asked for so far, with this query where it has one.
    pub fn asked(&self, target: &str) -> usize {
        self.seen().iter().filter(|seen| seen.target() == target).count()
    }
}

#[derive(Debug, Clone)]
pub struct Answer {
    status: u16,
    headers: HeaderMap,
    body: Vec<u8>,
}

impl Answer {
    pub fn document(media_type: &str, body: impl Into<Vec<u8>>) -> Self {
        let answer = Self { status: 200, headers: HeaderMap::new(), body: body.into() };
        answer.with("content-type", media_type)
    }

    pub fn with(mut self, name: &'static str, value: &str) -> Self {
        self.headers.insert(name, value.parse().unwrap());
        self
    }

    /// Posts in Atom.
    pub fn atom(posts: &[Post]) -> Self {
        Self::document("application/atom+xml", atom(SITE, posts))
    }

    /// A status with a page that says so.
    pub fn status(status: u16) -> Self {
        let page = format!("<html><body><h1>{status}</h1></body></html>");
        Self { status, ..Self::document("text/html", page) }
    }

    pub fn redirect(status: u16, to: &str) -> Self {
        Self::status(status).with("location", to)
    }
}

/// A server that answers what is set for a path, with its query or without, or for all; 503 where nothing is.
pub struct Publisher {
    server: Server,
    answers: Arc<Mutex<HashMap<String, Answer>>>,
}

impl Deref for Publisher {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.server
    }
}

impl Publisher {
    pub async fn start() -> Self {
        let answers = Arc::<Mutex<HashMap<String, Answer>>>::default();
        let set = Arc::clone(&answers);
        let answer = move |seen: &SeenRequest| {
            let set = set.lock().unwrap();
            let own = set.get(&seen.target()).or_else(|| set.get(&seen.path));
            let answer = own.or_else(|| set.get("")).cloned();
            let Answer { status, headers, body } = answer.unwrap_or_else(|| Answer::status(503));
            Some((StatusCode::from_u16(status).unwrap(), headers, body).into_response())
        };
        Self { server: Server::start(answer).await, answers }
    }

    /// Sets what a path answers from now on; what is set for a path with a query goes before it.
    pub fn set(&self, path: &str, answer: Answer) {
        self.answers.lock().unwrap().insert(path.to_owned(), answer);
    }

    /// Sets what every other path answers.
    pub fn set_all(&self, answer: Answer) {
        self.set("", answer);
    }
}
