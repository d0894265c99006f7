//! What must be learned of a feed before a hole in its document means anything.

use serde::{Deserialize, Serialize};

/// Something that may explain a hole, and that later documents can settle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Doubt {
    /// A new item came that may have pushed it out: does this feed push items out of its middle?
    PushedOut,
    /// The items that stayed were in no clear order: is that how the feed is?
    Unsteady,
    /// It stood at the top: is that the new end or the old one?
    Top,
}

impl Doubt {
    /// Every doubt.
    pub const ALL: [Self; 3] = [Self::PushedOut, Self::Unsteady, Self::Top];

    /// Its bit in what is stored.
    const fn bit(self) -> u8 {
        match self {
            Self::PushedOut => 1,
            Self::Unsteady => 2,
            Self::Top => 4,
        }
    }
}

/// The doubts that are open of one missing item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(from = "u8", into = "u8")]
pub struct Doubts(u8);

impl Doubts {
    /// No doubt.
    pub const NONE: Self = Self(0);

    /// Doubts as they are kept in a byte; what no doubt stands for is left out.
    pub fn from_bits(bits: u8) -> Self {
        Doubt::ALL.into_iter().filter(|doubt| bits & doubt.bit() != 0).collect()
    }

    /// As a byte.
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Whether there is none.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The doubts, in their order.
    pub fn iter(self) -> impl Iterator<Item = Doubt> {
        Doubt::ALL.into_iter().filter(move |doubt| self.0 & doubt.bit() != 0)
    }
}

impl FromIterator<Doubt> for Doubts {
    fn from_iter<I: IntoIterator<Item = Doubt>>(doubts: I) -> Self {
        Self(doubts.into_iter().fold(0, |bits, doubt| bits | doubt.bit()))
    }
}

impl From<u8> for Doubts {
    fn from(bits: u8) -> Self {
        Self::from_bits(bits)
    }
}

impl From<Doubts> for u8 {
    fn from(doubts: Doubts) -> Self {
        doubts.bits()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_keeps_them() {
        let doubts: Doubts = [Doubt::Top, Doubt::PushedOut].into_iter().collect();
        assert_eq!(Doubts::from_bits(doubts.bits()), doubts);
        assert_eq!(doubts.iter().collect::<Vec<_>>(), [Doubt::PushedOut, Doubt::Top]);
        assert_eq!(Doubts::from_bits(0xf8), Doubts::NONE);
        assert!(Doubts::NONE.is_empty() && !doubts.is_empty());
    }
}
