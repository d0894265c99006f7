//! Finds texts in the files of a data folder: as they are, and in everything in them that zstd opens,
//! also what was packed as a difference to another text.

use crate::support::prelude::*;
use std::io::Read;

/// What a frame of zstd begins with.
const MAGIC: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
/// The most that a frame is opened to.
const LIMIT: u64 = 1 << 20;

/// Those of the texts that are anywhere in the files.
pub fn search<'t>(folder: &Path, texts: &[&'t str]) -> BTreeSet<&'t str> {
    let files = files(folder).into_iter().map(|path| std::fs::read(path).unwrap());
    let files: Vec<Vec<u8>> = files.collect();
    let frames = files.iter().flat_map(|bytes| find(bytes, MAGIC).map(move |at| &bytes[at..]));
    let (mut alone, mut differences) = (Vec::new(), Vec::new());
    for frame in frames {
        match open(frame, &[]) {
            Some(text) => alone.push(text),
            None => differences.push(frame),
        }
    }
    let mut found = BTreeSet::new();
    let mut note = |bytes: &[u8]| {
        let here = texts.iter().filter(|text| find(bytes, text.as_bytes()).next().is_some());
        found.extend(here.copied());
    };
    files.iter().chain(&alone).for_each(|bytes| note(bytes));
    // Against a wrong base what is new in it comes out all the same.
    for base in alone.iter().filter(|text| text.len() > 100) {
        differences.iter().filter_map(|frame| open(frame, base)).for_each(|text| note(&text));
    }
    found
}

fn find<'a>(bytes: &'a [u8], text: &'a [u8]) -> impl Iterator<Item = usize> + 'a {
    memchr::memmem::find_iter(bytes, text)
}

/// The text of a frame; `None` where it is none, or was packed against another base.
fn open(frame: &[u8], base: &[u8]) -> Option<Vec<u8>> {
    let decoder = zstd::stream::read::Decoder::with_dictionary(frame, base).ok()?;
    let mut text = Vec::new();
    decoder.single_frame().take(LIMIT).read_to_end(&mut text).ok()?;
    Some(text)
}
