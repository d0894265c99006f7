//! The publisher's server: two feeds, conditional requests, nothing else.

use super::{Script, ScriptedDocument};
use crate::clock::{Clock, SystemClock};
use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use std::io;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Serves the feeds on a listener, a step further every so often, until it is shut down.
///
/// Meant for a loopback address: it has none of the limits that a server for strangers needs.
pub async fn publisher(
    listener: TcpListener,
    every: Duration,
    shutdown: CancellationToken,
) -> io::Result<()> {
    let stage = PublisherStage {
        script: Script::new(SystemClock.now(), every),
        every,
        began: Instant::now(),
    };
    let router = Router::new().fallback(answer).with_state(stage);
    axum::serve(listener, router).with_graceful_shutdown(shutdown.cancelled_owned()).await
}

#[derive(Debug, Clone, Copy)]
struct PublisherStage {
    script: Script,
    every: Duration,
    began: Instant,
}

impl PublisherStage {
    fn step(&self) -> u32 {
        let apart = self.every.as_millis().max(1);
        u32::try_from(self.began.elapsed().as_millis() / apart).unwrap_or(u32::MAX)
    }
}

async fn answer(State(stage): State<PublisherStage>, address: Uri, headers: HeaderMap) -> Response {
    let documents = stage.script.feeds(stage.step());
    match documents.into_iter().find(|document| document.path == address.path()) {
        Some(document) => respond(document, &headers),
        None => (StatusCode::NOT_FOUND, "there are only two feeds here\n").into_response(),
    }
}

/// Answers with the document, or with 304 where the client has it.
pub(super) fn respond(document: ScriptedDocument, headers: &HeaderMap) -> Response {
    let etag = format!("\"{:016x}\"", xxhash_rust::xxh3::xxh3_64(document.body.as_bytes()));
    let modified = document.changed.rfc822();
    let sent = |name| headers.get(name).and_then(|value| value.to_str().ok());
    // `If-None-Match` stands before `If-Modified-Since` where both are sent (RFC 9110, 13.2.2).
    let has_it = match sent(header::IF_NONE_MATCH) {
        Some(tags) => tags.split(',').any(|tag| matches!(tag.trim(), t if t == etag || t == "*")),
        None => sent(header::IF_MODIFIED_SINCE) == Some(modified.as_str()),
    };
    let validators = [(header::ETAG, etag), (header::LAST_MODIFIED, modified)];
    if has_it {
        return (StatusCode::NOT_MODIFIED, validators).into_response();
    }
    let kind = [(header::CONTENT_TYPE, document.media_type)];
    (validators, kind, document.body).into_response()
}
