//! What an element needs from around it to stand alone.

use super::{DocAttribute, DocElement, NodeId};
use crate::model::Context;
use crate::xml::split_name;
use std::collections::{BTreeMap, BTreeSet};

/// Namespace declarations by their prefixes.
type Declarations<'t, 'a> = BTreeMap<&'a str, DocAttribute<'t, 'a>>;

impl<'t, 'a> DocElement<'t, 'a> {
    /// What the element inherits and uses. Sync markup within it, which is taken out, uses nothing.
    /// `invented`: bindings of prefixes that the document does not declare.
    pub fn context(self, invented: &[(String, String)]) -> Context {
        let parent = self.parent();
        let around = parent.map(Self::declarations_in_scope).unwrap_or_default();
        let used = self.prefixes_from_around(|within| within.ns().is_sync_markup());
        let declared = around.into_iter().filter(|(prefix, _)| used.contains(prefix));
        let declared: Declarations<'_, '_> = declared.collect();
        let made_up = invented.iter().filter(|(prefix, _)| {
            used.contains(prefix.as_str()) && !declared.contains_key(prefix.as_str())
        });
        let made_up: Vec<(String, String)> = made_up.cloned().collect();
        let mut namespaces = pairs(declared);
        namespaces.extend(made_up);
        namespaces.sort_unstable();
        Context {
            namespaces,
            base: parent.and_then(Self::base_spelled),
            lang: parent.and_then(Self::lang),
        }
    }

    /// What elements in it inherit.
    pub fn inner_context(self) -> Context {
        Context { namespaces: self.scope(), base: self.base_spelled(), lang: self.lang() }
    }

    /// The declarations in scope in it.
    pub(super) fn declarations_in_scope(self) -> Declarations<'t, 'a> {
        let mut scope = BTreeMap::new();
        for declaration in self.ancestors().flat_map(Self::declarations) {
            scope.entry(declaration.declared_prefix()).or_insert(declaration);
        }
        scope
    }

    /// The prefixes that it and the elements within it use and do not declare, in order. Elements
    /// within it of which `is_left_out` is true use nothing.
    pub fn prefixes_from_around(self, is_left_out: impl Fn(Self) -> bool) -> BTreeSet<&'a str> {
        let mut used = BTreeSet::new();
        // The prefixes that the open elements declare, each with the number behind its element.
        let mut declared: Vec<(NodeId, &str)> = Vec::new();
        let mut next = self.id;
        while let Some(element) = self.doc.element(next).filter(|_| next < self.behind()) {
            if element.id != self.id && is_left_out(element) {
                next = element.behind();
                continue;
            }
            declared.truncate(declared.partition_point(|(behind, _)| *behind > next));
            let own = element.declarations();
            declared.extend(own.map(|own| (element.behind(), own.declared_prefix())));
            let named = element.attributes().map(|attribute| split_name(attribute.name()).0);
            let named = named.filter(|prefix| !prefix.is_empty());
            for prefix in named.chain([split_name(element.name()).0]) {
                if !declared.iter().any(|(_, own)| *own == prefix) {
                    used.insert(prefix);
                }
            }
            next += 1;
        }
        used
    }
}

/// Declarations as (prefix, URI); an emptied default namespace is none.
pub(super) fn pairs(declarations: Declarations<'_, '_>) -> Vec<(String, String)> {
    let bound = declarations.into_iter().filter(|(prefix, _)| *prefix != "xml");
    let pairs = bound.map(|(prefix, bound)| (prefix.to_owned(), bound.declared_uri().into_owned()));
    pairs.filter(|(_, uri)| !uri.is_empty()).collect()
}
