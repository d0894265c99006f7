//! The table of keys: what each is called, may be and stands for. The readers of the file and of the
//! administration API, the defaults, the annotated file and the documentation all follow from it.

use super::kinds::Mistakes;
use super::value::ConfigNode;
use toml::de::DeValue;

/// What the documentation says of a key.
#[cfg_attr(not(test), expect(dead_code, reason = "a test writes the documentation"))]
pub(super) struct KeyRow {
    pub(super) name: &'static str,
    /// What it stands for: the first paragraph for the documentation, all of them for the annotated
    /// file. Empty where the words of the key before are meant for both.
    pub(super) words: &'static str,
    pub(super) preset: Preset,
    /// What may be written.
    pub(super) allowed: fn() -> String,
    /// Whether its value is a secret, or has one in it.
    pub(super) is_secret: fn() -> bool,
    pub(super) effect: Effect,
}

/// When a changed value takes effect in a running gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    /// When the configuration is read again (SIGHUP).
    Reload,
    /// When the gateway is started again.
    Restart,
}

impl KeyRow {
    /// What a message says of a value that is written; of a secret nothing.
    pub(super) fn shown(&self, value: impl FnOnce() -> String) -> String {
        if (self.is_secret)() { "what it was".to_owned() } else { value() }
    }

    /// What holds where the key is absent, in words.
    pub(super) fn default_in_words(&self) -> &'static str {
        match self.preset {
            Preset::Value(text) | Preset::Shown(text, ..) => text,
            Preset::Words(words, _) => words,
        }
    }
}

/// What holds where a key is absent.
#[cfg_attr(not(test), expect(dead_code, reason = "a test writes the documentation"))]
pub(super) enum Preset {
    /// A value, as TOML.
    Value(&'static str),
    /// What is computed, in words, and an example of a value as TOML.
    Words(&'static str, &'static str),
    /// A value, as TOML; what to show of it, and an example.
    Shown(&'static str, &'static str, &'static str),
}

/// Reads a value into its field; false where it is of no use.
pub(super) type Reader<T> = fn(&ConfigNode<'_>, &mut Mistakes, &mut T) -> bool;

/// Puts the value in force back into what was read; whether it differed.
pub(super) type Keeper<T> = fn(&T, &mut T) -> bool;

/// The keys of a table, how each is read, and how those that need a restart are kept.
pub(super) struct KeyTable<T: 'static> {
    pub(super) rows: &'static [KeyRow],
    pub(super) readers: &'static [Reader<T>],
    pub(super) keepers: &'static [Option<Keeper<T>>],
}

impl<T> KeyTable<T> {
    /// How a key is read, with its name.
    pub(super) fn find(&self, key: &str) -> Option<(&'static str, Reader<T>)> {
        let at = self.rows.iter().position(|row| row.name == key)?;
        Some((self.rows.get(at)?.name, *self.readers.get(at)?))
    }

    /// Puts the values in force back of the keys that need a restart; notes those that differed, each with the
    /// name of the table.
    pub(super) fn keep(&self, table: &str, in_force: &T, read: &mut T, kept: &mut Vec<String>) {
        for (row, keep) in self.rows.iter().zip(self.keepers) {
            if keep.is_some_and(|keep| keep(in_force, read)) {
                kept.push(format!("{table}.{}", row.name));
            }
        }
    }

    /// Puts the values in place that hold where the keys are absent.
    pub(super) fn preset(&self, target: &mut T) {
        for (row, read) in self.rows.iter().zip(self.readers) {
            let (Preset::Value(text) | Preset::Shown(text, ..)) = row.preset else { continue };
            // A test reads every value.
            if let Ok(value) = DeValue::parse(text) {
                read(&ConfigNode::from_toml(&value), &mut Mistakes::new(), target);
            }
        }
    }
}

/// The keys of a table: for each its words, its name, its field, its kind and its preset. `at restart`: a
/// changed value takes effect when the gateway is started again.
macro_rules! keys {
    ($target:ty; $( $(#[doc = $words:literal])* $name:ident => $($field:ident).+: $kind:expr, $preset:expr $(, at $when:ident)?; )+) => {
        $crate::keys::KeyTable::<$target> {
            rows: &[$( $crate::keys::KeyRow {
                name: stringify!($name),
                words: concat!($($words, "\n"),*),
                preset: $preset,
                allowed: || $crate::kinds::Kind::allowed(&$kind),
                is_secret: || $crate::kinds::Kind::is_secret(&$kind),
                effect: $crate::keys::effect!($($when)?),
            } ),+],
            readers: &[$( |node, mistakes, target| {
                let read = $crate::kinds::Kind::read(&$kind, node, mistakes);
                read.map(|read| target.$($field).+ = read).is_some()
            } ),+],
            keepers: &[$( $crate::keys::keeper!($($field).+ $(, $when)?) ),+],
        }
    };
}

/// When a key takes effect.
macro_rules! effect {
    () => {
        $crate::keys::Effect::Reload
    };
    (restart) => {
        $crate::keys::Effect::Restart
    };
}

/// How the value in force of a key is kept.
macro_rules! keeper {
    ($($field:ident).+) => {
        None
    };
    ($($field:ident).+, restart) => {
        Some(|in_force, read| {
            let differs = in_force.$($field).+ != read.$($field).+;
            read.$($field).+.clone_from(&in_force.$($field).+);
            differs
        })
    };
}

/// A table of the configuration as a structure, with its keys and its presets. `keys` are further keys
/// of the same fields, `fields` are fields that have no key.
macro_rules! section {
    (
        $(#[$about:meta])*
        pub struct $name:ident {
            $( $(#[doc = $words:literal])* $field:ident: $value:ty = $kind:expr, $preset:expr $(, blank $blank:expr)? $(, at $when:ident)?; )+
        }
        $( keys { $($further:tt)+ } )?
        $( fields { $( $(#[$said:meta])* $extra:ident: $extra_value:ty = $extra_preset:expr; )+ } )?
    ) => {
        $(#[$about])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct $name {
            $( $(#[doc = $words])* pub $field: $value, )+
            $( $( $(#[$said])* pub $extra: $extra_value, )+ )?
        }

        pub(super) const KEYS: $crate::keys::KeyTable<$name> = $crate::keys::keys! {
            $name;
            $( $(#[doc = $words])* $field => $field: $kind, $preset $(, at $when)?; )+
            $( $($further)+ )?
        };

        impl Default for $name {
            fn default() -> Self {
                let mut preset = Self {
                    $( $field: $crate::keys::blank!($($blank)?), )+
                    $( $( $extra: $extra_preset, )+ )?
                };
                KEYS.preset(&mut preset);
                preset
            }
        }
    };
}

/// A value to begin with, before the preset is read.
macro_rules! blank {
    () => {
        Default::default()
    };
    ($blank:expr) => {
        $blank
    };
}

pub(super) use {blank, effect, keeper, keys, section};
