//! The operator's own noise: fields, or parts of their text, that never make a change.

use super::ValueError;
use regex::{Regex, RegexBuilder};
use serde::{Deserialize, Serialize};
use std::hash::{Hash, Hasher};

/// The most entries of one feed's list.
pub const IGNORE_LIMIT: usize = 64;
/// The longest path of a field, in bytes.
const FIELD_LIMIT: usize = 256;
/// The longest pattern, in bytes.
const PATTERN_LIMIT: usize = 512;
/// The most memory that a compiled pattern takes, in bytes.
const COMPILED_LIMIT: usize = 256 * 1024;
/// How deep the groups of a pattern go.
const NEST_LIMIT: u32 = 32;

/// A field that is noise, or the part of its text that is.
///
/// The field is named as the reasons of events name it (`description`,
/// `media:group/media:description`, `category@term`); what stands below it is meant too.
///
/// Its pattern is compiled once, where it is checked; a copy shares it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(try_from = "(String, Option<String>)", into = "(String, Option<String>)")]
pub struct Ignore {
    field: String,
    pattern: Option<Regex>,
}

impl Ignore {
    fn written(&self) -> (&str, Option<&str>) {
        (self.field(), self.pattern())
    }
}

impl TryFrom<(String, Option<String>)> for Ignore {
    type Error = ValueError;

    fn try_from((field, pattern): (String, Option<String>)) -> Result<Self, ValueError> {
        Self::new(&field, pattern.as_deref())
    }
}

impl From<Ignore> for (String, Option<String>) {
    fn from(ignore: Ignore) -> Self {
        let pattern = ignore.pattern().map(str::to_owned);
        (ignore.field, pattern)
    }
}

impl PartialEq for Ignore {
    fn eq(&self, other: &Self) -> bool {
        self.written() == other.written()
    }
}

impl Eq for Ignore {}

impl Hash for Ignore {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.written().hash(state);
    }
}

impl Ignore {
    /// Checks a field's path and, where only a part of its text is noise, the regular expression
    /// that finds that part.
    pub fn new(field: &str, pattern: Option<&str>) -> Result<Self, ValueError> {
        short_enough("field", field, FIELD_LIMIT)?;
        let is_text = field.trim() == field && !field.contains(char::is_control);
        // A namespace in braces has slashes of its own.
        let is_path = field.contains('{') || field.split('/').all(|step| !step.is_empty());
        if field.is_empty() || !is_text || !is_path {
            return Err(ValueError(format!(
                "{field:?} is no field; write it as the reasons of events name it, like \
                 \"description\" or \"media:group/media:description\""
            )));
        }
        let pattern = pattern
            .map(|pattern| {
                short_enough("pattern", pattern, PATTERN_LIMIT)?;
                compile(pattern)
            })
            .transpose()?;
        Ok(Self { field: field.to_owned(), pattern })
    }

    /// The field's path.
    pub fn field(&self) -> &str {
        &self.field
    }

    /// What of its text is noise; all of it where there is none.
    pub fn pattern(&self) -> Option<&str> {
        self.pattern.as_ref().map(Regex::as_str)
    }

    /// Whether a field, by its path, is the one that is meant, or stands below it, or is an
    /// attribute of it.
    pub fn covers(&self, path: &str) -> bool {
        let rest = path.strip_prefix(&self.field);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '@']))
    }

    /// Finds what is noise in the text that a reader would see of the field; nothing where the
    /// whole field is.
    pub const fn regex(&self) -> Option<&Regex> {
        self.pattern.as_ref()
    }
}

fn short_enough(what: &str, text: &str, limit: usize) -> Result<(), ValueError> {
    if text.len() <= limit {
        return Ok(());
    }
    let length = text.len();
    Err(ValueError(format!("the {what} is {length} bytes long, the limit is {limit}")))
}

fn compile(pattern: &str) -> Result<Regex, ValueError> {
    let built = RegexBuilder::new(pattern)
        .size_limit(COMPILED_LIMIT)
        .dfa_size_limit(COMPILED_LIMIT)
        .nest_limit(NEST_LIMIT)
        .build();
    built.map_err(|error| {
        let why = match error {
            regex::Error::CompiledTooBig(limit) => {
                format!("is too large when compiled, the limit is {limit} bytes")
            }
            // The first lines draw the pattern with a mark below it; the last one says what is wrong.
            other => {
                let told = other.to_string();
                let last = told.lines().next_back().unwrap_or_default();
                format!("is no regular expression: {}", last.trim_start_matches("error: "))
            }
        };
        ValueError(format!("the pattern {pattern:?} {why}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_means_itself_and_what_is_below_it_or_the_part_that_a_pattern_finds() {
        let ignore = Ignore::new("media:group", None).unwrap();
        for path in ["media:group", "media:group/media:title", "media:group@url"] {
            assert!(ignore.covers(path), "{path}");
        }
        for path in ["media:groups", "media", "a/media:group", "title"] {
            assert!(!ignore.covers(path), "{path}");
        }
        assert!(ignore.regex().is_none());
        let ignore = Ignore::new("description", Some("[0-9]+ views")).unwrap();
        assert_eq!((ignore.field(), ignore.pattern()), ("description", Some("[0-9]+ views")));
    }

    #[test]
    fn fields_are_paths() {
        for field in ["title", "link[alternate]@href", "{http://x.example/a/}b/c", "a/{urn:x}b"] {
            assert!(Ignore::new(field, None).is_ok(), "{field}");
        }
        for field in ["", " title", "a//b", "a/", "/a", "a\nb"] {
            let said = Ignore::new(field, None).unwrap_err().to_string();
            assert!(said.contains("is no field"), "{field:?}: {said}");
        }
        let long = Ignore::new(&"a".repeat(FIELD_LIMIT + 1), None).unwrap_err().to_string();
        assert_eq!(long, "the field is 257 bytes long, the limit is 256");
    }

    #[test]
    fn patterns_have_their_limits() {
        let refused = |pattern: &str| Ignore::new("title", Some(pattern)).unwrap_err().to_string();
        for (pattern, said) in [
            ("[0-9", "the pattern \"[0-9\" is no regular expression: unclosed character class"),
            (&"a".repeat(PATTERN_LIMIT + 1), "the limit is 512"),
            ("(a{1000}){1000}", "is too large when compiled, the limit is 262144 bytes"),
        ] {
            assert!(refused(pattern).ends_with(said), "{}", refused(pattern));
        }
        let deep = format!("{}a{}", "(".repeat(40), ")".repeat(40));
        assert!(refused(&deep).contains("is no regular expression"), "{}", refused(&deep));
    }
}
