//! `feed.ignore`: the operator's own noise.

use super::kinds::{Kind, Mistakes, read_list};
use super::section::unknown;
use super::value::{ConfigNode, TableEntry, Value};
use tidegate_core::model::{IGNORE_LIMIT, Ignore};

const WANTED: &str = "a list of fields, each a text or { field = …, pattern = … }";
const ENTRY_KEYS: &[&str] = &["field", "pattern"];

/// A list of fields, or of patterns in fields; an entry with a mistake is a fault at its own place.
pub(super) struct Ignores;

impl Kind for Ignores {
    type Out = Vec<Ignore>;

    fn read(&self, node: &ConfigNode<'_>, mistakes: &mut Mistakes) -> Option<Vec<Ignore>> {
        read_list(node, IGNORE_LIMIT, WANTED, mistakes, entry)
    }

    fn allowed(&self) -> String {
        format!("a list of at most {IGNORE_LIMIT}")
    }
}

fn entry(node: &ConfigNode<'_>) -> Result<Ignore, String> {
    let table = match &node.value {
        Value::Text(field) => return Ignore::new(field, None).map_err(|error| error.to_string()),
        Value::Table(table) => table,
        other => return Err(format!("has a {}; write {WANTED}", other.kind())),
    };
    if let Some(TableEntry { key, .. }) =
        table.iter().find(|entry| !ENTRY_KEYS.contains(&entry.key))
    {
        return Err(format!("{key:?}: {}", unknown("key", "ignore", key, ENTRY_KEYS)));
    }
    let text = |key: &str| match table.iter().find(|entry| entry.key == key).map(|e| &e.node.value)
    {
        None => Ok(None),
        Some(Value::Text(text)) => Ok(Some(*text)),
        Some(other) => Err(format!("{key} is a {}; write a text in quotes", other.kind())),
    };
    let field = text("field")?.ok_or_else(|| "has an entry without a field".to_owned())?;
    Ignore::new(field, text("pattern")?).map_err(|error| error.to_string())
}
