//! The file: a heading, then one zstd stream of frames, each its length, its kind and a record, the
//! last one with a fingerprint of all before it.

use crate::store::limits::VALUE_LIMIT;
use crate::store::record::RecordError;
use std::io;

/// What the file begins with.
pub const MAGIC: &[u8] = b"tidegate export\n";
/// What files begin with that programs from before 0.1.0 wrote.
pub const UNRELEASED_MAGIC: &[u8] = b"tidegate state\n";
/// The format that is written, and the newest that is read.
pub(super) const FORMAT: u32 = 1;
/// The longest frame, in bytes: a record with what names it.
pub(super) const FRAME_LIMIT: usize = VALUE_LIMIT + 64 * 1024;
/// The most bytes that one item may take with all its versions.
pub(super) const ITEM_LIMIT: usize = 1 << 30;

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident $number:literal)+) => {
        /// What a frame holds. The numbers are part of the format.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(u8)]
        pub(super) enum FrameKind {
            $($(#[$doc])* $kind = $number,)+
        }

        impl FrameKind {
            pub(super) const fn of(number: u8) -> Option<Self> {
                match number { $($number => Some(Self::$kind),)+ _ => None }
            }
        }
    };
}

kinds! {
    /// The format's number, what SUP ids are made of (0: the endpoint and names, 1: names), and the
    /// endpoint.
    Head 1
    /// A feed's record.
    Feed 2
    /// A poll state.
    Poll 3
    /// A subscription.
    Subscription 4
    /// A name and what is left of the feed.
    Floor 5
    /// An epoch and one of its changes.
    Log 6
    /// The name of the feed that all that follows belongs to.
    Inside 7
    /// A time and a document around the entries.
    Skeleton 8
    /// A time and an order.
    Order 9
    /// Entries of held documents.
    Held 10
    /// A ledger entry; newest bytes and versions follow.
    Known 11
    /// The newest bytes of the item.
    Newest 12
    /// What is in conflict with the item's current version.
    Conflicts 20
    /// A version of the item.
    Version 13
    /// The bytes of that version.
    Body 14
    /// An event.
    Event 15
    /// A note of an archive; so many segments follow as it says.
    Archive 16
    /// A segment.
    Segment 17
    /// The feed's state.
    State 18
    /// How many frames there were, and their fingerprint.
    End 19
}

/// Why a file is not, or cannot be, the state of a gateway.
#[derive(Debug, thiserror::Error)]
pub enum PortableError {
    /// It is another file.
    #[error("it is no state of a gateway")]
    Other,
    /// It was written before 0.1.0.
    #[error("it was written by a program from before 0.1.0, and no other reads it")]
    Unreleased,
    /// It was written by a newer program.
    #[error("it has format {found}, this program reads up to {known}; use the newer program")]
    Newer {
        /// The format found.
        found: u32,
        /// The newest format known here.
        known: u32,
    },
    /// It is not as it was written, or not all of it is there.
    #[error("it is damaged or cut off: {0}; nothing of it was taken")]
    Damaged(String),
    /// Reading or writing failed.
    #[error("reading or writing failed: {0}")]
    Io(#[from] io::Error),
    /// A record cannot be written.
    #[error("a record cannot be written: {0}")]
    Unwritable(String),
}

impl PortableError {
    pub(super) fn record(error: &RecordError) -> Self {
        Self::Damaged(error.to_string())
    }

    pub(super) fn unwritable(error: &RecordError) -> Self {
        Self::Unwritable(error.to_string())
    }
}
