//! Tests over the whole program, one module for each subject; what several of them stand on is in
//! `support`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(clippy::indexing_slicing, clippy::string_slice)]

mod aggregates;
mod chain;
mod compact;
mod conformance_merge;
mod conformance_sse091;
mod documents;
mod endpoints;
mod evicted;
mod fuzz_smoke;
mod history;
mod judgement;
mod judgement_noise;
mod kill_loop;
mod list_feeds;
mod lists;
mod operation;
mod opml_corpus;
mod origins;
mod origins_abuses;
mod origins_proxy;
mod parse_corpus;
mod parse_hostile;
mod publishers;
mod pull;
mod secrets;
mod sharing;
mod sharing_hostile;
mod spec;
mod store_crash;
mod sup_watch;
mod support;
mod terminal;
mod tombstones;
mod upkeep;
mod views_corpus;
mod walls;
mod websub;
mod websub_kill;
