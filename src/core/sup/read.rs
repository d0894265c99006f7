//! The consumer's side: bytes → a checked updates document (SUP section 3).

use crate::model::{SupId, Time};
use serde::Deserialize;
use serde::de::{Deserializer as _, Error as _, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// The most updates of one document that are read.
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
    /// Which feed, or feeds.
    pub id: SupId,
    /// Which update of it: opaque (section 5).
    pub update: Box<str>,
}

/// An updates document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SupDocument {
    /// The period, in seconds.
    pub period: u32,
    /// Where the interval begins.
    pub since: Time,
    /// Where it ends.
    pub updated: Time,
    /// Where documents of other periods are, by period in seconds; absolute http or https.
    pub available: BTreeMap<u32, String>,
    /// The updates, in the order of the document.
    pub updates: Vec<UpdateMember>,
}

/// Why a text is no updates document.
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
    /// A positive integer, or its digits in a text (READINGS 4, row 5).
    #[serde(borrow)]
    period: &'a RawValue,
    since_time: String,
    updated_time: String,
    #[serde(default)]
    available_periods: Option<BTreeMap<String, String>>,
}

/// Reads an updates document and checks it by the rules of the protocol. Keys that the protocol does
/// not know are ignored (section 3).
pub fn read(bytes: &[u8]) -> Result<SupDocument, ReadError> {
    read_of(bytes, None)
}

/// The same, of which only the updates of these ids are kept: a publisher may list a million feeds,
/// of which few matter. All are checked.
pub fn read_of(bytes: &[u8], only: Option<&BTreeSet<SupId>>) -> Result<SupDocument, ReadError> {
    // JSON itself has no byte order mark; some publishers send one all the same.
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let written: ReadDocument<'_> = serde_json::from_slice(bytes).map_err(ReadError::of_form)?;
    let mut pairs = serde_json::Deserializer::from_str(written.updates.get());
    let updates = pairs.deserialize_seq(Updates { only }).map_err(ReadError::of_form)?;
    let period = seconds(written.period.get().trim_matches('"'))?;
    // With any offset (READINGS 4, row 13).
    let time = |text: &str| Time::parse_rfc3339(text).map_err(ReadError::of_form);
    let (since, updated) = (time(&written.since_time)?, time(&written.updated_time)?);
    let covered = updated.unix().saturating_sub(since.unix());
    // Its interval is never shorter than its period (section 3.4).
    if covered < i64::from(period) {
        return Err(ReadError(format!(
            "has period {period} but covers only {covered} s, from {since} to {updated}"
        )));
    }
    let available = periods(written.available_periods.unwrap_or_default())?;
    Ok(SupDocument { period, since, updated, available, updates })
}

/// Where documents of other periods are. That the validator of the protocol wants two at least is for publishers: a
/// document that offers one, or none, says what it says.
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

/// A positive number of seconds, written in digits.
fn seconds(text: &str) -> Result<u32, ReadError> {
    let digits = text.bytes().all(|b| b.is_ascii_digit());
    let number = text.parse::<u32>().ok().filter(|number| digits && *number > 0);
    number.ok_or_else(|| {
        let shown: String = text.chars().take(ID_LIMIT).collect();
        let why = format!("a period is a positive whole number of seconds, not {shown:?}");
        ReadError::of_form(why)
    })
}

/// The updates, at most [`UPDATES_LIMIT`]; those of some ids only, where they are given.
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
            // An update id obeys the same rule (section 5).
            SupId::new(&update).map_err(A::Error::custom)?;
            if self.only.is_none_or(|only| only.contains(&id)) {
                updates.push(UpdateMember { id, update: update.into() });
            }
        }
        Ok(updates)
    }
}
