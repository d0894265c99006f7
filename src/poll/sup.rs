//! Reading the SUP documents of publishers: one request that asks for all their feeds.

use crate::fetch::{Answer, Fetch, FetchError, FetchRequest, Validators};
use crate::model::Time;
use crate::sup::{Document, ReadError, read};
use tower::ServiceExt as _;

/// The request for a SUP document, and what its last answer was validated by.
#[derive(Debug, Clone, Default)]
pub struct Question {
    /// The address of the document.
    pub address: String,
    validators: Validators,
    wire: Option<u128>,
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
    pub fn of(address: impl Into<String>) -> Self {
        Self { address: address.into(), ..Self::default() }
    }

    /// Asks; `None` where nothing has changed since the last answer.
    pub async fn ask(&mut self, fetch: &Fetch, now: Time) -> Result<Option<Document>, SupError> {
        let request = FetchRequest {
            url: self.address.clone(),
            start: None,
            validators: self.validators.clone(),
            known_wire: self.wire,
            deltas: false,
            now,
        };
        let fetched = fetch.clone().oneshot(request).await?;
        let document = match fetched.answer {
            Answer::NotModified | Answer::Same => return Ok(None),
            Answer::Document(document) => document,
        };
        let bytes = document.bytes;
        // One of a million feeds takes a while.
        let read = tokio::task::spawn_blocking(move || read(&bytes)).await;
        let read = read.map_err(|error| SupError::Defect(error.to_string()))??;
        // What could not be read is asked for again whole.
        self.validators = fetched.validators;
        self.wire = Some(document.prints.wire);
        Ok(Some(read))
    }
}
