//! A value of the configuration with its place, whichever notation it is written in.

use super::section::unknown;
use serde_json::Value as Json;
use toml::de::{DeTable, DeValue};

/// How much of an unknown key of a value is repeated, in characters.
const KEY_SHOWN: usize = 128;

/// A value with its place: the byte offset in a file, or the number of an element of a list in JSON.
pub(super) struct ConfigNode<'d> {
    pub(super) at: usize,
    pub(super) value: Value<'d>,
}

/// A key with its place, and its value.
pub(super) struct TableEntry<'d> {
    pub(super) at: usize,
    pub(super) key: &'d str,
    pub(super) node: ConfigNode<'d>,
}

/// A value as it is written.
pub(super) enum Value<'d> {
    Text(&'d str),
    /// As it is written, and what it is where that fits.
    Integer(String, Option<u32>),
    Boolean(bool),
    /// Something that no key takes: a float or a date.
    Other(&'static str),
    List(Vec<ConfigNode<'d>>),
    Table(Vec<TableEntry<'d>>),
    /// Only JSON has it.
    Null,
}

impl<'d> ConfigNode<'d> {
    pub(super) fn from_toml(spanned: &'d toml::Spanned<DeValue<'_>>) -> Self {
        let value = match spanned.get_ref() {
            DeValue::String(text) => Value::Text(text),
            DeValue::Integer(number) => {
                let read = u32::from_str_radix(number.as_str(), number.radix());
                Value::Integer(number.to_string(), read.ok())
            }
            DeValue::Float(_) => Value::Other("number"),
            DeValue::Boolean(is_on) => Value::Boolean(*is_on),
            DeValue::Datetime(_) => Value::Other("date"),
            DeValue::Array(list) => Value::List(list.iter().map(Self::from_toml).collect()),
            DeValue::Table(table) => Value::Table(entries(table)),
        };
        Self { at: spanned.span().start, value }
    }

    pub(super) fn from_json(value: &'d Json, at: usize) -> Self {
        let value = match value {
            Json::Null => Value::Null,
            Json::Bool(is_on) => Value::Boolean(*is_on),
            Json::Number(number) if number.is_f64() => Value::Other("number"),
            Json::Number(number) => {
                let read = number.as_u64().and_then(|number| u32::try_from(number).ok());
                Value::Integer(number.to_string(), read)
            }
            Json::String(text) => Value::Text(text),
            Json::Array(list) => Value::List(
                list.iter().zip(1..).map(|(one, at)| Self::from_json(one, at)).collect(),
            ),
            Json::Object(map) => {
                let entry = |(key, value): (&'d String, _)| TableEntry {
                    at,
                    key,
                    node: Self::from_json(value, at),
                };
                Value::Table(map.iter().map(entry).collect())
            }
        };
        Self { at, value }
    }

    /// What it is, in words.
    pub(super) const fn kind(&self) -> &'static str {
        match self.value {
            Value::Text(_) => "text",
            Value::Integer(..) => "number",
            Value::Boolean(_) => "boolean",
            Value::Other(kind) => kind,
            Value::List(_) => "list",
            Value::Table(_) => "table",
            Value::Null => "null",
        }
    }

    /// What to say of a value of another kind than is `wanted`.
    pub(super) fn refusal(&self, wanted: &str) -> String {
        format!("is a {}; write {wanted}", self.kind())
    }

    /// The text that it is.
    pub(super) fn text(&self) -> Result<&'d str, String> {
        match self.value {
            Value::Text(text) => Ok(text),
            _ => Err(self.refusal("a text in quotes")),
        }
    }

    /// The values of the keys of a table that has no others; `wanted`: what to write instead of another value.
    pub(super) fn keys<const N: usize>(
        &self,
        keys: [&'static str; N],
        wanted: &str,
    ) -> Result<[Option<&Self>; N], String> {
        let Value::Table(entries) = &self.value else { return Err(self.refusal(wanted)) };
        if let Some(other) = entries.iter().find(|entry| !keys.contains(&entry.key)) {
            let key: String = other.key.chars().take(KEY_SHOWN).collect();
            return Err(format!("{key:?}: {}", unknown("key", "", &key, &keys)));
        }
        let value = |key| entries.iter().find(|entry| entry.key == key).map(|entry| &entry.node);
        Ok(keys.map(value))
    }
}

/// The keys of a table, with their values.
pub(super) fn entries<'d>(table: &'d DeTable<'_>) -> Vec<TableEntry<'d>> {
    let entry = |(key, value): (&'d toml::Spanned<_>, _)| {
        let written: &'d std::borrow::Cow<'_, str> = key.get_ref();
        TableEntry { at: key.span().start, key: written, node: ConfigNode::from_toml(value) }
    };
    table.iter().map(entry).collect()
}
