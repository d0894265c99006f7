//! Namespaces, base and language in scope, and the prefixes of our own elements.

use super::{Addresses, Dialect};
use std::borrow::Cow;
use tidegate_core::model::{Context, Family};
use tidegate_core::sync_markup::sx;
use tidegate_core::xml::ns::{ATOM, HISTORY, TOMBSTONES};

/// What an element inherits where it is put.
#[derive(Debug, Clone)]
pub struct Scope<'a> {
    /// Bindings of prefixes, the innermost last; the default namespace has prefix `""`.
    pub namespaces: Vec<(&'a str, &'a str)>,
    /// The `xml:base` in force, where there is one.
    pub base: Option<Cow<'a, str>>,
    /// The language.
    pub lang: Option<&'a str>,
}

impl Scope<'_> {
    /// The namespace that a prefix is bound to.
    pub fn namespace(&self, prefix: &str) -> Option<&str> {
        self.namespaces.iter().rev().find(|(bound, _)| *bound == prefix).map(|(_, name)| *name)
    }

    /// The default namespace, empty where there is none.
    pub fn default_namespace(&self) -> &str {
        self.namespace("").unwrap_or("")
    }
}

/// What a document has beside the sync markup.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Extensions {
    /// `at:deleted-entry`; Atom only.
    pub has_tombstones: bool,
    /// `fh:archive` or `fh:complete`.
    pub has_history: bool,
}

/// The prefixes of our own elements in one document, computed once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prefixes {
    /// Of `sx:sharing` and `sx:sync`.
    pub sharing: String,
    /// The dialect of these.
    pub dialect: Dialect,
    /// The namespace of these.
    pub sharing_namespace: &'static str,
    /// Of `atom:link` in RSS.
    pub atom: Option<String>,
    /// Of `at:deleted-entry`.
    pub tombstones: Option<String>,
    /// Of `fh:archive` and `fh:complete`.
    pub history: Option<String>,
    /// What must be declared on the root.
    pub declarations: Vec<(String, &'static str)>,
}

impl Prefixes {
    /// Chooses prefixes for a document around `context`: those that its publisher has bound to our
    /// namespaces already, else the customary ones, else the customary ones with a number.
    pub fn choose(
        context: &Context,
        family: Family,
        dialect: Dialect,
        extensions: Extensions,
    ) -> Self {
        let mut declarations = Vec::new();
        let mut choose = |wanted: &str, namespace: &'static str| {
            let bound = context.namespaces.iter().find(|(p, n)| !p.is_empty() && n == namespace);
            if let Some((prefix, _)) = bound {
                return prefix.clone();
            }
            let taken = |prefix: &str| context.namespaces.iter().any(|(p, _)| p == prefix);
            let prefix = if taken(wanted) {
                // One of so many numbers is free, since so many bindings exist.
                (1..=context.namespaces.len() + 1)
                    .map(|number| format!("{wanted}{number}"))
                    .find(|prefix| !taken(prefix))
                    .unwrap_or_else(|| format!("{wanted}0"))
            } else {
                wanted.to_owned()
            };
            declarations.push((prefix.clone(), namespace));
            prefix
        };
        let sharing_namespace = sx::namespace(dialect);
        let sharing = choose("sx", sharing_namespace);
        let atom = (family == Family::Rss).then(|| choose("atom", ATOM));
        let tombstones = family == Family::Atom && extensions.has_tombstones;
        let tombstones = tombstones.then(|| choose("at", TOMBSTONES));
        let history = extensions.has_history.then(|| choose("fh", HISTORY));
        Self { sharing, dialect, sharing_namespace, atom, tombstones, history, declarations }
    }

    /// The scope that entries of a document around `context` stand in.
    pub fn scope<'a>(&'a self, context: &'a Context) -> Scope<'a> {
        let ours = self.declarations.iter().map(|(prefix, name)| (prefix.as_str(), *name));
        Scope {
            namespaces: borrow(&context.namespaces).chain(ours).collect(),
            base: context.base.as_deref().map(Cow::Borrowed),
            lang: context.lang.as_deref(),
        }
    }
}

/// Bindings as slices of text.
pub fn borrow(bindings: &[(String, String)]) -> impl Iterator<Item = (&str, &str)> {
    bindings.iter().map(|(prefix, name)| (prefix.as_str(), name.as_str()))
}

/// The base of a context: where its document names none, the address that it came from
/// (RFC 3986 section 5.1.3).
pub fn base_of<'a>(context: &'a Context, addresses: &'a Addresses) -> &'a str {
    context.base.as_deref().unwrap_or(&addresses.upstream)
}
