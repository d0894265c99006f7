//! A place in the change log, as event ids and `after` name it.

use crate::serve::problem::Problem;
use crate::store::Epoch;
use std::fmt;

/// A place in the log: every epoch before `epoch` has been given out, and of that epoch the first
/// `part` changes, or all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Position {
    epoch: Epoch,
    part: Option<usize>,
}

impl Position {
    /// Behind a whole epoch.
    pub(super) const fn behind(epoch: Epoch) -> Self {
        Self { epoch, part: None }
    }

    /// Behind the first `part` changes of an epoch.
    pub(super) const fn within(epoch: Epoch, part: usize) -> Self {
        Self { epoch, part: Some(part) }
    }

    /// The last epoch that was given out whole.
    pub(super) const fn whole(self) -> Epoch {
        match self.part {
            None => self.epoch,
            Some(_) => Epoch(self.epoch.0.saturating_sub(1)),
        }
    }

    /// How many changes of this epoch were given out already.
    pub(super) fn given(self, epoch: Epoch) -> usize {
        self.part.filter(|_| epoch == self.epoch).unwrap_or(0)
    }

    /// Reads a position: `17` or `17.3`.
    pub(super) fn read(text: &str) -> Result<Self, Problem> {
        let number = |text: &str| {
            let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
            digits.then(|| text.parse::<u64>().ok()).flatten()
        };
        let (epoch, part) = match text.split_once('.') {
            None => (number(text), Some(None)),
            Some((epoch, part)) => {
                let part = number(part).and_then(|part| usize::try_from(part).ok());
                (number(epoch), part.map(Some))
            }
        };
        match (epoch, part) {
            (Some(epoch), Some(part)) => Ok(Self { epoch: Epoch(epoch), part }),
            _ => Err(Problem::parameter("after", "a place in the log is written like 17 or 17.3")),
        }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.part {
            None => write!(f, "{}", self.epoch.0),
            Some(part) => write!(f, "{}.{part}", self.epoch.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_read_back_and_nothing_else_is_read() {
        for text in ["0", "17", "17.0", "17.3", "18446744073709551615"] {
            assert_eq!(Position::read(text).unwrap().to_string(), text);
        }
        for bad in ["", ".", "1.", ".1", "-1", "+1", "1.x", "1.2.3", " 1", "18446744073709551616"] {
            assert!(Position::read(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_part_of_an_epoch_leaves_the_rest_of_it() {
        let within = Position::within(Epoch(17), 3);
        assert_eq!(
            (within.whole(), within.given(Epoch(17)), within.given(Epoch(18))),
            (Epoch(16), 3, 0)
        );
        let behind = Position::behind(Epoch(17));
        assert_eq!((behind.whole(), behind.given(Epoch(17))), (Epoch(17), 0));
    }
}
