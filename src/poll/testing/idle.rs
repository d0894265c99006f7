//! Idle polling: it does nothing by itself, and its feeds have the status that a test sets.

use crate::memory::FeedMemory;
use crate::poller::PollCommand;
use crate::schedule::PlannedPoll;
use crate::scheduler::PollScheduler;
use crate::testing::double::poller_config;
use crate::*;
use std::sync::{Arc, Mutex};
use tidegate_core::clock::Clock;
use tidegate_core::model::{FeedName, FeedRecord, Overlap, PollState};
use tidegate_net::fetch::Services;
use tidegate_status::PollStatus;
use tidegate_store::Store;
use tokio::sync::mpsc;

pub const CALLBACKS: &str = "https://feeds.example.org/websub/callback";

/// A poller whose task does not run yet; commands wait until then.
pub struct IdlePolling {
    pub poller: Poller,
    task: Mutex<Option<(PollScheduler, mpsc::Receiver<PollCommand>)>>,
}

impl IdlePolling {
    pub fn new(store: &Arc<Store>, clock: &Arc<dyn Clock>, services: Services) -> Self {
        let callbacks = CALLBACKS.to_owned();
        let reach = Reach { callbacks, own_hosts: false, http_secrets: false };
        let (poller, scheduler, inbox) = Poller::prepare(PollerConfig {
            settings: PollSettings { reach: Some(reach), ..PollSettings::default() },
            ..poller_config(Arc::clone(store), clock, services)
        });
        Self { poller, task: Mutex::new(Some((scheduler, inbox))) }
    }

    /// Starts the task with all feeds of the store.
    pub async fn start(&self) {
        let task = self.task.lock().unwrap().take();
        let Some((mut scheduler, inbox)) = task else { return };
        scheduler.load().await.unwrap();
        tokio::spawn(scheduler.run(inbox));
    }

    /// Starts the task without feeds; only feeds put later are polled.
    pub fn start_empty(&self) {
        let task = self.task.lock().unwrap().take();
        if let Some((scheduler, inbox)) = task {
            tokio::spawn(scheduler.run(inbox));
        }
    }

    pub fn forget(&self, feed: &FeedName) {
        self.poller.context.table.remove(feed);
    }

    /// Adds a polled feed with this status; if a poll failed, the feed was never read.
    pub fn tell(&self, record: &FeedRecord, status: PollStatus) {
        let context = &self.poller.context;
        let now = context.clock.now();
        let disbelieved = status.hub.as_ref().map(|hub| Box::new(hub.disbelieved.clone()));
        let state = PollState {
            failures: status.failures,
            overlap: Overlap {
                missed: status.gaps.count,
                last_missed: status.gaps.last,
                ..Overlap::default()
            },
            interruptions: status.interruptions,
            moved_to: status.moved_to,
            backfill: status.backfill.map(Box::new),
            subscription: status.hub.map(|hub| Box::new(hub.subscription)),
            ..PollState::new(&record.name, &record.url)
        };
        let cell =
            context.table.insert(Arc::new(record.clone()), FeedMemory::from_stored(state, now));
        let mut feed = cell.lock();
        feed.live.since = Some(now);
        let mut document = status.document;
        for poll in status.polls.into_iter().rev() {
            context.table.totals.lock().add(&poll);
            feed.add(poll, document.take(), false);
        }
        status.probes.into_iter().rev().for_each(|probe| feed.add_probe(probe));
        feed.live.is_probing = status.probing;
        feed.disbelieved = disbelieved;
        feed.live.next = status.next.map(|next| PlannedPoll::new(next.at, next.reason));
    }
}
