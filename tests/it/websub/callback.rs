//! A subscriber's callback: a server of its own that keeps what it was asked and does what it is told.

use crate::support::publisher::{SeenRequest, Server};
use axum::response::IntoResponse;
use http::{Method, StatusCode};
use std::ops::Deref;
use std::sync::{Arc, Mutex};
use tidegate_core::websub::Verification;

/// Whether it answers a verification with the challenge, or never.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Agrees {
    Yes,
    Hangs,
}

/// What it answers to a delivery: a status, or nothing ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takes {
    With(u16),
    Hangs,
}

/// It agrees to everything and takes everything until it is told otherwise.
pub struct Callback {
    server: Server,
    manner: Arc<Mutex<(Agrees, Takes)>>,
}

impl Deref for Callback {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.server
    }
}

impl Callback {
    pub async fn start() -> Self {
        let manner = Arc::new(Mutex::new((Agrees::Yes, Takes::With(204))));
        let now = Arc::clone(&manner);
        let answer = move |seen: &SeenRequest| match (*now.lock().unwrap(), &seen.method) {
            ((_, Takes::With(status)), &Method::POST) => {
                let status = StatusCode::from_u16(status).unwrap();
                Some((status, [("location", "/elsewhere")]).into_response())
            }
            ((Agrees::Yes, _), &Method::GET) => Some(challenge(&seen.query).into_response()),
            _ => None,
        };
        Self { server: Server::start(answer).await, manner }
    }

    pub fn agrees(&self, agrees: Agrees) {
        self.manner.lock().unwrap().0 = agrees;
    }

    pub fn takes(&self, takes: Takes) {
        self.manner.lock().unwrap().1 = takes;
    }

    pub fn deliveries(&self) -> Vec<SeenRequest> {
        self.seen().into_iter().filter(|seen| seen.method == Method::POST).collect()
    }

    /// The verifications and denials so far.
    pub fn verifications(&self) -> Vec<SeenRequest> {
        self.seen().into_iter().filter(|seen| seen.method == Method::GET).collect()
    }
}

/// The challenge of a verification of WebSub, or as rssCloud asks.
fn challenge(query: &str) -> String {
    match Verification::read(query) {
        Ok(Verification::Intent { challenge, .. }) => challenge,
        _ => url::form_urlencoded::parse(query.as_bytes())
            .find(|(key, _)| key == "challenge")
            .map_or_else(String::new, |(_, challenge)| challenge.into_owned()),
    }
}

/// The verification that a request is.
pub fn verification(seen: &SeenRequest) -> Verification {
    Verification::read(&seen.query).unwrap_or_else(|error| panic!("{error}: {seen:?}"))
}
