//! Settings of the environment: `TIDEGATE_TABLE_KEY` for each key of the tables that stand once.

use super::nearest::nearest;
use super::{External, Fault, Overrides, single_tables};
use std::collections::BTreeMap;

/// How the name of each variable begins.
const PREFIX: &str = "TIDEGATE_";
/// Variables that are read elsewhere: the file, what is logged, and the gateway that commands ask.
const OTHERS: [&str; 3] = ["CONFIG", "LOG", "URL"];
/// What Kubernetes and container links set of their own accord for a service that is called `tidegate`.
const LINKS: [&str; 3] = ["PORT_", "SERVICE_", "ENV_"];

/// The variables of the environment whose names begin like ours, without empty ones; and the options of the command
/// line, which go before them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Variables {
    environment: BTreeMap<String, String>,
    options: BTreeMap<&'static str, (&'static str, String)>,
}

impl Variables {
    /// Those of ours among `all`. An empty one is as good as none.
    pub fn new(all: impl IntoIterator<Item = (String, String)>) -> Self {
        let is_ours =
            |(name, value): &(String, String)| name.starts_with(PREFIX) && !value.is_empty();
        Self { environment: all.into_iter().filter(is_ours).collect(), options: BTreeMap::new() }
    }

    /// The same below what the command line says.
    pub fn below(self, overrides: &Overrides) -> Self {
        Self { options: overrides.settings().collect(), ..self }
    }

    /// The option or the variable for a key of a table that stands once, and what it says.
    pub(super) fn get(&self, table: &str, key: &str) -> Option<(&str, &str)> {
        let is_single = single_tables().any(|(single, _)| single == table);
        if let Some((option, said)) = self.options.get(&*format!("{table}.{key}")) {
            return Some((*option, said.as_str()));
        }
        let name = is_single.then(|| format!("{PREFIX}{}", variable(table, key)))?;
        let found = self.environment.get_key_value(&name);
        found.map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// A warning for each that nothing reads; `externals`: what the configuration takes from the
    /// environment.
    pub(super) fn unknown(&self, externals: &[(Fault, External)]) -> Vec<Fault> {
        let named: Vec<&str> = externals.iter().filter_map(|(_, it)| it.variable()).collect();
        let keys = single_tables()
            .flat_map(|(table, rows)| rows.iter().map(move |row| variable(table, row.name)));
        let known: Vec<String> = keys.chain(OTHERS.map(str::to_owned)).collect();
        let mut warnings = Vec::new();
        for name in self.environment.keys().filter(|name| !named.contains(&name.as_str())) {
            let own = name.strip_prefix(PREFIX).unwrap_or(name);
            let is_link = own == "PORT" || LINKS.iter().any(|link| own.starts_with(link));
            if is_link || known.iter().any(|known| known == own) {
                continue;
            }
            // The name of a key with its table, or without it.
            let is_inner = |outer: &str, inner: &str| {
                outer.strip_suffix(inner).is_some_and(|table| table.ends_with('_'))
            };
            let same = known.iter().find(|known| is_inner(own, known) || is_inner(known, own));
            let lower: Vec<String> = known.iter().map(|name| name.to_lowercase()).collect();
            let near = || nearest(own, lower.iter().map(String::as_str)).map(str::to_uppercase);
            let message = match same.cloned().or_else(near) {
                Some(meant) => format!("no key has this variable; did you mean {PREFIX}{meant}?"),
                None => format!(
                    "no key has this variable; a setting is {PREFIX}TABLE_KEY, like {PREFIX}SERVER_PUBLIC_URL"
                ),
            };
            warnings.push(Fault { file: name.clone(), line: 0, key: String::new(), message });
        }
        warnings
    }
}

/// The variable for a key, without what all have in common.
fn variable(table: &str, key: &str) -> String {
    match (table, key) {
        ("server", "admin_token") => "ADMIN_TOKEN".to_owned(),
        _ => format!("{table}_{key}").to_uppercase(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check_with;
    use crate::tests::values;

    fn variables(pairs: &[(&str, &str)]) -> Variables {
        Variables::new(pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())))
    }

    /// What is made of variables, and of a file below them behind a line of its own: the values that are no defaults
    /// and the warnings, or the faults.
    #[test]
    fn variables_are_read_over_the_file() {
        let usual = values(&check_with("f", "", &variables(&[])).unwrap());
        let mut all = String::new();
        for case in include_str!("tests/variables.txt").split("# ---\n") {
            let (set, file) = case.split_once("-- f\n").unwrap_or((case, ""));
            let set: Vec<_> = set.lines().filter_map(|line| line.split_once('=')).collect();
            let read = check_with("f", file, &variables(&set));
            let said = read.map_or_else(
                |faults| faults.to_string(),
                |checked| {
                    let own = values(&checked).into_iter().filter(|line| !usual.contains(line));
                    own.collect::<Vec<_>>().join("\n")
                },
            );
            assert!(!said.contains("hush") && !said.contains("with spaces"), "{said}");
            all.push_str(&format!("{case}=> {}\n\n", said.replace('\n', "\n=> ")));
        }
        insta::assert_snapshot!(all);
    }
}
