//! A feed document as those who read it see it: Atom 1.0 or RSS 2.0.

use crate::support::nodes::{is, text};
use roxmltree::Node;
use std::collections::BTreeMap;
use tidegate_core::xml::ns::ATOM;

const SSE: &str = "http://www.microsoft.com/schemas/sse";
const HISTORY: &str = "http://purl.org/syndication/history/1.0";
const TOMBSTONES: &str = "http://purl.org/atompub/tombstones/1.0";

/// An entry, with what its `sx:sync` says.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    pub id: String,
    pub title: String,
    pub text: String,
    pub sync_id: String,
    pub updates: u32,
    pub deleted: bool,
}

/// A feed document.
#[derive(Debug, Default)]
pub struct Document {
    pub links: BTreeMap<String, String>,
    pub entries: Vec<Entry>,
    pub deletions: Vec<String>,
    pub is_archive: bool,
    pub is_complete: bool,
    pub since: Option<String>,
    pub until: Option<String>,
    pub related: Option<String>,
}

impl Document {
    pub fn read(text: &str) -> Self {
        let read = roxmltree::Document::parse(text);
        let read = read.unwrap_or_else(|error| panic!("{error}\n{text}"));
        let root = read.root_element();
        let atom = is(root, (ATOM, "feed"));
        let container = if atom {
            root
        } else {
            assert!(is(root, ("", "rss")), "{text}");
            root.children().find(|child| is(*child, ("", "channel"))).unwrap()
        };
        let mut document = Self::default();
        for element in container.children().filter(Node::is_element) {
            let attribute = |name| element.attribute(name).map(str::to_owned);
            let name = element.tag_name();
            match (name.namespace().unwrap_or_default(), name.name()) {
                (ATOM, "link") => {
                    let (rel, href) = (attribute("rel"), attribute("href").unwrap());
                    let rel = rel.unwrap_or_else(|| "alternate".to_owned());
                    let twice = document.links.insert(rel.clone(), href);
                    assert!(twice.is_none(), "{rel} twice in\n{text}");
                }
                (HISTORY, "archive") => document.is_archive = true,
                (HISTORY, "complete") => document.is_complete = true,
                (TOMBSTONES, "deleted-entry") => {
                    assert!(attribute("when").is_some());
                    document.deletions.push(attribute("ref").unwrap());
                }
                (SSE, "sharing") => {
                    document.since = attribute("since");
                    document.until = attribute("until");
                    let mut related = element.children();
                    let related = related.find(|it| it.attribute("type") == Some("complete"));
                    document.related =
                        related.and_then(|it| it.attribute("link").map(str::to_owned));
                }
                (ATOM, "entry") if atom => document.entries.push(entry(element)),
                ("", "item") if !atom => document.entries.push(entry(element)),
                _ => {}
            }
        }
        document
    }

    pub fn link(&self, rel: &str) -> Option<&str> {
        self.links.get(rel).map(String::as_str)
    }
}

fn entry(entry: Node<'_, '_>) -> Entry {
    let value = |names: &[(&str, &str)]| text(entry, names);
    let sync = entry.children().find(|child| is(*child, (SSE, "sync"))).unwrap();
    Entry {
        id: value(&[(ATOM, "id"), ("", "guid")]).unwrap(),
        title: value(&[(ATOM, "title"), ("", "title")]).unwrap_or_default(),
        text: value(&[(ATOM, "content"), ("", "description")]).unwrap_or_default(),
        sync_id: sync.attribute("id").unwrap().to_owned(),
        updates: sync.attribute("updates").unwrap().parse().unwrap(),
        deleted: sync.attribute("deleted") == Some("true"),
    }
}
