//! Groups of requests: what waits is carried out together, behind one barrier.

use super::super::request::{CommitRequest, PendingAnswer, Touches};
use super::{CommitGroup, Committer};
use crate::Epoch;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// The most requests behind one barrier; also bounds an epoch.
const GROUP_LIMIT: usize = 256;
/// How far apart groups begin while more than one request comes at a time.
const GROUP_EVERY: Duration = Duration::from_millis(20);
/// For how long a group writes to a database that is far away, where each write takes round trips, before it passes its
/// barrier. Until then nobody is answered, and other gateways cannot read the content of the feeds that it wrote to.
const GROUP_TIME: Duration = Duration::from_millis(100);
/// The requests that it carries out however long they take: a barrier behind each would take as long as they do.
const GROUP_LEAST: usize = 4;

impl Committer {
    /// Serves requests until the store fails, or nobody can send any more; then passes a last barrier.
    pub(in crate::embedded) fn run(&mut self, requests: &mut mpsc::Receiver<CommitRequest>) {
        let mut last: Option<(Instant, usize)> = None;
        let mut waiting = VecDeque::new();
        loop {
            if waiting.is_empty() {
                match requests.blocking_recv() {
                    Some(first) => waiting.push_back(first),
                    None => break,
                }
            }
            gather(&mut waiting, requests);
            // An isolated request goes at once. Where requests come together, waiting for the next
            // beat lets one barrier serve more of them.
            if let Some((begun, size)) = last
                && size.max(waiting.len()) > 1
                && waiting.len() < GROUP_LIMIT
            {
                std::thread::sleep(GROUP_EVERY.saturating_sub(begun.elapsed()));
                gather(&mut waiting, requests);
            }
            last = Some((Instant::now(), waiting.len()));
            self.serve(&mut waiting);
            while self.clean() && waiting.is_empty() && requests.is_empty() {}
            if self.shared.health().is_err() {
                // What was not begun is refused.
                self.serve(&mut waiting);
                return;
            }
        }
        self.pass();
    }

    /// Does what is asked for, passes one barrier for all of it, and answers. What it has no time for is left in
    /// `requests`, unless the store has failed.
    pub(in crate::embedded) fn serve(&mut self, requests: &mut VecDeque<CommitRequest>) {
        let is_listed = requests.iter().any(|request| request.touches == Touches::Lists);
        let gate = Arc::clone(&self.shared.lists);
        // A gate is poisoned only where the committer panicked, which ends it.
        let shut = is_listed.then(|| gate.write().unwrap_or_else(PoisonError::into_inner));
        let mut group = CommitGroup {
            epoch: Epoch(self.sealed.0.0 + 1),
            changes: 0,
            at: self.clock.now().max(self.sealed.1),
            feeds: BTreeMap::new(),
            listed: Vec::new(),
            shut: Vec::new(),
            wrote: false,
            reached: false,
        };
        let shared = Arc::clone(&self.shared);
        let health = || shared.health();
        let limit = self.records.is_far().then_some(GROUP_TIME);
        let begun = Instant::now();
        let mut answers: Vec<PendingAnswer> = Vec::with_capacity(requests.len());
        while let Some(request) = requests.pop_front() {
            answers.push(request.apply(self, &mut group, &health));
            let is_over = limit.is_some_and(|limit| begun.elapsed() >= limit);
            if is_over && answers.len() >= GROUP_LEAST && health().is_ok() {
                break;
            }
        }
        let is_shown = group.wrote && health().is_ok() && self.pass() && self.publish(&mut group);
        group.shut.iter().for_each(|pins| pins.open());
        drop(shut);
        // What is durable and shown is acknowledged, whatever failed since.
        let acknowledge = || if is_shown { Ok(()) } else { health() };
        for answer in answers {
            answer(&acknowledge);
        }
    }
}

/// Takes what is waiting, as far as the group has room.
fn gather(waiting: &mut VecDeque<CommitRequest>, requests: &mut mpsc::Receiver<CommitRequest>) {
    while waiting.len() < GROUP_LIMIT {
        match requests.try_recv() {
            Ok(request) => waiting.push_back(request),
            Err(_) => break,
        }
    }
}
