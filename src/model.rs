//! The vocabulary that every room shares: checked ids, times, items, markup, documents.
//!
//! Plain values only. No I/O, no clock, no serialisation and no XML parsing happens here; a value
//! of one of these types has been checked at the door where it was made.

mod admin;
mod change;
mod document;
mod id;
mod ignore;
mod markup;
mod noise;
mod sharing;
mod snapshot;
mod time;

pub use admin::{Deletions, FeedOptions, FeedRecord, FeedSource, FeedStanding, Order, PollState};
pub use change::{Change, Event, EventKind, NewVersion};
pub use document::{
    Completeness, Entry, EntryTombstone, Family, FeedDocument, FeedLinks, Field, Format, Head,
    UpdateHints, Warning,
};
pub use id::{EndpointId, FeedName, IdError, SupId, SyncId};
pub use ignore::{IGNORE_LIMIT, Ignore, IgnoreError};
pub use markup::{Card, Context, Markup, Skeleton, SkeletonSlots, Slots};
pub use noise::{
    FeedNoise, Made, Noise, NoiseClass, NoiseClasses, Restless, SharedField, SharedSpan, Span,
    Unseen, VERSIONS_PER_DAY, WaitCause, Waiting,
};
pub use sharing::{Count, CountError, History, Shared, Stamp, Update, Version};
pub use snapshot::{
    Absence, Character, Decision, Evidence, FeedState, Hold, Item, Known, Revision, Snapshot,
    Standing,
};
pub use time::{Tick, Time, TimeError};
