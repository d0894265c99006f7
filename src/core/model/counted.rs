//! How many of something, in words.

/// A number with the word for what it counts, which is given in the singular: "1 item", "2 entries".
pub fn counted(number: impl TryInto<u64>, what: &str) -> String {
    let number = number.try_into().unwrap_or(u64::MAX);
    if number == 1 {
        return format!("1 {what}");
    }
    let ends_in_y = what.strip_suffix('y').filter(|stem| !stem.ends_with(['a', 'e', 'o', 'u']));
    match ends_in_y {
        Some(stem) => format!("{number} {stem}ies"),
        None if what.ends_with('s') => format!("{number} {what}es"),
        None => format!("{number} {what}s"),
    }
}

/// A number of bytes as people read it: `1.5 MiB`.
pub fn shown_size(bytes: u64) -> String {
    let units = [(1_u64 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match units.into_iter().find(|(unit, _)| bytes >= *unit) {
        Some((unit, name)) => {
            let tenths = bytes.saturating_mul(10) / unit;
            format!("{}.{} {name}", tenths / 10, tenths % 10)
        }
        None => counted(bytes, "byte"),
    }
}

#[cfg(test)]
mod tests {
    use super::{counted, shown_size};

    #[test]
    fn one_is_no_plural() {
        for (number, what, said) in [
            (0_u32, "item", "0 items"),
            (1, "tombstone", "1 tombstone"),
            (2, "entry", "2 entries"),
            (3, "address", "3 addresses"),
            (4, "day", "4 days"),
        ] {
            assert_eq!(counted(number, what), said);
        }
        assert_eq!(counted(1_usize, "request"), "1 request");
    }

    #[test]
    fn sizes_are_for_people() {
        for (bytes, said) in [
            (0, "0 bytes"),
            (1023, "1023 bytes"),
            (1024, "1.0 KiB"),
            (1536, "1.5 KiB"),
            (5 << 20, "5.0 MiB"),
            (u64::MAX, "1717986918.3 GiB"),
        ] {
            assert_eq!(shown_size(bytes), said);
        }
    }
}
