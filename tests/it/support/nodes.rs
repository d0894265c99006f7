//! Elements of a document, as a reader that shares nothing with the gateway has them.

use roxmltree::Node;

/// Whether a node is the element of a namespace, `""` for none, with a name.
pub fn is(node: Node<'_, '_>, (namespace, name): (&str, &str)) -> bool {
    let tag = node.tag_name();
    node.is_element() && (tag.namespace().unwrap_or_default(), tag.name()) == (namespace, name)
}

/// The text of the first child with one of these names, and of all within it.
pub fn text(node: Node<'_, '_>, names: &[(&str, &str)]) -> Option<String> {
    let found = node.children().find(|child| names.iter().any(|name| is(*child, *name)))?;
    let texts = found.descendants().filter(Node::is_text).filter_map(|text| text.text());
    Some(texts.collect::<String>().trim().to_owned())
}
