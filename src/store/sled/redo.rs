//! A redo log for changes of many entries.
//!
//! The engine keeps what a transaction takes the place of until the transaction ends: about five
//! kilobytes an entry, hundreds of megabytes for a large feed. So a change of many entries is no
//! transaction. It is written down whole, marked as whole, and then carried out entry by entry. A
//! start that finds the mark carries it out again, which changes nothing where it was done; a start
//! that finds none has nothing to do, for nothing was carried out.

use super::engine::{PIECE, Place, SledEngine, TreeWrites};
use crate::store::StoreError;
use crate::store::engine::Engine;

/// The most entries of a change that is one transaction.
const TRANSACTION: usize = 4096;
/// The key of the mark; its value is the number of blocks. Blocks have keys of four bytes.
const WHOLE: &[u8] = b"whole";
/// Stands for the length of a value where the entry is removed.
const REMOVED: u32 = u32::MAX;

/// Applies what was planned, all or nothing. What is one transaction is not durable yet.
pub(super) fn apply(engine: &SledEngine, writes: TreeWrites) -> Result<(), StoreError> {
    if writes.len() <= TRANSACTION {
        return engine.transact(&writes);
    }
    write_down(engine, &writes)?;
    for ((place, key), value) in writes {
        engine.set((place, &key), value.as_deref())?;
    }
    clear(engine)
}

/// Writes a change down. Durable on return, with its mark.
fn write_down(engine: &SledEngine, writes: &TreeWrites) -> Result<(), StoreError> {
    let mut log = RedoWriter { engine, blocks: 0, rest: Vec::new() };
    writes.iter().try_for_each(|(place, value)| log.entry(place, value.as_deref()))?;
    let blocks = log.end()?;
    // The mark must not outlive a block.
    engine.pass()?;
    set(engine, WHOLE, Some(&blocks.to_be_bytes()))?;
    engine.pass()
}

fn set(engine: &SledEngine, key: &[u8], value: Option<&[u8]>) -> Result<(), StoreError> {
    let done = match value {
        Some(value) => engine.redo().insert(key, value),
        None => engine.redo().remove(key),
    };
    done.map(drop).map_err(|error| engine.failed("write", error))
}

/// Carries out the change that is written down whole, and forgets what is written down. Durable on return.
pub(super) fn carry_out(engine: &SledEngine) -> Result<(), StoreError> {
    carry_out_marked(engine)?;
    clear(engine)
}

fn carry_out_marked(engine: &SledEngine) -> Result<(), StoreError> {
    let get = |key: &[u8]| engine.redo().get(key).map_err(|error| engine.failed("read", error));
    let Some(mark) = get(WHOLE)? else { return Ok(()) };
    let damaged = |what: &str| {
        let what = format!("in the redo log: {what}");
        StoreError::Damaged { path: engine.path().to_owned(), what }
    };
    let blocks = mark.as_ref().try_into().map(u32::from_be_bytes);
    let mut rest = Vec::new();
    for block in 0..blocks.map_err(|_| damaged("the mark is no number"))? {
        let block = get(&block.to_be_bytes())?.ok_or_else(|| damaged("a block is missing"))?;
        rest.extend_from_slice(&block);
        let mut unread = rest.as_slice();
        while let Some((RedoEntry { place, key, value }, after)) = entry(unread) {
            let place = Place::numbered(place).ok_or_else(|| damaged("there is no such class"))?;
            engine.set((place, key), value)?;
            unread = after;
        }
        let read = rest.len() - unread.len();
        rest.drain(..read);
    }
    if rest.is_empty() { Ok(()) } else { Err(damaged("the last entry is cut")) }
}

/// Forgets the change that was carried out, or what was written down of one that was not.
fn clear(engine: &SledEngine) -> Result<(), StoreError> {
    if engine.redo().is_empty() {
        return Ok(());
    }
    // What is carried out must not need the mark any more, and no block goes before the mark.
    engine.pass()?;
    set(engine, WHOLE, None)?;
    engine.pass()?;
    engine.redo().clear().map_err(|error| engine.failed("write", error))
}

/// A change that is being written down.
struct RedoWriter<'a> {
    engine: &'a SledEngine,
    blocks: u32,
    rest: Vec<u8>,
}

impl RedoWriter<'_> {
    fn entry(
        &mut self,
        (place, key): &(Place, Vec<u8>),
        value: Option<&[u8]>,
    ) -> Result<(), StoreError> {
        let length = |bytes: &[u8]| u32::try_from(bytes.len()).unwrap_or(REMOVED);
        self.rest.push(place.number());
        self.rest.extend_from_slice(&length(key).to_be_bytes());
        self.rest.extend_from_slice(key);
        self.rest.extend_from_slice(&value.map_or(REMOVED, length).to_be_bytes());
        self.rest.extend_from_slice(value.unwrap_or_default());
        while self.rest.len() >= PIECE {
            self.block(PIECE)?;
        }
        Ok(())
    }

    /// Writes the first bytes of what was not written yet.
    fn block(&mut self, bytes: usize) -> Result<(), StoreError> {
        let block: Vec<u8> = self.rest.drain(..bytes).collect();
        set(self.engine, &self.blocks.to_be_bytes(), Some(&block))?;
        self.blocks += 1;
        Ok(())
    }

    /// Writes the rest. Answers the number of blocks.
    fn end(mut self) -> Result<u32, StoreError> {
        if !self.rest.is_empty() {
            self.block(self.rest.len())?;
        }
        Ok(self.blocks)
    }
}

/// An entry as it was written down.
struct RedoEntry<'a> {
    place: u8,
    key: &'a [u8],
    value: Option<&'a [u8]>,
}

/// The first entry and what follows it; `None` where it is not whole.
fn entry(bytes: &[u8]) -> Option<(RedoEntry<'_>, &[u8])> {
    let (place, rest) = bytes.split_first()?;
    let (key, rest) = field(rest)?;
    let (value, rest) = field(rest)?;
    Some((RedoEntry { place: *place, key: key?, value }, rest))
}

/// The first field, and what follows it; the field is `None` where it stands for what is removed.
fn field(bytes: &[u8]) -> Option<(Option<&[u8]>, &[u8])> {
    let (length, rest) = bytes.split_first_chunk()?;
    match u32::from_be_bytes(*length) {
        REMOVED => Some((None, rest)),
        length => rest
            .split_at_checked(usize::try_from(length).ok()?)
            .map(|(field, rest)| (Some(field), rest)),
    }
}

#[cfg(test)]
mod tests;
