//! A number in a file, written over and over.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use xxhash_rust::xxh3::xxh3_64;

/// Notes a number as it grows, without waiting for the disk: after a loss of power the note may be behind
/// what it tells of, and is never ahead of it.
pub(crate) struct NumberNote(File);

impl NumberNote {
    /// Opens a note or makes one: what it says, zero where there is none or half of one, and where to write
    /// the next number.
    pub(crate) fn open(path: &Path) -> io::Result<(u64, Self)> {
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(false);
        let mut note = Self(options.open(path)?);
        let number = note.read();
        Ok((number, note))
    }

    /// Notes a number.
    pub(crate) fn write(&mut self, number: u64) -> io::Result<()> {
        let number = number.to_le_bytes();
        let check = xxh3_64(&number).to_le_bytes();
        self.0.seek(SeekFrom::Start(0))?;
        self.0.write_all(&[number, check].concat())
    }

    fn read(&mut self) -> u64 {
        let (mut number, mut check) = ([0; 8], [0; 8]);
        let read = self.0.seek(SeekFrom::Start(0)).and_then(|_| {
            self.0.read_exact(&mut number)?;
            self.0.read_exact(&mut check)
        });
        let whole = read.is_ok() && xxh3_64(&number) == u64::from_le_bytes(check);
        if whole { u64::from_le_bytes(number) } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_that_is_not_whole_says_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("note");
        let (number, mut note) = NumberNote::open(&path).unwrap();
        assert_eq!(number, 0);
        for number in [1, u64::MAX, 7] {
            note.write(number).unwrap();
            assert_eq!(NumberNote::open(&path).unwrap().0, number);
        }
        for damage in [&b""[..], b"\x09\0\0", &[0xff; 16]] {
            std::fs::write(&path, damage).unwrap();
            assert_eq!(NumberNote::open(&path).unwrap().0, 0);
        }
    }
}
