//! The kinds of values: how each is read, and what may be written.

use super::units::{duration, size, written};
use super::value::{ConfigNode, Value};
use std::collections::HashSet;
use std::fmt::Display;
use std::hash::Hash;
use std::ops::RangeInclusive;
use std::time::Duration;

/// Mistakes in a value, each with its place.
pub(super) type Mistakes = Vec<(usize, String)>;

/// Reads a value; `None` where it is of no use, with the mistakes.
type Read<T> = dyn Fn(&ConfigNode<'_>, &mut Mistakes) -> Option<T>;

/// A kind of values.
pub(super) struct Kind<T> {
    pub(super) read: Box<Read<T>>,
    /// What may be written, for the documentation.
    pub(super) allowed: String,
}

impl<T: 'static> Kind<T> {
    /// A kind whose values have one mistake at most.
    pub(super) fn new(
        allowed: impl Into<String>,
        read: impl Fn(&ConfigNode<'_>) -> Result<T, String> + 'static,
    ) -> Self {
        Self::of_many(allowed, move |node, mistakes| {
            read(node).map_err(|message| mistakes.push((node.at, message))).ok()
        })
    }

    /// A kind whose values may have several mistakes.
    pub(super) fn of_many(
        allowed: impl Into<String>,
        read: impl Fn(&ConfigNode<'_>, &mut Mistakes) -> Option<T> + 'static,
    ) -> Self {
        Self { read: Box::new(read), allowed: allowed.into() }
    }

    /// The same, turned into what the configuration keeps.
    pub(super) fn map<U: 'static>(self, turn: impl Fn(T) -> U + 'static) -> Kind<U> {
        let Self { read, allowed } = self;
        Kind::of_many(allowed, move |node, mistakes| read(node, mistakes).map(&turn))
    }

    /// The same, or nothing, which JSON may say with `null`.
    pub(super) fn optional(self) -> Kind<Option<T>> {
        let Self { read, allowed } = self;
        Kind::of_many(allowed, move |node, mistakes| match node.value {
            Value::Null => Some(None),
            _ => read(node, mistakes).map(Some),
        })
    }
}

/// Whether a mistake is that of a value of another kind than the key takes.
pub(super) fn is_of_wrong_kind(message: &str) -> bool {
    message.starts_with("is a ")
}

/// `true` or `false`.
pub(super) fn flag() -> Kind<bool> {
    Kind::new("`true`, `false`", |node| match node.value {
        Value::Boolean(is_on) => Ok(is_on),
        _ => Err(node.refusal("true or false, without quotes")),
    })
}

/// A word, `true`, or `false` where that means something.
pub(super) fn word_or_flag<T: Copy + 'static>(
    (word, meant): (&'static str, T),
    on: T,
    off: Option<T>,
) -> Kind<T> {
    let (flags, wanted) = match off {
        Some(_) => ("`true`, `false`", format!("true, false or {word:?}")),
        None => ("`true`", format!("true or {word:?}")),
    };
    Kind::new(format!("`{word}`, {flags}"), move |node| match (&node.value, off) {
        (Value::Boolean(true), _) => Ok(on),
        (Value::Boolean(false), Some(off)) => Ok(off),
        (Value::Text(text), _) if *text == word => Ok(meant),
        (Value::Text(text), _) => Err(format!("{text:?} is unknown; write {wanted}")),
        (Value::Boolean(false), None) => Err(format!("false is unknown; write {wanted}")),
        _ => Err(node.refusal(&wanted)),
    })
}

/// A whole number within bounds.
pub(super) fn number<T: TryFrom<u32> + 'static>(bounds: RangeInclusive<u32>) -> Kind<T> {
    let allowed = format!("{} to {}", bounds.start(), bounds.end());
    let wanted = format!("a whole number, {allowed}");
    Kind::new(allowed, move |node| {
        let Value::Integer(written, number) = &node.value else {
            return Err(node.refusal(&wanted));
        };
        let number = number.filter(|number| bounds.contains(number));
        let number = number.and_then(|number| T::try_from(number).ok());
        number.ok_or_else(|| format!("{written} is out of bounds; write {wanted}"))
    })
}

/// A duration within bounds, in seconds.
pub(super) fn lasting(bounds: RangeInclusive<u64>) -> Kind<Duration> {
    let [least, most] = [bounds.start(), bounds.end()].map(|s| written(Duration::from_secs(*s)));
    Kind::new(format!("`{least}` to `{most}`"), move |node| {
        let text = node.text()?;
        let value = duration(text)?;
        let fits = bounds.contains(&value.as_secs());
        let wrong = || format!("{text:?} is out of bounds; write {least:?} to {most:?}");
        fits.then_some(value).ok_or_else(wrong)
    })
}

/// A size in bytes.
pub(super) fn bytes() -> Kind<u64> {
    parsed("a size", size)
}

/// One of a few words.
pub(super) fn one_of<T: Copy + 'static>(words: &'static [(&'static str, T)]) -> Kind<T> {
    let all: Vec<String> = words.iter().map(|(word, _)| format!("{word:?}")).collect();
    let all = all.join(", ");
    Kind::new(all.replace('"', "`"), move |node| {
        let text = node.text()?;
        let found = words.iter().find(|(word, _)| *word == text).map(|(_, value)| *value);
        found.ok_or_else(|| format!("{text:?} is unknown; write one of {all}"))
    })
}

/// A text that a function reads, and what may be written.
pub(super) fn parsed<T: 'static, E: Display + 'static>(
    allowed: &'static str,
    read: fn(&str) -> Result<T, E>,
) -> Kind<T> {
    Kind::new(allowed, move |node| read(node.text()?).map_err(|error| error.to_string()))
}

/// A path that is not empty; `name`: what is to be named.
pub(super) fn path<T: for<'t> From<&'t str> + 'static>(name: &'static str) -> Kind<T> {
    Kind::new("a path", move |node| match node.text()? {
        "" => Err(format!("is empty; name {name}")),
        path => Ok(path.into()),
    })
}

/// A list of at most `limit` different texts that a function reads; `wanted`: `a list of …`.
pub(super) fn list<T, E>(
    limit: usize,
    wanted: &'static str,
    read: fn(&str) -> Result<T, E>,
) -> Kind<Vec<T>>
where
    T: Clone + Eq + Hash + 'static,
    E: Display + 'static,
{
    elements(wanted, limit, wanted, move |node| match node.value {
        Value::Text(text) => read(text).map_err(|error| error.to_string()),
        _ => Err(format!("has a {}; write {wanted}", node.kind())),
    })
}

/// A list of at most `limit` different elements; those with a mistake are left out.
pub(super) fn elements<T: Clone + Eq + Hash + 'static>(
    allowed: impl Into<String>,
    limit: usize,
    wanted: &'static str,
    read: impl Fn(&ConfigNode<'_>) -> Result<T, String> + 'static,
) -> Kind<Vec<T>> {
    Kind::of_many(allowed, move |node, mistakes| {
        let Value::List(nodes) = &node.value else {
            mistakes.push((node.at, node.refusal(wanted)));
            return None;
        };
        if nodes.len() > limit {
            let message = format!("has {} entries, the limit is {limit}", nodes.len());
            mistakes.push((node.at, message));
        }
        let mut seen = HashSet::new();
        let mut all = Vec::new();
        for node in nodes.iter().take(limit) {
            match read(node) {
                Ok(read) if seen.insert(read.clone()) => all.push(read),
                Ok(_) => mistakes.push((node.at, format!("{} stands here twice", shown(node)))),
                Err(message) => mistakes.push((node.at, message)),
            }
        }
        Some(all)
    })
}

/// An element of a list as messages repeat it; of a table, its first text.
fn shown(node: &ConfigNode<'_>) -> String {
    match &node.value {
        Value::Text(text) => format!("{text:?}"),
        Value::Table(entries) => entries.first().map_or_else(String::new, |e| shown(&e.node)),
        _ => String::new(),
    }
}
