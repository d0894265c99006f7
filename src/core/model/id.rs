//! Checked identifiers.

use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// Why a text is not an identifier of the wanted kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    /// The text is empty.
    #[error("{what} is empty")]
    Empty {
        /// The kind of identifier.
        what: &'static str,
    },
    /// The text is longer than the named limit.
    #[error("{what} is {length} bytes long, the limit is {limit}")]
    TooLong {
        /// The kind of identifier.
        what: &'static str,
        /// Bytes found.
        length: usize,
        /// Bytes allowed.
        limit: usize,
    },
    /// A character is not allowed where it stands.
    #[error("{what} {text:?} has {character:?} at byte {at}; {allowed}")]
    Character {
        /// The kind of identifier.
        what: &'static str,
        /// The text as given.
        text: String,
        /// The offending character.
        character: char,
        /// Its byte offset.
        at: usize,
        /// What is allowed instead.
        allowed: &'static str,
    },
}

fn check(
    what: &'static str,
    text: &str,
    limit: usize,
    allowed: &'static str,
    fits: impl Fn(usize, char) -> bool,
) -> Result<(), IdError> {
    if text.is_empty() {
        return Err(IdError::Empty { what });
    }
    if text.len() > limit {
        return Err(IdError::TooLong { what, length: text.len(), limit });
    }
    match text.char_indices().find(|(at, c)| !fits(*at, *c)) {
        Some((at, character)) => {
            Err(IdError::Character { what, text: text.to_owned(), character, at, allowed })
        }
        None => Ok(()),
    }
}

/// Reads a text that is checked, without a copy of its own where the format lends it.
fn checked<'de, D: Deserializer<'de>, T, E: fmt::Display>(
    from: D,
    new: impl Fn(&str) -> Result<T, E>,
) -> Result<T, D::Error> {
    struct CheckedText<F>(F);

    impl<T, E: fmt::Display, F: Fn(&str) -> Result<T, E>> Visitor<'_> for CheckedText<F> {
        type Value = T;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a text")
        }

        fn visit_str<O: serde::de::Error>(self, text: &str) -> Result<T, O> {
            (self.0)(text).map_err(O::custom)
        }
    }

    from.deserialize_str(CheckedText(new))
}

macro_rules! identifier {
    ($name:ident) => {
        impl $name {
            /// The identifier as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.serialize_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                checked(from, Self::new)
            }
        }

        impl FromStr for $name {
            type Err = IdError;

            fn from_str(text: &str) -> Result<Self, IdError> {
                Self::new(text)
            }
        }
    };
}

/// The name under which a feed is published: `[a-z0-9][a-z0-9-]{0,63}`. Shared by all who have it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FeedName(Arc<str>);
identifier!(FeedName);

impl FeedName {
    /// Checks and takes a feed name.
    pub fn new(text: &str) -> Result<Self, IdError> {
        check(
            "feed name",
            text,
            64,
            "a feed name is 1 to 64 of a-z, 0-9 and '-', and does not begin with '-'",
            |at, c| c.is_ascii_lowercase() || c.is_ascii_digit() || (c == '-' && at > 0),
        )?;
        Ok(Self(text.into()))
    }
}

/// The identifier of an item across all feeds that share it (SSE 1.0 section 2.4, `sx:sync/@id`).
///
/// Ids made here use `[a-z0-9.-]` only. Ids of others should be Namespace Specific Strings of
/// RFC 2141; as a reader we take any text without white space at its ends or control characters,
/// because identity is compared by code points and nothing else (section 2.1.4).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SyncId(Box<str>);
identifier!(SyncId);

/// The longest sync or endpoint id that is taken from outside, in bytes.
const FOREIGN_ID_LIMIT: usize = 1024;

impl SyncId {
    /// Checks and takes a sync id.
    pub fn new(text: &str) -> Result<Self, IdError> {
        foreign("sync id", text)?;
        Ok(Self(text.into()))
    }
}

/// The identifier of an endpoint (SSE 1.0 section 2.1.1; `by` of section 2.5).
///
/// Compared as UTF-8 bytes, which is code-point order (READINGS 1, row 7).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EndpointId(Box<str>);
identifier!(EndpointId);

impl EndpointId {
    /// Takes an endpoint id found in a feed.
    pub fn new(text: &str) -> Result<Self, IdError> {
        foreign("endpoint id", text)?;
        Ok(Self(text.into()))
    }

    /// Checks an endpoint id for this gateway itself: `[A-Za-z0-9.:-]{1,128}` (READINGS 1, row 23).
    pub fn own(text: &str) -> Result<Self, IdError> {
        check(
            "endpoint id",
            text,
            128,
            "this gateway's endpoint id is made of A-Z, a-z, 0-9, '.', ':' and '-'",
            |_, c| c.is_ascii_alphanumeric() || matches!(c, '.' | ':' | '-'),
        )?;
        Ok(Self(text.into()))
    }
}

fn foreign(what: &'static str, text: &str) -> Result<(), IdError> {
    check(
        what,
        text,
        FOREIGN_ID_LIMIT,
        "control characters and white space at either end are not allowed",
        |at, c| {
            let edge = at == 0 || at + c.len_utf8() == text.len();
            let stray = edge && c.is_whitespace();
            !(stray || c.is_control())
        },
    )
}

/// The identifier of a feed in SUP documents: `[A-Za-z0-9-]{1,128}` (SUP section 3; READINGS 4).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SupId(Box<str>);
identifier!(SupId);

impl SupId {
    /// Checks and takes a SUP id.
    pub fn new(text: &str) -> Result<Self, IdError> {
        check("SUP id", text, 128, "a SUP id is made of A-Z, a-z, 0-9 and '-'", |_, c| {
            c.is_ascii_alphanumeric() || c == '-'
        })?;
        Ok(Self(text.into()))
    }
}

/// The id of an archive in its address: `[a-z0-9]{1,64}`. It tells nothing and never changes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ArchiveId(Box<str>);
identifier!(ArchiveId);

impl ArchiveId {
    /// Checks and takes the id of an archive.
    pub fn new(text: &str) -> Result<Self, IdError> {
        check("archive id", text, 64, "an archive id is made of a-z and 0-9", |_, c| {
            c.is_ascii_lowercase() || c.is_ascii_digit()
        })?;
        Ok(Self(text.into()))
    }
}

/// What the SUP ids of a gateway's feeds are made of: chosen when its store is made, and kept with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub enum SupIdBasis {
    /// The gateway's endpoint id and the feed's name. So it is in every store that does not say
    /// otherwise, and where the operator chose the endpoint id, which a new store has as well.
    #[default]
    Endpoint,
    /// The feed's name alone, where the endpoint id was chosen at random: a store that is made anew has
    /// another one, and the feeds their names. An id counts within its document only (SUP section 4), so
    /// those of two gateways may be the same; and a feed's name is no secret, for its address has it.
    Name,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn feed_names_are_as_the_contract_says() {
        for good in ["a", "0", "news", "a-b-", &"x".repeat(64)] {
            assert_eq!(FeedName::new(good).map(|n| n.to_string()), Ok(good.to_owned()));
        }
        for bad in ["", "-a", "A", "a_b", "a.b", "ä", "a/b", &"x".repeat(65)] {
            assert!(FeedName::new(bad).is_err(), "{bad:?} was taken");
        }
    }

    #[test]
    fn the_error_names_the_character_and_its_place() {
        let said = FeedName::new("new_s").map_err(|e| e.to_string());
        assert_eq!(
            said,
            Err("feed name \"new_s\" has '_' at byte 3; a feed name is 1 to 64 of a-z, 0-9 and \
                 '-', and does not begin with '-'"
                .to_owned())
        );
    }

    #[test]
    fn foreign_ids_may_be_any_text_but_control_characters() {
        assert!(EndpointId::new("é-point").is_ok());
        assert!(SyncId::new("item_1_myapp_2005-05-21T11:43:33Z").is_ok());
        assert!(SyncId::new("two words").is_ok());
        for bad in ["", " a", "a ", "a\nb", "a\u{0}"] {
            assert!(SyncId::new(bad).is_err(), "{bad:?} was taken");
        }
        assert!(EndpointId::own("é-point").is_err());
        assert!(EndpointId::own("feeds.example.org:8080").is_ok());
    }
}
