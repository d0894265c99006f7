//! One table of the file: reads its keys and notes what is wrong with each.

use super::fault::Fault;
use super::keys::{KeyRow, KeyTable, ReadKey};
use super::kinds::{Mistakes, is_of_wrong_kind};
use super::nearest::nearest;
use super::sheet::Sheet;
use super::value::{ConfigNode, TableEntry, Value};
use super::{External, TABLES};
use std::collections::{BTreeMap, BTreeSet};
use toml::de::DeValue;

/// A table, or its absence: every key then has its default.
pub(super) struct Section<'s, 't, 'd> {
    /// The file under examination.
    pub(super) sheet: &'s mut Sheet<'t>,
    table: &'d [TableEntry<'d>],
    path: &'static str,
    start: usize,
    /// The keys whose values were read without a mistake.
    read: BTreeSet<&'static str>,
}

impl<'s, 't, 'd> Section<'s, 't, 'd> {
    /// The whole file.
    pub(super) fn root(sheet: &'s mut Sheet<'t>, table: &'d [TableEntry<'d>]) -> Self {
        let mut section = Self { sheet, table, path: "", start: 0, read: BTreeSet::new() };
        section.note_place("", 0);
        section.refuse_unknown(&TABLES.map(|(name, _)| name));
        section
    }

    /// The table `[name]`, read over the presets.
    pub(super) fn table<T: Default>(
        &mut self,
        name: &'static str,
        keys: &KeyTable<T>,
        check: impl FnOnce(&mut Section<'_, 't, 'd>, &mut T),
    ) -> T {
        let (mut table, mut start) = (&[][..], 0);
        if let Some(node) = self.value(name) {
            start = node.at;
            match &node.value {
                Value::Table(entries) => table = entries,
                _ => {
                    let message = node.refusal(&format!("a table, [{name}]"));
                    self.sheet.fault(start, name, message);
                }
            }
        }
        let place = (name, start);
        let (mut target, mut section) = Section::read(&mut *self.sheet, table, place, keys);
        let written = keys.rows.iter().filter(|row| section.has(row.name));
        let places: Vec<Fault> = written.map(|row| section.place(row.name)).collect();
        let places = places.into_iter().map(|place| (place.key.clone(), place));
        section.sheet.checked.places.extend(places);
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
        let Some(list) = self.value(name) else { return };
        let wanted = format!("one [[{name}]] for each");
        let Value::List(nodes) = &list.value else {
            return self.sheet.fault(list.at, name, list.refusal(&wanted));
        };
        if let Some(first_above) = nodes.get(limit) {
            let message = format!("there are {} of these, the limit is {limit}", nodes.len());
            self.sheet.fault(first_above.at, name, message);
        }
        for node in nodes.iter().take(limit) {
            let Value::Table(table) = &node.value else {
                let message = format!("has a {}; write {wanted}", node.kind());
                self.sheet.fault(node.at, name, message);
                continue;
            };
            let place = (name, node.at);
            let (target, mut section) = Section::read(&mut *self.sheet, table, place, keys);
            take(&mut section, target);
        }
    }

    /// Reads a table over the presets, and what the environment says over it.
    fn read<T: Default>(
        sheet: &'s mut Sheet<'t>,
        table: &'d [TableEntry<'d>],
        (path, start): (&'static str, usize),
        keys: &KeyTable<T>,
    ) -> (T, Self) {
        let mut section = Self { sheet, table, path, start, read: BTreeSet::new() };
        let known: Vec<&'static str> = keys.rows.iter().map(|row| row.name).collect();
        section.refuse_unknown(&known);
        section.note_place(path, start);
        let mut target = T::default();
        for (row, read) in keys.iter() {
            if let Some(node) = section.value(row.name) {
                let mut mistakes = Mistakes::new();
                if read(node, &mut mistakes, &mut target) {
                    section.read.insert(row.name);
                }
                for (at, message) in mistakes {
                    section.sheet.fault(at, &join(path, row.name), message);
                }
            }
        }
        for (row, read) in keys.iter() {
            let Some((_, text)) = section.variable(row.name) else { continue };
            let mistakes = read_variable(text, read, &mut target);
            match mistakes.is_empty() {
                true => section.read.insert(row.name),
                false => section.read.remove(row.name),
            };
            for (_, message) in mistakes {
                section.fault(row.name, message);
            }
        }
        (target, section)
    }

    /// Notes where a table is that stands in the file first of its name.
    fn note_place(&mut self, table: &str, at: usize) {
        let place = self.sheet.place(at, table);
        self.sheet.checked.places.entry(table.to_owned()).or_insert(place);
    }

    fn refuse_unknown(&mut self, known: &[&'static str]) {
        for TableEntry { at, key, node } in self.table.iter().filter(|e| !known.contains(&e.key)) {
            let is_table = matches!(node.value, Value::Table(_));
            // The keys of a table whose head is broken come to stand at the top.
            if self.path.is_empty() && !is_table && self.sheet.is_broken() {
                continue;
            }
            let what = if is_table { "table" } else { "key" };
            let message = unknown(what, self.path, key, known);
            self.sheet.fault(*at, &join(self.path, key), message);
        }
    }

    fn entry(&self, key: &str) -> Option<&'d TableEntry<'d>> {
        self.table.iter().find(|entry| entry.key == key)
    }

    fn value(&self, key: &str) -> Option<&'d ConfigNode<'d>> {
        self.entry(key).map(|entry| &entry.node)
    }

    /// The variable that says a key, and what it says.
    fn variable(&self, key: &str) -> Option<(&'t str, &'t str)> {
        self.sheet.variables.get(self.path, key)
    }

    /// The place of a key, without a message; the head of the table where the key is absent.
    fn place(&self, key: &str) -> Fault {
        let place = self.sheet.place(self.offset(key), &join(self.path, key));
        match self.variable(key) {
            Some((variable, _)) => Fault { file: variable.to_owned(), line: 0, ..place },
            None => place,
        }
    }

    /// Notes a fault of a key.
    pub(super) fn fault(&mut self, key: &str, message: impl Into<String>) {
        let fault = Fault { message: message.into(), ..self.place(key) };
        self.sheet.note_fault(fault);
    }

    /// Notes that a key was taken but may not do what is expected.
    pub(super) fn warn(&mut self, key: &'static str, message: String) {
        let warning = Fault { message, ..self.place(key) };
        self.sheet.checked.warnings.push(warning);
    }

    /// Notes what a key names and is to be found elsewhere.
    pub(super) fn refer(&mut self, key: &str, external: External) {
        let place = self.place(key);
        self.sheet.checked.externals.push((place, external));
    }

    /// Notes that a key is missing; `meant` says what to do.
    pub(super) fn demand(&mut self, key: &'static str, meant: &str) {
        // A broken line may be the very one that the key stood on.
        if !self.has(key) && !self.sheet.is_broken() {
            self.fault(key, format!("is missing; {meant}"));
        }
    }

    /// Takes the name of a table, which no other may have; `None` where it is missing or taken.
    pub(super) fn take_name<N: Ord + Clone + ToString>(
        &mut self,
        name: Option<N>,
        taken: &mut BTreeMap<N, usize>,
    ) -> Option<N> {
        self.demand("name", &format!("each [[{}]] has its own name", self.path));
        let name = name?;
        if let Some(line) = taken.get(&name) {
            let text = name.to_string();
            self.fault("name", format!("{text:?} is taken by line {line}; each needs its own"));
            return None;
        }
        taken.insert(name.clone(), self.line());
        Some(name)
    }

    /// Whether the key is written, in the file or in the environment.
    pub(super) fn has(&self, key: &str) -> bool {
        self.entry(key).is_some() || self.variable(key).is_some()
    }

    /// Whether both keys are written at one place; what the environment says covers what the file says.
    pub(super) fn has_both(&self, one: &str, other: &str) -> bool {
        let is_outside = |key: &str| self.variable(key).is_some();
        self.has(one) && self.has(other) && is_outside(one) == is_outside(other)
    }

    /// Whether the key is written and its value could be read.
    pub(super) fn is_read(&self, key: &str) -> bool {
        self.read.contains(key)
    }

    /// The byte offset of a key; that of the head of the table where the key is absent.
    pub(super) fn offset(&self, key: &str) -> usize {
        self.entry(key).map_or(self.start, |entry| entry.at)
    }

    /// The texts of a list, with their places.
    pub(super) fn texts(&self, key: &str) -> Vec<(usize, &'d str)> {
        let Some(ConfigNode { value: Value::List(nodes), .. }) = self.value(key) else {
            return Vec::new();
        };
        nodes.iter().filter_map(|node| Some((node.at, node.text().ok()?))).collect()
    }

    /// Whether a key is a list of nothing.
    pub(super) fn is_empty_list(&self, key: &str) -> bool {
        matches!(self.value(key), Some(ConfigNode { value: Value::List(list), .. }) if list.is_empty())
    }

    /// The line of the table's head, for messages that point back at it.
    pub(super) fn line(&self) -> usize {
        self.sheet.line(self.start)
    }
}

/// Reads a value out of a variable: as a text, and where the key takes none, as TOML. What is a table of TOML is one
/// first, as in the file, and a text where the key takes no table.
fn read_variable<T>(text: &str, read: ReadKey<T>, target: &mut T) -> Mistakes {
    let written = DeValue::parse(text.trim()).ok();
    let as_text = ConfigNode { at: 0, value: Value::Text(text) };
    let as_toml = written.as_ref().map(ConfigNode::from_toml);
    let is_table = matches!(&as_toml, Some(ConfigNode { value: Value::Table(_), .. }));
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
