//! Durations and sizes as operators write them: `90s`, `5m`, `24h`, `30d`; `512MiB`, `2GiB`.

use std::time::Duration;

/// The units of durations, largest first, with their seconds.
const UNITS: [(&str, u64); 4] = [("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)];
/// The units of sizes, with their bytes.
const SIZES: [(&str, u64); 3] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];

/// The longest duration that is read: a hundred years, in seconds.
const LONGEST: u64 = 36_525 * 86_400;

/// Reads digits and one unit, with nothing around or between them; `None` of anything else, and no amount where that is
/// too large.
fn amount(text: &str, units: &[(&str, u64)]) -> Option<Option<u64>> {
    let find = |(name, unit): &(&str, u64)| Some((text.strip_suffix(name)?, *unit));
    let (digits, unit) = units.iter().find_map(find)?;
    let is_number = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    is_number.then(|| digits.parse::<u64>().ok()?.checked_mul(unit))
}

/// Reads a duration.
pub fn duration(text: &str) -> Result<Duration, String> {
    let Some(total) = amount(text, &UNITS) else {
        return Err(format!(
            "{text:?} is not a duration; write a whole number and one of s, m, h, d, like \"90s\", \"5m\", \"24h\" or \"30d\""
        ));
    };
    let too_long = || format!("{text:?} is longer than a hundred years, the limit for a duration");
    total.filter(|total| *total <= LONGEST).map(Duration::from_secs).ok_or_else(too_long)
}

/// Reads a size in bytes.
pub(super) fn size(text: &str) -> Result<u64, String> {
    amount(text, &SIZES).flatten().ok_or_else(|| {
        format!(
            "{text:?} is not a size; write a whole number and one of KiB, MiB, GiB, like \"512MiB\""
        )
    })
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn durations_and_sizes_are_a_number_and_a_unit() {
        for (text, seconds) in [("90s", 90), ("0s", 0), ("007m", 420), ("36525d", LONGEST)] {
            assert_eq!(duration(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        let others = "|s|5|5 m| 5m|5m |5M|-5m|+5m|1.5h|1h30m|5min|5ms|٥m|5µ|1w".split('|');
        let others = others.map(|text| (text, "is not a duration"));
        let long = ["36526d", "99999999999999999999s", "18446744073709551615d"];
        let long = long.map(|text| (text, "is longer than a hundred years"));
        for (text, why) in others.chain(long) {
            let said = duration(text).unwrap_err();
            assert!(said.contains(why), "{text:?}: {said}");
        }
        // So are sizes.
        assert_eq!(size("1KiB"), Ok(1024));
        assert_eq!(size("512MiB"), Ok(512 << 20));
        assert_eq!(size("0GiB"), Ok(0));
        for bad in ["", "12", "MiB", "1 MiB", "-1MiB", "1.5GiB", "1mb", "1MB", "99999999999GiB"] {
            let said = size(bad);
            assert!(said.is_err_and(|said| said.contains("like \"512MiB\"")), "{bad:?} was taken");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(seconds in 0..=LONGEST) {
            let value = Duration::from_secs(seconds);
            prop_assert_eq!(duration(&written(value)), Ok(value));
        }
    }
}
