//! The publisher's server: its documents, conditional requests, nothing else.

use super::{Script, ScriptedDocument};
use axum::Router;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use std::io;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// Serves the documents of a script on a listener, at the step that `steps` says, until it is shut down.
///
/// Meant for a loopback address: it has none of the limits that a server for strangers needs.
pub async fn publisher(
    listener: TcpListener,
    script: Script,
    steps: watch::Receiver<u32>,
    shutdown: CancellationToken,
) -> io::Result<()> {
    let answer = move |address: Uri, headers: HeaderMap| {
        let documents = script.feeds(*steps.borrow());
        let asked = documents.into_iter().find(|document| document.path == address.path());
        std::future::ready(match asked {
            Some(document) => respond(document, &headers),
            None => (StatusCode::NOT_FOUND, "there are only three feeds here\n").into_response(),
        })
    };
    let router = Router::new().fallback(answer);
    axum::serve(listener, router).with_graceful_shutdown(shutdown.cancelled_owned()).await
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
    let format = if document.path.ends_with(".atom") { "atom" } else { "rss" };
    let kind = [(header::CONTENT_TYPE, format!("application/{format}+xml; charset=utf-8"))];
    (validators, kind, document.body).into_response()
}
