//! The boundaries of the modules: what a module may name, as a test over the source.
//!
//! ARCHITECTURE.md says why. Comments, doc text and strings do not count. Code under
//! `#[cfg(test)]` does not count either: a test may need a runtime to drive what it tests, or two
//! modules to compare; the boundaries are for what ships.

mod citations;
mod code;
mod rules;
mod type_names;

use code::Code;
use rules::{FREE, MODULES, ONLY_IN, named_modules, violations};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The longest source file, in lines.
const LINE_LIMIT: usize = 500;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Every Rust file below a folder, by its path from the folder above, with its text.
fn sources(folder: &str) -> BTreeMap<String, String> {
    fn walk(folder: &Path, found: &mut BTreeMap<String, String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let name = path.strip_prefix(root()).unwrap().to_string_lossy().into_owned();
                found.insert(name, std::fs::read_to_string(&path).unwrap());
            }
        }
    }
    let mut found = BTreeMap::new();
    walk(&root().join(folder), &mut found);
    assert!(!found.is_empty(), "{folder} has no source");
    found
}

#[test]
fn no_module_crosses_its_boundary() {
    let mut broken = Vec::new();
    for (path, text) in sources("src") {
        broken.extend(violations(&path, &text));
    }
    assert!(broken.is_empty(), "\n{}", broken.join("\n"));
}

#[test]
fn every_file_belongs_to_a_module() {
    for path in sources("src").keys() {
        let module = rules::module_of(path).unwrap_or_default();
        let is_known = rules::is_module(module);
        assert!(is_known, "{path}: no module {module:?}; give it a row in tests/it/walls/rules.rs");
    }
}

/// What a module may name and does not is no list of what it needs.
#[test]
fn every_allowance_is_used() {
    let mut named: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (path, text) in sources("src") {
        let module = rules::module_of(&path).unwrap_or_default().to_owned();
        let found = named_modules(&Code::shipped(&text)).into_iter().map(|(name, _)| name);
        named.entry(module).or_default().extend(found);
    }
    for module in MODULES {
        for other in module.may_name {
            assert!(named[module.name].contains(*other), "{} names no {other}", module.name);
        }
    }
}

/// What ARCHITECTURE.md says is absent from a module is what the module may not name.
#[test]
fn the_architecture_says_what_the_rules_say() {
    let text = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let rows: BTreeMap<&str, &str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.strip_suffix(" |"))
        .filter_map(|row| Some((row.split_once('`')?.0, row.rsplit_once(" | ")?.1)))
        .collect();
    for module in MODULES {
        let name = module.name;
        let absent = rows.get(name).unwrap_or_else(|| panic!("no row for {name}"));
        let absent = absent.split(':').next().unwrap_or_default();
        if absent.starts_with("every other module") {
            assert_eq!(module.may_name, [""; 0], "{name}");
        } else if absent.starts_with("every module but `model`") {
            assert_eq!(module.may_name, ["model"], "{name}");
        } else {
            let words = absent.split(|c: char| !c.is_ascii_lowercase() && c != '_');
            for word in words.filter(|word| rules::is_module(word)) {
                assert!(!module.may_name.contains(&word), "{name} may name {word}");
            }
        }
    }
}

#[test]
fn no_file_is_too_long() {
    for (path, text) in sources("src").into_iter().chain(sources("tests")) {
        let lines = text.lines().count();
        assert!(lines <= LINE_LIMIT, "{path} has {lines} lines, the limit is {LINE_LIMIT}");
    }
}

#[test]
fn nothing_is_unsafe() {
    for (path, text) in sources("src").into_iter().chain(sources("tests")) {
        assert!(!Code::of(&text).has_word("unsafe"), "{path}");
    }
}

#[test]
fn every_citation_leads_to_its_place() {
    let read = |path: &str| std::fs::read_to_string(root().join(path)).unwrap();
    let rows = citations::rows(&read("docs/design/readings.md"));
    let headings: BTreeMap<_, _> = citations::DOCUMENTS
        .iter()
        .map(|(word, path)| (*word, citations::headings(&read(path))))
        .collect();
    let mut files = sources("src");
    files.append(&mut sources("tests"));
    files.append(&mut sources("benches"));
    // It cites what is not there, to be found.
    files.remove("tests/it/walls/citations.rs");
    files.insert("tests/it/spec/TABLE.md".to_owned(), read("tests/it/spec/TABLE.md"));
    let is_there = |path: &str| root().join(path).exists();
    let mut broken = Vec::new();
    for (path, text) in files {
        let found = citations::unresolved(&text, &rows, &headings, is_there);
        broken.extend(found.into_iter().map(|what| format!("{path}: {what}")));
    }
    assert!(broken.is_empty(), "\n{}", broken.join("\n"));
}

/// Each rule of the table is broken by a source made for it: the test above can fail.
#[test]
fn every_rule_can_be_broken() {
    for module in MODULES {
        let path = format!("src/{}/part.rs", module.name);
        assert_eq!(violations(&path, "fn f() {}\n"), [""; 0], "{path}");
        let others = MODULES.iter().map(|other| other.name).chain(FREE.iter().copied());
        for other in others.filter(|other| *other != module.name) {
            let crossed = usize::from(!module.may_name.contains(&other));
            for text in [
                format!("use crate::{other}::Thing;"),
                format!("use crate::{{{name}::Time, {other}}};", name = module.name),
                format!("use crate::{{{}::{{Time, Tick}}, {other}::{{A, B}}}};", module.name),
                format!("fn f() {{ crate::{other}::thing() }}"),
                format!("use super::super::{other};"),
                format!("use crate :: {other};"),
                format!("use tidegate::{other};"),
            ] {
                assert_eq!(violations(&path, &text).len(), crossed, "{path}: {text}");
            }
        }
        for word in module.absent {
            for text in [format!("use {word}::thing;"), format!("let x = {word} ;")] {
                assert!(!violations(&path, &text).is_empty(), "{path}: {text}");
            }
        }
    }
    for (word, homes) in ONLY_IN {
        let text = format!("fn f() {{ {} }}", word.replace("::", " :: "));
        assert!(!violations("src/elsewhere.rs", &text).is_empty(), "{word}");
        for home in *homes {
            let path = format!("src/{}.rs", home.trim_end_matches(".rs"));
            let about = format!("{word} is named only in");
            let own = violations(&path, &text);
            assert!(own.iter().all(|what| !what.contains(&about)), "{word} in {home}: {own:?}");
        }
    }
}

#[test]
fn a_home_is_a_file_with_its_folder_or_a_file_alone() {
    for path in ["src/store/sled.rs", "src/store/sled/log.rs", "src/store/sled_log.rs"] {
        assert!(rules::is_at_home(path, "store/sled"), "{path}");
    }
    for path in ["src/store.rs", "src/store/sledge.rs", "src/serve/sled.rs", "store/sled.rs"] {
        assert!(!rules::is_at_home(path, "store/sled"), "{path}");
    }
    assert!(rules::is_at_home("src/store.rs", "store.rs"));
    assert!(!rules::is_at_home("src/store/memory.rs", "store.rs"));
}

#[test]
fn a_violation_names_file_line_and_word() {
    let text = "//! Doc.\n\nuse crate::model::Time;\nuse crate::store::Store;\n";
    let found = violations("src/sync/merge.rs", text);
    assert_eq!(found, ["src/sync/merge.rs:4: sync may not name crate::store"]);
}

#[test]
fn comments_strings_and_tests_do_not_count() {
    for text in [
        "//! Unlike [`crate::store`], this uses no tokio.\n",
        "fn f() {} // crate::store, tokio\n",
        "/* use crate::store; /* tokio */ SystemTime */ fn f() {}\n",
        "const A: &str = \"crate::store tokio \\\" SystemTime\";\n",
        "const A: &str = r#\"crate::store \" tokio\"#;\n",
        "const A: &[u8] = b\"tokio\";\n",
        "const A: char = '\"'; const B: &str = \"tokio\"; const C: char = '\\'';\n",
        "#[cfg(test)]\nmod tests { use crate::store::Store; #[tokio::test] fn f() {} }\n",
        "#[cfg(test)]\nuse tokio::time;\n",
        "#[cfg(test)]\n#[allow(dead_code)]\nfn f() { tokio::time(); }\n",
        "fn store<'tokio>(tokio_like: &'tokio str) {}\n",
    ] {
        assert_eq!(violations("src/sync/part.rs", text), [""; 0], "{text}");
    }
    assert_eq!(violations("src/sync/tests.rs", "use tokio::time;"), [""; 0]);
    assert_eq!(violations("src/sync/tests/more.rs", "use tokio::time;"), [""; 0]);
}

#[test]
fn what_comes_after_something_passed_over_counts() {
    for text in [
        "#[cfg(test)]\nmod tests { fn f() { if a { b } } }\nuse tokio::time;\n",
        "#[cfg(test)]\nmod tests;\nuse tokio::time;\n",
        "#[cfg(not(test))]\nuse tokio::time;\n",
        "const A: char = '\"'; use tokio::time; const B: char = '\"';\n",
        "/* a /* b */ c */ use tokio::time;\n",
        "const A: &str = \"\\\\\"; use tokio::time;\n",
        "const A: &str = r\"\\\"; use tokio::time;\n",
        "fn f<'a>(x: &'a str) { tokio::time() }\n",
    ] {
        assert_eq!(violations("src/sync/part.rs", text).len(), 1, "{text}");
    }
}
