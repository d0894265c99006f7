//! A feed document as those who read it see it, Atom 1.0 or RSS 2.0: what it says, and what the W3C feed validator
//! demands of Feed History.

use roxmltree::Node;
use std::collections::{BTreeMap, BTreeSet};
use tidegate_core::xml::ns::ATOM;

const SSE: &str = "http://www.microsoft.com/schemas/sse";
const HISTORY: &str = "http://purl.org/syndication/history/1.0";
const TOMBSTONES: &str = "http://purl.org/atompub/tombstones/1.0";
const CONTENT: &str = "http://purl.org/rss/1.0/modules/content/";
/// The relations of paged feeds, which have no place among archives.
const PAGING: [&str; 3] = ["first", "last", "next"];

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

#[derive(Debug, Default)]
pub struct Document {
    pub links: BTreeMap<String, String>,
    pub entries: Vec<Entry>,
    pub deletions: Vec<String>,
    pub is_archive: bool,
    pub is_complete: bool,
    pub updated: String,
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
            assert!(is(root, ("", "rss")) && root.attribute("version") == Some("2.0"), "{text}");
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
                (ATOM, "updated") if atom => {
                    document.updated = element.text().unwrap().to_owned();
                }
                (ATOM, "entry") if atom => document.entries.push(entry(element)),
                ("", "item") if !atom => document.entries.push(entry(element)),
                _ => {}
            }
        }
        document.check_history(text);
        if atom {
            check_head(root, text);
        }
        document
    }

    pub fn link(&self, rel: &str) -> Option<&str> {
        self.links.get(rel).map(String::as_str)
    }

    /// The rules of Feed History for one document.
    fn check_history(&self, text: &str) {
        let ids: BTreeSet<&str> = self.entries.iter().map(|entry| entry.id.as_str()).collect();
        assert_eq!(ids.len(), self.entries.len(), "DuplicateEntries\n{text}");
        assert!(PAGING.iter().all(|rel| self.link(rel).is_none()), "beside archives\n{text}");
        assert!(!self.is_archive || self.link("current").is_some(), "without current\n{text}");
        assert!(!self.is_archive || !self.is_complete, "an archive and complete\n{text}");
        let previous = self.link("previous");
        assert!(previous.is_none() || previous == self.link("prev-archive"), "{text}");
        // Who lives is not said to be deleted.
        let mut living = self.entries.iter().filter(|entry| !entry.deleted);
        assert!(living.all(|entry| !self.deletions.contains(&entry.id)), "{text}");
    }
}

/// The head of an Atom feed is whole, and nothing of it stands behind the first entry.
fn check_head(root: Node<'_, '_>, text: &str) {
    let children: Vec<_> = root.children().filter(Node::is_element).collect();
    for name in ["id", "title", "updated"] {
        let found = children.iter().filter(|child| is(**child, (ATOM, name))).count();
        assert_eq!(found, 1, "{name} (MissingElement)\n{text}");
    }
    let is_entry = |child: &&Node<'_, '_>| is(**child, (ATOM, "entry"));
    let behind = children.iter().skip_while(|child| !is_entry(child));
    let mut misplaced = behind.filter(|child| !is_entry(child));
    assert!(misplaced.all(|child| child.tag_name().namespace() != Some(ATOM)), "{text}");
}

/// Whether a node is the element of a namespace, `""` for none, with a name.
fn is(node: Node<'_, '_>, (namespace, name): (&str, &str)) -> bool {
    let tag = node.tag_name();
    node.is_element() && (tag.namespace().unwrap_or_default(), tag.name()) == (namespace, name)
}

/// The text of the first child with one of these names, and of all within it.
fn text(node: Node<'_, '_>, names: &[(&str, &str)]) -> Option<String> {
    let found = node.children().find(|child| names.iter().any(|name| is(*child, *name)))?;
    let texts = found.descendants().filter(Node::is_text).filter_map(|text| text.text());
    Some(texts.collect::<String>().trim().to_owned())
}

fn entry(entry: Node<'_, '_>) -> Entry {
    let value = |names: &[(&str, &str)]| text(entry, names);
    let sync = entry.children().find(|child| is(*child, (SSE, "sync"))).unwrap();
    let mut links = entry.children().filter(|child| is(*child, (ATOM, "link")));
    let archives = |link: Node<'_, '_>| {
        matches!(link.attribute("rel"), Some("prev-archive" | "next-archive" | "current"))
    };
    assert!(!links.any(archives), "FeedHistoryRelInEntry");
    let texts = [(ATOM, "content"), (ATOM, "summary"), ("", "description"), (CONTENT, "encoded")];
    Entry {
        id: value(&[(ATOM, "id"), ("", "guid")]).unwrap(),
        title: value(&[(ATOM, "title"), ("", "title")]).unwrap_or_default(),
        text: value(&texts).unwrap_or_default(),
        sync_id: sync.attribute("id").unwrap().to_owned(),
        updates: sync.attribute("updates").unwrap().parse().unwrap(),
        deleted: sync.attribute("deleted") == Some("true"),
    }
}
