//! Start tags: attributes, namespaces, base and language.

use super::{Closing, LimitReached, OpenElement, WalkStep, WalkedAttribute, Walker};
use crate::model::Flaw;
use crate::xml::attributes::{Broken, Form, WrittenAttribute, lex};
use crate::xml::cut;
use crate::xml::ns::{self, Ns, is_reserved};
use crate::xml::{self, declared_prefix, is_name, reference, split_name, trim};
use std::borrow::Cow;
use std::ops::Range;
use url::Url;

/// The longest language tag that is taken, in bytes (RFC 5646 section 4.4.1 wants 35).
const LANGUAGE_LIMIT: usize = 64;

impl<'a> Walker<'a> {
    /// A start tag or an empty-element tag.
    pub(super) fn start(
        &mut self,
        span: Range<usize>,
        name: &'a str,
        empty: bool,
    ) -> Result<Option<WalkStep<'a>>, LimitReached> {
        if !is_name(name) {
            return self.broken(&span);
        }
        if let Some(step) = self.entry_begins(&span, name, empty)? {
            return Ok(step);
        }
        if name.len() > self.limits.name {
            return self.too_much("bytes in one name", self.limits.name, span.start);
        }
        let inner = span.start + 1 + name.len()..span.end - if empty { 2 } else { 1 };
        let mut written = std::mem::take(&mut self.written);
        let lexed = lex(self.text, inner, self.limits.attributes, &mut written);
        let long = written.iter().any(|w| w.name.len() > self.limits.name);
        let done = match lexed {
            Err(Broken::Unreadable) => self.broken(&span),
            Err(Broken::TooMany) => {
                self.too_much("attributes of one element", self.limits.attributes, span.start)
            }
            Ok(()) if self.open.len() >= self.limits.depth => {
                self.too_much("elements inside each other", self.limits.depth, span.start)
            }
            Ok(()) if long => self.too_much("bytes in one name", self.limits.name, span.start),
            Ok(()) => self.opened(&span, name, empty, &written),
        };
        written.clear();
        self.written = written;
        done
    }

    fn opened(
        &mut self,
        span: &Range<usize>,
        name: &'a str,
        empty: bool,
        written: &[WrittenAttribute<'a>],
    ) -> Result<Option<WalkStep<'a>>, LimitReached> {
        let (scope, bases, langs) = (self.scope.declared(), self.bases.len(), self.langs.len());
        self.attributes.clear();
        for (number, attribute) in written.iter().enumerate() {
            let Some(prefix) = declared_prefix(attribute.name) else { continue };
            let mut uri = self.value(&attribute.value)?;
            let again = written.iter().take(number).any(|other| other.name == attribute.name);
            if again || is_reserved(prefix, &uri) || (uri.is_empty() && !prefix.is_empty()) {
                self.take_out(attribute, "a namespace declaration that XML forbids is taken out")?;
                continue;
            }
            self.spell(attribute)?;
            if uri.len() > self.limits.name || self.scope.declared() >= self.limits.namespaces {
                self.scope.truncate(scope);
                let limit = self.limits.namespaces;
                return self.too_much("namespaces in scope", limit, span.start);
            }
            let written = cut(self.text, attribute.value.clone());
            let canonical = ns::canonical(written);
            if canonical != written && !is_reserved(prefix, canonical) {
                uri = Cow::Owned(canonical.to_owned());
                self.edit(attribute.value.clone(), canonical.to_owned())?;
            }
            self.scope.declare(prefix, uri);
        }
        let (prefix, local) = split_name(name);
        let ns = self.meaning(prefix, span.start);
        let content = span.end;
        let frame =
            OpenElement { name, ns, local, start: span.start, content, empty, scope, bases, langs };
        self.open.push(frame);
        for attribute in written.iter().filter(|w| declared_prefix(w.name).is_none()) {
            self.attribute(attribute)?;
        }
        self.rooted = true;
        if empty {
            self.closing = Some(Closing { keep: self.open.len() - 1, at: content, tag: None });
        }
        Ok(Some(WalkStep::Open))
    }

    fn attribute(&mut self, written: &WrittenAttribute<'a>) -> Result<(), LimitReached> {
        // The root's version is written anew in its place, and there it has none.
        if written.form == Form::Absent && self.open.len() == 1 {
            return self.take_out(written, "an attribute of the root without value is taken out");
        }
        let (prefix, local) = split_name(written.name);
        let ns = if prefix.is_empty() { Ns::None } else { self.meaning(prefix, written.start) };
        if self.attributes.iter().any(|other| other.local == local && other.ns == ns) {
            return self.take_out(written, "an attribute that is there already is taken out");
        }
        self.spell(written)?;
        let value = self.value(&written.value)?;
        if ns == Ns::Xml {
            self.inherit(local, &value, written.start);
        }
        let place = written.value.clone();
        self.attributes.push(WalkedAttribute { ns, name: written.name, local, value, place });
        Ok(())
    }

    /// Takes note of `xml:base` and `xml:lang`.
    fn inherit(&mut self, local: &str, value: &str, at: usize) {
        match local {
            "base" => {
                let value = trim(value);
                let joined = match self.base() {
                    Some(base) => base.join(value).ok(),
                    None => Url::parse(value).ok(),
                };
                let spelled = joined.as_ref().map_or(value, Url::as_str);
                if spelled.len() > self.limits.base {
                    self.warn(at, "an xml:base that is too long is passed over");
                } else {
                    let spelled = spelled.to_owned();
                    self.bases.push((joined, spelled));
                }
            }
            "lang" if value.len() <= LANGUAGE_LIMIT => self.langs.push(trim(value).to_owned()),
            _ => {}
        }
    }

    /// What a prefix means; one that is not declared is given its customary meaning.
    fn meaning(&mut self, prefix: &'a str, at: usize) -> Ns {
        if let Some(ns) = self.scope.resolve(prefix) {
            return ns;
        }
        if self.scope.invented_len() >= self.limits.namespaces {
            return Ns::None;
        }
        let known = xml::shortened(prefix, 64);
        self.flaw(Flaw::Prefixes, at, format!("the namespace prefix {known:?} is not declared"));
        self.scope.invent(prefix)
    }

    /// Writes an attribute as XML wants it.
    fn spell(&mut self, written: &WrittenAttribute<'a>) -> Result<(), LimitReached> {
        if !written.spaced {
            self.edit(written.start..written.start, " ")?;
        }
        let place = &written.value;
        match written.form {
            Form::Quoted => return Ok(()),
            Form::Bare => {
                self.edit(place.start..place.start, "\"")?;
                self.edit(place.end..place.end, "\"")?;
            }
            Form::Absent => self.edit(place.end..place.end, "=\"\"")?,
        }
        self.flaw(Flaw::Tags, written.start, "an attribute without quotes is given them");
        Ok(())
    }

    fn take_out(
        &mut self,
        written: &WrittenAttribute<'a>,
        why: &'static str,
    ) -> Result<(), LimitReached> {
        self.flaw(Flaw::Tags, written.start, why);
        let quote = usize::from(written.form == Form::Quoted);
        self.edit(written.start..written.value.end + quote, "")
    }

    /// The value of an attribute: references resolved, white space as spaces (XML 1.0 section
    /// 3.3.3).
    pub(super) fn value(&mut self, place: &Range<usize>) -> Result<Cow<'a, str>, LimitReached> {
        let raw = self.cleaned(place);
        let written = cut(self.text, place.clone());
        if memchr::memchr(b'&', written.as_bytes()).is_none() {
            return Ok(spaced(raw));
        }
        let mut out = String::with_capacity(written.len());
        let mut at = 0;
        while let Some(found) =
            memchr::memchr(b'&', written.as_bytes().get(at..).unwrap_or_default())
        {
            let start = at + found;
            out.push_str(cut(written, at..start));
            let rest = written.as_bytes().get(start + 1..).unwrap_or_default();
            let end = memchr::memchr2(b';', b'&', rest).map_or(start + 1, |n| start + 1 + n);
            let closed = written.as_bytes().get(end) == Some(&b';');
            let name = cut(written, start + 1..end);
            let meaning =
                if closed { reference::reference(name) } else { reference::Reference::Bare };
            let length = if closed { end + 1 - start } else { 1 };
            let from = place.start + start;
            self.mend(&(from..from + length), &meaning)?;
            at = start + length;
            match meaning {
                reference::Reference::Fine(c) => out.push(c),
                reference::Reference::Html(text) => out.push_str(text),
                reference::Reference::Forbidden => {}
                reference::Reference::Bare => {
                    out.push('&');
                    at = start + 1;
                }
            }
        }
        out.push_str(cut(written, at..written.len()));
        out.retain(xml::is_char);
        Ok(spaced(Cow::Owned(out)))
    }
}

fn spaced(value: Cow<'_, str>) -> Cow<'_, str> {
    if value.contains(['\t', '\n', '\r']) {
        Cow::Owned(value.replace(['\t', '\n', '\r'], " "))
    } else {
        value
    }
}
