//! stub
//! stub

pub mod sse;
use crate::model::*;
/// stub
pub fn own(_document: &FeedDocument<'_>, _entry: &Entry<'_>) -> Markup {
    unreachable!()
}
