//! Sites that the gateway stands in front of: which address of theirs a request means, what of a request and
//! of an answer is passed on, and which answers may become feeds.
//!
//! Pure: requests are sent by `fetch`, answered by `serve`, and feeds are made by `app`.

mod address;
mod admission;
mod forwarded;
mod headers;
mod passed;
mod site;

pub use address::{OriginSite, escaped, site_of, spelled_below};
pub(crate) use admission::words;
pub use admission::{
    NotForEverybody, check_for_everybody, is_definite, is_for_everybody, is_neutral, may_be_feed,
    may_make_feed, says_page,
};
pub use forwarded::{ForwardedFor, PublicName, X_FORWARDED_FOR};
pub use headers::{OwnCookie, Via, has_other_coding, to_client, to_origin};
pub use passed::{BodyError, PassAnswer, PassRequest, PassedBody, WholeAnswer};
pub use site::{OriginConfig, OriginPlace, PassMode};
