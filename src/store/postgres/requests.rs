//! Requests of nodes to the one that writes, and its answers: rows of a table that a restart of the database empties.
//!
//! A node that other nodes took for dead asks for nothing more: its row is gone, and the request with it. The node that
//! writes takes up each request once, under the fence of its claim; one that it had taken up when it ended is taken up
//! by the next. So a request may be carried out twice, and whoever carries it out checks that it still applies.

use super::connect::SqlError;
use super::session::{ANSWER_TIME, Session, SessionShared, get};
use super::statements::{ANSWER, ANSWERS, ASK, END_REQUESTS, FORGET_REQUESTS, TAKE_REQUESTS};
use crate::store::StoreError;
use crate::store::embedded::{AnswerRequests, AskWriter, WriterAnswer};
use async_trait::async_trait;
use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::{Notify, Semaphore, oneshot};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

/// The largest request and the largest answer, in bytes.
const REQUEST_LIMIT: usize = 128 << 20;
/// The most writes and the most questions of a node that wait for answers; others wait to be sent. A question may take
/// long, and holds no write up.
const AT_ONCE: (usize, usize) = (64, 16);
/// The most requests that are taken up at once, and that are carried out at the same time.
const TAKEN_AT_ONCE: (usize, usize) = (16, 256);
/// The pauses between looks for answers, and for requests while there are some: the first and the longest.
const LOOK_PAUSES: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(40));
/// The pause between looks for requests while none come, and after how long without any.
const IDLE: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(5));
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

/// Requests that were sent and are not answered yet.
#[derive(Default)]
struct WaitingRequests {
    last: AtomicI64,
    replies: Mutex<HashMap<i64, oneshot::Sender<Vec<u8>>>>,
    sent: Notify,
}

impl WaitingRequests {
    fn replies(&self) -> MutexGuard<'_, HashMap<i64, oneshot::Sender<Vec<u8>>>> {
        self.replies.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands answers to whoever waits for them, until the session ends.
    async fn hand_out(session: Weak<SessionShared>, waiting: Weak<Self>) {
        let mut pause = LOOK_PAUSES.0;
        loop {
            let Some(this) = waiting.upgrade() else { return };
            if this.replies().is_empty() {
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
            let mut replies = this.replies();
            for (number, answer) in answered {
                // Who asked may have given up.
                let _ = replies.remove(&number).map(|reply| reply.send(answer));
            }
        }
    }
}

impl RequestSender {
    /// One over a session, which it does not outlive.
    pub(super) fn new(session: &Arc<Session>) -> Self {
        let waiting = Arc::new(WaitingRequests::default());
        let shared = Arc::downgrade(session.shared_handle());
        session.spawn(WaitingRequests::hand_out(shared, Arc::downgrade(&waiting)));
        let (writes, questions) = (Semaphore::new(AT_ONCE.0), Semaphore::new(AT_ONCE.1));
        Self { session: Arc::downgrade(session), writes, questions, waiting }
    }

    /// Sends a request and waits for its answer.
    async fn exchange(&self, body: Vec<u8>, until: Instant) -> Result<WriterAnswer, StoreError> {
        let session = || self.session.upgrade().ok_or(StoreError::Closed);
        let number = self.waiting.last.fetch_add(1, Ordering::Relaxed);
        let (reply, answer) = oneshot::channel();
        self.waiting.replies().insert(number, reply);
        let sent = session()?
            .run_async("ask the gateway that writes", move |shared| async move {
                shared.ask_writer(number, &body).await
            })
            .await;
        match sent {
            Ok(true) => {}
            Ok(false) => {
                self.waiting.replies().remove(&number);
                return Ok(WriterAnswer::Forgotten);
            }
            Err(error) => {
                self.waiting.replies().remove(&number);
                return Err(error);
            }
        }
        self.waiting.sent.notify_one();
        let left = until.saturating_duration_since(Instant::now());
        if let Ok(Ok(answer)) = timeout(left, answer).await {
            return Ok(WriterAnswer::Answered(answer));
        }
        self.waiting.replies().remove(&number);
        // It is not carried out any more, unless it was taken up.
        let ended = session()?
            .run_async("withdraw a request", move |shared| async move {
                shared.end_requests(vec![number]).await
            })
            .await;
        ended.map(|_| WriterAnswer::Unknown)
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
        let until = Instant::now() + limit;
        if body.len() > REQUEST_LIMIT {
            let what = "a request to the gateway that writes".to_owned();
            return Err(StoreError::TooLarge { what, size: body.len(), limit: REQUEST_LIMIT });
        }
        let room = if is_question { &self.questions } else { &self.writes };
        match timeout(limit, room.acquire()).await {
            Ok(Ok(_room)) => self.exchange(body, until).await,
            _ => Ok(WriterAnswer::Unknown),
        }
    }
}

impl SessionShared {
    /// Sends a request; whether this node may still ask.
    async fn ask_writer(&self, number: i64, body: &[u8]) -> Result<bool, SqlError> {
        let (now, _) = self.now().await?;
        Ok(self.execute(ASK, &[&self.node, &number, &now, &body]).await? == 1)
    }

    /// Answers that have come, which are taken away.
    async fn answers(&self) -> Result<Vec<(i64, Vec<u8>)>, SqlError> {
        let limit = i64::try_from(TAKEN_AT_ONCE.0).unwrap_or(i64::MAX);
        let rows = self.rows(ANSWERS, &[&self.node, &limit]).await?;
        let answered: Result<Vec<(i64, Vec<u8>)>, SqlError> =
            rows.iter().map(|row| Ok((get(row, 0)?, get(row, 1)?))).collect();
        let answered = answered?;
        if !answered.is_empty() {
            self.end_requests(answered.iter().map(|(number, _)| *number).collect()).await?;
        }
        Ok(answered)
    }

    async fn end_requests(&self, numbers: Vec<i64>) -> Result<u64, SqlError> {
        self.execute(END_REQUESTS, &[&self.node, &numbers]).await
    }

    /// Takes up requests of other nodes: node, number and body of each.
    async fn take_requests(&self, fence: i64) -> Result<Vec<(i64, i64, Vec<u8>)>, SqlError> {
        let limit = i64::try_from(TAKEN_AT_ONCE.0).unwrap_or(i64::MAX);
        let rows = self.rows(TAKE_REQUESTS, &[&fence, &limit]).await?;
        rows.iter().map(|row| Ok((get(row, 0)?, get(row, 1)?, get(row, 2)?))).collect()
    }
}

/// Carries out the requests of other nodes while this one writes, until the session ends.
pub(super) async fn answer_requests(shared: Weak<SessionShared>, answers: Arc<dyn AnswerRequests>) {
    let (mut pause, mut forget_at) = (LOOK_PAUSES.0, Instant::now() + FORGET_EVERY);
    let mut last_taken = Instant::now();
    let mut running = JoinSet::new();
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
        let taken = match session.held_fence() {
            Some(fence) => session.take_requests(fence).await,
            None => Ok(Vec::new()),
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
        for (node, number, body) in taken {
            let (of_store, session) = (Arc::clone(&answers), Arc::downgrade(&session));
            running.spawn(async move {
                let answer = of_store.answer(body).await;
                let Some(session) = session.upgrade() else { return };
                let answered = session.execute(ANSWER, &[&node, &number, &answer]).await;
                if let Err(error) = answered {
                    tracing::debug!(?error, "another gateway could not be answered");
                }
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
            let (now, _) = self.now().await?;
            let age = i64::try_from(FORGET_AFTER.as_millis()).unwrap_or(i64::MAX);
            self.execute(FORGET_REQUESTS, &[&now.saturating_sub(age)]).await
        };
        let _ = timeout(ANSWER_TIME, forgotten).await;
    }
}
