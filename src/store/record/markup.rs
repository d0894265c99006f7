//! Bytes of items and feeds, and the order of the reader view, on disk.

use super::sharing::Seconds;
use super::{Record, RecordError};
use crate::model::{Card, Context, Format, Markup, Skeleton, SkeletonSlots, Slots, SyncId};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// A [`Format`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum FormatRecord {
    Atom10,
    Atom03,
    Rss20,
    Rss09x,
    Rss10,
    Rss090,
    JsonFeed,
    Opml,
}

impl From<Format> for FormatRecord {
    fn from(format: Format) -> Self {
        match format {
            Format::Atom10 => Self::Atom10,
            Format::Atom03 => Self::Atom03,
            Format::Rss20 => Self::Rss20,
            Format::Rss09x => Self::Rss09x,
            Format::Rss10 => Self::Rss10,
            Format::Rss090 => Self::Rss090,
            Format::JsonFeed => Self::JsonFeed,
            Format::Opml => Self::Opml,
        }
    }
}

impl From<FormatRecord> for Format {
    fn from(record: FormatRecord) -> Self {
        match record {
            FormatRecord::Atom10 => Self::Atom10,
            FormatRecord::Atom03 => Self::Atom03,
            FormatRecord::Rss20 => Self::Rss20,
            FormatRecord::Rss09x => Self::Rss09x,
            FormatRecord::Rss10 => Self::Rss10,
            FormatRecord::Rss090 => Self::Rss090,
            FormatRecord::JsonFeed => Self::JsonFeed,
            FormatRecord::Opml => Self::Opml,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ContextRecord {
    namespaces: Vec<(String, String)>,
    base: Option<String>,
    lang: Option<String>,
}

impl From<&Context> for ContextRecord {
    fn from(context: &Context) -> Self {
        let Context { namespaces, base, lang } = context.clone();
        Self { namespaces, base, lang }
    }
}

impl From<ContextRecord> for Context {
    fn from(record: ContextRecord) -> Self {
        Self { namespaces: record.namespaces, base: record.base, lang: record.lang }
    }
}

/// A [`Markup`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::store) struct MarkupRecord {
    format: FormatRecord,
    xml: String,
    context: ContextRecord,
    attributes: u64,
    inner: Option<u64>,
    id: Option<(u64, u64)>,
    id_element: Option<(u64, u64)>,
    title: String,
    link: Option<String>,
    author: Option<String>,
    published: Option<Seconds>,
    updated: Option<Seconds>,
}

impl Record for MarkupRecord {}

/// Offsets never exceed 64 bits on any machine that Rust runs on.
pub(super) fn wide(offset: usize) -> u64 {
    u64::try_from(offset).unwrap_or(u64::MAX)
}

pub(super) fn wide_range(range: &Range<usize>) -> (u64, u64) {
    (wide(range.start), wide(range.end))
}

pub(super) fn range(record: Option<(u64, u64)>) -> Result<Option<Range<usize>>, RecordError> {
    let Some((start, end)) = record else { return Ok(None) };
    Ok(Some(usize::try_from(start)?..usize::try_from(end)?))
}

impl From<&Markup> for MarkupRecord {
    fn from(markup: &Markup) -> Self {
        let Card { title, link, author, published, updated } = markup.card.clone();
        Self {
            format: markup.format.into(),
            xml: markup.xml.clone(),
            context: (&markup.context).into(),
            attributes: wide(markup.slots.attributes),
            inner: markup.slots.inner.map(wide),
            id: markup.slots.id.as_ref().map(wide_range),
            id_element: markup.slots.id_element.as_ref().map(wide_range),
            title,
            link,
            author,
            published: published.map(Seconds::from),
            updated: updated.map(Seconds::from),
        }
    }
}

impl TryFrom<MarkupRecord> for Markup {
    type Error = RecordError;

    fn try_from(record: MarkupRecord) -> Result<Self, RecordError> {
        Ok(Self {
            format: record.format.into(),
            xml: record.xml,
            context: record.context.into(),
            slots: Slots {
                attributes: usize::try_from(record.attributes)?,
                inner: record.inner.map(usize::try_from).transpose()?,
                id: range(record.id)?,
                id_element: range(record.id_element)?,
            },
            card: Card {
                title: record.title,
                link: record.link,
                author: record.author,
                published: record.published.map(Into::into),
                updated: record.updated.map(Into::into),
            },
        })
    }
}

/// A [`Skeleton`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::store) struct SkeletonRecord {
    format: FormatRecord,
    text: String,
    root_attributes: u64,
    version: Option<(u64, u64)>,
    entries: u64,
    updated: Option<(u64, u64)>,
    id: Option<(u64, u64)>,
    context: ContextRecord,
    title: String,
    link: Option<String>,
}

impl Record for SkeletonRecord {}

impl From<&Skeleton> for SkeletonRecord {
    fn from(skeleton: &Skeleton) -> Self {
        Self {
            format: skeleton.format.into(),
            text: skeleton.text.clone(),
            root_attributes: wide(skeleton.slots.root_attributes),
            version: skeleton.slots.version.as_ref().map(wide_range),
            entries: wide(skeleton.slots.entries),
            updated: skeleton.slots.updated.as_ref().map(wide_range),
            id: skeleton.slots.id.as_ref().map(wide_range),
            context: (&skeleton.context).into(),
            title: skeleton.title.clone(),
            link: skeleton.link.clone(),
        }
    }
}

impl TryFrom<SkeletonRecord> for Skeleton {
    type Error = RecordError;

    fn try_from(record: SkeletonRecord) -> Result<Self, RecordError> {
        Ok(Self {
            format: record.format.into(),
            text: record.text,
            slots: SkeletonSlots {
                root_attributes: usize::try_from(record.root_attributes)?,
                version: range(record.version)?,
                entries: usize::try_from(record.entries)?,
                updated: range(record.updated)?,
                id: range(record.id)?,
            },
            context: record.context.into(),
            title: record.title,
            link: record.link,
        })
    }
}

/// The order of the reader view.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::store) struct OrderRecord(Vec<String>);

impl Record for OrderRecord {}

impl OrderRecord {
    /// The order as it is written.
    pub(in crate::store) fn new(order: &[SyncId]) -> Self {
        Self(order.iter().map(|id| id.as_str().to_owned()).collect())
    }

    /// The order.
    pub(in crate::store) fn read(self) -> Result<Vec<SyncId>, RecordError> {
        Ok(self.0.iter().map(|id| SyncId::new(id)).collect::<Result<_, _>>()?)
    }
}
