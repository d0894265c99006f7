//! JSON Feed 1.0 and 1.1.

use super::entry::{FIELD_COST, too_much};
use super::feed::owned;
use super::{Limits, ParseError, completeness};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::ops::Range;
use tidegate_core::model::{
    Completeness, Context, Entry, FeedDocument, Field, Flaw, Flaws, Format, Head, Skeleton,
    SkeletonSlots, Warning,
};
use tidegate_core::xml::address::{has_scheme, resolve};
use tidegate_core::xml::{collapsed, cut, date, trimmed};
use url::Url;

/// How deep members of an item are looked into.
const DEPTH_LIMIT: usize = 32;
/// What another endpoint says of its versions. It is taken out, as `sx:*` is: were it a word of the
/// item, two gateways that read each other would never come to rest.
const SHARING: &str = "_sharing";
/// The member with the items of a feed, or of a collection.
pub(super) const ITEMS: &str = "items";

/// A place in the text, read member by member, so that a cut document still gives what is whole.
pub(super) struct JsonReader<'a> {
    pub text: &'a str,
    pub at: usize,
}

impl<'a> JsonReader<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn skip_space(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start_matches([' ', '\t', '\n', '\r']).len();
    }

    /// Takes a mark where it is the next thing.
    fn take(&mut self, mark: char) -> bool {
        self.skip_space();
        let found = self.rest().starts_with(mark);
        self.at += if found { mark.len_utf8() } else { 0 };
        found
    }

    /// The next value as it is written.
    fn value(&mut self) -> Result<(&'a RawValue, Range<usize>), String> {
        self.skip_space();
        let mut values = serde_json::Deserializer::from_str(self.rest()).into_iter::<&RawValue>();
        match values.next() {
            Some(Ok(value)) => {
                let start = self.at;
                self.at += values.byte_offset();
                Ok((value, start..start + value.get().len()))
            }
            Some(Err(error)) => Err(plain_words(&error)),
            None => Err("the document is cut".to_owned()),
        }
    }

    /// The name of a member, with its colon.
    fn name(&mut self) -> Result<Cow<'a, str>, String> {
        let (name, _) = self.value()?;
        let name = text(name).ok_or("the name of a member is no text")?;
        if self.take(':') { Ok(name) } else { Err("a member has no ':'".to_owned()) }
    }

    /// Hands over what stands in the object that has begun here, up to its end, to where it is
    /// broken, or to what is not taken. `list`: the member whose items are handed over each by
    /// itself.
    pub fn object<E: From<String>>(
        &mut self,
        list: &str,
        mut take: impl FnMut(ObjectPart<'a>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut has_items = false;
        if self.take('}') {
            return Ok(());
        }
        // Ends with the text: each turn reads one member.
        loop {
            let name = self.name()?;
            self.skip_space();
            if !list.is_empty() && name == list && !has_items && self.rest().starts_with('[') {
                has_items = true;
                self.take('[');
                take(ObjectPart::Items(self.at))?;
                let mut is_over = self.take(']');
                while !is_over {
                    let (value, span) = self.value()?;
                    take(ObjectPart::Item(value, span))?;
                    is_over = self.take(']');
                    if !is_over && !self.take(',') {
                        let reason = "the list of items has no ',' between its items";
                        return Err(reason.to_owned().into());
                    }
                }
            } else {
                take(ObjectPart::Member(name, self.value()?.0))?;
            }
            if self.take('}') {
                return Ok(());
            }
            if !self.take(',') {
                return Err("the feed object has no ',' between its members".to_owned().into());
            }
        }
    }
}

/// What stands in an object that has a list of items.
pub(super) enum ObjectPart<'a> {
    /// A member that is not that list.
    Member(Cow<'a, str>, &'a RawValue),
    /// The first list of items, with where it begins.
    Items(usize),
    /// One of its items, and its place.
    Item(&'a RawValue, Range<usize>),
}

/// What serde_json says, without its own places, which count from where reading was taken up.
fn plain_words(error: &serde_json::Error) -> String {
    if error.is_eof() {
        return "the document is cut".to_owned();
    }
    let said = error.to_string();
    said.split_once(" at line ").map_or(said.clone(), |(what, _)| what.to_owned())
}

/// What was read of the feed object.
#[derive(Default)]
struct Feed<'a> {
    head: Head,
    version: Option<String>,
    /// Where its items stand.
    items: Option<Range<usize>>,
    entries: Vec<Entry<'a>>,
    warnings: Vec<Warning>,
    fault: Option<(usize, String)>,
    cost: usize,
}

/// Reads the object that begins at the byte `start`.
pub(super) fn read<'a>(
    text: &'a str,
    start: usize,
    url: Option<&Url>,
    limits: &Limits,
) -> Result<FeedDocument<'a>, ParseError> {
    let mut reader = JsonReader { text, at: start + 1 };
    let mut feed = Feed::default();
    match reader.object(ITEMS, |part| feed.take(part, url, limits)) {
        Ok(()) => {}
        Err(Stop::Refuse(error)) => return Err(error),
        Err(Stop::Fault(reason)) => {
            feed.fault.get_or_insert((reader.at, reason));
        }
    }
    let rest = reader.rest().trim();
    if feed.fault.is_none() && !rest.is_empty() {
        let message = "what stands behind the document is passed over".to_owned();
        feed.warnings.push(Warning { offset: reader.at, message });
    }
    finish(text, start, feed)
}

/// Why reading ends early.
pub(super) enum Stop {
    /// The document is broken here.
    Fault(String),
    /// The document is refused.
    Refuse(ParseError),
}

impl From<String> for Stop {
    fn from(reason: String) -> Self {
        Self::Fault(reason)
    }
}

impl<'a> Feed<'a> {
    fn take(
        &mut self,
        part: ObjectPart<'a>,
        url: Option<&Url>,
        limits: &Limits,
    ) -> Result<(), Stop> {
        let (value, span) = match part {
            ObjectPart::Member(name, value) => {
                head_member(self, &name, value, url, limits);
                return Ok(());
            }
            ObjectPart::Items(start) => {
                self.items = Some(start..start);
                return Ok(());
            }
            ObjectPart::Item(value, span) => (value, span),
        };
        let at = span.start;
        self.items = self.items.take().map(|items| items.start..span.end);
        let refuse = |what, limit| Err(Stop::Refuse(ParseError::Limit { what, limit, at }));
        if self.entries.len() >= limits.entries {
            return refuse("entries", limits.entries);
        }
        match read_item(value, span, url, limits) {
            Ok((entry, cost)) => {
                self.cost = self.cost.saturating_add(cost);
                self.entries.push(entry);
            }
            Err(reason) => {
                self.fault.get_or_insert((at, reason));
            }
        }
        if self.cost > limits.projection {
            return refuse("bytes in all fields", limits.projection);
        }
        Ok(())
    }
}

/// A member of the feed object other than its items.
fn head_member(
    feed: &mut Feed<'_>,
    name: &str,
    value: &RawValue,
    url: Option<&Url>,
    limits: &Limits,
) {
    let text = text(value);
    let head = &mut feed.head;
    let address =
        |text: Option<Cow<'_, str>>| text.and_then(|text| resolve(text, url).map(Cow::into_owned));
    match name {
        "version" => feed.version = text.map(Cow::into_owned),
        "title" => head.title = text.and_then(|text| owned(collapsed(text))),
        "home_page_url" => head.link = address(text),
        "feed_url" => {
            head.id = text.clone().and_then(owned);
            head.links.own = address(text);
        }
        "description" => head.subtitle = text.and_then(|text| owned(collapsed(text))),
        "language" => head.language = text.and_then(owned),
        "icon" => head.image = address(text),
        "author" if head.author.is_none() => head.author = name_of(value).map(Cow::into_owned),
        "authors" => {
            let first = list(value).into_iter().next().and_then(name_of);
            head.author = first.map(Cow::into_owned).or(head.author.take());
        }
        "next_url" => head.links.next = address(text),
        "hubs" => {
            let hubs = list(value).into_iter().take(limits.head_values);
            head.links.hubs.extend(hubs.filter_map(|hub| address(part(hub, "url"))));
        }
        _ => {}
    }
}

fn finish<'a>(text: &'a str, start: usize, feed: Feed<'a>) -> Result<FeedDocument<'a>, ParseError> {
    let version = feed.version.as_deref().unwrap_or_default();
    let says_so = version.contains("jsonfeed.org/version/");
    let looks_so = feed.items.is_some() && (feed.head.title.is_some() || !feed.entries.is_empty());
    let mut warnings = feed.warnings;
    if !says_so && !looks_so {
        if let Some((at, reason)) = feed.fault {
            return Err(ParseError::NothingWhole { reason, at });
        }
        let what = "JSON that is no JSON Feed".to_owned();
        return Err(ParseError::NotAFeed { what, at: start });
    }
    if !says_so {
        let message = "the document does not say which version of JSON Feed it is".to_owned();
        warnings.push(Warning { offset: start, message });
    }
    let mut flaws = Flaws::default();
    if feed.fault.is_some() {
        flaws.insert(Flaw::Tags);
    }
    let broken_at = feed.fault.as_ref().map(|(at, _)| *at);
    if let Some((at, reason)) = &feed.fault {
        warnings.push(Warning { offset: *at, message: reason.clone() });
    }
    let completeness = completeness(feed.fault, feed.entries.is_empty())?;
    if feed.items.is_none() && completeness == Completeness::Full {
        // Without the list nothing says that there are no items.
        let reason = "the feed has no list of items".to_owned();
        return Err(ParseError::NothingWhole { reason, at: start });
    }
    // An object where the document is broken.
    let items = feed.items.filter(|_| completeness == Completeness::Full);
    let around = items.map(|items| {
        let behind = cut(text, items.end..text.len()).trim();
        format!("{}{behind}", cut(text, start..items.start))
    });
    let skeleton = Skeleton {
        format: Format::JsonFeed,
        text: around.unwrap_or_else(|| "{}".to_owned()),
        slots: SkeletonSlots::default(),
        context: Context::default(),
        title: feed.head.title.clone().unwrap_or_default(),
        link: feed.head.link.clone().filter(|link| has_scheme(link)),
    };
    Ok(FeedDocument {
        sharing: None,
        format: Format::JsonFeed,
        text,
        head: feed.head,
        skeleton,
        entries: feed.entries,
        tombstones: Vec::new(),
        flaws,
        charset: None,
        completeness,
        broken_at,
        warnings,
    })
}

/// A text value, or a number as it is written (ids are numbers now and then).
fn text(value: &RawValue) -> Option<Cow<'_, str>> {
    let written = value.get();
    match written.bytes().next()? {
        b'"' => {
            let plain = serde_json::from_str(written).map(Cow::Borrowed);
            plain.or_else(|_| serde_json::from_str(written).map(Cow::Owned)).ok()
        }
        b'-' | b'0'..=b'9' => Some(Cow::Borrowed(written)),
        _ => None,
    }
}

/// The values of a list; none where it is no list.
fn list(value: &RawValue) -> Vec<&RawValue> {
    serde_json::from_str(value.get()).unwrap_or_default()
}

/// The members of an object in their order; none where it is no object.
fn members(value: &RawValue) -> Vec<(String, &RawValue)> {
    let mut found = Vec::new();
    if value.get().starts_with('{') {
        let mut reader = JsonReader { text: value.get(), at: 1 };
        // A value that was read is whole.
        let _ = reader.object("", |part| {
            if let ObjectPart::Member(name, value) = part {
                found.push((name.into_owned(), value));
            }
            Ok::<_, String>(())
        });
    }
    found
}

/// An item that stands alone; `None` where it cannot be read.
pub(super) fn alone(text: &str, context: &Context, limits: &Limits) -> Option<Entry<'static>> {
    let url = context.base.as_deref().and_then(|base| Url::parse(base).ok());
    let value: &RawValue = serde_json::from_str(text).ok()?;
    let (entry, _) = read_item(value, 0..text.len(), url.as_ref(), limits).ok()?;
    Some(entry.detached())
}

/// An item, and what its projection costs.
fn read_item<'a>(
    value: &'a RawValue,
    span: Range<usize>,
    url: Option<&Url>,
    limits: &Limits,
) -> Result<(Entry<'a>, usize), String> {
    if span.len() > limits.entry {
        return Err(too_much("bytes", limits.entry));
    }
    // Renderers read the whole item: one with a number or a depth beyond what they read is broken.
    serde_json::from_str::<Map<String, Value>>(value.get())
        .map_err(|error| format!("an item cannot be read: {}", plain_words(&error)))?;
    let mut entry = Entry { span, markup: Cow::Borrowed(value.get()), ..Entry::default() };
    let mut external = None;
    let mut fields = Vec::new();
    let mut members = members(value);
    if members.iter().any(|(name, _)| name == SHARING) {
        members.retain(|(name, _)| name != SHARING);
        entry.markup = Cow::Owned(written(&members));
    }
    for (name, value) in members {
        member(&mut entry, &mut external, &name, value, url);
        let mut path = name;
        project(value, &mut path, 0, limits, &mut fields)?;
    }
    entry.link = entry.link.or(external);
    let cost = fields.iter().map(|field| FIELD_COST + field.path.len()).sum();
    entry.projection = fields.into();
    Ok((entry, cost))
}

/// An object of these members.
fn written(members: &[(String, &RawValue)]) -> String {
    let members = members.iter().map(|(name, value)| {
        let name = serde_json::Value::from(name.as_str());
        format!("{name}:{}", value.get())
    });
    format!("{{{}}}", members.collect::<Vec<_>>().join(","))
}

fn member<'a>(
    entry: &mut Entry<'a>,
    external: &mut Option<Cow<'a, str>>,
    name: &str,
    value: &'a RawValue,
    url: Option<&Url>,
) {
    let address = |text: Option<Cow<'a, str>>| text.and_then(|text| resolve(text, url));
    match name {
        "id" => entry.native_id = text(value).map(trimmed).filter(|id| !id.is_empty()),
        "url" => entry.link = address(text(value)),
        "external_url" => *external = address(text(value)),
        "title" => entry.title = text(value).map(collapsed).filter(|title| !title.is_empty()),
        "date_published" => entry.published = text(value).as_deref().and_then(date),
        "date_modified" => entry.updated = text(value).as_deref().and_then(date),
        // Version 1.1 has a list, version 1.0 one author.
        "authors" => {
            let first = list(value).into_iter().find_map(name_of);
            entry.author = first.or(entry.author.take());
        }
        "author" if entry.author.is_none() => entry.author = name_of(value),
        _ => {}
    }
}

/// The text of a member of an object.
fn part<'a>(value: &'a RawValue, name: &str) -> Option<Cow<'a, str>> {
    let found = members(value).into_iter().find(|(known, _)| known == name);
    found.and_then(|(_, value)| text(value))
}

fn name_of(value: &RawValue) -> Option<Cow<'_, str>> {
    part(value, "name").map(collapsed).filter(|name| !name.is_empty())
}

/// Writes a value and all in it as fields.
fn project<'a>(
    value: &'a RawValue,
    path: &mut String,
    depth: usize,
    limits: &Limits,
    out: &mut Vec<Field<'a>>,
) -> Result<(), String> {
    if path.len() > limits.path {
        return Err(too_much("bytes in a path", limits.path));
    }
    if out.len() >= limits.fields {
        return Err(too_much("fields", limits.fields));
    }
    let written = value.get();
    match written.bytes().next() {
        Some(b'{') if depth < DEPTH_LIMIT => {
            for (name, value) in members(value) {
                let length = path.len();
                path.push('/');
                path.push_str(&name);
                project(value, path, depth + 1, limits, out)?;
                path.truncate(length);
            }
        }
        Some(b'[') if depth < DEPTH_LIMIT => {
            for value in list(value) {
                project(value, path, depth + 1, limits, out)?;
            }
        }
        // No value says no more than no member.
        Some(b'n') | None => {}
        Some(_) => {
            let value = collapsed(text(value).unwrap_or(Cow::Borrowed(written)));
            out.push(Field { path: Cow::Owned(path.clone()), value });
        }
    }
    Ok(())
}
