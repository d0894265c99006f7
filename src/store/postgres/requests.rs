//! Requests of nodes to the one that writes, and its answers: rows of a table that a restart of the database empties.
//!
//! A node that other nodes took for dead asks for nothing more: its row is gone. The node that writes takes up requests
//! as long as it has the fence of its claim. A write that it had taken up when it ended is taken up by the next: it may be
//! carried out twice, and whoever carries it out checks that it still applies. A question is carried out once at most, and
//! not after the time that somebody waits for it.

use super::ask::{Parameters, get, retried};
use super::connect::SqlError;
use super::session::{ANSWER_TIME, Session, SessionShared};
use super::statements::{
    ANSWER, ANSWERS, ASK, ASKED, END_REQUESTS, FORGET_REQUESTS, TAKE_REQUESTS,
};
use crate::embedded::{AnswerRequests, AskWriter, WriterAnswer};
use crate::{GatewayAnswer, StoreError};
use async_trait::async_trait;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::{Notify, Semaphore, oneshot};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};
use tokio_postgres::Row;

/// The largest request, in bytes.
const REQUEST_LIMIT: usize = 128 << 20;
/// The most writes and the most questions of a node that wait for answers; others wait to be sent. A question may take
/// long, and holds no write up.
const AT_ONCE: (usize, usize) = (64, 64);
/// The most requests that are taken up at once, and that are carried out at the same time.
const TAKEN_AT_ONCE: (usize, usize) = (16, 256);
/// The most bytes of requests or answers that are read at once, but for the last one of them.
const TAKEN_BYTES: i64 = 16 << 20;
/// The pauses between looks for answers, and for requests while there are some: the first and the longest.
const LOOK_PAUSES: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(40));
/// The pause between looks for requests while none come, and after how long without any.
const IDLE: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(5));
/// How often it is looked whether requests are still in the table.
const LOST_EVERY: Duration = Duration::from_secs(1);
/// How often the database is asked for the time.
const CLOCK_EVERY: Duration = Duration::from_secs(10);
/// After how long a request whose node is gone is forgotten, and how often that is looked at.
const FORGET_AFTER: Duration = Duration::from_secs(300);
const FORGET_EVERY: Duration = Duration::from_secs(60);

/// Asks the node that writes.
pub(super) struct RequestSender {
    /// The store's end ends the session, also while somebody still has this.
    session: Weak<Session>,
    writes: Semaphore,
    questions: Semaphore,
    waiting: Arc<WaitingRequests>,
}

/// Who waits for the answer to a request.
struct Waiter {
    reply: oneshot::Sender<Vec<u8>>,
    /// When the request was in the table; `None`: it is being sent.
    sent: Option<Instant>,
}

/// Requests that were sent and are not answered yet.
#[derive(Default)]
struct WaitingRequests {
    last: AtomicI64,
    waiters: Mutex<HashMap<i64, Waiter>>,
    sent: Notify,
}

impl WaitingRequests {
    fn waiters(&self) -> MutexGuard<'_, HashMap<i64, Waiter>> {
        self.waiters.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_awaited(&self, number: i64) -> bool {
        self.waiters().contains_key(&number)
    }

    /// Hands answers to whoever waits for them, until the session ends.
    async fn hand_out(session: Weak<SessionShared>, waiting: Weak<Self>) {
        let (mut pause, mut look_at) = (LOOK_PAUSES.0, Instant::now());
        loop {
            let Some(this) = waiting.upgrade() else { return };
            if this.waiters().is_empty() {
                pause = LOOK_PAUSES.0;
                // So that the end of the store is noticed.
                let _ = timeout(IDLE.0, this.sent.notified()).await;
                continue;
            }
            sleep(pause).await;
            let Some(session) = session.upgrade() else { return };
            let answered = match session.answers().await {
                Ok(answered) => answered,
                Err(error) => {
                    tracing::debug!(?error, "answers of the gateway that writes could not be read");
                    pause = IDLE.0;
                    continue;
                }
            };
            pause = match answered.is_empty() {
                true => pause.saturating_mul(2).min(LOOK_PAUSES.1),
                false => LOOK_PAUSES.0,
            };
            let numbers: Vec<i64> = answered.iter().map(|(number, _)| *number).collect();
            for (number, answer) in answered {
                let waiter = this.waiters().remove(&number);
                // Who asked may have given up.
                let _ = waiter.map(|waiter| waiter.reply.send(answer));
            }
            if !numbers.is_empty() {
                // What stays there is forgotten later.
                let _ = session.end_requests(numbers).await;
            } else if Instant::now() >= look_at {
                look_at = Instant::now() + LOST_EVERY;
                this.drop_lost(&session).await;
            }
        }
    }

    /// Gives up requests that are not in the table any more: the database was started anew.
    async fn drop_lost(&self, session: &SessionShared) {
        let since = Instant::now();
        let Ok(there) = session.asked().await else { return };
        let is_there = |number: &i64, waiter: &Waiter| {
            waiter.sent.is_none_or(|sent| sent >= since) || there.contains(number)
        };
        self.waiters().retain(|number, waiter| is_there(number, waiter));
    }
}

/// A request under way. Where nobody waits for it any more, it is withdrawn: it is not carried out, unless it was
/// taken up.
struct UnansweredRequest {
    number: i64,
    waiting: Arc<WaitingRequests>,
    session: Weak<Session>,
}

impl Drop for UnansweredRequest {
    fn drop(&mut self) {
        let is_open = self.waiting.waiters().remove(&self.number).is_some();
        let Some(session) = self.session.upgrade().filter(|_| is_open) else { return };
        let (shared, number) = (Arc::downgrade(session.shared()), self.number);
        session.spawn(async move {
            if let Some(shared) = shared.upgrade() {
                let _ = shared.end_requests(vec![number]).await;
            }
        });
    }
}

impl RequestSender {
    /// One over a session, which it does not outlive.
    pub(super) fn new(session: &Arc<Session>) -> Self {
        let waiting = Arc::new(WaitingRequests::default());
        let shared = Arc::downgrade(session.shared());
        session.spawn(WaitingRequests::hand_out(shared, Arc::downgrade(&waiting)));
        let (writes, questions) = (Semaphore::new(AT_ONCE.0), Semaphore::new(AT_ONCE.1));
        Self { session: Arc::downgrade(session), writes, questions, waiting }
    }

    /// Sends a request and waits for its answer. `once`: it may be carried out once, within that time.
    async fn exchange(
        &self,
        body: Vec<u8>,
        once: Option<Duration>,
    ) -> Result<WriterAnswer, StoreError> {
        let session = self.session.upgrade().ok_or(StoreError::Closed)?;
        let number = self.waiting.last.fetch_add(1, Ordering::Relaxed);
        let (reply, answer) = oneshot::channel();
        self.waiting.waiters().insert(number, Waiter { reply, sent: None });
        let (waiting, of) = (Arc::clone(&self.waiting), self.session.clone());
        let pending = UnansweredRequest { number, waiting, session: of };
        let waiting = Arc::clone(&self.waiting);
        let sending = session.run_async("ask the gateway that writes", move |shared| async move {
            let mut is_sent = shared.ask_writer(number, &body, once).await?;
            // A question rests on no claim: a node that was forgotten joins anew and asks.
            if !is_sent && once.is_some() {
                shared.beat().await;
                is_sent = shared.ask_writer(number, &body, once).await?;
            }
            // It may have been withdrawn before it was in the table.
            if is_sent && !waiting.is_awaited(number) {
                // What stays there is forgotten later.
                let _ = shared.end_requests(vec![number]).await;
            }
            Ok(is_sent)
        });
        if !sending.await? {
            return Ok(WriterAnswer::Forgotten);
        }
        drop(session);
        if let Some(waiter) = self.waiting.waiters().get_mut(&number) {
            waiter.sent = Some(Instant::now());
        }
        self.waiting.sent.notify_one();
        let answer = answer.await;
        drop(pending);
        Ok(answer.map_or(WriterAnswer::Unknown, WriterAnswer::Answered))
    }
}

#[async_trait]
impl AskWriter for RequestSender {
    async fn ask(
        &self,
        body: Vec<u8>,
        is_question: bool,
        limit: Duration,
    ) -> Result<WriterAnswer, StoreError> {
        if body.len() > REQUEST_LIMIT {
            let what = "a request to the gateway that writes".to_owned();
            return Err(StoreError::TooLarge { what, size: body.len(), limit: REQUEST_LIMIT });
        }
        let room = if is_question { &self.questions } else { &self.writes };
        let asking = async {
            match room.acquire().await {
                Ok(_room) => self.exchange(body, is_question.then_some(limit)).await,
                Err(_) => Ok(WriterAnswer::Unknown),
            }
        };
        timeout(limit, asking).await.unwrap_or(Ok(WriterAnswer::Unknown))
    }
}

impl SessionShared {
    /// Sends a request; whether this node may still ask.
    async fn ask_writer(
        &self,
        number: i64,
        body: &[u8],
        once: Option<Duration>,
    ) -> Result<bool, SqlError> {
        let (now, _) = self.pool.now().await?;
        let millis = |time: Duration| i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
        let until = once.map(|once| now.saturating_add(millis(once)));
        Ok(self.execute(ASK, &[&self.node, &number, &now, &body, &until]).await? == 1)
    }

    /// Answers that have come.
    async fn answers(&self) -> Result<Vec<(i64, Vec<u8>)>, SqlError> {
        let limit = i64::try_from(TAKEN_AT_ONCE.0).unwrap_or(i64::MAX);
        let rows = self.rows(ANSWERS, &[&self.node, &limit, &TAKEN_BYTES]).await?;
        rows.iter().map(|row| Ok((get(row, 0)?, get(row, 1)?))).collect()
    }

    /// The requests of this node that there are.
    async fn asked(&self) -> Result<HashSet<i64>, SqlError> {
        let rows = self.rows(ASKED, &[&self.node]).await?;
        rows.iter().map(|row| get(row, 0)).collect()
    }

    async fn end_requests(&self, numbers: Vec<i64>) -> Result<u64, SqlError> {
        self.execute(END_REQUESTS, &[&self.node, &numbers]).await
    }

    /// Takes up requests of other nodes, but for those that were begun. `now`: by the database's clock.
    async fn take_requests(
        &self,
        fence: i64,
        now: i64,
        begun: &BegunRequests,
    ) -> Result<Vec<TakenRequest>, SqlError> {
        let limit = i64::try_from(TAKEN_AT_ONCE.0).unwrap_or(i64::MAX);
        let (nodes, numbers) = begun.columns();
        let parameters: Parameters<'_> = &[&fence, &limit, &now, &nodes, &numbers, &TAKEN_BYTES];
        let rows = self.rows(TAKE_REQUESTS, parameters).await?;
        let read = |row: &Row| {
            let key = (get(row, 0)?, get(row, 1)?);
            Ok(TakenRequest { key, body: get(row, 2)?, is_once: get(row, 3)? })
        };
        rows.iter().map(read).collect()
    }

    /// Puts an answer into the table; a few times where a connection breaks off.
    async fn answer_request(
        &self,
        (node, number): (i64, i64),
        answer: &[u8],
        fence: i64,
    ) -> Result<(), SqlError> {
        let parameters: Parameters<'_> = &[&node, &number, &answer, &fence];
        retried(LOOK_PAUSES.1, || self.execute(ANSWER, parameters)).await.map(drop)
    }
}

/// A request of another node that was taken up.
struct TakenRequest {
    /// The node, and the request's number there.
    key: (i64, i64),
    body: Vec<u8>,
    /// Whether it may be carried out once at most.
    is_once: bool,
}

/// The requests that this node has begun to carry out, each until its answer is in the table. One that may be carried out
/// once, and whose answer may not have arrived, stays for as long as it may be in the table.
#[derive(Default)]
struct BegunRequests(Mutex<HashMap<(i64, i64), Option<Instant>>>);

impl BegunRequests {
    fn all(&self) -> MutexGuard<'_, HashMap<(i64, i64), Option<Instant>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self, key: (i64, i64)) {
        self.all().insert(key, None);
    }

    fn end(&self, key: (i64, i64), stays: bool) {
        let mut all = self.all();
        match stays {
            true => drop(all.insert(key, Some(Instant::now() + FORGET_AFTER + FORGET_EVERY))),
            false => drop(all.remove(&key)),
        }
    }

    /// As a statement takes them.
    fn columns(&self) -> (Vec<i64>, Vec<i64>) {
        let (now, mut all) = (Instant::now(), self.all());
        all.retain(|_, until| until.is_none_or(|until| until > now));
        all.keys().copied().unzip()
    }
}

/// The time by the database's clock, which is asked for now and then.
#[derive(Default)]
struct DatabaseClock(Option<(i64, Instant)>);

impl DatabaseClock {
    /// The time in milliseconds.
    async fn now(&mut self, session: &SessionShared) -> Result<i64, SqlError> {
        let (time, at) = match self.0 {
            Some(known) if known.1.elapsed() < CLOCK_EVERY => known,
            _ => *self.0.insert((session.pool.now().await?.0, Instant::now())),
        };
        Ok(time.saturating_add(i64::try_from(at.elapsed().as_millis()).unwrap_or(i64::MAX)))
    }
}

/// Carries out the requests of other nodes while this one writes, until the session ends.
pub(super) async fn answer_requests(shared: Weak<SessionShared>, answers: Arc<dyn AnswerRequests>) {
    let (mut pause, mut forget_at) = (LOOK_PAUSES.0, Instant::now() + FORGET_EVERY);
    let mut last_taken = Instant::now();
    let mut clock = DatabaseClock::default();
    let mut running = JoinSet::new();
    let begun = Arc::new(BegunRequests::default());
    loop {
        let Some(session) = shared.upgrade() else { return };
        while running.try_join_next().is_some() {}
        while running.len() >= TAKEN_AT_ONCE.1 {
            running.join_next().await;
        }
        if Instant::now() >= forget_at {
            forget_at = Instant::now() + FORGET_EVERY;
            session.forget_requests().await;
        }
        let fence = session.held_fence().unwrap_or_default();
        let taken = match (session.held_fence(), clock.now(&session).await) {
            (Some(fence), Ok(now)) => session.take_requests(fence, now, &begun).await,
            (None, _) => Ok(Vec::new()),
            (_, Err(error)) => Err(error),
        };
        let taken = taken.unwrap_or_else(|error| {
            tracing::debug!(?error, "requests of other gateways could not be read");
            Vec::new()
        });
        if !taken.is_empty() {
            last_taken = Instant::now();
        }
        pause = match taken.is_empty() {
            true if last_taken.elapsed() > IDLE.1 => IDLE.0,
            true => pause.saturating_mul(2).clamp(LOOK_PAUSES.0, LOOK_PAUSES.1),
            false => Duration::ZERO,
        };
        for TakenRequest { key, body, is_once } in taken {
            let (of_store, session) = (Arc::clone(&answers), Arc::downgrade(&session));
            let begun = Arc::clone(&begun);
            begun.begin(key);
            running.spawn(async move {
                let GatewayAnswer { bytes, permits } = of_store.answer(body).await;
                let Some(session) = session.upgrade() else { return };
                let answered = session.answer_request(key, &bytes, fence).await;
                drop((bytes, permits));
                if let Err(error) = &answered {
                    tracing::debug!(?error, "another gateway could not be answered");
                }
                begun.end(key, is_once && answered.is_err());
            });
        }
        drop(session);
        sleep(pause).await;
    }
}

impl SessionShared {
    /// Forgets requests that nobody waits for any more.
    async fn forget_requests(&self) {
        let forgotten = async {
            let (now, _) = self.pool.now().await?;
            let age = i64::try_from(FORGET_AFTER.as_millis()).unwrap_or(i64::MAX);
            self.execute(FORGET_REQUESTS, &[&now.saturating_sub(age)]).await
        };
        let _ = timeout(ANSWER_TIME, forgotten).await;
    }
}

#[cfg(test)]
mod tests;
