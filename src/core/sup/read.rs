//! Parses and checks an updates document, for a consumer (SUP section 3).

use crate::model::{SupId, Time};
use serde::Deserialize;
use serde::de::{Deserializer as _, Error as _, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// The most updates in one document.
pub const UPDATES_LIMIT: usize = 2_000_000;

/// The longest SUP id and update id, in characters (sections 4 and 5).
pub const ID_LIMIT: usize = 128;

/// The most periods that a document may offer.
const PERIODS_LIMIT: usize = 64;

/// The longest address of a document, in bytes.
const ADDRESS_LIMIT: usize = 4096;

/// One update.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct UpdateMember {
    /// The id of the feed or feeds.
    pub id: SupId,
    /// The id of the update: opaque (section 5).
    pub update: Box<str>,
}

/// An updates document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SupDocument {
    /// The period, in seconds.
    pub period: u32,
    /// The start of its interval (`since_time`).
    pub since: Time,
    /// The end of its interval (`updated_time`).
    pub updated: Time,
    /// The addresses of documents by period in seconds; absolute, http or https.
    pub available: BTreeMap<u32, String>,
    /// The updates, in the order of the document.
    pub updates: Vec<UpdateMember>,
}

/// Why a text is not a valid updates document.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the SUP document {0}")]
pub struct ReadError(String);

impl ReadError {
    fn of_form(why: impl fmt::Display) -> Self {
        Self(format!("cannot be read: {why}"))
    }
}

#[derive(Deserialize)]
struct ReadDocument<'a> {
    #[serde(borrow)]
    updates: &'a RawValue,
    /// A positive integer, or its digits as a string (READINGS 4, row 5).
    #[serde(borrow)]
    period: &'a RawValue,
    since_time: String,
    updated_time: String,
    #[serde(default)]
    available_periods: Option<BTreeMap<String, String>>,
}

/// Parses an updates document and checks it by the rules of the protocol. Unknown keys are ignored (section 3).
pub fn read(bytes: &[u8]) -> Result<SupDocument, ReadError> {
    read_of(bytes, None)
}

/// Like [`read`], but keeps only the updates of ids in `only`: a publisher may list a million feeds of which few
/// matter. All updates are checked.
pub fn read_of(bytes: &[u8], only: Option<&BTreeSet<SupId>>) -> Result<SupDocument, ReadError> {
    // JSON has no byte order mark, but some publishers send one.
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let written: ReadDocument<'_> = serde_json::from_slice(bytes).map_err(ReadError::of_form)?;
    let mut pairs = serde_json::Deserializer::from_str(written.updates.get());
    let updates = pairs.deserialize_seq(Updates { only }).map_err(ReadError::of_form)?;
    let period = seconds(written.period.get().trim_matches('"'))?;
    // Any offset is accepted (READINGS 4, row 13).
    let time = |text: &str| Time::parse_rfc3339(text).map_err(ReadError::of_form);
    let (since, updated) = (time(&written.since_time)?, time(&written.updated_time)?);
    let covered = updated.unix().saturating_sub(since.unix());
    // The interval must not be shorter than the period (section 3.4).
    if covered < i64::from(period) {
        return Err(ReadError(format!(
            "has period {period} but covers only {covered} s, from {since} to {updated}"
        )));
    }
    let available = periods(written.available_periods.unwrap_or_default())?;
    Ok(SupDocument { period, since, updated, available, updates })
}

/// Parses the addresses of documents of other periods. The protocol's validator requires publishers to offer at least
/// two; a document with fewer is accepted here.
fn periods(offered: BTreeMap<String, String>) -> Result<BTreeMap<u32, String>, ReadError> {
    let found = offered.len();
    if found > PERIODS_LIMIT {
        return Err(ReadError(format!("offers {found} periods; the limit is {PERIODS_LIMIT}")));
    }
    let mut periods = BTreeMap::new();
    for (period, address) in offered {
        let period = seconds(&period)?;
        let url = url::Url::parse(&address).ok();
        let on_the_web = url.is_some_and(|url| matches!(url.scheme(), "http" | "https"));
        if !on_the_web || address.len() > ADDRESS_LIMIT {
            return Err(ReadError(format!("has no http or https address for the period {period}")));
        }
        periods.insert(period, address);
    }
    Ok(periods)
}

/// Parses a positive number of seconds in digits.
fn seconds(text: &str) -> Result<u32, ReadError> {
    let digits = text.bytes().all(|b| b.is_ascii_digit());
    let number = text.parse::<u32>().ok().filter(|number| digits && *number > 0);
    number.ok_or_else(|| {
        let shown: String = text.chars().take(ID_LIMIT).collect();
        let why = format!("a period is a positive whole number of seconds, not {shown:?}");
        ReadError::of_form(why)
    })
}

/// Visits the updates, at most [`UPDATES_LIMIT`], and keeps those in `only`, if given.
struct Updates<'o> {
    only: Option<&'o BTreeSet<SupId>>,
}

impl<'de> Visitor<'de> for Updates<'_> {
    type Value = Vec<UpdateMember>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of pairs of SUP id and update id")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut pairs: A) -> Result<Vec<UpdateMember>, A::Error> {
        let (mut updates, mut listed) = (Vec::new(), 0_usize);
        while let Some((id, update)) = pairs.next_element::<(String, String)>()? {
            if listed >= UPDATES_LIMIT {
                let said = format!("it lists more than {UPDATES_LIMIT} updates");
                return Err(A::Error::custom(said));
            }
            listed += 1;
            let id = SupId::new(&id).map_err(A::Error::custom)?;
            // An update id follows the same rule (section 5).
            SupId::new(&update).map_err(A::Error::custom)?;
            if self.only.is_none_or(|only| only.contains(&id)) {
                updates.push(UpdateMember { id, update: update.into() });
            }
        }
        Ok(updates)
    }
}
