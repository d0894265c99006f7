//! Golden documents: what is made of each file in a folder of `tests/golden` stands in a snapshot beside it.

use std::path::PathBuf;

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden");

/// Compares what was made with the snapshot of that name in a folder.
pub fn same(folder: &str, name: &str, made: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(format!("{GOLDEN}/{folder}"));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, made));
}

/// Compares what is made of each of so many documents with its snapshot.
pub fn each(folder: &str, documents: usize, make: impl Fn(&[u8]) -> String) {
    let files = std::fs::read_dir(format!("{GOLDEN}/{folder}")).unwrap();
    let is_document = |path: &PathBuf| !path.to_string_lossy().contains(".snap");
    let all: Vec<_> = files.map(|file| file.unwrap().path()).filter(is_document).collect();
    assert_eq!(all.len(), documents, "in {folder}");
    for path in all {
        let name = path.file_name().unwrap().to_str().unwrap();
        // Shown with what fails.
        println!("{folder}/{name}");
        same(folder, name, &make(&std::fs::read(&path).unwrap()));
    }
}

/// The two documents of a file, with a line `=== between` between them.
pub fn pair<'a>(file: &'a [u8], between: &str) -> (&'a [u8], &'a [u8]) {
    let line = format!("\n=== {between}\n");
    let at = file.windows(line.len()).position(|part| part == line.as_bytes()).unwrap();
    (&file[..at], &file[at + line.len()..])
}
