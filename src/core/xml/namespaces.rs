//! Namespaces: what a publisher's prefixes mean.

use super::ns::{self, Ns};
use crate::xml::trim;
use std::borrow::Cow;
use std::collections::HashMap;

/// A namespace declaration.
#[derive(Debug, Clone)]
struct Binding<'a> {
    prefix: &'a str,
    uri: Cow<'a, str>,
    ns: Ns,
    /// The last entry that used it from outside of its own declarations.
    used: u32,
}

/// The declarations in scope, innermost last.
#[derive(Debug, Default)]
pub struct NamespaceScope<'a> {
    bindings: Vec<Binding<'a>>,
    /// Declarations made up for prefixes that the document does not declare; they count as the
    /// root's.
    invented: Vec<Binding<'a>>,
    others: HashMap<String, u32>,
    uris: Vec<String>,
    /// Where the declarations of the open entry begin, and its number; none: the number is 0.
    fence: usize,
    entry: u32,
}

impl<'a> NamespaceScope<'a> {
    /// How many declarations are in scope.
    pub const fn declared(&self) -> usize {
        self.bindings.len()
    }

    /// Leaves elements: only the first `length` declarations stay.
    pub fn truncate(&mut self, length: usize) {
        self.bindings.truncate(length);
    }

    /// Enters a declaration, and answers what its namespace is.
    pub fn declare(&mut self, prefix: &'a str, uri: Cow<'a, str>) -> Ns {
        let ns = self.classify(&uri);
        self.bindings.push(Binding { prefix, uri, ns, used: 0 });
        ns
    }

    /// What a namespace is.
    pub fn classify(&mut self, uri: &str) -> Ns {
        let uri = trim(uri);
        if uri.is_empty() {
            return Ns::None;
        }
        if let Some(ns) = Ns::of(uri) {
            return ns;
        }
        if let Some(number) = self.others.get(uri) {
            return Ns::Other(*number);
        }
        let number = u32::try_from(self.uris.len()).unwrap_or(u32::MAX);
        self.uris.push(uri.to_owned());
        self.others.insert(uri.to_owned(), number);
        Ns::Other(number)
    }

    /// The namespace URIs of [`Ns::Other`], by its number.
    pub fn take_uris(&mut self) -> Vec<String> {
        std::mem::take(&mut self.uris)
    }

    /// From here on declarations are those of an entry; uses of earlier ones are remembered.
    pub fn enter_entry(&mut self, outer: usize) {
        self.fence = outer;
        self.entry = self.entry.saturating_add(1);
    }

    /// Takes a prefix for what it means, and remembers that the entry used it. `None`: undeclared.
    pub fn resolve(&mut self, prefix: &str) -> Option<Ns> {
        let found = self.bindings.iter_mut().enumerate().rev().find(|(_, b)| b.prefix == prefix);
        if let Some((at, binding)) = found {
            if at < self.fence {
                binding.used = self.entry;
            }
            return Some(binding.ns);
        }
        match prefix {
            "" => return Some(Ns::None),
            "xml" => return Some(Ns::Xml),
            _ => {}
        }
        let invented = self.invented.iter_mut().find(|binding| binding.prefix == prefix)?;
        invented.used = self.entry;
        Some(invented.ns)
    }

    /// Makes up a declaration for a prefix that has none.
    pub fn invent(&mut self, prefix: &'a str) -> Ns {
        let uri = ns::customary(prefix);
        let ns = self.classify(&uri);
        self.invented.push(Binding { prefix, uri, ns, used: self.entry });
        ns
    }

    /// How many declarations were made up.
    pub const fn invented_len(&self) -> usize {
        self.invented.len()
    }

    /// What the open entry used from outside, in order of prefix.
    pub fn used_by_entry(&self) -> Vec<(String, String)> {
        let outer = self.bindings.iter().take(self.fence).chain(&self.invented);
        pairs(outer.filter(|binding| binding.used == self.entry))
    }

    /// The declarations that were made up, as (prefix, URI).
    pub fn invented(&self) -> Vec<(String, String)> {
        let made_up = self.invented.iter();
        made_up.map(|b| (b.prefix.to_owned(), b.uri.clone().into_owned())).collect()
    }
}

/// (prefix, URI) in order of prefix; of several with one prefix the last counts, and an emptied
/// default namespace is none.
fn pairs<'b, 'a: 'b>(bindings: impl Iterator<Item = &'b Binding<'a>>) -> Vec<(String, String)> {
    let mut out = std::collections::BTreeMap::new();
    for binding in bindings.filter(|binding| binding.prefix != "xml") {
        out.insert(binding.prefix.to_owned(), binding.uri.clone().into_owned());
    }
    out.into_iter().filter(|(_, uri)| !uri.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_namespaces_have_numbers() {
        let mut scope = NamespaceScope::default();
        assert_eq!(scope.classify(" "), Ns::None);
        let other = scope.classify("urn:a");
        assert_eq!(other, scope.classify(" urn:a\n"));
        assert_ne!(other, scope.classify("urn:b"));
    }

    #[test]
    fn an_entry_brings_along_what_it_uses_and_no_more() {
        let mut scope = NamespaceScope::default();
        scope.declare("", Cow::Borrowed("urn:d"));
        scope.declare("b", Cow::Borrowed("urn:b"));
        scope.declare("a", Cow::Borrowed("urn:a"));
        scope.declare("a", Cow::Borrowed("urn:a2"));
        scope.enter_entry(4);
        scope.declare("b", Cow::Borrowed("urn:b2"));
        for prefix in ["", "a", "b"] {
            assert!(scope.resolve(prefix).is_some());
        }
        let text = |p: &str, u: &str| (p.to_owned(), u.to_owned());
        assert_eq!(scope.used_by_entry(), [text("", "urn:d"), text("a", "urn:a2")]);
        assert_eq!(scope.resolve("zz"), None);
    }
}
