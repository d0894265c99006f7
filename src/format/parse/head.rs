//! The feed-level values.

use super::Limits;
use super::dialect::{FeedDialect, page_rank, relation, take_better};
use super::entry::plain_title;
use super::feed::owned;
use std::borrow::Cow;
use std::time::Duration;
use tidegate_core::model::{Head, Time};
use tidegate_core::sup;
use tidegate_core::xml::address::resolve;
use tidegate_core::xml::date;
use tidegate_core::xml::doc::DocElement;
use tidegate_core::xml::ns::Ns;
use tidegate_core::xml::{collapsed, shortened, trim, trimmed};

/// The longest text of a feed-level element that is looked at, in bytes.
const TEXT_LIMIT: usize = 64 << 10;
/// The longest interval that a hint may ask for: a year.
const INTERVAL_LIMIT: Duration = Duration::from_secs(366 * 86_400);

/// The head of a document that is being read.
#[derive(Debug, Default)]
pub(super) struct HeadBuilder {
    /// What is known so far.
    pub head: Head,
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

    /// Reads a child of the feed element.
    pub fn child(&mut self, dialect: FeedDialect, child: DocElement<'_, '_>) {
        let (own, is_atom) = (dialect.owns(child.ns()), dialect.is_atom());
        let text = || text_of(child);
        let resource = || {
            let found = child.attributes().find(|attribute| attribute.local() == "resource");
            found.map(|found| found.value().into_owned())
        };
        let within = |name: &'static str| {
            let own = child.children().filter(move |inner| dialect.owns(inner.ns()));
            own.filter(move |inner| inner.local() == name).map(text_of)
        };
        let head = &mut self.head;
        // The elements around them are spelled in more ways than one.
        let hours = within("hour").filter_map(|hour| hour.parse::<u8>().ok());
        let hours = hours.filter(|hour| *hour <= 24);
        hours.for_each(|hour| insert(&mut head.hints.skip_hours, hour % 24));
        let days = within("day").filter_map(|name| day(&name));
        days.for_each(|day| insert(&mut head.hints.skip_days, day));
        match (own, child.ns(), child.local()) {
            (true, _, "image") => {
                if dialect.is_rdf() {
                    note(&mut head.image, &resource().unwrap_or_default());
                }
                within("url").for_each(|url| note(&mut head.image, &url));
            }
            (true, _, "author" | "creator") if dialect.is_collection() && child.is_leaf() => {
                note(&mut head.author, &text());
            }
            (true, _, "author") => within("name").for_each(|name| note(&mut head.author, &name)),
            (true, _, "description") if !is_atom || dialect.is_collection() => {
                note(&mut head.subtitle, &text())
            }
            (true, _, "subtitle" | "tagline") if is_atom => note(&mut head.subtitle, &text()),
            (true, _, "language") | (_, Ns::Named("dc"), "language") => {
                note(&mut head.language, &text());
            }
            (true, _, "logo" | "icon") if is_atom => note(&mut head.image, &text()),
            (true, _, "managingEditor")
            | (_, Ns::Named("dc"), "creator")
            | (_, Ns::Named("itunes"), "author") => note(&mut head.author, &text()),
            (true, _, "title") if head.title.is_none() => {
                let kind = child.attribute("type").unwrap_or_default();
                head.title = owned(plain_title(&kind, dialect, (text().into(), false)));
            }
            (true, _, "link") if head.link.is_none() => {
                let base = child.parent().and_then(DocElement::base);
                head.link = resolve(text().into(), base.as_deref()).map(Cow::into_owned);
            }
            (true, _, "id") if is_atom && head.id.is_none() => head.id = owned(text().into()),
            (true, _, "generator") if head.generator.is_none() => {
                head.generator = owned(collapsed(text().into()));
            }
            (_, Ns::Named("admin"), "generatorAgent") if head.generator.is_none() => {
                head.generator = resource();
            }
            (true, _, "updated" | "modified" | "lastBuildDate") if self.built.is_none() => {
                self.built = date(&text());
            }
            (true, _, "pubDate") | (_, Ns::Named("dc"), "date") => {
                self.other_date = self.other_date.or_else(|| date(&text()));
            }
            (true, _, "ttl") => {
                let minutes = text().parse::<u64>().ok().filter(|minutes| *minutes > 0);
                head.hints.ttl = minutes.map(|m| seconds(m.saturating_mul(60)));
            }
            (_, Ns::Named("itunes"), "image") => {
                note(&mut head.image, &child.attribute("href").unwrap_or_default());
            }
            (_, Ns::Named("sy"), "updatePeriod") => self.period = period(&text()),
            (_, Ns::Named("sy"), "updateFrequency") => {
                self.frequency = text().parse().ok().filter(|times| *times > 0);
            }
            _ => {}
        }
    }

    pub fn finish(self) -> Head {
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
        head
    }
}

/// The text in an element, as much as is looked at.
fn text_of(element: DocElement<'_, '_>) -> String {
    trim(shortened(&element.all_text(), TEXT_LIMIT)).to_owned()
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
