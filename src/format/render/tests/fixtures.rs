//! Invented documents, one of each format, in `tests/golden/crossing`.

/// Atom 1.0 with foreign markup, CDATA, bases and languages.
pub const ATOM10: &str = include_str!("../../../../tests/golden/crossing/atom10.xml");

/// RSS 2.0 with modules.
pub const RSS20: &str = include_str!("../../../../tests/golden/crossing/rss20.xml");

/// RSS 0.91.
pub const RSS091: &str = include_str!("../../../../tests/golden/crossing/rss091.xml");

/// RSS 1.0 with modules.
pub const RSS10: &str = include_str!("../../../../tests/golden/crossing/rss10.xml");

/// RSS 0.90.
pub const RSS090: &str = include_str!("../../../../tests/golden/crossing/rss090.xml");

/// Atom 0.3 with every kind of content.
pub const ATOM03: &str = include_str!("../../../../tests/golden/crossing/atom03.xml");

/// A JSON Feed: an item with everything, and one with little.
pub const JSON: &str = include_str!("../../../../tests/golden/crossing/json.json");
