//! Tables for a terminal.

use tidegate_core::terminal::printable;

/// The longest cell, in characters; the rest of it is cut off.
const CELL: usize = 72;

/// Lines with a column for each heading. A heading that begins with `>` is of numbers, which end at one place.
pub(super) fn table(headings: &[&str], rows: &[Vec<String>]) -> String {
    let names = headings.iter().map(|heading| heading.trim_start_matches('>').to_owned());
    let head: Vec<String> = names.collect();
    let cells = |row: &[String]| row.iter().map(|cell| shown(cell, CELL)).collect::<Vec<_>>();
    let rows: Vec<Vec<String>> =
        std::iter::once(head.as_slice()).chain(rows.iter().map(Vec::as_slice)).map(cells).collect();
    let width = |column: usize| {
        let lengths = rows.iter().filter_map(|row| row.get(column));
        lengths.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..headings.len()).map(width).collect();
    let mut text = String::new();
    for row in &rows {
        let padded = row.iter().zip(&widths).zip(headings).map(|((cell, width), heading)| {
            match heading.starts_with('>') {
                true => format!("{cell:>width$}"),
                false => format!("{cell:<width$}"),
            }
        });
        text.push_str(padded.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text
}

/// Lines of what is said and what about, the latter in a column.
pub(super) fn facts(facts: &[(&str, String)]) -> String {
    let width = facts.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let lines = facts.iter().filter(|(_, said)| !said.is_empty());
    lines.map(|(name, said)| format!("{name:<width$}  {}\n", printable(said))).collect()
}

/// A text fit for a terminal, at most so many characters of it.
pub(super) fn shown(text: &str, limit: usize) -> String {
    let text = printable(text);
    match text.chars().count() > limit {
        true => text.chars().take(limit - 1).chain(['…']).collect(),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_nothing_acts_on_the_terminal() {
        let row = |cells: [&str; 3]| cells.map(str::to_owned).to_vec();
        let rows = [row(["news", "7", "Über\u{1b}[2J\u{202e}alles"]), row(["n", "1200", ""])];
        let text = table(&["NAME", ">ITEMS", "TITLE"], &rows);
        assert_eq!(text, "NAME  ITEMS  TITLE\nnews      7  Über[2Jalles\nn      1200\n");
        let long = table(&["A"], &[vec!["x".repeat(500)]]);
        assert_eq!(long.lines().nth(1).map(|line| line.chars().count()), Some(CELL));
        assert!(long.ends_with("…\n"));
        // What there is nothing to say of is left out.
        let said =
            facts(&[("name", "a".to_owned()), ("held", String::new()), ("why", "b\nc".to_owned())]);
        assert_eq!(said, "name  a\nwhy   b c\n");
    }
}
