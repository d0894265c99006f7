//! Verifies which tables each tree has, before the engine reads it.
//!
//! The file `current` of a tree names a manifest, and has its checksum, which the engine does not compare: it takes
//! whatever the manifest says, and may ask the system for memory without bound. `current`: the manifest's number
//! (8 bytes, the smallest first), its xxh3 hash (16), and how it is hashed, `0` (1). The manifest N is the file `vN`.
//!
//! The engine removes a tree without `current`, and makes one anew whose folder is gone. In a database that was
//! used that is damage.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;
use xxhash_rust::xxh3::xxh3_128;

/// The folder of the trees.
const TREES: &str = "keyspaces";
const CURRENT: &str = "current";
/// The longest manifest that is read, in bytes: of millions of tables.
const MANIFEST_LIMIT: u64 = 256 << 20;

/// Verifies the manifests of all trees in the engine's folder; what is wrong, where something is. `trees`: how many
/// there are at least, where the database was used.
pub(super) fn verify(folder: &Path, trees: Option<usize>) -> io::Result<Option<String>> {
    let mut found = 0_usize;
    for entry in fs::read_dir(folder.join(TREES))? {
        let tree = entry?.path();
        if !tree.is_dir() {
            continue;
        }
        let is_made = tree.join(CURRENT).exists();
        if (is_made || trees.is_some()) && !is_whole(&tree)? {
            let tree = tree.strip_prefix(folder).unwrap_or(&tree).display();
            return Ok(Some(format!("the manifest of {tree} is not as it was written")));
        }
        found += 1;
    }
    match trees {
        Some(trees) if found < trees => {
            Ok(Some(format!("it has {found} trees in {TREES}, and had {trees}")))
        }
        _ => Ok(None),
    }
}

fn is_whole(tree: &Path) -> io::Result<bool> {
    let current = match fs::read(tree.join(CURRENT)) {
        Ok(current) => current,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    let Some((number, rest)) = current.split_first_chunk::<8>() else { return Ok(false) };
    let Some((hash, [0])) = rest.split_first_chunk::<16>() else { return Ok(false) };
    let path = tree.join(format!("v{}", u64::from_le_bytes(*number)));
    match fs::metadata(&path) {
        Ok(about) if about.len() <= MANIFEST_LIMIT => {}
        Ok(_) => return Ok(false),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    }
    Ok(xxh3_128(&fs::read(path)?) == u128::from_le_bytes(*hash))
}
