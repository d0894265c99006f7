//! Whole-second instants and the watermark of a feed.

use super::ValueError;
use serde::{Deserialize, Serialize, Serializer};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::num::NonZeroU64;
use std::str::FromStr;
use std::time::Duration;

/// The first second that has a fixed-width RFC 3339 form: `0000-01-01T00:00:00Z`.
const FIRST: i64 = -62_167_219_200;
/// The second before it, from which times are counted.
const BEFORE_FIRST: i64 = FIRST - 1;
/// The last one that a date-time with any offset can name: `9999-12-30T22:00:00Z`.
const LAST: i64 = 253_402_207_200;

/// A point in time: whole seconds of UTC, of the years 0000 to 9999.
///
/// Prints at fixed width (`2026-11-20T16:20:05Z`), so that the order of texts is the order of
/// times.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(from = "i64")]
pub struct Time(
    /// Seconds since [`BEFORE_FIRST`]: never 0, so that an `Option<Time>` has 8 bytes.
    NonZeroU64,
);

impl Default for Time {
    /// The earliest.
    fn default() -> Self {
        Self::MIN
    }
}

impl Hash for Time {
    /// As its seconds since 1970.
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.unix().hash(state);
    }
}

impl From<i64> for Time {
    fn from(seconds: i64) -> Self {
        Self::from_unix(seconds)
    }
}

impl Serialize for Time {
    /// The text where people read it, the seconds elsewhere.
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        if to.is_human_readable() { to.collect_str(self) } else { to.serialize_i64(self.unix()) }
    }
}

fn no_time(text: &str) -> ValueError {
    ValueError(format!("{text:?} is not a date-time of the form 2026-11-20T16:20:05Z"))
}

impl Time {
    /// The earliest representable time.
    pub const MIN: Self = Self::from_unix(FIRST);
    /// The latest representable time.
    pub const MAX: Self = Self::from_unix(LAST);

    /// From seconds since 1970-01-01T00:00:00Z, held within the representable years.
    pub const fn from_unix(seconds: i64) -> Self {
        let held = if seconds < FIRST {
            FIRST
        } else if seconds > LAST {
            LAST
        } else {
            seconds
        };
        match NonZeroU64::new(held.abs_diff(BEFORE_FIRST)) {
            Some(since) => Self(since),
            None => Self(NonZeroU64::MIN),
        }
    }

    /// Seconds since 1970-01-01T00:00:00Z.
    pub const fn unix(self) -> i64 {
        BEFORE_FIRST.saturating_add_unsigned(self.0.get())
    }

    /// Reads an RFC 3339 date-time with any offset; a fraction of a second is cut off
    /// (READINGS 1, row 6).
    pub fn parse_rfc3339(text: &str) -> Result<Self, ValueError> {
        let wrong = || no_time(text);
        let timestamp: jiff::Timestamp = text.trim().parse().map_err(|_| wrong())?;
        let whole = timestamp.as_nanosecond().div_euclid(1_000_000_000);
        let seconds = i64::try_from(whole).map_err(|_| wrong())?;
        if (FIRST..=LAST).contains(&seconds) { Ok(Self::from_unix(seconds)) } else { Err(wrong()) }
    }

    /// Reads a date-time of RFC 2822, which obsoletes RFC 822; its weekday is often wrong and not
    /// believed.
    pub fn parse_rfc2822(text: &str) -> Option<Self> {
        let parser = jiff::fmt::rfc2822::DateTimeParser::new().relaxed_weekday(true);
        let timestamp = parser.parse_timestamp(text.trim()).ok()?;
        Some(Self::from_unix(timestamp.as_second()))
    }

    /// This time and `later`, held within the representable years.
    pub fn plus(self, later: Duration) -> Self {
        let seconds = i64::try_from(later.as_secs()).unwrap_or(i64::MAX);
        Self::from_unix(self.unix().saturating_add(seconds))
    }

    /// This time less `earlier`, held within the representable years.
    pub fn minus(self, earlier: Duration) -> Self {
        let seconds = i64::try_from(earlier.as_secs()).unwrap_or(i64::MAX);
        Self::from_unix(self.unix().saturating_sub(seconds))
    }

    /// How long after `earlier` this is; zero where it is not after it.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_secs(self.0.get().saturating_sub(earlier.0.get()))
    }

    /// This time of one clock by another one, while the one shows `here` and the other `there`.
    pub fn by_another_clock(self, here: Self, there: Self) -> Self {
        if self >= here { there.plus(self.since(here)) } else { there.minus(here.since(self)) }
    }

    /// The RFC 822 form that RSS and HTTP use: `Fri, 20 Nov 2026 16:20:05 GMT`.
    pub fn rfc822(self) -> String {
        let printer = jiff::fmt::rfc2822::DateTimePrinter::new();
        printer.timestamp_to_rfc9110_string(&self.timestamp()).unwrap_or_default()
    }

    /// The same for the calendar. Every time is within the years that it knows.
    fn timestamp(self) -> jiff::Timestamp {
        jiff::Timestamp::from_second(self.unix()).unwrap_or_default()
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.timestamp(), f)
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The moment a batch of changes was taken into a feed: `until`, and the SUP update id.
///
/// Strictly increasing per feed whatever the clock does (CONTRACT, Words).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Tick(Time);

impl Tick {
    /// The tick of a batch taken in at `now` into a feed whose last tick was `last`.
    pub fn next(now: Time, last: Option<Self>) -> Self {
        match last {
            Some(last) => Self(now.max(last.0.plus(Duration::from_secs(1)))),
            None => Self(now),
        }
    }

    /// The tick that stands for a stored or parsed time.
    pub const fn at(time: Time) -> Self {
        Self(time)
    }

    /// The time that this tick stands for.
    pub const fn time(self) -> Time {
        self.0
    }

    /// The SUP update id: the tick without its colons, a dash for each.
    pub fn update_id(self) -> String {
        self.0.to_string().replace(':', "-")
    }
}

impl fmt::Display for Tick {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Debug for Tick {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl FromStr for Tick {
    type Err = ValueError;

    /// Reads exactly the form that ticks are printed in, nothing else.
    fn from_str(text: &str) -> Result<Self, ValueError> {
        match Time::parse_rfc3339(text) {
            Ok(time) if time.to_string() == text => Ok(Self(time)),
            _ => Err(no_time(text)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_that_may_not_be_there_takes_no_more() {
        assert_eq!(size_of::<Option<Time>>(), size_of::<Time>());
        let ends = [i64::MIN, FIRST - 1, FIRST, 0, LAST, LAST + 1, i64::MAX];
        let held = ends.map(|seconds| Time::from_unix(seconds).unix());
        assert_eq!(held, [FIRST, FIRST, FIRST, 0, LAST, LAST, LAST]);
    }

    #[test]
    fn prints_at_fixed_width_and_reads_back() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (1_795_191_605, "2026-11-20T16:20:05Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (FIRST, "0000-01-01T00:00:00Z"),
            (LAST, "9999-12-30T22:00:00Z"),
            (-1, "1969-12-31T23:59:59Z"),
        ] {
            let time = Time::from_unix(seconds);
            assert_eq!(time.to_string(), text);
            assert_eq!(Time::parse_rfc3339(text), Ok(time));
            assert_eq!(Time::parse_rfc2822(&time.rfc822()), Some(time), "{text}");
        }
        let time = Time::from_unix(1_795_191_605);
        assert_eq!(time.rfc822(), "Fri, 20 Nov 2026 16:20:05 GMT");
        let wrong_weekday = "Mon, 20 Nov 2026 16:20:05 GMT";
        assert_eq!(Time::parse_rfc2822(wrong_weekday), Some(time));
        assert_eq!(Time::parse_rfc2822("2026-11-20T16:20:05Z"), None);
    }

    #[test]
    fn offsets_and_fractions_are_normalised() {
        let time = Time::parse_rfc3339("2026-11-20T17:20:05.999+01:00");
        assert_eq!(time.map(|t| t.to_string()), Ok("2026-11-20T16:20:05Z".to_owned()));
        assert!(Time::parse_rfc3339("20 Nov 2026").is_err());
    }

    #[test]
    fn ticks_never_stand_still_or_go_back() {
        let now = Time::from_unix(1000);
        let first = Tick::next(now, None);
        let second = Tick::next(now, Some(first));
        let third = Tick::next(Time::from_unix(5), Some(second));
        assert!(first < second && second < third);
        assert_eq!(third.time(), Time::from_unix(1002));
    }

    #[test]
    fn a_tick_is_read_only_in_its_own_form() {
        assert!("2026-11-20T16:20:05Z".parse::<Tick>().is_ok());
        for bad in
            ["", "2026-11-20T16:20:05+00:00", "2026-11-20t16:20:05z", " 2026-11-20T16:20:05Z"]
        {
            assert!(bad.parse::<Tick>().is_err(), "{bad:?} was taken");
        }
        let tick = Tick::at(Time::from_unix(1_795_191_605));
        assert_eq!(tick.update_id(), "2026-11-20T16-20-05Z");
    }
}
