//! The element in which an entry has the shape that its item has in a collection, and of which entry a
//! shape is (FeedSync for Collections, section 2.1.7).

use crate::model::Context;
use crate::xml;
use crate::xml::ns::ATOM;
use crate::xml::tree::{self, Element};
use xxhash_rust::xxh3::Xxh3;

/// The namespace of the element that bears the shape.
pub const NAMESPACE: &str = "urn:tidegate:collection";
/// The element of an item in JSON: its text is the object.
pub const JSON: &str = "json";
/// The element of an item in plain XML: it has the item's own elements.
pub const POX: &str = "pox";
/// The attribute that says of which entry it is the shape.
pub const OF: &str = "of";
/// What of an entry says whether its shape is still that of what it says: all that a collection has
/// words for.
pub fn print(entry: &Element) -> String {
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

/// The print of an entry's text, which stands where Atom is the default namespace.
pub fn print_of(entry: &str) -> Option<String> {
    let namespaces = vec![(String::new(), ATOM.to_owned())];
    let entry = tree::read(entry, &Context { namespaces, base: None, lang: None })?;
    Some(print(&entry))
}

/// The element of an item's shape as text: `content` as it stands between its tags.
pub fn push(out: &mut String, name: &str, of: &str, content: &str) {
    out.push_str(&format!("<shape:{name}"));
    xml::push_attribute(out, "xmlns:shape", NAMESPACE);
    // What stands in it has no namespace unless it says one.
    xml::push_attribute(out, "xmlns", "");
    xml::push_attribute(out, OF, of);
    out.push('>');
    out.push_str(content);
    out.push_str(&format!("</shape:{name}>"));
}
