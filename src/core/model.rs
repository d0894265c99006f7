//! The vocabulary that every module shares: checked ids, times, items, markup, documents.
//!
//! Plain values only. No I/O, no clock, no serialisation and no XML parsing happens here; a value
//! of one of these types has been checked at the door where it was made.

mod access;
mod address;
mod admin;
mod archive;
mod attempt;
mod backfill;
mod body_prints;
mod change;
mod counted;
mod document;
mod doubts;
mod enrolment;
mod extras;
mod feed_state;
mod flaws;
mod gap;
mod head_history;
mod held_entry;
mod id;
mod ignore;
mod incoming;
mod interruption;
mod kinds;
mod lineage;
mod list_member;
mod list_place;
mod markup;
mod noise;
mod on_demand;
mod outline;
mod overlap;
mod policy;
mod probe;
mod projection;
mod settled;
mod sharing;
mod snapshot;
mod stub;
mod subscription;
mod sync_fault;
mod time;

pub use access::{
    FeedAccess, Login, ProxyAddress, ProxyRoute, SecretError, SecretSource, SecretText,
    UserPassword,
};
pub use address::{MASK, ShownAddress, mask_token};
pub use admin::{
    Deletions, FeedOptions, FeedRecord, FeedSource, FeedStanding, HostPause, Order, PollSchedule,
    PollState, Probing, Without,
};
pub use archive::{Archive, ArchiveNote, ArchivePlace, Chain, Deletion, Seal};
pub use attempt::Attempt;
pub use backfill::{ArchiveLayout, Backfill, WalkStanding};
pub use body_prints::BodyPrints;
pub use change::{Change, Conflicting, Event, EventKind, NewVersion};
pub use counted::{counted, shown_size};
pub use document::{
    Completeness, Entry, EntryTombstone, Family, FeedDocument, FeedLinks, Field, Format, Head,
    Older, UpdateHints, Warning,
};
pub use doubts::{Doubt, Doubts};
pub use enrolment::Enrolment;
pub use extras::{Extra, SyncExtras};
pub use feed_state::{Character, FeedState};
pub use flaws::{Flaw, FlawHistory, Flaws};
pub use gap::Gap;
pub use head_history::HeadHistory;
pub use held_entry::HeldEntry;
pub use id::{ArchiveId, EndpointId, FeedName, IdError, SupId, SupIdBasis, SyncId};
pub use ignore::{IGNORE_LIMIT, Ignore, IgnoreError};
pub use incoming::{EntrySync, Incoming, Sharing};
pub use interruption::{Interruption, InterruptionKind, Interruptions};
pub use lineage::{Lineage, Stretch};
pub use list_member::{ListMember, MemberStanding};
pub use list_place::{ListFolder, ListPlace, OutlineLabel, listed, shown_text};
pub use markup::{Card, Context, Markup, Skeleton, SkeletonSlots, Slots};
pub use noise::{
    DayVersions, FeedNoise, Noise, NoiseClass, NoiseClasses, Restless, SharedSpan, Span, Unseen,
    VERSIONS_PER_DAY, WaitCause, WaitingChange,
};
pub use on_demand::OnDemand;
pub use outline::{OUTLINE_DEPTH, OUTLINE_ROOT, OUTLINE_SUP, OutlinePath};
pub use overlap::Overlap;
pub use policy::{ConflictPolicy, PolicyError, SharingOptions};
pub use probe::{Probe, ProbeAnswer};
pub use projection::{Projection, ReadFields};
pub use settled::{
    FoundItems, IndexKey, IndexUpdate, LedgerQuery, ReindexedItem, SettledItems, WantedItems,
};
pub use sharing::{Count, CountError, History, Shared, Stamp, Update, Version};
pub use snapshot::{
    Absence, Decision, Evidence, Hold, Item, ItemStatus, LedgerEntry, Origin, Revision, Snapshot,
};
pub use stub::{Evictions, Stub};
pub use subscription::{
    DISTRUST_TIME, FAIR_TIME, HubSubscription, Lease, PushTrust, PushedPoll, SubscriptionKeys,
    SubscriptionStanding, ToldChange,
};
pub use sync_fault::{SyncFault, SyncMarkupError};
pub use time::{Tick, Time, TimeError};
