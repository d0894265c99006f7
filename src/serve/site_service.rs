//! What a connection asks of this site: answers that are ready first, then whatever its listener answers.

use super::bodies::{PolledFrame, WatchedBody};
use super::client::Peer;
use super::connections::{Busy, ClientTurn, Connection};
use super::request_rules::{DRAIN_TIME, drain};
use super::router::ListenerSite;
use super::{probes, ready};
use axum::body::Body;
use bytes::Bytes;
use http::{Request, Response, Version, header};
use http_body::{Body as _, SizeHint};
use hyper::body::Incoming;
use hyper::service::Service;
use std::convert::Infallible;
use std::future::{pending, ready as at_once};
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::runtime::Handle;
use tokio::time::timeout;

/// The site, as one connection asks it.
pub(super) struct SiteService {
    pub(super) site: ListenerSite,
    pub(super) peer: Peer,
    pub(super) connection: Connection,
}

impl Service<Request<Incoming>> for SiteService {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn call(&self, mut request: Request<Incoming>) -> Self::Future {
        let busy = self.connection.activity.begin(request.version() < Version::HTTP_2);
        let room = &self.site.room;
        let is_known = !room.origins.may_be_for(&request);
        if self.connection.is_reserved && !(is_known && probes::is_probe(request.uri().path())) {
            // Closed without a word: a stream of events would take a refusal for the end.
            self.connection.cut();
            return Box::pin(pending());
        }
        // Otherwise the database says whether it is still the answer.
        if is_known
            && room.store.answers_from_memory()
            && let Some(answer) = ready::answer(room, self.peer, &request)
        {
            return Box::pin(at_once(Ok(sent(answer, busy))));
        }
        request.extensions_mut().insert(self.peer);
        request.extensions_mut().insert(self.connection.clone());
        let (site, turn) = (self.site.clone(), busy.turn_of_body());
        let asks_first = request.headers().contains_key(header::EXPECT);
        let request = request.map(|body| match body.is_end_stream() {
            true => Body::empty(),
            false => Body::new(ArrivingBody { body: Some(body), turn, asks_first }),
        });
        Box::pin(async move {
            let room = &site.room;
            let mut answer = site.answer(request).await;
            room.ready.keep(&mut answer);
            Ok(sent(answer, busy))
        })
    }
}

/// The body of a request, for whose bytes the client is waited for. What nobody reads of it is read and dropped, within
/// bounds: a client that is still writing when the connection closes never sees the answer.
struct ArrivingBody {
    body: Option<Incoming>,
    turn: ClientTurn,
    /// Who asks before it sends sends nothing where the answer is no.
    asks_first: bool,
}

impl http_body::Body for ArrivingBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> PolledFrame<hyper::Error> {
        let this = &mut *self;
        let Some(body) = &mut this.body else { return Poll::Ready(None) };
        let came = Pin::new(body).poll_frame(context);
        this.turn.is(came.is_pending());
        note_moved(&this.turn, &came);
        came
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(|body| body.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or_else(SizeHint::default, |body| body.size_hint())
    }
}

impl Drop for ArrivingBody {
    fn drop(&mut self) {
        let left = self.body.take().filter(|body| !self.asks_first && !body.is_end_stream());
        if let (Some(left), Ok(runtime)) = (left, Handle::try_current()) {
            // Beside the answer, which a client may be reading already.
            runtime.spawn(timeout(DRAIN_TIME, drain(left)));
        }
    }
}

/// The answer, with whose body its connection is busy until that is dropped. What there is of it waits for the client.
fn sent(answer: Response<Body>, mut busy: Busy) -> Response<Body> {
    busy.answer();
    answer.map(|body| {
        Body::new(WatchedBody::new(body, move |_: &Body, frame: &PolledFrame<_>| {
            busy.turn.is(frame.is_ready());
            note_moved(&busy.turn, frame);
        }))
    })
}

fn note_moved<E>(turn: &ClientTurn, frame: &PolledFrame<E>) {
    if let Poll::Ready(Some(Ok(frame))) = frame {
        turn.moved(frame.data_ref().map_or(0, Bytes::len));
    }
}
