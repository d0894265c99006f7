//! Reads the engine's journals before the engine does.
//!
//! A journal is a row of batches, each with a checksum, and zeros up to its preallocated length. The engine
//! ends a journal at the first entry that it cannot read, without a word, and refuses one whose last batch has
//! the right length and the wrong bytes. The first may lose what was durable, and the second is what a loss of
//! power may leave of a batch that nobody was told of. So it is found out here which it is:
//!
//! - A journal that others follow was made durable whole: whatever is wrong in it is damage.
//! - In the last journal, the first batch that is not whole was not durable, or is damaged: it is cut off there,
//!   and the number of the last durable write tells whether anything is missing ([`super::engine`]).
//!
//! Entries, numbers with the smallest byte first: `1`, the count of items (4 bytes), the number of the
//! batch (8); `2`, the kind of the value (1), how it is compressed (1), the keyspace (8), the lengths of the key (2),
//! the value (4) and the value as stored (4), key, value; `4`, the keyspace (8): all of it is removed; `3`, the
//! xxh3 hash of the items (8), `FJL` and `3`.

use std::fs::{self, File};
use std::io::{self, BufReader, ErrorKind, Read};
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::Xxh3;

/// How the names of journals end.
const EXTENSION: &str = "jnl";
const START: u8 = 1;
const ITEM: u8 = 2;
const END: u8 = 3;
const CLEAR: u8 = 4;
/// What ends a batch.
const TRAILER: &[u8; 4] = b"FJL\x03";
/// The bytes that are read at a time.
const CHUNK: usize = 64 * 1024;

/// Why the journals cannot be used as they are.
#[derive(Debug)]
pub(super) enum JournalError {
    Io(io::Error),
    /// What is wrong, and where.
    Damaged(String),
}

impl From<io::Error> for JournalError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Verifies the journals in the engine's folder, and cuts off what follows the whole batches of the last one.
pub(super) fn verify_and_cut(folder: &Path) -> Result<(), JournalError> {
    let mut journals = journals(folder)?;
    let Some((number, last)) = journals.pop() else { return Ok(()) };
    for (at, (sealed, path)) in journals.iter().enumerate() {
        let next = journals.get(at + 1).map_or(number, |(next, _)| *next);
        if sealed.checked_add(1) != Some(next) {
            return Err(JournalError::Damaged(format!("a journal after {sealed}.jnl is missing")));
        }
        let Extent { whole, is_clean } = extent(path)?;
        if !is_clean {
            let what = format!("the journal {sealed}.jnl is not as it was written at {whole}");
            return Err(JournalError::Damaged(what));
        }
    }
    let Extent { whole, is_clean } = extent(&last)?;
    if !is_clean {
        tracing::info!(journal = %last.display(), at = whole, "the end of the journal was never durable: it is cut off");
        let file = File::options().write(true).open(&last)?;
        file.set_len(whole)?;
        file.sync_all()?;
    }
    Ok(())
}

/// The journals in the engine's folder with their numbers, the oldest first.
fn journals(folder: &Path) -> Result<Vec<(u64, PathBuf)>, JournalError> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == EXTENSION) {
            let number = path.file_stem().and_then(|stem| stem.to_str()?.parse().ok());
            let wrong = || JournalError::Damaged(format!("{} is no journal", path.display()));
            found.push((number.ok_or_else(wrong)?, path));
        }
    }
    found.sort();
    Ok(found)
}

/// How far a journal can be read.
#[derive(Debug, PartialEq, Eq)]
struct Extent {
    /// The bytes of the whole batches that it begins with.
    whole: u64,
    /// Whether nothing but zeros follows.
    is_clean: bool,
}

fn extent(path: &Path) -> io::Result<Extent> {
    let mut reader =
        BatchReader { source: BufReader::with_capacity(CHUNK, File::open(path)?), at: 0 };
    let mut whole = 0;
    loop {
        match reader.skip_batch() {
            Ok(true) => whole = reader.at,
            Ok(false) => break,
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => break,
            Err(error) => return Err(error),
        }
    }
    let mut rest = File::open(path)?;
    io::Seek::seek(&mut rest, io::SeekFrom::Start(whole))?;
    let mut buffer = vec![0; CHUNK];
    loop {
        let read = rest.read(&mut buffer)?;
        let bytes = buffer.get(..read).unwrap_or_default();
        if bytes.iter().any(|byte| *byte != 0) {
            return Ok(Extent { whole, is_clean: false });
        }
        if read == 0 {
            return Ok(Extent { whole, is_clean: true });
        }
    }
}

/// Reads batch after batch.
struct BatchReader {
    source: BufReader<File>,
    /// How many bytes were read.
    at: u64,
}

impl BatchReader {
    /// Reads over one batch; whether it was whole.
    fn skip_batch(&mut self) -> io::Result<bool> {
        if self.bytes::<1>()? != [START] {
            return Ok(false);
        }
        let items = u32::from_le_bytes(self.bytes()?);
        let _number: [u8; 8] = self.bytes()?;
        let mut hash = Xxh3::new();
        for _ in 0..items {
            if !self.skip_item(&mut hash)? {
                return Ok(false);
            }
        }
        if self.bytes::<1>()? != [END] {
            return Ok(false);
        }
        let expected = u64::from_le_bytes(self.bytes()?);
        Ok(self.bytes::<4>()? == *TRAILER && hash.digest() == expected)
    }

    fn skip_item(&mut self, hash: &mut Xxh3) -> io::Result<bool> {
        let [tag] = self.bytes()?;
        hash.update(&[tag]);
        match tag {
            CLEAR => hash.update(&self.bytes::<8>()?),
            ITEM => {
                // The kind of the value, its compression, and the keyspace.
                hash.update(&self.bytes::<10>()?);
                let (key, value, stored) = (self.bytes()?, self.bytes::<4>()?, self.bytes()?);
                hash.update(&[key.as_slice(), &value, &stored].concat());
                let length = u64::from(u16::from_le_bytes(key));
                self.skip(length + u64::from(u32::from_le_bytes(stored)), hash)?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn bytes<const LENGTH: usize>(&mut self) -> io::Result<[u8; LENGTH]> {
        let mut bytes = [0; LENGTH];
        self.source.read_exact(&mut bytes)?;
        self.at += LENGTH as u64;
        Ok(bytes)
    }

    fn skip(&mut self, length: u64, hash: &mut Xxh3) -> io::Result<()> {
        let mut left = length;
        while left > 0 {
            let buffered = io::BufRead::fill_buf(&mut self.source)?;
            let most = usize::try_from(left).unwrap_or(usize::MAX).min(buffered.len());
            let part = buffered.get(..most).filter(|part| !part.is_empty());
            let part = part.ok_or(ErrorKind::UnexpectedEof)?;
            hash.update(part);
            io::BufRead::consume(&mut self.source, most);
            left -= most as u64;
            self.at += most as u64;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
