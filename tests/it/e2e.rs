//! From end to end: a scripted publisher, a whole gateway in front of it, and readers and
//! subscribers that know nothing but the specifications. Time is set by hand.
//!
//! Whatever happens in between, a subscriber that follows SSE 1.0 section 4.1 knows what the gateway
//! knows, and a feed reader sees nothing twice, nothing falsely new, and nothing vanish that its
//! publisher did not take away. The stage checks the first after every poll; each scenario says
//! what the reader must see.

mod access;
mod aging;
mod announced;
mod backfill;
mod formats;
mod hub;
mod incarnations;
mod moves;
mod past;
mod probes;
mod story;
pub mod support;
mod upkeep;
