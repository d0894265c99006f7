//! The word that was probably meant.

use strsim::osa_distance;

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
            (osa_distance(&word, candidate).min(osa_distance(&underscored, candidate)), candidate)
        })
        .filter(|(distance, _)| *distance <= near)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}
