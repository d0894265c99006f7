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

#[cfg(test)]
mod tests {
    use super::counted;

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
}
