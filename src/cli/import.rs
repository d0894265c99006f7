//! What `tidegate import` and `tidegate export` print: what could not be taken, by line, and a
//! summary.

use super::print_lines;
use crate::app::{AppError, ErrorContext, Imported, ImportedState, LeftOutCredentials};
use std::io::Write;
use std::path::Path;
use tidegate_core::model::{ListPlace, counted};
use tidegate_core::terminal::{printable, printable_json};
use tidegate_serve::{ImportedList, ListLine};

/// How many feeds that were added are shown one by one.
const SHOWN: usize = 50;

/// Prints what an import did: problems to `err`, the rest to `out`.
pub(super) fn print(
    imported: &Imported,
    (file, is_json): (&Path, bool),
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<(), AppError> {
    match imported {
        Imported::List { done, .. } if is_json => {
            let answer = serde_json::to_string(done);
            let answer = answer.context("the answer cannot be told")?;
            print_lines(&format!("{}\n", printable_json(&answer)), out)
        }
        Imported::List { done, waits_in } => {
            // Nobody is left to be told when standard error itself is gone.
            let _ = print_lines(&list_mistakes(done, file), err);
            print_lines(&list_words(done, waits_in.as_deref()), out)
        }
        Imported::State(carried) => {
            let mut words = carried_words("brought in", carried);
            words.push_str(&left_out_words(&carried.left_out, "give them again to"));
            print_lines(&words, out)
        }
    }
}

/// What could not be taken of a list, and what was wrong with it, by line.
fn list_mistakes(done: &ImportedList, file: &Path) -> String {
    let refused = done.refused.iter().map(|line| (line, "not taken: "));
    let mut lines: Vec<_> = done.problems.iter().map(|line| (line, "")).chain(refused).collect();
    lines.sort_by_key(|(line, _)| line.line);
    let file = file.display();
    let said = |(line, what): (&ListLine, &str)| {
        format!("{}\n", printable(&format!("{file}:{}: {what}{}", line.line, line.said)))
    };
    lines.into_iter().map(said).collect()
}

fn list_words(done: &ImportedList, waits_in: Option<&Path>) -> String {
    let named = done.added.iter().take(SHOWN);
    let mut words: String = named.map(|name| format!("added     {name}\n")).collect();
    if done.added.len() > SHOWN {
        words.push_str(&format!("added     … and {} more\n", done.added.len() - SHOWN));
    }
    let mut said = vec![
        format!("{} added", counted(done.added.len(), "feed")),
        format!("{} known already", done.known),
        format!("{} not taken", done.not_taken),
    ];
    let seldom = [
        (done.again, "in a further folder".to_owned()),
        (done.placed, "given another place".to_owned()),
        (done.deeper, format!("deeper than {} folders are kept", ListPlace::DEPTH)),
        (done.deleted, "deleted in the list".to_owned()),
    ];
    let seldom = seldom.into_iter().filter(|(count, _)| *count > 0);
    said.extend(seldom.map(|(count, what)| format!("{count} {what}")));
    if done.repaired > 0 {
        said.push(format!("{} in the list", counted(done.repaired, "problem")));
    }
    words.push_str(&format!("{}\n", said.join(", ")));
    if let Some(folder) = waits_in.filter(|_| !done.added.is_empty()) {
        let folder = folder.display();
        words.push_str(&format!(
            "no gateway runs with {folder}: the next start with it polls them\n"
        ));
    }
    words
}

/// Prints what an export wrote.
pub(super) fn print_export(
    carried: &ImportedState,
    file: &Path,
    out: &mut dyn Write,
) -> Result<(), AppError> {
    let mut words = carried_words(&format!("written to {}", file.display()), carried);
    words.push_str(&left_out_words(&carried.left_out, "after an import give them again to"));
    print_lines(&words, out)
}

fn carried_words(done: &str, carried: &ImportedState) -> String {
    format!(
        "{} with {} {done}, {}\n",
        counted(carried.feeds, "feed"),
        counted(carried.items, "item"),
        counted(carried.bytes, "byte")
    )
}

/// Which feeds need their credentials again.
fn left_out_words(left_out: &LeftOutCredentials, todo: &str) -> String {
    let mut words = String::new();
    if left_out.count > 0 {
        let names: Vec<&str> = left_out.named.iter().map(|name| name.as_str()).collect();
        let more = left_out.count - names.len();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let names = names.join(", ");
        words.push_str(&format!("the file has no credentials of feeds: {todo} {names}{more}\n"));
    }
    if left_out.filed > 0 {
        words.push_str(&format!(
            "{} of the configuration file {} theirs from there\n",
            counted(left_out.filed, "feed"),
            if left_out.filed == 1 { "has" } else { "have" }
        ));
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_core::model::FeedName;

    /// Every line has its place; where added feeds wait, and who needs credentials again, is named.
    #[test]
    fn what_was_done_is_said() {
        let names =
            |names: &[&str]| names.iter().map(|name| FeedName::new(name).unwrap()).collect();
        let line = |line, said: &str| ListLine { line, said: said.to_owned() };
        let problems = ImportedList {
            known: 2,
            not_taken: 2,
            refused: vec![line(9, "ftp://a\u{1b}[2J/: no"), line(3, "empty")],
            repaired: 2,
            problems: vec![line(5, "a '&' is not escaped")],
            ..ImportedList::default()
        };
        let added = ImportedList { added: names(&["a"]), ..ImportedList::default() };
        let (mut out, mut err) = (Vec::new(), Vec::new());
        for done in [problems, added] {
            let imported = Imported::List { done, waits_in: Some("data".into()) };
            print(&imported, (Path::new("l.opml"), false), &mut out, &mut err).unwrap();
        }
        let carried = ImportedState { feeds: 1, items: 7, bytes: 900, ..ImportedState::default() };
        print_export(&carried, Path::new("s.tg"), &mut out).unwrap();
        let left_out = LeftOutCredentials { named: names(&["a", "b"]), count: 3, filed: 1 };
        out.extend(left_out_words(&left_out, "give them again to").bytes());
        assert_eq!(left_out_words(&LeftOutCredentials::default(), "x"), "");
        insta::assert_snapshot!(String::from_utf8([out, err].concat()).unwrap());
    }
}
