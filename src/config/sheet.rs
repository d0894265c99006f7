//! The file under examination: where its lines begin, and what was found in it.

use super::fault::{Fault, Faults};
use super::variables::Variables;
use super::{Checked, Config};
use std::collections::BTreeSet;

/// The file under examination: its name, where its lines begin, and what was found so far.
pub(super) struct Sheet<'t> {
    file: &'t str,
    text: &'t str,
    /// The settings of the environment.
    pub(super) variables: &'t Variables,
    line_ends: Vec<usize>,
    broken_lines: BTreeSet<usize>,
    faults: Vec<Fault>,
    /// What was found beside mistakes; the configuration itself comes last.
    pub(super) checked: Checked,
}

impl<'t> Sheet<'t> {
    pub(super) fn new(file: &'t str, text: &'t str, variables: &'t Variables) -> Self {
        let line_ends = memchr::memchr_iter(b'\n', text.as_bytes()).collect();
        let (broken_lines, faults) = (BTreeSet::new(), Vec::new());
        let checked = Checked::default();
        Self { file, text, variables, line_ends, broken_lines, faults, checked }
    }

    /// The line of a byte offset, from 1.
    pub(super) fn line(&self, offset: usize) -> usize {
        self.line_ends.partition_point(|end| *end < offset) + 1
    }

    /// The place of a key at a byte offset, without a message.
    pub(super) fn place(&self, at: usize, key: &str) -> Fault {
        let (file, key) = (self.file.to_owned(), key.to_owned());
        Fault { file, line: self.line(at), key, message: String::new() }
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
        let written = above.last().and_then(|last| last.split_once('='));
        let is_key = |b: u8| b.is_ascii_alphanumeric() || b"_-.".contains(&b);
        let key = written.map_or("", |(key, _)| key.trim());
        if key.is_empty() || !key.bytes().all(is_key) {
            return String::new();
        }
        let head = above.iter().rev().find_map(|above| above.trim_start().strip_prefix('['));
        match head.and_then(|head| head.trim_start_matches('[').split(']').next()) {
            Some(table) => format!("{}.{key}", table.trim()),
            None => key.to_owned(),
        }
    }

    /// Whether the text is not TOML somewhere.
    pub(super) fn is_broken(&self) -> bool {
        !self.broken_lines.is_empty()
    }

    /// Notes a mistake at a byte offset.
    pub(super) fn fault(&mut self, at: usize, key: &str, message: String) {
        self.note_fault(Fault { message, ..self.place(at, key) });
    }

    /// Notes a mistake.
    pub(super) fn note_fault(&mut self, fault: Fault) {
        // A value that the syntax recovery made up is not the author's.
        if !self.broken_lines.contains(&fault.line) {
            self.faults.push(fault);
        }
    }

    /// The configuration, where no mistake was noted.
    pub(super) fn finish(self, config: Config) -> Result<Checked, Faults> {
        let Self { mut checked, faults, variables, .. } = self;
        checked.warnings.extend(variables.unknown(&checked.externals));
        match Faults::from_list(faults) {
            Some(faults) => Err(faults),
            None => Ok(Checked { config, ..checked }),
        }
    }
}
