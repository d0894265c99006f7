//! What becomes of the bytes: the seam to `parse` and `record`, so that rounds can be tested with
//! scripted judgements.

use crate::model::{Completeness, UpdateHints};
use crate::parse::{self, Limits};
use crate::record::{self, BodyPrints, RecordError, Round, Verdict};
use bytes::Bytes;
use url::Url;

/// The most warnings of a document that are kept for the operator.
pub const MAX_WARNINGS: usize = 20;

/// A document as it came, decompressed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// Its bytes.
    pub bytes: Bytes,
    /// `Content-Type`, as sent.
    pub content_type: Option<String>,
    /// The address that answered.
    pub url: String,
    /// Its fingerprints.
    pub prints: BodyPrints,
    /// Whether it is a part on purpose (226).
    pub delta: bool,
}

/// What was concluded from a document.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Judged {
    /// What to commit, and what is pending.
    pub verdict: Verdict,
    /// What the document asks of those who poll it.
    pub hints: UpdateHints,
    /// Whether it shows the whole feed, so that seeing it again confirms what is missing.
    pub full: bool,
    /// How many entries it has.
    pub entries: usize,
    /// Why only a part of it counts, where that is so.
    pub partial: Option<String>,
    /// What was wrong with it, at most [`MAX_WARNINGS`].
    pub warnings: Vec<String>,
    /// Its link to a SUP document, fragment included.
    pub sup: Option<String>,
}

/// Why nothing can be concluded from a document.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JudgeError {
    /// It is no feed document.
    #[error("{0}")]
    Unreadable(String),
    /// It cannot be taken in.
    #[error(transparent)]
    Refused(#[from] RecordError),
}

/// Concludes from documents. Pure, and called where it may take its time.
pub trait Judge: Send + Sync + 'static {
    /// Takes in a document that differs from the last one.
    fn take_in(&self, round: &Round<'_>, seen: &Seen) -> Result<Judged, JudgeError>;

    /// Looks at what is pending when the document is the same for the `same`th time since the last
    /// commit.
    fn look_again(&self, round: &Round<'_>, same: u32) -> Result<Verdict, JudgeError>;
}

/// The judge of a running gateway.
#[derive(Debug, Clone, Default)]
pub struct ParseAndRecord {
    /// What a document may contain.
    pub limits: Limits,
}

impl Judge for ParseAndRecord {
    fn take_in(&self, round: &Round<'_>, seen: &Seen) -> Result<Judged, JudgeError> {
        let unreadable = |error: parse::ParseError| JudgeError::Unreadable(error.to_string());
        let decoded = parse::decode(&seen.bytes, seen.content_type.as_deref(), &self.limits)
            .map_err(unreadable)?;
        let url = Url::parse(&seen.url).ok();
        let mut document =
            parse::document(&decoded.text, url.as_ref(), &self.limits).map_err(unreadable)?;
        if seen.delta && document.completeness == Completeness::Full {
            document.completeness = Completeness::Delta;
        }
        let verdict = record::take_in(round, &document, seen.prints)?;
        let warnings = decoded.warnings.iter().chain(&document.warnings).take(MAX_WARNINGS);
        Ok(Judged {
            verdict,
            full: document.completeness == Completeness::Full,
            entries: document.entries.len(),
            partial: partial(&document.completeness),
            warnings: warnings.map(|w| format!("at byte {}: {}", w.offset, w.message)).collect(),
            sup: document.head.links.sup,
            hints: document.head.hints,
        })
    }

    fn look_again(&self, round: &Round<'_>, same: u32) -> Result<Verdict, JudgeError> {
        Ok(record::look_again(round, same)?)
    }
}

fn partial(completeness: &Completeness) -> Option<String> {
    match completeness {
        Completeness::Full => None,
        Completeness::Delta => Some("the publisher sent what is new alone".to_owned()),
        Completeness::Salvaged(reason) => Some(reason.clone()),
    }
}
