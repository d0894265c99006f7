//! What tests of several crates stand on: a gateway without a network and doubles for all that is outside of it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(clippy::indexing_slicing, clippy::string_slice)]

pub mod double;
pub mod gateway;
pub mod idle;
pub mod owners;
