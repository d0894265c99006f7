//! What an entry calls itself.

use tidegate_core::model::{Entry, FeedDocument};

/// The native identities of a document's entries, in order. Entries that share one have the same.
pub fn natives(document: &FeedDocument<'_>) -> Vec<String> {
    document.entries.iter().map(native).collect()
}

/// Whether a native id was made of an entry's title or text, for want of an id and a link.
pub fn is_made_up(shown: &str) -> bool {
    shown.starts_with("title:") || shown.starts_with("hash:")
}

/// The native identity of an entry: Atom id, `guid`, `rdf:about`; else the link; else `title:` and the
/// title; else `hash:` and a fingerprint of what the entry says. Never random, never the position.
pub fn native(entry: &Entry<'_>) -> String {
    let said = |text: &Option<std::borrow::Cow<'_, str>>| {
        text.as_deref().map(str::trim).filter(|t| !t.is_empty()).map(str::to_owned)
    };
    said(&entry.native_id)
        .or_else(|| said(&entry.link))
        .or_else(|| said(&entry.title).map(|title| format!("title:{title}")))
        .unwrap_or_else(|| format!("hash:{:016x}", content_hash(entry)))
}

fn content_hash(entry: &Entry<'_>) -> u64 {
    let mut text = String::new();
    for field in entry.fields() {
        text.push_str(&field.path);
        text.push('\u{1}');
        text.push_str(&field.value);
        text.push('\u{2}');
    }
    xxhash_rust::xxh3::xxh3_64(text.as_bytes())
}
