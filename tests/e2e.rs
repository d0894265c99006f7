//! From end to end: a scripted publisher, a whole gateway in front of it, and readers and
//! subscribers that know nothing but the specifications. Time is set by hand.
//!
//! Whatever happens in between, a subscriber that follows SSE 1.0 section 4.1 knows what the gateway
//! knows, and a feed reader sees nothing twice, nothing falsely new, and nothing vanish that its
//! publisher did not take away. The stage checks the first after every poll; each scenario says
//! what the reader must see.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(clippy::indexing_slicing, clippy::string_slice)]

#[path = "e2e/announced.rs"]
mod announced;
#[path = "e2e/backfill.rs"]
mod backfill;
#[path = "e2e/brake.rs"]
mod brake;
#[path = "e2e/changes.rs"]
mod changes;
#[path = "e2e/deletions.rs"]
mod deletions;
#[path = "e2e/delivery.rs"]
mod delivery;
#[path = "e2e/deltas.rs"]
mod deltas;
#[path = "e2e/edges.rs"]
mod edges;
#[path = "e2e/formats.rs"]
mod formats;
#[path = "e2e/hub.rs"]
mod hub;
#[path = "e2e/identity.rs"]
mod identity;
#[path = "e2e/local.rs"]
mod local;
#[path = "e2e/moves.rs"]
mod moves;
#[path = "e2e/noise.rs"]
mod noise;
#[path = "e2e/outages.rs"]
mod outages;
#[path = "e2e/past.rs"]
mod past;
#[path = "e2e/probes.rs"]
mod probes;
#[path = "e2e/shows.rs"]
mod shows;
#[path = "e2e/story.rs"]
mod story;
#[path = "e2e/support/mod.rs"]
mod support;
#[path = "e2e/upkeep.rs"]
mod upkeep;
#[path = "e2e/windows.rs"]
mod windows;
