//! The edits and deletions of a feed as a feed of their own, in Atom 1.0 (RFC 4287) or JSON Feed 1.1.
//!
//! It is made here as a whole: nothing of a publisher's document is spliced into it, and what publishers
//! wrote is in it as text only.

use serde_json::json;
use tidegate_core::model::{EventKind, Time};
use tidegate_core::xml;
use tidegate_core::xml::ns::ATOM;

/// Who writes the entries: RFC 4287 section 4.1.1 requires an author.
const AUTHOR: &str = "Tidegate";

/// A feed of changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeFeed {
    /// Its id, the same for ever.
    pub id: String,
    pub title: String,
    /// Of the document itself in Atom, and in JSON Feed.
    pub atom: String,
    pub json: String,
    /// Of the page about the feed whose changes these are.
    pub page: String,
    /// When the newest change was taken in; when the feed began, where nothing changed.
    pub updated: Time,
    /// Newest first.
    pub entries: Vec<ChangeEntry>,
}

/// A change as an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeEntry {
    /// Its id, the same for ever.
    pub id: String,
    pub title: String,
    /// What kind of change it is; its word is a category.
    pub kind: EventKind,
    pub at: Time,
    /// Of the item's versions.
    pub page: String,
    /// Of the publisher's own page, where it is one to follow.
    pub link: Option<String>,
    /// What changed, as HTML.
    pub html: String,
}

impl ChangeFeed {
    /// The feed in Atom.
    pub fn to_atom(&self) -> String {
        let mut out = String::from("<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<feed");
        xml::push_attribute(&mut out, "xmlns", ATOM);
        out.push_str(">\n");
        push_element(&mut out, "id", &self.id);
        push_element(&mut out, "title", &self.title);
        push_element(&mut out, "updated", &self.updated.to_string());
        push_link(&mut out, "self", Some("application/atom+xml"), &self.atom);
        push_link(&mut out, "alternate", Some("text/html"), &self.page);
        out.push_str("<author>");
        push_element(&mut out, "name", AUTHOR);
        out.push_str("</author>\n");
        for entry in &self.entries {
            entry.push_atom(&mut out);
        }
        out.push_str("</feed>\n");
        out
    }

    /// The feed in JSON Feed.
    pub fn to_json(&self) -> String {
        let items: Vec<_> = self.entries.iter().map(ChangeEntry::to_json).collect();
        let feed = json!({
            "version": super::json_feed::VERSION,
            "title": self.title,
            "home_page_url": self.page,
            "feed_url": self.json,
            "authors": [{ "name": AUTHOR }],
            "items": items,
        });
        format!("{feed}\n")
    }
}

impl ChangeEntry {
    fn push_atom(&self, out: &mut String) {
        out.push_str("<entry>\n");
        push_element(out, "id", &self.id);
        push_element(out, "title", &self.title);
        let at = self.at.to_string();
        push_element(out, "published", &at);
        push_element(out, "updated", &at);
        xml::push_empty(out, "category", &[("term", Some(self.kind.word()))]);
        out.push('\n');
        push_link(out, "alternate", Some("text/html"), &self.page);
        if let Some(link) = &self.link {
            push_link(out, "related", None, link);
        }
        out.push_str("<content type=\"html\">");
        xml::push_text(out, &self.html);
        out.push_str("</content>\n</entry>\n");
    }

    fn to_json(&self) -> serde_json::Value {
        let mut item = json!({
            "id": self.id,
            "title": self.title,
            "url": self.page,
            "date_published": self.at.to_string(),
            "tags": [self.kind.word()],
            "content_html": self.html,
        });
        if let (Some(link), Some(item)) = (&self.link, item.as_object_mut()) {
            item.insert("external_url".to_owned(), link.as_str().into());
        }
        item
    }
}

fn push_element(out: &mut String, name: &str, text: &str) {
    xml::push_element(out, name, text);
    out.push('\n');
}

fn push_link(out: &mut String, rel: &str, media_type: Option<&str>, address: &str) {
    let said = [("rel", Some(rel)), ("type", media_type), ("href", Some(address))];
    xml::push_empty(out, "link", &said);
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::{self, Limits};

    fn feed() -> ChangeFeed {
        let entry = |number: i64, link: Option<&str>| ChangeEntry {
            id: format!("urn:x:{number}"),
            title: format!("Edited: <b>{number}</b> & \"more\"\u{1}"),
            kind: EventKind::Updated,
            at: Time::from_unix(1_795_191_605 - number),
            page: format!("https://proxy.example/feeds/news/items/{number}?a=1&b=2"),
            link: link.map(str::to_owned),
            html: "<p>old <del>]]&gt;</del></p>".to_owned(),
        };
        ChangeFeed {
            id: "urn:x".to_owned(),
            title: "News: <changes>".to_owned(),
            atom: "https://proxy.example/feeds/news/changes".to_owned(),
            json: "https://proxy.example/feeds/news/changes?as=jsonfeed".to_owned(),
            page: "https://proxy.example/feeds/news/about".to_owned(),
            updated: Time::from_unix(1_795_191_605),
            entries: vec![entry(1, Some("https://a.example/?x=1&y")), entry(2, None)],
        }
    }

    #[test]
    fn what_is_written_is_read_back() {
        let (text, json) = (feed().to_atom(), feed().to_json());
        for text in [&text, &json] {
            let document = parse::document(text, None, &Limits::default()).unwrap();
            assert!(document.warnings.is_empty(), "{:?}", document.warnings);
            assert_eq!(document.entries.len(), 2);
        }
        insta::assert_snapshot!("what_is_written_in_atom_is_read_back", text);
        let value: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(value["items"][0]["external_url"], "https://a.example/?x=1&y");
        assert_eq!(value["items"][1].get("external_url"), None);
        assert_eq!(value["items"][0]["content_html"], "<p>old <del>]]&gt;</del></p>");
    }
}
