//! Durations and sizes as operators write them: `90s`, `5m`, `24h`, `30d`; `512MiB`, `2GiB`.

use std::time::Duration;

/// The units, largest first, with their seconds.
const UNITS: [(char, u64); 4] = [('d', 86_400), ('h', 3_600), ('m', 60), ('s', 1)];

/// The longest duration that is read: a hundred years, in seconds.
const LONGEST: u64 = 36_525 * 86_400;

/// Reads a duration: digits and one unit, with nothing around or between them.
pub fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || {
        format!(
            "{text:?} is not a duration; write a whole number and one of s, m, h, d, like \"90s\", \"5m\", \"24h\" or \"30d\""
        )
    };
    let find = |(letter, seconds): &(char, u64)| Some((text.strip_suffix(*letter)?, *seconds));
    let (digits, seconds) = UNITS.iter().find_map(find).ok_or_else(wrong)?;
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(wrong());
    }
    // Only digits are left, so the one way to fail is to be too large.
    let total = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(seconds));
    let total = total.filter(|total| *total <= LONGEST);
    let too_long = || format!("{text:?} is longer than a hundred years, the limit for a duration");
    total.map(Duration::from_secs).ok_or_else(too_long)
}

/// Writes a duration so that [`duration`] reads it back, in the largest unit that fits it whole.
/// Fractions of a second are cut off.
pub fn written(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let fitting = UNITS.iter().find(|(_, unit)| seconds >= *unit && seconds.is_multiple_of(*unit));
    fitting.map_or_else(
        || format!("{seconds}s"),
        |(letter, unit)| format!("{}{letter}", seconds / unit),
    )
}

/// The units, largest first, with their bytes.
const SIZES: [(&str, u64); 3] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];

/// Reads a size in bytes: digits and one unit, with nothing around or between them.
pub(super) fn size(text: &str) -> Result<u64, String> {
    let wrong = || {
        format!(
            "{text:?} is not a size; write a whole number and one of KiB, MiB, GiB, like \"512MiB\""
        )
    };
    let fits = |(name, unit): &(&str, u64)| Some((text.strip_suffix(name)?, *unit));
    let (digits, unit) = SIZES.iter().find_map(fits).ok_or_else(wrong)?;
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(wrong());
    }
    let number: u64 = digits.parse().map_err(|_| wrong())?;
    number.checked_mul(unit).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_forms_of_the_contract() {
        for (text, seconds) in [
            ("90s", 90),
            ("5m", 300),
            ("24h", 86_400),
            ("30d", 2_592_000),
            ("0s", 0),
            ("007m", 420),
        ] {
            assert_eq!(duration(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
    }

    #[test]
    fn nothing_else_is_a_duration() {
        for text in [
            "", "s", "5", "5 m", " 5m", "5m ", "5M", "-5m", "+5m", "1.5h", "1h30m", "5min", "5ms",
            "٥m", "5µ", "1w",
        ] {
            let said = duration(text).unwrap_err();
            assert!(said.contains("is not a duration"), "{text:?}: {said}");
        }
    }

    #[test]
    fn there_is_a_longest_one() {
        assert!(duration("36525d").is_ok());
        for text in ["36526d", "99999999999999999999s", "18446744073709551615d"] {
            let said = duration(text).unwrap_err();
            assert!(said.contains("is longer than a hundred years"), "{text:?}: {said}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(seconds in 0..=LONGEST) {
            let value = Duration::from_secs(seconds);
            prop_assert_eq!(duration(&written(value)), Ok(value));
        }

        #[test]
        fn any_text_is_refused_or_a_whole_number_of_its_unit(text in "\\PC{0,12}") {
            if let Ok(value) = duration(&text) {
                prop_assert!(value.as_secs() <= LONGEST);
                prop_assert!(text.is_ascii() && text.len() >= 2);
            }
        }
    }
}

#[cfg(test)]
mod size_tests {
    use super::*;

    #[test]
    fn sizes_are_a_number_and_a_unit() {
        assert_eq!(size("1KiB"), Ok(1024));
        assert_eq!(size("512MiB"), Ok(512 << 20));
        assert_eq!(size("0GiB"), Ok(0));
        for bad in ["", "12", "MiB", "1 MiB", "-1MiB", "1.5GiB", "1mb", "1MB", "99999999999GiB"] {
            let said = size(bad);
            assert!(said.is_err_and(|said| said.contains("like \"512MiB\"")), "{bad:?} was taken");
        }
    }
}
