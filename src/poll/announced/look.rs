//! One look at a SUP document: asks for it, and for those of longer periods that it leads to.

use crate::sup::{Question, SupError};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tidegate_core::model::{SupId, Time};
use tidegate_core::sup::{Follower, FollowerStatus, SupDocument};
use tidegate_net::fetch::{Fetch, FetchError, PauseRequest};
use tokio::time::timeout;

/// How long a look may take, with all documents that are asked for in it.
pub const LOOK_TIME: Duration = Duration::from_secs(60);
/// How often a document of a longer period is asked for in one look; each is of a longer one.
const LONGER: usize = 16;

/// What a request for a document needs, and keeps.
#[derive(Debug, Clone)]
pub(super) struct SupRequest {
    pub(super) question: Question,
    pub(super) follower: Follower,
}

/// What came of a look.
pub struct Looked {
    pub(super) look: SupRequest,
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Told {
    /// `updated_time`.
    pub(super) updated: Time,
    pub(super) listed: BTreeSet<SupId>,
    pub(super) missed: bool,
    pub(super) period: u32,
    /// Where documents of other periods are.
    pub(super) available: BTreeMap<u32, String>,
}

/// A look that is about to begin.
pub struct Begun(pub(super) SupRequest);

impl Begun {
    /// The address that is asked.
    pub fn address(&self) -> &str {
        &self.0.question.address
    }

    /// Asks for the document, and for those of longer periods where it does not reach back to the
    /// last one that was read.
    pub async fn read_updates(self, fetch: &Fetch, now: Time) -> Looked {
        let Self(mut look) = self;
        let before = look.follower.clone();
        let late = FetchError::Timeout { what: "send its SUP documents", limit: LOOK_TIME };
        let read = timeout(LOOK_TIME, look.read(fetch, now)).await;
        let result = read.unwrap_or_else(|_| Err(late.into()));
        if result.is_err() {
            // Half of what was to be read is nothing: the same is asked again, whole.
            look.follower = before;
            look.question = look.question.anew();
        }
        Looked { look, result }
    }
}

impl SupRequest {
    pub(super) async fn read(
        &mut self,
        fetch: &Fetch,
        now: Time,
    ) -> Result<Option<Told>, SupError> {
        let Some(mut document) = self.question.ask(fetch, now).await? else { return Ok(None) };
        let updated = document.updated;
        let (period, available) = (document.period, std::mem::take(&mut document.available));
        document.available.clone_from(&available);
        let mut told = Told { updated, listed: BTreeSet::new(), missed: false, period, available };
        for _ in 0..LONGER {
            match self.apply_document(&document, &mut told) {
                FollowerStatus::Complete => return Ok(Some(told)),
                FollowerStatus::Missed { .. } => break,
                FollowerStatus::Ask { address, .. } => {
                    match self.question.of_another(address).ask(fetch, now).await? {
                        Some(longer) => document = longer,
                        None => break,
                    }
                }
            }
        }
        told.missed = true;
        Ok(Some(told))
    }

    fn apply_document(&mut self, document: &SupDocument, told: &mut Told) -> FollowerStatus {
        let news = self.follower.apply_document(document);
        told.listed.extend(news.updates.into_iter().map(|update| update.id));
        news.standing
    }
}
