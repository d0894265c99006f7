//! The table of keys as the annotated file and as the tables of the documentation.

use crate::TABLES;
use crate::keys::{KeyRow, Preset};

/// The start of the annotated file.
const HEAD: &str = "\
# Tidegate's configuration, with every key and its default.
#
# What stands here is what holds where nothing is written; keys without a default are commented
# out. `tidegate check -c FILE` names every mistake by file, line and key. Durations are whole
# numbers with one unit: 90s, 5m, 24h, 30d. Relative paths are taken from the folder that the
# program is started in. SIGHUP makes a running gateway read this file again; where the store is needs a restart.
# Each key of the tables from server to websub can be set in the environment too: TIDEGATE_SERVER_LISTEN; the
# token is TIDEGATE_ADMIN_TOKEN. An option of the command line wins over a variable, a variable over this file.
#
# Written from src/config by a test: in the source, change it there.
";

/// What stands over the tables that may be repeated, which are commented out.
const REPEATED: [(&str, &str); 6] = [
    (
        "host",
        "A pace for a host and the names below it, instead of polling.host_spacing and one request \
         at a\ntime. What a SUP document or a hub announces is asked for at this pace too; of other \
         hosts one at\na time and 250 ms apart.",
    ),
    ("feed", "One table for each feed."),
    ("aggregate", "Several feeds as one."),
    ("reader", "One table for each person or program that may read private feeds."),
    (
        "origin",
        "One table for each site that the gateway stands in front of. What answers there as a feed becomes a feed \
         of\nthe gateway when somebody asks for it.",
    ),
    ("allow", "One table for each site whose feeds readers may subscribe to, by /subscribe."),
];

/// The annotated file, `config/tidegate.toml`: every key with its words and its default.
pub(super) fn annotated_file() -> String {
    let mut file = HEAD.to_owned();
    for (table, rows) in TABLES {
        let repeated = REPEATED.iter().find(|(name, _)| *name == table);
        file.push('\n');
        match repeated {
            Some((_, words)) => {
                comment(&mut file, words);
                file.push_str(&format!("# [[{table}]]\n"));
            }
            None => file.push_str(&format!("[{table}]\n")),
        }
        for (at, row) in rows.iter().enumerate() {
            if at > 0 && !row.words.is_empty() {
                file.push('\n');
            }
            comment(&mut file, row.words);
            if let Preset::Words(said, _) = row.preset
                && said.contains("required")
            {
                comment(&mut file, &format!("({said})"));
            }
            let (mark, value) = match row.preset {
                Preset::Value(value) if repeated.is_none() => ("", value),
                Preset::Value(value) | Preset::Words(_, value) => ("# ", value),
                Preset::Shown(_, _, example) => ("# ", example),
            };
            file.push_str(&format!("{mark}{} = {value}\n", row.name));
        }
    }
    file
}

fn comment(file: &mut String, words: &str) {
    // What is code in Markdown needs no mark here.
    let words = words.replace('`', "");
    for line in words.lines().map(str::trim).filter(|line| !line.is_empty()) {
        file.push_str(&format!("# {line}\n"));
    }
}

/// The keys of a table as the documentation has them, in Markdown; `None` where there is no such table.
pub(super) fn documented(table: &str) -> Option<String> {
    let (_, mut rows) = TABLES.into_iter().find(|(name, _)| *name == table)?;
    let mut text = "| key | says | may be | default |\n| --- | --- | --- | --- |\n".to_owned();
    while let [first, rest @ ..] = rows {
        // KeyTable without words share those of the key before.
        let more = rest.iter().take_while(|row| row.words.is_empty()).count();
        let group = rows.get(..=more).unwrap_or_default();
        rows = rest.get(more..).unwrap_or_default();
        let first_words: Vec<&str> =
            first.words.lines().map(str::trim).take_while(|line| !line.is_empty()).collect();
        let (names, presets) = (list(group, |row| format!("`{}`", row.name)), list(group, preset));
        let (words, allowed) = (first_words.join(" "), list(group, |row| (row.allowed)()));
        text.push_str(&format!("| {names} | {words} | {allowed} | {presets} |\n"));
    }
    Some(text)
}

/// What is shown of each key, one after the other; what several have alike is shown once.
fn list(rows: &[KeyRow], show: impl Fn(&KeyRow) -> String) -> String {
    let mut shown: Vec<String> = rows.iter().map(show).collect();
    shown.dedup();
    shown.retain(|one| !one.is_empty());
    shown.join(", ")
}

fn preset(row: &KeyRow) -> String {
    match row.preset {
        Preset::Value(value) => format!("`{value}`"),
        Preset::Words(words, _) => words.to_owned(),
        Preset::Shown(_, shown, _) => shown.to_owned(),
    }
}
