//! What an entry calls itself.

use std::collections::{HashMap, HashSet};
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

/// The ledger keys in use, and how far each identity has been numbered.
#[derive(Debug, Clone, Default)]
pub struct Keys {
    used: HashSet<String>,
    numbered: HashMap<String, u64>,
}

impl Keys {
    /// The keys in use.
    pub fn new(used: impl Iterator<Item = String>) -> Self {
        Self { used: used.collect(), numbered: HashMap::new() }
    }

    /// Takes a key for an entry: its native identity where that is free, else with the link, else
    /// with the title, else with a number.
    pub fn assign_native_id(&mut self, entry: &Entry<'_>, native: &str) -> String {
        let with = |suffix: &str| format!("{}##{suffix}", native);
        let mut candidates = vec![native.to_owned()];
        candidates.extend(entry.link.as_deref().map(with));
        candidates.extend(entry.title.as_deref().map(with));
        if let Some(free) = candidates.into_iter().find(|key| !self.used.contains(key)) {
            self.used.insert(free.clone());
            return free;
        }
        let number = self.numbered.entry(native.to_owned()).or_insert(1);
        loop {
            // Ends: there are more numbers than keys in use.
            *number += 1;
            let key = with(&number.to_string());
            if self.used.insert(key.clone()) {
                return key;
            }
        }
    }
}
