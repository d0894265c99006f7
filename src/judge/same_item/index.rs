//! The keys by which an item is found in a ledger of which only a part is read.
//!
//! An entry and an item that share a name, or a feature by which rules of identity know a settled item,
//! share a key. Not the other way round: a key is a hash, and forms of one address have one key.

use super::features::{Feature, of_item, telling_texts, without_texts};
use std::collections::BTreeSet;
use tidegate_core::model::{Entry, Ignore, IndexKey, LedgerEntry};
use tidegate_core::xml::plain_address::{behind_host, hostless};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// What a key is a hash of.
#[derive(Clone, Copy)]
enum KeyKind {
    Name,
    Address,
    Slug,
    Title,
    Text,
    Number,
}

fn key(kind: KeyKind, text: &[u8]) -> IndexKey {
    IndexKey(xxh3_64_with_seed(text, kind as u64))
}

/// The keys of an item, each once: of its names, its title and its addresses, and of the texts of an
/// item without a title.
pub fn item_keys(known: &LedgerEntry) -> Vec<IndexKey> {
    // Mostly it is published under the id that it bears.
    let published = Some(&known.published_id).filter(|id| **id != known.native_shown);
    let names = known.aliases.iter().chain([&known.native_shown]).chain(published);
    let mut keys: BTreeSet<IndexKey> = names.map(|name| name_key(name)).collect();
    let is_untitled = known.title.trim().is_empty();
    for feature in of_item(known) {
        keys.extend(feature_key(&feature, is_untitled));
    }
    keys.into_iter().collect()
}

/// Whether an item has the keys that it had before, since all that they are made of is the same.
pub(crate) fn has_same_keys(old: &LedgerEntry, new: &LedgerEntry) -> bool {
    old.native_shown == new.native_shown
        && old.published_id == new.published_id
        && old.aliases == new.aliases
        && old.title == new.title
        && old.link == new.link
        && (old.prints == new.prints || !old.title.trim().is_empty())
}

/// The keys of the items that an entry may be, or that may bear what it bears, each once.
pub fn entry_keys(entry: &Entry<'_>, native: &str, ignore: &[Ignore]) -> Vec<IndexKey> {
    let mut keys = BTreeSet::from([name_key(native)]);
    keys.extend(entry.native_id.as_deref().map(|id| name_key(id.trim())));
    for feature in without_texts(entry, native) {
        keys.extend(feature_key(&feature, false));
    }
    if entry.title.as_deref().unwrap_or_default().trim().is_empty() {
        let texts = telling_texts(entry, ignore).into_iter().filter(|text| text.is_note);
        keys.extend(texts.filter_map(|text| feature_key(&Feature::Text(text.print), true)));
    }
    keys.into_iter().collect()
}

/// The key of a native id or published id.
pub fn name_key(name: &str) -> IndexKey {
    match hostless(name) {
        // Mostly it is the item's address as well.
        Some(path) => key(KeyKind::Address, path.as_bytes()),
        None => key(KeyKind::Name, name.as_bytes()),
    }
}

/// The key of a feature, where items that are not current are known by it.
fn feature_key(feature: &Feature, has_texts: bool) -> Option<IndexKey> {
    match feature {
        Feature::Title(title) => Some(key(KeyKind::Title, title.as_bytes())),
        Feature::Name(name) => Some(key(KeyKind::Slug, name.as_bytes())),
        Feature::Number(number) => Some(key(KeyKind::Number, number.as_bytes())),
        Feature::Hostless(path) => Some(key(KeyKind::Address, path.as_bytes())),
        Feature::Link(address) => Some(address_key(address)),
        // The part of an address that is empty is written there.
        Feature::Path(address) => Some(address_key(address.strip_suffix('#').unwrap_or(address))),
        Feature::Text((path, value)) => has_texts
            .then(|| key(KeyKind::Text, &[path.to_le_bytes(), value.to_le_bytes()].concat())),
        Feature::Published(_) | Feature::Updated(_) | Feature::Day(_) => None,
    }
}

/// The key of an address without scheme: of what stands behind its host, as in [`hostless`].
fn address_key(plain: &str) -> IndexKey {
    key(KeyKind::Address, behind_host(plain).unwrap_or(plain).as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::same_item::{native, natives};
    use crate::testing::{read, rss};
    use foldhash::HashSet;
    use proptest::prelude::*;

    /// An item that says what the entry says, under these names.
    fn item(entry: &Entry<'_>, aliases: &[String], published_id: &str) -> LedgerEntry {
        let shown = native(entry);
        LedgerEntry {
            aliases: aliases.to_vec(),
            published_id: published_id.to_owned(),
            title: entry.title.as_deref().unwrap_or_default().to_owned(),
            link: entry.link.as_deref().map(str::to_owned),
            published: entry.published,
            updated: entry.updated,
            prints: crate::news::fingerprint(entry, &[]).prints,
            ..LedgerEntry::left(&shown)
        }
    }

    /// Addresses, names, titles and texts of which several are the same but for their form.
    fn part() -> impl Strategy<Value = String> {
        prop_oneof![
            Just(String::new()),
            Just("https://a.example/posts/104".to_owned()),
            Just("http://b.example/posts/104/?s=1#top".to_owned()),
            Just("https://www.a.example/blog/some-long-name.html".to_owned()),
            Just("tag:a.example,2020:/blog/post".to_owned()),
            Just("tag:b.example,2024:/blog/post".to_owned()),
            Just("https://a.example/".to_owned()),
            Just("https://a.example/?p=12345".to_owned()),
            Just("urn:uuid:1".to_owned()),
            "[a-c]{0,3} [a-c]{8}",
        ]
    }

    fn document(parts: &[(String, String, String, String)]) -> String {
        let entry = |(id, link, title, text): &(String, String, String, String)| {
            let text =
                if text.is_empty() { String::new() } else { format!("{text} and more words") };
            format!(
                "<item><guid isPermaLink='false'>{id}</guid><link>{link}</link><title>{title}</title>\
                 <description>{text}</description></item>"
            )
        };
        let entries: String = parts.iter().map(entry).collect();
        rss(&entries)
    }

    proptest! {
        /// What has in common what a rule asks settled items for has a key in common.
        #[test]
        fn what_an_entry_shares_with_an_item_it_finds_it_by(
            parts in proptest::collection::vec((part(), part(), part(), part()), 2),
            alias in part(),
            published_id in part(),
        ) {
            let text = document(&parts);
            let document = read(&text);
            prop_assume!(document.entries.len() == 2);
            let names = natives(&document);
            let (new, old) = (&document.entries[0], &document.entries[1]);
            let known = item(old, std::slice::from_ref(&alias), &published_id);
            let of_new: HashSet<IndexKey> = entry_keys(new, &names[0], &[]).into_iter().collect();
            let is_found = item_keys(&known).iter().any(|key| of_new.contains(key));

            let shown = names[0].as_str();
            let shares_name = [known.native_shown.as_str(), &known.published_id, &alias]
                .contains(&shown);
            let of_old: HashSet<Feature> = of_item(&known).into_iter().collect();
            let counts = |feature: &Feature| !matches!(
                feature,
                Feature::Text(_) | Feature::Published(_) | Feature::Updated(_) | Feature::Day(_)
            );
            let features = without_texts(new, &names[0]);
            let shares = features.iter().filter(|f| counts(f)).any(|f| of_old.contains(f));
            let is_untitled = |title: &str| title.trim().is_empty();
            let are_notes = is_untitled(&known.title)
                && is_untitled(new.title.as_deref().unwrap_or_default());
            let shares_text = are_notes
                && telling_texts(new, &[])
                    .iter()
                    .any(|text| text.is_note && of_old.contains(&Feature::Text(text.print)));
            if shares_name || shares || shares_text {
                prop_assert!(is_found, "{known:?}\n{new:?}");
            }
        }
    }

    #[test]
    fn the_forms_of_one_address_are_one_key() {
        let address = "https://a.example/2026/some-long-name";
        let (name, title) = (address.to_owned(), "Some long name".to_owned());
        let text = document(&[(name.clone(), name, title, String::new())]);
        let keys = item_keys(&item(&read(&text).entries[0], &[], address));
        // Of the address, of its last part and of the title.
        assert_eq!(keys.len(), 3, "{keys:?}");
        assert_eq!(name_key("http://b.example/2026/some-long-name"), name_key(address));
    }
}
