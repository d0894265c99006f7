//! A small publisher with invented feeds that gain, edit, rename and lose posts, roll their windows, change in
//! ways that mean nothing and have accidents; and what the gateway made of them, told a line each. For
//! `tidegate demo` and for tests. Needs no network.
//!
//! What the feeds say at step n is a pure function ([`Script`]); [`publisher`] only serves it. What is told
//! follows from what the gateway did alone ([`Storyteller`]), never from the script.

mod harbour;
mod lighthouse;
mod pilots;
mod places;
mod publisher;
mod story;
mod timeline;

pub use harbour::PATH as HARBOUR;
pub use lighthouse::PATH as LIGHTHOUSE;
pub use pilots::{ITEM as PILOTS_ITEM, PATH as PILOTS, own_version};
pub use places::{ALL_SHOWN_AT, PILOTS_FEED, configuration, welcome};
pub use publisher::publisher;
pub use story::{EVENTS_READ, FeedFacts, StoryKind, StoryLine, Storyteller};
pub use timeline::{Post, Timeline};

use std::time::Duration;
use tidegate_core::model::Time;

/// A document as the publisher has it at one step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptedDocument {
    /// Its path on the publisher.
    pub path: &'static str,
    /// Its bytes.
    pub body: String,
    /// When it last changed.
    pub changed: Time,
}

/// What the publisher says and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Script {
    start: Time,
    every: Duration,
}

impl Script {
    /// A script whose step 0 is at `start` and whose steps are `every` apart.
    pub const fn new(start: Time, every: Duration) -> Self {
        Self { start, every }
    }

    /// The time of a step; those before the start are negative.
    pub fn time(&self, step: i64) -> Time {
        let steps = u32::try_from(step.unsigned_abs()).unwrap_or(u32::MAX);
        let apart = self.every.saturating_mul(steps);
        if step < 0 { self.start.minus(apart) } else { self.start.plus(apart) }
    }

    /// All documents at a step.
    pub fn feeds(&self, step: u32) -> [ScriptedDocument; 3] {
        [
            lighthouse::document(self, step),
            harbour::document(self, step),
            pilots::document(self, step),
        ]
    }
}

#[cfg(test)]
mod tests;
