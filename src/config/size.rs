//! Sizes as operators write them: `512MiB`, `2GiB`.

/// The units, largest first, with their bytes.
const UNITS: [(&str, u64); 3] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];

/// Reads a size in bytes: digits and one unit, with nothing around or between them.
pub(super) fn size(text: &str) -> Result<u64, String> {
    let wrong = || {
        format!(
            "{text:?} is not a size; write a whole number and one of KiB, MiB, GiB, like \"512MiB\""
        )
    };
    let fits = |(name, unit): &(&str, u64)| Some((text.strip_suffix(name)?, *unit));
    let (digits, unit) = UNITS.iter().find_map(fits).ok_or_else(wrong)?;
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(wrong());
    }
    let number: u64 = digits.parse().map_err(|_| wrong())?;
    number.checked_mul(unit).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
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
