//! `/subscriptions.opml`: every feed that is served, as OPML 2.0, under its address here.

use super::Shared;
use super::address::followable;
use super::html::whole;
use super::problem::Problem;
use crate::model::FeedStanding;
use crate::render::ViewKind;
use axum::extract::State;
use axum::response::Response;
use http::HeaderMap;
use std::fmt::Write as _;

/// `GET /subscriptions.opml`.
pub(super) async fn document(
    State(room): State<Shared>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let listing = room.directory.listing().await?;
    let mut opml = String::from(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<opml version=\"2.0\">\n<head><title>Tidegate</title></head>\n<body>\n",
    );
    for record in listing.values().filter(|record| record.standing != FeedStanding::Gone) {
        let site = room.store.state(&record.name).await?.and_then(|state| state.site);
        let site = site.as_deref().and_then(followable);
        let site = site.map(|site| format!(" htmlUrl=\"{}\"", escaped(site))).unwrap_or_default();
        let address = room.site.view(&record.name, ViewKind::Reader, room.site.dialect());
        // Writing to a string cannot fail.
        let _ = writeln!(
            opml,
            "<outline type=\"rss\" text=\"{name}\" title=\"{name}\" xmlUrl=\"{}\"{site}/>",
            escaped(&address),
            name = record.name,
        );
    }
    opml.push_str("</body>\n</opml>\n");
    Ok(whole(&headers, "text/x-opml; charset=utf-8", "public, no-cache", opml))
}

/// A text as the value of an attribute; characters that XML forbids are dropped.
fn escaped(text: &str) -> String {
    let mut value = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => value.push_str("&amp;"),
            '<' => value.push_str("&lt;"),
            '>' => value.push_str("&gt;"),
            '"' => value.push_str("&quot;"),
            '\u{FFFE}' | '\u{FFFF}' => {}
            other if other.is_control() => {}
            other => value.push(other),
        }
    }
    value
}

#[cfg(test)]
mod tests {
    #[test]
    fn attributes_cannot_be_left() {
        assert_eq!(super::escaped("a\"/><b c='&'\u{0}\n>"), "a&quot;/&gt;&lt;b c='&amp;'&gt;");
    }
}
