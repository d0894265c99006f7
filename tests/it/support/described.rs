//! The API's description, against which every answer is checked that a test gets of administration.

use jsonschema::Validator;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::{Mutex, OnceLock};

fn document() -> &'static Value {
    static DOCUMENT: OnceLock<Value> = OnceLock::new();
    DOCUMENT.get_or_init(|| tidegate_serve::api_description("/"))
}

fn operation(method: &str, path: &str) -> Option<&'static Value> {
    let path = path.split('?').next().unwrap();
    let steps: Vec<&str> = path.split('/').collect();
    let fits = |template: &str| {
        let template: Vec<&str> = template.split('/').collect();
        let pairs = template.iter().zip(&steps);
        template.len() == steps.len()
            && pairs.into_iter().all(|(is, step)| is.starts_with('{') || is == step)
    };
    let paths = document()["paths"].as_object().unwrap();
    // A path without variables goes before one with them.
    let exact = paths.get(path);
    let item = exact.or_else(|| paths.iter().find(|(path, _)| fits(path)).map(|(_, item)| item))?;
    item.get(method.to_lowercase())
}

fn response(operation: &'static Value, status: u16) -> &'static Value {
    let responses = &operation["responses"];
    let said = responses.get(status.to_string()).unwrap_or(&responses["default"]);
    match said["$ref"].as_str() {
        Some(to) => document().pointer(to.trim_start_matches('#')).unwrap(),
        None => said,
    }
}

fn check(schema: &Value, value: &Value, what: &str) {
    static KNOWN: OnceLock<Mutex<HashMap<String, Validator>>> = OnceLock::new();
    let mut known = KNOWN.get_or_init(Mutex::default).lock().unwrap_or_else(|e| e.into_inner());
    let validator = known.entry(schema.to_string()).or_insert_with(|| {
        let whole = json!({ "allOf": [schema], "components": document()["components"] });
        jsonschema::options().should_validate_formats(true).build(&whole).unwrap()
    });
    let faults = validator.iter_errors(value).map(|fault| {
        format!(
            "{}: {}",
            fault.instance_path(),
            fault.to_string().chars().take(400).collect::<String>()
        )
    });
    let faults: Vec<String> = faults.collect();
    assert!(faults.is_empty(), "{what}: {}", faults.join("\n"));
}

pub fn check_answer(method: &str, path: &str, (status, kind): (u16, &str), value: &Value) {
    let what = format!("{method} {path} {status}");
    let Some(operation) = operation(method, path) else {
        // Nothing is there, and just that is said.
        let problem = &json!({ "$ref": "#/components/schemas/Problem" });
        assert!(matches!(status, 404 | 405), "{what} is not described");
        return check(problem, value, &what);
    };
    let said = response(operation, status);
    let Some(content) = said["content"].as_object() else {
        return assert_eq!(value, &Value::Null, "{what} has no body");
    };
    let kind = kind.split(';').next().unwrap();
    let content = content.get(kind).unwrap_or_else(|| panic!("{what} is {kind}"));
    check(&content["schema"], value, &what);
}
