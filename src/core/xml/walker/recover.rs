//! What to do where elements do not close as they opened.

use super::{Closing, LimitReached, Ns, Pending, Token, WalkStep, Walker, tokens};
use crate::xml::{cut, split_name};
use std::borrow::Cow;
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

impl<'a> Walker<'a> {
    /// An end tag.
    pub(super) fn end(
        &mut self,
        span: Range<usize>,
        name: &'a str,
    ) -> Result<Option<WalkStep<'a>>, LimitReached> {
        let Some(found) = self.open.iter().rposition(|frame| frame.name == name) else {
            if !self.open.is_empty() {
                let name = name.chars().take(40).collect::<String>();
                self.fault(span.start, format!("the end tag </{name}> closes nothing"));
            }
            self.edit(span, "")?;
            return Ok(None);
        };
        if self.fence > 0 && found + 1 < self.fence {
            return Ok(Some(
                self.tear(Pending { span, token: Token::End { name } }, "an entry is not closed"),
            ));
        }
        if found + 1 < self.open.len() {
            let inner = self.open.last().map_or("", |frame| frame.name);
            self.fault(span.start, format!("the element <{inner}> is not closed"));
        }
        self.closing = Some(Closing { keep: found, at: span.start, tag: Some(span) });
        Ok(None)
    }

    /// Whether a start tag with the prefix of what it stands in is of another namespace than the open
    /// entry: it says so, or what it stands in is.
    fn is_of_another(&mut self, span: &Range<usize>) -> bool {
        let around = self.open.last().map(|parent| parent.ns);
        let ns = self.declared(span).or(around);
        self.open.get(self.fence.saturating_sub(1)).is_some_and(|entry| Some(entry.ns) != ns)
    }

    /// The namespace that a start tag declares for names without prefix.
    fn declared(&mut self, span: &Range<usize>) -> Option<Ns> {
        let (_, behind) = self.text.get(span.clone())?.split_once("xmlns=")?;
        let quote = behind.chars().next().filter(|c| matches!(c, '"' | '\''))?;
        let uri = behind.get(1..)?.split(quote).next()?;
        Some(self.scope.classify(uri))
    }

    /// Looks whether a start tag shows that something is not closed: the entry before, or an
    /// element that never holds entries. Where every element is closed, an entry in such a place is
    /// markup of what it stands in, as XML says.
    pub(super) fn entry_begins(
        &mut self,
        span: &Range<usize>,
        name: &'a str,
        empty: bool,
    ) -> Result<Option<Option<WalkStep<'a>>>, LimitReached> {
        let Some(parent) = self.open.last() else { return Ok(None) };
        let (around, (prefix, local)) = (parent.name, split_name(name));
        let in_leaf = || split_name(parent.name).0 == prefix && LEAVES.contains(&parent.local);
        let pending = || Pending { span: span.clone(), token: Token::Start { name, empty } };
        if self.fence > 0 {
            let entry = self.open.get(self.fence - 1).map_or("", |frame| frame.name);
            // An empty one inside is odd, but it closes itself.
            let is_inside = self.open.len() == self.fence || in_leaf();
            // One of another namespace only has the same name.
            let shows = !empty && entry == name && is_inside && !self.is_of_another(span);
            if shows && !self.is_balanced() {
                return Ok(Some(Some(self.tear(pending(), "an entry begins inside an entry"))));
            }
        } else if self.entry_name == Some(local) && in_leaf() && !self.is_balanced() {
            let leaves = |frame: &&super::OpenElement<'a>| LEAVES.contains(&frame.local);
            let keep = self.open.len() - self.open.iter().rev().take_while(leaves).count();
            self.fault(span.start, format!("the element <{around}> is not closed"));
            self.pending = Some(pending());
            self.closing = Some(Closing { keep, at: span.start, tag: None });
            return Ok(Some(None));
        }
        Ok(None)
    }

    /// Whether all elements are closed, innermost first. That is looked up once, where it matters.
    fn is_balanced(&mut self) -> bool {
        *self.balanced.get_or_insert_with(|| tokens::is_balanced(self.text, self.begin))
    }

    /// Closes the entry and gives it up; `next` is read again around it.
    fn tear(&mut self, next: Pending<'a>, why: &str) -> WalkStep<'a> {
        let at = next.span.start;
        if !self.is_cut {
            self.fault(at, why);
        }
        self.pending = Some(next);
        self.drop_entry();
        WalkStep::Torn { at }
    }

    fn drop_entry(&mut self) {
        let keep = self.fence.saturating_sub(1);
        while self.open.len() > keep {
            self.pop();
        }
        self.closing = None;
        self.fence = 0;
    }

    /// A limit is met: inside an entry that costs the entry, elsewhere the document.
    pub(super) fn too_much(
        &mut self,
        what: &'static str,
        limit: usize,
        at: usize,
    ) -> Result<Option<WalkStep<'a>>, LimitReached> {
        if self.fence == 0 {
            return Err(LimitReached { what, limit, at });
        }
        self.abandon(at, format!("an entry has more than {limit} {what}")).map(Some)
    }

    /// Gives up the open entry and goes to its end, which is found by name only.
    pub fn abandon(&mut self, at: usize, why: String) -> Result<WalkStep<'a>, LimitReached> {
        self.fault(at, why);
        let outside = self.fence.saturating_sub(1);
        let entry = self.open.get(outside).map_or("", |frame| frame.name);
        let around: Vec<&str> = self.open.iter().take(outside).map(|frame| frame.name).collect();
        self.closing = None;
        loop {
            let next = match self.pending.take() {
                Some(pending) => pending,
                None => self.read()?,
            };
            match next.token {
                Token::End { name } if name == entry => {
                    self.drop_entry();
                    return Ok(WalkStep::Torn { at: next.span.end });
                }
                Token::Start { name, .. } if name == entry && next.span.start > at => {
                    break self.pending = Some(next);
                }
                Token::End { name } if around.contains(&name) => break self.pending = Some(next),
                Token::Eof | Token::Unreadable => break self.pending = Some(next),
                _ => {}
            }
        }
        let at = self.pending.as_ref().map_or(at, |next| next.span.start);
        self.drop_entry();
        Ok(WalkStep::Torn { at })
    }

    /// Something looks like a tag and is none: its `<` is taken for itself.
    pub(super) fn broken(
        &mut self,
        span: &Range<usize>,
    ) -> Result<Option<WalkStep<'a>>, LimitReached> {
        if !self.another_restart(span.start) {
            return self.give_up(span.start);
        }
        let after = span.start + 1;
        if self.open.is_empty() {
            self.edit(span.start..after, "")?;
            self.restart(after);
            return Ok(None);
        }
        self.fault(span.start, "a '<' that begins no tag is taken for itself");
        self.edit(span.start..after, "&lt;")?;
        self.restart(after);
        Ok(Some(WalkStep::Text(Cow::Borrowed("<"))))
    }

    /// Something begins and has no end before the text does.
    pub(super) fn unreadable(
        &mut self,
        span: &Range<usize>,
    ) -> Result<Option<WalkStep<'a>>, LimitReached> {
        let rest = cut(self.text, span.start..self.text.len());
        let is_tag = !rest.starts_with("<!") && !rest.starts_with("<?");
        if is_tag && memchr::memchr(b'>', rest.as_bytes()).is_some() {
            return self.broken(span);
        }
        let next = self.next_entry(span.start + 1);
        match next {
            Some(next) if self.another_restart(span.start) => {
                self.restart(next);
                if self.fence > 0 {
                    self.fault(span.start, "an entry holds something that has no end");
                    self.drop_entry();
                    return Ok(Some(WalkStep::Torn { at: next }));
                }
                self.fault(span.start, "the document holds something that has no end");
                self.edit(span.start..next, "")?;
                Ok(None)
            }
            _ => self.give_up(span.start),
        }
    }

    /// Takes the text for cut at `at`.
    fn give_up(&mut self, at: usize) -> Result<Option<WalkStep<'a>>, LimitReached> {
        let end = self.text.len();
        if self.fence == 0 {
            self.edit(at..end, "")?;
        }
        self.pending = Some(Pending { span: at..at, token: Token::Eof });
        Ok(None)
    }

    fn another_restart(&mut self, at: usize) -> bool {
        self.restarts += 1;
        if self.restarts > self.limits.restarts {
            let limit = self.limits.restarts;
            self.fault(at, format!("more than {limit} places are no XML"));
            return false;
        }
        true
    }

    /// Where the next entry seems to begin, at `from` or later.
    fn next_entry(&self, from: usize) -> Option<usize> {
        let name = self
            .fence
            .checked_sub(1)
            .and_then(|at| self.open.get(at))
            .map(|frame| frame.name)
            .or(self.entry_name)?;
        let wanted = format!("<{name}");
        let bytes = self.text.as_bytes();
        memchr::memmem::find_iter(bytes.get(from..)?, wanted.as_bytes()).map(|at| at + from).find(
            |at| {
                let behind = bytes.get(at + wanted.len());
                matches!(behind, Some(b' ' | b'\t' | b'\n' | b'\r' | b'>'))
            },
        )
    }

    /// The text is at its end.
    pub(super) fn finish(&mut self, at: usize) -> WalkStep<'a> {
        if self.open.is_empty() {
            self.rooted = true;
            return WalkStep::End;
        }
        if !std::mem::replace(&mut self.is_cut, true) {
            self.fault(at, "the document is cut");
        }
        let end = self.text.len();
        if self.fence > 0 {
            // What is left of the entry goes with it, up to the very end.
            let next = Pending { span: end..end, token: Token::Eof };
            return self.tear(next, "the document is cut");
        }
        self.closing = Some(Closing { keep: 0, at, tag: None });
        self.pending = Some(Pending { span: at..at, token: Token::Eof });
        WalkStep::Text(Cow::Borrowed(""))
    }
}
