//! Markup in `sx:sync` that SSE does not know (SSE 1.0 section 2.1.8).
//!
//! It is written anew from what was read, so that it can stand in any document: a reference that
//! nothing declares is what HTML knows by its name, and a processing instruction or a comment does not
//! come along.

use super::sync::{is_sync_markup, update};
use super::{Id, StrictContent, Tree};
use tidegate_core::model::{Extra, SyncExtras};
use tidegate_core::xml;
use tidegate_core::xml::ns::{XML, is_reserved};
use tidegate_core::xml::split_name;

/// What stands in an `sx:sync` beyond what SSE knows; `None` where that is more than
/// [`SyncExtras::LIMIT`].
pub(super) fn extras(tree: &Tree<'_>, sync: Id) -> Option<SyncExtras> {
    const SYNC: [&str; 4] = ["id", "updates", "deleted", "noconflicts"];
    let mut left = Budget(SyncExtras::LIMIT);
    let mut extras = SyncExtras {
        sync: extra(tree, sync, &SYNC, &["history", "conflicts"], &mut left)?,
        ..SyncExtras::default()
    };
    for (id, element) in tree.children(sync) {
        if !is_sync_markup(tree, id, "history") {
            continue;
        }
        let extra = extra(tree, id, &["sequence", "when", "by"], &[], &mut left)?;
        if let Some(update) = update(element).ok().filter(|_| !extra.is_empty()) {
            extras.updates.push((update, extra));
        }
    }
    Some(extras).filter(|extras| extras.size() <= SyncExtras::LIMIT)
}

/// How many bytes may still be kept.
struct Budget(usize);

impl Budget {
    /// Takes some; `None` where there are not that many left.
    fn take(&mut self, bytes: usize) -> Option<()> {
        self.0 = self.0.checked_sub(bytes)?;
        Some(())
    }
}

/// `None` where there is too much of it.
fn extra(
    tree: &Tree<'_>,
    id: Id,
    attributes: &[&str],
    children: &[&str],
    left: &mut Budget,
) -> Option<Extra> {
    let mut extra = Extra::default();
    let written = tree.element(id).map(|element| &element.attributes[..]).unwrap_or_default();
    for attribute in written {
        let (prefix, local) = split_name(attribute.name);
        if prefix.is_empty() && attributes.contains(&local) {
            continue;
        }
        let Some((_, namespace)) = attribute_name(tree, id, prefix) else { continue };
        left.take(namespace.len() + local.len() + attribute.value.len())?;
        let namespace = Some(namespace).filter(|namespace| !namespace.is_empty());
        // Two of one name, by different prefixes, would be no XML (Namespaces in XML 1.0 section 6.3).
        let is_new = !extra
            .attributes
            .iter()
            .any(|(known, name, _)| known.as_deref() == namespace && name == local);
        if is_new {
            let namespace = namespace.map(ToOwned::to_owned);
            extra.attributes.push((namespace, local.to_owned(), attribute.value.to_string()));
        }
    }
    for (child, _) in tree.children(id) {
        if !children.iter().any(|known| is_sync_markup(tree, child, known)) {
            // What it uses it declares itself.
            ExtrasWriter { tree, out: &mut extra.elements, left, scope: Vec::new() }
                .element(child)?;
        }
    }
    Some(extra)
}

/// The prefix that a name is written with, and its namespace; `None` where it cannot be written.
fn written<'t>(prefix: &'t str, namespace: &'t str) -> Option<(&'t str, &'t str)> {
    let prefix = if namespace == XML { "xml" } else { prefix };
    Some((prefix, namespace)).filter(|_| !is_reserved(prefix, namespace))
}

/// The same for an attribute, which is in no namespace without prefix.
fn attribute_name<'t>(tree: &'t Tree<'_>, id: Id, prefix: &'t str) -> Option<(&'t str, &'t str)> {
    match prefix {
        "" => Some(("", "")),
        prefix => written(prefix, tree.binding(id, prefix).unwrap_or_default()),
    }
}

/// Elements on their way into text.
struct ExtrasWriter<'w, 't, 'a> {
    tree: &'t Tree<'a>,
    out: &'w mut String,
    left: &'w mut Budget,
    /// What the elements around declare.
    scope: Vec<(&'t str, &'t str)>,
}

impl<'t> ExtrasWriter<'_, 't, '_> {
    /// Adds an element with all within it; `None` where that is too much. A tree is no deeper than its
    /// reader lets it be.
    fn element(&mut self, id: Id) -> Option<()> {
        let tree = self.tree;
        let Some(element) = tree.element(id) else { return Some(()) };
        let (prefix, local) = split_name(element.name);
        let namespace = tree.binding(id, prefix).unwrap_or_default();
        let Some((prefix, namespace)) = written(prefix, namespace) else { return Some(()) };
        let outside = self.scope.len();
        self.push("<")?;
        self.name(prefix, local)?;
        self.declare(prefix, namespace)?;
        let mut seen: Vec<(&str, &str)> = Vec::new();
        for attribute in &element.attributes {
            let (prefix, local) = split_name(attribute.name);
            let Some((prefix, namespace)) = attribute_name(tree, id, prefix) else { continue };
            if seen.contains(&(namespace, local)) {
                continue;
            }
            if !prefix.is_empty() {
                self.declare(prefix, namespace)?;
            }
            seen.push((namespace, local));
            let name = if prefix.is_empty() { local } else { &format!("{prefix}:{local}") };
            self.attribute(name, &attribute.value)?;
        }
        if tree.contents(id).next().is_none() {
            self.push("/>")?;
        } else {
            self.push(">")?;
            for content in tree.contents(id) {
                match content {
                    StrictContent::Element(child) => self.element(*child)?,
                    StrictContent::Text(text) => {
                        self.within(text.len(), |out| xml::push_text(out, text))?
                    }
                }
            }
            self.push("</")?;
            self.name(prefix, local)?;
            self.push(">")?;
        }
        self.scope.truncate(outside);
        Some(())
    }

    /// Declares a prefix where it does not stand for that namespace.
    fn declare(&mut self, prefix: &'t str, namespace: &'t str) -> Option<()> {
        let bound = self.scope.iter().rev().find(|(bound, _)| *bound == prefix);
        if prefix == "xml" || bound.is_some_and(|(_, bound)| *bound == namespace) {
            return Some(());
        }
        match prefix {
            "" => self.attribute("xmlns", namespace)?,
            prefix => self.attribute(&format!("xmlns:{prefix}"), namespace)?,
        }
        self.scope.push((prefix, namespace));
        Some(())
    }

    fn name(&mut self, prefix: &str, local: &str) -> Option<()> {
        if !prefix.is_empty() {
            self.push(prefix)?;
            self.push(":")?;
        }
        self.push(local)
    }

    fn attribute(&mut self, name: &str, value: &str) -> Option<()> {
        self.within(name.len() + value.len(), |out| xml::push_attribute(out, name, value))
    }

    fn push(&mut self, text: &str) -> Option<()> {
        self.within(text.len(), |out| out.push_str(text))
    }

    /// Adds what is of at least so many bytes, where there is room for them.
    fn within(&mut self, least: usize, add: impl FnOnce(&mut String)) -> Option<()> {
        if least > self.left.0 {
            return None;
        }
        let before = self.out.len();
        add(self.out);
        self.left.take(self.out.len().saturating_sub(before))
    }
}

#[cfg(test)]
mod tests {
    use crate::parse::sse::{Tree, read};
    use tidegate_core::model::{Extra, SyncExtras};

    /// The extras of the one item of a feed, whose root has those declarations.
    fn extras(declarations: &str, sync: &str) -> Option<SyncExtras> {
        let text = format!(
            "<rss xmlns:sx=\"http://www.microsoft.com/schemas/sse\"{declarations}><channel><item>\
             <sx:sync id=\"a\" updates=\"1\"{sync}</sx:sync></item></channel></rss>"
        );
        read(&text).unwrap().items.remove(0).extras
    }

    const HISTORY: &str = "<sx:history sequence=\"1\" by=\"A\"/>";

    #[test]
    fn what_is_too_much_is_not_gathered() {
        let long = format!(" xmlns:e=\"urn:{}\"", "x".repeat(1 << 20));
        for sync in [
            format!(">{HISTORY}{}", "<e:a/>".repeat(1_000)),
            format!(" e:a=\"\">{HISTORY}"),
            "><sx:history sequence=\"1\" by=\"A\"><b e:a=\"\"/></sx:history>".to_owned(),
        ] {
            assert_eq!(extras(&long, &sync), None);
        }
        // Together, too.
        let each = format!("<a>{}</a>", "x".repeat(1_000));
        assert!(extras("", &format!(">{HISTORY}{}", each.repeat(7))).is_some());
        assert_eq!(extras("", &format!(">{HISTORY}{}", each.repeat(9))), None);
        let each = format!("<sx:history sequence=\"1\" by=\"A\">{each}</sx:history>");
        assert!(extras("", &format!(">{}", each.repeat(7))).is_some());
        assert_eq!(extras("", &format!(">{}", each.repeat(9))), None);
    }

    /// What no document can take over as it is written.
    #[test]
    fn it_is_written_so_that_it_can_stand_anywhere() {
        let declarations = " xmlns:e=\"urn:e\" xmlns:f=\"urn:e\"";
        let sync = format!(
            " e:a=\"1\" f:a=\"2\">{HISTORY}<e:m x=\"&eacute;\" e:a='1' f:a='2'>&eacute;&nothing;&amp;\
             <?pi?><!-- a -- b --><![CDATA[<]]><n xmlns=\"urn:n\"><o xmlns=\"\"/></n></e:m><p/>"
        );
        let Extra { attributes, elements } = extras(declarations, &sync).unwrap().sync;
        assert_eq!(attributes, [(Some("urn:e".to_owned()), "a".to_owned(), "1".to_owned())]);
        assert_eq!(
            elements,
            "<e:m xmlns:e=\"urn:e\" x=\"é\" e:a=\"1\">é&amp;nothing;&amp;\
             &lt;<n xmlns=\"urn:n\"><o xmlns=\"\"/></n></e:m><p xmlns=\"\"/>"
        );
        assert!(Tree::read(&format!("<x>{elements}</x>")).is_ok());
        let reserved = " xmlns:l=\"http://www.w3.org/XML/1998/namespace\" \
                        xmlns:d=\"http://www.w3.org/2000/xmlns/\"";
        let sync = format!(" d:a=\"\">{HISTORY}<m l:lang=\"de\" d:a=\"\"/><d:m/>");
        let extra = extras(reserved, &sync).unwrap().sync;
        assert!(extra.attributes.is_empty());
        assert_eq!(extra.elements, "<m xmlns=\"\" xml:lang=\"de\"/>");
    }
}
