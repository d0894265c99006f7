//! The feeds that a web page names (HTML, section 4.6.7.1; RSS autodiscovery).

use tidegate_core::sup::links;
use tidegate_core::xml::html::{Piece, Pieces, TagRule, attribute, tag_name};
use url::Url;

/// How much of a page is looked at, in bytes: some have a megabyte of scripts and styles in their heads.
pub const PAGE_LIMIT: usize = 4 << 20;
/// The most feeds that are taken of a page.
pub const FEEDS_FOUND: usize = 20;
/// The longest title, in characters.
const TITLE_LIMIT: usize = 200;
/// Media types of feeds.
const TYPES: [&str; 6] = [
    "application/atom+xml",
    "application/rss+xml",
    "application/rdf+xml",
    "application/feed+json",
    "application/xml",
    "text/xml",
];
/// Names at the end of an address that are a feed's as a rule, and what such names end with.
const FEED_NAMES: [&str; 8] =
    ["feed", "feeds", "rss", "atom", "feed.xml", "index.xml", "feed.json", "rss.php"];
const FEED_ENDINGS: [&str; 5] = [".rss", ".atom", ".rdf", "rss.xml", "atom.xml"];
/// Paths at which sites have their feed, for those whose pages name none.
pub const COMMON_PATHS: [&str; 6] =
    ["/feed", "/atom.xml", "/rss.xml", "/feed.xml", "/index.xml", "/feed.json"];

/// A feed that a page names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeedLink {
    /// Its address, absolute, http or https.
    pub url: Url,
    /// What the page calls it; empty where it does not say.
    pub title: String,
}

/// The feeds of a page.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PageFeeds {
    /// Those that it names as such with `link` or `a`, in its order, each address once.
    pub named: Vec<FeedLink>,
    /// Where else its `a` lead that is a feed by its address.
    pub likely: Vec<FeedLink>,
}

/// The feeds that a page at `url` names, and what may be one.
pub fn page_feeds(page: &str, url: &Url) -> PageFeeds {
    let page = tidegate_core::xml::shortened(page, PAGE_LIMIT);
    let mut pieces = Pieces::new(page, TagRule::All);
    let (mut base, mut found) = (url.clone(), PageFeeds::default());
    while let Some(piece) = pieces.next() {
        let Piece::Tag(tag) = piece else { continue };
        let name = tag_name(tag);
        if ["script", "style", "title", "textarea"].iter().any(|raw| name.eq_ignore_ascii_case(raw))
        {
            pieces.skip_content(name);
        } else if name.eq_ignore_ascii_case("base") {
            let href = attribute(tag, "href").and_then(|href| url.join(href.trim()).ok());
            base = href.unwrap_or(base);
        } else if name.eq_ignore_ascii_case("link") || name.eq_ignore_ascii_case("a") {
            let said = |name| attribute(tag, name).unwrap_or_default();
            let Some(link) = feed_link(&base, &said("href"), &said("title")) else { continue };
            if is_feed(&said("rel"), &said("type")) {
                add(&mut found.named, link);
            } else if name.eq_ignore_ascii_case("a") && is_likely(&link.url) {
                add(&mut found.likely, link);
            }
        }
    }
    found
}

/// The feeds that the `Link` headers of a page at `url` name (RFC 8288).
pub fn header_feeds<'a>(values: impl IntoIterator<Item = &'a str>, url: &Url) -> Vec<FeedLink> {
    let mut found = Vec::new();
    for link in
        values.into_iter().flat_map(links).filter(|link| is_feed(&link.relations, &link.kind))
    {
        found.extend(feed_link(url, link.target, ""));
    }
    found.truncate(FEEDS_FOUND);
    found
}

fn add(found: &mut Vec<FeedLink>, link: FeedLink) {
    if found.len() < FEEDS_FOUND && found.iter().all(|known| known.url != link.url) {
        found.push(link);
    }
}

/// Whether a link with these relations leads to a document of this type that is a feed.
fn is_feed(relations: &str, kind: &str) -> bool {
    let has = |word: &str| {
        relations.split_ascii_whitespace().any(|relation| relation.eq_ignore_ascii_case(word))
    };
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let is_named = has("alternate") && TYPES.contains(&kind.as_str()) || has("feed");
    is_named && !has("stylesheet")
}

fn is_likely(url: &Url) -> bool {
    let last = url.path().trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let last = last.to_ascii_lowercase();
    FEED_NAMES.contains(&last.as_str()) || FEED_ENDINGS.iter().any(|end| last.ends_with(end))
}

fn feed_link(base: &Url, target: &str, title: &str) -> Option<FeedLink> {
    let mut url = base.join(Some(target.trim()).filter(|target| !target.is_empty())?).ok()?;
    // With any fragment it is the address of the same document.
    url.set_fragment(None);
    let title = title.trim().chars().take(TITLE_LIMIT).collect();
    matches!(url.scheme(), "http" | "https").then_some(FeedLink { url, title })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::golden;

    fn found(page: &str) -> Vec<FeedLink> {
        page_feeds(page, &Url::parse("https://example.org/blog/").unwrap()).named
    }

    #[test]
    fn links_of_feeds_are_found_and_no_others() {
        let url = Url::parse("https://example.org/blog/").unwrap();
        golden::each("pages", 3, |page| {
            format!("{:#?}", page_feeds(std::str::from_utf8(page).unwrap(), &url))
        });
        let headers = [
            r#"</c>; rel="alternate"; type="application/atom+xml", </d>; rel=alternate; type=text/html"#,
            "</hub>; rel=hub",
        ];
        let found = header_feeds(headers, &url);
        assert!(found.iter().map(|link| link.url.path()).eq(["/c"]), "{found:?}");
    }

    #[test]
    fn only_so_many_are_taken() {
        let link = |n: usize| format!("<link rel=feed href=/{n}>");
        let page: String = (0..2 * FEEDS_FOUND).map(link).collect();
        assert_eq!(found(&page).len(), FEEDS_FOUND);
        let far = format!("{}{}", " ".repeat(PAGE_LIMIT), link(1));
        assert!(found(&far).is_empty());
    }
}
