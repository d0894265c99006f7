//! The feed element: what is an entry, what is the head, what is left for the skeleton.

mod other;
mod skeleton;
#[cfg(test)]
mod tests;

use super::dialect::{FeedDialect, is_of_the_document, plain, relation};
use super::entry::{EntryBuilder, TooMuch};
use super::head::HeadBuilder;
use super::{Limits, ParseError, opml, sharing};
use other::no_feed;
use skeleton::Plan;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;
use tidegate_core::model::{
    Completeness, Context, Entry, EntryTombstone, FeedDocument, Flaw, Format,
};
use tidegate_core::xml::cut;
use tidegate_core::xml::ns::{Ns, OUTLINE_PREFIX};
use tidegate_core::xml::walker::{OpenElement, WalkStep, Walker};
use tidegate_core::xml::{self, is_blank};
use url::Url;

/// What there is too much of where the limit of all projections is met.
const PROJECTIONS: &str = "bytes in all fields";

/// A document that is being read.
struct FeedReader<'a, 'l> {
    walker: Walker<'a>,
    limits: &'l Limits,
    dialect: Option<FeedDialect>,
    head: HeadBuilder,
    plan: Plan,
    entries: Vec<Entry<'a>>,
    tombstones: Vec<EntryTombstone>,
    builder: Option<EntryBuilder<'a, 'l>>,
    context: Arc<Context>,
    /// How many elements are open with the one that is passed over, and the edits before it.
    skipping: Option<(usize, usize)>,
    last_entry_end: Option<usize>,
    cost: usize,
    /// Whether entries that need no mending are skimmed, and not walked through.
    skims: bool,
    /// Whether an element is sync markup, which is read a second time.
    has_sync_markup: bool,
}

/// Reads the XML document that begins at the byte `start`.
pub(super) fn read<'a>(
    text: &'a str,
    start: usize,
    url: Option<&Url>,
    limits: &Limits,
) -> Result<FeedDocument<'a>, ParseError> {
    match walk(text, start, url, limits, true) {
        // What a skimmed entry costs is counted too high, so that a limit may not have been met.
        Err(ParseError::Limit { what: PROJECTIONS, .. }) => walk(text, start, url, limits, false),
        read => read,
    }
}

/// The same, entry by entry; `skims`: as [`FeedReader::skims`].
pub(super) fn walk<'a>(
    text: &'a str,
    start: usize,
    url: Option<&Url>,
    limits: &Limits,
    skims: bool,
) -> Result<FeedDocument<'a>, ParseError> {
    let mut outline = FeedReader {
        walker: Walker::new(text, start, url, &limits.walk),
        limits,
        dialect: None,
        head: HeadBuilder::default(),
        plan: Plan::default(),
        entries: Vec::new(),
        tombstones: Vec::new(),
        builder: None,
        context: Arc::default(),
        skipping: None,
        last_entry_end: None,
        cost: 0,
        skims,
        has_sync_markup: false,
    };
    if start > 0 {
        outline.walker.flaw(Flaw::Around, 0, "what stands before the document is passed over");
        outline.walker.edit(0..start, "")?;
    }
    outline.run()?;
    let has_sync_markup = outline.has_sync_markup;
    let mut document = outline.finish()?;
    if has_sync_markup {
        sharing::add(&mut document, url);
    }
    Ok(document)
}

impl<'a> FeedReader<'a, '_> {
    fn run(&mut self) -> Result<(), ParseError> {
        loop {
            self.walker.joins_text = self.builder.as_ref().is_some_and(EntryBuilder::joins_text);
            match self.walker.step()? {
                WalkStep::Open if self.skipping.is_some() => {}
                WalkStep::Open => self.open()?,
                WalkStep::Text(_) if self.skipping.is_some() => {}
                WalkStep::Text(text) => match &mut self.builder {
                    Some(builder) => builder.text(text),
                    None => self.head.text(&text),
                },
                WalkStep::Close { frame, content_end, end } => {
                    self.close(&frame, content_end, end)?
                }
                WalkStep::Torn { at } => self.drop_entry(at)?,
                WalkStep::End => return Ok(()),
            }
        }
    }

    fn open(&mut self) -> Result<(), ParseError> {
        let Some(frame) = self.walker.open.last() else { return Ok(()) };
        let (ns, start) = (frame.ns, frame.start);
        if self.walker.open.len() == 1 {
            return self.root();
        }
        if ns == Ns::Sx {
            self.has_sync_markup = true;
            self.skipping = Some((self.walker.open.len(), self.walker.edits.len()));
            return Ok(());
        }
        if let Some(builder) = &mut self.builder {
            let done = builder.open(&self.walker);
            return self.checked(done, start);
        }
        let Some(dialect) = self.dialect else { return Ok(()) };
        if self.is_entry(dialect) {
            return self.entry(dialect);
        }
        self.head_element(dialect)
    }

    /// The first element says what the document is.
    fn root(&mut self) -> Result<(), ParseError> {
        let Some(frame) = self.walker.open.last() else { return Ok(()) };
        let version = plain(&self.walker.attributes, "version").unwrap_or_default().trim();
        let format = match (frame.local, frame.ns) {
            ("feed", Ns::Atom) if self.is_list() => Format::Opml,
            ("feed", Ns::Atom) => Format::Atom10,
            ("feed", Ns::Atom03) => Format::Atom03,
            ("feed", Ns::None) if version == "0.3" => Format::Atom03,
            ("feed", Ns::None) => Format::Atom10,
            ("rss", _) if version.starts_with('2') => Format::Rss20,
            ("rss", _) => Format::Rss09x,
            ("RDF", Ns::Rdf) => {
                let scope = &self.walker.scope;
                if scope.mentions(Ns::Rss090) && !scope.mentions(Ns::Rss10) {
                    Format::Rss090
                } else {
                    Format::Rss10
                }
            }
            _ => return Err(no_feed(self.walker.text, frame)),
        };
        let dialect = FeedDialect { format, root: frame.ns };
        self.plan.root_name_end = frame.start + 1 + frame.name.len();
        let place = |a: &&tidegate_core::xml::walker::WalkedAttribute<'_>| {
            a.ns == Ns::None && a.local == "version"
        };
        let version = self.walker.attributes.iter().find(place).map(|a| a.place.clone());
        self.plan.version = version.filter(|_| frame.local == "rss");
        if frame.ns == Ns::None && dialect.is_atom() {
            let at = frame.start;
            self.walker.warn(at, "the feed stands in no namespace and is taken for Atom");
        }
        self.plan.context = self.inner_context();
        self.walker.entry_name = Some(dialect.entry());
        self.dialect = Some(dialect);
        Ok(())
    }

    /// Whether the document is a list that was made an Atom document of.
    fn is_list(&self) -> bool {
        let mark = |a: &tidegate_core::xml::walker::WalkedAttribute<'_>| {
            a.ns == Ns::Named(OUTLINE_PREFIX) && a.local == opml::MARK
        };
        self.walker.attributes.iter().any(mark)
    }

    fn inner_context(&self) -> Context {
        Context {
            namespaces: self.walker.scope.all(),
            base: self.walker.inner_base(),
            lang: self.walker.inner_lang(),
        }
    }

    /// The feed's own elements stand below this many.
    fn head_depth(&self, dialect: FeedDialect) -> Option<usize> {
        if dialect.is_atom() {
            return Some(1);
        }
        let channel = self.walker.open.get(1)?;
        (dialect.owns(channel.ns) && channel.local == "channel").then_some(2)
    }

    fn is_entry(&self, dialect: FeedDialect) -> bool {
        let Some(frame) = self.walker.open.last() else { return false };
        let depth = self.walker.open.len() - 1;
        frame.local == dialect.entry()
            && dialect.owns(frame.ns)
            && (self.head_depth(dialect) == Some(depth) || depth == 1)
    }

    fn entry(&mut self, dialect: FeedDialect) -> Result<(), ParseError> {
        let start = self.walker.open.last().map_or(0, |frame| frame.start);
        if self.entries.len() >= self.limits.entries {
            let limit = self.limits.entries;
            return Err(ParseError::Limit { what: "entries", limit, at: start });
        }
        let inside = self.head_depth(dialect).is_some();
        if inside && self.plan.first_entry.is_none() {
            self.plan.first_entry = Some(start);
        }
        // The edits of its own start tag are the entry's, too; what was inserted before it is not.
        let first_edit = self.walker.edits.partition_point(|edit| edit.range.start <= start);
        self.walker.enter_entry();
        let Some(mut skimming) = EntryBuilder::new(&self.walker, dialect, self.limits, first_edit)
        else {
            let limit = self.limits.fields;
            return Err(ParseError::Limit { what: "fields in one entry", limit, at: start });
        };
        if self.skims
            && let Some(end) = skimming.skim(&mut self.walker)
        {
            self.walker.leap(end);
            return self.entry_done(skimming, end);
        }
        self.builder = EntryBuilder::new(&self.walker, dialect, self.limits, first_edit);
        Ok(())
    }

    fn checked(&mut self, done: Result<(), TooMuch>, at: usize) -> Result<(), ParseError> {
        let Some(TooMuch { what, limit }) = done.err() else { return Ok(()) };
        let why = format!("an entry has more than {limit} {what}");
        match self.walker.abandon(at, why)? {
            WalkStep::Torn { at } => self.drop_entry(at),
            _ => Ok(()),
        }
    }

    /// An element of the head, or something around it.
    fn head_element(&mut self, dialect: FeedDialect) -> Result<(), ParseError> {
        let depth = self.walker.open.len();
        let head_depth = self.head_depth(dialect);
        let Some(frame) = self.walker.open.last() else { return Ok(()) };
        if depth == 2 && head_depth == Some(2) {
            self.head.channel(&self.walker.attributes);
            self.plan.context = self.inner_context();
            return Ok(());
        }
        let own = dialect.owns(frame.ns);
        let attributes = &self.walker.attributes;
        let take_out = match (frame.ns, frame.local) {
            (Ns::History, local) => {
                let is_in_head = head_depth == Some(depth - 1);
                self.head.head.complete |= is_in_head && local == "complete";
                true
            }
            (Ns::Tombstones, "deleted-entry") => {
                if self.tombstones.len() >= self.limits.head_values {
                    let limit = self.limits.head_values;
                    let at = frame.start;
                    return Err(ParseError::Limit { what: "tombstones", limit, at });
                }
                let when = plain(attributes, "when").and_then(tidegate_core::xml::date);
                let native_id = plain(attributes, "ref").map(xml::trim).unwrap_or_default();
                if !native_id.is_empty() {
                    self.tombstones.push(EntryTombstone { native_id: native_id.to_owned(), when });
                }
                true
            }
            (_, "cloud") => own && !dialect.is_atom(),
            (_, "items") => own && dialect.is_rdf(),
            (_, "link")
                if head_depth == Some(depth - 1)
                    && dialect.is_atom_link(frame.ns, frame.local, attributes) =>
            {
                let lang = self.plan.context.lang.as_deref();
                self.head.link(attributes, self.walker.base(), lang, self.limits);
                is_of_the_document(relation(attributes))
            }
            _ => false,
        };
        if take_out {
            self.skipping = Some((depth, self.walker.edits.len()));
        } else if head_depth.is_some_and(|head_depth| depth > head_depth) {
            self.head.open(dialect, frame, attributes, depth - head_depth.unwrap_or(depth));
        }
        Ok(())
    }

    fn close(
        &mut self,
        frame: &OpenElement<'a>,
        content_end: usize,
        end: usize,
    ) -> Result<(), ParseError> {
        let depth = self.walker.open.len();
        if let Some((skipped, edits)) = self.skipping {
            if depth < skipped {
                self.skipping = None;
                self.walker.edits.truncate(edits);
                self.walker.edit(frame.start..end, "")?;
            }
            return Ok(());
        }
        if let Some(mut builder) = self.builder.take() {
            let done = builder.close(&mut self.walker, frame, content_end, end);
            if depth < self.walker.fence {
                return self.entry_done(builder, end);
            }
            self.builder = Some(builder);
            return self.checked(done, frame.start);
        }
        let Some(dialect) = self.dialect else { return Ok(()) };
        if depth == 0 {
            self.plan.root_end = end;
        }
        let is_channel =
            depth == 1 && !dialect.is_atom() && dialect.owns(frame.ns) && frame.local == "channel";
        let is_root = depth == 0 && self.plan.container.is_none();
        if is_channel || is_root {
            if self.plan.container.is_none() {
                self.plan.container = Some(content_end);
                self.plan.has_channel = is_channel;
                if !frame.empty && content_end == end {
                    // A cut closes the elements around it, too.
                    let around = self.walker.open.iter().filter(|_| self.walker.is_cut);
                    let names = std::iter::once(frame.name).chain(around.map(|f| f.name));
                    self.plan.inserted = names.map(|name| name.len() + "</>".len()).sum();
                }
                if frame.empty {
                    self.walker.edit(end.saturating_sub(2)..end, ">")?;
                    self.walker.edit(end..end, format!("</{}>", frame.name))?;
                    self.plan.was_empty = true;
                }
            }
            return Ok(());
        }
        let head_depth = if dialect.is_atom() { 1 } else { 2 };
        if self.head_depth(dialect).is_some() && depth >= head_depth {
            let place = frame.content..content_end;
            let closed = !frame.empty && content_end < end;
            let level = depth + 1 - head_depth;
            if level == 1 && closed && dialect.owns(frame.ns) {
                self.plan.note(dialect, frame.local, place);
            }
            self.head.close(dialect, frame, level, self.walker.base());
        }
        Ok(())
    }

    fn entry_done(&mut self, builder: EntryBuilder<'a, '_>, end: usize) -> Result<(), ParseError> {
        let (start, first_edit) = (builder.start, builder.first_edit);
        self.cost = self.cost.saturating_add(builder.cost);
        if self.cost > self.limits.projection {
            let limit = self.limits.projection;
            return Err(ParseError::Limit { what: PROJECTIONS, limit, at: start });
        }
        match builder.finish(&mut self.walker, end, &mut self.context) {
            Ok(entry) => self.entries.push(entry),
            Err(why) => self.walker.fault(start, why),
        }
        self.walker.edits.truncate(first_edit);
        self.walker.leave_entry();
        self.take_out_entry(start..end)
    }

    fn drop_entry(&mut self, at: usize) -> Result<(), ParseError> {
        self.skipping = None;
        self.walker.leave_entry();
        let Some(builder) = self.builder.take() else { return Ok(()) };
        self.walker.edits.truncate(builder.first_edit);
        self.take_out_entry(builder.start..at)
    }

    /// An entry is no part of the skeleton, nor is the white space between two.
    fn take_out_entry(&mut self, span: Range<usize>) -> Result<(), ParseError> {
        let text = self.walker.text;
        let before = self.last_entry_end.replace(span.end);
        if let Some(last) = self.walker.edits.last_mut()
            && Some(last.range.end) == before
            && is_blank(cut(text, last.range.end..span.start))
        {
            last.range.end = span.end;
            return Ok(());
        }
        Ok(self.walker.edit(span, "")?)
    }

    fn finish(mut self) -> Result<FeedDocument<'a>, ParseError> {
        let text = self.walker.text;
        let Some(dialect) = self.dialect else {
            let what = "a text without any element".to_owned();
            return Err(ParseError::NotAFeed { what, at: 0 });
        };
        self.check_end(dialect)?;
        let (mut head, title) = self.head.finish();
        head.language = head.language.or_else(|| self.plan.context.lang.clone());
        let unlikely = dialect.root == Ns::None && dialect.is_atom() && head.title.is_none();
        let missing = !dialect.is_atom() && !self.plan.has_channel;
        if self.entries.is_empty() && (unlikely || missing) {
            if let Some((at, reason)) = self.walker.fault {
                return Err(ParseError::NothingWhole { reason, at });
            }
            let what = "an XML document with a feed's root and nothing of a feed in it".to_owned();
            return Err(ParseError::NotAFeed { what, at: self.plan.root_name_end });
        }
        let completeness = match self.walker.fault.take() {
            Some((at, reason)) if self.entries.is_empty() => {
                return Err(ParseError::NothingWhole { reason, at });
            }
            Some((at, reason)) => Completeness::Salvaged(format!("{reason} (byte {at})")),
            None => Completeness::Full,
        };
        let skeleton = self.plan.skeleton(&mut self.walker, dialect, &head, title)?;
        Ok(FeedDocument {
            sharing: None,
            format: dialect.format,
            text,
            head,
            skeleton,
            entries: self.entries,
            tombstones: self.tombstones,
            completeness,
            warnings: self.walker.warnings,
            flaws: self.walker.flaws,
            charset: None,
        })
    }

    /// What stands behind the root's end is passed over; entries there are not believed, but they
    /// show that the document is not whole.
    fn check_end(&mut self, dialect: FeedDialect) -> Result<(), ParseError> {
        let text = self.walker.text;
        let end = self.plan.root_end;
        let rest = cut(text, end..text.len());
        if end == 0 || is_blank(rest) {
            return Ok(());
        }
        self.walker.edit(end..text.len(), "")?;
        let entry = format!("<{}", dialect.entry());
        let has_entries = memchr::memmem::find_iter(rest.as_bytes(), entry.as_bytes()).any(|at| {
            matches!(
                rest.as_bytes().get(at + entry.len()),
                Some(b' ' | b'\n' | b'\r' | b'\t' | b'>')
            )
        });
        if has_entries {
            self.walker.fault(end, "entries stand behind the end of the feed");
        } else if !rest.trim_start().starts_with("<!--") {
            self.walker.flaw(Flaw::Around, end, "what stands behind the document is passed over");
        }
        Ok(())
    }
}

/// What an element's text is taken as.
pub(super) fn owned(text: Cow<'_, str>) -> Option<String> {
    (!text.is_empty()).then(|| text.into_owned())
}
