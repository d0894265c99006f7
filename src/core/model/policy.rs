//! How a feed takes part in sharing, as its operator says.

use super::{EndpointId, FeedName, IdError};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// What becomes of the versions that are in conflict once a merge is done (SSE 1.0 section 3.4).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub enum ConflictPolicy {
    /// They are kept until a person resolves them.
    #[default]
    Keep,
    /// The winning version is kept.
    Winner,
    /// What this endpoint says is kept; where none of the versions is its own, the winning one.
    Prefer(EndpointId),
}

/// Why a text is no [`ConflictPolicy`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// It is none of the words.
    #[error("{0:?} is unknown; write one of \"keep\", \"winner\", \"prefer:ENDPOINT\"")]
    Unknown(String),
    /// What is preferred is no endpoint.
    #[error("what stands behind \"prefer:\" is the id of an endpoint: {0}")]
    Endpoint(#[source] IdError),
}

/// The word that an endpoint follows.
const PREFER: &str = "prefer:";
/// How much of a wrong word is said back, in characters.
const SAID: usize = 64;

impl FromStr for ConflictPolicy {
    type Err = PolicyError;

    fn from_str(text: &str) -> Result<Self, PolicyError> {
        match (text, text.strip_prefix(PREFER)) {
            ("keep", _) => Ok(Self::Keep),
            ("winner", _) => Ok(Self::Winner),
            (_, Some(endpoint)) => {
                EndpointId::new(endpoint).map(Self::Prefer).map_err(PolicyError::Endpoint)
            }
            _ => Err(PolicyError::Unknown(text.chars().take(SAID).collect())),
        }
    }
}

impl fmt::Display for ConflictPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Keep => f.write_str("keep"),
            Self::Winner => f.write_str("winner"),
            Self::Prefer(endpoint) => write!(f, "{PREFER}{endpoint}"),
        }
    }
}

/// What an operator says of how a feed takes part in sharing.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct SharingOptions {
    /// Its items are made here. Where it has an address too, what that shares is merged into them.
    pub local: bool,
    /// What it is called, where it is local or an aggregate; its name where nothing is said. At most
    /// [`SharingOptions::TITLE_LIMIT`] bytes.
    pub title: Option<String>,
    /// The feeds that an aggregate gathers, in the operator's order; empty: it is none.
    pub sources: Vec<FeedName>,
    /// The feeds of this gateway that may change its items, and whose items it may change. At most
    /// [`SharingOptions::SHARES_LIMIT`].
    pub shares_with: Vec<FeedName>,
    /// What becomes of conflicts.
    pub conflicts: ConflictPolicy,
}

impl SharingOptions {
    /// The most bytes of a title.
    pub const TITLE_LIMIT: usize = 500;
    /// The most feeds that a feed shares with.
    pub const SHARES_LIMIT: usize = 1000;

    /// Whether it gathers other feeds.
    pub const fn is_aggregate(&self) -> bool {
        !self.sources.is_empty()
    }

    /// Checks a title; what is wrong with it otherwise, as a sentence.
    pub fn title(text: &str) -> Result<String, String> {
        let text = text.trim();
        if text.is_empty() {
            return Err("a title is a text of at least one character".to_owned());
        }
        if text.len() > Self::TITLE_LIMIT {
            let (length, limit) = (text.len(), Self::TITLE_LIMIT);
            return Err(format!("the title is {length} bytes long, the limit is {limit}"));
        }
        match text.chars().find(|c| c.is_control()) {
            Some(_) => Err("a title has no line breaks or control characters".to_owned()),
            None => Ok(text.to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_are_read_as_they_are_written() {
        for text in ["keep", "winner", "prefer:feeds.example.org", "prefer:a b"] {
            assert_eq!(text.parse::<ConflictPolicy>().unwrap().to_string(), text);
        }
        for text in ["", "Keep", "prefer", "prefer:", "prefer: x", "loser"] {
            assert!(text.parse::<ConflictPolicy>().is_err(), "{text:?}");
        }
        let said = "loser".parse::<ConflictPolicy>().unwrap_err().to_string();
        assert!(said.contains("prefer:ENDPOINT"), "{said}");
    }

    #[test]
    fn titles_have_bounds() {
        assert_eq!(SharingOptions::title("  What we read "), Ok("What we read".to_owned()));
        for bad in ["", "  ", "a\nb", &"x".repeat(SharingOptions::TITLE_LIMIT + 1)] {
            assert!(SharingOptions::title(bad).is_err(), "{bad:?}");
        }
    }
}
