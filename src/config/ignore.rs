//! `feed.ignore`: the operator's own noise.

use super::section::{Section, kind, unknown};
use crate::model::{IGNORE_LIMIT, Ignore};
use toml::de::{DeTable, DeValue};

const KEY: &str = "ignore";
const WANTED: &str = "a list of fields, each a text or { field = …, pattern = … }";
const ENTRY_KEYS: &[&str] = &["field", "pattern"];

/// Reads the list; an entry with a mistake is a fault at its own place.
pub(super) fn read(section: &mut Section<'_, '_, '_>) -> Vec<Ignore> {
    let elements = section.elements(KEY, IGNORE_LIMIT, WANTED).unwrap_or_default();
    let mut list = Vec::new();
    for element in elements {
        let span = element.span();
        match entry(element.get_ref()) {
            Ok(ignore) if !list.contains(&ignore) => list.push(ignore),
            Ok(ignore) => {
                let message = format!("{:?} stands here twice", ignore.field());
                section.fault_at(&span, KEY, message);
            }
            Err(message) => section.fault_at(&span, KEY, message),
        }
    }
    list
}

fn entry(value: &DeValue<'_>) -> Result<Ignore, String> {
    if let Some(field) = value.as_str() {
        return Ignore::new(field, None).map_err(|error| error.to_string());
    }
    let Some(table) = value.as_table() else {
        return Err(format!("has a {}; write {WANTED}", kind(value)));
    };
    let mut keys = table.keys().map(|key| key.get_ref().as_ref());
    if let Some(key) = keys.find(|key| !ENTRY_KEYS.contains(key)) {
        return Err(format!("{key:?}: {}", unknown("key", KEY, key, ENTRY_KEYS)));
    }
    let field = text(table, "field")?.ok_or_else(|| "has an entry without a field".to_owned())?;
    Ignore::new(field, text(table, "pattern")?).map_err(|error| error.to_string())
}

fn text<'d>(table: &'d DeTable<'_>, key: &str) -> Result<Option<&'d str>, String> {
    let Some(value) = table.get(key) else { return Ok(None) };
    let value = value.get_ref();
    let wrong = || format!("{key} is a {}; write a text in quotes", kind(value));
    value.as_str().map(Some).ok_or_else(wrong)
}
