//! One table of the file: reads its keys and notes what is wrong with each.

use super::keys::{Effect, KeyRow, KeyTable, Reader};
use super::kinds::{Mistakes, is_of_wrong_kind};
use super::nearest::nearest;
use super::sheet::Sheet;
use super::value::{ConfigNode, TableEntry, Value};
use super::{External, TABLES};
use std::collections::{BTreeMap, BTreeSet};
use toml::de::DeValue;

/// A table, or its absence: every key then has its default.
pub(super) struct Section<'s, 't, 'd> {
    sheet: &'s mut Sheet<'t>,
    table: &'d [TableEntry<'d>],
    path: &'static str,
    start: usize,
    /// The keys whose values were read without a mistake.
    read: BTreeSet<&'static str>,
    /// The keys that the environment sets, with their variables.
    variables: BTreeMap<&'static str, String>,
}

impl<'s, 't, 'd> Section<'s, 't, 'd> {
    /// The whole file.
    pub(super) fn root(sheet: &'s mut Sheet<'t>, table: &'d [TableEntry<'d>]) -> Self {
        let mut section = Self::new(sheet, table, "", 0);
        section.refuse_unknown(&TABLES.map(|(name, _)| name));
        section
    }

    fn new(
        sheet: &'s mut Sheet<'t>,
        table: &'d [TableEntry<'d>],
        path: &'static str,
        start: usize,
    ) -> Self {
        let (read, variables) = (BTreeSet::new(), BTreeMap::new());
        Self { sheet, table, path, start, read, variables }
    }

    /// The table `[name]`, read over the presets.
    pub(super) fn table<T: Default>(
        &mut self,
        name: &'static str,
        keys: &KeyTable<T>,
        check: impl FnOnce(&mut Section<'_, 't, 'd>, &mut T),
    ) -> T {
        let mut target = T::default();
        let (mut table, mut start) = (&[][..], 0);
        if let Some(ConfigNode { at, value }) = self.value(name) {
            start = *at;
            match value {
                Value::Table(entries) => table = entries,
                _ => {
                    let message = format!("is a {}; write a table, [{name}]", value.kind());
                    self.sheet.fault(start, name.to_owned(), message);
                }
            }
        }
        let mut section = Section::new(&mut *self.sheet, table, name, start);
        section.fill(keys, &mut target);
        section.fill_from_variables(keys, &mut target);
        section.note_values(keys);
        check(&mut section, &mut target);
        target
    }

    /// The tables `[[name]]`, each read and given to `take`; at most `limit`.
    pub(super) fn tables<T: Default>(
        &mut self,
        name: &'static str,
        keys: &KeyTable<T>,
        limit: usize,
        mut take: impl FnMut(&mut Section<'_, 't, 'd>, T),
    ) {
        let Some(ConfigNode { at, value }) = self.value(name) else { return };
        let wrong = |value: &Value<'_>| format!("{}; write one [[{name}]] for each", value.kind());
        let Value::List(nodes) = value else {
            return self.sheet.fault(*at, name.to_owned(), format!("is a {}", wrong(value)));
        };
        if let Some(first_above) = nodes.get(limit) {
            let message = format!("there are {} of these, the limit is {limit}", nodes.len());
            self.sheet.fault(first_above.at, name.to_owned(), message);
        }
        for ConfigNode { at, value } in nodes.iter().take(limit) {
            let Value::Table(table) = value else {
                self.sheet.fault(*at, name.to_owned(), format!("has a {}", wrong(value)));
                continue;
            };
            let mut target = T::default();
            let mut section = Section::new(&mut *self.sheet, table, name, *at);
            section.fill(keys, &mut target);
            take(&mut section, target);
        }
    }

    fn fill<T>(&mut self, keys: &KeyTable<T>, target: &mut T) {
        let known: Vec<&'static str> = keys.rows.iter().map(|row| row.name).collect();
        self.refuse_unknown(&known);
        for (row, read) in keys.rows.iter().zip(keys.readers) {
            let Some(node) = self.value(row.name) else { continue };
            let mut mistakes = Mistakes::new();
            if read(node, &mut mistakes, target) {
                self.read.insert(row.name);
            }
            for (at, message) in mistakes {
                self.sheet.fault(at, join(self.path, row.name), message);
            }
        }
    }

    /// Reads what the environment says over the file.
    fn fill_from_variables<T>(&mut self, keys: &KeyTable<T>, target: &mut T) {
        for (row, read) in keys.rows.iter().zip(keys.readers) {
            let Some((variable, text)) = self.variable(row.name) else { continue };
            self.variables.insert(row.name, variable.to_owned());
            let mistakes = read_variable(text, *read, target);
            match mistakes.is_empty() {
                true => self.read.insert(row.name),
                false => self.read.remove(row.name),
            };
            for (_, message) in mistakes {
                self.sheet.variable_fault(variable, join(self.path, row.name), message);
            }
        }
    }

    /// Notes what the keys say that need a restart.
    fn note_values<T>(&mut self, keys: &KeyTable<T>) {
        for row in keys.rows.iter().filter(|row| row.effect == Effect::Restart) {
            let (place, value) = match (self.variable(row.name), self.value(row.name)) {
                (Some((variable, text)), _) => {
                    (Err(variable.to_owned()), row.shown(|| format!("{text:?}")))
                }
                (None, Some(node)) => {
                    (Ok(self.place(row.name)), row.shown(|| node.value.to_string()))
                }
                (None, None) => {
                    (Ok(self.start), format!("the default, {}", row.default_in_words()))
                }
            };
            self.sheet.note_value(place, join(self.path, row.name), value);
        }
    }

    /// The variable that says a key, and what it says.
    fn variable(&self, key: &str) -> Option<(&'t str, &'t str)> {
        let variables = self.sheet.variables();
        let is_said =
            |key: &str| self.entry(key).is_some() || variables.get(self.path, key).is_some();
        variables.get(self.path, key).or_else(|| variables.last(self.path, key, is_said))
    }

    fn refuse_unknown(&mut self, known: &[&'static str]) {
        for TableEntry { at, key, node } in self.table {
            if !known.contains(key) {
                let is_table = matches!(node.value, Value::Table(_));
                // The keys of a table whose head is broken come to stand at the top.
                if self.path.is_empty() && !is_table && self.sheet.is_broken() {
                    continue;
                }
                let what = if is_table { "table" } else { "key" };
                let message = unknown(what, self.path, key, known);
                self.sheet.fault(*at, join(self.path, key), message);
            }
        }
    }

    fn entry(&self, key: &str) -> Option<&'d TableEntry<'d>> {
        self.table.iter().find(|entry| entry.key == key)
    }

    fn value(&self, key: &str) -> Option<&'d ConfigNode<'d>> {
        self.entry(key).map(|entry| &entry.node)
    }

    /// Notes a fault of a key; where the key is absent, at the head of the table.
    pub(super) fn fault(&mut self, key: &'static str, message: String) {
        match self.variables.get(key) {
            Some(variable) => self.sheet.variable_fault(variable, join(self.path, key), message),
            None => self.sheet.fault(self.place(key), join(self.path, key), message),
        }
    }

    /// Notes that a key was taken but may not do what is expected.
    pub(super) fn warn(&mut self, key: &'static str, message: String) {
        match self.variables.get(key) {
            Some(variable) => self.sheet.variable_warning(variable, join(self.path, key), message),
            None => self.sheet.warn(self.place(key), join(self.path, key), message),
        }
    }

    /// Notes what a key names and is to be found elsewhere.
    pub(super) fn refer(&mut self, key: &str, external: External) {
        match self.variables.get(key) {
            Some(variable) => self.sheet.variable_refer(variable, join(self.path, key), external),
            None => self.sheet.refer(self.place(key), join(self.path, key), external),
        }
    }

    /// Notes that the name of a table is missing.
    pub(super) fn demand_name(&mut self) {
        self.demand("name", &format!("each [[{}]] has its own name", self.path));
    }

    /// Notes that a key is missing; `meant` says what to do.
    pub(super) fn demand(&mut self, key: &'static str, meant: &str) {
        // A broken line may be the very one that the key stood on.
        if !self.has(key) && !self.sheet.is_broken() {
            self.fault(key, format!("is missing; {meant}"));
        }
    }

    /// Whether the key is written, in the file or in the environment.
    pub(super) fn has(&self, key: &str) -> bool {
        self.entry(key).is_some() || self.variables.contains_key(key)
    }

    /// Whether both keys are written at one place; what the environment says covers what the file says.
    pub(super) fn has_both(&self, one: &str, other: &str) -> bool {
        let by_variable = |key: &str| self.variables.contains_key(key);
        self.has(one) && self.has(other) && by_variable(one) == by_variable(other)
    }

    /// Whether the key is written and its value could be read.
    pub(super) fn is_read(&self, key: &str) -> bool {
        self.read.contains(key)
    }

    /// The byte offset of a key; that of the head of the table where the key is absent.
    pub(super) fn place(&self, key: &str) -> usize {
        self.entry(key).map_or(self.start, |entry| entry.at)
    }

    /// Whether a key is a list of nothing.
    pub(super) fn is_empty_list(&self, key: &str) -> bool {
        matches!(self.value(key), Some(ConfigNode { value: Value::List(list), .. }) if list.is_empty())
    }

    /// Notes that tables need a restart, at the first of them.
    pub(super) fn note_tables(&mut self, name: &'static str) {
        let first = match self.value(name) {
            Some(ConfigNode { value: Value::List(nodes), .. }) => nodes.first().map(|node| node.at),
            _ => None,
        };
        self.note_restart(first, name);
    }

    /// Notes that something needs a restart which is written `at` a place first, if at all.
    pub(super) fn note_restart(&mut self, at: Option<usize>, key: &str) {
        let value = at.map_or("none", |_| "what was written");
        self.sheet.note_value(Ok(at.unwrap_or_default()), key.to_owned(), value.to_owned());
    }

    /// The texts of a list, with their places.
    pub(super) fn texts(&self, key: &str) -> Vec<(usize, &'d str)> {
        let Some(ConfigNode { value: Value::List(nodes), .. }) = self.value(key) else {
            return Vec::new();
        };
        let text = |node: &'d ConfigNode<'d>| match node.value {
            Value::Text(text) => Some((node.at, text)),
            _ => None,
        };
        nodes.iter().filter_map(text).collect()
    }

    /// The file under examination, for what is found when all tables were read.
    pub(super) fn sheet(&mut self) -> &mut Sheet<'t> {
        self.sheet
    }

    /// The line of the table's head, for messages that point back at it.
    pub(super) fn line(&self) -> usize {
        self.sheet.line(self.start)
    }
}

/// Reads a value out of a variable: as a text, and where the key takes none, as TOML. What is a table of TOML is one
/// first, as in the file, and a text where the key takes no table.
fn read_variable<T>(text: &str, read: Reader<T>, target: &mut T) -> Mistakes {
    let written = Some(text.trim()).and_then(|text| DeValue::parse(text).ok());
    let is_table = matches!(written.as_ref().map(toml::Spanned::get_ref), Some(DeValue::Table(_)));
    let as_text = ConfigNode { at: 0, value: Value::Text(text) };
    let as_toml = written.as_ref().map(ConfigNode::from_toml);
    let mut mistakes = Mistakes::new();
    let (first, second) =
        if is_table { (as_toml, Some(as_text)) } else { (Some(as_text), as_toml) };
    for node in [first, second].into_iter().flatten() {
        mistakes.clear();
        if read(&node, &mut mistakes, target)
            || !mistakes.iter().any(|(_, message)| is_of_wrong_kind(message))
        {
            break;
        }
    }
    mistakes
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

/// What is wrong with an unknown key, with the key that was probably meant.
pub(super) fn unknown(what: &str, path: &str, written: &str, known: &[&'static str]) -> String {
    if let Some(meant) = nearest(written, known.iter().copied()) {
        return format!("unknown {what}; did you mean {meant}?");
    }
    let has = |rows: &[KeyRow]| rows.iter().any(|row| row.name == written);
    let home = TABLES.iter().find(|(table, rows)| *table != path && has(rows));
    if let Some((table, _)) = home {
        return format!("unknown {what} here; {written} belongs in [{table}]");
    }
    format!("unknown {what}; known are {}", known.join(", "))
}
