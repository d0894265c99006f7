//! One table of the file: takes its keys one by one and notes what is wrong with each.

use super::nearest::nearest;
use super::sheet::Sheet;
use super::{KNOWN, duration};
use std::ops::{Range, RangeInclusive};
use std::time::Duration;
use toml::de::{DeTable, DeValue};

/// A value with its place.
pub(super) type Located<'d> = toml::Spanned<DeValue<'d>>;

/// A table, or its absence: every key then has its default.
pub(super) struct Section<'s, 't, 'd> {
    sheet: &'s mut Sheet<'t>,
    table: Option<&'d DeTable<'d>>,
    path: &'static str,
    start: usize,
}

impl<'s, 't, 'd> Section<'s, 't, 'd> {
    /// The whole file.
    pub(super) fn root(
        sheet: &'s mut Sheet<'t>,
        table: &'d DeTable<'d>,
        known: &[&'static str],
    ) -> Self {
        let mut section = Self { sheet, table: Some(table), path: "", start: 0 };
        section.refuse_unknown(known);
        section
    }

    /// The table `[name]`.
    pub(super) fn table(
        &mut self,
        name: &'static str,
        known: &[&'static str],
    ) -> Section<'_, 't, 'd> {
        let mut table = None;
        let mut start = 0;
        if let Some(value) = self.value(name) {
            start = value.span().start;
            table = value.get_ref().as_table();
            if table.is_none() {
                let message = format!("is a {}; write a table, [{name}]", kind(value.get_ref()));
                self.sheet.fault(start, name.to_owned(), message);
            }
        }
        let mut section = Section { sheet: &mut *self.sheet, table, path: name, start };
        section.refuse_unknown(known);
        section
    }

    /// The tables `[[name]]`, each given to `read`; at most `limit`.
    pub(super) fn tables(
        &mut self,
        name: &'static str,
        known: &[&'static str],
        limit: usize,
        mut read: impl FnMut(&mut Section<'_, 't, 'd>),
    ) {
        let Some(value) = self.value(name) else { return };
        let whole = value.span().start;
        let Some(array) = value.get_ref().as_array() else {
            let message = format!("is a {}; write one [[{name}]] for each", kind(value.get_ref()));
            return self.sheet.fault(whole, name.to_owned(), message);
        };
        if let Some(first_above) = array.get(limit) {
            let message = format!("there are {} of these, the limit is {limit}", array.len());
            self.sheet.fault(first_above.span().start, name.to_owned(), message);
        }
        for element in array.iter().take(limit) {
            let start = element.span().start;
            let Some(table) = element.get_ref().as_table() else {
                let message =
                    format!("has a {}; write one [[{name}]] for each", kind(element.get_ref()));
                self.sheet.fault(start, name.to_owned(), message);
                continue;
            };
            let sheet = &mut *self.sheet;
            let mut section = Section { sheet, table: Some(table), path: name, start };
            section.refuse_unknown(known);
            read(&mut section);
        }
    }

    fn refuse_unknown(&mut self, known: &[&'static str]) {
        let Some(table) = self.table else { return };
        for (key, value) in table {
            let written: &str = key.get_ref();
            if !known.contains(&written) {
                let is_table = value.get_ref().is_table();
                // The keys of a table whose head is broken come to stand at the top.
                if self.path.is_empty() && !is_table && self.sheet.is_broken() {
                    continue;
                }
                let what = if is_table { "table" } else { "key" };
                let message = unknown(what, self.path, written, known);
                self.sheet.fault(key.span().start, join(self.path, written), message);
            }
        }
    }

    fn value(&self, key: &'static str) -> Option<&'d Located<'d>> {
        self.table.and_then(|table| table.get(key))
    }

    fn key_start(&self, key: &'static str) -> Option<usize> {
        let (written, _) = self.table?.get_key_value(key)?;
        Some(written.span().start)
    }

    /// Notes a fault of a key; where the key is absent, at the head of the table.
    pub(super) fn fault(&mut self, key: &'static str, message: String) {
        let at = self.key_start(key).unwrap_or(self.start);
        self.sheet.fault(at, join(self.path, key), message);
    }

    /// Notes a fault of a key at a place of its own, like one element of a list.
    pub(super) fn fault_at(&mut self, span: &Range<usize>, key: &'static str, message: String) {
        self.sheet.fault(span.start, join(self.path, key), message);
    }

    /// Notes that a key was taken but may not do what is expected.
    pub(super) fn warn(&mut self, key: &'static str, message: String) {
        let at = self.key_start(key).unwrap_or(self.start);
        self.sheet.warn(at, join(self.path, key), message);
    }

    /// Whether the key is written.
    pub(super) fn has(&self, key: &'static str) -> bool {
        self.value(key).is_some()
    }

    /// The byte offset of a key; that of the head of the table where the key is absent.
    pub(super) fn place(&self, key: &'static str) -> usize {
        self.key_start(key).unwrap_or(self.start)
    }

    /// Whether a key is a list of nothing.
    pub(super) fn is_empty_list(&self, key: &'static str) -> bool {
        let list = self.value(key).and_then(|value| value.get_ref().as_array());
        list.is_some_and(|list| list.is_empty())
    }

    /// The file under examination, for what is found when all tables were read.
    pub(super) fn sheet(&mut self) -> &mut Sheet<'t> {
        self.sheet
    }

    /// The line of the table's head, for messages that point back at it.
    pub(super) fn line(&self) -> usize {
        self.sheet.line(self.start)
    }

    fn wrong_kind(&mut self, key: &'static str, value: &DeValue<'_>, wanted: &str) {
        self.fault(key, format!("is a {}; write {wanted}", kind(value)));
    }

    /// A text that `check` takes; `None` where the key is absent or wrong.
    pub(super) fn text<T, E: std::fmt::Display>(
        &mut self,
        key: &'static str,
        check: impl FnOnce(&str) -> Result<T, E>,
    ) -> Option<T> {
        let value = self.value(key)?.get_ref();
        let Some(text) = value.as_str() else {
            self.wrong_kind(key, value, "a text in quotes");
            return None;
        };
        match check(text) {
            Ok(checked) => Some(checked),
            Err(error) => {
                self.fault(key, error.to_string());
                None
            }
        }
    }

    /// A text that must be there; its absence is a fault too.
    pub(super) fn required<T, E: std::fmt::Display>(
        &mut self,
        key: &'static str,
        check: impl FnOnce(&str) -> Result<T, E>,
    ) -> Option<T> {
        let meant = format!("each [[{}]] has its own {key}", self.path);
        self.required_as(key, &meant, check)
    }

    /// The same; `meant` says what to do where it is missing.
    pub(super) fn required_as<T, E: std::fmt::Display>(
        &mut self,
        key: &'static str,
        meant: &str,
        check: impl FnOnce(&str) -> Result<T, E>,
    ) -> Option<T> {
        // A broken line may be the very one that the key stood on.
        if !self.has(key) && !self.sheet.is_broken() {
            self.fault(key, format!("is missing; {meant}"));
        }
        self.text(key, check)
    }

    /// One of a few words.
    pub(super) fn choice<T: Copy>(&mut self, key: &'static str, words: &[(&str, T)]) -> Option<T> {
        self.text(key, |text| {
            let found = words.iter().find(|(word, _)| *word == text);
            found.map(|(_, value)| *value).ok_or_else(|| {
                let all: Vec<String> = words.iter().map(|(word, _)| format!("{word:?}")).collect();
                format!("{text:?} is unknown; write one of {}", all.join(", "))
            })
        })
    }

    /// A duration within bounds.
    pub(super) fn duration(
        &mut self,
        key: &'static str,
        bounds: &RangeInclusive<Duration>,
    ) -> Option<Duration> {
        self.text(key, |text| {
            let value = duration::duration(text).map_err(|error| error.to_string())?;
            if bounds.contains(&value) {
                return Ok(value);
            }
            let (least, most) =
                (duration::written(*bounds.start()), duration::written(*bounds.end()));
            Err(format!("{text:?} is out of bounds; write {least:?} to {most:?}"))
        })
    }

    /// `true` or `false`.
    pub(super) fn boolean(&mut self, key: &'static str) -> Option<bool> {
        let value = self.value(key)?.get_ref();
        if value.as_bool().is_none() {
            self.wrong_kind(key, value, "true or false, without quotes");
        }
        value.as_bool()
    }

    /// A whole number within bounds.
    pub(super) fn number(
        &mut self,
        key: &'static str,
        bounds: &RangeInclusive<u32>,
    ) -> Option<u32> {
        let value = self.value(key)?.get_ref();
        let wanted = format!("a whole number, {} to {}", bounds.start(), bounds.end());
        let Some(integer) = value.as_integer() else {
            self.wrong_kind(key, value, &wanted);
            return None;
        };
        let number = u32::from_str_radix(integer.as_str(), integer.radix()).ok();
        let number = number.filter(|number| bounds.contains(number));
        if number.is_none() {
            self.fault(key, format!("{integer} is out of bounds; write {wanted}"));
        }
        number
    }

    /// The elements of a list, at most `limit`; `None` where the key is absent or no list.
    pub(super) fn elements(
        &mut self,
        key: &'static str,
        limit: usize,
        wanted: &str,
    ) -> Option<&'d [Located<'d>]> {
        let value = self.value(key)?.get_ref();
        let Some(array) = value.as_array() else {
            self.wrong_kind(key, value, wanted);
            return None;
        };
        if array.len() > limit {
            self.fault(key, format!("has {} entries, the limit is {limit}", array.len()));
        }
        array.get(..limit.min(array.len()))
    }

    /// A list of texts with the place of each, at most `limit`; `None` where the key is absent or
    /// no list.
    pub(super) fn list(
        &mut self,
        key: &'static str,
        limit: usize,
        wanted: &str,
    ) -> Option<Vec<(Range<usize>, &'d str)>> {
        let elements = self.elements(key, limit, wanted)?;
        let mut texts = Vec::new();
        for element in elements {
            match element.get_ref().as_str() {
                Some(text) => texts.push((element.span(), text)),
                None => {
                    let message = format!("has a {}; write {wanted}", kind(element.get_ref()));
                    self.fault_at(&element.span(), key, message);
                }
            }
        }
        Some(texts)
    }

    /// Whether the value is a boolean, where a key may be that or something else.
    pub(super) fn is_boolean(&self, key: &'static str) -> bool {
        self.value(key).is_some_and(|value| value.get_ref().is_bool())
    }
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

/// What a value is, in words.
pub(super) fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "text",
        DeValue::Integer(_) | DeValue::Float(_) => "number",
        DeValue::Boolean(_) => "boolean",
        DeValue::Datetime(_) => "date",
        DeValue::Array(_) => "list",
        DeValue::Table(_) => "table",
    }
}

/// What is wrong with an unknown key, with the key that was probably meant.
pub(super) fn unknown(what: &str, path: &str, written: &str, known: &[&'static str]) -> String {
    if let Some(meant) = nearest(written, known.iter().copied()) {
        return format!("unknown {what}; did you mean {meant}?");
    }
    let home = KNOWN.iter().find(|(table, keys)| *table != path && keys.contains(&written));
    if let Some((table, _)) = home {
        return format!("unknown {what} here; {written} belongs in [{table}]");
    }
    format!("unknown {what}; known are {}", known.join(", "))
}
