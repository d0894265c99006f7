//! One look at a SUP document: asks for it, and for those of longer periods that it leads to.

use crate::sup::{Question, SupError};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::model::{SupId, Time};
use tidegate_core::sup::{Follower, FollowerStatus};
use tidegate_net::fetch::{Fetch, FetchError, LeadScope, PauseRequest};
use tokio::time::timeout;

/// How long a look may take, with all documents that are asked for in it.
pub const LOOK_TIME: Duration = Duration::from_secs(60);
/// How often a document of a longer period is asked for in one look; each is of a longer one.
const LONGER: usize = 16;

/// The next look at a document: the request, and what it knows by those before.
#[derive(Debug, Clone)]
pub struct SupLook {
    pub(super) question: Question,
    pub(super) follower: Follower,
}

/// What came of a look.
pub struct Looked {
    pub(super) look: SupLook,
    /// `None`: the same document as before.
    pub(super) result: Result<Option<Told>, SupError>,
}

impl Looked {
    /// What a host asks for in answer.
    pub fn pause(&self) -> Option<PauseRequest> {
        match &self.result {
            Err(SupError::Fetch(error)) => error.pause(&self.look.question.address),
            _ => None,
        }
    }
}

/// What a document told.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Told {
    pub(super) listed: BTreeSet<SupId>,
    /// Whether there may be more, because it does not reach back to the last one that was read.
    pub(super) missed: bool,
    /// Its period in seconds, where one was read.
    pub(super) period: Option<u32>,
    /// Where documents of other periods are.
    pub(super) available: BTreeMap<u32, String>,
}

impl SupLook {
    /// The first look at a document.
    pub(super) fn new(address: &str, leads: LeadScope) -> Self {
        Self { question: Question::new(address, leads), follower: Follower::new() }
    }

    /// The address that is asked.
    pub fn address(&self) -> &str {
        &self.question.address
    }

    /// These ids are followed: what else the document lists is nothing to remember.
    pub(super) fn only(&mut self, ids: BTreeSet<SupId>) {
        let ids = Arc::new(ids);
        self.question.only(&ids);
        self.follower.keep_only(&ids);
    }

    /// Asks for the document, and for those of longer periods where it does not reach back to the
    /// last one that was read.
    pub async fn read_updates(mut self, fetch: &Fetch, now: Time) -> Looked {
        let before = self.follower.clone();
        let late = FetchError::Timeout { what: "send its SUP documents", limit: LOOK_TIME };
        let read = timeout(LOOK_TIME, self.read(fetch, now)).await;
        let result = read.unwrap_or_else(|_| Err(late.into()));
        if result.is_err() {
            // Half of what was to be read is nothing: the same is asked again, whole.
            self.follower = before;
            self.question = self.question.anew();
        }
        Looked { look: self, result }
    }

    async fn read(&mut self, fetch: &Fetch, now: Time) -> Result<Option<Told>, SupError> {
        let Some(mut document) = self.question.ask(fetch, now).await? else { return Ok(None) };
        let mut told = Told {
            period: Some(document.period),
            available: document.available.clone(),
            ..Told::default()
        };
        for _ in 0..LONGER {
            let news = self.follower.apply_document(&document);
            told.listed.extend(news.updates.into_iter().map(|update| update.id));
            let address = match news.standing {
                FollowerStatus::Complete => return Ok(Some(told)),
                FollowerStatus::Missed { .. } => break,
                FollowerStatus::Ask { address, .. } => address,
            };
            match self.question.of_another(address).ask(fetch, now).await? {
                Some(longer) => document = longer,
                None => break,
            }
        }
        told.missed = true;
        Ok(Some(told))
    }
}
