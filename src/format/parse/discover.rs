//! The feeds that a web page names (HTML, section 4.6.7.1; RSS autodiscovery).

use tidegate_core::xml::html::{Piece, Pieces, TagRule, attribute, tag_name};
use url::Url;

/// How much of a page is looked at, in bytes: links are in its head.
const PAGE_LIMIT: usize = 512 << 10;
/// The most feeds that are taken of a page.
pub const FEEDS_FOUND: usize = 20;
/// The longest title, in characters.
const TITLE_LIMIT: usize = 200;
/// Media types of feeds.
const TYPES: [&str; 5] = [
    "application/atom+xml",
    "application/rss+xml",
    "application/rdf+xml",
    "application/feed+json",
    "text/xml",
];
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

/// The feeds that a page at `url` names with `link rel="alternate"`, in its order, each address once.
pub fn feed_links(page: &str, url: &Url) -> Vec<FeedLink> {
    let page = tidegate_core::xml::shortened(page, PAGE_LIMIT);
    let mut pieces = Pieces::new(page, TagRule::All);
    let (mut base, mut links) = (url.clone(), Vec::<FeedLink>::new());
    while let Some(piece) = pieces.next() {
        let Piece::Tag(tag) = piece else { continue };
        let name = tag_name(tag);
        if ["script", "style", "title", "textarea"].iter().any(|raw| name.eq_ignore_ascii_case(raw))
        {
            pieces.skip_content(name);
        } else if name.eq_ignore_ascii_case("base") {
            let href = attribute(tag, "href").and_then(|href| url.join(href.trim()).ok());
            base = href.unwrap_or(base);
        } else if name.eq_ignore_ascii_case("link") {
            let link = feed_link(tag, &base);
            let is_new = |link: &FeedLink| links.iter().all(|known| known.url != link.url);
            links.extend(link.filter(is_new));
            if links.len() >= FEEDS_FOUND {
                break;
            }
        }
    }
    links
}

fn feed_link(tag: &str, base: &Url) -> Option<FeedLink> {
    let rel = attribute(tag, "rel")?;
    let has = |word: &str| rel.split_ascii_whitespace().any(|rel| rel.eq_ignore_ascii_case(word));
    let kind = attribute(tag, "type").unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let is_feed = has("alternate") && TYPES.contains(&kind.as_str()) || has("feed");
    if !is_feed || has("stylesheet") {
        return None;
    }
    let mut url = base.join(attribute(tag, "href")?.trim()).ok()?;
    // With any fragment it is the address of the same document.
    url.set_fragment(None);
    let title = attribute(tag, "title").unwrap_or_default();
    let title = title.trim().chars().take(TITLE_LIMIT).collect();
    matches!(url.scheme(), "http" | "https").then_some(FeedLink { url, title })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn found(page: &str) -> Vec<(String, String)> {
        let url = Url::parse("https://example.org/blog/").unwrap();
        let links = feed_links(page, &url);
        links.into_iter().map(|link| (link.url.to_string(), link.title)).collect()
    }

    #[test]
    fn links_of_feeds_are_found_and_no_others() {
        let page = r#"<!doctype html><HTML><head>
            <LINK REL=alternate TYPE="application/rss+xml" HREF="feed.xml?a=1&amp;b=2" TITLE=" Posts &amp; more ">
            <link rel="alternate" type="application/atom+xml; charset=utf-8" href='//example.org/atom'>
            <link rel="home feed" href="/feed">
            <link rel="alternate" type="application/rss+xml" href="feed.xml?a=1&b=2#top">
            <link rel="alternate" hreflang="de" href="/de">
            <link rel="stylesheet alternate" type="text/css" href="/x.css">
            <link rel="alternate" type="application/atom+xml" href="javascript:alert(1)">
            <link rel="alternate" type="application/atom+xml">
            <!-- <link rel="feed" href="/comment"> -->
            <script>"<link rel='feed' href='/script'>"</script>"#;
        let expected = [
            ("https://example.org/blog/feed.xml?a=1&b=2", "Posts & more"),
            ("https://example.org/atom", ""),
            ("https://example.org/feed", ""),
        ];
        assert_eq!(found(page), expected.map(|(url, title)| (url.to_owned(), title.to_owned())));
        let based = "<base href='/other/'><link rel=feed href=x>";
        assert_eq!(found(based)[0].0, "https://example.org/other/x");
    }

    #[test]
    fn only_so_many_are_taken() {
        let link = |n: usize| format!("<link rel=feed href=/{n}>");
        let page: String = (0..2 * FEEDS_FOUND).map(link).collect();
        assert_eq!(found(&page).len(), FEEDS_FOUND);
        let far = format!("{}{}", " ".repeat(PAGE_LIMIT), link(1));
        assert!(found(&far).is_empty());
    }

    proptest! {
        #[test]
        fn whatever_a_page_is_it_is_read(page in "(<link |rel=|feed|href=|['\"<>=/ ]|<!--|-->|script|é){0,60}") {
            found(&page);
        }
    }
}
