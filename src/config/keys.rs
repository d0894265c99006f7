//! The table of keys: what each is called, may be and stands for. The readers of the file and of the
//! administration API, the defaults, the annotated file and the documentation all follow from it.

use super::kinds::{Kind, Mistakes};
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

/// Reads the value of a key into what it sets; false where it is of no use.
pub(super) type ReadKey<T> = fn(&ConfigNode<'_>, &mut Mistakes, &mut T) -> bool;

/// The keys of a table, and what each sets.
pub(super) struct KeyTable<T: 'static> {
    pub(super) rows: &'static [KeyRow],
    pub(super) fields: &'static [ReadKey<T>],
}

impl<T> KeyTable<T> {
    pub(super) fn iter(&self) -> impl Iterator<Item = (&'static KeyRow, ReadKey<T>)> + use<T> {
        self.rows.iter().zip(self.fields.iter().copied())
    }

    /// Puts the values in place that hold where the keys are absent.
    pub(super) fn preset(&self, target: &mut T) {
        for (row, read) in self.iter() {
            let (Preset::Value(text) | Preset::Shown(text, ..)) = row.preset else { continue };
            // A test reads every value.
            if let Ok(value) = DeValue::parse(text) {
                read(&ConfigNode::from_toml(&value), &mut Mistakes::new(), target);
            }
        }
    }
}

/// The kind of a field.
pub(super) fn kind_of<T, F>(kind: Kind<F>, _field: fn(&mut T) -> &mut F) -> Kind<F> {
    kind
}

/// The keys of a table: for each its words, its name, its field where that has another name, its kind and its preset.
macro_rules! keys {
    ($target:ty; $( $(#[doc = $words:literal])* $name:ident $(=> $($field:ident).+)? $(: $type:ty)? = $kind:expr, $preset:expr; )+) => {
        $crate::keys::KeyTable::<$target> {
            rows: &[$( $crate::keys::KeyRow {
                name: stringify!($name),
                words: concat!($($words, "\n"),*),
                preset: $preset,
                allowed: || $crate::keys::kind_of($kind, |target: &mut $target| &mut $crate::keys::field!(target, $name $(, $($field).+)?)).allowed,
            } ),+],
            fields: &[$( |node, mistakes, target| {
                let read = ($kind.read)(node, mistakes);
                read.map(|read| $crate::keys::field!(target, $name $(, $($field).+)?) = read).is_some()
            } ),+],
        }
    };
}

/// The field of a key: that of its name, or another.
macro_rules! field {
    ($target:ident, $name:ident) => {
        $target.$name
    };
    ($target:ident, $name:ident, $($field:ident).+) => {
        $target.$($field).+
    };
}

/// A table of the configuration as a structure, with its keys and its presets: each key with a type is a field.
/// `fields` are fields that no key has made.
macro_rules! section {
    (
        $(#[$about:meta])*
        pub struct $target:ident with $keys:ident {
            $( $(#[doc = $words:literal])* $name:ident $(=> $($field:ident).+)? $(: $type:ty)? = $kind:expr, $preset:expr; )+
        }
        $( fields { $( $(#[$said:meta])* $extra:ident: $extra_type:ty = $extra_preset:expr; )+ } )?
    ) => {
        $(#[$about])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct $target {
            $( $( #[doc = concat!("The key `", stringify!($name), "`.")] pub $name: $type, )? )+
            $( $( $(#[$said])* pub $extra: $extra_type, )+ )?
        }

        pub(crate) const $keys: $crate::keys::KeyTable<$target> = $crate::keys::keys! {
            $target;
            $( $(#[doc = $words])* $name $(=> $($field).+)? $(: $type)? = $kind, $preset; )+
        };

        impl Default for $target {
            fn default() -> Self {
                let mut preset = Self {
                    $( $( $name: <$type>::default(), )? )+
                    $( $( $extra: $extra_preset, )+ )?
                };
                $keys.preset(&mut preset);
                preset
            }
        }
    };
}

pub(super) use {field, keys, section};
