//! What the manifests and lints cannot keep: words that have one home, the length of files, and names of types.
//! What a crate may depend on is in its `Cargo.toml`.

use crate::support::prelude::*;

const LINE_LIMIT: usize = 500;

/// Paths that shipped code names in their homes alone: files below `src`, or what their paths begin with.
const ONLY_IN: [(&str, &str); 6] = [
    ("sled::", "store/sled/ store/lib.rs"),
    ("tokio_postgres::", "store/postgres/"),
    ("axum::", "serve/ demo"),
    ("hyper_util::server::", "serve/ demo"),
    // Decisions come out the same wherever they are made.
    ("std::fs", "core/trust.rs config/ store/ net/ poll/ replay/ serve/ app cli demo"),
    ("std::net", "config/ store/ net/ poll/ serve/ app cli demo"),
];

/// Every Rust file below a folder, by its path from the folder, with its text.
pub fn sources(folder: &str) -> BTreeMap<String, String> {
    let folder = root(folder);
    let mut found = files(&folder);
    found.retain(|path| path.extension().is_some_and(|extension| extension == "rs"));
    let name = |path: &Path| path.strip_prefix(&folder).unwrap().to_str().unwrap().to_owned();
    found.iter().map(|path| (name(path), std::fs::read_to_string(path).unwrap())).collect()
}

/// The lines of `src` outside of comments and tests, each with its file. A file's own tests are its end; a file of tests
/// is below `tests`, or declared for tests alone.
fn shipped(files: &BTreeMap<String, String>) -> Vec<(&str, &str)> {
    let mut tests = BTreeSet::new();
    for (path, text) in files {
        let home = path.trim_end_matches(".rs").trim_end_matches("/lib");
        let other = text.match_indices("#[cfg(any(test,");
        for (at, _) in text.match_indices("#[cfg(test)]").chain(other) {
            let next = text[at..].lines().nth(1);
            let declared = next.and_then(|line| line.trim().split_once("mod "));
            let name = declared.and_then(|(_, rest)| rest.strip_suffix(';'));
            tests.extend(name.map(|name| format!("{home}/{name}")));
        }
    }
    let is_test = |path: &str| {
        let mut behind = tests.iter().filter_map(|test| path.strip_prefix(test.as_str()));
        behind.any(|rest| rest.starts_with(['.', '/']))
    };
    let code = files.iter().filter(|(path, _)| !is_test(path)).flat_map(|(path, text)| {
        let own = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        own.lines().map(move |line| (path.as_str(), line))
    });
    code.filter(|(_, line)| !line.trim_start().starts_with("//")).collect()
}

#[test]
fn words_stay_in_their_homes() {
    let files = sources("src");
    for (path, line) in shipped(&files) {
        for (word, homes) in ONLY_IN {
            let is_part = |c: char| c == ':' || c.is_alphanumeric();
            let is_named = line.match_indices(word).any(|(at, _)| !line[..at].ends_with(is_part));
            let is_home = homes.split(' ').any(|home| path.starts_with(home));
            assert!(!is_named || is_home, "src/{path} names {word}: {line}");
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

/// A search for a type's name finds one thing.
#[test]
fn a_type_name_is_defined_once() {
    let files = sources("src");
    let mut places: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (path, line) in shipped(&files) {
        let words = line.split(|c: char| c.is_whitespace() || "(<;:{=".contains(c));
        let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
        // An associated type is indented.
        let is_definition = |word: &str| {
            matches!(word, "struct" | "enum" | "union" | "trait")
                || word == "type" && !line.starts_with(' ')
        };
        let is_pub = |word: &&str| matches!(*word, "pub" | "in" | "crate") || word.ends_with(')');
        let at = words.iter().position(|word| is_definition(word));
        let at = at.filter(|at| words[..*at].iter().all(is_pub));
        let Some(name) = at.and_then(|at| words.get(at + 1)) else { continue };
        if name.starts_with(char::is_uppercase) && !places.entry(name).or_default().insert(path) {
            panic!("{name} is defined twice in src/{path}");
        }
    }
    assert!(places.len() > 500, "only {} types were found", places.len());
    places.retain(|_, at| at.len() > 1);
    assert!(places.is_empty(), "defined more than once: {places:#?}");
}
