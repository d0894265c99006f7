//! Sites that the gateway stands in front of: which address of theirs a request means, what of a request and
//! of an answer is passed on, and which answers may become feeds.
//!
//! Pure: requests are sent by `fetch`, answered by `serve`, and feeds are made by `app`.

mod address;
mod admission;
mod beginning;
mod forwarded;
mod headers;
mod passed;

pub use address::{AddressFault, OriginSite, is_below};
pub use admission::{
    is_for_everybody, is_neutral, is_usual, may_be_feed, may_make_feed, says_page,
};
pub use beginning::is_no_feed;
pub use forwarded::{ForwardedFor, Proto, X_FORWARDED_FOR};
pub use headers::{OwnCookie, Via, to_client, to_origin};
pub use passed::{BodyError, PassAnswer, PassRequest, PassedBody, WholeAnswer};
