//! An attribute as it stands in a document.

use super::{Doc, DocAttributeSpan, index};
use crate::xml::ns::Ns;
use crate::xml::{self, cut, split_name};
use std::borrow::Cow;
use std::ops::Range;

/// An attribute or a namespace declaration of an element.
#[derive(Debug, Clone, Copy)]
pub struct DocAttribute<'t, 'a> {
    pub(super) doc: &'t Doc<'a>,
    pub(super) written: &'t DocAttributeSpan,
}

impl<'a> DocAttribute<'_, 'a> {
    /// Its namespace.
    pub fn ns(self) -> Ns {
        Ns::from_code(self.written.ns)
    }

    /// Its spelled name.
    pub fn name(self) -> &'a str {
        let start = index(self.written.start);
        cut(self.doc.text, start..start + usize::from(self.written.name))
    }

    /// Its local name.
    pub fn local(self) -> &'a str {
        split_name(self.name()).1
    }

    /// The prefix that a declaration binds; empty for the default namespace.
    pub fn declared_prefix(self) -> &'a str {
        xml::declared_prefix(self.name()).unwrap_or_default()
    }

    /// The namespace URI that a declaration binds, in its canonical spelling.
    pub fn declared_uri(self) -> Cow<'a, str> {
        self.doc.respelled(self.declared_prefix(), self.place()).unwrap_or_else(|| self.value())
    }

    /// The place of its value as written, without quotes.
    pub fn place(self) -> Range<usize> {
        index(self.written.value)..index(self.written.value_end)
    }

    /// Its value: references resolved, white space as spaces (XML 1.0 section 3.3.3).
    pub fn value(self) -> Cow<'a, str> {
        self.doc.value(self.place())
    }
}
