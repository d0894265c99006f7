//! Bodies on their way: what clients asked for and have not taken yet.
//!
//! A body is one with the document that is kept, so that it takes no memory of its own while that is
//! kept and however many are sent it. But who asks for one document after the other and takes none, on
//! streams of HTTP/2 without a window say, would keep all of them for as long as the connection lasts. So
//! what is held is counted by document, of each client and of all, until its last byte has gone; and a
//! body of which nothing is taken for too long ends its connection.
//!
//! A document in a file (`spool`) takes no memory but for the piece that is sent just now. What is counted
//! of those are the bytes on the disk, in a table of their own: a file that nobody asks for any more stays
//! for as long as it is sent.

mod body;

use super::SharedState;
use super::client::Client;
use super::connections::Connection;
use super::problem::{Problem, RETRY_SOON};
use super::rendition::BodyContent;
use super::spool::SpooledFile;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use body::{Rest, Unsent};
use http::Method;
use http_body::Body as _;
use std::collections::{BTreeSet, BinaryHeap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Bytes of bodies on their way in all, and of these those of one client; what is more goes out when its
/// client has nothing else on its way.
const BUDGET: (u64, u64) = (128 * MIB, 32 * MIB);
/// The same of files.
const FILE_BUDGET: (u64, u64) = (1024 * MIB, 512 * MIB);
const MIB: u64 = 1024 * 1024;
/// A connection on which nothing was taken for so many milliseconds does not move: it goes first where
/// room is needed.
const STILL: u64 = 15_000;

/// Why a body is not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum SendRefusal {
    /// Its client has not taken what it asked for before.
    #[error("answers are on their way to your address that it does not take; take them first")]
    Client,
    /// Nobody who does not move, or has more, could give way.
    #[error("too many answers are on their way; ask again soon")]
    All,
}

/// Documents by where they are in memory, each with its bytes and the bodies that it is sent as.
#[derive(Debug, Default)]
struct Documents {
    held: HashMap<usize, (u64, BTreeSet<u64>)>,
    bytes: u64,
}

impl Documents {
    /// How many bytes there were with this document.
    fn with(&self, document: usize, bytes: u64) -> u64 {
        let more = if self.held.contains_key(&document) { 0 } else { bytes };
        self.bytes.saturating_add(more)
    }

    fn add(&mut self, document: usize, bytes: u64, id: u64) {
        self.bytes = self.with(document, bytes);
        self.held.entry(document).or_insert((bytes, BTreeSet::new())).1.insert(id);
    }

    fn remove(&mut self, document: usize, id: u64) {
        let Some((bytes, bodies)) = self.held.get_mut(&document) else { return };
        bodies.remove(&id);
        if bodies.is_empty() {
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
    /// When something was last taken on its connection.
    taken: Arc<AtomicU64>,
}

/// What a connection carries.
#[derive(Debug)]
struct ConnectionLoad {
    /// When something of it was last taken: streams of HTTP/2 have their turns, so one of them may wait
    /// for long while others move.
    taken: Arc<AtomicU64>,
    bodies: BTreeSet<u64>,
}

/// An answer that is to be sent.
struct Newcomer<'a> {
    connection: Option<&'a Connection>,
    document: usize,
    bytes: u64,
    /// What its client has with it.
    its: u64,
}

#[derive(Debug, Default)]
struct UnsentTable {
    next: u64,
    bodies: HashMap<u64, OnItsWay>,
    all: Documents,
    clients: HashMap<Client, Documents>,
    connections: HashMap<Connection, ConnectionLoad>,
}

impl UnsentTable {
    /// Counts a body, and says when something was last taken where it goes.
    fn add(
        &mut self,
        client: Client,
        connection: Option<Connection>,
        (document, bytes): (usize, u64),
        now: u64,
    ) -> (u64, Arc<AtomicU64>) {
        let id = self.next;
        self.next += 1;
        self.all.add(document, bytes, id);
        self.clients.entry(client).or_default().add(document, bytes, id);
        let begun = || Arc::new(AtomicU64::new(now));
        let taken = match &connection {
            // Who asks for more has taken nothing by that.
            Some(connection) => {
                let fresh = || ConnectionLoad { taken: begun(), bodies: BTreeSet::new() };
                let carried = self.connections.entry(connection.clone()).or_insert_with(fresh);
                carried.bodies.insert(id);
                Arc::clone(&carried.taken)
            }
            None => begun(),
        };
        let body = OnItsWay { client, document, connection, taken: Arc::clone(&taken) };
        self.bodies.insert(id, body);
        (id, taken)
    }

    fn remove(&mut self, id: u64) {
        let Some(body) = self.bodies.remove(&id) else { return };
        self.all.remove(body.document, id);
        if let Some(documents) = self.clients.get_mut(&body.client) {
            documents.remove(body.document, id);
            if documents.held.is_empty() {
                self.clients.remove(&body.client);
            }
        }
        if let Some(connection) = &body.connection
            && let Some(carried) = self.connections.get_mut(connection)
        {
            carried.bodies.remove(&id);
            if carried.bodies.is_empty() {
                self.connections.remove(connection);
            }
        }
    }

    /// Ends the connection of a body, and forgets all that it carries.
    fn cut(&mut self, id: u64) {
        let connection = self.bodies.get(&id).and_then(|body| body.connection.clone());
        self.remove(id);
        let Some(connection) = connection else { return };
        let others = self.connections.get(&connection).map(|carried| carried.bodies.clone());
        for id in others.unwrap_or_default() {
            self.remove(id);
        }
        connection.cut();
    }

    /// Cuts as few as make room for a newcomer, or nobody where that would make none.
    fn make_room(&mut self, for_it: &Newcomer<'_>, most: u64, now: u64) -> Result<(), SendRefusal> {
        let over = |all: &Documents| all.with(for_it.document, for_it.bytes).saturating_sub(most);
        // What is more than everything goes out when nothing else does.
        let needed = over(&self.all).min(self.all.bytes);
        for document in self.that_give_way(for_it, needed, now).ok_or(SendRefusal::All)? {
            if over(&self.all) == 0 {
                break;
            }
            let bodies = self.all.held.get(&document).map(|(_, bodies)| bodies.clone());
            for id in bodies.unwrap_or_default() {
                self.cut(id);
            }
        }
        Ok(())
    }

    /// The documents that free so many bytes when those who are sent them are cut, in order: first what
    /// nobody has moved for longest, then what one client alone has, of the client that has most of that,
    /// where that is more than the newcomer has. A document that several take, and one of them moves, frees
    /// nothing when one is cut; nor does what goes out where the newcomer does.
    fn that_give_way(&self, to: &Newcomer<'_>, needed: u64, now: u64) -> Option<Vec<usize>> {
        let (mut give_way, mut freed) = (Vec::new(), 0_u64);
        if needed == 0 {
            return Some(give_way);
        }
        let (mut still, mut alone) = (Vec::new(), HashMap::<Client, (u64, Vec<_>)>::new());
        for (document, (bytes, bodies)) in &self.all.held {
            let of = || bodies.iter().filter_map(|id| self.bodies.get(id));
            let stays = |body: &OnItsWay| {
                body.connection.is_none() || body.connection.as_ref() == to.connection
            };
            let Some(first) = of().next().filter(|_| !of().any(stays)) else { continue };
            let taken = of().map(|body| body.taken.load(Ordering::Relaxed)).max().unwrap_or(now);
            if now.saturating_sub(taken) >= STILL {
                still.push((taken, *document, *bytes));
            } else if of().all(|body| body.client == first.client) {
                let its = alone.entry(first.client).or_default();
                its.0 = its.0.saturating_add(*bytes);
                its.1.push((*bytes, *document));
            }
        }
        still.sort_unstable();
        for (_, document, bytes) in still {
            if freed >= needed {
                return Some(give_way);
            }
            give_way.push(document);
            freed = freed.saturating_add(bytes);
        }
        for (_, documents) in alone.values_mut() {
            documents.sort_unstable();
        }
        let mut greatest: BinaryHeap<_> = alone
            .into_iter()
            .map(|(client, (bytes, documents))| (bytes, client, documents))
            .collect();
        while freed < needed {
            let (its, client, mut documents) = greatest.pop().filter(|(its, ..)| *its > to.its)?;
            let Some((bytes, document)) = documents.pop() else { continue };
            give_way.push(document);
            freed = freed.saturating_add(bytes);
            greatest.push((its.saturating_sub(bytes), client, documents));
        }
        Some(give_way)
    }
}

/// Every body on its way.
#[derive(Debug)]
pub(super) struct Bodies {
    all: u64,
    each: u64,
    begun: Instant,
    table: Mutex<UnsentTable>,
}

impl Bodies {
    /// None yet.
    pub(super) fn new() -> Arc<Self> {
        Self::within(BUDGET)
    }

    /// The same for bodies that are read from files as they are sent.
    pub(super) fn of_files() -> Arc<Self> {
        Self::within(FILE_BUDGET)
    }

    /// The same within so many bytes in all and of each client.
    pub(super) fn within((all, each): (u64, u64)) -> Arc<Self> {
        Arc::new(Self { all, each, begun: Instant::now(), table: Mutex::default() })
    }

    fn table(&self) -> MutexGuard<'_, UnsentTable> {
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
        whole: impl Into<BodyContent>,
    ) -> Result<Unsent, SendRefusal> {
        let whole = whole.into();
        let (document, bytes) = place(&whole);
        let (now, mut table) = (self.now(), self.table());
        let its = table.clients.get(&client).map_or(bytes, |its| its.with(document, bytes));
        if its > self.each && its > bytes {
            return Err(SendRefusal::Client);
        }
        let newcomer = Newcomer { connection: connection.as_ref(), document, bytes, its };
        table.make_room(&newcomer, self.all, now)?;
        Ok(self.begin(&mut table, client, connection, whole))
    }

    /// The same for what says how an action ended: it counts, and is sent whether there is room or not.
    fn send_anyway(
        self: &Arc<Self>,
        client: Client,
        connection: Option<Connection>,
        whole: Bytes,
    ) -> Unsent {
        self.begin(&mut self.table(), client, connection, whole.into())
    }

    fn begin(
        self: &Arc<Self>,
        table: &mut UnsentTable,
        client: Client,
        connection: Option<Connection>,
        whole: BodyContent,
    ) -> Unsent {
        let (id, taken) = table.add(client, connection, place(&whole), self.now());
        let sending = Arc::new(Sending { id, taken, bodies: Arc::clone(self) });
        let rest = match whole {
            BodyContent::Memory(bytes) => Rest::Memory(bytes),
            BodyContent::File(file) => Rest::File { file, offset: 0, reading: None },
        };
        Unsent { rest, sending }
    }

    /// Ends the connections that carry bodies and on which nothing was taken for so long.
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

/// Where a document is in memory, or what stands for its file there; and its bytes.
fn place(whole: &BodyContent) -> (usize, u64) {
    let at = match whole {
        BodyContent::Memory(bytes) => bytes.as_ptr().addr(),
        BodyContent::File(file) => Arc::as_ptr(file).addr(),
    };
    (at, whole.len())
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

/// Who takes an answer.
pub(super) struct Recipient {
    pub(super) client: Client,
    pub(super) connection: Option<Connection>,
}

impl Recipient {
    /// Who sent a request.
    pub(super) fn of(request: &Request) -> Self {
        let client = request.extensions().get().copied().unwrap_or(Client::Own);
        Self { client, connection: request.extensions().get().cloned() }
    }
}

/// Answers, and counts the body of the answer. What comes bit by bit has bounds of its own.
pub(super) async fn count(
    State(room): State<SharedState>,
    request: Request,
    next: Next,
) -> Response {
    let Recipient { client, connection } = Recipient::of(&request);
    let is_action = !request.method().is_safe();
    let is_head = request.method() == Method::HEAD;
    let mut response = next.run(request).await;
    let file = response.extensions_mut().remove::<Arc<SpooledFile>>();
    if let Some(file) = file.filter(|_| !is_head) {
        return match room.file_bodies.send(client, connection, file) {
            Ok(body) => response.map(|_| Body::new(body)),
            Err(refused) => Problem::later(refused.to_string(), RETRY_SOON).into_response(),
        };
    }
    let size = response.body().size_hint().exact().unwrap_or(0);
    if size == 0 {
        return response;
    }
    let (parts, body) = response.into_parts();
    // It is whole and of a known size already, so it is handed over and not copied.
    let Ok(whole) = to_bytes(body, usize::MAX).await else {
        return Response::from_parts(parts, Body::empty());
    };
    if is_action {
        // It was carried out, or refused: "ask again soon" would be untrue.
        let body = room.bodies.send_anyway(client, connection, whole);
        return Response::from_parts(parts, Body::new(body));
    }
    match room.bodies.send(client, connection, whole) {
        Ok(body) => Response::from_parts(parts, Body::new(body)),
        Err(refused) => Problem::later(refused.to_string(), RETRY_SOON).into_response(),
    }
}

#[cfg(test)]
mod tests;
