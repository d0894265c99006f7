//! A subscriber's callback: a server of its own that keeps what it was asked and does what it is
//! told.

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, Method, StatusCode};
use std::sync::{Arc, Mutex};
use tidegate_core::websub::Verification;

/// What a callback answers to a verification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Agrees {
    /// With the challenge.
    Yes,
    /// Never.
    Hangs,
}

/// What it answers to a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takes {
    /// With this status.
    With(u16),
    /// Never.
    Hangs,
}

/// A request that came.
#[derive(Debug, Clone)]
pub struct Seen {
    pub method: Method,
    pub path: String,
    pub query: String,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Seen {
    /// The verification that it is.
    pub fn verification(&self) -> Verification {
        Verification::read(&self.query).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// All values of a header.
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
}

#[derive(Debug)]
struct Script {
    seen: Mutex<Vec<Seen>>,
    agrees: Mutex<Agrees>,
    takes: Mutex<Takes>,
}

/// A callback on a port of its own.
pub struct Callback {
    port: u16,
    script: Arc<Script>,
}

impl Callback {
    /// One that agrees to everything and takes everything.
    pub async fn start() -> Self {
        let script = Arc::new(Script {
            seen: Mutex::default(),
            agrees: Mutex::new(Agrees::Yes),
            takes: Mutex::new(Takes::With(204)),
        });
        let router = Router::new().fallback(answer).with_state(Arc::clone(&script));
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { port, script }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    pub fn host_and_port(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    pub fn agrees(&self, agrees: Agrees) {
        *self.script.agrees.lock().unwrap() = agrees;
    }

    pub fn takes(&self, takes: Takes) {
        *self.script.takes.lock().unwrap() = takes;
    }

    /// Every request so far.
    pub fn seen(&self) -> Vec<Seen> {
        self.script.seen.lock().unwrap().clone()
    }

    /// The deliveries so far.
    pub fn deliveries(&self) -> Vec<Seen> {
        self.seen().into_iter().filter(|seen| seen.method == Method::POST).collect()
    }

    /// The verifications and denials so far.
    pub fn verifications(&self) -> Vec<Seen> {
        self.seen().into_iter().filter(|seen| seen.method == Method::GET).collect()
    }
}

async fn answer(State(script): State<Arc<Script>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, 1 << 24).await.unwrap();
    let query = parts.uri.query().unwrap_or_default().to_owned();
    let (agrees, takes) = (*script.agrees.lock().unwrap(), *script.takes.lock().unwrap());
    let method = parts.method.clone();
    script.seen.lock().unwrap().push(Seen {
        method: parts.method,
        path: parts.uri.path().to_owned(),
        query: query.clone(),
        headers: parts.headers,
        body,
    });
    if method == Method::POST {
        return match takes {
            Takes::With(status) => {
                (StatusCode::from_u16(status).unwrap(), [("location", "/elsewhere")])
                    .into_response()
            }
            Takes::Hangs => std::future::pending().await,
        };
    }
    let challenge = match Verification::read(&query) {
        Ok(Verification::Intent { challenge, .. }) => challenge,
        // As rssCloud asks.
        _ => url::form_urlencoded::parse(query.as_bytes())
            .find(|(key, _)| key == "challenge")
            .map_or_else(String::new, |(_, challenge)| challenge.into_owned()),
    };
    match agrees {
        Agrees::Yes => challenge.into_response(),
        Agrees::Hangs => std::future::pending().await,
    }
}
