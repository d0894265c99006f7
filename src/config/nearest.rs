//! The word that was probably meant.

/// The longest word that a suggestion is sought for, in characters.
const WORD_LIMIT: usize = 40;

/// The candidate nearest to `word`, where one is near enough to be what was meant.
pub(super) fn nearest<'c>(
    word: &str,
    candidates: impl IntoIterator<Item = &'c str>,
) -> Option<&'c str> {
    let length = word.chars().count();
    if length > WORD_LIMIT {
        return None;
    }
    // A third of the letters may be wrong; at least one, so that short words are helped too.
    let near = (length / 3).max(1);
    let word = word.to_ascii_lowercase();
    let underscored = word.replace('-', "_");
    candidates
        .into_iter()
        .map(|candidate| {
            (distance(&word, candidate).min(distance(&underscored, candidate)), candidate)
        })
        .filter(|(distance, _)| *distance <= near)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// How many letters must be put in, taken out, replaced or swapped with their neighbour.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    let mut last = None;
    for (i, from) in a.chars().enumerate() {
        let mut next = vec![i + 1];
        for (j, to) in b.iter().enumerate() {
            let at = |row: &[usize], k: usize| row.get(k).copied().unwrap_or(usize::MAX / 2);
            let replaced = at(&row, j) + usize::from(from != *to);
            let mut best = replaced.min(at(&row, j + 1) + 1).min(at(&next, j) + 1);
            let earlier = j.checked_sub(1);
            if let (Some(k), Some(previous)) = (earlier, last)
                && previous == *to
                && b.get(k) == Some(&from)
            {
                best = best.min(at(&before, k) + 1);
            }
            next.push(best);
        }
        before = std::mem::replace(&mut row, next);
        last = Some(from);
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: [&str; 4] = ["listen", "public_url", "min_interval", "max_interval"];

    #[test]
    fn finds_what_was_meant() {
        for (word, meant) in [
            ("lisen", "listen"),
            ("listne", "listen"),
            ("Listen", "listen"),
            ("public-url", "public_url"),
            ("publicurl", "public_url"),
            ("min_intervall", "min_interval"),
            ("mx_interval", "max_interval"),
        ] {
            assert_eq!(nearest(word, KEYS), Some(meant), "{word}");
        }
    }

    #[test]
    fn says_nothing_rather_than_something_far_off() {
        for word in ["", "colour", "interval_of_polling", &"l".repeat(10_000)] {
            assert_eq!(nearest(word, KEYS), None, "{word}");
        }
    }

    #[test]
    fn distances_are_those_of_the_textbook() {
        for (a, b, expected) in
            [("", "", 0), ("", "abc", 3), ("abc", "", 3), ("kitten", "sitting", 3), ("ab", "ba", 1)]
        {
            assert_eq!(distance(a, b), expected, "{a} {b}");
        }
    }
}
