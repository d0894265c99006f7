//! From text to the tree.

use super::start_tag::{OpenElement, WrittenAttribute};
use super::tokens::{Pending, Token, has_forbidden};
use super::{
    Doc, DocElement, DocLimits, Findings, Hole, LimitReached, NodeId, Repair, RepairKind, content,
    index, offset,
};
use crate::model::{Context, Flaw};
use crate::xml::ns::NamespaceScope;
use crate::xml::reference::{Reference, reference};
use crate::xml::{self, cut};
use std::borrow::Cow;
use std::ops::Range;
use url::Url;

/// What of a document is an entry: a part whose faults cost that part alone.
#[derive(Debug)]
pub struct Units<E> {
    /// The local name of entries in the document of a root, or why it is not read.
    pub name: fn(DocElement<'_, '_>) -> Result<&'static str, E>,
    /// Whether an element that has just opened is an entry.
    pub is_one: fn(DocElement<'_, '_>) -> bool,
}

/// An entry.
#[derive(Debug)]
pub struct Unit {
    pub node: NodeId,
    /// The numbers of its repairs.
    pub repairs: Range<usize>,
    /// Whether its tags and characters are as XML wants them.
    pub is_sound: bool,
}

/// A document, and what reading it brought about.
#[derive(Debug)]
pub struct BuiltDoc<'a> {
    pub doc: Doc<'a>,
    pub findings: Findings,
    /// Its entries, in order.
    pub units: Vec<Unit>,
    /// Where entries were that cannot be told from what surrounds them, and the element around
    /// each. They are not in the tree.
    pub dropped: Vec<(Range<usize>, NodeId)>,
    /// All repairs, nearly in order.
    pub repairs: Vec<Repair>,
    /// The bindings that were made up for prefixes without declaration, as (prefix, URI); the
    /// skeleton's root declares them.
    pub invented: Vec<(String, String)>,
}

impl<'a> BuiltDoc<'a> {
    /// The document, where the borders of its elements are certain.
    fn whole(self) -> Option<Doc<'a>> {
        let is_whole = self.findings.fault.is_none() && !self.doc.nodes.is_empty();
        is_whole.then_some(self.doc)
    }
}

/// A tree that is being built.
pub(super) struct Builder<'a> {
    pub(super) doc: Doc<'a>,
    pub(super) findings: Findings,
    pub(super) limits: DocLimits,
    pub(super) open: Vec<OpenElement<'a>>,
    pub(super) scope: NamespaceScope<'a>,
    pub(super) written: Vec<WrittenAttribute<'a>>,
    pub(super) repairs: Vec<Repair>,
    units: Vec<Unit>,
    /// How many repairs the entries have that are whole.
    unit_repairs: usize,
    dropped: Vec<(Range<usize>, NodeId)>,
    /// How many elements are open around and with the open entry; 0 outside of entries.
    pub(super) entry_depth: usize,
    /// The numbers of the open entry's first repair and first hole.
    first_repair: usize,
    first_hole: usize,
    /// The local name of entries in this document, once the root is known.
    pub(super) entry_name: Option<&'static str>,
    /// Where the next token begins.
    pub(super) at: usize,
    pub(super) pending: Option<Pending<'a>>,
    pub(super) is_rooted: bool,
    pub(super) is_begun: bool,
    pub(super) restarts: usize,
    /// Whether each end tag closed what opened last, so far as it is known; whether something was
    /// read so that would be read otherwise where that is not so.
    pub(super) is_balanced: bool,
    pub(super) is_doubted: bool,
    /// Whether a tag was taken for text though it has a name: its end tag then closes nothing,
    /// which says nothing of what else is closed.
    pub(super) is_garbled: bool,
    /// Whether it is a list: tags are guessed, and all stands in a root without a name.
    pub(super) is_list: bool,
}

impl<'a> Doc<'a> {
    /// Reads a text from the byte `start` on. Relative references are resolved against `base`.
    pub fn read<E: From<LimitReached>>(
        text: &'a str,
        start: usize,
        base: Option<&Url>,
        limits: &DocLimits,
        units: &Units<E>,
    ) -> Result<BuiltDoc<'a>, E> {
        Self::read_by(|| Builder::new(text, start, base, limits), text, units)
    }

    /// Reads a text with a builder.
    pub(super) fn read_by<E: From<LimitReached>>(
        new: impl Fn() -> Builder<'a>,
        text: &'a str,
        units: &Units<E>,
    ) -> Result<BuiltDoc<'a>, E> {
        if u32::try_from(text.len()).is_err() {
            let limit = index(u32::MAX);
            return Err(LimitReached { what: "bytes", limit, at: limit }.into());
        }
        let mut builder = new();
        builder.run(units)?;
        // An entry stands in another one, or in an element that holds text, and not all elements
        // are closed: so it shows what is not closed.
        if builder.is_doubted && !builder.is_balanced {
            builder = new();
            builder.is_balanced = false;
            builder.run(units)?;
        }
        Ok(builder.finish())
    }
}

impl<'a> Doc<'a> {
    /// Reads a text without entries.
    pub fn read_plain(text: &'a str) -> Result<BuiltDoc<'a>, LimitReached> {
        let units = Units { name: |_| Ok(""), is_one: |_| false };
        Self::read(text, 0, None, &DocLimits::default(), &units)
    }

    /// Reads a text without entries; `None` where the borders of its elements are in doubt.
    pub fn read_whole(text: &'a str) -> Option<Self> {
        Self::read_plain(text).ok().and_then(BuiltDoc::whole)
    }

    /// Reads an element with the bindings and the base that it inherits; `None` where the borders of elements are
    /// in doubt.
    pub fn read_in(text: &'a str, context: &'a Context) -> Option<Self> {
        let around = context.namespaces.as_slice();
        let standard = DocLimits::default();
        let namespaces = standard.namespaces + around.len();
        let limits = DocLimits { namespaces, ..standard };
        let base = context.base.as_deref().and_then(|base| Url::parse(base).ok());
        let new = || {
            let mut builder = Builder::new(text, 0, base.as_ref(), &limits);
            builder.doc.around = around;
            for (prefix, uri) in around {
                builder.scope.declare(prefix, Cow::Borrowed(uri));
            }
            builder
        };
        let units = Units::<LimitReached> { name: |_| Ok(""), is_one: |_| false };
        Self::read_by(new, text, &units).ok().and_then(BuiltDoc::whole)
    }
    /// Reads a text without entries; `None` where a strict processor would refuse it.
    pub fn read_flawless(text: &'a str) -> Option<Self> {
        let built = Self::read_plain(text).ok()?;
        let is_flawless = built.findings.flaws.is_empty() && !built.doc.nodes.is_empty();
        is_flawless.then_some(built.doc)
    }
}

impl<'a> Builder<'a> {
    pub(super) fn new(text: &'a str, start: usize, base: Option<&Url>, limits: &DocLimits) -> Self {
        let doc = Doc {
            text,
            nodes: Vec::new(),
            attributes: Vec::new(),
            holes: Vec::new(),
            uris: Vec::new(),
            given: None,
            around: &[],
            base: base.cloned(),
            base_limit: limits.base,
            has_forbidden: has_forbidden(text),
            has_sync_markup: false,
        };
        Self {
            doc,
            findings: Findings { limit: limits.warnings, ..Findings::default() },
            limits: *limits,
            open: Vec::new(),
            scope: NamespaceScope::default(),
            written: Vec::new(),
            repairs: Vec::new(),
            units: Vec::new(),
            unit_repairs: 0,
            dropped: Vec::new(),
            entry_depth: 0,
            first_repair: 0,
            first_hole: 0,
            entry_name: None,
            at: start,
            pending: None,
            is_rooted: false,
            is_begun: false,
            restarts: 0,
            is_balanced: true,
            is_doubted: false,
            is_garbled: false,
            is_list: false,
        }
    }

    fn finish(mut self) -> BuiltDoc<'a> {
        self.doc.has_sync_markup = self.scope.has_sync_markup;
        let (uris, invented) = self.scope.into_parts();
        self.doc.uris = uris;
        BuiltDoc {
            doc: self.doc,
            findings: self.findings,
            units: self.units,
            dropped: self.dropped,
            repairs: self.repairs,
            invented,
        }
    }

    fn run<E: From<LimitReached>>(&mut self, units: &Units<E>) -> Result<(), E> {
        while !self.is_rooted || !self.open.is_empty() {
            let Pending { span, token } = match self.pending.take() {
                Some(pending) => pending,
                None => self.read(),
            };
            let at = span.start;
            match token {
                Token::Start { name, is_empty } => {
                    if self.start(&span, name, is_empty)? {
                        self.opened(units)?;
                    }
                }
                Token::End { name } => self.end(&span, name),
                Token::Text => self.characters(span),
                Token::CData if self.open.is_empty() => self.remove_around(&span),
                Token::CData => self.note_forbidden(&(span.start + 9..span.end.saturating_sub(3))),
                Token::Other => {}
                Token::Unreadable => self.unreadable(&span),
                Token::Eof => self.eof(at),
            }
            self.check_repairs(at)?;
            if self.is_doubted && !self.is_balanced {
                return Ok(());
            }
        }
        Ok(())
    }

    /// The innermost open element has just opened: it may be the root, or an entry.
    fn opened<E: From<LimitReached>>(&mut self, units: &Units<E>) -> Result<(), E> {
        let Some(open) = self.open.last() else { return Ok(()) };
        let Some(element) = self.doc.element(open.node) else { return Ok(()) };
        let (is_empty, end) = (element.is_empty_tag(), open.content);
        if self.open.len() == 1 {
            self.entry_name = Some((units.name)(element)?);
        } else if self.entry_depth == 0 && (units.is_one)(element) {
            (self.first_repair, self.first_hole) = (open.repairs, open.holes);
            self.entry_depth = self.open.len();
        }
        if is_empty {
            self.close(self.open.len() - 1, end, Some(&(end..end)));
        }
        Ok(())
    }

    /// Closes elements until so many are open. `tag`: the end tag of the last one, where there is
    /// one; the others end at the byte `at`.
    pub(super) fn close(&mut self, keep: usize, at: usize, tag: Option<&Range<usize>>) {
        while self.open.len() > keep {
            let Some(open) = self.open.pop() else { return };
            let tag = tag.filter(|_| self.open.len() == keep);
            if tag.is_none() {
                self.repair(at..at, RepairKind::EndTag(open.node));
            }
            let place = tag.cloned().unwrap_or(at..at);
            let next = offset(self.doc.nodes.len());
            if let Some(node) = self.doc.nodes.get_mut(index(open.node)) {
                (node.content_end, node.end) = (offset(place.start), offset(place.end));
                node.next = next;
            }
            if self.open.len() + 1 == self.entry_depth {
                self.leave_unit(&open);
            }
            self.scope.truncate(open.scope);
        }
    }

    /// The entry is whole.
    fn leave_unit(&mut self, open: &OpenElement<'a>) {
        let repairs = self.first_repair..self.repairs.len();
        self.unit_repairs += repairs.len();
        let is_sound = self.findings.doubts == open.doubts;
        self.units.push(Unit { node: open.node, repairs, is_sound });
        self.entry_depth = 0;
    }

    /// Gives the open entry up: what was there up to the byte `at` is not in the tree.
    pub(super) fn drop_unit(&mut self, at: usize) {
        let Some(keep) = self.entry_depth.checked_sub(1) else { return };
        let Some(entry) = self.open.get(keep).cloned() else { return };
        self.open.truncate(keep);
        self.scope.truncate(entry.scope);
        self.entry_depth = 0;
        let Some(node) = self.doc.nodes.get(index(entry.node)).copied() else { return };
        let range = index(node.start)..at;
        self.doc.attributes.truncate(index(node.attributes));
        self.doc.nodes.truncate(index(entry.node));
        self.repairs.truncate(self.first_repair);
        self.doc.holes.truncate(self.first_hole);
        self.hole(&range, false);
        self.dropped.push((range, node.parent));
    }

    /// Replaces a piece of the text.
    pub(super) fn repair(&mut self, range: Range<usize>, kind: RepairKind) {
        self.repairs.push(Repair { start: offset(range.start), end: offset(range.end), kind });
    }

    /// Replaces a piece of the text with another.
    pub(super) fn replace(&mut self, range: Range<usize>, with: &'static str) {
        self.repair(range, RepairKind::Text(with));
    }

    /// Replaces a piece of the text that is a flaw.
    pub(super) fn mend(
        &mut self,
        flaw: Flaw,
        range: Range<usize>,
        with: &'static str,
        why: &'static str,
    ) {
        self.findings.flaw(flaw, range.start, why);
        self.replace(range, with);
    }

    /// Takes a piece of the text out that is no element.
    pub(super) fn remove(&mut self, range: Range<usize>) {
        self.hole(&range, false);
        self.replace(range, "");
    }

    /// The same of one that is a flaw.
    pub(super) fn remove_flaw(&mut self, flaw: Flaw, range: &Range<usize>, why: &'static str) {
        self.findings.flaw(flaw, range.start, why);
        self.remove(range.clone());
    }

    /// Takes a piece of the text out that stands outside of the root.
    pub(super) fn remove_around(&mut self, range: &Range<usize>) {
        self.remove_flaw(
            Flaw::Around,
            range,
            "text outside of the document's element is taken out",
        );
    }

    pub(super) fn hole(&mut self, range: &Range<usize>, is_text: bool) {
        let (start, end) = (offset(range.start), offset(range.end));
        self.doc.holes.push(Hole { start, end, is_text });
    }

    fn check_repairs(&mut self, at: usize) -> Result<(), LimitReached> {
        let made = match self.entry_depth {
            0 => self.repairs.len().saturating_sub(self.unit_repairs),
            _ => self.unit_repairs + self.repairs.len().saturating_sub(self.first_repair),
        };
        if made > self.limits.repairs {
            return self.too_much("repairs", self.limits.repairs, at);
        }
        Ok(())
    }

    /// Character data: what of it XML does not know is repaired.
    fn characters(&mut self, span: Range<usize>) {
        let text = cut(self.doc.text, span.clone());
        if self.open.is_empty() {
            if !xml::is_blank(text) {
                self.remove_around(&span);
            }
            return;
        }
        let bytes = text.as_bytes();
        let mut at = 0;
        while let Some(rest) = bytes.get(at..)
            && let Some(found) = memchr::memchr2(b'&', b']', rest)
        {
            at += found;
            let rest = bytes.get(at..).unwrap_or_default();
            if rest.first() == Some(&b'&') {
                at += self.reference(cut(text, at..text.len()), span.start + at);
                continue;
            }
            if rest.starts_with(b"]]>") {
                let place = span.start + at;
                self.findings.flaw(Flaw::Tags, place, "a stray ']]>' is taken for itself");
                self.replace(place + 2..place + 3, "&gt;");
            }
            at += 1;
        }
        self.note_forbidden(&span);
    }

    /// Reads the reference that a text begins with, repairs it where XML does not know it, and
    /// answers how long it is.
    pub(super) fn reference(&mut self, text: &str, at: usize) -> usize {
        let name = content::reference_name(text);
        let span = at..at + name.map_or(1, |name| name.len() + 2);
        let flaw = Flaw::References;
        match name.map_or(Reference::Bare, reference) {
            Reference::Fine(_) => {}
            Reference::Html(_) => {
                let why = "a reference that only HTML knows is written as a number";
                self.findings.flaw(flaw, at, why);
                self.repair(span.clone(), RepairKind::Number);
            }
            Reference::Forbidden => {
                let why = "a reference to a character that XML forbids is dropped";
                self.mend(flaw, span.clone(), "", why);
            }
            Reference::Bare => {
                self.mend(flaw, at..at + 1, "&amp;", "a bare '&' is taken for itself");
                return 1;
            }
        }
        span.len()
    }

    /// Notes a character in a piece of the text that XML forbids.
    pub(super) fn note_forbidden(&mut self, span: &Range<usize>) {
        if !self.doc.has_forbidden {
            return;
        }
        let mut found = cut(self.doc.text, span.clone()).char_indices();
        if let Some((at, _)) = found.find(|(_, c)| !xml::is_char(*c)) {
            let why = "a character that XML forbids is dropped";
            self.findings.flaw(Flaw::Characters, span.start + at, why);
        }
    }

    /// The text is at its end.
    fn eof(&mut self, at: usize) {
        if self.open.len() <= usize::from(self.is_list) {
            self.is_rooted = true;
            return self.close(0, at, Some(&(at..at)));
        }
        self.is_balanced &= self.is_garbled;
        if !std::mem::replace(&mut self.findings.is_cut, true) {
            self.findings.fault(at, "the document is cut");
        }
        if self.entry_depth > 0 {
            // What is left of the entry goes with it, up to the very end.
            let end = self.doc.text.len();
            self.drop_unit(end);
            self.pending = Some(Pending { span: end..end, token: Token::Eof });
            return;
        }
        self.close(0, at, None);
    }
}
