//! What the rules of judgement are called and say: one table for each question, in the order in which they are asked.

use crate::{document, hole, news, same_item};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    /// Its name, as `tidegate replay --without` has it.
    pub name: &'static str,
    /// What it says, as docs/design/judgement.md has it.
    pub sentence: &'static str,
}

/// The rules that a replay can do without.
pub fn switchable_rules() -> impl Iterator<Item = Rule> {
    let documents = document::RULES.iter().map(|rule| rule.rule);
    let holes = hole::RULES.iter().map(|rule| rule.rule);
    same_item::RULES.into_iter().chain([news::MASK]).chain(documents).chain(holes)
}

/// What is noise in every feed.
pub fn noise_rules() -> impl Iterator<Item = Rule> {
    news::RULES.iter().map(|rule| rule.rule)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(name: &str) -> String {
        let path = format!("{}/../../docs/design/{name}", env!("CARGO_MANIFEST_DIR"));
        std::fs::read_to_string(path).unwrap()
    }

    /// The rows of tables whose first column is a name in code, each with its first columns.
    fn rows<const N: usize>(text: &str) -> Vec<[&str; N]> {
        let lines = text.lines().filter(|line| line.starts_with("| `"));
        let cells = lines.map(|line| {
            let mut cells = line.trim_matches('|').split(" |");
            std::array::from_fn(|_| cells.next().unwrap_or_default().trim())
        });
        cells.collect()
    }

    #[test]
    fn the_page_has_every_rule_with_its_sentence() {
        let (same_item, others) =
            switchable_rules().partition::<Vec<_>, _>(|rule| same_item::RULES.contains(rule));
        let code = same_item.into_iter().chain(noise_rules()).chain(others);
        let code: Vec<_> = code.map(|r| [format!("`{}`", r.name), r.sentence.to_owned()]).collect();
        assert_eq!(rows::<2>(&page("judgement.md")), code);
    }

    #[test]
    fn what_each_rule_is_worth_is_measured() {
        let text = page("rule-worth.md");
        let code: Vec<_> = switchable_rules().map(|rule| [format!("`{}`", rule.name)]).collect();
        assert_eq!(rows::<1>(&text), code);
    }
}
