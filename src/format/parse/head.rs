//! The feed-level values.

use super::Limits;
use super::dialect::{FeedDialect, page_rank, relation, take_better};
use super::feed::owned;
use std::borrow::Cow;
use std::time::Duration;
use tidegate_core::model::{Head, Time};
use tidegate_core::sup;
use tidegate_core::xml::address::resolve;
use tidegate_core::xml::date;
use tidegate_core::xml::doc::DocElement;
use tidegate_core::xml::html::{plain_text, plain_text_if_html, without_section};
use tidegate_core::xml::ns::Ns;
use tidegate_core::xml::{collapsed, trim, trimmed};

/// The longest text of a feed-level element that is looked at, in bytes.
const TEXT_LIMIT: usize = 64 << 10;
/// The longest interval that a hint may ask for: a year.
const INTERVAL_LIMIT: Duration = Duration::from_secs(366 * 86_400);

/// A child of the feed element with values in it.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Child {
    #[default]
    Other,
    Image,
    Author,
}

/// The head of a document that is being read.
#[derive(Debug, Default)]
pub(super) struct HeadBuilder {
    /// What is known so far.
    pub head: Head,
    text: String,
    title_is_html: bool,
    /// The feed's own child that is open.
    child: Child,
    alternate: Option<((bool, bool), String)>,
    built: Option<Time>,
    other_date: Option<Time>,
    period: Option<u64>,
    frequency: Option<u64>,
}

impl HeadBuilder {
    /// The channel opened.
    pub fn channel(&mut self, channel: DocElement<'_, '_>) {
        self.head.id = channel.attribute_of(Ns::Rdf, "about").map(trimmed).and_then(owned);
    }

    /// An element opened; `level` is 1 for the feed's own children.
    pub fn open(&mut self, dialect: FeedDialect, element: DocElement<'_, '_>, level: usize) {
        let (ns, local) = (element.ns(), element.local());
        // Markup inside a title is part of its text.
        if level == 1 || !self.title_is_html {
            self.text.clear();
        }
        if level == 1 {
            let kind = element.attribute("type").unwrap_or_default();
            self.title_is_html = dialect.is_atom() && kind.contains("html");
            self.child = match (dialect.owns(ns), local) {
                (true, "image") => Child::Image,
                (true, "author") => Child::Author,
                _ => Child::Other,
            };
            if ns == Ns::Named("itunes") && local == "image" {
                note(&mut self.head.image, &element.attribute("href").unwrap_or_default());
            }
            let resource = || {
                let found = element.attributes().find(|a| a.local() == "resource");
                found.map(|found| found.value())
            };
            if self.child == Child::Image && dialect.is_rdf() {
                note(&mut self.head.image, &resource().unwrap_or_default());
            }
            let is_generator = ns == Ns::Named("admin") && local == "generatorAgent";
            if is_generator && self.head.generator.is_none() {
                self.head.generator = resource().map(Cow::into_owned);
            }
        }
    }

    /// A link in Atom's manner.
    pub fn link(&mut self, link: DocElement<'_, '_>, lang: Option<&str>, limits: &Limits) {
        let Some(href) = link.attribute("href") else { return };
        let Some(address) = resolve(href, link.base().as_deref()) else { return };
        let address = address.into_owned();
        let links = &mut self.head.links;
        let slot = match &*relation(link) {
            "alternate" => {
                let rank = page_rank(link, || lang.map(str::to_owned));
                return take_better(&mut self.alternate, rank, || Some(address));
            }
            "self" => &mut links.own,
            "current" => &mut links.current,
            "prev-archive" => &mut links.prev_archive,
            "previous" => &mut links.previous,
            "next" => &mut links.next,
            sup::RELATION => &mut links.sup,
            "hub" => {
                if links.hubs.len() < limits.head_values && !links.hubs.contains(&address) {
                    links.hubs.push(address);
                }
                return;
            }
            _ => return,
        };
        slot.get_or_insert(address);
    }

    /// Character data of the head.
    pub fn text(&mut self, text: &str) {
        if self.text.len() + text.len() <= TEXT_LIMIT {
            self.text.push_str(text);
        }
    }

    /// An element closed; `level` is 1 for the feed's own children.
    pub fn close(&mut self, dialect: FeedDialect, element: DocElement<'_, '_>, level: usize) {
        let (ns, local) = (element.ns(), element.local());
        let own = dialect.owns(ns);
        let text = trim(&self.text);
        let head = &mut self.head;
        match (level, own, local) {
            (2, true, "hour") => {
                if let Some(hour) = text.parse::<u8>().ok().filter(|hour| *hour <= 24) {
                    insert(&mut head.hints.skip_hours, hour % 24);
                }
                return;
            }
            (2, true, "day") => {
                if let Some(day) = day(text) {
                    insert(&mut head.hints.skip_days, day);
                }
                return;
            }
            (2, true, "url") if self.child == Child::Image => {
                note(&mut head.image, text);
                return;
            }
            (2, true, "name") if self.child == Child::Author => {
                note(&mut head.author, text);
                return;
            }
            (1, true, "description") if !dialect.is_atom() => note(&mut head.subtitle, text),
            (1, true, "subtitle" | "tagline") if dialect.is_atom() => {
                note(&mut head.subtitle, text);
            }
            (1, true, "language") => note(&mut head.language, text),
            (1, true, "logo" | "icon") if dialect.is_atom() => note(&mut head.image, text),
            (1, true, "managingEditor") => note(&mut head.author, text),
            (1, true, "title") if head.title.is_none() => {
                let plain = match self.title_is_html {
                    true => plain_text(text),
                    false if dialect.is_atom() => {
                        collapsed(Cow::Borrowed(without_section(text))).into_owned()
                    }
                    false => plain_text_if_html(text),
                };
                head.title = owned(Cow::Owned(plain));
            }
            (1, true, "link") if head.link.is_none() => {
                let base = element.parent().and_then(DocElement::base);
                head.link = resolve(Cow::Borrowed(text), base.as_deref()).map(Cow::into_owned);
            }
            (1, true, "id") if dialect.is_atom() && head.id.is_none() => {
                head.id = owned(Cow::Borrowed(text));
            }
            (1, true, "generator") if head.generator.is_none() => {
                head.generator = owned(collapsed(Cow::Borrowed(text)));
            }
            (1, true, "updated" | "modified" | "lastBuildDate") if self.built.is_none() => {
                self.built = date(text);
            }
            (1, true, "pubDate") => self.other_date = self.other_date.or_else(|| date(text)),
            (1, true, "ttl") => {
                let minutes = text.parse::<u64>().ok().filter(|minutes| *minutes > 0);
                head.hints.ttl = minutes.map(|m| seconds(m.saturating_mul(60)));
            }
            (1, false, local) => match (ns, local) {
                (Ns::Named("dc"), "date") => {
                    self.other_date = self.other_date.or_else(|| date(text));
                }
                (Ns::Named("dc"), "language") => note(&mut head.language, text),
                (Ns::Named("dc"), "creator") | (Ns::Named("itunes"), "author") => {
                    note(&mut head.author, text);
                }
                (Ns::Named("sy"), "updatePeriod") => self.period = period(text),
                (Ns::Named("sy"), "updateFrequency") => {
                    self.frequency = text.parse().ok().filter(|times| *times > 0);
                }
                _ => {}
            },
            _ => {}
        }
        if level == 1 {
            self.text.clear();
            self.title_is_html = false;
        }
    }

    /// The head, and the title to show.
    pub fn finish(self) -> (Head, String) {
        let mut head = self.head;
        head.link = head.link.or(self.alternate.map(|(_, link)| link));
        head.updated = self.built.or(self.other_date);
        // The frequency says how often in a period; without a period it is a day's (RSS 1.0
        // syndication module).
        head.hints.period = match (self.period, self.frequency) {
            (None, None) => None,
            (period, times) => Some(seconds(period.unwrap_or(86_400) / times.unwrap_or(1))),
        }
        .filter(|period| !period.is_zero());
        head.hints.skip_hours.sort_unstable();
        head.hints.skip_days.sort_unstable();
        let title = head.title.clone().unwrap_or_default();
        (head, title)
    }
}

/// Takes a value where there is none yet.
fn note(slot: &mut Option<String>, value: &str) {
    let value = trim(value);
    if slot.is_none() && !value.is_empty() {
        *slot = Some(value.to_owned());
    }
}

fn insert(list: &mut Vec<u8>, value: u8) {
    if !list.contains(&value) {
        list.push(value);
    }
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds).min(INTERVAL_LIMIT)
}

fn period(text: &str) -> Option<u64> {
    Some(match text.to_ascii_lowercase().as_str() {
        "hourly" => 3600,
        "daily" => 86_400,
        "weekly" => 7 * 86_400,
        "monthly" => 30 * 86_400,
        "yearly" => 365 * 86_400,
        _ => return None,
    })
}

fn day(text: &str) -> Option<u8> {
    const DAYS: [&str; 7] =
        ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
    let text = text.to_ascii_lowercase();
    let found = DAYS.iter().zip(0u8..).find(|(name, _)| **name == text);
    found.map(|(_, number)| number)
}
