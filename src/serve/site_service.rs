//! What a connection asks of this site: answers that are ready first, the router for all others.

use super::client::Peer;
use super::connections::{Busy, Connection};
use super::{SharedState, error_page, ready, standby};
use axum::Router;
use axum::body::Body;
use bytes::Bytes;
use http::{Request, Response, Version};
use http_body::{Frame, SizeHint};
use hyper::body::Incoming;
use hyper::service::Service;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use tower::ServiceExt;

/// The site, as one connection asks it.
pub(super) struct SiteService {
    pub(super) room: SharedState,
    pub(super) router: Router,
    pub(super) peer: Peer,
    pub(super) connection: Connection,
}

impl Service<Request<Incoming>> for SiteService {
    type Response = Response<SentBody>;
    type Error = Infallible;
    type Future = Answering;

    fn call(&self, mut request: Request<Incoming>) -> Answering {
        let is_http_1 = request.version() < Version::HTTP_2;
        let busy = self.connection.begin(is_http_1);
        let is_known = !self.room.origins.may_be_for(&request);
        // Otherwise the database says whether it is still the answer.
        let is_sure = is_known && self.room.store.answers_from_memory();
        if is_sure && let Some(answer) = ready::answer(&self.room, self.peer, &request) {
            return Answering::Ready(Some(
                answer.map(|body| SentBody::new(SentContent::Whole(body), busy)),
            ));
        }
        let may_be_ready = is_known && !is_sure && ready::is_there(&self.room, &request);
        request.extensions_mut().insert(self.peer);
        request.extensions_mut().insert(self.connection.clone());
        let (room, router, peer) = (self.room.clone(), self.router.clone(), self.peer);
        Answering::Routed(Box::pin(async move {
            if may_be_ready {
                match room.store.catch_up().await {
                    Ok(()) => {
                        if let Some(answer) = ready::answer(&room, peer, &request) {
                            let sent = |body| SentBody::new(SentContent::Whole(body), busy);
                            return Ok(answer.map(sent));
                        }
                    }
                    Err(error) => {
                        let answer = standby::unseen(&room, error, error_page::is_wanted(&request));
                        let sent = |body| SentBody::new(SentContent::Streamed(body), busy);
                        return Ok(answer.map(sent));
                    }
                }
            }
            let mut answer = router.oneshot(request).await?;
            room.ready.keep(&mut answer);
            Ok(answer.map(|body| SentBody::new(SentContent::Streamed(body), busy)))
        }))
    }
}

/// An answer that is ready, or is being made. In a box, so that one that is ready has not to be moved with
/// the room of the other.
pub(super) enum Answering {
    /// Until it was handed over.
    Ready(Option<Response<SentBody>>),
    Routed(Pin<Box<dyn Future<Output = Result<Response<SentBody>, Infallible>> + Send>>),
}

impl Future for Answering {
    type Output = Result<Response<SentBody>, Infallible>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match self.get_mut() {
            Self::Ready(answer) => {
                answer.take().map_or(Poll::Pending, |answer| Poll::Ready(Ok(answer)))
            }
            Self::Routed(asking) => asking.as_mut().poll(context),
        }
    }
}

/// The body of an answer, whose connection is busy with it until it is dropped.
#[derive(Debug)]
pub(super) struct SentBody {
    content: SentContent,
    _busy: Busy,
}

#[derive(Debug)]
enum SentContent {
    Streamed(Body),
    /// Handed over at once; empty from then on.
    Whole(Bytes),
}

impl SentBody {
    const fn new(content: SentContent, busy: Busy) -> Self {
        Self { content, _busy: busy }
    }
}

impl http_body::Body for SentBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        match &mut self.content {
            SentContent::Streamed(body) => Pin::new(body).poll_frame(context),
            SentContent::Whole(bytes) if bytes.is_empty() => Poll::Ready(None),
            SentContent::Whole(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.content {
            SentContent::Streamed(body) => body.is_end_stream(),
            SentContent::Whole(bytes) => bytes.is_empty(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            SentContent::Streamed(body) => body.size_hint(),
            SentContent::Whole(bytes) => {
                SizeHint::with_exact(u64::try_from(bytes.len()).unwrap_or(u64::MAX))
            }
        }
    }
}
