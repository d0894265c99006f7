//! Which modules each module may name, and which crates and words it may not (ARCHITECTURE.md, "Modules").

use super::code::{Code, Token};

/// A module and its boundary.
pub struct Module {
    /// Its name: `src/NAME.rs` and `src/NAME/`.
    pub name: &'static str,
    /// The other modules that it may name; no others.
    pub may_name: &'static [&'static str],
    /// The crates and words that it may not name.
    pub absent: &'static [&'static str],
}

const fn module(
    name: &'static str,
    may_name: &'static [&'static str],
    absent: &'static [&'static str],
) -> Module {
    Module { name, may_name, absent }
}

/// What a decision may not lean on: it must come out the same whenever and wherever it is made.
const NOT_PURE: &[&str] =
    &["tokio", "async", "await", "async_trait", "getrandom", "rand", "std::fs", "std::net"];

/// The modules with boundaries.
pub const MODULES: &[Module] = &[
    module(
        "model",
        &[],
        &["postcard", "serde_json", "quick_xml", "tokio", "async", "await", "async_trait"],
    ),
    module(
        "xml",
        &["model"],
        &["serde", "tokio", "async", "await", "async_trait", "std::fs", "std::net"],
    ),
    module("sync", &["model"], &["tokio", "async", "await", "quick_xml", "getrandom"]),
    module(
        "sync_markup",
        &["model", "sync", "xml"],
        &["tokio", "async", "await", "std::fs", "std::net", "quick_xml"],
    ),
    module(
        "parse",
        &["model", "sync", "sync_markup", "xml"],
        &["tokio", "async", "await", "std::fs", "std::net"],
    ),
    module("diff", &["model", "sync_markup", "xml"], NOT_PURE),
    module("identity", &["diff", "model", "xml"], NOT_PURE),
    module("judge", &["identity", "model", "xml"], NOT_PURE),
    module(
        "record",
        &["archive", "diff", "identity", "judge", "model", "parse", "render", "sync", "xml"],
        NOT_PURE,
    ),
    module("archive", &["model"], &["tokio"]),
    module("sup", &["model"], &["tokio"]),
    module("websub", &["model", "sup"], NOT_PURE),
    module("render", &["model", "sync", "sync_markup", "xml"], &["tokio"]),
    module("pull", &["model", "parse", "render", "sync", "sync_markup", "xml"], NOT_PURE),
    module("config", &["model"], &["tokio", "async", "await"]),
    // An address of a client is a value.
    module(
        "origin",
        &["config", "model"],
        &["tokio", "async", "await", "async_trait", "getrandom", "rand", "std::fs"],
    ),
    module("trust", &[], &["tokio", "async", "await", "reqwest"]),
    module("fetch", &["model", "origin", "sup", "trust", "websub"], &["sled"]),
    module("load", &[], &["sled", "reqwest", "axum"]),
    module("acme", &["fetch"], &["sled", "reqwest", "axum", "std::fs"]),
    module("traces", &["clock", "fetch"], &["sled", "reqwest", "axum"]),
    module("store", &["clock", "model", "trust", "websub"], &["reqwest"]),
    module("status", &["fetch", "judge", "model", "record", "websub"], NOT_PURE),
    module(
        "poll",
        &[
            "archive", "clock", "fetch", "judge", "load", "model", "parse", "record", "status",
            "store", "sup", "traces", "websub",
        ],
        &["sled", "reqwest"],
    ),
    module(
        "hub",
        &["clock", "fetch", "model", "store", "traces", "websub"],
        &["sled", "reqwest", "axum"],
    ),
    module(
        "replay",
        &["archive", "judge", "model", "parse", "record", "store"],
        &["sled", "reqwest", "std::net", "getrandom"],
    ),
    module(
        "serve",
        &[
            "archive",
            "clock",
            "config",
            "diff",
            "judge",
            "load",
            "model",
            "origin",
            "parse",
            "record",
            "render",
            "status",
            "store",
            "sup",
            "sync",
            "sync_markup",
            "traces",
            "websub",
            "xml",
        ],
        &["sled", "reqwest"],
    ),
];

/// The modules without boundaries of their own: wiring, and the clock.
pub const FREE: &[&str] = &["app", "cli", "clock", "demo", "lib", "main"];

/// Words that have their home: named nowhere else. A home is a file with its folder below `src`,
/// or, with `.rs`, that file alone.
pub const ONLY_IN: &[(&str, &[&str])] = &[
    // The file of the module declares the module.
    ("sled", &["store/sled", "store.rs"]),
    ("fjall", &["store/fjall", "store.rs"]),
    ("tokio_postgres", &["store/postgres"]),
    ("deadpool_postgres", &["store/postgres"]),
    ("reqwest", &["fetch"]),
    ("instant_acme", &["acme"]),
    ("axum", &["serve", "demo"]),
    ("hyper_util::server", &["serve", "demo"]),
    ("hyper::server", &["serve", "demo"]),
    // The type alone is what dates of HTTP are read into; only the clock asks it for the time.
    ("SystemTime", &["clock", "serve/conditional"]),
    ("SystemTime::now", &["clock"]),
    // A default: whatever decides has what the operator says.
    ("VERSIONS_PER_DAY", &["model", "config", "poll.rs"]),
];

/// The module that a file belongs to.
pub fn module_of(path: &str) -> Option<&str> {
    let below = path.strip_prefix("src/")?;
    let first = below.split('/').next()?;
    Some(first.strip_suffix(".rs").unwrap_or(first))
}

fn is_test_file(path: &str) -> bool {
    path.split('/').any(|part| matches!(part, "tests" | "tests.rs"))
}

/// Whether a file is `src/HOME.rs`, in the folder `src/HOME/`, or of a name that begins like it
/// (`src/store/sled_records.rs` for `store/sled`).
pub fn is_at_home(path: &str, home: &str) -> bool {
    if home.ends_with(".rs") {
        return path.strip_prefix("src/") == Some(home);
    }
    path.strip_prefix("src/")
        .and_then(|below| below.strip_prefix(home))
        .is_some_and(|rest| rest.starts_with('/') || rest.starts_with('_') || rest == ".rs")
}

/// Whether a name is that of a module.
pub fn is_module(name: &str) -> bool {
    MODULES.iter().any(|module| module.name == name) || FREE.contains(&name)
}

/// Every boundary that a file crosses, as `path:line: what`.
pub fn violations(path: &str, text: &str) -> Vec<String> {
    if is_test_file(path) {
        return Vec::new();
    }
    let code = Code::shipped(text);
    let mut found: Vec<(usize, String)> = Vec::new();
    let name = module_of(path).unwrap_or_default();
    if let Some(module) = MODULES.iter().find(|module| module.name == name) {
        for (named, line) in named_modules(&code) {
            if named != name && !module.may_name.contains(&named.as_str()) {
                found.push((line, format!("{name} may not name crate::{named}")));
            }
        }
        for word in module.absent {
            let lines = code.lines_with(word);
            found.extend(lines.iter().map(|line| (*line, format!("{name} may not name {word}"))));
        }
    }
    for (word, homes) in ONLY_IN {
        if homes.iter().any(|home| is_at_home(path, home)) {
            continue;
        }
        let lines = code.lines_with(word);
        let what = format!("{word} is named only in {}", homes.join(" and "));
        found.extend(lines.iter().map(|line| (*line, what.clone())));
    }
    found.sort();
    found.into_iter().map(|(line, what)| format!("{path}:{line}: {what}")).collect()
}

/// The modules that are named, with the line: after `crate::`, `tidegate::` or
/// `super::super::`, alone or in a group.
pub fn named_modules(code: &Code) -> Vec<(String, usize)> {
    const STARTS: [&[&str]; 3] =
        [&["crate", ":", ":"], &["tidegate", ":", ":"], &["super", ":", ":", "super", ":", ":"]];
    let mut found = Vec::new();
    for at in 0..code.tokens.len() {
        for start in STARTS {
            let here = &code.tokens[at..];
            if here
                .iter()
                .map(|token| token.text.as_str())
                .take(start.len())
                .eq(start.iter().copied())
            {
                found.extend(heads(&here[start.len()..]));
            }
        }
    }
    found.retain(|(name, _)| is_module(name));
    found
}

/// The first words of a path, or of every path in a group.
fn heads(tokens: &[Token]) -> Vec<(String, usize)> {
    let Some(first) = tokens.first() else { return Vec::new() };
    if first.text != "{" {
        return vec![(first.text.clone(), first.line)];
    }
    let mut found = Vec::new();
    let mut depth = 0;
    let mut begins = false;
    for token in tokens {
        match token.text.as_str() {
            "{" => (depth, begins) = (depth + 1, depth == 0),
            "}" => depth -= 1,
            "," => begins = depth == 1,
            _ if begins && depth == 1 => {
                found.push((token.text.clone(), token.line));
                begins = false;
            }
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    found
}
