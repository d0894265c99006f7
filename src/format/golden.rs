//! Golden documents: what is made of each file in a folder of `tests/golden` stands in a snapshot beside it.

use crate::parse::{self, Limits};
use std::path::PathBuf;
use tidegate_core::model::{Entry, Field, Markup, Skeleton};
use url::Url;

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

/// What fields say, by their paths.
pub fn said(fields: &[Field<'_>]) -> Vec<(String, String)> {
    let owned = |field: &Field<'_>| (field.path.to_string(), field.value.to_string());
    fields.iter().map(owned).collect()
}

/// All that is read of a document, which may have an address, after its text where that is made of another one.
pub fn described(bytes: &[u8], url: Option<&Url>) -> String {
    let decoded = parse::decode(bytes, None, &Limits::default()).unwrap();
    let feed = parse::document(&decoded.text, url, &Limits::default()).unwrap();
    let line = |at: usize| feed.text.get(..at).unwrap().matches('\n').count() + 1;
    let mut told = String::new();
    if decoded.text.as_bytes() != bytes {
        told += &format!("{}\n\n", decoded.text);
    }
    let (format, completeness, flaws) = (feed.format, &feed.completeness, feed.flaws);
    told += &format!("{format:?}, {completeness:?}, {flaws:?}, {:#?}\n", feed.sharing);
    told += &format!("{:#?}\nlists changes: {}\n", feed.head, feed.lists_changes());
    told += &format!("{:#?}\n", feed.tombstones);
    for warning in decoded.warnings.iter().chain(&feed.warnings) {
        told += &format!("warning at {}: {}\n", warning.offset, warning.message);
    }
    for entry in &feed.entries {
        let markup = parse::own(&feed, entry);
        let again = parse::again(&markup).unwrap();
        assert_eq!(said(&again), said(entry.fields()), "{}", markup.xml);
        let is_whole = feed.text.get(entry.span.clone()) == Some(&*entry.markup);
        told += &format!(
            "\n=== entry in line {}, as it stands there: {is_whole}\n",
            line(entry.span.start)
        );
        let Entry { native_id, id_is_permalink, title, author, link, .. } = entry;
        told +=
            &format!("{native_id:?} {title:?} {link:?} {:?} {:?}", entry.published, entry.updated);
        told += &format!(" by {author:?}, its id is its address: {id_is_permalink}\n");
        let fields = said(entry.fields()).into_iter();
        told.extend(fields.map(|(path, value)| format!("    {path} = {value}\n")));
        let Markup { xml, context, slots, card, .. } = markup;
        told += &format!("{xml}\n{slots:?}\n{context:?}\n{card:?}\n{:#?}\n", entry.sync);
    }
    let Skeleton { text, slots, context, title, .. } = &feed.skeleton;
    told + &format!("\n=== around them {title:?}\n{text}\n{slots:?}\n{context:?}\n")
}
