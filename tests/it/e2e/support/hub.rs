//! A scripted hub: it keeps what it is asked, and calls back when the test says so.

use super::net::{Net, PUBLIC};
use axum::extract::State;
use bytes::Bytes;
use http::StatusCode;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tidegate_core::websub::{HubRequest, Verification};

/// The hub.
pub struct Hub {
    asked: Arc<Mutex<Vec<HubRequest>>>,
    address: String,
}

impl Hub {
    pub async fn start() -> Self {
        let asked = Arc::default();
        let app = axum::Router::new().fallback(answer).with_state(Arc::clone(&asked));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}/hub", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self { asked, address }
    }

    /// Its address.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// How often it was asked for something.
    pub fn requests(&self) -> usize {
        self.asked.lock().unwrap().len()
    }

    /// Waits until it was asked for the `n`th time, and tells for what.
    pub async fn asked(&self, n: usize) -> HubRequest {
        for _ in 0..1000 {
            if let Some(asked) = self.asked.lock().unwrap().get(n - 1) {
                return asked.clone();
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("the hub was asked {} times, not {n}", self.requests());
    }

    /// Asks back whether a request was meant: the status, and what was answered.
    pub async fn verifies(&self, net: &Net, request: &HubRequest, lease: u64) -> (u16, String) {
        let (intent, topic) = (request.intent, request.topic.clone());
        let challenge = "a challenge & more".to_owned();
        let said = Verification::Intent { intent, topic, challenge, lease: Some(lease) };
        let answer = net.get(said.address(&request.callback).as_str()).send().await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    }
}

/// Pushes a body, with its signature under the secret of the request, or another one.
pub async fn pushes(net: &Net, request: &HubRequest, signature: Option<String>, body: &str) -> u16 {
    let path = request.callback.as_str();
    assert!(path.starts_with(PUBLIC), "{path}");
    let mut push = net.request(reqwest::Method::POST, path).body(body.to_owned());
    if let Some(signature) = signature {
        push = push.header("x-hub-signature", signature);
    }
    push.send().await.unwrap().status().as_u16()
}

async fn answer(State(asked): State<Arc<Mutex<Vec<HubRequest>>>>, body: Bytes) -> StatusCode {
    asked.lock().unwrap().push(HubRequest::read(&body).unwrap());
    StatusCode::ACCEPTED
}
