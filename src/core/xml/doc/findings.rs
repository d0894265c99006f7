//! What was wrong with a document.

use crate::model::{Flaw, Flaws, Warning};

/// What was wrong with a document.
#[derive(Debug, Default)]
pub struct Findings {
    pub warnings: Vec<Warning>,
    /// What keeps it from being well-formed.
    pub flaws: Flaws,
    /// The first fault that puts the borders of elements in doubt: where, and what.
    pub fault: Option<(usize, String)>,
    /// Whether the text ended before its root did.
    pub is_cut: bool,
    /// How many flaws put in doubt what was written: those of tags and characters.
    pub(super) doubts: usize,
    /// The most warnings that are kept.
    pub(super) limit: usize,
}

impl Findings {
    /// Notes something that does not prevent parsing.
    pub fn warn(&mut self, offset: usize, message: impl Into<String>) {
        if self.warnings.len() < self.limit {
            self.warnings.push(Warning { offset, message: message.into() });
        }
    }

    /// Notes something for which a strict processor would refuse the document.
    pub fn flaw(&mut self, flaw: Flaw, offset: usize, message: impl Into<String>) {
        self.flaws.insert(flaw);
        self.doubts += usize::from(matches!(flaw, Flaw::Tags | Flaw::Characters));
        self.warn(offset, message);
    }

    /// Notes a fault that puts the borders of elements in doubt.
    pub fn fault(&mut self, at: usize, message: impl Into<String>) {
        let message = message.into();
        self.flaw(Flaw::Tags, at, message.clone());
        if self.fault.as_ref().is_none_or(|(first, _)| at < *first) {
            self.fault = Some((at, message));
        }
    }
}
