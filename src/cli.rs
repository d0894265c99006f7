//! The subcommands that are more than wiring.

pub mod merge;
