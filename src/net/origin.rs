//! Sites in front of which the gateway stands: address mapping, the headers passed on in both directions, and which
//! answers may become feeds.
//!
//! Pure: `fetch` sends the requests, `serve` answers them, and `app` creates the feeds.

mod address;
mod admission;
mod forwarded;
mod headers;
mod passed;
mod site;

pub use address::{OriginSite, address_at_host, escaped, site_of, spelled_below};
pub(crate) use admission::words;
pub use admission::{
    NotForEverybody, check_for_everybody, is_by_program, is_definite, is_for_everybody, is_neutral,
    may_be_feed, may_make_feed, says_page,
};
pub use forwarded::{ForwardedFor, PublicName, X_FORWARDED_FOR};
pub use headers::{OwnCookie, Via, has_other_coding, to_client, to_origin};
pub use passed::{BodyError, PassAnswer, PassRequest, PassedBody, WholeAnswer};
pub use site::{OriginConfig, OriginPlace, PassMode};
