//! What goes wrong at the harbour office, and when.

use std::ops::Range;

/// Accidents happen again after so many steps.
const REPEAT_EVERY: u32 = 75;
/// The steps of every repetition at which the document breaks off.
const BROKEN_OFF: Range<u32> = 14..16;
/// The steps of every repetition at which the office's program has overwritten every text. It lasts, so that
/// a visitor has time to release what is held.
const OVERWRITTEN: Range<u32> = 19..28;

/// Something that goes wrong with a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accident {
    /// It ends in the middle.
    BrokenOff,
    /// Every text in it is the same useless one, and nothing in it has changed since this step.
    Overwritten { since: u32 },
}

impl Accident {
    /// What is wrong at a step; `None` where nothing is.
    pub fn at(step: u32) -> Option<Self> {
        let place = step % REPEAT_EVERY;
        if BROKEN_OFF.contains(&place) {
            return Some(Self::BrokenOff);
        }
        let since = step - place + OVERWRITTEN.start;
        OVERWRITTEN.contains(&place).then_some(Self::Overwritten { since })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accidents_begin_end_and_come_again() {
        let overwritten = |since| Some(Accident::Overwritten { since });
        for (step, accident) in [
            (0, None),
            (13, None),
            (14, Some(Accident::BrokenOff)),
            (15, Some(Accident::BrokenOff)),
            (16, None),
            (19, overwritten(19)),
            (27, overwritten(19)),
            (28, None),
            (75, None),
            (90, Some(Accident::BrokenOff)),
            (100, overwritten(94)),
        ] {
            assert_eq!(Accident::at(step), accident, "step {step}");
        }
        assert!(Accident::at(u32::MAX).is_none_or(|_| true), "no step is too late");
    }
}
