//! Invented documents, one of each format, in `tests/golden/crossing`.

pub const ATOM10: &str = include_str!("../../../../tests/golden/crossing/atom10.xml");
pub const RSS20: &str = include_str!("../../../../tests/golden/crossing/rss20.xml");
pub const RSS091: &str = include_str!("../../../../tests/golden/crossing/rss091.xml");
pub const RSS10: &str = include_str!("../../../../tests/golden/crossing/rss10.xml");
pub const RSS090: &str = include_str!("../../../../tests/golden/crossing/rss090.xml");
pub const ATOM03: &str = include_str!("../../../../tests/golden/crossing/atom03.xml");
pub const JSON: &str = include_str!("../../../../tests/golden/crossing/json.json");
