//! What must be learned of a feed before a hole in its document means anything.

use super::kinds::set_of;

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
}

set_of! {
    /// The doubts that are open of one missing item.
    Doubts(u8) of Doubt
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
