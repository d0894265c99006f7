//! A fast way over an entry that is well-formed and says nothing that the walk would have to mend.
//!
//! It reads the same tags, references and namespaces as the walk, and gives up at the first place where the
//! walk would have a word to say, so that what it passes over is what the walk passes over without one.

use super::{OpenElement, WalkedAttribute, Walker, unescape};
use crate::xml::attributes::{Form, WrittenAttribute, lex};
use crate::xml::ns::{self, Ns, is_reserved};
use crate::xml::{cut, declared_prefix, is_name, split_name};
use std::borrow::Cow;
use std::ops::Range;
use url::Url;

/// What of an element is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interest {
    Nothing,
    /// Its attributes and its text. The skim ends where an element stands in it.
    Text,
    /// The same, and elements may stand in it.
    TextAndElements,
}

/// Who reads an entry that is skimmed. Levels are counted from 1 for the entry's own children.
pub trait SkimReader<'a> {
    /// What is wanted of an element, by its level and its local name.
    fn wants(&self, level: usize, local: &str) -> Interest;

    /// A wanted element opened.
    fn opened(
        &mut self,
        level: usize,
        frame: &OpenElement<'a>,
        attributes: &[WalkedAttribute<'a>],
        base: Option<&Url>,
    );

    /// A wanted element closed: its text, the place of its content and its own.
    fn closed(
        &mut self,
        level: usize,
        frame: &OpenElement<'a>,
        text: Cow<'a, str>,
        place: &(Range<usize>, Range<usize>),
        base: Option<&Url>,
    );
}

/// How much an entry may have to be skimmed.
#[derive(Debug, Clone, Copy)]
pub struct SkimLimits {
    /// Elements and attributes.
    pub fields: usize,
    /// Bytes of the names of elements inside each other, as they may be spelled at most.
    pub path: usize,
}

/// An entry that was skimmed.
#[derive(Debug, Clone, Copy, Default)]
pub struct Skimmed {
    /// Where it ends.
    pub end: usize,
    /// Elements and attributes in it.
    pub fields: usize,
    /// The most bytes that their paths take together.
    pub paths: usize,
}

/// What a name takes in a path beside what is spelled in its tag: a customary prefix and what parts it.
const NAME_COST: usize = 32;

/// An element that is open inside the entry.
#[derive(Debug)]
pub(super) struct SkimmedElement<'a> {
    name: &'a str,
    /// How many namespace declarations are in scope around it.
    scope: usize,
    /// The most bytes that its path takes.
    path: usize,
    /// It as its reader knows it, where that wants it, and its text so far.
    wanted: Option<(Interest, OpenElement<'a>, Cow<'a, str>)>,
}

/// What a skim works with.
#[derive(Debug, Default)]
pub(super) struct SkimBuffers<'a> {
    open: Vec<SkimmedElement<'a>>,
    written: Vec<WrittenAttribute<'a>>,
    attributes: Vec<WalkedAttribute<'a>>,
    names: Vec<(Ns, &'a str)>,
}

impl<'a> Walker<'a> {
    /// Passes over the content of the innermost open element, which is an entry; `None` where the walk has to
    /// do it. The walk stands where it did, and [`Walker::leap`] takes it behind the entry.
    pub fn skim(
        &mut self,
        reader: &mut impl SkimReader<'a>,
        limits: SkimLimits,
    ) -> Option<Skimmed> {
        let frame = self.open.last().filter(|frame| !frame.empty)?;
        if !self.forbidden.is_empty() {
            return None;
        }
        let entry = (frame.name, frame.content);
        let declared = self.scope.declared();
        let mut buffers = std::mem::take(&mut self.skim);
        let skimmed = self.skim_content(entry, reader, limits, &mut buffers);
        self.scope.truncate(declared);
        buffers.open.clear();
        self.skim = buffers;
        skimmed
    }

    /// Goes on behind the innermost open element, which ends at `end`.
    pub fn leap(&mut self, end: usize) {
        self.pop();
        self.restart(end);
    }

    fn skim_content(
        &mut self,
        (entry, content): (&'a str, usize),
        reader: &mut impl SkimReader<'a>,
        limits: SkimLimits,
        buffers: &mut SkimBuffers<'a>,
    ) -> Option<Skimmed> {
        let bytes = self.text.as_bytes();
        let mut skimmed = Skimmed::default();
        let mut at = content;
        loop {
            let tag = unescape::end_of_text(bytes, at)?;
            if let Some((.., text)) = buffers.open.last_mut().and_then(|e| e.wanted.as_mut())
                && tag > at
            {
                push(text, unescape::unescaped(cut(self.text, at..tag)));
            }
            at = match bytes.get(tag + 1)? {
                b'/' => {
                    let name = buffers.open.last().map_or(entry, |element| element.name);
                    let behind = bytes.get(tag + 2..)?.strip_prefix(name.as_bytes())?;
                    if behind.first() != Some(&b'>') {
                        return None;
                    }
                    let end = tag + 2 + name.len() + 1;
                    let level = buffers.open.len();
                    let Some(element) = buffers.open.pop() else {
                        // The reader of the walk would take this character away without counting it.
                        let is_plain =
                            !cut(self.text, end..self.text.len()).starts_with('\u{FEFF}');
                        return is_plain.then_some(Skimmed { end, ..skimmed });
                    };
                    self.scope.truncate(element.scope);
                    if let Some((_, frame, text)) = element.wanted {
                        let place = (frame.content..tag, frame.start..end);
                        reader.closed(level, &frame, text, &place, self.base());
                    }
                    end
                }
                b'!' => {
                    let (end, section) = behind_section(bytes, tag)?;
                    if let Some((.., text)) =
                        buffers.open.last_mut().and_then(|e| e.wanted.as_mut())
                        && let Some(section) = section
                    {
                        push(text, Cow::Borrowed(cut(self.text, section)));
                    }
                    end
                }
                b'?' => return None,
                _ => self.skim_start(tag, entry, reader, limits, buffers, &mut skimmed)?,
            };
        }
    }

    /// Reads the start tag at `tag`, and answers where it ends.
    fn skim_start(
        &mut self,
        tag: usize,
        entry: &str,
        reader: &mut impl SkimReader<'a>,
        limits: SkimLimits,
        buffers: &mut SkimBuffers<'a>,
        skimmed: &mut Skimmed,
    ) -> Option<usize> {
        let bytes = self.text.as_bytes();
        let close = end_of_tag(bytes, tag)?;
        let is_empty = bytes.get(close - 1) == Some(&b'/');
        let inside = cut(self.text, tag + 1..close - usize::from(is_empty));
        let name = inside.split([' ', '\t', '\n', '\r']).next().unwrap_or_default();
        let outer = buffers.open.last();
        let is_in_text = outer.and_then(|element| element.wanted.as_ref());
        let is_in_text = is_in_text.is_some_and(|(interest, ..)| *interest == Interest::Text);
        let level = buffers.open.len() + 1;
        if !is_name(name)
            || name == entry
            || is_in_text
            || name.len() > self.limits.name
            || self.open.len() + buffers.open.len() >= self.limits.depth
        {
            return None;
        }
        let scope = self.scope.declared();
        let mut path = outer.map_or(0, |element| element.path) + (close - tag) + NAME_COST;
        buffers.written.clear();
        if name.len() < inside.len() {
            let place = tag + 1 + name.len()..tag + 1 + inside.len();
            lex(self.text, place, self.limits.attributes, &mut buffers.written).ok()?;
            self.skim_declarations(&buffers.written)?;
        }
        let (prefix, local) = split_name(name);
        let ns = self.scope.resolve(prefix).filter(|ns| *ns != Ns::Sx)?;
        path += self.spelled(ns);
        let interest = match &outer.map(|element| &element.wanted) {
            None | Some(Some(_)) => reader.wants(level, local),
            Some(None) => Interest::Nothing,
        };
        skimmed.fields += 1;
        skimmed.paths += path;
        self.skim_attributes(interest, path, buffers, skimmed)?;
        if skimmed.fields > limits.fields || path > limits.path {
            return None;
        }
        let end = close + 1;
        let wanted = (interest != Interest::Nothing).then(|| {
            let (bases, langs) = (self.bases.len(), self.langs.len());
            let (start, content, empty) = (tag, end, is_empty);
            OpenElement { name, ns, local, start, content, empty, scope, bases, langs }
        });
        if let Some(frame) = &wanted {
            reader.opened(level, frame, &buffers.attributes, self.base());
        }
        if is_empty {
            self.scope.truncate(scope);
            if let Some(frame) = wanted {
                let place = (end..end, tag..end);
                reader.closed(level, &frame, Cow::Borrowed(""), &place, self.base());
            }
        } else {
            let wanted = wanted.map(|frame| (interest, frame, Cow::Borrowed("")));
            buffers.open.push(SkimmedElement { name, scope, path, wanted });
        }
        Some(end)
    }

    /// Declares the namespaces that a tag declares, where that needs no second thought.
    fn skim_declarations(&mut self, written: &[WrittenAttribute<'a>]) -> Option<()> {
        for (number, attribute) in written.iter().enumerate() {
            let long = attribute.name.len() > self.limits.name;
            if attribute.form != Form::Quoted || !attribute.spaced || long {
                return None;
            }
            let Some(prefix) = declared_prefix(attribute.name) else { continue };
            let uri = cut(self.text, attribute.value.clone());
            if written.iter().take(number).any(|other| other.name == attribute.name)
                || is_reserved(prefix, uri)
                || (uri.is_empty() && !prefix.is_empty())
                || uri.contains(['&', ' ', '\t', '\n', '\r'])
                || ns::canonical(uri) != uri
                || uri.len() > self.limits.name
                || self.scope.declared() >= self.limits.namespaces
            {
                return None;
            }
            self.scope.declare(prefix, Cow::Borrowed(uri));
        }
        Some(())
    }

    /// Reads the attributes of a tag, for its reader where that wants them.
    fn skim_attributes(
        &mut self,
        interest: Interest,
        path: usize,
        buffers: &mut SkimBuffers<'a>,
        skimmed: &mut Skimmed,
    ) -> Option<()> {
        buffers.attributes.clear();
        buffers.names.clear();
        for attribute in buffers.written.iter().filter(|w| declared_prefix(w.name).is_none()) {
            let (prefix, local) = split_name(attribute.name);
            let ns = if prefix.is_empty() { Ns::None } else { self.scope.resolve(prefix)? };
            let is_base = ns == Ns::Xml && local == "base";
            // A base is nobody's business but where an address is read under it, or where it is too long.
            let around = self.base().map_or(0, |base| base.as_str().len());
            let is_plain = interest == Interest::Nothing
                && buffers.open.is_empty()
                && attribute.value.len() * 3 + around <= self.limits.base;
            if (is_base && !is_plain) || buffers.names.contains(&(ns, local)) {
                return None;
            }
            buffers.names.push((ns, local));
            skimmed.fields += 1;
            skimmed.paths += path + NAME_COST + self.spelled(ns);
            let place = attribute.value.clone();
            if !unescape::is_text(self.text.as_bytes().get(place.clone())?) {
                return None;
            }
            if interest != Interest::Nothing {
                let value = self.value(&place).ok()?;
                let name = attribute.name;
                buffers.attributes.push(WalkedAttribute { ns, name, local, value, place });
            }
        }
        Some(())
    }

    /// How long a namespace is where it stands in a path.
    fn spelled(&self, ns: Ns) -> usize {
        if let Ns::Other(number) = ns { self.scope.uri(number).len() } else { 0 }
    }
}

/// Adds a piece of text.
fn push<'a>(text: &mut Cow<'a, str>, piece: Cow<'a, str>) {
    if text.is_empty() {
        *text = piece;
    } else {
        text.to_mut().push_str(&piece);
    }
}

/// Where the tag that begins at `tag` has its `>`, outside of quotes.
fn end_of_tag(bytes: &[u8], tag: usize) -> Option<usize> {
    let mut at = tag + 1;
    loop {
        at += memchr::memchr3(b'>', b'"', b'\'', bytes.get(at..)?)?;
        match bytes.get(at)? {
            b'>' => return Some(at),
            quote => at += 1 + memchr::memchr(*quote, bytes.get(at + 1..)?)? + 1,
        }
    }
}

/// Where the comment or the CDATA section at `at` ends, and the place of the text in a section.
fn behind_section(bytes: &[u8], at: usize) -> Option<(usize, Option<Range<usize>>)> {
    let rest = bytes.get(at..)?;
    if let Some(section) = rest.strip_prefix(b"<![CDATA[") {
        let length = memchr::memmem::find(section, b"]]>")?;
        let start = at + (rest.len() - section.len());
        return Some((start + length + 3, Some(start..start + length)));
    }
    let comment = rest.strip_prefix(b"<!--")?;
    let length = memchr::memmem::find(comment, b"--")?;
    let is_plain = !comment.starts_with(b">") && !comment.starts_with(b"->");
    let ends = comment.get(length + 2) == Some(&b'>');
    (is_plain && ends).then_some((at + 4 + length + 3, None))
}
