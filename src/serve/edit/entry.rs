//! The entry in a body: Atom, or a few fields as JSON.

use super::{kinds, unwritten};
use crate::extract::JsonFields;
use crate::problem::Problem;
use crate::put;
use http::{HeaderMap, StatusCode, header};
use serde_json::Value;
use tidegate_core::model::Markup;
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
                let (fields, noconflicts) = fields(JsonFields(put::object(body)?))?;
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
            let (fields, noconflicts) = fields(JsonFields(object.clone()))?;
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

fn fields(mut object: JsonFields) -> Result<(EntryFields, Option<bool>), Problem> {
    let missing = || Problem::parameter("title", "title, what the item is called, is missing");
    let wanted = format!("a list of at most {CATEGORIES_LIMIT} texts");
    let categories = object.take("categories", &wanted, |value| {
        let list: Vec<String> = serde_json::from_value(value).ok()?;
        Some(list).filter(|list| list.len() <= CATEGORIES_LIMIT)
    })?;
    let noconflicts = object.flag("noconflicts")?;
    let fields = EntryFields {
        title: object.text("title")?.ok_or_else(missing)?,
        content: object.text("content")?,
        content_html: object.text("content_html")?,
        summary: object.text("summary")?,
        link: object.text("link")?,
        author: object.text("author")?,
        id: object.text("id")?,
        published: object.time("published")?,
        updated: object.time("updated")?,
        categories: categories.unwrap_or_default(),
    };
    object.finish()?;
    Ok((fields, noconflicts))
}

fn bad(said: &str) -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, said)
}
