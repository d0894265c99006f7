//! Checked identifiers.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// Why a text or a number is no value of the wanted kind, in a sentence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ValueError(pub(super) String);

/// Checks a text that is to be `what`; `find_wrong` finds the first character in it that may not stand there.
fn check(
    what: &str,
    text: &str,
    limit: usize,
    allowed: &str,
    find_wrong: impl Fn(&str) -> Option<(usize, char)>,
) -> Result<(), ValueError> {
    let wrong = if text.is_empty() {
        format!("{what} is empty")
    } else if text.len() > limit {
        format!("{what} is {} bytes long, the limit is {limit}", text.len())
    } else if let Some((at, c)) = find_wrong(text) {
        format!("{what} {text:?} has {c:?} at byte {at}; {allowed}")
    } else {
        return Ok(());
    };
    Err(ValueError(wrong))
}

/// Defines a kind of identifier: what it is called, its longest form in bytes, and what it is made of.
macro_rules! identifier {
    (
        $(#[$doc:meta])*
        $name:ident($text:ty), $what:literal, $limit:expr, $allowed:literal, $find_wrong:expr
    ) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String")]
        pub struct $name($text);

        impl $name {
            /// Checks and takes a text.
            pub fn new(text: &str) -> Result<Self, ValueError> {
                check($what, text, $limit, $allowed, $find_wrong)?;
                Ok(Self(text.into()))
            }

            /// The identifier as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = ValueError;

            fn try_from(text: String) -> Result<Self, ValueError> {
                check($what, &text, $limit, $allowed, $find_wrong)?;
                Ok(Self(text.into()))
            }
        }

        impl FromStr for $name {
            type Err = ValueError;

            fn from_str(text: &str) -> Result<Self, ValueError> {
                Self::new(text)
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
    };
}

identifier! {
    /// The name under which a feed is published: `[a-z0-9][a-z0-9-]{0,63}`. Shared by all who have it.
    FeedName(Arc<str>), "feed name", 64,
    "a feed name is 1 to 64 of a-z, 0-9 and '-', and does not begin with '-'",
    |text| text.char_indices().find(|(at, c)| {
        !(c.is_ascii_lowercase() || c.is_ascii_digit() || (*c == '-' && *at > 0))
    })
}

/// The longest sync or endpoint id that is taken from outside, in bytes.
const FOREIGN_ID_LIMIT: usize = 1024;

/// Finds the first character that may not stand in an id that others made.
fn find_wrong_in_foreign(text: &str) -> Option<(usize, char)> {
    // Nearly all ids are plain, and each that is read from the store is checked.
    if text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return None;
    }
    let is_edge = |at: usize, c: char| at == 0 || at + c.len_utf8() == text.len();
    text.char_indices().find(|(at, c)| c.is_control() || c.is_whitespace() && is_edge(*at, *c))
}

identifier! {
    /// The identifier of an item across all feeds that share it (SSE 1.0 section 2.4, `sx:sync/@id`).
    ///
    /// Ids made here use `[a-z0-9.-]` only. Ids of others should be Namespace Specific Strings of
    /// RFC 2141; as a reader we take any text without white space at its ends or control characters,
    /// because identity is compared by code points and nothing else (section 2.1.4).
    SyncId(Box<str>), "sync id", FOREIGN_ID_LIMIT,
    "control characters and white space at either end are not allowed",
    find_wrong_in_foreign
}

identifier! {
    /// The identifier of an endpoint (SSE 1.0 section 2.1.1; `by` of section 2.5).
    ///
    /// Compared as UTF-8 bytes, which is code-point order (READINGS 1, row 7).
    EndpointId(Box<str>), "endpoint id", FOREIGN_ID_LIMIT,
    "control characters and white space at either end are not allowed",
    find_wrong_in_foreign
}

impl EndpointId {
    /// Checks an endpoint id for this gateway itself: `[A-Za-z0-9.:-]{1,128}` (READINGS 1, row 23).
    pub fn own(text: &str) -> Result<Self, ValueError> {
        let allowed = "this gateway's endpoint id is made of A-Z, a-z, 0-9, '.', ':' and '-'";
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | ':' | '-');
        let find_wrong = |text: &str| text.char_indices().find(|(_, c)| !fits(*c));
        check("endpoint id", text, 128, allowed, find_wrong)?;
        Ok(Self(text.into()))
    }
}

identifier! {
    /// The identifier of a feed in SUP documents: `[A-Za-z0-9-]{1,128}` (SUP section 3; READINGS 4).
    SupId(Box<str>), "SUP id", 128,
    "a SUP id is made of A-Z, a-z, 0-9 and '-'",
    |text| text.char_indices().find(|(_, c)| !(c.is_ascii_alphanumeric() || *c == '-'))
}

identifier! {
    /// The id of an archive in its address: `[a-z0-9]{1,64}`. It tells nothing and never changes.
    ArchiveId(Box<str>), "archive id", 64,
    "an archive id is made of a-z and 0-9",
    |text| text.char_indices().find(|(_, c)| !(c.is_ascii_lowercase() || c.is_ascii_digit()))
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
        let said = FeedName::new("new_s").unwrap_err().to_string();
        let why = "feed name \"new_s\" has '_' at byte 3; a feed name is 1 to 64 of a-z";
        assert!(said.starts_with(why), "{said}");
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
