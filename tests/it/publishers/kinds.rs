//! What can go wrong with a gateway in front of a publisher, and what is looked at.

/// What went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A tombstone for an item that its publisher did not take away.
    FalseTombstone(Cause),
    /// A post that moved to https or to another host is another item now.
    MovedIsAnother,
    /// A post that got another title, date or id is another item now.
    RenamedIsAnother,
    /// A post that nobody renamed is another item now.
    SameIsAnother,
    /// Two posts are one item.
    TwoAreOne,
    /// An item is published with another id than before.
    PublishedIdChanged,
    /// Two items of the reader view have one published id.
    ReaderDuplicate,
    /// A published id stands for another post than before.
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
    /// A part of a document took something away.
    PartTookAway,
    /// A document that stays is not taken in.
    NeverTaken,
    /// A tick is not greater than the one before.
    TickStoodStill,
    /// `updates` or the history went back, or is not newest first.
    HistoryBroken,
    /// The state counts other items than there are.
    Miscounted,
}

/// Why the item of a false tombstone was missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// It is no longer in the window.
    OutOfWindow,
    /// It is no longer in the window since its publisher gave it an earlier date; what can be seen
    /// of that is what can be seen of a deletion.
    Redated,
    /// It was deleted, or lost by accident, and is back in a part of the feed that the window does
    /// not show.
    BackUnseen,
    /// It is in the document under another id.
    Renamed,
    /// It is in the document; it was there twice.
    Twice,
    /// It is in the document.
    Listed,
    /// It was lost by accident.
    Lost,
    /// The document is not what the publisher means.
    Glitch,
}

/// What could have failed, so that a run can show that it looked at all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Check {
    /// A real deletion came out.
    Found,
    /// An item went on after its post had moved.
    Moved,
    /// An item that lives was retired.
    Retired,
    /// A document was held.
    Held,
    /// A document with other bytes changed nothing.
    Quiet,
    /// An edit made a version.
    Edited,
    /// A post that got another title, date or id became another item: counted, not asked, as long as
    /// the item that it was is not said to be deleted.
    Apart,
}
