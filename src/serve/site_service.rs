//! What a connection asks of this site: answers that are ready first, then what is an origin's, the router for all
//! others.

use super::client::{self, Peer};
use super::connections::{Busy, ClientTurn, Connection};
use super::router::own_routes;
use super::{Listener, SharedState, freshness, origins, probes, ready};
use axum::Router;
use axum::body::Body;
use bytes::Bytes;
use http::{Method, Request, Response, Version, header};
use http_body::{Body as _, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::service::Service;
use std::convert::Infallible;
use std::future::pending;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tower::{ServiceExt, service_fn};

/// The site, as one listener answers it.
#[derive(Clone)]
pub(super) struct ListenerSite {
    pub(super) room: SharedState,
    listener: Listener,
    routes: Router,
}

impl ListenerSite {
    /// That of a listener.
    pub(super) fn new(room: SharedState, listener: Listener) -> Self {
        let routes = own_routes(Arc::clone(&room), listener);
        Self { room, listener, routes }
    }

    /// Answers a request.
    pub(super) async fn answer(&self, request: Request<Body>) -> Response<Body> {
        let method = request.method().clone();
        complete(self.find_answer(request).await, &method)
    }

    /// What is passed on to an origin goes through here, and through no layer of the router.
    async fn find_answer(&self, mut request: Request<Body>) -> Response<Body> {
        client::identify(&self.room, &mut request);
        if freshness::must_wait_for_store(&self.room, &request) {
            freshness::wait_for_store(&self.room, &mut request).await;
        }
        // The router counts and logs what it refuses.
        if freshness::is_refused(&request) {
            return self.route(request).await;
        }
        match self.listener {
            Listener::Operators => self.route(request).await,
            Listener::Everybody | Listener::Readers => {
                origins::enter(&self.room, request, self).await
            }
        }
    }

    /// Answers what is no origin's. For HEAD the router inside has cut off the body before the one around it says how
    /// long that is: a length of 0 tells nothing.
    pub(super) async fn route(&self, request: Request<Body>) -> Response<Body> {
        let is_head = *request.method() == Method::HEAD;
        let Ok(mut answer) = self.routes.clone().oneshot(request).await;
        let headers = answer.headers_mut();
        if is_head && headers.get(header::CONTENT_LENGTH).is_some_and(|length| length == "0") {
            headers.remove(header::CONTENT_LENGTH);
        }
        answer
    }

    /// The same as a router.
    pub(super) fn into_router(self) -> Router {
        Router::new().fallback_service(service_fn(move |request| {
            let site = self.clone();
            async move { Ok::<_, Infallible>(site.answer(request).await) }
        }))
    }
}

/// What a router does to each answer, for those that come from none: a length that is known is said, and no body
/// goes to HEAD. What is empty there may have been cut off.
fn complete(mut answer: Response<Body>, method: &Method) -> Response<Body> {
    let is_head = *method == Method::HEAD;
    if let Some(length) = answer.body().size_hint().exact()
        && !(is_head && length == 0)
        && !answer.headers().contains_key(header::CONTENT_LENGTH)
    {
        answer.headers_mut().insert(header::CONTENT_LENGTH, length.into());
    }
    if is_head {
        *answer.body_mut() = Body::empty();
    }
    answer
}

/// The site, as one connection asks it.
pub(super) struct SiteService {
    pub(super) site: ListenerSite,
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
        let room = &self.site.room;
        let is_known = !room.origins.may_be_for(&request);
        if self.connection.is_reserved && !(is_known && probes::is_probe(request.uri().path())) {
            // Closed without a word: a stream of events would take a refusal for the end.
            self.connection.cut();
            return Answering::Made(Box::pin(pending()));
        }
        // Otherwise the database says whether it is still the answer.
        if is_known
            && room.store.answers_from_memory()
            && let Some(answer) = ready::answer(room, self.peer, &request)
        {
            return Answering::Ready(Some(
                answer.map(|body| SentBody::new(SentContent::Whole(body), busy)),
            ));
        }
        request.extensions_mut().insert(self.peer);
        request.extensions_mut().insert(self.connection.clone());
        let (site, turn) = (self.site.clone(), busy.turn_of_body());
        Answering::Made(Box::pin(async move {
            let room = &site.room;
            let mut answer = site.answer(request.map(|body| ArrivingBody::of(body, turn))).await;
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
    Made(Pin<Box<dyn Future<Output = Result<Response<SentBody>, Infallible>> + Send>>),
}

impl Future for Answering {
    type Output = Result<Response<SentBody>, Infallible>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match self.get_mut() {
            Self::Ready(answer) => {
                answer.take().map_or(Poll::Pending, |answer| Poll::Ready(Ok(answer)))
            }
            Self::Made(making) => making.as_mut().poll(context),
        }
    }
}

/// The body of a request, for whose bytes the client is waited for.
struct ArrivingBody {
    body: Incoming,
    turn: ClientTurn,
}

impl ArrivingBody {
    fn of(body: Incoming, turn: ClientTurn) -> Body {
        if body.is_end_stream() { Body::empty() } else { Body::new(Self { body, turn }) }
    }
}

impl http_body::Body for ArrivingBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let came = Pin::new(&mut self.body).poll_frame(context);
        self.turn.is(came.is_pending());
        note_moved(&self.turn, &came);
        came
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

fn note_moved<E>(turn: &ClientTurn, frame: &Poll<Option<Result<Frame<Bytes>, E>>>) {
    if let Poll::Ready(Some(Ok(frame))) = frame {
        turn.moved(frame.data_ref().map_or(0, Bytes::len));
    }
}

/// The body of an answer, whose connection is busy with it until it is dropped. What there is of it waits for the
/// client.
#[derive(Debug)]
pub(super) struct SentBody {
    content: SentContent,
    busy: Busy,
}

#[derive(Debug)]
enum SentContent {
    Streamed(Body),
    /// Handed over at once; empty from then on.
    Whole(Bytes),
}

impl SentBody {
    fn new(content: SentContent, mut busy: Busy) -> Self {
        busy.turn.is(true);
        Self { content, busy }
    }
}

impl http_body::Body for SentBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = match &mut self.content {
            SentContent::Streamed(body) => Pin::new(body).poll_frame(context),
            SentContent::Whole(bytes) if bytes.is_empty() => Poll::Ready(None),
            SentContent::Whole(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
        };
        self.busy.turn.is(frame.is_ready());
        note_moved(&self.busy.turn, &frame);
        frame
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_says_its_length_and_has_no_body_for_head() {
        let completed = |method: &Method, body: Body| {
            let answer = complete(Response::new(body), method);
            let length = answer.headers().get(header::CONTENT_LENGTH);
            let length = length.map(|length| length.to_str().unwrap().to_owned());
            (length, answer.body().size_hint().exact())
        };
        let said = |length: &str| Some(length.to_owned());
        assert_eq!(completed(&Method::GET, Body::from("abc")), (said("3"), Some(3)));
        assert_eq!(completed(&Method::HEAD, Body::from("abc")), (said("3"), Some(0)));
        assert_eq!(completed(&Method::GET, Body::empty()), (said("0"), Some(0)));
        // It may be a stream that a router has cut off.
        assert_eq!(completed(&Method::HEAD, Body::empty()), (None, Some(0)));
        // Nobody knows how long the rest of a stream is.
        let stream =
            || Body::from_stream(futures_util::stream::pending::<Result<Bytes, axum::Error>>());
        assert_eq!(completed(&Method::GET, stream()), (None, None));
        assert_eq!(completed(&Method::HEAD, stream()), (None, Some(0)));
    }
}
