//! Entries of held documents on disk.

use super::markup::{ContextRecord, FormatRecord, range, wide, wide_range};
use super::sharing::Seconds;
use super::{Record, RecordError};
use crate::model::{Context, Entry, Field, Kept, Slots};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::sync::Arc;

/// What is kept of a feed's held documents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::store) struct KeptRecord(Vec<EntryRecord>);

impl Record for KeptRecord {}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct EntryRecord {
    since: Seconds,
    foreign: bool,
    format: FormatRecord,
    markup: String,
    context: ContextRecord,
    attributes: u64,
    inner: Option<u64>,
    id: Option<(u64, u64)>,
    id_element: Option<(u64, u64)>,
    native_id: Option<String>,
    id_is_permalink: bool,
    link: Option<String>,
    title: Option<String>,
    author: Option<String>,
    published: Option<Seconds>,
    updated: Option<Seconds>,
    enclosures: Vec<String>,
    fields: Vec<(String, String)>,
}

fn text(text: Option<&Cow<'_, str>>) -> Option<String> {
    text.map(|text| text.as_ref().to_owned())
}

impl From<&Kept> for EntryRecord {
    fn from(kept: &Kept) -> Self {
        let entry = &kept.entry;
        let field = |f: &Field<'_>| (f.path.as_ref().to_owned(), f.value.as_ref().to_owned());
        Self {
            since: kept.since.into(),
            foreign: kept.foreign,
            format: kept.format.into(),
            markup: entry.markup.as_ref().to_owned(),
            context: entry.context.as_ref().into(),
            attributes: wide(entry.slots.attributes),
            inner: entry.slots.inner.map(wide),
            id: entry.slots.id.as_ref().map(wide_range),
            id_element: entry.slots.id_element.as_ref().map(wide_range),
            native_id: text(entry.native_id.as_ref()),
            id_is_permalink: entry.id_is_permalink,
            link: text(entry.link.as_ref()),
            title: text(entry.title.as_ref()),
            author: text(entry.author.as_ref()),
            published: entry.published.map(Seconds::from),
            updated: entry.updated.map(Seconds::from),
            enclosures: entry.enclosures.iter().map(|e| e.as_ref().to_owned()).collect(),
            fields: entry.fields.iter().map(field).collect(),
        }
    }
}

impl TryFrom<EntryRecord> for Kept {
    type Error = RecordError;

    fn try_from(record: EntryRecord) -> Result<Self, RecordError> {
        let field =
            |(path, value): (String, String)| Field { path: path.into(), value: value.into() };
        let entry = Entry {
            span: 0..0,
            markup: record.markup.into(),
            slots: Slots {
                attributes: usize::try_from(record.attributes)?,
                inner: record.inner.map(usize::try_from).transpose()?,
                id: range(record.id)?,
                id_element: range(record.id_element)?,
            },
            context: Arc::new(Context::from(record.context)),
            native_id: record.native_id.map(Cow::Owned),
            id_is_permalink: record.id_is_permalink,
            link: record.link.map(Cow::Owned),
            title: record.title.map(Cow::Owned),
            author: record.author.map(Cow::Owned),
            published: record.published.map(Into::into),
            updated: record.updated.map(Into::into),
            enclosures: record.enclosures.into_iter().map(Cow::Owned).collect(),
            fields: record.fields.into_iter().map(field).collect(),
            sync: None,
        };
        let (format, since) = (record.format.into(), record.since.into());
        Ok(Self { entry, format, since, foreign: record.foreign })
    }
}

impl KeptRecord {
    /// The entries as they are written.
    pub(in crate::store) fn new(kept: &[Kept]) -> Self {
        Self(kept.iter().map(EntryRecord::from).collect())
    }

    /// The entries.
    pub(in crate::store) fn read(self) -> Result<Vec<Kept>, RecordError> {
        self.0.into_iter().map(Kept::try_from).collect()
    }
}
