//! What to do where elements do not close as they opened.

use super::build::Builder;
use super::start_tag::OpenElement;
use super::tokens::{Pending, Token};
use super::{LimitReached, RepairKind, index};
use crate::model::Flaw;
use crate::xml::{cut, find_tag, is_blank, split_name};
use std::ops::Range;

/// Elements that hold text or a few values and never an entry. An entry that begins in one shows
/// that its end tag is missing.
const LEAVES: &[&str] = &[
    "title",
    "link",
    "description",
    "language",
    "copyright",
    "pubDate",
    "lastBuildDate",
    "generator",
    "managingEditor",
    "webMaster",
    "ttl",
    "category",
    "docs",
    "cloud",
    "rating",
    "image",
    "textInput",
    "skipHours",
    "skipDays",
    "guid",
    "comments",
    "author",
    "source",
    "id",
    "updated",
    "published",
    "subtitle",
    "tagline",
    "logo",
    "icon",
    "rights",
    "name",
    "uri",
    "email",
    "summary",
    "modified",
    "issued",
    "created",
];

impl<'a> Builder<'a> {
    /// An end tag.
    pub fn end(&mut self, span: &Range<usize>, name: &'a str) {
        let is_list = self.is_list;
        let is_it = |open: &OpenElement<'a>| {
            open.name == name || is_list && open.name.eq_ignore_ascii_case(name)
        };
        let is_last = self.open.last().is_some_and(is_it);
        let found = match self.open.len().checked_sub(1).filter(|_| is_last) {
            Some(last) => Some(last),
            None => self.open.iter().rposition(is_it),
        };
        let Some(found) = found else {
            if self.open.is_empty() {
                return self.remove_around(span);
            }
            let name = name.chars().take(40).collect::<String>();
            self.unbalanced(span.start, format!("the end tag </{name}> closes nothing"));
            return self.remove(span.clone());
        };
        if self.entry_depth > 0 && found + 1 < self.entry_depth {
            let next = Pending { span: span.clone(), token: Token::End { name } };
            self.is_balanced &= self.is_garbled;
            return self.tear(next, "an entry is not closed");
        }
        if !is_last {
            let inner = self.open.last().map_or("", |open| open.name);
            self.unbalanced(span.start, format!("the element <{inner}> is not closed"));
        }
        // Blanks may stand behind the name and nothing else (XML 1.0, production 42).
        let inside = span.start + 2..span.end.saturating_sub(1);
        let behind = cut(self.doc.text, inside.clone()).strip_prefix(name);
        if behind.is_none_or(|rest| !is_blank(rest)) {
            let why = "an end tag with more than its name loses the rest";
            self.findings.flaw(Flaw::Tags, span.start, why);
            self.repair(inside, RepairKind::Name);
        }
        self.close(found, span.start, Some(span));
    }

    /// Notes a fault where elements do not close as they opened.
    fn unbalanced(&mut self, at: usize, why: String) {
        self.is_balanced &= self.is_garbled;
        self.findings.fault(at, why);
    }

    /// Looks whether a start tag shows that something is not closed: the entry before, or an
    /// element that never holds entries. Where every element is closed, an entry in such a place is
    /// markup of what it stands in, as XML says.
    pub fn entry_begins(&mut self, span: &Range<usize>, name: &'a str, is_empty: bool) -> bool {
        let Some(parent) = self.open.last() else { return false };
        let (around, (prefix, local)) = (parent.name, split_name(name));
        if self.entry_name != Some(local)
            && self
                .open
                .get(self.entry_depth.wrapping_sub(1))
                .is_none_or(|entry| entry.name != name)
        {
            return false;
        }
        let (outer, leaf) = split_name(around);
        let is_in_leaf = outer == prefix && LEAVES.contains(&leaf);
        let pending = || Pending { span: span.clone(), token: Token::Start { name, is_empty } };
        if self.entry_depth > 0 {
            let entry = self.open.get(self.entry_depth - 1).map_or("", |open| open.name);
            // An empty one inside is odd, but it closes itself.
            let is_inside = self.open.len() == self.entry_depth || is_in_leaf;
            // One of another namespace only has the same name.
            let shows = !is_empty && entry == name && is_inside && !self.is_of_another(span);
            if shows && self.shows_fault() {
                self.tear(pending(), "an entry begins inside an entry");
                return true;
            }
        } else if self.entry_name == Some(local) && is_in_leaf && self.shows_fault() {
            let leaves = |open: &&OpenElement<'a>| LEAVES.contains(&split_name(open.name).1);
            let keep = self.open.len() - self.open.iter().rev().take_while(leaves).count();
            self.unbalanced(span.start, format!("the element <{around}> is not closed"));
            self.pending = Some(pending());
            self.close(keep, span.start, None);
            return true;
        }
        false
    }

    /// Whether a start tag with the prefix of what it stands in is of another namespace than the
    /// open entry: it says so, or what it stands in is.
    fn is_of_another(&mut self, span: &Range<usize>) -> bool {
        let code = |open: Option<&OpenElement<'a>>| Some(self.doc.nodes.get(index(open?.node))?.ns);
        let entry = code(self.open.get(self.entry_depth.saturating_sub(1)));
        let around = code(self.open.last());
        let declared =
            cut(self.doc.text, span.clone()).split_once("xmlns=").and_then(|(_, uri)| {
                let quote = uri.chars().next().filter(|c| matches!(c, '"' | '\''))?;
                uri.split(quote).nth(1)
            });
        entry != declared.map(|uri| self.scope.classify(uri).code()).or(around)
    }

    /// Whether an entry where none should be shows a fault: not while all elements are closed, as
    /// far as that is known.
    const fn shows_fault(&mut self) -> bool {
        self.is_doubted |= self.is_balanced;
        !self.is_balanced
    }

    /// Closes the entry and gives it up; `next` is read again around it.
    fn tear(&mut self, next: Pending<'a>, why: &str) {
        let at = next.span.start;
        self.findings.fault(at, why);
        self.pending = Some(next);
        self.drop_unit(at);
    }

    /// A limit is met: inside an entry that costs the entry, elsewhere the document.
    pub fn too_much(
        &mut self,
        what: &'static str,
        limit: usize,
        at: usize,
    ) -> Result<(), LimitReached> {
        if self.entry_depth == 0 {
            return Err(LimitReached { what, limit, at });
        }
        self.findings.fault(at, format!("an entry has more than {limit} {what}"));
        self.abandon(at);
        Ok(())
    }

    /// Gives up the open entry and goes to its end, which is found by name only.
    fn abandon(&mut self, at: usize) {
        let outside = self.entry_depth.saturating_sub(1);
        let entry = self.open.get(outside).map_or("", |open| open.name);
        let around: Vec<&str> = self.open.iter().take(outside).map(|open| open.name).collect();
        let end = loop {
            let next = match self.pending.take() {
                Some(pending) => pending,
                None => self.read(),
            };
            match next.token {
                Token::End { name } if name == entry => break next.span.end,
                Token::Start { name, .. } if name == entry && next.span.start > at => {}
                Token::End { name } if around.contains(&name) => {}
                Token::Eof | Token::Unreadable => {}
                _ => continue,
            }
            let start = next.span.start;
            self.pending = Some(next);
            break start;
        };
        self.drop_unit(end);
    }

    /// Something looks like a tag and is none: its `<` is taken for itself.
    pub fn broken(&mut self, span: &Range<usize>) {
        if !self.another_restart(span.start) {
            return self.give_up(span.start);
        }
        let after = span.start + 1;
        if self.open.is_empty() {
            self.remove_around(&(span.start..after));
        } else {
            self.findings.fault(span.start, "a '<' that begins no tag is taken for itself");
            self.replace(span.start..after, "&lt;");
            self.hole(&(span.start..after), true);
        }
        self.restart(after);
    }

    /// Something begins and has no end before the text does.
    pub fn unreadable(&mut self, span: &Range<usize>) {
        self.is_balanced &= self.is_garbled;
        let rest = cut(self.doc.text, span.start..self.doc.text.len());
        let is_tag = !rest.starts_with("<!") && !rest.starts_with("<?");
        if is_tag && memchr::memchr(b'>', rest.as_bytes()).is_some() {
            return self.broken(span);
        }
        let next = self.next_entry(span.start + 1);
        match next {
            Some(next) if self.another_restart(span.start) => {
                self.restart(next);
                if self.entry_depth > 0 {
                    self.findings.fault(span.start, "an entry holds something that has no end");
                    return self.drop_unit(next);
                }
                self.findings.fault(span.start, "the document holds something that has no end");
                self.findings.has_endless = true;
                self.remove(span.start..next);
            }
            _ => self.give_up(span.start),
        }
    }

    /// Takes the text for cut at `at`.
    fn give_up(&mut self, at: usize) {
        if self.entry_depth == 0 {
            self.remove(at..self.doc.text.len());
        }
        self.pending = Some(Pending { span: at..at, token: Token::Eof });
    }

    fn another_restart(&mut self, at: usize) -> bool {
        self.restarts += 1;
        if self.restarts > self.limits.restarts {
            let limit = self.limits.restarts;
            self.findings.fault(at, format!("more than {limit} places are no XML"));
            return false;
        }
        true
    }

    /// Where the next entry seems to begin, at `from` or later.
    fn next_entry(&self, from: usize) -> Option<usize> {
        let open = self.entry_depth.checked_sub(1).and_then(|at| self.open.get(at));
        let name = open.map(|open| open.name).or(self.entry_name)?;
        find_tag(self.doc.text, from, name)
    }
}
