//! Commands.

pub mod merge;
