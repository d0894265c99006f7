//! Two texts word by word: what stayed, what went, what came. Pure but for the time it may take.

use similar::{Algorithm, ChangeTag, TextDiff};
use std::time::Duration;
use tokio::time::Instant;

/// The longest text that is compared word by word, in bytes.
pub(super) const TEXT_LIMIT: usize = 256 * 1024;
/// How long the comparison of two versions may take, all their fields together; what is left then is
/// only said to differ.
pub(super) const TIME_LIMIT: Duration = Duration::from_millis(500);
/// The most text that a comparison shows, in bytes, likewise.
pub(super) const SHOWN_LIMIT: usize = 1024 * 1024;
/// How many words that stayed are shown before and after a change.
const AROUND: usize = 16;

/// What became of a piece of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// It is in both.
    Same,
    /// It is in the older only.
    Gone,
    /// It is in the newer only.
    New,
    /// So many words are in both and not shown.
    Skipped(usize),
}

/// A piece of text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Piece {
    /// What became of it.
    pub(super) fate: Fate,
    /// The words; empty where they are skipped.
    pub(super) text: String,
}

/// What came of comparing two texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Compared {
    /// The pieces, in order.
    pub(super) pieces: Vec<Piece>,
    /// Which limit was met, as a sentence.
    pub(super) limit: Option<String>,
}

/// What is left for a comparison of two versions to take.
#[derive(Debug, Clone, Copy)]
pub(super) struct Budget {
    until: Instant,
    bytes: usize,
}

impl Budget {
    /// All of it, from now on.
    pub(super) fn whole() -> Self {
        Self { until: Instant::now() + TIME_LIMIT, bytes: SHOWN_LIMIT }
    }

    /// How much time is left; `None`: none.
    fn time(&self) -> Option<Duration> {
        self.until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())
    }
}

impl Compared {
    /// Two texts of which nothing but this is said.
    const fn only(limit: String) -> Self {
        Self { pieces: Vec::new(), limit: Some(limit) }
    }
}

/// Compares two texts.
pub(super) fn compare(old: &str, new: &str, budget: &mut Budget) -> Compared {
    let longest = old.len().max(new.len());
    if longest > TEXT_LIMIT {
        let limit = format!(
            "The text is too long to be compared word by word: it has {longest} bytes, the limit is \
             {TEXT_LIMIT}. The bytes of both versions can be had whole."
        );
        return Compared::only(limit);
    }
    let Some(left) = budget.time() else {
        return Compared::only(format!(
            "It differs; what in it is not told, for the comparison took as long as it may, {} ms.",
            TIME_LIMIT.as_millis()
        ));
    };
    let diff = TextDiff::configure().algorithm(Algorithm::Myers).timeout(left).diff_words(old, new);
    let mut pieces: Vec<Piece> = Vec::new();
    for change in diff.iter_all_changes() {
        let fate = match change.tag() {
            ChangeTag::Equal => Fate::Same,
            ChangeTag::Delete => Fate::Gone,
            ChangeTag::Insert => Fate::New,
        };
        match pieces.last_mut() {
            Some(last) if last.fate == fate => last.text.push_str(change.value()),
            _ => pieces.push(Piece { fate, text: change.value().to_owned() }),
        }
    }
    let limit = budget.time().is_none().then(|| {
        format!(
            "The comparison took as long as it may, {} ms: it shows more as changed than did.",
            TIME_LIMIT.as_millis()
        )
    });
    let pieces = shortened(gathered(pieces));
    let shown = pieces.iter().map(|piece| piece.text.len()).sum();
    let Some(rest) = budget.bytes.checked_sub(shown) else {
        return Compared::only(format!(
            "It differs; what in it is not told, for that is {shown} bytes and {} are left of the \
             {SHOWN_LIMIT} that a comparison may show.",
            budget.bytes
        ));
    };
    budget.bytes = rest;
    Compared { pieces, limit }
}

/// Changes that only white space parts are one change: what went, then what came.
fn gathered(pieces: Vec<Piece>) -> Vec<Piece> {
    let mut out: Vec<Piece> = Vec::with_capacity(pieces.len());
    let (mut gone, mut new) = (String::new(), String::new());
    let mut pieces = pieces.into_iter().peekable();
    while let Some(piece) = pieces.next() {
        match piece.fate {
            Fate::Gone => gone.push_str(&piece.text),
            Fate::New => new.push_str(&piece.text),
            _ => {
                let between = !(gone.is_empty() && new.is_empty()) && pieces.peek().is_some();
                if between && piece.text.trim().is_empty() {
                    gone.push_str(&piece.text);
                    new.push_str(&piece.text);
                    continue;
                }
                flush(&mut out, &mut gone, &mut new);
                out.push(piece);
            }
        }
    }
    flush(&mut out, &mut gone, &mut new);
    out
}

fn flush(out: &mut Vec<Piece>, gone: &mut String, new: &mut String) {
    for (fate, text) in [(Fate::Gone, gone), (Fate::New, new)] {
        if !text.is_empty() {
            out.push(Piece { fate, text: std::mem::take(text) });
        }
    }
}

/// The pieces without the words that stayed and stand far from any change.
fn shortened(pieces: Vec<Piece>) -> Vec<Piece> {
    let last = pieces.len().saturating_sub(1);
    let mut short = Vec::with_capacity(pieces.len());
    for (at, piece) in pieces.into_iter().enumerate() {
        let words: Vec<&str> = piece.text.split_inclusive(char::is_whitespace).collect();
        let (head, tail) = (if at == 0 { 0 } else { AROUND }, if at == last { 0 } else { AROUND });
        if piece.fate != Fate::Same || words.len() <= head + tail + AROUND {
            short.push(piece);
            continue;
        }
        let end = words.len() - tail;
        let same = |words: &[&str]| Piece { fate: Fate::Same, text: words.concat() };
        short.extend(words.get(..head).filter(|words| !words.is_empty()).map(same));
        short.push(Piece { fate: Fate::Skipped(end - head), text: String::new() });
        short.extend(words.get(end..).filter(|words| !words.is_empty()).map(same));
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn compare(old: &str, new: &str) -> Compared {
        super::compare(old, new, &mut Budget::whole())
    }

    fn side(compared: &Compared, other: Fate) -> String {
        let pieces = compared.pieces.iter().filter(|piece| piece.fate != other);
        pieces.map(|piece| piece.text.as_str()).collect()
    }

    #[test]
    fn a_changed_word_is_shown_between_its_neighbours() {
        let old = (0..200).map(|n| format!("word{n} ")).collect::<String>();
        let new = old.replace("word100 ", "changed ");
        let compared = compare(&old, &new);
        let fates: Vec<Fate> = compared.pieces.iter().map(|piece| piece.fate).collect();
        assert_eq!(
            fates,
            [Fate::Skipped(84), Fate::Same, Fate::Gone, Fate::New, Fate::Same, Fate::Skipped(84)]
        );
        assert_eq!(compared.pieces[2].text, "word100");
        assert_eq!(compared.pieces[3].text, "changed");
        assert_eq!(compared.limit, None);
    }

    #[test]
    fn what_is_too_long_is_not_compared() {
        let compared = compare(&"x".repeat(TEXT_LIMIT + 1), "x");
        assert!(compared.pieces.is_empty());
        assert!(compared.limit.unwrap().contains("the limit is 262144"));
    }

    #[test]
    fn what_nothing_is_left_for_is_only_said_to_differ() {
        let mut spent = Budget { until: Instant::now(), ..Budget::whole() };
        let compared = super::compare("a", "b", &mut spent);
        assert!(compared.pieces.is_empty() && compared.limit.unwrap().starts_with("It differs"));
        let mut narrow = Budget { bytes: 10, ..Budget::whole() };
        let mut shown = |old: &str, new: &str| super::compare(old, new, &mut narrow).pieces.len();
        assert_eq!((shown("one", "two"), shown("three", "four"), shown("12", "34")), (2, 0, 2));
    }

    /// Texts that have nothing in common are the worst case; they end in time all the same.
    #[test]
    fn the_worst_case_ends() {
        let words = |seed: u64| {
            let words = (0..20_000_u64).map(|n| format!("{} ", n.wrapping_mul(seed) % 99_991));
            words.collect::<String>()
        };
        let (old, new) = (words(7_919), words(104_729));
        let compared = compare(&old, &new);
        assert!(!compared.pieces.is_empty());
    }

    proptest! {
        #[test]
        fn both_texts_can_be_read_from_the_pieces(
            old in "[ab <>&]{0,60}", new in "[ab <>&]{0,60}",
        ) {
            // So few words that none is skipped.
            let compared = compare(&old, &new);
            prop_assert_eq!(side(&compared, Fate::New), old);
            prop_assert_eq!(side(&compared, Fate::Gone), new);
        }
    }
}
