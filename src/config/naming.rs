//! Names for feeds that are given by their address alone.

use sha2::{Digest, Sha256};
use tidegate_core::model::{FeedName, ShownAddress};
use tidegate_core::short_hash::base32;
use url::Url;

/// The longest name, in bytes (CONTRACT, Words).
const NAME_LIMIT: usize = 64;
/// How many bytes of its hash tell an address from others: 8 characters of base32.
const HASH_BYTES: usize = 5;
/// What is hashed with an address: nothing, and a fragment, which no address of a feed has, where the first such name
/// is a private feed's.
const SALTS: [&str; 2] = ["", "#2"];

/// The name of a feed whose address has nothing to name it after.
const FALLBACK: &str = "feed";

/// Names a feed after its whole address: `https://Example.org/blog/atom.xml` →
/// `example-org-blog-atom-xml`. `None` where all of its names are `taken` by other feeds.
///
/// Scheme and port are not readable in it. Where the readable part does not tell the address from
/// others, `-` and a hash of the whole address follow: it has a query, was cut, or its name is taken.
/// Of a secret address the host alone is readable. A name never depends on the order of addresses.
pub fn feed_name(url: &Url, taken: impl Fn(&FeedName) -> bool) -> Option<FeedName> {
    let is_free = |name: &FeedName| !taken(name);
    names(url).find(is_free)
}

/// The names that an address may have, the best first.
fn names(url: &Url) -> impl Iterator<Item = FeedName> + '_ {
    plain_name(url).into_iter().chain(SALTS.into_iter().filter_map(|salt| hashed_name(url, salt)))
}

/// The name of an address without a hash; `None` where that does not tell it from others.
fn plain_name(url: &Url) -> Option<FeedName> {
    let readable = readable(url);
    let is_whole = readable.len() <= NAME_LIMIT && url.query().is_none() && !is_secret(url);
    is_whole.then(|| FeedName::new(&readable).ok()).flatten()
}

/// The name of an address with a hash, into which `salt` goes as well.
fn hashed_name(url: &Url, salt: &str) -> Option<FeedName> {
    let hash = Sha256::new().chain_update(url.as_str()).chain_update(salt);
    let hash = base32(hash, HASH_BYTES);
    let readable = readable(url);
    let kept: String = readable.chars().take(NAME_LIMIT - hash.len() - 1).collect();
    FeedName::new(&format!("{}-{hash}", kept.trim_end_matches('-'))).ok()
}

/// Whether a name is one that [`feed_name`] gives to an address.
pub fn is_named_after(name: &FeedName, url: &Url) -> bool {
    names(url).any(|own| own == *name)
}

fn is_secret(url: &Url) -> bool {
    ShownAddress::new(url.as_str(), None).link().is_none()
}

/// Letters and digits, in lower case, with one dash for each run of anything else between them.
fn readable(url: &Url) -> String {
    let path = if is_secret(url) { "" } else { url.path() };
    let text = format!("{}{path}", url.host_str().unwrap_or_default());
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

    #[test]
    fn after_host_and_path() {
        let long = "long/".repeat(40);
        let cut = format!("https://example.org/{long}");
        for (url, name) in [
            ("https://Example.org/blog/atom.xml", "example-org-blog-atom-xml"),
            ("https://blog.rust-lang.org/feed.xml", "blog-rust-lang-org-feed-xml"),
            ("http://example.org/", "example-org"),
            ("http://[::1]:8000/a", "1-a"),
            ("https://example.org/~ann/_x_//y/", "example-org-ann-x-y"),
            ("https://müsli.example/ä", "xn-msli-0ra-example-c3-a4"),
            // A query counts. The name of an address is the same for ever.
            ("http://127.0.0.1:8000/feed.xml?id=1", "127-0-0-1-feed-xml-qj5yhfv7"),
            ("http://127.0.0.1:8000/feed.xml?id=2", "127-0-0-1-feed-xml-hanvhi6u"),
            (&cut, "example-org-long-long-long-long-long-long-long-long-lon-jzaf73pq"),
            // Of a secret address the host alone is readable.
            ("https://example.org/private?token=hunter2", "example-org-4mojgiyu"),
            ("https://example.org/u/Zk3vQ9xT1mLp8RwY/feed.xml", "example-org-ho63nfj3"),
        ] {
            let named = feed_name(&Url::parse(url).unwrap(), |_| false).unwrap();
            assert_eq!(named.as_str(), name, "{url}");
        }
    }

    #[test]
    fn a_name_that_is_taken_gets_a_hash() {
        let url = Url::parse("https://example.org/a.b").unwrap();
        let first = feed_name(&url, |_| false).unwrap();
        let second = feed_name(&url, |name| *name == first).unwrap();
        assert_eq!(first.as_str(), "example-org-a-b");
        assert!(second.as_str().starts_with("example-org-a-b-") && is_named_after(&second, &url));
        // A private feed may have the first hash, and somebody else asks for the same address.
        let third = feed_name(&url, |name| *name == first || *name == second).unwrap();
        assert!(third.as_str().starts_with("example-org-a-b-") && is_named_after(&third, &url));
        assert_eq!(feed_name(&url, |name| is_named_after(name, &url)), None);
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
