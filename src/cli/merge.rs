//! Merge.
