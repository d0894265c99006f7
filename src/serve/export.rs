//! `GET /api/v1/export`: the whole state of the gateway as one file, while the gateway goes on.

use super::SharedState;
use super::openapi::Conflict;
use super::problem::Problem;
use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use futures_util::stream::poll_fn;
use http::{HeaderValue, header};
use std::io;
use std::task::Poll;

/// What a file with the state of a gateway is.
const MEDIA_TYPE: HeaderValue = HeaderValue::from_static("application/vnd.tidegate.export");
/// How it is called where somebody saves it.
const NAME: HeaderValue = HeaderValue::from_static("attachment; filename=\"gateway.tg\"");

/// Hands over the whole state of the gateway as one file, while it goes on; one at a time.
///
/// The file proves itself whole; an answer that breaks off is of no use.
#[utoipa::path(get, path = "/api/v1/export", operation_id = "exportState", responses(
    (status = 200, description = "The file, as `tidegate export` writes it.", body = serde_json::Value,
        content_type = "application/vnd.tidegate.export", headers(("Content-Disposition"))),
    Conflict,
))]
pub(super) async fn export(State(room): State<SharedState>) -> Result<Response, Problem> {
    let mut stream = room.operator.export().await?;
    let mut closing = Box::pin(room.closing.clone().cancelled_owned());
    let pieces = poll_fn(move |context| match closing.as_mut().poll(context) {
        Poll::Ready(()) => Poll::Ready(Some(Err(io::Error::other("the gateway is shutting down")))),
        Poll::Pending => stream.poll_recv(context),
    });
    let headers = [
        (header::CONTENT_TYPE, MEDIA_TYPE),
        (header::CONTENT_DISPOSITION, NAME),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    Ok((headers, Body::from_stream(pieces)).into_response())
}
