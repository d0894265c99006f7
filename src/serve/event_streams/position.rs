//! A place in the change log, as event ids and `after` name it.

use crate::log::ChangeLog;
use crate::problem::Problem;
use std::fmt;
use tidegate_store::Epoch;

/// A place in the log: every epoch before `epoch` has been given out, and of that epoch the first
/// `part` changes, or all of them.
///
/// It is written `5f0c31ab-17.3`: before the dash an opening of the store that had reached it, so that
/// a log that went back to a copy, or another one, knows that it never gave this out. The beginning is
/// `0` in every log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Position {
    mark: Option<u32>,
    epoch: Epoch,
    part: Option<usize>,
}

impl Position {
    /// Behind a whole epoch of this log.
    pub(super) fn behind(log: &ChangeLog, epoch: Epoch) -> Self {
        Self { mark: log.mark(epoch).filter(|_| epoch > Epoch(0)), epoch, part: None }
    }

    /// Behind the first `part` changes of this epoch.
    pub(super) const fn within(self, part: usize) -> Self {
        Self { part: Some(part), ..self }
    }

    /// The last epoch of which something was given out.
    pub(super) const fn begun(self) -> Epoch {
        self.epoch
    }

    /// Whether this log gave it out, or would have.
    pub(super) fn is_of(self, log: &ChangeLog) -> bool {
        log.knows(self.mark, self.epoch)
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

    /// Reads a position: `5f0c31ab-17`, `5f0c31ab-17.3` or `0`.
    pub(super) fn read(text: &str) -> Result<Self, Problem> {
        let said = "after is an id that was given out here, or 0";
        Self::parse(text).ok_or_else(|| Problem::parameter("after", said))
    }

    fn parse(text: &str) -> Option<Self> {
        let number = |text: &str| {
            let number = text.parse::<u64>().ok();
            number.filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()))
        };
        let (mark, text) = match text.split_once('-') {
            None => (None, text),
            Some((mark, rest)) => {
                let is_one = mark.len() == 8 && mark.bytes().all(|b| b.is_ascii_hexdigit());
                (Some(u32::from_str_radix(mark, 16).ok().filter(|_| is_one)?), rest)
            }
        };
        let (epoch, part) = match text.split_once('.') {
            None => (text, None),
            Some((epoch, part)) => (epoch, Some(usize::try_from(number(part)?).ok()?)),
        };
        Some(Self { mark, epoch: Epoch(number(epoch)?), part })
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(mark) = self.mark {
            write!(f, "{mark:08x}-")?;
        }
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
        for text in
            ["0", "17", "17.0", "17.3", "18446744073709551615", "5f0c31ab-17", "00000000-17.3"]
        {
            assert_eq!(Position::read(text).unwrap().to_string(), text);
        }
        for bad in [
            "-",
            "1-2",
            "5f0c31ab-",
            "5f0c31ab--1",
            "+f0c31ab-1",
            "",
            ".",
            "1.",
            ".1",
            "-1",
            "+1",
            "1.x",
            "1.2.3",
            " 1",
            "18446744073709551616",
        ] {
            assert!(Position::read(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_part_of_an_epoch_leaves_the_rest_of_it() {
        let within = Position::read("17.3").unwrap();
        assert_eq!(
            (within.whole(), within.given(Epoch(17)), within.given(Epoch(18))),
            (Epoch(16), 3, 0)
        );
        let behind = Position::read("17").unwrap();
        assert_eq!((behind.whole(), behind.given(Epoch(17))), (Epoch(17), 0));
    }
}
