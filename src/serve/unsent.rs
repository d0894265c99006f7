//! Bodies on their way: what clients asked for and have not taken yet.
//!
//! A body is one with the document that is kept, so that it takes no memory of its own while that is
//! kept and however many are sent it. But who asks for one document after the other and takes none, on
//! streams of HTTP/2 without a window say, would keep all of them for as long as the connection lasts. So
//! what is held is counted by document, of each client and of all, until its last byte has gone; and a
//! body of which nothing is taken for too long ends its connection.

use super::Shared;
use super::client::Client;
use super::connections::Connection;
use super::problem::{Problem, RETRY_SOON};
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http_body::{Body as _, Frame, SizeHint};
use std::collections::HashMap;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::Instant;

/// Bytes of bodies on their way in all, and of these those of one client; what is more goes out when its
/// client has nothing else on its way.
const BUDGET: (u64, u64) = (128 * MIB, 32 * MIB);
const MIB: u64 = 1024 * 1024;
/// A body is handed over in pieces of so many bytes, each of which is heard of when it has gone.
const PIECE: usize = 16 * 1024;

/// Why a body is not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refused {
    /// Its client has not taken what it asked for before.
    #[error("answers are on their way to your address that it does not take; take them first")]
    Client,
    /// Nobody who has more could give way.
    #[error("too many answers are on their way; ask again soon")]
    All,
}

/// Documents by where they are in memory, each with its bytes and how often it is on its way.
#[derive(Debug, Default)]
struct Documents {
    held: HashMap<usize, (u64, usize)>,
    bytes: u64,
}

impl Documents {
    /// How many bytes there were with this document.
    fn with(&self, document: usize, bytes: u64) -> u64 {
        let more = if self.held.contains_key(&document) { 0 } else { bytes };
        self.bytes.saturating_add(more)
    }

    fn add(&mut self, document: usize, bytes: u64) {
        self.bytes = self.with(document, bytes);
        self.held.entry(document).or_insert((bytes, 0)).1 += 1;
    }

    fn remove(&mut self, document: usize) {
        let Some((bytes, times)) = self.held.get_mut(&document) else { return };
        *times = times.saturating_sub(1);
        if *times == 0 {
            self.bytes = self.bytes.saturating_sub(*bytes);
            self.held.remove(&document);
        }
    }
}

/// A body on its way.
#[derive(Debug)]
struct OnItsWay {
    client: Client,
    document: usize,
    connection: Option<Connection>,
    /// When something of it was last taken.
    taken: Arc<AtomicU64>,
}

#[derive(Debug, Default)]
struct Table {
    next: u64,
    bodies: HashMap<u64, OnItsWay>,
    all: Documents,
    clients: HashMap<Client, Documents>,
}

impl Table {
    fn remove(&mut self, id: u64) {
        let Some(body) = self.bodies.remove(&id) else { return };
        self.all.remove(body.document);
        if let Some(documents) = self.clients.get_mut(&body.client) {
            documents.remove(body.document);
            if documents.held.is_empty() {
                self.clients.remove(&body.client);
            }
        }
    }

    /// Ends the connection of a body, and forgets all that it carries.
    fn cut(&mut self, id: u64) {
        let connection = self.bodies.get(&id).and_then(|body| body.connection.clone());
        self.remove(id);
        let Some(connection) = connection else { return };
        let is_there = |body: &OnItsWay| body.connection.as_ref() == Some(&connection);
        let others = self.bodies.iter().filter(|(_, body)| is_there(body)).map(|(id, _)| *id);
        let others: Vec<u64> = others.collect();
        for id in others {
            self.remove(id);
        }
        connection.cut();
    }

    /// The first body of the client that has most, where that is more than `fewer`.
    fn of_the_greatest(&self, fewer: u64) -> Option<u64> {
        let (greatest, documents) = self.clients.iter().max_by_key(|(_, its)| its.bytes)?;
        if documents.bytes <= fewer {
            return None;
        }
        self.bodies.iter().filter(|(_, body)| body.client == *greatest).map(|(id, _)| *id).min()
    }
}

/// Every body on its way.
#[derive(Debug)]
pub(super) struct Bodies {
    all: u64,
    each: u64,
    begun: Instant,
    table: Mutex<Table>,
}

impl Bodies {
    /// None yet.
    pub(super) fn new() -> Arc<Self> {
        Self::within(BUDGET)
    }

    /// The same within so many bytes in all and of each client.
    pub(super) fn within((all, each): (u64, u64)) -> Arc<Self> {
        Arc::new(Self { all, each, begun: Instant::now(), table: Mutex::default() })
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// A body that counts until its last byte has gone.
    pub(super) fn send(
        self: &Arc<Self>,
        client: Client,
        connection: Option<Connection>,
        whole: Bytes,
    ) -> Result<Unsent, Refused> {
        let document = whole.as_ptr().addr();
        let bytes = u64::try_from(whole.len()).unwrap_or(u64::MAX);
        let mut table = self.table();
        let its = table.clients.get(&client).map_or(bytes, |its| its.with(document, bytes));
        if its > self.each && its > bytes {
            return Err(Refused::Client);
        }
        while table.all.with(document, bytes) > self.all && !table.bodies.is_empty() {
            let id = table.of_the_greatest(its).ok_or(Refused::All)?;
            table.cut(id);
        }
        let (id, taken) = (table.next, Arc::new(AtomicU64::new(self.now())));
        table.next += 1;
        table.all.add(document, bytes);
        table.clients.entry(client).or_default().add(document, bytes);
        table
            .bodies
            .insert(id, OnItsWay { client, document, connection, taken: Arc::clone(&taken) });
        drop(table);
        let sending = Arc::new(Sending { id, taken, bodies: Arc::clone(self) });
        Ok(Unsent { rest: whole, sending })
    }

    /// Ends the connections of bodies of which nothing was taken for so long.
    pub(super) fn cut_untaken(&self, limit: Duration) {
        let limit = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
        let (now, mut table) = (self.now(), self.table());
        let is_old =
            |body: &OnItsWay| now.saturating_sub(body.taken.load(Ordering::Relaxed)) >= limit;
        let old: Vec<u64> =
            table.bodies.iter().filter(|(_, body)| is_old(body)).map(|(id, _)| *id).collect();
        for id in old {
            tracing::debug!("a client took nothing of an answer, and its connection is cut");
            table.cut(id);
        }
    }

    /// How many bodies are on their way, and the bytes of their documents.
    #[cfg(test)]
    pub(super) fn held(&self) -> (usize, u64) {
        let table = self.table();
        (table.bodies.len(), table.all.bytes)
    }
}

/// That a body is on its way, until this is dropped.
struct Sending {
    id: u64,
    taken: Arc<AtomicU64>,
    bodies: Arc<Bodies>,
}

impl Sending {
    fn goes_on(&self) {
        self.taken.store(self.bodies.now(), Ordering::Relaxed);
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        self.bodies.table().remove(self.id);
    }
}

/// The body of an answer. The bytes go before what counts them does: another document may be in their
/// place afterwards.
pub(super) struct Unsent {
    rest: Bytes,
    sending: Arc<Sending>,
}

impl http_body::Body for Unsent {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.rest.is_empty() {
            return Poll::Ready(None);
        }
        self.sending.goes_on();
        let length = self.rest.len().min(PIECE);
        let bytes = self.rest.split_to(length);
        let piece = Piece { bytes, sending: Arc::clone(&self.sending) };
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_owner(piece)))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(u64::try_from(self.rest.len()).unwrap_or(u64::MAX))
    }
}

/// A piece of a body that was handed over, until it has gone.
struct Piece {
    bytes: Bytes,
    sending: Arc<Sending>,
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        self.sending.goes_on();
    }
}

/// Answers, and counts the body of the answer. What comes bit by bit has bounds of its own.
pub(super) async fn count(State(room): State<Shared>, request: Request, next: Next) -> Response {
    let client = request.extensions().get().copied().unwrap_or(Client::Own);
    let connection = request.extensions().get::<Connection>().cloned();
    let response = next.run(request).await;
    let size = response.body().size_hint().exact().unwrap_or(0);
    if size == 0 {
        return response;
    }
    let (parts, body) = response.into_parts();
    // It is whole and of a known size already, so it is handed over and not copied.
    let Ok(whole) = to_bytes(body, usize::MAX).await else {
        return Response::from_parts(parts, Body::empty());
    };
    match room.bodies.send(client, connection, whole) {
        Ok(body) => Response::from_parts(parts, Body::new(body)),
        Err(refused) => Problem::later(refused.to_string(), RETRY_SOON).into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt as _;

    fn client(last: u8) -> Client {
        Client::at([192, 0, 2, last].into())
    }

    fn document(bytes: usize) -> Bytes {
        vec![0; bytes].into()
    }

    #[tokio::test]
    async fn a_document_counts_once_and_until_its_last_byte_has_gone() {
        let bodies = Bodies::within((1 << 20, 1 << 20));
        let whole = document(40_000);
        let send = |to| bodies.send(client(to), None, whole.clone()).unwrap();
        let (mut one, other) = (send(1), send(2));
        assert_eq!(bodies.held(), (2, 40_000));
        drop(other);
        let mut pieces = Vec::new();
        while let Some(piece) = one.frame().await {
            pieces.push(piece.unwrap().into_data().unwrap());
        }
        let lengths: Vec<usize> = pieces.iter().map(Bytes::len).collect();
        assert_eq!(lengths, [PIECE, PIECE, 40_000 - 2 * PIECE]);
        assert_eq!(pieces[1].as_ptr(), whole[PIECE..].as_ptr(), "nothing is copied");
        drop(one);
        pieces.truncate(1);
        let part = pieces[0].slice(9..10);
        pieces.clear();
        assert_eq!(bodies.held(), (1, 40_000), "a byte of it is still somewhere");
        drop(part);
        assert_eq!(bodies.held(), (0, 0));
        assert!(bodies.table().clients.is_empty());
    }

    #[test]
    fn a_client_has_its_share_and_the_greatest_gives_way() {
        let bodies = Bodies::within((100, 50));
        let connections = [Connection::new(1), Connection::new(2), Connection::new(3)];
        let send = |to: u8, connection: usize, bytes| {
            bodies.send(client(to), connections.get(connection).cloned(), document(bytes))
        };
        let first = send(1, 0, 20).unwrap();
        let second = send(1, 1, 20).unwrap();
        let third = send(1, 1, 10).unwrap();
        assert_eq!(send(1, 0, 1).err(), Some(Refused::Client));
        let large = send(2, 2, 50).unwrap();
        assert!(!connections.iter().any(Connection::is_cut));
        // Room for a third is made by one of those that have more.
        let other = send(3, 9, 40).unwrap();
        let cut = connections.iter().filter(|connection| connection.is_cut()).count();
        assert!((1..3).contains(&cut), "{cut}: both have more than the newcomer");
        let (_, bytes) = bodies.held();
        assert!(bytes <= 100, "{bytes}");
        drop((first, second, third, large, other));
        assert_eq!(bodies.held(), (0, 0));
        // What is more than everything goes out alone.
        let huge = send(1, 9, 1000).unwrap();
        assert_eq!(send(1, 9, 1).err(), Some(Refused::Client));
        drop(huge);
    }

    #[test]
    fn nobody_gives_way_to_one_that_has_more() {
        let bodies = Bodies::within((100, 50));
        let held: Vec<_> = (0..10)
            .map(|number| bodies.send(client(number), None, document(10)).unwrap())
            .collect();
        assert_eq!(bodies.send(client(11), None, document(20)).err(), Some(Refused::All));
        assert_eq!(bodies.held(), (10, 100));
        drop(held);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_not_taken_ends_its_connection() {
        let bodies = Bodies::within((1 << 20, 1 << 20));
        let connections = [Connection::new(1), Connection::new(2)];
        let send = |at: usize| {
            bodies.send(client(1), Some(connections[at].clone()), document(40_000)).unwrap()
        };
        let (_still, mut taken, _also) = (send(0), send(1), send(0));
        let limit = Duration::from_secs(60);
        tokio::time::sleep(limit / 2).await;
        drop(taken.frame().await);
        tokio::time::sleep(limit / 2).await;
        bodies.cut_untaken(limit);
        assert!(connections[0].is_cut() && !connections[1].is_cut());
        assert_eq!(bodies.held(), (1, 40_000));
    }
}
