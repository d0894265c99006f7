//! What a connection asks of this site, and the bodies of requests and answers: those that come, those that somebody watches,
//! and those that are handed over in pieces and counted until they have gone. What is ready is answered at once.

use super::connections::{ClientWait, RequestInFlight};
use super::ready::{AnswerBasis, PlainRequest};
use super::router::{DRAIN_TIME, drain};
use super::{Connection, HeldBudget, Listener, Peer, SiteHandle, SpooledFile, probes};
use axum::body::Body;
use bytes::Bytes;
use futures_util::future::{BoxFuture, Either, Ready, ready};
use futures_util::stream::{self, BoxStream, StreamExt as _};
use http::{Request, Response, Version, header};
use http_body::{Body as _, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::service::Service;
use std::convert::Infallible;
use std::future::pending;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{self, Context, Poll};
use tokio::runtime::Handle;
use tokio::time::timeout;

/// The site in force, as one connection asks it.
pub(super) struct SiteService {
    pub(super) site: SiteHandle,
    pub(super) listener: Listener,
    pub(super) peer: Peer,
    pub(super) connection: Arc<Connection>,
}

impl Service<Request<Incoming>> for SiteService {
    type Response = Response<SentBody>;
    type Error = Infallible;
    type Future = Either<Ready<Answered>, BoxFuture<'static, Answered>>;

    fn call(&self, mut request: Request<Incoming>) -> Self::Future {
        let in_flight = self.connection.begin(request.version() < Version::HTTP_2);
        let site = self.site.site(self.listener);
        let is_probe =
            || probes::is_probe(request.uri().path()) && !site.app.origins.may_be_for(&request);
        if self.connection.is_reserved && !is_probe() {
            // Closed without a word: a stream of events would take a refusal for the end.
            self.connection.cut();
            return Either::Right(Box::pin(pending()));
        }
        let plain = PlainRequest::read(&request);
        let from = (self.peer, &self.connection);
        let ready_answer = |plain| site.ready.answer(&site.app, from, (plain, &request));
        if let Some(answer) = plain.as_ref().and_then(ready_answer) {
            return Either::Left(ready(
                Ok(answer.map(|content| SentBody::new(content, in_flight))),
            ));
        }
        // Answers at addresses of an origin are not kept: such a request is also counted, and may make or resume a
        // feed.
        let plain = plain.filter(|_| !site.app.origins.may_be_for(&request));
        let kept_for = plain.and_then(|plain| Some((plain, AnswerBasis::now(&site.app)?)));
        request.extensions_mut().insert(self.peer);
        request.extensions_mut().insert(Arc::clone(&self.connection));
        let wait = in_flight.body_wait();
        let asks_first = request.headers().contains_key(header::EXPECT);
        let request = request.map(|body| match body.is_end_stream() {
            true => Body::empty(),
            false => Body::new(ArrivingBody { body: Some(body), wait, asks_first }),
        });
        Either::Right(Box::pin(async move {
            let mut answer = site.answer(request).await;
            if let Some(kept_for) = kept_for {
                let (metrics, now) = (&site.app.metrics, site.app.clock.now());
                site.ready.keep((metrics, now), kept_for, &mut answer);
            }
            Ok(answer.map(|body| SentBody::new(SentContent::Made(body), in_flight)))
        }))
    }
}

type Answered = Result<Response<SentBody>, Infallible>;

/// The body of a request, for whose bytes the client is waited for. What nobody reads of it is read and dropped, within
/// bounds: a client that is still writing when the connection closes never sees the answer.
struct ArrivingBody {
    body: Option<Incoming>,
    wait: ClientWait,
    /// Whether the client sent `Expect`: it sends no body if the answer refuses it, so none is drained.
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
        this.wait.set_waiting(came.is_pending());
        note_moved(&this.wait, &came);
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

/// The body of an answer.
pub(super) enum SentContent {
    /// Handed over at once; empty from then on.
    Whole(Bytes),
    Made(Body),
}

/// The same, with which its connection is busy until it is dropped. What there is of it waits for the client.
pub(super) struct SentBody {
    content: SentContent,
    in_flight: RequestInFlight,
}

impl SentBody {
    fn new(content: SentContent, mut in_flight: RequestInFlight) -> Self {
        in_flight.answer();
        Self { content, in_flight }
    }
}

impl http_body::Body for SentBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> PolledFrame<axum::Error> {
        let this = &mut *self;
        let frame = match &mut this.content {
            SentContent::Whole(bytes) if bytes.is_empty() => Poll::Ready(None),
            SentContent::Whole(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            SentContent::Made(body) => Pin::new(body).poll_frame(context),
        };
        this.in_flight.wait.set_waiting(frame.is_ready());
        note_moved(&this.in_flight.wait, &frame);
        frame
    }

    fn is_end_stream(&self) -> bool {
        match &self.content {
            SentContent::Whole(bytes) => bytes.is_empty(),
            SentContent::Made(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            SentContent::Whole(bytes) => {
                SizeHint::with_exact(u64::try_from(bytes.len()).unwrap_or(u64::MAX))
            }
            SentContent::Made(body) => body.size_hint(),
        }
    }
}

fn note_moved<E>(wait: &ClientWait, frame: &PolledFrame<E>) {
    if let Poll::Ready(Some(Ok(frame))) = frame {
        wait.moved(frame.data_ref().map_or(0, Bytes::len));
    }
}

/// What came when a body was asked for more.
pub(super) type PolledFrame<E> = Poll<Option<Result<Frame<Bytes>, E>>>;

/// A body that shows each frame that was polled to `watch`, and is dropped with it.
pub(super) struct WatchedBody<B, W> {
    body: B,
    watch: W,
}

impl<B, W> WatchedBody<B, W>
where
    B: http_body::Body<Data = Bytes> + Unpin,
    W: FnMut(&B, &PolledFrame<B::Error>) + Unpin,
{
    /// `watch`: told of each frame, with what is left of the body.
    pub(super) const fn new(body: B, watch: W) -> Self {
        Self { body, watch }
    }
}

impl<B, W> http_body::Body for WatchedBody<B, W>
where
    B: http_body::Body<Data = Bytes> + Unpin,
    W: FnMut(&B, &PolledFrame<B::Error>) + Unpin,
{
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> PolledFrame<B::Error> {
        let this = &mut *self;
        let frame = Pin::new(&mut this.body).poll_frame(context);
        (this.watch)(&this.body, &frame);
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A body is handed over in pieces of so many bytes, so that it is seen how its client takes it.
const PIECE: usize = 16 * 1024;
/// A file is read in pieces of so many bytes.
const FILE_PIECE: usize = 64 * 1024;

/// A document until its last byte has gone. The bytes go before what counts them does: another document may be in their
/// place afterwards.
struct HeldDocument {
    bytes: Bytes,
    _held: HeldBudget,
}

impl AsRef<[u8]> for HeldDocument {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// The body of an answer, in pieces: so many bytes are left of it.
pub(super) struct Unsent {
    left: u64,
    pieces: UnsentPieces,
}

enum UnsentPieces {
    Memory(Bytes),
    File(BoxStream<'static, io::Result<Bytes>>),
}

impl Unsent {
    pub(super) fn of_memory(bytes: Bytes, held: HeldBudget) -> Self {
        let left = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        let rest = Bytes::from_owner(HeldDocument { bytes, _held: held });
        Self { left, pieces: UnsentPieces::Memory(rest) }
    }

    pub(super) fn of_file(file: Arc<SpooledFile>, held: HeldBudget) -> Self {
        let left = file.len();
        let pieces = stream::try_unfold((file, held, 0), |(file, held, offset)| async move {
            let from = Arc::clone(&file);
            let reading = tokio::task::spawn_blocking(move || from.read(offset, FILE_PIECE));
            let bytes = reading.await.map_err(io::Error::other).flatten()?;
            let next = offset + u64::try_from(bytes.len()).unwrap_or(u64::MAX);
            Ok((!bytes.is_empty()).then_some((bytes, (file, held, next))))
        });
        Self { left, pieces: UnsentPieces::File(pieces.boxed()) }
    }
}

impl http_body::Body for Unsent {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> PolledFrame<io::Error> {
        if self.is_end_stream() {
            return Poll::Ready(None);
        }
        let piece = match &mut self.pieces {
            UnsentPieces::Memory(rest) => Some(Ok(rest.split_to(rest.len().min(PIECE)))),
            UnsentPieces::File(pieces) => task::ready!(pieces.poll_next_unpin(context)),
        };
        let Some(piece) = piece else { return Poll::Ready(None) };
        // The client sees by `Content-Length` that the body was cut short.
        let piece = piece.inspect_err(|error| {
            tracing::error!(%error, "a document could not be read from its file as it was sent");
        });
        let length = piece.as_ref().map_or(0, Bytes::len);
        self.left = self.left.saturating_sub(u64::try_from(length).unwrap_or(u64::MAX));
        Poll::Ready(Some(piece.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::{Budget, BudgetHolder, BudgetShares, HeldThing};
    use http_body_util::BodyExt as _;
    use std::time::Duration;

    #[tokio::test]
    async fn a_document_is_held_until_its_last_byte_has_gone() {
        let shares = BudgetShares { all: 1 << 20, each: 1 << 20, network: 1 << 20 };
        let (budget, whole) = (Budget::new(shares, Duration::ZERO), Bytes::from(vec![0; 40_000]));
        let thing = HeldThing { id: whole.as_ptr().addr(), size: 40_000 };
        let client = Some(crate::tests::client(1));
        let holder = BudgetHolder { client, connection: None, thing, is_action: false };
        let mut body = Unsent::of_memory(whole.clone(), budget.take(holder).unwrap());
        let mut pieces = Vec::new();
        while let Some(piece) = body.frame().await {
            pieces.push(piece.unwrap().into_data().unwrap());
        }
        let lengths: Vec<usize> = pieces.iter().map(Bytes::len).collect();
        assert_eq!(lengths, [PIECE, PIECE, 40_000 - 2 * PIECE]);
        assert_eq!(pieces[1].as_ptr(), whole[PIECE..].as_ptr(), "nothing is copied");
        drop(body);
        pieces.truncate(1);
        let part = pieces[0].slice(9..10);
        pieces.clear();
        assert_eq!(budget.held(), (1, 40_000), "a byte of it is still somewhere");
        drop(part);
        assert_eq!(budget.held(), (0, 0));
    }
}
