//! The operator's own noise in JSON: `["media:keywords", {"field": "description", "pattern":
//! "[0-9]+ views"}]`.

use serde_json::{Value, json};
use tidegate_core::model::Ignore;

/// Writes the list as it is read.
pub(super) fn written(list: &[Ignore]) -> Value {
    let entry = |ignore: &Ignore| match ignore.pattern() {
        Some(pattern) => json!({ "field": ignore.field(), "pattern": pattern }),
        None => ignore.field().into(),
    };
    list.iter().map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_is_written() {
        let value = json!(["media:keywords", { "field": "description", "pattern": "[0-9]+" }]);
        let serde_json::Value::Object(settings) = json!({ "ignore": value }) else { panic!() };
        let read = tidegate_config::feed_settings(&settings).unwrap();
        assert_eq!(written(&read.options.ignore), value);
        assert_eq!(written(&[]), json!([]));
    }
}
