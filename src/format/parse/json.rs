//! JSON Feed 1.0 and 1.1.

mod item;

use super::feed::owned;
use super::{Limits, ParseError, completeness};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::ops::Range;
use tidegate_core::model::{
    Completeness, Context, Entry, FeedDocument, Flaw, Flaws, Format, Head, Skeleton, SkeletonSlots,
    Warning,
};
use tidegate_core::xml::address::{has_scheme, resolve};
use tidegate_core::xml::{collapsed, cut};
use url::Url;

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
        let name = item::text(name).ok_or("the name of a member is no text")?;
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
                member(self, &name, value, url, limits);
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
        match item::entry(value, span, url, limits) {
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
fn member(feed: &mut Feed<'_>, name: &str, value: &RawValue, url: Option<&Url>, limits: &Limits) {
    let text = item::text(value);
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
        "author" if head.author.is_none() => {
            head.author = item::name_of(value).map(Cow::into_owned)
        }
        "authors" => {
            let first = item::list(value).into_iter().next();
            head.author = first.and_then(item::name_of).map(Cow::into_owned).or(head.author.take());
        }
        "next_url" => head.links.next = address(text),
        "hubs" => {
            for hub in item::list(value).into_iter().take(limits.head_values) {
                let hub = item::members(hub).into_iter().find(|(name, _)| name == "url");
                head.links.hubs.extend(address(hub.and_then(|(_, url)| item::text(url))));
            }
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
