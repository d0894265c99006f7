//! Reading the SUP documents of publishers: one request that asks for all their feeds.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::model::{SupId, Time};
use tidegate_core::sup::{Follower, FollowerStatus, ReadError, SupDocument, read_of};
use tidegate_net::fetch::{
    Fetch, FetchAnswer, FetchError, FetchRequest, LeadScope, PauseRequest, Validators,
};
use tokio::time::timeout;
use tower::ServiceExt as _;

/// The request for a SUP document, and what its last answer was validated by.
#[derive(Debug, Clone, Default)]
pub struct Question {
    /// The address of the document.
    pub address: String,
    validators: Validators,
    wire: Option<u128>,
    /// The ids whose updates matter; `None`: all.
    only: Option<Arc<BTreeSet<SupId>>>,
    /// On whose word it is asked for, and on whose what it names.
    leads: LeadScope,
    names: LeadScope,
}

/// Why a SUP document could not be read.
#[derive(Debug, thiserror::Error)]
pub enum SupError {
    /// It could not be fetched.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// It is none.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// Reading it failed in a way that it must not.
    #[error("reading the SUP document failed: {0}")]
    Defect(String),
}

impl Question {
    /// The first request for a document.
    pub fn new(address: impl Into<String>, leads: LeadScope) -> Self {
        let address = address.into();
        Self { names: leads.clone().by_answer(&address), address, leads, ..Self::default() }
    }

    /// On whose word it is asked for.
    #[cfg(test)]
    pub const fn leads(&self) -> &LeadScope {
        &self.leads
    }

    /// The same request, as the first one.
    #[must_use]
    pub fn anew(&self) -> Self {
        Self { validators: Validators::default(), wire: None, ..self.clone() }
    }

    /// The same request of which only the updates of these ids matter. Where they are others than
    /// before, what was answered before is no reason not to read it.
    pub fn only(&mut self, ids: &Arc<BTreeSet<SupId>>) {
        if self.only.as_ref() != Some(ids) {
            *self = Self { only: Some(Arc::clone(ids)), ..self.anew() };
        }
    }

    /// The first request for another document that this one names, of which the same matters.
    pub fn of_another(&self, address: impl Into<String>) -> Self {
        Self { address: address.into(), leads: self.names.clone(), ..self.anew() }
    }

    /// Asks; `None` where nothing has changed since the last answer.
    pub async fn ask(&mut self, fetch: &Fetch, now: Time) -> Result<Option<SupDocument>, SupError> {
        let request = FetchRequest {
            validators: self.validators.clone(),
            known_wire: self.wire,
            soon: true,
            leads: self.leads.clone(),
            ..FetchRequest::whole(self.address.clone(), now)
        };
        let fetched = fetch.clone().oneshot(request).await?;
        let document = match fetched.answer {
            FetchAnswer::NotModified | FetchAnswer::Same => return Ok(None),
            FetchAnswer::Document(document) => document,
        };
        let (bytes, only) = (document.bytes, self.only.clone());
        // One of a million feeds takes a while.
        let read = tokio::task::spawn_blocking(move || read_of(&bytes, only.as_deref())).await;
        let read = read.map_err(|error| SupError::Defect(error.to_string()))??;
        // What could not be read is asked for again whole.
        self.validators = fetched.validators;
        self.wire = Some(document.prints.wire);
        Ok(Some(read))
    }
}

/// How long a look may take, with all documents that are asked for in it.
pub const LOOK_TIME: Duration = Duration::from_secs(60);
/// How often a document of a longer period is asked for in one look; each is of a longer one.
const LONGER: usize = 16;

/// The next look at a document: the request, and what it knows by those before.
#[derive(Debug, Clone)]
pub struct SupLook {
    pub(crate) question: Question,
    pub(crate) follower: Follower,
}

/// What came of a look.
pub struct Looked {
    pub(crate) look: SupLook,
    /// `None`: the same document as before.
    pub(crate) result: Result<Option<Told>, SupError>,
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
pub(crate) struct Told {
    pub(crate) listed: BTreeSet<SupId>,
    /// Whether there may be more, because it does not reach back to the last one that was read.
    pub(crate) missed: bool,
    /// Its period in seconds, where one was read.
    pub(crate) period: Option<u32>,
    /// Where documents of other periods are.
    pub(crate) available: BTreeMap<u32, String>,
}

impl SupLook {
    /// The first look at a document.
    pub(crate) fn new(address: &str, leads: LeadScope) -> Self {
        Self { question: Question::new(address, leads), follower: Follower::new() }
    }

    /// The address that is asked.
    pub fn address(&self) -> &str {
        &self.question.address
    }

    /// These ids are followed: what else the document lists is nothing to remember.
    pub(crate) fn only(&mut self, ids: BTreeSet<SupId>) {
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
