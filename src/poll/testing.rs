//! Test doubles shared by several crates: a gateway without a network, and doubles for everything outside it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(clippy::indexing_slicing, clippy::string_slice)]

pub mod double;
pub mod gateway;
pub mod idle;
