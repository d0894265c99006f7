//! Stand-in for the room that reads documents, with its signatures only.

use crate::model::{FeedDocument, Warning};
use std::borrow::Cow;

/// What a document may contain.
#[derive(Debug, Clone, Default)]
pub struct Limits {}

/// Why bytes are no feed document.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// Nothing can be read yet.
    #[error("documents cannot be read by this build")]
    Unbuilt,
}

/// A document's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decoded<'a> {
    /// The text.
    pub text: Cow<'a, str>,
    /// What was wrong.
    pub warnings: Vec<Warning>,
}

/// Decodes the bytes of a document to text.
pub fn decode<'a>(
    _bytes: &'a [u8],
    _content_type: Option<&str>,
    _limits: &Limits,
) -> Result<Decoded<'a>, ParseError> {
    Err(ParseError::Unbuilt)
}

/// Parses a decoded document that was found at `url`.
pub fn document<'a>(
    _text: &'a str,
    _url: &str,
    _limits: &Limits,
) -> Result<FeedDocument<'a>, ParseError> {
    Err(ParseError::Unbuilt)
}
