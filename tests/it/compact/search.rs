//! Finds texts in the files of a data folder: as they are, and in everything in them that zstd opens,
//! also what was packed as a difference to another text.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

const MAGIC: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
const LIMIT: u64 = 1 << 20;

/// In which files each text is, and how often: as it is, and packed.
#[derive(Debug, Default, PartialEq)]
pub struct Found(BTreeMap<String, BTreeMap<String, (usize, usize)>>);

impl Found {
    pub fn has_any(&self, texts: &[&str]) -> bool {
        texts.iter().any(|text| self.0.contains_key(*text))
    }

    pub fn has_all(&self, texts: &[&str]) -> bool {
        texts.iter().all(|text| self.0.contains_key(*text))
    }
}

pub fn search(folder: &Path, texts: &[&str]) -> Found {
    let mut files = Vec::new();
    collect(folder, &mut files);
    let frames: Vec<(String, &[u8])> = files
        .iter()
        .flat_map(|(name, bytes)| {
            let at = find(bytes, MAGIC).into_iter();
            at.map(move |at| (name.clone(), bytes.get(at..).unwrap()))
        })
        .collect();
    let alone: Vec<Option<Vec<u8>>> = frames.iter().map(|(_, frame)| open(frame, &[])).collect();
    let bases: Vec<&Vec<u8>> = alone.iter().flatten().filter(|text| text.len() > 100).collect();
    let mut found = Found::default();
    let mut note = |name: &str, bytes: &[u8], is_packed: bool| {
        for text in texts {
            let times = find(bytes, text.as_bytes()).len();
            if times > 0 {
                let files = found.0.entry((*text).to_owned()).or_default();
                let counts = files.entry(name.to_owned()).or_default();
                if is_packed { counts.1 += 1 } else { counts.0 += times }
            }
        }
    };
    for (name, bytes) in &files {
        note(name, bytes, false);
    }
    for ((name, frame), alone) in frames.iter().zip(&alone) {
        match alone {
            Some(text) => note(name, text, true),
            // Against a wrong base what is new in it comes out all the same.
            None => {
                let opened = bases.iter().filter_map(|base| open(frame, base));
                let all: Vec<u8> = opened.flat_map(|text| [text, vec![0]].concat()).collect();
                note(name, &all, true);
            }
        }
    }
    found
}

fn collect(folder: &Path, files: &mut Vec<(String, Vec<u8>)>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, files);
        } else {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            files.push((name, std::fs::read(path).unwrap()));
        }
    }
}

fn find(bytes: &[u8], text: &[u8]) -> Vec<usize> {
    memchr::memmem::find_iter(bytes, text).collect()
}

/// The text of a frame; `None` where it is none, or was packed against another base.
fn open(frame: &[u8], base: &[u8]) -> Option<Vec<u8>> {
    let decoder = zstd::stream::read::Decoder::with_dictionary(frame, base).ok()?;
    let mut text = Vec::new();
    decoder.single_frame().take(LIMIT).read_to_end(&mut text).ok()?;
    Some(text)
}
