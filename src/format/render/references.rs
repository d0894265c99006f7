//! References of entries made absolute, in markup and in HTML within it (RFC 3986 section 5).
//!
//! A reference that names its scheme stays byte for byte. So does one to a place in the same document
//! (`#note`): readers lead it to where they show the text, and against the address of a feed it would
//! lead to the feed.

mod html;

use crate::parse::references::ReferenceKind;
use crate::parse::references::places::{Holds, ReferencePlace, each_place};
use std::borrow::Cow;
use std::cell::Cell;
use std::rc::Rc;
use tidegate_core::xml;
use tidegate_core::xml::address::ADDRESS_LIMIT;
use tidegate_core::xml::doc::{DocElement, NodeId};
use tidegate_core::xml::edits::Edit;
use tidegate_core::xml::ns::Ns;
use url::Url;

pub use html::absolute as absolute_html;

/// The most bytes of addresses that are made for one entry or head; further references stay relative. A
/// base of a few thousand bytes may stand before each of a million references.
const MADE_LIMIT: usize = 8 << 20;

/// Where references of an element lead: what its publisher wrote as `xml:base`, else the address that
/// the document came from.
#[derive(Debug, Clone)]
pub struct Base {
    url: Option<Url>,
    /// Where those in text and markup for people lead, where that is elsewhere.
    text: Option<Url>,
    /// How many bytes of addresses may still be made, here and with the bases within.
    left: Rc<Cell<usize>>,
}

impl Base {
    /// Nothing is resolved where the text is no address.
    pub fn new(address: &str) -> Self {
        let (url, left) = (Url::parse(address).ok(), Rc::new(Cell::new(MADE_LIMIT)));
        Self { url, text: None, left }
    }

    /// The same with another for text and markup for people.
    pub fn with_text(self, address: Option<&str>) -> Self {
        Self { text: address.and_then(|address| Url::parse(address).ok()), ..self }
    }

    /// The address itself; `None` where the text was none.
    pub fn address(&self) -> Option<&str> {
        self.url.as_ref().map(Url::as_str)
    }

    /// Whether text and markup for people has a base of its own.
    pub const fn has_text(&self) -> bool {
        self.text.is_some()
    }

    /// That of text and markup for people.
    fn of_text(&self) -> Cow<'_, Self> {
        match &self.text {
            None => Cow::Borrowed(self),
            Some(_) => {
                let (url, left) = (self.text.clone(), Rc::clone(&self.left));
                Cow::Owned(Self { url, text: None, left })
            }
        }
    }

    /// The base inside an element that names its own.
    fn within(&self, own: &str) -> Self {
        let left = Rc::clone(&self.left);
        let own = own.trim();
        if own.len() > ADDRESS_LIMIT {
            return Self { url: None, text: None, left };
        }
        let found = match &self.url {
            Some(outer) => self.join(outer, own),
            None => Url::parse(own).ok(),
        };
        let text = self.text.as_ref().and_then(|outer| self.join(outer, own));
        Self { url: found.or_else(|| self.url.clone()), text, left }
    }

    /// Joins two addresses while there is room for more.
    fn join(&self, outer: &Url, reference: &str) -> Option<Url> {
        let left = Some(self.left.get()).filter(|left| *left > 0)?;
        let joined = outer.join(reference).ok()?;
        self.left.set(left.saturating_sub(joined.as_str().len()));
        Some(joined)
    }

    /// The address that a relative reference leads to; `None` where it stays as it is.
    pub fn resolve(&self, reference: &str) -> Option<String> {
        let reference = reference.trim();
        if reference.len() > ADDRESS_LIMIT
            || ReferenceKind::of(reference) != ReferenceKind::Relative
        {
            return None;
        }
        self.join(self.url.as_ref()?, reference).map(Into::into)
    }

    /// The same of a reference that is not relative as well: as it is.
    pub fn absolute<'a>(&self, reference: &'a str) -> Cow<'a, str> {
        self.resolve(reference).map_or(Cow::Borrowed(reference), Cow::Owned)
    }
}

/// What makes all references in an element absolute, those in its HTML included.
pub fn absolute_edits(root: DocElement<'_, '_>, base: &Base) -> Vec<Edit> {
    let mut edits = Vec::new();
    // The bases that are in force, each with the number behind its element.
    let mut bases = vec![(NodeId::MAX, base.clone())];
    each_place(root, |found| {
        let is_own = found.element.ns() == root.ns() || found.element.ns() == Ns::Atom;
        let is_passed = found.is_word() && !is_own;
        let ReferencePlace { element, content, holds, place, value } = found;
        while bases.last().is_some_and(|(behind, _)| *behind <= element.id) {
            bases.pop();
        }
        let Some((_, around)) = bases.last() else { return };
        if holds == Holds::Base {
            let inner = around.within(&value);
            return bases.push((element.behind(), inner));
        }
        let base = if content.is_some() { around.of_text() } else { Cow::Borrowed(around) };
        let absolute = match holds {
            Holds::Base | Holds::Permalink | Holds::Text => None,
            _ if is_passed => None,
            Holds::Attribute | Holds::Address => base.resolve(&value),
            Holds::Candidates => html::absolute_candidates(&value, &base),
            Holds::Html => html::absolute(&value, &base),
        };
        let mut with = String::new();
        match (absolute, holds) {
            (None, _) => return,
            (Some(text), Holds::Address | Holds::Html) => xml::push_text(&mut with, &text),
            (Some(value), _) => xml::push_value(&mut with, &value),
        }
        edits.push(Edit { range: place, with: with.into() });
    });
    edits
}
