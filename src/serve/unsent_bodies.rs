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
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// The part of all bytes on their way that one client has; what is more goes out when its client has nothing else on its
/// way.
const SHARE: u64 = 4;
/// Bytes of files on their way in all, and of these those of one client.
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

/// Documents by where they are in memory, each with its bytes and the number of bodies that it is sent as.
#[derive(Debug, Default)]
struct HeldDocuments {
    held: HashMap<usize, (u64, usize)>,
    bytes: u64,
}

impl HeldDocuments {
    /// How many bytes there were with this document.
    fn with(&self, (document, bytes): (usize, u64)) -> u64 {
        let more = if self.held.contains_key(&document) { 0 } else { bytes };
        self.bytes.saturating_add(more)
    }

    fn add(&mut self, document: (usize, u64)) {
        self.bytes = self.with(document);
        self.held.entry(document.0).or_insert((document.1, 0)).1 += 1;
    }

    fn remove(&mut self, document: (usize, u64)) {
        let Some((bytes, bodies)) = self.held.get_mut(&document.0) else { return };
        *bodies = bodies.saturating_sub(1);
        if *bodies == 0 {
            self.bytes = self.bytes.saturating_sub(*bytes);
            self.held.remove(&document.0);
        }
    }
}

/// A body on its way.
#[derive(Debug)]
struct OnItsWay {
    client: Client,
    /// Where its document is, and the bytes of that.
    document: (usize, u64),
    connection: Option<Connection>,
    /// When something was last taken on its connection.
    taken: Arc<AtomicU64>,
}

/// An answer that is to be sent.
struct Newcomer {
    connection: Option<usize>,
    document: (usize, u64),
    /// What its client has with it.
    its: u64,
}

/// A document as those who are sent it make it give way.
struct GivingDocument {
    taken: u64,
    bytes: u64,
    /// The only client that is sent it.
    client: Option<Client>,
    /// Whether it goes out to somebody whose connection is not cut.
    stays: bool,
}

#[derive(Debug, Default)]
struct UnsentTable {
    next: u64,
    bodies: HashMap<u64, OnItsWay>,
    all: HeldDocuments,
    clients: HashMap<Client, HeldDocuments>,
    /// When something of what a connection carries was last taken, and how many bodies that is: streams of HTTP/2 have
    /// their turns, so one of them may wait for long while others move.
    connections: HashMap<usize, (Arc<AtomicU64>, usize)>,
}

impl UnsentTable {
    /// Counts a body, and says when something was last taken where it goes.
    fn add(
        &mut self,
        client: Client,
        connection: Option<Connection>,
        document: (usize, u64),
        now: u64,
    ) -> (u64, Arc<AtomicU64>) {
        let id = self.next;
        self.next += 1;
        self.all.add(document);
        self.clients.entry(client).or_default().add(document);
        let begun = || Arc::new(AtomicU64::new(now));
        let taken = match &connection {
            // Who asks for more has taken nothing by that.
            Some(connection) => {
                let fresh = || (begun(), 0);
                let (taken, bodies) =
                    self.connections.entry(connection.key()).or_insert_with(fresh);
                *bodies += 1;
                Arc::clone(taken)
            }
            None => begun(),
        };
        let body = OnItsWay { client, document, connection, taken: Arc::clone(&taken) };
        self.bodies.insert(id, body);
        (id, taken)
    }

    fn remove(&mut self, id: u64) {
        let Some(body) = self.bodies.remove(&id) else { return };
        self.all.remove(body.document);
        if let Some(documents) = self.clients.get_mut(&body.client) {
            documents.remove(body.document);
            if documents.held.is_empty() {
                self.clients.remove(&body.client);
            }
        }
        if let Some(connection) = body.connection.as_ref().map(Connection::key)
            && let Some((_, bodies)) = self.connections.get_mut(&connection)
        {
            *bodies = bodies.saturating_sub(1);
            if *bodies == 0 {
                self.connections.remove(&connection);
            }
        }
    }

    /// Ends the connections of some bodies, and forgets all that these carry.
    fn cut(&mut self, those: impl Fn(&OnItsWay) -> bool) {
        let of = self.bodies.values().filter(|body| those(body));
        let cut: HashMap<usize, Connection> = of
            .filter_map(|body| body.connection.as_ref())
            .map(|connection| (connection.key(), connection.clone()))
            .collect();
        let is_gone = |body: &OnItsWay| match &body.connection {
            Some(connection) => cut.contains_key(&connection.key()),
            None => those(body),
        };
        let gone: Vec<u64> =
            self.bodies.iter().filter(|(_, body)| is_gone(body)).map(|(id, _)| *id).collect();
        gone.into_iter().for_each(|id| self.remove(id));
        cut.values().for_each(Connection::cut);
    }

    /// Cuts those who make room for a newcomer, or nobody where that would make none.
    fn make_room(&mut self, for_it: &Newcomer, most: u64, now: u64) -> Result<(), SendRefusal> {
        // What is more than everything goes out when nothing else does.
        let over = self.all.with(for_it.document).saturating_sub(most).min(self.all.bytes);
        if over > 0 {
            let documents = self.that_give_way(for_it, over, now).ok_or(SendRefusal::All)?;
            self.cut(|body| documents.contains(&body.document.0));
        }
        Ok(())
    }

    /// The documents that free so many bytes when those who are sent them are cut: first what nobody has moved for
    /// longest, then what one client alone has, of the client that has most of that, where that is more than the
    /// newcomer has. A document that several take, and one of them moves, frees nothing when one is cut; nor does what
    /// goes out where the newcomer does.
    fn that_give_way(&self, to: &Newcomer, needed: u64, now: u64) -> Option<HashSet<usize>> {
        let mut documents: HashMap<usize, GivingDocument> = HashMap::new();
        for body in self.bodies.values() {
            let (document, bytes) = body.document;
            let (taken, client) = (body.taken.load(Ordering::Relaxed), Some(body.client));
            let first = GivingDocument { taken, bytes, client, stays: false };
            let giving = documents.entry(document).or_insert(first);
            giving.taken = giving.taken.max(taken);
            giving.client = giving.client.filter(|_| giving.client == client);
            let connection = body.connection.as_ref().map(Connection::key);
            giving.stays |= connection.is_none() || connection == to.connection;
        }
        let (mut still, mut alone) = (Vec::new(), HashMap::<Client, (u64, Vec<_>)>::new());
        for (document, it) in documents.into_iter().filter(|(_, it)| !it.stays) {
            if now.saturating_sub(it.taken) >= STILL {
                still.push((it.taken, document, it.bytes));
            } else if let Some(client) = it.client {
                let (its, documents) = alone.entry(client).or_default();
                *its = its.saturating_add(it.bytes);
                documents.push((it.bytes, document));
            }
        }
        let (mut give_way, mut freed) = (HashSet::new(), 0_u64);
        still.sort_unstable();
        for (_, document, bytes) in still {
            if freed < needed {
                give_way.insert(document);
                freed = freed.saturating_add(bytes);
            }
        }
        let with_client = |(client, (its, mut documents)): (Client, (u64, Vec<_>))| {
            documents.sort_unstable();
            (its, client, documents)
        };
        let mut greatest: BinaryHeap<_> = alone.into_iter().map(with_client).collect();
        while freed < needed {
            let (its, client, mut documents) = greatest.pop().filter(|(its, ..)| *its > to.its)?;
            let Some((bytes, document)) = documents.pop() else { continue };
            give_way.insert(document);
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
    /// None yet, and at most so many bytes.
    pub(super) fn new(bytes: u64) -> Arc<Self> {
        Self::within((bytes, bytes / SHARE))
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
        let document = place(&whole);
        let (now, mut table) = (self.now(), self.table());
        let its = table.clients.get(&client).map_or(document.1, |its| its.with(document));
        if its > self.each && its > document.1 {
            return Err(SendRefusal::Client);
        }
        let newcomer =
            Newcomer { connection: connection.as_ref().map(Connection::key), document, its };
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
        table.cut(|body| now.saturating_sub(body.taken.load(Ordering::Relaxed)) >= limit);
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

/// Answers, and counts the body of the answer. What comes bit by bit has bounds of its own.
pub(super) async fn count(
    State(room): State<SharedState>,
    request: Request,
    next: Next,
) -> Response {
    let client = request.extensions().get().copied().unwrap_or(Client::Own);
    let connection: Option<Connection> = request.extensions().get().cloned();
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
    if response.body().size_hint().exact().unwrap_or(0) == 0 {
        return response;
    }
    let (parts, body) = response.into_parts();
    // It is whole and of a known size already, so it is handed over and not copied.
    let whole = to_bytes(body, usize::MAX).await.unwrap_or_default();
    // An action was carried out, or refused: "ask again soon" would be untrue.
    let sent = match is_action {
        true => Ok(room.bodies.send_anyway(client, connection, whole)),
        false => room.bodies.send(client, connection, whole),
    };
    match sent {
        Ok(body) => Response::from_parts(parts, Body::new(body)),
        Err(refused) => Problem::later(refused.to_string(), RETRY_SOON).into_response(),
    }
}

#[cfg(test)]
mod tests;
