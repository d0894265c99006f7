//! Feeds from bytes to documents (`parse`), from items back to bytes (`render`), and what a copy of a
//! shared feed takes over from it (`pull`). Pure.

#[cfg(test)]
mod golden;
#[cfg(test)]
mod memory;
pub mod parse;
pub mod pull;
pub mod render;
