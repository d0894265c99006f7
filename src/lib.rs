//! Tidegate: a gateway that stands in front of plain Atom and RSS publishers and gives their feeds
//! memory: per-item version histories, tombstones and change windows (`sx:sync`).
//!
//! This crate is the program: its commands (`cli`), what they are made of (`app`), and the
//! demonstration. ARCHITECTURE.md says what each crate is for and what is absent from it.

pub mod app;
pub mod cli;
pub mod demo;
