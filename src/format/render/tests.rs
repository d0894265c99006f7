//! What holds of every document, and golden documents of every format and view.

#![allow(clippy::string_slice)]

mod build;
mod containers;
mod conversions;
mod crossing;
mod depth;
mod fixtures;
mod golden;
mod ids;
mod inherited;
mod lists;
mod properties;
