//! What each room may not mention (ARCHITECTURE.md, "Modules").

use super::code::{Code, Token};

/// A room and what is absent from it.
pub struct Room {
    /// Its name: `src/NAME.rs` and `src/NAME/`.
    pub name: &'static str,
    /// The other rooms that it may not mention.
    pub rooms: &'static [&'static str],
    /// The crates and words that it may not mention.
    pub words: &'static [&'static str],
}

const fn room(
    name: &'static str,
    rooms: &'static [&'static str],
    words: &'static [&'static str],
) -> Room {
    Room { name, rooms, words }
}

/// What a decision may not lean on: it must come out the same whenever and wherever it is made.
const NOT_PURE: &[&str] =
    &["tokio", "async", "await", "async_trait", "getrandom", "rand", "std::fs", "std::net"];

/// The rooms with walls.
pub const ROOMS: &[Room] = &[
    room(
        "model",
        &[
            "app", "archive", "cli", "clock", "config", "demo", "diff", "fetch", "identity",
            "judge", "parse", "poll", "record", "render", "serve", "store", "sup", "sync",
        ],
        &["postcard", "serde_json", "quick_xml", "tokio", "async", "await", "async_trait"],
    ),
    room(
        "xml",
        &[
            "app",
            "archive",
            "cli",
            "clock",
            "config",
            "demo",
            "diff",
            "fetch",
            "hub",
            "identity",
            "judge",
            "parse",
            "poll",
            "pull",
            "record",
            "render",
            "replay",
            "serve",
            "store",
            "sup",
            "sync",
            "sync_markup",
            "websub",
        ],
        &["serde", "tokio", "async", "await", "async_trait", "std::fs", "std::net"],
    ),
    room(
        "sync",
        &[
            "app", "cli", "clock", "config", "demo", "fetch", "parse", "poll", "render", "serve",
            "store",
        ],
        &["tokio", "async", "await", "quick_xml", "getrandom"],
    ),
    room(
        "sync_markup",
        &[
            "app", "archive", "cli", "clock", "config", "demo", "diff", "fetch", "hub", "identity",
            "judge", "parse", "poll", "pull", "record", "render", "replay", "serve", "store",
            "sup", "websub",
        ],
        &["tokio", "async", "await", "std::fs", "std::net", "quick_xml"],
    ),
    room(
        "parse",
        &["app", "cli", "clock", "demo", "fetch", "poll", "render", "serve", "store"],
        &["tokio", "async", "await", "std::fs", "std::net"],
    ),
    room("identity", &["app", "cli", "clock", "demo", "fetch", "poll", "serve"], NOT_PURE),
    room("diff", &["app", "cli", "clock", "demo", "fetch", "poll", "serve"], NOT_PURE),
    room("judge", &["app", "cli", "clock", "demo", "fetch", "poll", "serve"], NOT_PURE),
    room("record", &["app", "cli", "clock", "demo", "fetch", "poll", "serve"], NOT_PURE),
    room("archive", &["app", "cli", "demo", "fetch", "poll", "serve", "store"], &["tokio"]),
    room("sup", &["app", "cli", "demo", "fetch", "poll", "serve", "store"], &["tokio"]),
    room(
        "websub",
        &[
            "app", "cli", "clock", "config", "demo", "diff", "fetch", "hub", "identity", "judge",
            "parse", "poll", "record", "render", "serve", "store",
        ],
        NOT_PURE,
    ),
    room("render", &["app", "cli", "demo", "fetch", "poll", "serve", "store"], &["tokio"]),
    room("pull", &["app", "cli", "clock", "demo", "fetch", "poll", "serve", "store"], NOT_PURE),
    room(
        "config",
        &[
            "app", "archive", "cli", "clock", "demo", "diff", "fetch", "identity", "judge",
            "parse", "poll", "record", "render", "serve", "store", "sup", "sync",
        ],
        &["tokio", "async", "await"],
    ),
    room("fetch", &["app", "cli", "demo", "hub", "parse", "poll", "serve", "store"], &["sled"]),
    room(
        "store",
        &["app", "cli", "demo", "fetch", "hub", "parse", "poll", "render", "serve"],
        &["reqwest"],
    ),
    room(
        "status",
        &[
            "app", "archive", "cli", "clock", "config", "demo", "diff", "hub", "identity", "parse",
            "poll", "render", "serve", "store", "sup", "sync", "xml",
        ],
        NOT_PURE,
    ),
    room("poll", &["app", "cli", "demo", "hub", "serve"], &["sled", "reqwest"]),
    room(
        "hub",
        &["app", "cli", "demo", "parse", "poll", "render", "serve"],
        &["sled", "reqwest", "axum"],
    ),
    room(
        "replay",
        &["app", "cli", "clock", "demo", "fetch", "poll", "render", "serve"],
        &["sled", "reqwest", "std::net", "getrandom"],
    ),
    room("serve", &["app", "cli", "demo", "fetch", "hub", "poll"], &["sled", "reqwest"]),
];

/// The files without walls of their own: wiring, and the clock.
pub const FREE: &[&str] = &["app", "cli", "clock", "demo", "lib", "main"];

/// Words that have their home: named nowhere else. A home is a file with its folder below `src`,
/// or, with `.rs`, that file alone.
pub const ONLY_IN: &[(&str, &[&str])] = &[
    // The file of the room declares the module.
    ("sled", &["store/sled", "store.rs"]),
    ("reqwest", &["fetch"]),
    ("axum", &["serve", "demo"]),
    ("hyper_util::server", &["serve", "demo"]),
    ("hyper::server", &["serve", "demo"]),
    // The type alone is what dates of HTTP are read into; only the clock asks it for the time.
    ("SystemTime", &["clock", "serve/conditional"]),
    ("SystemTime::now", &["clock"]),
    // A default: whatever decides has what the operator says.
    ("VERSIONS_PER_DAY", &["model", "config", "poll.rs"]),
];

/// The room that a file belongs to.
pub fn room_of(path: &str) -> Option<&str> {
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

/// Every wall that a file breaks, as `path:line: what`.
pub fn violations(path: &str, text: &str) -> Vec<String> {
    if is_test_file(path) {
        return Vec::new();
    }
    let code = Code::shipped(text);
    let mut found: Vec<(usize, String)> = Vec::new();
    let name = room_of(path).unwrap_or_default();
    if let Some(room) = ROOMS.iter().find(|room| room.name == name) {
        for (mentioned, line) in mentioned_rooms(&code) {
            if room.rooms.contains(&mentioned.as_str()) {
                found.push((line, format!("{name} may not mention crate::{mentioned}")));
            }
        }
        for word in room.words {
            let lines = code.lines_with(word);
            found
                .extend(lines.iter().map(|line| (*line, format!("{name} may not mention {word}"))));
        }
    }
    for (word, homes) in ONLY_IN {
        if homes.iter().any(|home| is_at_home(path, home)) {
            continue;
        }
        let lines = code.lines_with(word);
        let said = format!("{word} is named only in {}", homes.join(" and "));
        found.extend(lines.iter().map(|line| (*line, said.clone())));
    }
    found.sort();
    found.into_iter().map(|(line, what)| format!("{path}:{line}: {what}")).collect()
}

/// The rooms that are mentioned, with the line: after `crate::`, `tidegate::` or
/// `super::super::`, alone or in a group.
fn mentioned_rooms(code: &Code) -> Vec<(String, usize)> {
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
