//! Groups of requests: what waits is carried out together, behind one barrier.

use super::super::request::{CommitRequest, PendingAnswer};
use super::{CommitGroup, Committer};
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// The most requests behind one barrier; also bounds an epoch.
const GROUP_LIMIT: usize = 256;
/// How far apart groups begin while more than one request comes at a time.
const GROUP_EVERY: Duration = Duration::from_millis(20);

impl Committer {
    /// Serves requests until the store fails, or nobody can send any more; then passes a last barrier.
    pub(in crate::embedded) fn run(&mut self, requests: &mut mpsc::Receiver<CommitRequest>) {
        let mut last: Option<(Instant, usize)> = None;
        while let Some(first) = requests.blocking_recv() {
            let mut group = vec![first];
            gather(&mut group, requests);
            // An isolated request goes at once. Where requests come together, waiting for the next
            // beat lets one barrier serve more of them.
            if let Some((begun, size)) = last
                && size.max(group.len()) > 1
                && group.len() < GROUP_LIMIT
            {
                std::thread::sleep(GROUP_EVERY.saturating_sub(begun.elapsed()));
                gather(&mut group, requests);
            }
            last = Some((Instant::now(), group.len()));
            self.serve(group);
            if self.shared.health().is_err() {
                return;
            }
        }
        self.pass();
    }

    /// Does what is asked for, passes one barrier for all of it, and answers.
    pub(in crate::embedded) fn serve(&mut self, requests: Vec<CommitRequest>) {
        let is_listed = requests.iter().any(|request| !request.is_of_feed);
        let gate = Arc::clone(&self.shared.lists);
        // A gate is poisoned only where the committer panicked, which ends it.
        let shut = is_listed.then(|| gate.write().unwrap_or_else(PoisonError::into_inner));
        self.group = CommitGroup::behind(self.sealed, self.clock.now());
        let shared = Arc::clone(&self.shared);
        let health = || shared.health();
        let apply = |request: CommitRequest| request.apply(self, &health);
        let answers: Vec<PendingAnswer> = requests.into_iter().map(apply).collect();
        let is_shown = self.group.wrote && health().is_ok() && self.pass();
        if is_shown {
            self.publish();
        }
        drop(shut);
        // What is durable and shown is acknowledged, whatever failed since.
        let acknowledge = || if is_shown { Ok(()) } else { health() };
        for answer in answers {
            answer(&acknowledge);
        }
    }
}

/// Takes what is waiting, as far as the group has room.
fn gather(group: &mut Vec<CommitRequest>, requests: &mut mpsc::Receiver<CommitRequest>) {
    while group.len() < GROUP_LIMIT {
        match requests.try_recv() {
            Ok(request) => group.push(request),
            Err(_) => break,
        }
    }
}
