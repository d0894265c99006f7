use tidegate_core::model::{Entry, FeedDocument, Markup, Shared};
use tidegate_format::parse::{self, Limits};

/// The items of a document of any container; an error where it is broken or an item does not share.
pub fn read(text: &str) -> Result<Vec<Shared<Markup>>, String> {
    let limits = Limits::default();
    let decoded = parse::decode(text.as_bytes(), None, &limits).map_err(|e| e.to_string())?;
    let document = parse::document(&decoded.text, None, &limits).map_err(|e| e.to_string())?;
    if !document.flaws.is_empty() {
        return Err(format!("{:?}", document.warnings));
    }
    let items = document.entries.iter().map(|entry| {
        let unshared = || format!("an item without valid sync markup: {:?}", document.warnings);
        shared(&document, entry).ok_or_else(unshared)
    });
    items.collect()
}

/// The shared item that an entry is a version of.
pub fn shared(document: &FeedDocument<'_>, entry: &Entry<'_>) -> Option<Shared<Markup>> {
    let said = entry.shared()?;
    let winner = said.version.with(parse::own(document, entry));
    Some(Shared { winner, conflicts: said.conflicts.clone() })
}

/// The items of a document that is whole.
pub fn items(text: &str) -> Vec<Shared<Markup>> {
    read(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

pub fn text(markup: &Markup) -> Option<String> {
    let fields = parse::again(markup).unwrap();
    let value = |path: &str| fields.iter().find(|field| field.path == path);
    let found =
        ["content:encoded", "content", "description", "summary"].into_iter().find_map(value);
    found.map(|field| field.value.to_string())
}
