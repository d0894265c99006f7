//! Start tags: attributes, namespaces, base and language.

use super::RepairKind;
use super::attributes::{Broken, TagCursor};
use super::build::Builder;
use super::{DocAttributeSpan, DocNode, LimitReached, NodeId, index, offset};
use crate::model::Flaw;
use crate::xml::ns::{ATOM, ATOM03, Ns, is_reserved};
use crate::xml::{self, cut, declared_prefix, is_name, split_name};
use std::borrow::Cow;
use std::ops::Range;

/// An element that is open.
#[derive(Debug, Clone, Default)]
pub(super) struct OpenElement<'a> {
    pub(super) node: NodeId,
    /// Its spelled name.
    pub(super) name: &'a str,
    /// Where its content begins.
    pub(super) content: usize,
    /// How many declarations are in scope around it.
    pub(super) scope: usize,
    /// How many repairs, holes and doubts there are before its tag.
    pub(super) repairs: usize,
    pub(super) holes: usize,
    pub(super) doubts: usize,
}

impl<'a> Builder<'a> {
    /// Reads a start tag or an empty-element tag, and answers whether its element has opened.
    pub(super) fn start(
        &mut self,
        span: &Range<usize>,
        name: &'a str,
        is_empty: bool,
    ) -> Result<bool, LimitReached> {
        // No element has this prefix (Namespaces in XML 1.0, section 3).
        if !is_name(name) || split_name(name).0 == "xmlns" {
            self.is_balanced &= self.is_garbled;
            self.broken(span);
            return Ok(false);
        }
        if self.entry_begins(span, name, is_empty) {
            return Ok(false);
        }
        let inner = span.start + 1 + name.len()..span.end - if is_empty { 2 } else { 1 };
        let mut written = std::mem::take(&mut self.written);
        let lexed = match self.is_list {
            true => Ok(true),
            false => TagCursor::new(cut(self.doc.text, 0..inner.end), inner.start, &mut written)
                .attributes(self.limits.attributes),
        };
        let limits = self.limits;
        let is_long = |name: &str| name.len() > limits.name;
        let too_much = match lexed {
            Err(Broken::Unreadable) if !is_long(name) => {
                self.is_garbled = true;
                self.broken(span);
                self.written = written;
                return Ok(false);
            }
            _ if is_long(name) || written.iter().any(|w| is_long(w.name)) => {
                Some(("bytes in one name", limits.name))
            }
            Err(_) => Some(("attributes of one element", limits.attributes)),
            Ok(_) if self.open.len() >= limits.depth => {
                Some(("elements inside each other", limits.depth))
            }
            Ok(_) if self.weight() > limits.weight => {
                Some(("bytes in elements and attributes", limits.weight))
            }
            Ok(_) => self.open_element(span, name, is_empty, &written),
        };
        self.written = written;
        match too_much {
            Some((what, limit)) => self.too_much(what, limit, span.start).map(|()| false),
            None => Ok(true),
        }
    }

    /// Bytes that elements and attributes take.
    fn weight(&self) -> usize {
        self.doc.nodes.len() * size_of::<DocNode>()
            + self.doc.attributes.len() * size_of::<DocAttributeSpan>()
    }

    /// Opens an element; a limit that it meets, where it does.
    fn open_element(
        &mut self,
        span: &Range<usize>,
        name: &'a str,
        is_empty: bool,
        written: &[WrittenAttribute<'a>],
    ) -> Option<(&'static str, usize)> {
        let scope = self.scope.declared();
        let (repairs, holes) = (self.repairs.len(), self.doc.holes.len());
        let doubts = self.findings.doubts;
        let attributes = self.doc.attributes.len();
        self.declare_atom(span.start, name, written);
        for (number, attribute) in written.iter().enumerate() {
            let Some(prefix) = declared_prefix(attribute.name) else { continue };
            let mut uri = self.value(&attribute.value);
            let again = written.iter().take(number).any(|other| other.name == attribute.name);
            if again || is_reserved(prefix, &uri) || (uri.is_empty() && !prefix.is_empty()) {
                self.take_out(attribute, "a namespace declaration that XML forbids is taken out");
                continue;
            }
            if self.open.is_empty() && self.doc.given.is_some() && prefix.is_empty() {
                continue;
            }
            self.spell(attribute);
            let is_too_much =
                uri.len() > self.limits.name || self.scope.declared() >= self.limits.namespaces;
            if is_too_much && self.is_list {
                self.take_out(attribute, "a namespace is taken out that is too long or too many");
                continue;
            }
            if is_too_much {
                self.scope.truncate(scope);
                self.doc.attributes.truncate(attributes);
                return Some(("namespaces in scope", self.limits.namespaces));
            }
            if let Some(canonical) = self.doc.respelled(prefix, attribute.value.clone()) {
                uri = canonical;
                self.repair(attribute.value.clone(), RepairKind::Namespace);
            }
            let ns = self.scope.declare(prefix, uri);
            self.note(attribute, ns, true);
        }
        let (prefix, local) = split_name(name);
        let ns = self.meaning(prefix, span.start);
        let (node, content) = (offset(self.doc.nodes.len()), span.end);
        let parent = self.open.last().map_or(0, |parent| parent.node);
        let has_base = self.doc.nodes.get(index(parent)).is_some_and(|parent| parent.has_base);
        self.doc.nodes.push(DocNode {
            start: offset(span.start),
            content: offset(content),
            content_end: offset(content),
            end: offset(content),
            parent,
            next: node + 1,
            attributes: offset(attributes),
            ns,
            name: u16::try_from(name.len()).unwrap_or_default(),
            prefix: u16::try_from(name.len() - local.len()).unwrap_or_default().saturating_sub(1),
            is_empty,
            has_base,
        });
        let open = OpenElement { node, name, content, scope, repairs, holes, doubts };
        self.open.push(open);
        let declared = self.doc.attributes.len();
        for attribute in written.iter().filter(|w| declared_prefix(w.name).is_none()) {
            self.attribute(attribute, declared);
        }
        self.is_rooted = true;
        None
    }

    /// Declares Atom's namespace in a root that is called like a feed of Atom and stands in none, as
    /// if it had done so itself.
    fn declare_atom(&mut self, start: usize, name: &str, written: &[WrittenAttribute<'a>]) {
        if !self.open.is_empty() || name != "feed" {
            return;
        }
        let attribute = |name: &str| written.iter().find(|attribute| attribute.name == name);
        let is = |attribute: &WrittenAttribute<'a>, value| {
            xml::trim(&self.doc.value(attribute.value.clone())) == value
        };
        let declared = attribute("xmlns");
        if declared.is_some_and(|declared| !is(declared, "")) {
            return;
        }
        let is_03 = attribute("version").is_some_and(|version| is(version, "0.3"));
        let uri = if is_03 { ATOM03 } else { ATOM };
        let behind_name = start + 1 + name.len();
        let place = declared.map_or(behind_name..behind_name, WrittenAttribute::span);
        self.findings.warn(start, "the feed stands in no namespace and is taken for Atom");
        self.repair(place, RepairKind::Declaration(uri));
        self.scope.declare("", Cow::Borrowed(uri));
        self.doc.given = Some(uri);
    }

    fn note(&mut self, written: &WrittenAttribute<'a>, ns: u32, is_declaration: bool) {
        self.doc.attributes.push(DocAttributeSpan {
            start: offset(written.start),
            value: offset(written.value.start),
            value_end: offset(written.value.end),
            ns,
            name: u16::try_from(written.name.len()).unwrap_or_default(),
            is_declaration,
        });
    }

    /// Reads an attribute of the innermost open element, whose attributes begin with the number
    /// `first`.
    fn attribute(&mut self, written: &WrittenAttribute<'a>, first: usize) {
        // The root's version is written anew in its place, and there it has none.
        if written.form == Form::Absent && self.open.len() == 1 {
            return self.take_out(written, "an attribute of the root without value is taken out");
        }
        let (prefix, local) = split_name(written.name);
        let (none, text) = (Ns::None.code(), self.doc.text);
        let ns = if prefix.is_empty() { none } else { self.meaning(prefix, written.start) };
        let is_same = |other: &DocAttributeSpan| {
            let start = index(other.start);
            let name = cut(text, start..start + usize::from(other.name));
            other.ns == ns && split_name(name).1 == local
        };
        let others = self.doc.attributes.get(first..).unwrap_or_default();
        if let Some(other) = others.iter().position(is_same) {
            let place = self.doc.attributes.get(first + other);
            let is_empty = place.is_some_and(|other| other.value == other.value_end);
            if !self.is_list || !is_empty {
                return self.take_out(written, "an attribute that is there already is taken out");
            }
            // An address is worth more than none.
            self.doc.attributes.remove(first + other);
        }
        self.spell(written);
        self.check_value(&written.value);
        if local == "base" && ns == Ns::Xml.code() {
            if written.value.len() > self.limits.base {
                let why = "an xml:base that is too long is passed over";
                self.findings.warn(written.start, why);
            }
            if let Some(node) = self.doc.nodes.last_mut() {
                node.has_base = true;
            }
        }
        self.note(written, ns, false);
    }

    /// The [`Ns::code`] of what a prefix means; one that is not declared is given its customary
    /// meaning.
    fn meaning(&mut self, prefix: &'a str, at: usize) -> u32 {
        if let Some(ns) = self.scope.resolve(prefix) {
            return ns;
        }
        if self.scope.invented_len() >= self.limits.namespaces {
            return Ns::None.code();
        }
        let known = xml::shortened(prefix, 64);
        let why = format!("the namespace prefix {known:?} is not declared");
        self.findings.flaw(Flaw::Prefixes, at, why);
        self.scope.invent(prefix)
    }

    /// Writes an attribute as XML wants it.
    fn spell(&mut self, written: &WrittenAttribute<'a>) {
        if !written.spaced {
            let why = "an attribute without white space before it is given some";
            self.mend(Flaw::Tags, written.start..written.start, " ", why);
        }
        let place = &written.value;
        match written.form {
            Form::Quoted => return,
            Form::Bare => {
                self.replace(place.start..place.start, "\"");
                self.replace(place.end..place.end, "\"");
            }
            Form::Absent => self.replace(place.end..place.end, "=\"\""),
        }
        let why = "an attribute without quotes is given them";
        self.findings.flaw(Flaw::Tags, written.start, why);
    }

    fn take_out(&mut self, written: &WrittenAttribute<'a>, why: &'static str) {
        self.mend(Flaw::Tags, written.span(), "", why);
    }

    /// Repairs what XML does not know in the value of an attribute.
    fn check_value(&mut self, place: &Range<usize>) {
        self.note_forbidden(place);
        let text = cut(self.doc.text, place.clone());
        let mut at = 0;
        while let Some(found) = memchr::memchr(b'&', text.as_bytes().get(at..).unwrap_or_default())
        {
            at += found;
            at += self.reference(cut(text, at..text.len()), place.start + at);
        }
    }

    /// The value of an attribute, repaired.
    fn value(&mut self, place: &Range<usize>) -> Cow<'a, str> {
        self.check_value(place);
        self.doc.value(place.clone())
    }
}

/// An attribute as it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WrittenAttribute<'a> {
    /// Its spelled name.
    pub(super) name: &'a str,
    /// Where the name begins; byte offset into the document.
    pub(super) start: usize,
    /// The place of its value, without quotes.
    pub(super) value: Range<usize>,
    /// How the value is written.
    pub(super) form: Form,
    /// Whether white space stands before it, as it must.
    pub(super) spaced: bool,
}

impl WrittenAttribute<'_> {
    /// From its name to its last quote.
    fn span(&self) -> Range<usize> {
        self.start..self.value.end + usize::from(self.form == Form::Quoted)
    }
}

/// How the value of an attribute is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// In quotes.
    Quoted,
    /// Without quotes, as HTML allows.
    Bare,
    /// Not at all, as HTML allows.
    Absent,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(tag: &str) -> Result<Vec<(&str, &str, Form, bool)>, Broken> {
        let mut out = Vec::new();
        TagCursor::new(tag, 0, &mut out).attributes(4)?;
        Ok(out.into_iter().map(|w| (w.name, cut(tag, w.value.clone()), w.form, w.spaced)).collect())
    }

    #[test]
    fn reads_xml_and_what_html_makes_of_it() {
        use Form::{Absent, Bare, Quoted};
        for (tag, attributes) in [
            (" a = \"1\" b='2>\"'\n", &[("a", "1", Quoted, true), ("b", "2>\"", Quoted, true)][..]),
            (" a=\"1\"b=2", &[("a", "1", Quoted, true), ("b", "2", Bare, false)]),
            (" a b=''", &[("a", "", Absent, true), ("b", "", Quoted, true)]),
            ("", &[]),
        ] {
            assert_eq!(read(tag).as_deref(), Ok(attributes));
        }
    }

    #[test]
    fn tells_what_is_no_tag() {
        for bad in [" 3", " a=\"1", " a=\"<b\"", " =a", " a=b\"c", " a=", " ,"] {
            assert_eq!(read(bad), Err(Broken::Unreadable), "{bad}");
        }
        assert_eq!(read(" a b c d e"), Err(Broken::TooMany));
    }
}
