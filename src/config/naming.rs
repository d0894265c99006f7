//! Names for feeds that are given by their address alone.

use crate::model::FeedName;
use url::Url;

/// The longest name, in bytes (CONTRACT, Words).
const NAME_LIMIT: usize = 64;

/// The name of a feed whose address has nothing to name it after.
const FALLBACK: &str = "feed";

/// Names a feed after host and path: `https://Example.org/blog/atom.xml` → `example-org-blog-atom-xml`.
///
/// Scheme, port and query are no part of the name, so a feed keeps it when it moves to https. A
/// name that is `taken` gets `-2`, `-3` and so on: addresses that differ in no other way than the
/// query are told apart by their order, which the operator should keep, or name them in the file.
pub fn feed_name(url: &Url, taken: impl Fn(&FeedName) -> bool) -> Option<FeedName> {
    let base = base(&format!("{}{}", url.host_str().unwrap_or_default(), url.path()));
    // More candidates than feeds can be, so one is free unless everything is taken.
    (1..=super::FEED_LIMIT + 1).find_map(|number| {
        let suffix = if number == 1 { String::new() } else { format!("-{number}") };
        let kept: String = base.chars().take(NAME_LIMIT - suffix.len()).collect();
        let name = FeedName::new(&format!("{}{suffix}", kept.trim_end_matches('-'))).ok()?;
        (!taken(&name)).then_some(name)
    })
}

/// Letters and digits, in lower case, with one dash for each run of anything else between them.
fn base(text: &str) -> String {
    let mut name = String::new();
    for part in text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|part| !part.is_empty()) {
        if !name.is_empty() {
            name.push('-');
        }
        name.push_str(&part.to_ascii_lowercase());
    }
    if name.is_empty() { FALLBACK.to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn named(url: &str) -> String {
        let url = Url::parse(url).unwrap();
        feed_name(&url, |_| false).unwrap().to_string()
    }

    #[test]
    fn after_host_and_path() {
        for (url, name) in [
            ("https://Example.org/blog/atom.xml", "example-org-blog-atom-xml"),
            ("https://blog.rust-lang.org/feed.xml", "blog-rust-lang-org-feed-xml"),
            ("http://example.org/", "example-org"),
            ("http://127.0.0.1:8000/feed.xml?page=2", "127-0-0-1-feed-xml"),
            ("http://[::1]:8000/a", "1-a"),
            ("https://example.org/~ann/_x_//y/", "example-org-ann-x-y"),
            ("https://müsli.example/ä", "xn-msli-0ra-example-c3-a4"),
        ] {
            assert_eq!(named(url), name, "{url}");
        }
    }

    #[test]
    fn collisions_are_numbered() {
        let url = Url::parse("https://example.org/feed?page=1").unwrap();
        let mut taken = BTreeSet::new();
        for expected in ["example-org-feed", "example-org-feed-2", "example-org-feed-3"] {
            let name = feed_name(&url, |name| taken.contains(name)).unwrap();
            assert_eq!(name.as_str(), expected);
            taken.insert(name);
        }
    }

    #[test]
    fn long_names_are_cut_and_still_numbered() {
        let url = Url::parse(&format!("https://example.org/{}", "long/".repeat(40))).unwrap();
        let first = feed_name(&url, |_| false).unwrap();
        let second = feed_name(&url, |name| *name == first).unwrap();
        assert_eq!(first.as_str().len(), 64, "{first}");
        assert!(second.as_str().ends_with("-2") && second.as_str().len() <= 64, "{second}");
    }

    proptest! {
        #[test]
        fn every_web_address_has_a_name(host in "[a-z0-9.-]{1,80}", path in "\\PC{0,120}") {
            if let Ok(url) = Url::parse(&format!("http://{host}/{path}")) {
                prop_assert!(feed_name(&url, |_| false).is_some());
            }
        }
    }
}
