//! One entry: its canonical projection and what it means.

mod meaning;
mod project;
mod skim;

use super::Limits;
use super::dialect::FeedDialect;
use meaning::Meaning;
use project::project;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;
use tidegate_core::model::{Context, Entry, Field, Projection, Slots};
use tidegate_core::xml::edits::Edits;
use tidegate_core::xml::ns::Ns;
use tidegate_core::xml::walker::{OpenElement, WalkedAttribute, Walker};
use tidegate_core::xml::{collapsed, is_blank, push_text, push_value};

/// What a field costs beside its path, in bytes, when the projection is measured.
pub(super) const FIELD_COST: usize = 64;

/// Why an entry cannot be taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TooMuch {
    /// What there is too much of.
    pub what: &'static str,
    /// How much there may be.
    pub limit: usize,
}

/// An element of the entry that is open.
#[derive(Debug)]
struct EntryPart<'a> {
    /// How long the path is without it.
    path: usize,
    /// Its whole path, where that stands so in the text.
    spelled: Option<&'a str>,
    text: Cow<'a, str>,
    /// Whether it may hold markup that is meant as text.
    prose: bool,
    /// Whether it is of use even when it is empty.
    foreign: bool,
    bare: bool,
}

/// An entry that is open.
pub(super) struct EntryBuilder<'a, 'l> {
    /// Where its start tag begins.
    pub start: usize,
    /// The number of the first edit that is the entry's.
    pub first_edit: usize,
    dialect: FeedDialect,
    limits: &'l Limits,
    name_end: usize,
    content: usize,
    is_empty: bool,
    context: Context,
    path: String,
    parts: Vec<EntryPart<'a>>,
    /// Elements open below prose that turned out to hold markup; the markup so far.
    markup: Option<(usize, String)>,
    fields: Vec<Field<'a>>,
    /// Whether it was skimmed: its fields are read when they are asked for.
    is_skimmed: bool,
    meaning: Meaning<'a>,
    /// Bytes that the projection takes.
    pub cost: usize,
}

impl<'a, 'l> EntryBuilder<'a, 'l> {
    /// Begins with the innermost open element, which is the entry.
    pub fn new(
        walker: &Walker<'a>,
        dialect: FeedDialect,
        limits: &'l Limits,
        first_edit: usize,
    ) -> Option<Self> {
        let frame = walker.open.last()?;
        let mut builder = Self {
            start: frame.start,
            first_edit,
            dialect,
            limits,
            name_end: frame.start + 1 + frame.name.len(),
            content: frame.content,
            is_empty: frame.empty,
            context: Context {
                namespaces: Vec::new(),
                base: walker.outer_base(),
                lang: walker.outer_lang(),
            },
            path: String::new(),
            parts: Vec::new(),
            markup: None,
            fields: Vec::new(),
            is_skimmed: false,
            meaning: Meaning::default(),
            cost: 0,
        };
        builder.parts.push(EntryPart {
            path: 0,
            spelled: None,
            text: Cow::Borrowed(""),
            prose: false,
            foreign: false,
            bare: false,
        });
        builder.attributes(walker).ok()?;
        let about = |a: &&WalkedAttribute<'_>| a.ns == Ns::Rdf && a.local == "about";
        builder.meaning.lang = walker.inner_lang();
        builder.meaning.about = walker.attributes.iter().find(about).map(|a| a.value.clone());
        Some(builder)
    }

    /// Whether the pieces that text comes in mean nothing: in markup, white space between two of them does.
    pub const fn joins_text(&self) -> bool {
        self.markup.is_none()
    }

    /// An element opened inside the entry.
    pub fn open(&mut self, walker: &Walker<'a>) -> Result<(), TooMuch> {
        let Some(frame) = walker.open.last() else { return Ok(()) };
        if self.markup.is_none()
            && let Some(parent) = self.parts.last_mut()
        {
            parent.bare = false;
            if parent.prose {
                let mut markup = String::new();
                push_text(&mut markup, &std::mem::take(&mut parent.text));
                self.markup = Some((0, markup));
            }
        }
        if let Some((depth, markup)) = &mut self.markup {
            *depth += 1;
            open_markup(self.dialect, walker, frame, markup);
            return Ok(());
        }
        let before = self.path.len();
        if self.parts.len() > 1 {
            self.path.push('/');
        }
        let spelled =
            self.dialect.segment(frame, &walker.attributes, &walker.scope, &mut self.path);
        if self.path.len() > self.limits.path {
            return Err(TooMuch { what: "bytes in a path", limit: self.limits.path });
        }
        let level = self.parts.len();
        self.parts.push(EntryPart {
            path: before,
            spelled: spelled.filter(|_| level == 1),
            text: Cow::Borrowed(""),
            prose: self.dialect.is_prose(frame.ns, frame.local),
            foreign: !self.dialect.owns(frame.ns),
            bare: true,
        });
        self.attributes(walker)?;
        self.meaning.open(self.dialect, level, frame, &walker.attributes, walker.base());
        Ok(())
    }

    fn attributes(&mut self, walker: &Walker<'a>) -> Result<(), TooMuch> {
        let link = walker.open.last().is_some_and(|frame| {
            self.dialect.is_atom_link(frame.ns, frame.local, &walker.attributes)
        });
        for attribute in &walker.attributes {
            let skipped = match attribute.ns {
                Ns::Sx => true,
                Ns::Xml => attribute.local != "lang",
                // The path tells it.
                Ns::None => link && attribute.local == "rel",
                _ => false,
            };
            if skipped {
                continue;
            }
            let mut path = String::with_capacity(self.path.len() + attribute.local.len() + 1);
            path.push_str(&self.path);
            path.push('@');
            if attribute.ns == Ns::None {
                path.push_str(attribute.local);
            } else {
                let (name, local) = (attribute.name, attribute.local);
                self.dialect.name(attribute.ns, name, local, &walker.scope, &mut path);
            }
            self.field(Cow::Owned(path), collapsed(attribute.value.clone()))?;
            if let Some(part) = self.parts.last_mut() {
                part.bare = false;
            }
        }
        Ok(())
    }

    fn field(&mut self, path: Cow<'a, str>, value: Cow<'a, str>) -> Result<(), TooMuch> {
        if self.fields.len() >= self.limits.fields {
            return Err(TooMuch { what: "fields", limit: self.limits.fields });
        }
        self.cost += FIELD_COST;
        if let Cow::Owned(path) = &path {
            self.cost += path.len();
        }
        self.fields.push(Field { path, value });
        Ok(())
    }

    /// Character data inside the entry.
    pub fn text(&mut self, text: Cow<'a, str>) {
        if let Some((_, markup)) = &mut self.markup {
            // White space between elements means nothing.
            if !is_blank(&text) {
                push_text(markup, &text);
            } else if !text.is_empty() && !markup.ends_with(['>', ' ']) {
                markup.push(' ');
            }
        } else if let Some(part) = self.parts.last_mut() {
            if part.text.is_empty() {
                part.text = text;
            } else {
                part.text.to_mut().push_str(&text);
            }
        }
    }

    /// An element closed inside the entry.
    pub fn close(
        &mut self,
        walker: &mut Walker<'a>,
        frame: &OpenElement<'a>,
        content_end: usize,
        end: usize,
    ) -> Result<(), TooMuch> {
        if let Some((depth, markup)) = &mut self.markup
            && *depth > 0
        {
            *depth -= 1;
            markup.push_str("</");
            markup_name(self.dialect, walker, frame, markup);
            markup.push('>');
            return Ok(());
        }
        let Some(mut part) = self.parts.pop() else { return Ok(()) };
        let is_markup = self.markup.is_some();
        if let Some((_, markup)) = self.markup.take() {
            part.text = Cow::Owned(markup);
        }
        let level = self.parts.len();
        let place = (frame.content..content_end, frame.start..end);
        self.meaning.close(
            self.dialect,
            level,
            frame,
            &part.text,
            is_markup,
            &place,
            walker.base(),
        );
        let value = collapsed(part.text);
        if !value.is_empty() || (part.bare && part.foreign) {
            let path = match part.spelled {
                Some(path) => Cow::Borrowed(path),
                None => Cow::Owned(self.path.clone()),
            };
            self.field(path, value)?;
        }
        self.path.truncate(part.path);
        Ok(())
    }

    /// The entry is whole and ends at `end`.
    pub fn finish(
        mut self,
        walker: &mut Walker<'a>,
        end: usize,
        shared: &mut Arc<Context>,
    ) -> Result<Entry<'a>, String> {
        let span = self.start..end;
        if span.len() > self.limits.entry {
            return Err(format!("an entry has more than {} bytes", self.limits.entry));
        }
        let mut list = walker.take_edits(self.first_edit, &span);
        let id = self.meaning.id_place.take();
        if let Some((inner, element)) = &id {
            if inner.is_empty()
                && inner.end == element.end
                && walker.text.get(..inner.end).is_some_and(|t| t.ends_with("/>"))
            {
                let name = self.meaning.id_name;
                list.push(tidegate_core::xml::edits::Edit {
                    range: inner.end - 2..inner.end,
                    with: Cow::Owned(format!("></{name}>")),
                });
            } else if inner.end == element.end {
                return Err("an entry's id is not closed".to_owned());
            }
        }
        let edits = Edits::new(span.clone(), list);
        self.context.namespaces = walker.scope.used_by_entry();
        if **shared != self.context {
            *shared = Arc::new(self.context);
        }
        let slots = Slots {
            attributes: edits.before(self.name_end),
            inner: (!self.is_empty).then(|| edits.before(self.content)),
            ..slots_of_id(&edits, id, self.meaning.id_name)
        };
        let markup = edits.apply(walker.text);
        let projection = match self.is_skimmed {
            true => Projection::on_demand(self.dialect.format, project),
            false => self.fields.into(),
        };
        Ok(self.meaning.entry(self.dialect, span, markup, slots, Arc::clone(shared), projection))
    }
}

/// The slots of the id, and nothing else.
fn slots_of_id(edits: &Edits, id: Option<(Range<usize>, Range<usize>)>, name: &str) -> Slots {
    let Some((inner, element)) = id else { return Slots::default() };
    let whole = edits.before(element.start)..edits.before(element.end);
    let inner = if inner.end == element.end {
        // It was an empty-element tag and has become a pair of tags.
        let at = whole.end.saturating_sub(name.len() + "</>".len());
        at..at
    } else {
        edits.before(inner.start)..edits.behind(inner.end)
    };
    Slots { id: Some(inner), id_element: Some(whole), ..Slots::default() }
}

fn open_markup<'a>(
    dialect: FeedDialect,
    walker: &Walker<'a>,
    frame: &OpenElement<'a>,
    out: &mut String,
) {
    out.push('<');
    markup_name(dialect, walker, frame, out);
    let mut attributes: Vec<(String, &str)> = walker
        .attributes
        .iter()
        .filter(|attribute| attribute.ns != Ns::Sx)
        .map(|attribute| {
            let mut name = String::new();
            if attribute.ns == Ns::None {
                name.push_str(attribute.local);
            } else {
                let (spelled, local) = (attribute.name, attribute.local);
                dialect.name(attribute.ns, spelled, local, &walker.scope, &mut name);
            }
            (name, attribute.value.as_ref())
        })
        .collect();
    attributes.sort_unstable();
    for (name, value) in attributes {
        out.push(' ');
        out.push_str(&name);
        out.push_str("=\"");
        push_value(out, value);
        out.push('"');
    }
    out.push('>');
}

fn markup_name<'a>(
    dialect: FeedDialect,
    walker: &Walker<'a>,
    frame: &OpenElement<'a>,
    out: &mut String,
) {
    if frame.ns == Ns::Named("xhtml") {
        out.push_str(frame.local);
    } else {
        dialect.name(frame.ns, frame.name, frame.local, &walker.scope, out);
    }
}
