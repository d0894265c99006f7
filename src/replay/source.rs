//! What is replayed: folders with an index, or documents in order.

use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tidegate_core::model::Time;

/// One recorded document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    /// Its number.
    pub n: u64,
    /// When it was recorded.
    pub time: Time,
    /// Its name, as the index has it.
    pub file: String,
    /// Where it lies.
    pub path: PathBuf,
}

/// The recorded documents of one feed, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Series {
    /// What to call it.
    pub name: String,
    pub documents: Vec<Recorded>,
}

/// Why a source cannot be replayed, in a sentence.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct SourceError(String);

impl SourceError {
    fn unread(path: &Path, why: &std::io::Error) -> Self {
        Self(format!("cannot read {}: {why}", path.display()))
    }

    fn too_many(path: &Path) -> Self {
        let path = path.display();
        Self(format!("{path} lists more than {DOCUMENTS_LIMIT} documents; replay it in parts"))
    }
}

/// The most documents of one series.
const DOCUMENTS_LIMIT: usize = 1_000_000;
/// When the first of documents without an index was recorded: 2000-01-01T00:00:00Z.
const FIRST: Time = Time::from_unix(946_684_800);
/// How far they are apart.
const APART: Duration = Duration::from_secs(3600);
/// What the names of documents end with in a folder without an index.
const DOCUMENTS: &[&str] = &["xml", "atom", "rss", "rdf", "json", "opml"];
/// The name of the index of a folder.
const INDEX: &str = "index.jsonl";
/// A line of it.
const LINE: &str = "{\"n\":1,\"time\":\"2026-11-20T16:20:05Z\",\"file\":\"0001.xml\"}";

#[derive(Deserialize)]
struct IndexLine {
    n: u64,
    time: String,
    file: String,
}

/// Reads what is to be replayed: each folder is a series; files together are one.
pub fn read(sources: &[PathBuf]) -> Result<Vec<Series>, SourceError> {
    let mut all = Vec::new();
    let mut files = Vec::new();
    for path in sources {
        if path.is_dir() {
            all.push(folder(path)?);
        } else {
            files.push((path.clone(), path.display().to_string()));
        }
    }
    if !files.is_empty() {
        all.push(Series { name: "files".to_owned(), documents: in_order(files) });
    }
    Ok(all)
}

/// The documents of a folder without an index, in the order of their names and as far apart as
/// files.
fn unindexed(path: &Path) -> Result<Series, SourceError> {
    let failed = |why| SourceError::unread(path, &why);
    let mut files = Vec::new();
    for entry in std::fs::read_dir(path).map_err(failed)? {
        let entry = entry.map_err(failed)?.path();
        let extension = entry.extension().and_then(|extension| extension.to_str());
        let is_document = extension
            .is_some_and(|found| DOCUMENTS.iter().any(|known| found.eq_ignore_ascii_case(known)));
        if is_document && entry.is_file() {
            files.push(entry);
        }
        if files.len() > DOCUMENTS_LIMIT {
            return Err(SourceError::too_many(path));
        }
    }
    if files.is_empty() {
        return Err(SourceError(format!(
            "{} has no index.jsonl, and no file whose name ends in .xml, .atom, .rss, .rdf, .json or \
             .opml",
            path.display()
        )));
    }
    files.sort();
    let named = files.into_iter().map(|file| {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        (file, name)
    });
    Ok(Series { name: name_of(path), documents: in_order(named) })
}

/// Documents without an index, each with what it is called: as far apart as files are.
fn in_order(files: impl IntoIterator<Item = (PathBuf, String)>) -> Vec<Recorded> {
    let times = std::iter::successors(Some(FIRST), |time| Some(time.plus(APART)));
    let numbered = files.into_iter().zip(1..).zip(times);
    numbered.map(|(((path, file), n), time)| Recorded { n, time, file, path }).collect()
}

fn name_of(path: &Path) -> String {
    path.file_name()
        .map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned())
}

fn folder(path: &Path) -> Result<Series, SourceError> {
    let index = path.join(INDEX);
    if !index.exists() {
        return unindexed(path);
    }
    let text = std::fs::read_to_string(&index).map_err(|why| SourceError::unread(&index, &why))?;
    let mut documents = Vec::new();
    for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let wrong = |what: String| {
            let (path, line) = (index.display(), at + 1);
            SourceError(format!("{path}:{line}: {what}; a line is {LINE}"))
        };
        let read: IndexLine = serde_json::from_str(line).map_err(|e| wrong(e.to_string()))?;
        let time = Time::parse_rfc3339(&read.time).map_err(|e| wrong(e.to_string()))?;
        documents.push(Recorded { n: read.n, time, path: path.join(&read.file), file: read.file });
        if documents.len() > DOCUMENTS_LIMIT {
            return Err(SourceError::too_many(&index));
        }
    }
    Ok(Series { name: name_of(path), documents })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_without_an_index_is_its_documents_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let said = read(&[folder.path().to_owned()]).unwrap_err().to_string();
        assert!(said.contains("has no index.jsonl"), "{said}");
        for name in ["b.xml", "a.XML", "c.rss", "notes.txt", ".hidden"] {
            std::fs::write(folder.path().join(name), "<rss/>").unwrap();
        }
        let all = read(&[folder.path().to_owned()]).unwrap();
        let [series] = all.as_slice() else { panic!("{all:?}") };
        let found: Vec<_> = series.documents.iter().map(|d| (d.n, d.file.as_str())).collect();
        assert_eq!(found, [(1, "a.XML"), (2, "b.xml"), (3, "c.rss")]);
        assert_eq!(series.documents[1].time, FIRST.plus(APART));
        let index = "{\"n\":7,\"time\":\"2026-01-01T00:00:00Z\",\"file\":\"b.xml\"}\n";
        std::fs::write(folder.path().join(INDEX), index).unwrap();
        let all = read(&[folder.path().to_owned()]).unwrap();
        assert_eq!((all[0].documents.len(), all[0].documents[0].n), (1, 7));
    }
}
