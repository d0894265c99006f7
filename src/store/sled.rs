//! sled 0.34 as the engine of a store on disk. sled is named in this folder only.

mod barrier;
#[cfg(test)]
mod damage;
mod engine;

pub(super) use self::engine::SledEngine;
