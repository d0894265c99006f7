//! The element in which an entry keeps the item of a collection that it was made from, and what tells whether
//! the entry still says the same (FeedSync for Collections, section 2.1.7).

use crate::model::Context;
use crate::xml;
use crate::xml::ns::ATOM;
use crate::xml::tree::{self, Element};
use xxhash_rust::xxh3::Xxh3;

/// The namespace of the element that keeps the item.
pub const NAMESPACE: &str = "urn:tidegate:collection";
/// The element of an item in JSON: its text is the object without `sync`.
pub const JSON: &str = "json";
/// The element of an item in plain XML: it has what the item has but `sx:sync`.
pub const POX: &str = "pox";
/// The attribute with the hash of the entry that was made from the item.
pub const OF: &str = "of";
/// The attribute with the names of the members that the entry says in words of Atom, with spaces between.
pub const WORDS: &str = "words";

/// A hash of all that an entry says in words of Atom which a collection has members for.
pub fn words_hash(entry: &Element) -> String {
    let mut hash = Xxh3::new();
    for child in entry.elements().filter(|child| child.namespace == ATOM) {
        let said = match child.name.as_str() {
            "title" | "content" | "summary" | "published" | "updated" => child.content(),
            "author" => child.find(ATOM, "name").map(Element::content).unwrap_or_default(),
            "link" => child.attribute("href").unwrap_or_default().to_owned(),
            "category" => {
                let shown = child.attribute("label").or_else(|| child.attribute("term"));
                shown.unwrap_or_default().to_owned()
            }
            _ => continue,
        };
        hash.update(child.name.as_bytes());
        hash.update(&[0]);
        hash.update(said.trim().as_bytes());
        hash.update(&[0xff]);
    }
    format!("{:016x}", hash.digest())
}

/// Adds the element that keeps an item. `entry`: the entry that was made from the item, which stands where Atom
/// is the default namespace; `words`: the members that it says; `content`: as it stands between the tags.
/// An entry that cannot be read keeps none.
pub fn push(out: &mut String, name: &str, entry: &str, words: &[&str], content: &str) {
    let namespaces = vec![(String::new(), ATOM.to_owned())];
    let context = Context { namespaces, base: None, lang: None };
    let Some(entry) = tree::read(entry, &context) else { return };
    out.push_str(&format!("<collection:{name}"));
    xml::push_attribute(out, "xmlns:collection", NAMESPACE);
    // What stands in it has no namespace unless it says one.
    xml::push_attribute(out, "xmlns", "");
    xml::push_attribute(out, OF, &words_hash(&entry));
    if !words.is_empty() {
        xml::push_attribute(out, WORDS, &words.join(" "));
    }
    out.push('>');
    out.push_str(content);
    out.push_str(&format!("</collection:{name}>"));
}
