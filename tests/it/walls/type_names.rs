//! A type name is defined once in the whole package, so that a search for it finds one thing.

use super::code::Code;
use super::sources;
use std::collections::BTreeMap;

/// The names of the types that the shipped code of a file defines, associated types left out.
fn defined_types(text: &str) -> Vec<(String, usize)> {
    let code = Code::shipped(text);
    let mut found = Vec::new();
    let mut blocks: Vec<bool> = Vec::new();
    let mut has_associated = false;
    for pair in code.tokens.windows(2) {
        let (token, next) = (pair[0].text.as_str(), &pair[1]);
        let is_name = next.text.starts_with(char::is_uppercase);
        match token {
            "impl" | "trait" => has_associated = true,
            "{" => blocks.push(std::mem::take(&mut has_associated)),
            "}" => drop(blocks.pop()),
            ";" => has_associated = false,
            _ => {}
        }
        let is_associated = token == "type" && blocks.last() == Some(&true);
        if matches!(token, "struct" | "enum" | "union" | "trait" | "type")
            && is_name
            && !is_associated
        {
            found.push((next.text.clone(), next.line));
        }
    }
    found
}

#[test]
fn a_type_name_is_defined_once() {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (path, text) in sources("src") {
        let is_test = path.split('/').any(|part| matches!(part, "tests" | "tests.rs"));
        if is_test || is_test_module(&path) {
            continue;
        }
        for (name, line) in defined_types(&text) {
            places.entry(name).or_default().push(format!("{path}:{line}"));
        }
    }
    assert!(places.len() > 500, "only {} types were found", places.len());
    places.retain(|_, at| at.len() > 1);
    assert!(places.is_empty(), "defined more than once: {places:#?}");
}

/// Whether a file holds test code only: its module is declared under `#[cfg(test)]`.
fn is_test_module(path: &str) -> bool {
    let mut folder = path.trim_end_matches(".rs");
    while let Some((above, name)) = folder.rsplit_once('/') {
        let parent = super::root().join(format!("{above}.rs"));
        if let Ok(text) = std::fs::read_to_string(parent) {
            let declared = format!("mod {name} ;");
            if Code::shipped(&text).lines_with(&declared).is_empty()
                && !Code::of(&text).lines_with(&declared).is_empty()
            {
                return true;
            }
        }
        folder = above;
    }
    false
}

#[test]
fn associated_types_and_tests_define_no_names() {
    let text = "struct A;\nimpl B for A {\n    type Error = ();\n    fn f() { enum C {} }\n}\n\
                #[cfg(test)]\nmod tests { struct D; }\npub type E = A;\n";
    let names: Vec<String> = defined_types(text).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["A", "C", "E"]);
}
