//! Whether the gateways over one store have the same settings, as far as each tells the others.

use std::collections::BTreeMap;
use std::fmt;
use xxhash_rust::xxh3::xxh3_64;

/// The key of the program's version.
const VERSION: &str = "version";

/// Settings that are to be the same at all gateways over one store, each with a hash of its value. Sixteen bits show
/// nearly every difference, and do not give a random secret away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedSettings(BTreeMap<String, u16>);

impl SharedSettings {
    /// None yet, of a version of the program: another one may write the same values in another way.
    pub fn new(version: &str) -> Self {
        let mut settings = Self(BTreeMap::new());
        settings.add(VERSION, version);
        settings
    }

    /// Adds the value of a key, which has no blanks.
    pub fn add(&mut self, key: &str, value: impl fmt::Debug) {
        let hash = xxh3_64(format!("{value:?}").as_bytes());
        let hash = u16::try_from(hash & 0xffff).unwrap_or_default();
        self.0.insert(key.to_owned(), hash);
    }

    /// As others read it.
    pub(super) fn text(&self) -> String {
        let words = self.0.iter().map(|(key, hash)| format!("{key}={hash:04x}"));
        words.collect::<Vec<_>>().join(" ")
    }

    /// The keys whose values are others in what another gateway published; none where its program is of another
    /// version.
    pub(super) fn differing(&self, published: &str) -> Vec<String> {
        let read = |word: &str| {
            let (key, hash) = word.split_once('=')?;
            Some((key.to_owned(), u16::from_str_radix(hash, 16).ok()?))
        };
        let others: BTreeMap<String, u16> = published.split(' ').filter_map(read).collect();
        if others.get(VERSION) != self.0.get(VERSION) {
            return Vec::new();
        }
        let differs = |(key, hash): &(&String, &u16)| others.get(*key) != Some(*hash);
        self.0.iter().filter(differs).map(|(key, _)| key.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(version: &str, url: &str) -> SharedSettings {
        let mut settings = SharedSettings::new(version);
        settings.add("server.public_url", url);
        settings.add("publish", "the same");
        settings
    }

    #[test]
    fn what_differs_is_named_and_no_value_is_published() {
        let own = settings("1", "https://a.example");
        let published = own.text();
        assert_eq!(own.differing(&published), Vec::<String>::new());
        let other = settings("1", "https://b.example");
        assert_eq!(own.differing(&other.text()), ["server.public_url"]);
        // Who says nothing, or is of another version, is not compared.
        let newer = settings("2", "https://b.example");
        assert_eq!(own.differing(&newer.text()), Vec::<String>::new());
        assert_eq!(own.differing(""), Vec::<String>::new());
        for word in published.split(' ') {
            assert_eq!(word.split_once('=').unwrap().1.len(), 4, "{word}");
        }
    }
}
