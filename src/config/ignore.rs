//! `feed.ignore`: the operator's own noise.

use super::kinds::{Kind, elements};
use super::value::{ConfigNode, Value};
use tidegate_core::model::{IGNORE_LIMIT, Ignore};

const WANTED: &str = "a list of fields, each a text or { field = …, pattern = … }";

/// A list of fields, or of patterns in fields; an entry with a mistake is a fault at its own place.
pub(super) fn ignored_fields() -> Kind<Vec<Ignore>> {
    elements(format!("a list of at most {IGNORE_LIMIT}"), IGNORE_LIMIT, WANTED, entry)
}

fn entry(node: &ConfigNode<'_>) -> Result<Ignore, String> {
    let [field, pattern] = match node.value {
        Value::Text(field) => return Ignore::new(field, None).map_err(|error| error.to_string()),
        Value::Table(_) => node.keys(["field", "pattern"], WANTED)?,
        _ => return Err(format!("has a {}; write {WANTED}", node.kind())),
    };
    let field = text("field", field)?.ok_or_else(|| "has an entry without a field".to_owned())?;
    Ignore::new(field, text("pattern", pattern)?).map_err(|error| error.to_string())
}

/// The text of a key, where it is written.
fn text<'d>(key: &str, node: Option<&ConfigNode<'d>>) -> Result<Option<&'d str>, String> {
    node.map(|node| node.text().map_err(|said| format!("{key} {said}"))).transpose()
}
