//! Markup as a balanced walk: every element that opens closes, whatever the publisher wrote.
//!
//! What had to be done for that is kept as edits beside the text, so that the same walk gives the
//! repaired markup. Faults that every reader tolerates only warn; faults that put the borders of
//! elements in doubt also set [`Walker::fault`].

mod names;
mod recover;
mod skim;
mod tokens;
mod unescape;

use super::edits::Edit;
use super::namespaces::NamespaceScope;
use super::ns::Ns;
use crate::model::{Flaw, Flaws, Warning};
use crate::xml::attributes::WrittenAttribute;
use crate::xml::split_name;
use quick_xml::Reader;
use skim::SkimBuffers;
pub use skim::{Interest, SkimLimits, SkimReader, Skimmed};
use std::borrow::Cow;
use std::ops::Range;
use url::Url;

/// How much is walked through. A limit that is met inside an entry costs that entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WalkLimits {
    /// Elements open at the same time.
    pub depth: usize,
    /// Attributes of one element, namespace declarations among them.
    pub attributes: usize,
    /// Namespace declarations in scope at the same time.
    pub namespaces: usize,
    /// Bytes of the spelled name of an element or attribute.
    pub name: usize,
    /// Bytes of a base address.
    pub base: usize,
    /// Repairs made to the text of a document.
    pub repairs: usize,
    /// Times that reading is taken up again behind something that is no XML.
    pub restarts: usize,
    /// Warnings kept.
    pub warnings: usize,
}

impl Default for WalkLimits {
    fn default() -> Self {
        Self {
            depth: 256,
            attributes: 256,
            namespaces: 256,
            name: 1024,
            base: 4096,
            repairs: 500_000,
            restarts: 128,
            warnings: 64,
        }
    }
}

/// A limit that was met where that costs the whole document.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the markup has more than {limit} {what} at byte {at}, which is the limit")]
pub struct LimitReached {
    /// What there is too much of.
    pub what: &'static str,
    pub limit: usize,
    /// Byte offset where it was met.
    pub at: usize,
}

/// An element that is open.
#[derive(Debug, Clone)]
pub struct OpenElement<'a> {
    /// Its spelled name.
    pub name: &'a str,
    /// Its namespace.
    pub ns: Ns,
    /// Its local name.
    pub local: &'a str,
    /// Where its start tag begins.
    pub start: usize,
    /// Where its content begins.
    pub content: usize,
    /// Whether it is written as an empty-element tag.
    pub empty: bool,
    scope: usize,
    bases: usize,
    langs: usize,
}

/// An attribute, its value resolved.
#[derive(Debug, Clone)]
pub struct WalkedAttribute<'a> {
    /// Its namespace.
    pub ns: Ns,
    /// Its spelled name.
    pub name: &'a str,
    /// Its local name.
    pub local: &'a str,
    /// Its value, references resolved.
    pub value: Cow<'a, str>,
    /// The place of the value as written, without quotes.
    pub place: Range<usize>,
}

/// One step of the walk.
#[derive(Debug)]
pub enum WalkStep<'a> {
    /// An element opened: it is the innermost of [`Walker::open`], its attributes are in
    /// [`Walker::attributes`].
    Open,
    /// Character data, references resolved.
    Text(Cow<'a, str>),
    /// An element closed.
    Close {
        /// The element.
        frame: OpenElement<'a>,
        /// Where its content ends.
        content_end: usize,
        /// Where it ends.
        end: usize,
    },
    /// The open entry cannot be told apart from what follows; it and all in it are closed.
    Torn {
        /// Where what follows begins.
        at: usize,
    },
    /// The root is closed, or the text is at its end.
    End,
}

/// The walk.
pub struct Walker<'a> {
    /// The document.
    pub text: &'a str,
    /// The elements that are open, outermost first.
    pub open: Vec<OpenElement<'a>>,
    /// The attributes of the element that opened last, without namespace declarations.
    pub attributes: Vec<WalkedAttribute<'a>>,
    /// Namespaces in scope.
    pub scope: NamespaceScope<'a>,
    /// Repairs, nearly in order.
    pub edits: Vec<Edit>,
    /// What was wrong.
    pub warnings: Vec<Warning>,
    /// What keeps it from being well-formed.
    pub flaws: Flaws,
    /// The first fault that puts the borders of elements in doubt: where, and what.
    pub fault: Option<(usize, String)>,
    /// Whether the text ended before its root did.
    pub is_cut: bool,
    /// The local name of entries in this document, once the root is known.
    pub entry_name: Option<&'static str>,
    /// How many elements are open around and with the entry; 0 outside of entries.
    pub fence: usize,
    /// Whether text comes in one piece up to the next tag where nothing is to be said of it, and not in as
    /// many as it has references.
    pub joins_text: bool,
    limits: WalkLimits,
    reader: Reader<&'a [u8]>,
    offset: usize,
    bases: Vec<(Option<Url>, String)>,
    langs: Vec<String>,
    document: Option<Url>,
    written: Vec<WrittenAttribute<'a>>,
    forbidden: Vec<usize>,
    pending: Option<Pending<'a>>,
    closing: Option<Closing>,
    rooted: bool,
    restarts: usize,
    seen: bool,
    /// Where the walk began.
    begin: usize,
    /// Whether each end tag closes what opened last, once somebody asked.
    balanced: Option<bool>,
    skim: SkimBuffers<'a>,
}

/// A token that was read but belongs to a later step.
#[derive(Debug, Clone)]
struct Pending<'a> {
    span: Range<usize>,
    token: Token<'a>,
}

/// What stands in the text.
#[derive(Debug, Clone)]
enum Token<'a> {
    Start {
        name: &'a str,
        empty: bool,
    },
    End {
        name: &'a str,
    },
    Text,
    Reference,
    CData,
    Other,
    /// Something that begins here and has no end.
    Unreadable,
    /// Nothing more.
    Eof,
}

/// Elements that are closed by one end tag, by the end of the text, or by what follows.
#[derive(Debug, Clone)]
struct Closing {
    /// How many elements stay open.
    keep: usize,
    /// Where the innermost ones that stay without an end tag of their own end.
    at: usize,
    /// The end tag of the last one, where there is one.
    tag: Option<Range<usize>>,
}

impl<'a> Walker<'a> {
    /// A walk over `text` from the byte `start` on.
    pub fn new(text: &'a str, start: usize, document: Option<&Url>, limits: &WalkLimits) -> Self {
        Self {
            text,
            open: Vec::new(),
            attributes: Vec::new(),
            scope: NamespaceScope::default(),
            edits: Vec::new(),
            warnings: Vec::new(),
            flaws: Flaws::default(),
            fault: None,
            is_cut: false,
            entry_name: None,
            fence: 0,
            joins_text: false,
            limits: *limits,
            reader: tokens::reader(text, start),
            offset: start,
            bases: Vec::new(),
            langs: Vec::new(),
            document: document.cloned(),
            written: Vec::new(),
            forbidden: tokens::forbidden(text),
            pending: None,
            closing: None,
            rooted: false,
            restarts: 0,
            seen: false,
            begin: start,
            balanced: None,
            skim: SkimBuffers::default(),
        }
    }

    /// The base for relative references where the walk stands.
    pub fn base(&self) -> Option<&Url> {
        match self.bases.last() {
            Some((base, _)) => base.as_ref(),
            None => self.document.as_ref(),
        }
    }

    /// The `xml:base` in scope around the innermost open element, not its own.
    pub fn outer_base(&self) -> Option<String> {
        let own = self.open.last().map_or(0, |frame| frame.bases);
        let outer = own.checked_sub(1).and_then(|at| self.bases.get(at))?;
        Some(outer.1.clone())
    }

    /// The `xml:lang` in scope around the innermost open element, not its own.
    pub fn outer_lang(&self) -> Option<String> {
        let own = self.open.last().map_or(0, |frame| frame.langs);
        let lang = own.checked_sub(1).and_then(|at| self.langs.get(at))?;
        (!lang.is_empty()).then(|| lang.clone())
    }

    /// The `xml:base` in scope, that of the innermost open element included.
    pub fn inner_base(&self) -> Option<String> {
        self.bases.last().map(|(_, base)| base.clone())
    }

    /// The `xml:lang` in scope, that of the innermost open element included.
    pub fn inner_lang(&self) -> Option<String> {
        self.langs.last().filter(|lang| !lang.is_empty()).cloned()
    }

    /// The innermost open element is an entry: what it uses from outside is remembered, and it
    /// can be torn.
    pub fn enter_entry(&mut self) {
        self.fence = self.open.len();
        let outer = self.open.last().map_or(0, |frame| frame.scope);
        self.scope.enter_entry(outer);
        // Its own tag was read before it was known to be an entry.
        if let Some(frame) = self.open.last() {
            self.scope.resolve(split_name(frame.name).0);
        }
        for attribute in &self.attributes {
            let (prefix, _) = split_name(attribute.name);
            if !prefix.is_empty() {
                self.scope.resolve(prefix);
            }
        }
    }

    /// The entry is over.
    pub const fn leave_entry(&mut self) {
        self.fence = 0;
    }

    /// Notes something that does not prevent parsing.
    pub fn warn(&mut self, offset: usize, message: impl Into<String>) {
        if self.warnings.len() < self.limits.warnings {
            self.warnings.push(Warning { offset, message: message.into() });
        }
    }

    /// Notes something for which a strict processor would refuse the document.
    pub fn flaw(&mut self, flaw: Flaw, offset: usize, message: impl Into<String>) {
        self.flaws.insert(flaw);
        self.warn(offset, message);
    }

    /// Notes a fault that puts the borders of elements in doubt.
    pub fn fault(&mut self, at: usize, message: impl Into<String>) {
        let message = message.into();
        self.flaw(Flaw::Tags, at, message.clone());
        self.fault.get_or_insert((at, message));
    }

    /// Replaces a piece of the text.
    pub fn edit(
        &mut self,
        range: Range<usize>,
        with: impl Into<Cow<'static, str>>,
    ) -> Result<(), LimitReached> {
        if self.edits.len() >= self.limits.repairs {
            let limit = self.limits.repairs;
            return Err(LimitReached { what: "repairs", limit, at: range.start });
        }
        self.edits.push(Edit { range, with: with.into() });
        Ok(())
    }

    /// Takes the edits from number `from` on, with those that drop forbidden characters in `span`.
    pub fn take_edits(&mut self, from: usize, span: &Range<usize>) -> Vec<Edit> {
        let mut edits = self.edits.split_off(from.min(self.edits.len()));
        let start = self.forbidden.partition_point(|at| *at < span.start);
        let end = self.forbidden.partition_point(|at| *at < span.end);
        for at in self.forbidden.get(start..end).unwrap_or_default() {
            let length =
                self.text.get(*at..).and_then(|t| t.chars().next()).map_or(1, char::len_utf8);
            edits.push(Edit { range: *at..at + length, with: Cow::Borrowed("") });
        }
        edits
    }

    /// The next step.
    pub fn step(&mut self) -> Result<WalkStep<'a>, LimitReached> {
        loop {
            if let Some(step) = self.close_one()? {
                return Ok(step);
            }
            if self.rooted && self.open.is_empty() {
                return Ok(WalkStep::End);
            }
            let Pending { span, token } = match self.pending.take() {
                Some(pending) => pending,
                None => match self.joined_text() {
                    Some(text) => return Ok(WalkStep::Text(text)),
                    None => self.read()?,
                },
            };
            let step = match token {
                Token::Start { name, empty } => self.start(span, name, empty)?,
                Token::End { name } => self.end(span, name)?,
                Token::Text => self.characters(span)?.map(WalkStep::Text),
                Token::Reference => self.reference(&span)?.map(WalkStep::Text),
                Token::CData => self.cdata(&span)?.map(WalkStep::Text),
                Token::Other => None,
                Token::Unreadable => self.unreadable(&span)?,
                Token::Eof => Some(self.finish(span.start)),
            };
            if let Some(step) = step {
                return Ok(step);
            }
        }
    }

    /// Closes one of the elements that are to be closed.
    fn close_one(&mut self) -> Result<Option<WalkStep<'a>>, LimitReached> {
        let Some(Closing { keep, at, tag }) = self.closing.clone() else { return Ok(None) };
        if self.open.len() <= keep {
            self.closing = None;
            return Ok(None);
        }
        let Some(frame) = self.pop() else { return Ok(None) };
        let last = self.open.len() == keep;
        if last {
            self.closing = None;
        }
        if frame.empty {
            let (content_end, end) = (frame.content, frame.content);
            return Ok(Some(WalkStep::Close { frame, content_end, end }));
        }
        match tag {
            Some(tag) if last => {
                Ok(Some(WalkStep::Close { frame, content_end: tag.start, end: tag.end }))
            }
            _ => {
                self.edit(at..at, format!("</{}>", frame.name))?;
                Ok(Some(WalkStep::Close { frame, content_end: at, end: at }))
            }
        }
    }

    fn pop(&mut self) -> Option<OpenElement<'a>> {
        let frame = self.open.pop()?;
        self.scope.truncate(frame.scope);
        self.bases.truncate(frame.bases);
        self.langs.truncate(frame.langs);
        Some(frame)
    }
}
