//! Sets of the kinds of something.

/// Defines a set of the variants of an enumeration without fields. Its `ALL` has them in the order of the enumeration;
/// the set is stored as a number with one bit for each.
macro_rules! set_of {
    ($(#[$doc:meta])* $set:ident($bits:ty) of $kind:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, serde::Serialize)]
        #[serde(transparent)]
        pub struct $set($bits);

        impl $set {
            /// The empty set.
            pub const NONE: Self = Self(0);

            const fn bit(kind: $kind) -> $bits {
                1 << kind as $bits
            }

            /// The set as a number.
            pub const fn bits(self) -> $bits {
                self.0
            }

            /// The set of a number; bits of no kind are left out.
            pub const fn from_bits(bits: $bits) -> Self {
                Self(bits & ((1 << $kind::ALL.len()) - 1))
            }

            /// Adds a kind.
            pub const fn insert(&mut self, kind: $kind) {
                self.0 |= Self::bit(kind);
            }

            /// Takes a kind out.
            pub const fn remove(&mut self, kind: $kind) {
                self.0 &= !Self::bit(kind);
            }

            /// Adds every kind of another set.
            pub const fn join(&mut self, other: Self) {
                self.0 |= other.0;
            }

            /// Whether a kind is in it.
            pub const fn contains(self, kind: $kind) -> bool {
                self.0 & Self::bit(kind) != 0
            }

            /// Whether it is empty.
            pub const fn is_empty(self) -> bool {
                self.0 == 0
            }

            /// The kinds in it, in their order.
            pub fn iter(self) -> impl Iterator<Item = $kind> {
                $kind::ALL.into_iter().filter(move |kind| self.contains(*kind))
            }
        }

        impl FromIterator<$kind> for $set {
            fn from_iter<I: IntoIterator<Item = $kind>>(kinds: I) -> Self {
                Self(kinds.into_iter().fold(0, |bits, kind| bits | Self::bit(kind)))
            }
        }

        impl<'de> serde::Deserialize<'de> for $set {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                <$bits as serde::Deserialize>::deserialize(from).map(Self::from_bits)
            }
        }
    };
}

pub(super) use set_of;
