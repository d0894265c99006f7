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
        self.bindings.push(Binding { prefix, uri, ns });
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

    /// What a prefix means. `None`: undeclared.
    pub fn resolve(&self, prefix: &str) -> Option<Ns> {
        let bound = |all: &[Binding<'_>]| {
            all.iter().rev().find(|binding| binding.prefix == prefix).map(|binding| binding.ns)
        };
        bound(&self.bindings).or_else(|| match prefix {
            "" => Some(Ns::None),
            "xml" => Some(Ns::Xml),
            _ => bound(&self.invented),
        })
    }

    /// Makes up a declaration for a prefix that has none.
    pub fn invent(&mut self, prefix: &'a str) -> Ns {
        let uri = ns::customary(prefix);
        let ns = self.classify(&uri);
        self.invented.push(Binding { prefix, uri, ns });
        ns
    }

    /// How many declarations were made up.
    pub const fn invented_len(&self) -> usize {
        self.invented.len()
    }

    /// The declarations that were made up, as (prefix, URI).
    pub fn invented(&self) -> Vec<(String, String)> {
        let made_up = self.invented.iter();
        made_up.map(|b| (b.prefix.to_owned(), b.uri.clone().into_owned())).collect()
    }
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
}
