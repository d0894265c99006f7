//! The consumer's side: bytes → a checked updates document (SUP section 3).

use crate::model::{SupId, Time};
use serde::Deserialize;
use serde::de::{DeserializeSeed, Error as _, IgnoredAny, SeqAccess, Visitor};
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
pub enum ReadError {
    /// It is no JSON, or a value has the wrong kind or form.
    #[error("the SUP document cannot be read: {0}")]
    Form(String),
    /// Its interval is shorter than its period (section 3.4).
    #[error(
        "the SUP document has period {period} but covers only {covered} s, from {since} to {updated}"
    )]
    Short {
        period: u32,
        /// The length of the interval, in seconds.
        covered: i64,
        /// `since_time`.
        since: Time,
        /// `updated_time`.
        updated: Time,
    },
    /// It offers too many periods. That the validator of the protocol wants two at least is for
    /// publishers: a document that offers one, or none, says what it says.
    #[error("the SUP document offers {found} periods; the limit is {PERIODS_LIMIT}")]
    Periods {
        /// How many it offers.
        found: usize,
    },
    /// An address is not absolute, or not of the web.
    #[error("the SUP document has no http or https address for the period {period}")]
    Address {
        /// The period whose address it is.
        period: u32,
    },
}

#[derive(Deserialize)]
struct WrittenMember<'a> {
    #[serde(borrow)]
    updates: &'a RawValue,
    period: Period,
    since_time: SupDateTime,
    updated_time: SupDateTime,
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
    let form = |error: serde_json::Error| ReadError::Form(error.to_string());
    let written: WrittenMember<'_> = serde_json::from_slice(bytes).map_err(form)?;
    let mut pairs = serde_json::Deserializer::from_str(written.updates.get());
    let updates = Updates { only }.deserialize(&mut pairs).map_err(form)?;
    let (period, since, updated) = (written.period.0, written.since_time.0, written.updated_time.0);
    let covered = updated.unix().saturating_sub(since.unix());
    if covered < i64::from(period) {
        return Err(ReadError::Short { period, covered, since, updated });
    }
    let available = match written.available_periods {
        Some(offered) => periods(offered)?,
        None => BTreeMap::new(),
    };
    Ok(SupDocument { period, since, updated, available, updates })
}

fn periods(offered: BTreeMap<String, String>) -> Result<BTreeMap<u32, String>, ReadError> {
    let found = offered.len();
    if found > PERIODS_LIMIT {
        return Err(ReadError::Periods { found });
    }
    let mut periods = BTreeMap::new();
    for (period, address) in offered {
        let period = seconds(&period)
            .map_err(|wrong| ReadError::Form(format!("available_periods: {wrong}")))?;
        let url = url::Url::parse(&address).ok();
        let on_the_web = url.is_some_and(|url| matches!(url.scheme(), "http" | "https"));
        if !on_the_web || address.len() > ADDRESS_LIMIT {
            return Err(ReadError::Address { period });
        }
        periods.insert(period, address);
    }
    Ok(periods)
}

/// A positive number of seconds, written in digits.
fn seconds(text: &str) -> Result<u32, String> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let number = text.parse::<u32>().ok().filter(|number| digits && *number > 0);
    number.ok_or_else(|| {
        let shown: String = text.chars().take(ID_LIMIT).collect();
        format!("a period is a positive whole number of seconds, not {shown:?}")
    })
}

/// A positive integer, or its digits in a text (READINGS 4, row 5).
struct Period(u32);

impl<'de> Deserialize<'de> for Period {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Either;
        impl Visitor<'_> for Either {
            type Value = Period;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a positive whole number of seconds")
            }
            fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<Period, E> {
                let period = u32::try_from(number).ok().filter(|number| *number > 0);
                period.map(Period).ok_or_else(|| E::custom(format!("{number} is no period")))
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Period, E> {
                seconds(text).map(Period).map_err(E::custom)
            }
        }
        from.deserialize_any(Either)
    }
}

/// An RFC 3339 date-time with any offset (READINGS 4, row 13).
struct SupDateTime(Time);

impl<'de> Deserialize<'de> for SupDateTime {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(from)?;
        Time::parse_rfc3339(&text).map(SupDateTime).map_err(D::Error::custom)
    }
}

/// The updates, at most [`UPDATES_LIMIT`]; those of some ids only, where they are given.
struct Updates<'o> {
    only: Option<&'o BTreeSet<SupId>>,
}

impl<'de> DeserializeSeed<'de> for Updates<'_> {
    type Value = Vec<UpdateMember>;

    fn deserialize<D: serde::Deserializer<'de>>(
        self,
        from: D,
    ) -> Result<Vec<UpdateMember>, D::Error> {
        from.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Updates<'_> {
    type Value = Vec<UpdateMember>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of pairs of SUP id and update id")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut pairs: A) -> Result<Vec<UpdateMember>, A::Error> {
        let (mut updates, mut listed) = (Vec::new(), 0_usize);
        while let Some(MemberPair(update)) = pairs.next_element()? {
            if listed >= UPDATES_LIMIT {
                let said = format!("it lists more than {UPDATES_LIMIT} updates");
                return Err(A::Error::custom(said));
            }
            listed += 1;
            if self.only.is_none_or(|only| only.contains(&update.id)) {
                updates.push(update);
            }
        }
        Ok(updates)
    }
}

struct MemberPair(UpdateMember);

impl<'de> Deserialize<'de> for MemberPair {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Two;
        impl<'de> Visitor<'de> for Two {
            type Value = MemberPair;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a SUP id and an update id")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut two: A) -> Result<MemberPair, A::Error> {
                let mut part = |place| {
                    let part = two.next_element::<std::borrow::Cow<'de, str>>()?;
                    let part = part.ok_or_else(|| A::Error::invalid_length(place, &self))?;
                    // An update id obeys the same rule (section 5).
                    SupId::new(&part).map_err(A::Error::custom)
                };
                let (id, update) = (part(0)?, part(1)?);
                if two.next_element::<IgnoredAny>()?.is_some() {
                    return Err(A::Error::invalid_length(3, &self));
                }
                Ok(MemberPair(UpdateMember { id, update: update.as_str().into() }))
            }
        }
        from.deserialize_seq(Two)
    }
}
