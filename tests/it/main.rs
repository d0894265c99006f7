//! Tests over the whole program, one module for each subject; what several of them stand on is in
//! `support`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(clippy::indexing_slicing, clippy::string_slice)]

mod aggregates;
mod as_of;
mod catch_up;
mod chain;
mod cli;
mod clock_jumps;
mod conformance_merge;
mod conformance_sse091;
mod documents;
mod doors_kill;
mod e2e;
mod endpoints;
mod evicted;
mod fuzz_smoke;
mod gateway;
mod history;
mod import;
mod judgement;
mod judgement_noise;
mod kill_loop;
mod lists;
mod low_space;
mod opml_corpus;
mod parse_corpus;
mod parse_formats;
mod parse_hostile;
mod publishers;
mod pull;
mod redaction;
mod sharing;
mod sharing_chain;
mod sharing_hostile;
mod sharing_ring;
mod spec;
mod store_crash;
mod sup_watch;
mod support;
mod views;
mod views_corpus;
mod walls;
mod websub;
mod websub_kill;
