//! What `tidegate import` and `tidegate export` print: what could not be taken, by line, and a
//! summary.

use super::print_lines;
use crate::app::{AppError, Imported, ImportedState, LeftOutCredentials};
use std::io::Write;
use std::path::Path;
use tidegate_core::model::{ListPlace, counted};
use tidegate_core::terminal::printable;

/// How many feeds that were added are shown one by one.
const SHOWN: usize = 50;

/// Prints what an import did: problems to `err`, the rest to `out`.
pub(super) fn print(
    imported: &Imported,
    file: &Path,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<(), AppError> {
    let file = file.display();
    let mut words = String::new();
    match imported {
        Imported::List { plan, problems, unnamed } => {
            let repaired =
                problems.iter().map(|p| (p.line, format!("{file}:{}: {}", p.line, p.message)));
            let refused = plan.refused.iter().map(|refused| {
                let address =
                    refused.address.as_ref().map(|a| format!("{a}: ")).unwrap_or_default();
                (
                    refused.line,
                    format!("{file}:{}: not taken: {address}{}", refused.line, refused.why),
                )
            });
            let mut lines: Vec<(usize, String)> = repaired.chain(refused).collect();
            lines.sort_by_key(|(line, _)| *line);
            for (_, line) in lines {
                // Nobody is left to be told when standard error itself is gone.
                let _ = writeln!(err, "{}", printable(&line));
            }
            for record in plan.new.iter().take(SHOWN) {
                words.push_str(&format!("added     {}\n", record.name));
            }
            if plan.new.len() > SHOWN {
                words.push_str(&format!("added     … and {} more\n", plan.new.len() - SHOWN));
            }
            let mut said = vec![
                format!("{} added", counted(plan.new.len(), "feed")),
                format!("{} known already", plan.known),
                format!("{} not taken", plan.refused.len()),
            ];
            if plan.again > 0 {
                said.push(format!("{} in a further folder", plan.again));
            }
            if !plan.placed.is_empty() {
                said.push(format!("{} given another place", plan.placed.len()));
            }
            if plan.deeper > 0 {
                let most = ListPlace::DEPTH;
                said.push(format!("{} deeper than {most} folders are kept", plan.deeper));
            }
            if plan.deleted > 0 {
                said.push(format!("{} deleted in the list", plan.deleted));
            }
            let repaired = problems.len().saturating_add(*unnamed);
            if repaired > 0 {
                said.push(format!("{repaired} problems in the list"));
            }
            words.push_str(&format!("{}\n", said.join(", ")));
        }
        Imported::State(carried) => {
            words = carried_words("brought in", carried);
            words.push_str(&left_out_words(&carried.left_out, "give them again to"));
        }
    }
    print_lines(&words, out)
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
    use crate::app::{ImportPlan, RefusedOutline};
    use tidegate_format::parse::opml::OpmlProblem;

    #[test]
    fn every_line_has_its_place() {
        let refused = |line, address: Option<&str>, why: &str| RefusedOutline {
            line,
            address: address.map(str::to_owned),
            why: why.to_owned(),
        };
        let plan = ImportPlan {
            known: 2,
            refused: vec![refused(9, Some("ftp://a\u{1b}[2J/"), "no"), refused(3, None, "empty")],
            ..ImportPlan::default()
        };
        let problems = vec![OpmlProblem { line: 5, message: "a '&' is not escaped".to_owned() }];
        let imported = Imported::List { plan, problems, unnamed: 1 };
        let (mut out, mut err) = (Vec::new(), Vec::new());
        print(&imported, Path::new("l.opml"), &mut out, &mut err).unwrap();
        assert_eq!(
            String::from_utf8(err).unwrap(),
            "l.opml:3: not taken: empty\nl.opml:5: a '&' is not escaped\n\
             l.opml:9: not taken: ftp://a[2J/: no\n"
        );
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "0 feeds added, 2 known already, 2 not taken, 2 problems in the list\n"
        );
    }

    #[test]
    fn who_needs_credentials_again_is_named() {
        let named =
            ["a", "b"].map(|name| tidegate_core::model::FeedName::new(name).unwrap()).to_vec();
        let left_out = LeftOutCredentials { named, count: 3, filed: 1 };
        assert_eq!(
            left_out_words(&left_out, "give them again to"),
            "the file has no credentials of feeds: give them again to a, b and 1 more\n\
             1 feed of the configuration file has theirs from there\n"
        );
        assert_eq!(left_out_words(&LeftOutCredentials::default(), "x"), "");
    }

    #[test]
    fn a_state_is_summed_up() {
        let carried = ImportedState { feeds: 1, items: 7, bytes: 900, ..ImportedState::default() };
        let mut out = Vec::new();
        print_export(&carried, Path::new("s.tg"), &mut out).unwrap();
        let said = "1 feed with 7 items written to s.tg, 900 bytes\n";
        assert_eq!(String::from_utf8(out).unwrap(), said);
    }
}
