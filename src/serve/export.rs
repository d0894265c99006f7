//! `GET /api/v1/export`: the whole state of the gateway as one file, while the gateway goes on.

use super::SharedState;
use super::openapi::Conflict;
use super::operator::ExportStream;
use super::problem::Problem;
use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::{HeaderValue, header};
use http_body::Frame;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio_util::sync::WaitForCancellationFutureOwned;

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
    let stream = room.operator.export().await?;
    let closing = Box::pin(room.closing.clone().cancelled_owned());
    let headers = [
        (header::CONTENT_TYPE, MEDIA_TYPE),
        (header::CONTENT_DISPOSITION, NAME),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    Ok((headers, Body::new(ExportBody { stream, closing })).into_response())
}

/// A state on its way out. It breaks off where the gateway ends.
struct ExportBody {
    stream: ExportStream,
    closing: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl http_body::Body for ExportBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        if self.closing.as_mut().poll(context).is_ready() {
            return Poll::Ready(Some(Err(io::Error::other("the gateway is shutting down"))));
        }
        self.stream.poll_recv(context).map(|piece| piece.map(|piece| piece.map(Frame::data)))
    }
}
