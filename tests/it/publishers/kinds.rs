//! What can go wrong with a gateway in front of a publisher, and what is looked at.

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A tombstone for an item that its publisher did not take away.
    FalseTombstone(Cause),
    MovedIsAnother,
    /// A post that got another title, date or id is another item now.
    RenamedIsAnother,
    SameIsAnother,
    TwoAreOne,
    PublishedIdChanged,
    ReaderDuplicate,
    PublishedIdReused,
    /// What a reader would not see made a version.
    NoiseMadeAVersion,
    /// An entry in a document that is broken was taken for another or for an edit.
    BrokenIsPublished,
    /// What a reader would see made none.
    EditMadeNoVersion,
    /// The reader view has not what the document shows, or in another order.
    OrderDiffers,
    /// A document that is held changed something outside, but for new posts in it.
    HeldIsSeen,
    PartTookAway,
    NeverTaken,
    /// A tick is not greater than the one before.
    TickStoodStill,
    HistoryBroken,
    Miscounted,
}

/// Why the item of a false tombstone was missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    OutOfWindow,
    /// It is no longer in the window since its publisher gave it an earlier date; what can be seen
    /// of that is what can be seen of a deletion.
    Redated,
    /// It was deleted, or lost by accident, and is back in a part of the feed that the window does
    /// not show.
    BackUnseen,
    Renamed,
    /// It is in the document; it was there twice.
    Twice,
    Listed,
    Lost,
    /// The document is not what the publisher means.
    Glitch,
}

/// What could have failed, so that a run can show that it looked at all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Check {
    Found,
    /// An item went on after its post had moved.
    Moved,
    Retired,
    Held,
    /// A document with other bytes changed nothing.
    Quiet,
    Edited,
    /// A post that got another title, date or id became another item: counted, not asked, as long as
    /// the item that it was is not said to be deleted.
    Apart,
}
