//! What `tidegate pull` prints: a line for each item that changed, and a summary.

use super::print_lines;
use super::table::shown;
use crate::app::{AppError, Pulled};
use std::io::Write;
use std::path::Path;
use tidegate_core::model::counted;
use tidegate_core::terminal::printable;
use tidegate_format::pull::{ChangeKind, PulledChange};

/// The longest title that is shown, in characters.
const TITLE_LIMIT: usize = 120;
/// How many changes of one kind are shown one by one.
const SHOWN: usize = 50;

/// Prints what a pull did; warnings go to `err`.
pub(super) fn print(
    pulled: &Pulled,
    into: &Path,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<(), AppError> {
    for warning in &pulled.outcome.warnings {
        // Nobody is left to be told when standard error itself is gone.
        let _ = writeln!(err, "warning: {}", printable(warning));
    }
    print_lines(&summary(pulled, into), out)
}

fn summary(pulled: &Pulled, into: &Path) -> String {
    let outcome = &pulled.outcome;
    let mut lines = Vec::new();
    if outcome.was_out_of_sync {
        lines.push("the replica had missed changes and was read anew".to_owned());
    }
    let mut counts = Vec::new();
    for kind in ChangeKind::ALL {
        let of_kind: Vec<_> = outcome.changes.iter().filter(|c| c.kind == kind).collect();
        for change in of_kind.iter().take(SHOWN) {
            lines.push(format!("{:9} {}", kind.name(), title_of(change)));
        }
        if of_kind.len() > SHOWN {
            lines.push(format!("{:9} … and {} more", kind.name(), of_kind.len() - SHOWN));
        }
        if !of_kind.is_empty() {
            counts.push(format!("{} {}", of_kind.len(), kind.name()));
        }
    }
    let changed = if counts.is_empty() { "no change".to_owned() } else { counts.join(", ") };
    let deleted = match outcome.tombstones {
        0 => String::new(),
        tombstones => format!(" and {tombstones} deleted"),
    };
    lines.push(format!(
        "{changed}; {}{deleted} in {}; {}, {}",
        counted(outcome.living, "item"),
        into.join("replica.xml").display(),
        counted(pulled.requests, "request"),
        counted(pulled.bytes, "byte")
    ));
    lines.join("\n") + "\n"
}

/// What a changed item is called, cut to a readable length.
fn title_of(change: &PulledChange) -> String {
    shown(change.title.as_deref().unwrap_or(&change.id), TITLE_LIMIT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_format::pull::{PullOutcome, State};

    fn printed(changes: Vec<PulledChange>) -> String {
        let outcome = PullOutcome {
            replica: None,
            state: State::default(),
            changes,
            warnings: vec!["an archive\u{7} is missing".to_owned()],
            living: 7,
            tombstones: 2,
            was_out_of_sync: false,
        };
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let pulled = Pulled { outcome, requests: 3, bytes: 1234 };
        print(&pulled, Path::new("dir"), &mut out, &mut err).unwrap();
        String::from_utf8([out, err].concat()).unwrap()
    }

    #[test]
    fn a_summary_says_what_happened_and_titles_cannot_drive_the_terminal() {
        let change = |kind, title: &str| PulledChange {
            kind,
            id: "urn:1".to_owned(),
            title: Some(title.to_owned()),
        };
        let mut changes = vec![
            change(ChangeKind::Deleted, "\u{1b}[2J\u{202e}gone\n\nfor good"),
            PulledChange { title: None, ..change(ChangeKind::New, "") },
        ];
        changes.extend((0..60).map(|n| change(ChangeKind::Changed, &format!("post {n}"))));
        let all = format!("{}\n{}", printed(Vec::new()), printed(changes));
        assert!(!all.contains(|c: char| c != '\n' && c.is_control() || c == '\u{202e}'));
        insta::assert_snapshot!(all);
    }
}
