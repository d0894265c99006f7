//! Tidegate: a gateway that stands in front of plain Atom and RSS publishers and gives their feeds
//! memory: per-item version histories, tombstones and change windows (`sx:sync`).
//!
//! One way for the data: `fetch` → `parse` → `identity`, `diff`, `judge` → `record` → `store` →
//! `render` → `serve`. ARCHITECTURE.md says what each module is for and what is absent from it.

pub mod acme;
pub mod app;
pub mod archive;
pub mod cli;
pub mod clock;
pub mod config;
pub mod demo;
pub mod diff;
pub mod fetch;
pub mod hub;
pub mod identity;
pub mod judge;
pub mod load;
pub mod model;
pub mod origin;
pub mod parse;
pub mod poll;
pub mod pull;
pub mod record;
pub mod render;
pub mod replay;
pub mod serve;
pub mod status;
pub mod store;
pub mod sup;
pub mod sync;
pub mod sync_markup;
pub mod traces;
pub mod trust;
pub mod websub;
pub mod xml;
