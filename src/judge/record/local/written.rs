//! An entry that a person or a program wrote: read by `parse`, checked, and kept as what that read.

mod advice;
mod checked;

use std::fmt::Write as _;
use tidegate_core::model::{Completeness, Entry, Format, Markup, Time};
use tidegate_core::xml::{is_char, push_attribute, push_text};
use tidegate_format::parse::{self, Amendment, Limits, ParseError};
use url::Url;

/// What stands before an entry to make a document of it. The default namespace is bound as well, for
/// people who write a bare `<entry>`.
const BEFORE: &str = "<around:feed xmlns:around=\"http://www.w3.org/2005/Atom\" \
                      xmlns=\"http://www.w3.org/2005/Atom\">";
/// What stands behind it.
const BEHIND: &str = "</around:feed>";

/// Why an entry cannot be taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct EntryError {
    /// The line of the entry, from 1, where one says something.
    pub line: Option<usize>,
    /// What is wrong, as a sentence without its final stop.
    pub message: String,
}

impl std::fmt::Display for EntryError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line} of the entry: {}", self.message),
            None => write!(f, "the entry cannot be taken: {}", self.message),
        }
    }
}

impl EntryError {
    fn whole(message: impl Into<String>) -> Self {
        Self { line: None, message: message.into() }
    }
}

/// The fields of an entry, for those who do not write Atom. All text is plain but `content_html`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EntryFields {
    pub title: String,
    /// Its text, plain.
    pub content: Option<String>,
    /// Its text as HTML.
    pub content_html: Option<String>,
    /// A short text.
    pub summary: Option<String>,
    /// The address of its page.
    pub link: Option<String>,
    pub author: Option<String>,
    /// Its id, where it has one of its own.
    pub id: Option<String>,
    pub published: Option<Time>,
    pub updated: Option<Time>,
    pub categories: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckedEntry(EntrySource);

#[derive(Debug, Clone, PartialEq, Eq)]
enum EntrySource {
    /// An Atom entry as `parse` read it, in the document around it.
    Atom {
        /// Up to its start tag.
        start: String,
        /// The prefix of its elements, where none of them dates it.
        undated: Option<String>,
        rest: String,
    },
    /// A version that is there, in whatever format, with something else to say.
    Amended(Box<Markup>, Amendment),
}

impl CheckedEntry {
    /// Checks an Atom entry (RFC 4287 section 4.1.2), an XML declaration before it or not. What
    /// would have to be repaired is refused. Its id may be absent, and so may its date.
    pub fn atom(text: &str) -> Result<Self, EntryError> {
        let body = text.trim_start_matches('\u{feff}');
        let body = match body.trim_start().strip_prefix("<?xml ") {
            Some(declared) => declared.split_once("?>").map_or(body, |(_, rest)| rest),
            None => body,
        };
        let cut = text.len() - body.len();
        let around = format!("{BEFORE}{body}{BEHIND}");
        let line = |at: usize| {
            let at = cut + at.saturating_sub(BEFORE.len()).min(body.len());
            let before = text.as_bytes().get(..at).unwrap_or_default();
            Some(memchr::memchr_iter(b'\n', before).count() + 1)
        };
        let inner = BEFORE.len()..around.len().saturating_sub(BEHIND.len());
        let checked = checked::entry(&around, inner);
        if let Err(Some(fault)) = checked {
            return Err(EntryError { line: line(fault.at), message: fault.message });
        }
        let document = parse::document(&around, None, &Limits::default()).map_err(|error| {
            EntryError { line: error.offset().and_then(line), message: describe_error(&error) }
        })?;
        if let Some(warning) = document.warnings.first() {
            let message = advice::advise(&warning.message);
            return Err(EntryError { line: line(warning.offset), message });
        }
        if let Completeness::Salvaged(why) = &document.completeness {
            // The parser's own place is one in the document around it.
            let (why, at) = why.rsplit_once(" (byte ").unwrap_or((why, ""));
            let at = at.trim_end_matches(')').parse().ok();
            return Err(EntryError { line: at.and_then(line), message: advice::advise(why) });
        }
        let [entry] = document.entries.as_slice() else {
            let many = document.entries.len();
            return Err(EntryError::whole(format!("it is one Atom entry, and there are {many}")));
        };
        let outside = [around.get(BEFORE.len()..entry.span.start), {
            let end = around.len().saturating_sub(BEHIND.len());
            around.get(entry.span.end..end)
        }];
        if outside.iter().any(|text| text.is_none_or(|text| !text.trim().is_empty())) {
            return Err(EntryError::whole("nothing but one Atom entry stands in the body"));
        }
        let broken = "its XML is not well-formed; close each element, innermost first";
        let undated = checked.map_err(|_| EntryError::whole(broken))?;
        Self::checked(entry, undated)
    }

    fn checked(entry: &Entry<'_>, undated: Option<String>) -> Result<Self, EntryError> {
        if entry.sync.is_some() {
            return Err(EntryError::whole(checked::describe_sync_markup()));
        }
        if entry.title.as_deref().is_none_or(|title| title.trim().is_empty()) {
            return Err(EntryError::whole("it has no title, which every Atom entry has"));
        }
        if let Some(id) = entry.native_id.as_deref()
            && Url::parse(id).is_err()
        {
            let message = "its id is no absolute address (RFC 4287 section 4.2.6); leave it out, \
                           or write one such as urn:uuid:…";
            return Err(EntryError::whole(message));
        }
        let inner = entry.slots.inner.ok_or_else(|| EntryError::whole("it is empty"))?;
        let (start, rest) = entry.markup.split_at_checked(inner).unwrap_or((&entry.markup, ""));
        let (start, rest) = ([BEFORE, start].concat(), [rest, BEHIND].concat());
        Ok(Self(EntrySource::Atom { start, undated, rest }))
    }

    /// A version that is there with another title, text, summary or link; what is not amended stays,
    /// in the format that it has. It is dated when it is taken, where it says when it was updated.
    pub fn amended(before: &Markup, amendment: Amendment) -> Result<Self, EntryError> {
        if amendment.title.as_deref().is_some_and(|title| title.trim().is_empty()) {
            return Err(EntryError::whole("it has no title, which every Atom entry has"));
        }
        if amendment.link.as_deref().is_some_and(|link| !checked::is_page(link)) {
            return Err(EntryError::whole("its link is no http or https address"));
        }
        let text = amendment.text.as_ref().map(|(text, _)| text);
        let texts = [&amendment.title, &amendment.summary].into_iter().flatten().chain(text);
        check_characters(texts.map(String::as_str))?;
        let refused =
            "what the item says cannot be read, so that only a whole Atom entry can take its place";
        parse::amended(before, &amendment, |_, _| ()).ok_or_else(|| EntryError::whole(refused))?;
        Ok(Self(EntrySource::Amended(Box::new(before.clone()), amendment)))
    }

    /// Makes an entry of fields, and checks it.
    pub fn fields(fields: &EntryFields) -> Result<Self, EntryError> {
        let EntryFields { content, content_html, summary, link, author, id, .. } = fields;
        let optional = [content, content_html, summary, link, author, id].into_iter().flatten();
        let texts = std::iter::once(&fields.title).chain(optional).chain(&fields.categories);
        check_characters(texts.map(String::as_str))?;
        let mut xml = String::from("<entry>");
        if content.is_some() && content_html.is_some() {
            return Err(EntryError::whole("it has content or content_html, and not both"));
        }
        let date = |time: Option<Time>| time.map(|time| time.to_string());
        for (name, attributes, text) in [
            ("title", "", &Some(fields.title.clone())),
            ("id", "", id),
            ("summary", "", summary),
            ("published", "", &date(fields.published)),
            ("updated", "", &date(fields.updated)),
            ("content", " type=\"text\"", content),
            ("content", " type=\"html\"", content_html),
        ] {
            if let Some(text) = text {
                let _ = write!(xml, "<{name}{attributes}>");
                push_text(&mut xml, text);
                let _ = write!(xml, "</{name}>");
            }
        }
        if let Some(author) = author {
            xml.push_str("<author><name>");
            push_text(&mut xml, author);
            xml.push_str("</name></author>");
        }
        if let Some(link) = link {
            if !checked::is_page(link) {
                return Err(EntryError::whole("its link is no http or https address"));
            }
            xml.push_str("<link rel=\"alternate\"");
            push_attribute(&mut xml, "href", link);
            xml.push_str("/>");
        }
        for category in &fields.categories {
            xml.push_str("<category");
            push_attribute(&mut xml, "term", category);
            xml.push_str("/>");
        }
        xml.push_str("</entry>");
        // What of the text XML cannot hold has no line that the author would know.
        Self::atom(&xml).map_err(|error| EntryError { line: None, ..error })
    }

    /// Reads the entry, dated `now` where it bears no date.
    pub(super) fn read<T>(
        &self,
        now: Time,
        take: impl FnOnce(Format, &Entry<'_>) -> T,
    ) -> Result<T, EntryError> {
        let gone = || EntryError::whole("it cannot be read any more");
        let text = match &self.0 {
            EntrySource::Atom { start, undated, rest } => {
                let date = |prefix| format!("<{prefix}updated>{now}</{prefix}updated>");
                [start, &undated.as_ref().map(date).unwrap_or_default(), rest]
                    .map(String::as_str)
                    .concat()
            }
            EntrySource::Amended(before, amendment) => {
                let amendment = Amendment { updated: Some(now), ..amendment.clone() };
                return parse::amended(before, &amendment, take).ok_or_else(gone);
            }
        };
        let document = parse::document(&text, None, &Limits::default())
            .map_err(|error| EntryError::whole(describe_error(&error)))?;
        let entry = document.entries.first().ok_or_else(gone)?;
        Ok(take(document.format, entry))
    }
}

/// What is wrong with a text, as its author has to know it.
fn describe_error(error: &ParseError) -> String {
    match error {
        ParseError::NothingWhole { reason, .. } => advice::advise(reason),
        ParseError::Limit { what, limit, .. } => format!("it has more than {limit} {what}"),
        ParseError::TooLarge { found, limit } => {
            format!("it is {found} bytes long, the limit is {limit}")
        }
        ParseError::Empty | ParseError::Html { .. } | ParseError::NotAFeed { .. } => {
            checked::describe_wrong_root("the body is something else")
        }
    }
}

/// Refuses characters that XML forbids (XML 1.0 section 2.2): nothing is dropped in silence.
fn check_characters<'a>(texts: impl IntoIterator<Item = &'a str>) -> Result<(), EntryError> {
    let mut characters = texts.into_iter().flat_map(str::chars);
    match characters.find(|c| !is_char(*c)) {
        None => Ok(()),
        Some(c) => {
            let code = u32::from(c);
            Err(EntryError::whole(format!("the character U+{code:04X} cannot stand in XML")))
        }
    }
}
