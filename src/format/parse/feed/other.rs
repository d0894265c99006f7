//! What else an upstream sends where a feed should be.

use super::ParseError;
use tidegate_core::xml;
use tidegate_core::xml::cut;
use tidegate_core::xml::doc::DocElement;
use tidegate_core::xml::html::plain_text;

/// How far an HTML page is searched for its title, in bytes.
const TITLE_WINDOW: usize = 64 << 10;

/// What a document is whose first element is no feed's.
pub(super) fn no_feed(root: DocElement<'_, '_>) -> ParseError {
    let (text, at) = (root.doc().text(), root.span().start);
    let local = root.local().to_ascii_lowercase();
    let before = cut(text, 0..at).to_ascii_lowercase();
    let page = ["html", "head", "body", "script", "meta", "title", "div", "p", "br", "center"];
    if page.contains(&local.as_str()) || before.contains("<!doctype html") {
        return ParseError::Html { title: page_title(text), at };
    }
    let what = match local.as_str() {
        "entry" => "a single Atom entry".to_owned(),
        "opml" => "a subscription list (OPML)".to_owned(),
        "urlset" | "sitemapindex" => "a sitemap".to_owned(),
        _ => format!("an XML document of another kind (<{}>)", xml::shortened(root.name(), 64)),
    };
    ParseError::NotAFeed { what, at }
}

/// The title of a web page, for people.
fn page_title(text: &str) -> Option<String> {
    let window = xml::shortened(text, TITLE_WINDOW).to_ascii_lowercase();
    let open = window.find("<title")?;
    let start = open + window.get(open..)?.find('>')? + 1;
    let end = start + window.get(start..)?.find("</title")?;
    let title = plain_text(text.get(start..end)?);
    let title = xml::shortened(&title, 100).to_owned();
    (!title.is_empty()).then_some(title)
}
