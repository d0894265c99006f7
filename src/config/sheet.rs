//! The file under examination: where its lines begin, and what was found in it.

use super::fault::{Fault, Faults};
use super::variables::Variables;
use super::{Checked, Config, External, WrittenKey};
use std::collections::{BTreeMap, BTreeSet};

/// The file under examination: its name, where its lines begin, and what was found so far.
pub(super) struct Sheet<'t> {
    file: &'t str,
    text: &'t str,
    variables: &'t Variables,
    written: BTreeMap<String, WrittenKey>,
    line_ends: Vec<usize>,
    faults: Vec<Fault>,
    warnings: Vec<Fault>,
    externals: Vec<(Fault, External)>,
    broken_lines: BTreeSet<usize>,
}

impl<'t> Sheet<'t> {
    pub(super) fn new(file: &'t str, text: &'t str, variables: &'t Variables) -> Self {
        let line_ends = memchr::memchr_iter(b'\n', text.as_bytes()).collect();
        let (faults, warnings, externals) = (Vec::new(), Vec::new(), Vec::new());
        let (broken_lines, written) = (BTreeSet::new(), BTreeMap::new());
        Self {
            file,
            text,
            variables,
            written,
            line_ends,
            faults,
            warnings,
            externals,
            broken_lines,
        }
    }

    /// The line of a byte offset, from 1.
    pub(super) fn line(&self, offset: usize) -> usize {
        self.line_ends.partition_point(|end| *end < offset) + 1
    }

    /// Notes that the text is not TOML at some place.
    pub(super) fn syntax(&mut self, error: &toml::de::Error) {
        let line = self.line(error.span().map_or(0, |span| span.start));
        // What follows from the first slip in a line is seldom a second one.
        if self.broken_lines.insert(line) {
            let message = format!("not TOML: {}", error.message());
            let (file, key) = (self.file.to_owned(), self.key_on(line));
            self.faults.push(Fault { file, line, key, message });
        }
    }

    /// The key on a line that could not be parsed, with its table, as far as can be seen; empty
    /// where the line shows none.
    fn key_on(&self, line: usize) -> String {
        let above: Vec<&str> = self.text.lines().take(line).collect();
        let Some((written, _)) = above.last().and_then(|last| last.split_once('=')) else {
            return String::new();
        };
        let key = written.trim();
        if key.is_empty() || !key.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-.".contains(&b))
        {
            return String::new();
        }
        let head = above.iter().rev().find_map(|above| above.trim_start().strip_prefix('['));
        let table = head.map(|head| head.trim_start_matches('['));
        match table.and_then(|table| table.split(']').next()) {
            Some(table) => format!("{}.{key}", table.trim()),
            None => key.to_owned(),
        }
    }

    /// Whether the text is not TOML somewhere.
    pub(super) fn is_broken(&self) -> bool {
        !self.broken_lines.is_empty()
    }

    /// Notes a mistake at a byte offset.
    pub(super) fn fault(&mut self, at: usize, key: String, message: String) {
        let line = self.line(at);
        // A value that the syntax recovery made up is not the author's.
        if !self.broken_lines.contains(&line) {
            self.faults.push(Fault { file: self.file.to_owned(), line, key, message });
        }
    }

    /// The settings of the environment.
    pub(super) const fn variables(&self) -> &'t Variables {
        self.variables
    }

    /// Notes a mistake in a variable of the environment.
    pub(super) fn variable_fault(&mut self, variable: &str, key: String, message: String) {
        self.faults.push(Fault { file: variable.to_owned(), line: 0, key, message });
    }

    /// Notes something to know of a variable.
    pub(super) fn variable_warning(&mut self, variable: &str, key: String, message: String) {
        self.warnings.push(Fault { file: variable.to_owned(), line: 0, key, message });
    }

    /// Notes what a variable names and is to be found elsewhere.
    pub(super) fn variable_refer(&mut self, variable: &str, key: String, external: External) {
        let place = Fault { file: variable.to_owned(), line: 0, key, message: String::new() };
        self.externals.push((place, external));
    }

    /// Notes what a key says, at a byte offset or in a variable.
    pub(super) fn note_value(&mut self, place: Result<usize, String>, key: String, value: String) {
        let (file, line) = match place {
            Ok(at) => (self.file.to_owned(), self.line(at)),
            Err(variable) => (variable, 0),
        };
        let place = Fault { file, line, key: key.clone(), message: String::new() };
        self.written.insert(key, WrittenKey { place, value });
    }

    /// Notes something to know at a byte offset.
    pub(super) fn warn(&mut self, at: usize, key: String, message: String) {
        let (file, line) = (self.file.to_owned(), self.line(at));
        self.warnings.push(Fault { file, line, key, message });
    }

    /// Notes what is named at a byte offset and is to be found elsewhere.
    pub(super) fn refer(&mut self, at: usize, key: String, external: External) {
        let (file, line) = (self.file.to_owned(), self.line(at));
        self.externals.push((Fault { file, line, key, message: String::new() }, external));
    }

    /// The configuration, where no mistake was noted.
    pub(super) fn finish(mut self, config: Config) -> Result<Checked, Faults> {
        self.warnings.extend(self.variables.unknown(&self.externals));
        match Faults::from_list(self.faults) {
            Some(faults) => Err(faults),
            None => Ok(Checked {
                config,
                warnings: self.warnings,
                externals: self.externals,
                written: self.written,
            }),
        }
    }
}
