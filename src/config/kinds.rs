//! The kinds of values: how each is read, and what it may be.

use super::size::size;
use super::value::{ConfigNode, Value};
use super::{duration, written};
use std::collections::HashSet;
use std::fmt::Display;
use std::hash::Hash;
use std::ops::RangeInclusive;
use std::time::Duration;

/// Mistakes in a value, each with its place.
pub(super) type Mistakes = Vec<(usize, String)>;

/// A kind of values.
pub(super) trait Kind {
    type Out;

    /// Reads a value; `None` where it is of no use, with the mistakes.
    fn read(&self, node: &ConfigNode<'_>, mistakes: &mut Mistakes) -> Option<Self::Out>;

    /// What may be written, for messages and for the documentation.
    fn allowed(&self) -> String;

    /// Whether a value is a secret, or has one in it: no message repeats it then.
    fn is_secret(&self) -> bool {
        false
    }
}

fn refuse<T>(node: &ConfigNode<'_>, wanted: &str, mistakes: &mut Mistakes) -> Option<T> {
    mistakes.push((node.at, format!("is a {}; write {wanted}", node.value.kind())));
    None
}

/// Whether a mistake is that of a value of another kind than the key takes.
pub(super) fn is_of_wrong_kind(message: &str) -> bool {
    message.starts_with("is a ")
}

fn read_text<T, E: Display>(
    node: &ConfigNode<'_>,
    mistakes: &mut Mistakes,
    check: impl FnOnce(&str) -> Result<T, E>,
) -> Option<T> {
    let Value::Text(text) = &node.value else {
        return refuse(node, "a text in quotes", mistakes);
    };
    check(text).map_err(|error| mistakes.push((node.at, error.to_string()))).ok()
}

/// Reads a list of at most `limit` different elements; those with a mistake are left out.
pub(super) fn read_list<T: Clone + Eq + Hash>(
    node: &ConfigNode<'_>,
    limit: usize,
    wanted: &str,
    mistakes: &mut Mistakes,
    read: impl Fn(&ConfigNode<'_>) -> Result<T, String>,
) -> Option<Vec<T>> {
    let Value::List(nodes) = &node.value else { return refuse(node, wanted, mistakes) };
    if nodes.len() > limit {
        let said = format!("has {} entries, the limit is {limit}", nodes.len());
        mistakes.push((node.at, said));
    }
    let mut seen = HashSet::new();
    let mut all = Vec::new();
    for node in nodes.iter().take(limit) {
        match read(node) {
            Ok(read) if seen.insert(read.clone()) => all.push(read),
            Ok(_) => mistakes.push((node.at, format!("{} stands here twice", shown(node)))),
            Err(said) => mistakes.push((node.at, said)),
        }
    }
    Some(all)
}

/// An element of a list as messages repeat it; of a table, its first text.
fn shown(node: &ConfigNode<'_>) -> String {
    match &node.value {
        Value::Text(text) => format!("{text:?}"),
        Value::Table(entries) => entries.first().map_or_else(String::new, |e| shown(&e.node)),
        _ => String::new(),
    }
}

/// `true` or `false`.
pub(super) struct Flag;

impl Kind for Flag {
    type Out = bool;

    fn read(&self, node: &ConfigNode<'_>, mistakes: &mut Mistakes) -> Option<bool> {
        match node.value {
            Value::Boolean(is_on) => Some(is_on),
            _ => refuse(node, "true or false, without quotes", mistakes),
        }
    }

    fn allowed(&self) -> String {
        "`true`, `false`".to_owned()
    }
}

/// `false`, `true`, or a word, and what each of them means.
pub(super) struct FlagOr<T: 'static>(pub(super) &'static str, pub(super) [T; 3]);

impl<T: Copy> Kind for FlagOr<T> {
    type Out = T;

    fn read(&self, node: &ConfigNode<'_>, mistakes: &mut Mistakes) -> Option<T> {
        let Self(word, [off, on, third]) = self;
        match &node.value {
            Value::Boolean(is_on) => Some(if *is_on { *on } else { *off }),
            Value::Text(text) if text == word => Some(*third),
            _ => refuse(node, &format!("true, false or {word:?}"), mistakes),
        }
    }

    fn allowed(&self) -> String {
        format!("`{}`, `true`, `false`", self.0)
    }
}

/// `true`, or a word, and what both of them mean.
pub(super) struct TrueOr<T: 'static>(pub(super) &'static str, pub(super) [T; 2]);

impl<T: Copy> Kind for TrueOr<T> {
    type Out = T;

    fn read(&self, node: &ConfigNode<'_>, mistakes: &mut Mistakes) -> Option<T> {
        let Self(word, [on, other]) = self;
        match &node.value {
            Value::Boolean(true) => Some(*on),
            Value::Text(text) if text == word => Some(*other),
            Value::Text(_) | Value::Boolean(false) => {
                mistakes
                    .push((node.at, format!("{} is unknown; write true or {word:?}", node.value)));
                None
            }
            _ => refuse(node, &format!("true or {word:?}"), mistakes),
        }
    }

    fn allowed(&self) -> String {
        format!("`{}`, `true`", self.0)
    }
}

/// A whole number within bounds.
pub(super) struct Number(pub(super) RangeInclusive<u32>);

impl Kind for Number {
    type Out = u32;

    fn read(&self, node: &ConfigNode<'_>, mistakes: &mut Mistakes) -> Option<u32> {
        let wanted = format!("a whole number, {}", self.allowed());
        let Value::Integer(written, number) = &node.value else {
            return refuse(node, &wanted, mistakes);
        };
        let number = number.filter(|number| self.0.contains(number));
        if number.is_none() {
            mistakes.push((node.at, format!("{written} is out of bounds; write {wanted}")));
        }
        number
    }

    fn allowed(&self) -> String {
        format!("{} to {}", self.0.start(), self.0.end())
    }
}

/// A duration within bounds, in seconds.
pub(super) struct Lasting(pub(super) RangeInclusive<u64>);

impl Lasting {
    /// The bounds as they are written in quotes.
    fn bounds(&self) -> String {
        let written = |seconds| written(Duration::from_secs(seconds));
        format!("{:?} to {:?}", written(*self.0.start()), written(*self.0.end()))
    }

    fn check(&self, text: &str) -> Result<Duration, String> {
        let value = duration(text).map_err(|error| error.to_string())?;
        if self.0.contains(&value.as_secs()) {
            return Ok(value);
        }
        Err(format!("{text:?} is out of bounds; write {}", self.bounds()))
    }
}

impl Kind for Lasting {
    type Out = Duration;

    fn read(&self, node: &ConfigNode<'_>, mistakes: &mut Mistakes) -> Option<Duration> {
        read_text(node, mistakes, |text| self.check(text))
    }

    fn allowed(&self) -> String {
        self.bounds().replace('"', "`")
    }
}

/// A size in bytes.
pub(super) struct Size;

impl Kind for Size {
    type Out = u64;

    fn read(&self, node: &ConfigNode<'_>, mistakes: &mut Mistakes) -> Option<u64> {
        read_text(node, mistakes, size)
    }

    fn allowed(&self) -> String {
        "a size".to_owned()
    }
}

/// One of a few words.
pub(super) struct OneOf<T: 'static>(pub(super) &'static [(&'static str, T)]);

impl<T: Copy> OneOf<T> {
    fn words(&self) -> String {
        let words: Vec<String> = self.0.iter().map(|(word, _)| format!("{word:?}")).collect();
        words.join(", ")
    }
}

impl<T: Copy> Kind for OneOf<T> {
    type Out = T;

    fn read(&self, node: &ConfigNode<'_>, mistakes: &mut Mistakes) -> Option<T> {
        read_text(node, mistakes, |text| {
            let found = self.0.iter().find(|(word, _)| *word == text);
            let unknown = || format!("{text:?} is unknown; write one of {}", self.words());
            found.map(|(_, value)| *value).ok_or_else(unknown)
        })
    }

    fn allowed(&self) -> String {
        self.words().replace('"', "`")
    }
}

/// A text that a function reads, and what may be written.
pub(super) struct Parsed<T, E>(pub(super) &'static str, pub(super) fn(&str) -> Result<T, E>);

impl<T, E: Display> Kind for Parsed<T, E> {
    type Out = T;

    fn read(&self, node: &ConfigNode<'_>, mistakes: &mut Mistakes) -> Option<T> {
        read_text(node, mistakes, self.1)
    }

    fn allowed(&self) -> String {
        self.0.to_owned()
    }
}

/// A list of at most so many texts, each once, that a function reads.
pub(super) struct List<T, E> {
    pub(super) limit: usize,
    /// What may be written: `a list of …`.
    pub(super) wanted: &'static str,
    pub(super) read: fn(&str) -> Result<T, E>,
}

impl<T: Clone + Eq + Hash, E: Display> Kind for List<T, E> {
    type Out = Vec<T>;

    fn read(&self, node: &ConfigNode<'_>, mistakes: &mut Mistakes) -> Option<Vec<T>> {
        read_list(node, self.limit, self.wanted, mistakes, |node| match &node.value {
            Value::Text(text) => (self.read)(text).map_err(|error| error.to_string()),
            other => Err(format!("has a {}; write {}", other.kind(), self.wanted)),
        })
    }

    fn allowed(&self) -> String {
        self.wanted.to_owned()
    }
}

/// A value of another kind, turned into what the configuration keeps.
pub(super) struct Mapped<K: Kind, T>(pub(super) K, pub(super) fn(K::Out) -> T);

impl<K: Kind, T> Kind for Mapped<K, T> {
    type Out = T;

    fn read(&self, node: &ConfigNode<'_>, mistakes: &mut Mistakes) -> Option<T> {
        self.0.read(node, mistakes).map(self.1)
    }

    fn allowed(&self) -> String {
        self.0.allowed()
    }

    fn is_secret(&self) -> bool {
        self.0.is_secret()
    }
}

/// A value that may be absent, which JSON may say with `null`.
pub(super) struct Maybe<K>(pub(super) K);

impl<K: Kind> Kind for Maybe<K> {
    type Out = Option<K::Out>;

    fn read(&self, node: &ConfigNode<'_>, mistakes: &mut Mistakes) -> Option<Option<K::Out>> {
        match node.value {
            Value::Null => Some(None),
            _ => self.0.read(node, mistakes).map(Some),
        }
    }

    fn allowed(&self) -> String {
        self.0.allowed()
    }

    fn is_secret(&self) -> bool {
        self.0.is_secret()
    }
}

/// A value of another kind that no message repeats.
pub(super) struct Hidden<K>(pub(super) K);

impl<K: Kind> Kind for Hidden<K> {
    type Out = K::Out;

    fn read(&self, node: &ConfigNode<'_>, mistakes: &mut Mistakes) -> Option<K::Out> {
        self.0.read(node, mistakes)
    }

    fn allowed(&self) -> String {
        self.0.allowed()
    }

    fn is_secret(&self) -> bool {
        true
    }
}
