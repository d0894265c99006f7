//! Bytes to documents.

pub mod sse;
