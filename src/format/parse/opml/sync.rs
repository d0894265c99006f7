//! The `sx:sync` of an outline (SSE 0.91 sections 2.3 to 2.5 and 5).

use crate::parse::sync_markup::{CONFLICT_LIMIT, UPDATE_LIMIT};
use tidegate_core::model::{Count, EndpointId, Stamp, SyncId, Time};
use tidegate_core::sync::{Conflict091, Item091};

/// What is kept of a conflict: the markup between the tags of its `sx:conflict`.
pub type OutlineSync = String;

/// Attributes of an element, as they were read.
pub(super) type Attributes<'a> = [(&'a str, String)];

/// The value of an attribute, trimmed; an empty one is as good as none.
pub(super) fn value<'t>(attributes: &'t Attributes<'_>, name: &str) -> Option<&'t str> {
    let found = attributes.iter().find(|(known, _)| *known == name);
    found.map(|(_, value)| value.trim()).filter(|value| !value.is_empty())
}

fn number(attributes: &Attributes<'_>) -> Result<Count, String> {
    let text = value(attributes, "version").ok_or("it has no version")?;
    let number = text.parse().ok().and_then(|number| Count::new(number).ok());
    number.ok_or_else(|| format!("its version {:?} is no number from 1 to 2147483647", short(text)))
}

/// A boolean: absent and empty are `false` (section 2.3).
fn flag(attributes: &Attributes<'_>, name: &str) -> Result<bool, String> {
    match value(attributes, name) {
        None | Some("false") => Ok(false),
        Some("true") => Ok(true),
        Some(text) => Err(format!("its {name} is {:?}, neither true nor false", short(text))),
    }
}

/// `when` and `by`; an empty one is as good as none (section 2.4).
fn stamp(attributes: &Attributes<'_>) -> Result<Stamp, String> {
    let when = value(attributes, "when").map(|text| {
        Time::parse_rfc2822(text)
            .ok_or_else(|| format!("its when {:?} is no date of RFC 822", short(text)))
    });
    let by = value(attributes, "by").map(|text| EndpointId::new(text).map_err(|e| e.to_string()));
    match (when.transpose()?, by.transpose()?) {
        (Some(when), Some(by)) => Ok(Stamp::Both { when, by }),
        (Some(when), None) => Ok(Stamp::When(when)),
        (None, Some(by)) => Ok(Stamp::By(by)),
        (None, None) => Err("it has neither when nor by".to_owned()),
    }
}

fn short(text: &str) -> &str {
    super::quoted(text)
}

/// An `sx:sync` that is being read. The first thing that is wrong is kept.
#[derive(Debug)]
pub(super) struct SyncDraft {
    /// The line where it begins.
    pub(super) line: usize,
    head: Result<(SyncId, Count, bool, bool), String>,
    last: Option<Result<Stamp, String>>,
    updates: Vec<Stamp>,
    conflicts: Vec<Conflict091<OutlineSync>>,
    wrong: Option<String>,
}

impl SyncDraft {
    pub(super) fn begin(attributes: &Attributes<'_>, line: usize) -> Self {
        let head = || {
            let id = value(attributes, "id").ok_or("it has no id")?;
            let id = SyncId::new(id).map_err(|error| error.to_string())?;
            let version = number(attributes)?;
            Ok((id, version, flag(attributes, "deleted")?, flag(attributes, "conflict")?))
        };
        let (updates, conflicts) = (Vec::new(), Vec::new());
        Self { line, head: head(), last: None, updates, conflicts, wrong: None }
    }

    pub(super) fn history(&mut self, attributes: &Attributes<'_>) {
        self.last.get_or_insert_with(|| stamp(attributes));
    }

    pub(super) fn update(&mut self, attributes: &Attributes<'_>) {
        match stamp(attributes) {
            _ if self.updates.len() >= UPDATE_LIMIT => {
                self.wrong.get_or_insert(format!("it has more than {UPDATE_LIMIT} updates"));
            }
            Ok(stamp) => self.updates.push(stamp),
            Err(error) => drop(self.wrong.get_or_insert(format!("of an sx:update, {error}"))),
        }
    }

    pub(super) fn conflict(&mut self, attributes: &Attributes<'_>, markup: &str) {
        let read = || Ok::<_, String>((number(attributes)?, stamp(attributes)?));
        match read() {
            _ if self.conflicts.len() >= CONFLICT_LIMIT => {
                self.wrong.get_or_insert(format!("it has more than {CONFLICT_LIMIT} conflicts"));
            }
            Ok((version, edit)) => {
                let data = markup.to_owned();
                self.conflicts.push(Conflict091 { version, edit, data });
            }
            Err(error) => drop(self.wrong.get_or_insert(format!("of an sx:conflict, {error}"))),
        }
    }

    /// What it says; why it cannot be taken otherwise.
    pub(super) fn finish(self) -> Result<Item091<(), OutlineSync>, String> {
        let (id, version, deleted, conflict) = self.head?;
        let last = self.last.ok_or("it has no sx:history")?;
        let last = last.map_err(|error| format!("of its sx:history, {error}"))?;
        if let Some(wrong) = self.wrong {
            return Err(wrong);
        }
        let (updates, conflicts) = (self.updates, self.conflicts);
        Ok(Item091 { id, version, deleted, conflict, last, updates, conflicts, data: () })
    }
}
