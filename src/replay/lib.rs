//! Recorded upstream documents through the same code as a running gateway, with no network and no
//! server (CONTRACT, Command line).
//!
//! Time counts: a recorded document stays in force until the next one, and is polled again at the
//! interval that a running gateway would choose, so that what needs confirmation is confirmed.

mod report;
mod run;
mod source;

pub use report::{DocumentOutcome, DocumentReport, PrintedEvent, PrintedPending, Summary};
pub use run::{Interval, ReplayError, ReplayTarget, series};
pub use source::{Recorded, Series, SourceError, read};
