//! The operator's own noise in JSON: `["media:keywords", {"field": "description", "pattern":
//! "[0-9]+ views"}]`.

use super::problem::Problem;
use crate::model::{IGNORE_LIMIT, Ignore};
use serde_json::{Map, Value, json};

const KEY: &str = "ignore";

/// Reads the list; a mistake says which entry it is in.
pub(super) fn read(value: &Value) -> Result<Vec<Ignore>, Problem> {
    let wrong = |said: String| Problem::parameter(KEY, said);
    let Some(list) = value.as_array() else {
        return Err(wrong("ignore is a list of fields".to_owned()));
    };
    if list.len() > IGNORE_LIMIT {
        return Err(wrong(format!(
            "ignore has {} entries, the limit is {IGNORE_LIMIT}",
            list.len()
        )));
    }
    let numbered = list.iter().zip(1..);
    numbered
        .map(|(value, number)| {
            let read = match value {
                Value::String(field) => Ignore::new(field, None).map_err(|e| e.to_string()),
                Value::Object(entry) => entry_of(entry),
                _ => Err("it is a field or {\"field\": …, \"pattern\": …}".to_owned()),
            };
            read.map_err(|said| wrong(format!("entry {number} of ignore: {said}")))
        })
        .collect()
}

fn entry_of(entry: &Map<String, Value>) -> Result<Ignore, String> {
    if let Some(key) = entry.keys().find(|key| !matches!(key.as_str(), "field" | "pattern")) {
        let key: String = key.chars().take(64).collect();
        return Err(format!("the key {key:?} is unknown"));
    }
    let text = |key: &str| match entry.get(key) {
        Some(value) => value.as_str().map(Some).ok_or_else(|| format!("{key} is a string")),
        None => Ok(None),
    };
    let field = text("field")?.ok_or("field is missing")?;
    Ignore::new(field, text("pattern")?).map_err(|error| error.to_string())
}

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
        assert_eq!(written(&read(&value).unwrap()), value);
        assert_eq!(written(&[]), json!([]));
    }

    #[test]
    fn mistakes_say_where() {
        for (value, said) in [
            (json!("title"), "ignore is a list of fields"),
            (json!(["title", 7]), "entry 2 of ignore: it is a field or"),
            (json!([{ "pattern": "a" }]), "entry 1 of ignore: field is missing"),
            (json!([{ "field": "title", "pattern": null }]), "entry 1 of ignore: pattern is a str"),
            (json!([{ "field": "a", "patern": "" }]), "entry 1 of ignore: the key \"patern\" is"),
            (
                json!([{ "field": "a", "pattern": "[" }]),
                "entry 1 of ignore: the pattern \"[\" is no",
            ),
            (json!([""]), "entry 1 of ignore: \"\" is no field"),
            (json!(vec!["a"; IGNORE_LIMIT + 1]), "ignore has 65 entries, the limit is 64"),
        ] {
            let problem = serde_json::to_value(read(&value).unwrap_err()).unwrap();
            assert_eq!(problem["parameter"], "ignore");
            let detail = problem["detail"].as_str().unwrap();
            assert!(detail.starts_with(said), "{detail}");
        }
    }
}
