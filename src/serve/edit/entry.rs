//! The entry in a body: Atom, or a few fields as JSON.

use super::{kinds, unwritten};
use crate::problem::Problem;
use crate::put;
use http::{HeaderMap, StatusCode, header};
use serde_json::{Map, Value};
use tidegate_core::model::{Markup, Time};
use tidegate_format::parse::{self, Amendment, Limits};
use tidegate_judge::record::local::{CheckedEntry, EntryFields};

/// The most categories of an entry.
const CATEGORIES_LIMIT: usize = 100;

/// How an entry is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EntryFormat {
    /// As an Atom entry document (RFC 4287 section 2).
    Atom,
    /// As an object with a few fields.
    Json,
}

/// What was sent.
pub(super) struct Posted {
    pub(super) entry: CheckedEntry,
    /// What is said of conflicts, which only JSON can.
    pub(super) noconflicts: Option<bool>,
}

impl Posted {
    /// Reads a body by its media type.
    /// `outline`: what the item says where it is an outline of a list.
    pub(super) fn read(
        headers: &HeaderMap,
        body: &[u8],
        outline: Option<&Markup>,
    ) -> Result<Self, Problem> {
        let declared = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let essence = declared.and_then(|value| value.split(';').next()).unwrap_or_default();
        let essence = essence.trim().to_ascii_lowercase();
        let kind = kinds().iter().find(|(name, _)| *name == essence).map(|(_, kind)| *kind);
        match kind {
            Some(EntryFormat::Atom) => {
                let decoded = parse::decode(body, declared, &Limits::default());
                let decoded = decoded.map_err(|error| bad(&error.to_string()))?;
                let entry = CheckedEntry::atom(&decoded.text).map_err(|error| unwritten(&error))?;
                Ok(Self { entry, noconflicts: None })
            }
            Some(EntryFormat::Json) => {
                let (fields, noconflicts) = fields(put::object(body)?)?;
                Ok(Self { entry: written(&fields, outline)?, noconflicts })
            }
            None => {
                let said = "an item is sent as application/atom+xml, one Atom entry, or as \
                            application/json";
                Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, said))
            }
        }
    }
}

/// An entry within JSON: Atom as a text, or an object with its fields.
pub(super) fn in_json(value: &Value, outline: Option<&Markup>) -> Result<CheckedEntry, Problem> {
    match value {
        Value::String(text) => CheckedEntry::atom(text).map_err(|error| unwritten(&error)),
        Value::Object(object) => {
            let (fields, noconflicts) = fields(object.clone())?;
            if noconflicts.is_some() {
                let said = "noconflicts is said when an item is made, and never again";
                return Err(Problem::parameter("noconflicts", said));
            }
            written(&fields, outline)
        }
        _ => {
            let said = "item is an Atom entry as a text, or an object with its fields";
            Err(Problem::parameter("item", said))
        }
    }
}

/// An entry of fields; an outline stays one, with what the fields say.
fn written(fields: &EntryFields, outline: Option<&Markup>) -> Result<CheckedEntry, Problem> {
    let Some(before) = outline else {
        return CheckedEntry::fields(fields).map_err(|error| unwritten(&error));
    };
    let EntryFields { title, link, summary, .. } = fields.clone();
    let said = EntryFields { title, link, summary, ..EntryFields::default() };
    if *fields != said {
        let said = "the item is an outline of a list, which says a title, a link and a summary and \
                    nothing else that JSON has words for; send a whole Atom entry to make it one";
        return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, said));
    }
    let EntryFields { title, link, summary, .. } = said;
    let amendment = Amendment { title: Some(title), link, summary, ..Amendment::default() };
    CheckedEntry::amended(before, amendment).map_err(|error| unwritten(&error))
}

fn fields(object: Map<String, Value>) -> Result<(EntryFields, Option<bool>), Problem> {
    let mut fields = EntryFields::default();
    let mut noconflicts = None;
    let mut has_title = false;
    for (key, value) in object {
        if value.is_null() {
            continue;
        }
        match key.as_str() {
            "title" => {
                has_title = true;
                fields.title = text("title", value)?;
            }
            "content" => fields.content = Some(text("content", value)?),
            "content_html" => fields.content_html = Some(text("content_html", value)?),
            "summary" => fields.summary = Some(text("summary", value)?),
            "link" => fields.link = Some(text("link", value)?),
            "author" => fields.author = Some(text("author", value)?),
            "id" => fields.id = Some(text("id", value)?),
            "published" => fields.published = Some(time("published", &value)?),
            "updated" => fields.updated = Some(time("updated", &value)?),
            "categories" => fields.categories = categories(value)?,
            "noconflicts" => {
                let said = || Problem::parameter("noconflicts", "noconflicts is true or false");
                noconflicts = Some(value.as_bool().ok_or_else(said)?);
            }
            _ => return Err(put::unknown_key(&key)),
        }
    }
    if !has_title {
        return Err(Problem::parameter("title", "title, what the item is called, is missing"));
    }
    Ok((fields, noconflicts))
}

fn text(key: &str, value: Value) -> Result<String, Problem> {
    match value {
        Value::String(text) => Ok(text),
        _ => Err(Problem::parameter(key, format!("{key} is a text"))),
    }
}

fn time(key: &str, value: &Value) -> Result<Time, Problem> {
    let read = value.as_str().and_then(|text| Time::parse_rfc3339(text).ok());
    let said = || Problem::parameter(key, format!("{key} is a time such as 2026-11-20T16:20:05Z"));
    read.ok_or_else(said)
}

fn categories(value: Value) -> Result<Vec<String>, Problem> {
    let said = || {
        let said = format!("categories is a list of at most {CATEGORIES_LIMIT} texts");
        Problem::parameter("categories", said)
    };
    match value {
        Value::Array(list) if list.len() <= CATEGORIES_LIMIT => {
            let text = |value| match value {
                Value::String(text) => Ok(text),
                _ => Err(said()),
            };
            list.into_iter().map(text).collect()
        }
        _ => Err(said()),
    }
}

fn bad(said: &str) -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, said)
}
