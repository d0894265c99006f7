//! Whole-second instants and the watermark of a feed.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// The first second that has a fixed-width RFC 3339 form: `0000-01-01T00:00:00Z`.
const FIRST: i64 = -62_167_219_200;
/// The last one that a date-time with any offset can name: `9999-12-30T22:00:00Z`.
const LAST: i64 = 253_402_207_200;

/// A point in time: whole seconds of UTC, of the years 0000 to 9999.
///
/// Prints at fixed width (`2026-11-20T16:20:05Z`), so that the order of texts is the order of times.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "i64", into = "i64")]
pub struct Time(i64);

impl From<i64> for Time {
    fn from(seconds: i64) -> Self {
        Self::from_unix(seconds)
    }
}

impl From<Time> for i64 {
    fn from(time: Time) -> Self {
        time.unix()
    }
}

/// Why a text is not a date-time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a date-time of the form {wanted}")]
pub struct TimeError {
    text: String,
    wanted: &'static str,
}

impl Time {
    /// The earliest representable time.
    pub const MIN: Self = Self(FIRST);
    /// The latest representable time.
    pub const MAX: Self = Self(LAST);

    /// From seconds since 1970-01-01T00:00:00Z, held within the representable years.
    pub const fn from_unix(seconds: i64) -> Self {
        if seconds < FIRST {
            Self(FIRST)
        } else if seconds > LAST {
            Self(LAST)
        } else {
            Self(seconds)
        }
    }

    /// Seconds since 1970-01-01T00:00:00Z.
    pub const fn unix(self) -> i64 {
        self.0
    }

    /// Reads an RFC 3339 date-time with any offset; a fraction of a second is cut off
    /// (READINGS 1, row 6).
    pub fn parse_rfc3339(text: &str) -> Result<Self, TimeError> {
        let wrong = || TimeError { text: text.to_owned(), wanted: "2026-11-20T16:20:05Z" };
        let timestamp: jiff::Timestamp = text.trim().parse().map_err(|_| wrong())?;
        let whole = timestamp.as_nanosecond().div_euclid(1_000_000_000);
        let seconds = i64::try_from(whole).map_err(|_| wrong())?;
        if (FIRST..=LAST).contains(&seconds) { Ok(Self(seconds)) } else { Err(wrong()) }
    }

    /// This time and `later`, held within the representable years.
    pub fn plus(self, later: Duration) -> Self {
        let seconds = i64::try_from(later.as_secs()).unwrap_or(i64::MAX);
        Self::from_unix(self.0.saturating_add(seconds))
    }

    /// This time less `earlier`, held within the representable years.
    pub fn minus(self, earlier: Duration) -> Self {
        let seconds = i64::try_from(earlier.as_secs()).unwrap_or(i64::MAX);
        Self::from_unix(self.0.saturating_sub(seconds))
    }

    /// How long after `earlier` this is; zero where it is not after it.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_secs(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// The calendar fields: year, month, day, hour, minute, second.
    fn civil(self) -> (i64, i64, i64, i64, i64, i64) {
        let days = self.0.div_euclid(86_400);
        let second = self.0.rem_euclid(86_400);
        // Days to calendar date in the proleptic Gregorian calendar, eras of 400 years.
        let shifted = days + 719_468;
        let era = shifted.div_euclid(146_097);
        let day_of_era = shifted.rem_euclid(146_097);
        let year_of_era =
            (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month_shifted = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * month_shifted + 2) / 5 + 1;
        let month = if month_shifted < 10 { month_shifted + 3 } else { month_shifted - 9 };
        let year = year_of_era + era * 400 + i64::from(month <= 2);
        (year, month, day, second / 3600, second / 60 % 60, second % 60)
    }

    /// The RFC 822 form that RSS and HTTP use: `Fri, 20 Nov 2026 16:20:05 GMT`.
    pub fn rfc822(self) -> String {
        const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
        const MONTHS: [&str; 12] =
            ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
        let (year, month, day, hour, minute, second) = self.civil();
        let weekday = usize::try_from(self.0.div_euclid(86_400).rem_euclid(7)).unwrap_or(0);
        let weekday = DAYS.get(weekday).copied().unwrap_or("Thu");
        let month = usize::try_from(month - 1).ok().and_then(|m| MONTHS.get(m).copied());
        let month = month.unwrap_or("Jan");
        format!("{weekday}, {day:02} {month} {year:04} {hour:02}:{minute:02}:{second:02} GMT")
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day, hour, minute, second) = self.civil();
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
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
    type Err = TimeError;

    /// Reads exactly the form that ticks are printed in, nothing else.
    fn from_str(text: &str) -> Result<Self, TimeError> {
        match Time::parse_rfc3339(text) {
            Ok(time) if time.to_string() == text => Ok(Self(time)),
            _ => Err(TimeError { text: text.to_owned(), wanted: "2026-11-20T16:20:05Z" }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        }
        assert_eq!(Time::from_unix(1_795_191_605).rfc822(), "Fri, 20 Nov 2026 16:20:05 GMT");
    }

    #[test]
    fn agrees_with_a_calendar_library() {
        for step in 0..4000 {
            let seconds = FIRST + step * 78_912_345;
            if seconds > LAST {
                break;
            }
            let expected = jiff::Timestamp::from_second(seconds).map(|t| t.to_string());
            if let Ok(expected) = expected {
                assert_eq!(Time::from_unix(seconds).to_string(), expected);
            }
        }
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
