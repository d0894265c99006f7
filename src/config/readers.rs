//! `[[reader]]`: who may read private feeds, and by which token. No message repeats a token.

use super::Fault;
use super::access::secret_value;
use super::declare::*;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use tidegate_core::model::{FeedName, SecretSource};

/// The most readers in one file.
pub const READER_LIMIT: usize = 1_000;
/// The most feeds of one reader.
pub const READER_FEEDS_LIMIT: usize = 10_000;
/// The longest name of a reader, in bytes.
const NAME_LIMIT: usize = 64;

section! {
    /// A reader of private feeds.
    pub struct ReaderConfig with KEYS {
        /// What you call the reader: a person or a program.
        name: String = parsed("1 to 64 of `a-z`, `A-Z`, `0-9`, `-`, `_`, `.`", name),
            Words("required", "\"ann\"");
        /// The token, a secret: a text, `{ file = "…" }` or `{ env = "…" }`.
        ///
        /// 22 or more of A-Z, a-z, 0-9, - and _ by chance, or 32 where all are hexadecimal digits: make one
        /// with `tidegate reader token`. It opens /t/TOKEN/feeds/NAME, and is the password of /feeds/NAME. No
        /// page, message or export shows it. Files and variables are read at the start and at a reload.
        token: Option<SecretSource> = secret_value().optional(), Words("required", "{ file = \"/run/secrets/ann\" }");
        /// The feeds that it opens, private or not.
        feeds: Vec<FeedName> = list(READER_FEEDS_LIMIT, "a list of feed names", FeedName::new),
            Words("required, unless `all_private`", "[\"news\"]");
        /// It opens all private feeds, those that are added later as well.
        all_private: bool = flag(), Preset("false");
    }
}

/// The token of a reader.
#[derive(Clone, PartialEq, Eq)]
pub struct ReaderToken(String);

const MAKE_ONE: &str = "make one with: tidegate reader token";

impl ReaderToken {
    /// The fewest characters: 128 bits of the alphabet's 64 characters.
    pub const LEAST: usize = 22;
    /// The fewest where all are hexadecimal digits.
    const LEAST_HEXADECIMAL: usize = 32;
    /// The fewest different characters. By chance there are fewer once in millions of tokens.
    const LEAST_DIFFERENT: usize = 7;
    /// The most characters.
    pub const LIMIT: usize = 128;

    /// Checks a token: long enough that nobody guesses it, of characters that stand in an address as
    /// they are. What is said of one that is none does not repeat it.
    pub fn new(text: &str) -> Result<Self, String> {
        let length = text.len();
        let is_plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
        if !text.bytes().all(is_plain) {
            return Err(format!("has a character other than A-Z, a-z, 0-9, - and _; {MAKE_ONE}"));
        }
        if length > Self::LIMIT {
            return Err(format!("has {length} characters, the limit is {}", Self::LIMIT));
        }
        let is_hexadecimal = text.bytes().all(|b| b.is_ascii_hexdigit());
        if length < if is_hexadecimal { Self::LEAST_HEXADECIMAL } else { Self::LEAST } {
            return Err(format!(
                "may be guessed: it has {length} characters, and {} are the least (32 where all are hexadecimal \
                 digits); {MAKE_ONE}",
                Self::LEAST
            ));
        }
        if text.bytes().collect::<BTreeSet<u8>>().len() < Self::LEAST_DIFFERENT {
            let said = "may be guessed: it has only a few different characters";
            return Err(format!("{said}; {MAKE_ONE}"));
        }
        Ok(Self(text.to_owned()))
    }

    /// The token itself.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ReaderToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ReaderToken(…)")
    }
}

/// Reads the readers; `known`: the names that feeds and aggregates of the file bear.
pub(super) fn read(
    top: &mut Section<'_, '_, '_>,
    known: &BTreeMap<FeedName, usize>,
) -> Vec<ReaderConfig> {
    let mut readers: Vec<ReaderConfig> = Vec::new();
    let mut names: BTreeMap<String, usize> = BTreeMap::new();
    let mut tokens: Vec<(SecretSource, usize)> = Vec::new();
    top.tables("reader", &KEYS, READER_LIMIT, |section, table| {
        let name = section.is_read("name").then(|| table.name.clone());
        let name = section.take_name(name, &mut names);
        section.demand("token", &format!("each [[reader]] has its own; {MAKE_ONE}"));
        if let Some(token) = &table.token {
            check_token(section, token, &mut tokens);
        }
        if table.feeds.is_empty() && !table.all_private && !section.has("feeds") {
            let message = "is missing; name the feeds that this reader may read, or write all_private = true";
            section.fault("feeds", message);
        }
        for (at, feed) in section.texts("feeds") {
            if !known.keys().any(|name| name.as_str() == feed) {
                let message = format!(
                    "there is no feed {feed:?} in this file; it counts if the administration API adds one"
                );
                let place = section.sheet.place(at, "reader.feeds");
                section.sheet.checked.warnings.push(Fault { message, ..place });
            }
        }
        readers.extend(name.map(|_| table));
    });
    readers
}

/// Checks a token that is written here, and notes where it is otherwise.
fn check_token(
    section: &mut Section<'_, '_, '_>,
    token: &SecretSource,
    seen: &mut Vec<(SecretSource, usize)>,
) {
    let checked = match token {
        SecretSource::Literal(text) => ReaderToken::new(text.reveal()).map(drop),
        SecretSource::LeftOut => {
            Err("is not in the file: \"stored\" is for the API alone".to_owned())
        }
        SecretSource::File(_) | SecretSource::Env(_) => Ok(()),
    };
    match checked {
        // Another one may be the same, in a file.
        Ok(()) => section.refer("token", External::ReaderToken(token.clone())),
        Err(message) => section.fault("token", message),
    }
    match seen.iter().find(|(other, _)| other == token) {
        Some((_, line)) => {
            section.fault("token", format!("is that of line {line}; each reader has its own"))
        }
        None => seen.push((token.clone(), section.line())),
    }
}

fn name(text: &str) -> Result<String, String> {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
    if !(1..=NAME_LIMIT).contains(&text.len()) || !text.bytes().all(is_plain) {
        return Err(format!(
            "is no name of a reader; write 1 to {NAME_LIMIT} letters, digits, -, _ and ."
        ));
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "0123456789abcdef0123456789abcdef";

    #[test]
    fn tokens_are_long_enough() {
        assert!(ReaderToken::new(TOKEN).is_ok());
        assert!(ReaderToken::new("AbCdEfGhIjKlMnOpQrStUv").is_ok());
        let short = ReaderToken::new("AbCdEfGhIjKlMnOpQrStU").unwrap_err();
        assert!(short.starts_with("may be guessed: it has 21 characters, and 22 are"), "{short}");
        let long = ReaderToken::new(&"Aa1_Bb2-".repeat(17)).unwrap_err();
        assert_eq!(long, "has 136 characters, the limit is 128");
        assert!(!format!("{:?}", ReaderToken::new(TOKEN)).contains(TOKEN));
    }
}
