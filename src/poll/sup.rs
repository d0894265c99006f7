//! Reading the SUP documents of publishers: one request that asks for all their feeds.

use std::collections::BTreeSet;
use std::sync::Arc;
use tidegate_core::model::{SupId, Time};
use tidegate_core::sup::{ReadError, SupDocument, read_of};
use tidegate_net::fetch::{Fetch, FetchAnswer, FetchError, FetchRequest, LeadScope, Validators};
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
