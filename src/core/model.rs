//! The vocabulary that every module shares: checked ids, times, items, markup, documents.
//!
//! Plain values only. No I/O, no clock, no serialisation and no XML parsing happens here; a value
//! of one of these types has been checked at the door where it was made.

mod access;
mod address;
mod archive;
mod change;
mod counted;
mod document;
mod enrolment;
mod feed_record;
mod feed_state;
mod flaws;
mod id;
mod ignore;
mod list_place;
mod markup;
mod noise;
mod poll_state;
#[cfg(feature = "schema")]
mod schema;
mod sharing;
mod snapshot;
mod subscription;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod time;

pub use access::*;
pub use address::*;
pub use archive::*;
pub use change::*;
pub use counted::*;
pub use document::*;
pub use enrolment::*;
pub use feed_record::*;
pub use feed_state::*;
pub use flaws::*;
pub use id::*;
pub use ignore::*;
pub use list_place::*;
pub use markup::*;
pub use noise::*;
pub use poll_state::*;
pub use sharing::*;
pub use snapshot::*;
pub use subscription::*;
pub use time::*;
