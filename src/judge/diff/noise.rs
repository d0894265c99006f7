//! Which fields count as a change and which are noise: the fixed list.

use std::borrow::Cow;
use tidegate_core::model::{Field, NoiseClass};
use tidegate_core::sync_markup::collection_item;
use tidegate_core::xml::plain_address::{hostless, plain_link};

/// What a field weighs in the comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldWeight {
    /// Text that a reader sees.
    Text,
    /// An address that a reader can follow.
    Address,
    /// Nothing: a date, a counter, a preview image, the entry's identity, markup.
    Noise(NoiseClass),
}

/// The item of a collection in JSON that an entry was made from: one text with all its members.
const JSON_ITEM: &str = "{urn:tidegate:collection}json";

/// Elements that say which entry it is; judged elsewhere.
const IDS: [&str; 6] = ["guid", "id", "rdf:about", "yt:videoId", "yt:channelId", "post-id"];

/// Elements whose values are machines' business: addresses of comment feeds, generators, sizes.
const MACHINERY: [&str; 8] = [
    "comments",
    "generator",
    "docs",
    "media:hash",
    "media:rating",
    "media:keywords",
    "feedburner:origLink",
    "source",
];

/// Parts of element names that tell of a time.
const TIMES: [&str; 10] = [
    "date",
    "time",
    "updated",
    "published",
    "modified",
    "issued",
    "created",
    "valid",
    "embargo",
    "lastmod",
];

/// Parts of element names that tell of a counter.
const COUNTERS: [&str; 14] = [
    "statistics",
    "starrating",
    "count",
    "views",
    "comments",
    "total",
    "votes",
    "likes",
    "score",
    "rank",
    "favorites",
    "shares",
    "downloads",
    "replies",
];

/// Relations of Atom links that a reader can follow to content.
const FOLLOWED: [&str; 4] =
    ["link[alternate]@href", "link[enclosure]@href", "link[via]@href", "link[related]@href"];

/// Attributes that carry something to see or to follow; all others are markup.
const SEEN_ATTRIBUTES: [&str; 6] = ["href", "url", "src", "term", "label", "text"];

/// Endings of addresses of images, which publishers rotate.
const IMAGES: [&str; 8] = [".jpg", ".jpeg", ".png", ".gif", ".webp", ".svg", ".avif", ".ico"];

/// Whether a field is one of the item of a collection that an entry was made from.
fn is_of_collection_item(path: &str) -> bool {
    let rest =
        path.strip_prefix('{').and_then(|path| path.strip_prefix(collection_item::NAMESPACE));
    rest.is_some_and(|rest| rest.starts_with('}'))
}

/// What the field at `path` weighs.
pub fn weight(path: &str, value: &str) -> FieldWeight {
    // An item of plain XML says nothing that other elements of the entry do not.
    if is_of_collection_item(path) && path != JSON_ITEM {
        return FieldWeight::Noise(NoiseClass::Markup);
    }
    let (element, attribute) = match path.rsplit_once('@') {
        Some((element, attribute)) => (element, Some(attribute)),
        None => (path, None),
    };
    let last = local_name(element);
    let local = last.rsplit(['}', ':']).next().unwrap_or(last).to_ascii_lowercase();
    if let Some(attribute) = attribute.filter(|_| element.starts_with("outline:")) {
        return weight_in_a_list(attribute, value);
    }
    if let Some(attribute) = attribute {
        return weight_of_attribute(path, element, last, attribute, value);
    }
    if let Some(class) = unseen(last) {
        return FieldWeight::Noise(class);
    }
    if element.starts_with("wfw:") {
        return FieldWeight::Noise(NoiseClass::Machinery);
    }
    if matches!(last, "link" | "atom:link" | "url") {
        return FieldWeight::Address;
    }
    if is_core_text(last) {
        return FieldWeight::Text;
    }
    if TIMES.iter().any(|t| local.contains(t)) || reads_as_date(value) {
        return FieldWeight::Noise(NoiseClass::Dates);
    }
    if COUNTERS.iter().any(|c| local.contains(c)) || element.starts_with("media:community") {
        return FieldWeight::Noise(NoiseClass::Counters);
    }
    if looks_like_address(value) {
        return if is_image(value) {
            FieldWeight::Noise(NoiseClass::Images)
        } else {
            FieldWeight::Address
        };
    }
    FieldWeight::Text
}

/// What the attributes of an outline weigh: all that it says stands in them, beside what programs note
/// for themselves.
fn weight_in_a_list(attribute: &str, value: &str) -> FieldWeight {
    let local = attribute.rsplit(['}', ':']).next().unwrap_or(attribute).to_ascii_lowercase();
    match local.as_str() {
        "xmlurl" | "htmlurl" | "url" => FieldWeight::Address,
        "isopen" | "isbreakpoint" | "icon" | "favicon" => FieldWeight::Noise(NoiseClass::Machinery),
        name if TIMES.iter().any(|t| name.contains(t)) || reads_as_date(value) => {
            FieldWeight::Noise(NoiseClass::Dates)
        }
        name if COUNTERS.iter().any(|c| name.contains(c)) => {
            FieldWeight::Noise(NoiseClass::Counters)
        }
        _ => FieldWeight::Text,
    }
}

/// What the elements that nobody sees are.
fn unseen(last: &str) -> Option<NoiseClass> {
    if IDS.contains(&last) {
        return Some(NoiseClass::Ids);
    }
    MACHINERY.contains(&last).then_some(NoiseClass::Machinery)
}

fn weight_of_attribute(
    path: &str,
    element: &str,
    last: &str,
    attribute: &str,
    value: &str,
) -> FieldWeight {
    if element.starts_with("link[") {
        let followed = FOLLOWED.contains(&path);
        return if followed {
            FieldWeight::Address
        } else {
            FieldWeight::Noise(NoiseClass::Machinery)
        };
    }
    if element.contains("media:community") {
        return FieldWeight::Noise(NoiseClass::Counters);
    }
    if ["thumbnail", "image", "logo", "icon"].iter().any(|p| last.contains(p)) {
        return FieldWeight::Noise(NoiseClass::Images);
    }
    if let Some(class) = unseen(last) {
        return FieldWeight::Noise(class);
    }
    if !SEEN_ATTRIBUTES.contains(&attribute) {
        return FieldWeight::Noise(NoiseClass::Markup);
    }
    match attribute {
        "term" | "label" | "text" => FieldWeight::Text,
        _ if is_image(value) => FieldWeight::Noise(NoiseClass::Images),
        _ => FieldWeight::Address,
    }
}

/// The name of the last element of a path.
pub fn local_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Elements whose text is the entry itself, whatever it looks like.
pub fn is_core_text(last: &str) -> bool {
    matches!(last, "title" | "description" | "summary" | "content" | "content:encoded" | "category")
}

/// Parts of the names of elements that hold what an entry says.
const TEXTS: [&str; 6] = ["content", "summary", "description", "text", "body", "subtitle"];

/// Whether an element holds what an entry says.
pub fn is_a_text(path: &str) -> bool {
    let name = local_name(path).to_ascii_lowercase();
    !name.contains('@') && TEXTS.iter().any(|part| name.contains(part))
}

fn looks_like_address(value: &str) -> bool {
    (value.starts_with("http://") || value.starts_with("https://") || value.starts_with("//"))
        && !value.contains(char::is_whitespace)
}

/// Whether an address is that of a picture, by its ending.
pub fn is_image(address: &str) -> bool {
    let path = address.split(['?', '#', '|']).next().unwrap_or(address);
    IMAGES.iter().any(|end| {
        let at = path.len().checked_sub(end.len());
        at.and_then(|at| path.get(at..)).is_some_and(|own| own.eq_ignore_ascii_case(end))
    })
}

/// Whether a whole value is a date-time in one of the forms that feeds use.
fn reads_as_date(value: &str) -> bool {
    let bytes = value.as_bytes();
    let digits = || bytes.iter().filter(|b| b.is_ascii_digit()).count();
    if !(10..=48).contains(&bytes.len()) || digits() < 6 {
        return false;
    }
    let iso = matches!(bytes.get(4), Some(b'-' | b'.' | b'/'))
        && bytes.get(7) == bytes.get(4)
        && bytes.iter().take(4).all(u8::is_ascii_digit);
    let clock = value.matches(':').count() >= 1;
    let month =
        ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    let lower = value.to_ascii_lowercase();
    iso || (clock && month.iter().any(|m| lower.contains(m)))
}

/// An address with only what says where it leads: no scheme, host, tracking parameters or signature.
pub fn address(value: &str) -> Cow<'_, str> {
    Cow::Owned(unsigned(hostless(value).unwrap_or_else(|| plain_link(value))))
}

/// Query parameters that sign an address, or say until when it holds.
const SIGNATURES: [&str; 11] = [
    "signature",
    "sig",
    "expires",
    "expiry",
    "exp",
    "policy",
    "key-pair-id",
    "awsaccesskeyid",
    "googleaccessid",
    "hdnts",
    "hdnea",
];
/// Parameters that say until when and for what an address holds that is signed by a `sig`.
const SIGNED_WITH_SIG: [&str; 7] = ["se", "st", "sp", "sr", "sv", "ske", "skt"];

/// An address without the parameters of a signature or an expiry, which a publisher makes anew for each reader.
fn unsigned(plain: String) -> String {
    let Some((path, rest)) = plain.split_once('?') else { return plain };
    let (query, fragment) = rest.split_once('#').unwrap_or((rest, ""));
    let name = |pair: &str| pair.split('=').next().unwrap_or_default().to_ascii_lowercase();
    let has_sig = query.split(['&', '?']).any(|pair| name(pair) == "sig");
    let is_signature = |pair: &&str| {
        let name = name(pair);
        ["x-amz-", "x-goog-"].iter().any(|start| name.starts_with(start))
            || SIGNATURES.contains(&name.as_str())
            || has_sig && SIGNED_WITH_SIG.contains(&name.as_str())
    };
    let kept: Vec<&str> = query.split(['&', '?']).filter(|pair| !is_signature(pair)).collect();
    format!("{path}?{}#{fragment}", kept.join("&"))
}

/// Whether the address that is one of an entry's `fields` is that of a picture, by the element that
/// it is an attribute of: `img`, or one that says so beside it.
pub fn is_of_picture(fields: &[Field<'_>], at: usize) -> bool {
    let element = |field: &Field<'_>| field.path.rsplit_once('@').map(|(element, _)| element.len());
    let Some(field) = fields.get(at) else { return false };
    let Some((own, name)) = field.path.rsplit_once('@') else { return false };
    if name == "src" && is_named(own, "img") {
        return true;
    }
    let is_file = is_named(own, "media:content") || own == "enclosure" || own == "link[enclosure]";
    // An element has an attribute but once: where its name comes again, another begins.
    let is_beside = |other: &&Field<'_>| {
        element(other) == Some(own.len()) && other.path.starts_with(own) && other.path != field.path
    };
    let before = fields.get(..at).unwrap_or_default().iter().rev().take_while(is_beside);
    let behind = fields.get(at + 1..).unwrap_or_default().iter().take_while(is_beside);
    is_file
        && before.chain(behind).any(|other| {
            let says = other.path.get(own.len() + 1..).unwrap_or_default();
            (says == "type" && other.value.starts_with("image/"))
                || (says == "medium" && other.value == "image")
        })
}

fn is_named(element: &str, name: &str) -> bool {
    let last = local_name(element);
    last == name || last.rsplit([':', '}']).next() == Some(name)
}

/// The last parts of a picture's path that say which picture it is; before them stand the host and
/// what it calls the place where it keeps pictures.
const PICTURE_PARTS: usize = 2;

/// The address of a picture without the host, and without the path but for its last parts.
pub fn picture_address(value: &str) -> String {
    let plain = plain_link(value);
    let path_end = plain.find(['?', '#']).unwrap_or(plain.len());
    let (path, rest) = plain.split_at(path_end);
    let Some((_, path)) = path.split_once('/') else { return plain };
    let from = path.rmatch_indices('/').nth(PICTURE_PARTS - 1).map_or(0, |(at, _)| at + 1);
    format!("{}{rest}", path.get(from..).unwrap_or(path))
}

#[cfg(test)]
mod tests {
    use super::FieldWeight::Noise;
    use super::*;
    use tidegate_core::model::NoiseClass::*;

    #[test]
    fn the_fixed_list() {
        for (path, value, expected) in [
            ("title", "12", FieldWeight::Text),
            ("description", "2026-11-20T00:00:00Z", FieldWeight::Text),
            ("pubDate", "x", Noise(Dates)),
            ("updated", "x", Noise(Dates)),
            ("dc:date", "x", Noise(Dates)),
            ("dcterms:modified", "x", Noise(Dates)),
            ("{http://source.example/}localTime", "x", Noise(Dates)),
            ("{http://x.example/}stamp", "Wed, 22 Apr 2020 02:22:13 +1200", Noise(Dates)),
            ("slash:comments", "4", Noise(Counters)),
            ("thr:total", "4", Noise(Counters)),
            ("media:group/media:community/media:statistics@views", "4", Noise(Counters)),
            ("media:group/media:thumbnail@url", "https://e.org/a", Noise(Images)),
            ("media:group/media:title", "A", FieldWeight::Text),
            ("enclosure@url", "https://e.org/a.mp3", FieldWeight::Address),
            ("enclosure@url", "https://e.org/a.jpg?x=1", Noise(Images)),
            ("enclosure@length", "1", Noise(Markup)),
            ("link[alternate]@href", "https://e.org/a", FieldWeight::Address),
            ("link[edit]@href", "https://e.org/a", Noise(Machinery)),
            ("link", "https://e.org/a", FieldWeight::Address),
            ("guid", "https://e.org/a", Noise(Ids)),
            ("outline:outline@xmlUrl", "https://e.org/feed", FieldWeight::Address),
            ("outline:outline@type", "rss", FieldWeight::Text),
            ("outline:outline@isOpen", "true", Noise(Machinery)),
            ("outline:outline@lastUpdate", "1", Noise(Dates)),
            ("outline:outline@{urn:x}downloads", "1", Noise(Counters)),
            ("outline:parent@ref", "x-outline:a", FieldWeight::Text),
            ("category@term", "a", FieldWeight::Text),
            ("author/name", "a", FieldWeight::Text),
            ("wfw:commentRss", "https://e.org/a", Noise(Machinery)),
            ("comments", "https://e.org/a#comments", Noise(Machinery)),
            ("content@type", "html", Noise(Markup)),
            ("{urn:tidegate:collection}pox/title", "a", Noise(Markup)),
            ("{urn:tidegate:collection}pox@of", "a", Noise(Markup)),
            ("{urn:tidegate:collection}json", "{}", FieldWeight::Text),
        ] {
            assert_eq!(weight(path, value), expected, "{path} = {value}");
        }
    }

    #[test]
    fn an_address_is_the_same_whoever_signed_it_until_when() {
        let of = |query: &str| address(&format!("https://e.org/a.mp3?{query}")).into_owned();
        for (one, other, same) in [
            ("id=1&X-Amz-Date=1&X-Amz-Signature=a", "id=1&X-Amz-Date=2&X-Amz-Signature=b", true),
            ("Expires=1&Signature=a&Key-Pair-Id=K", "Expires=2&Signature=b&Key-Pair-Id=K", true),
            ("sv=1&se=2&sig=a", "sv=1&se=3&sig=b", true),
            ("se=2", "se=3", false),
            ("id=1&Expires=1", "id=2&Expires=1", false),
        ] {
            assert_eq!(of(one) == of(other), same, "{one}");
        }
    }

    #[test]
    fn pictures_without_an_ending() {
        let picture = |fields: &[(&str, &str)], at: usize| {
            let field = |(path, value): &(&str, &str)| Field {
                path: Cow::Owned((*path).to_owned()),
                value: Cow::Owned((*value).to_owned()),
            };
            is_of_picture(&fields.iter().map(field).collect::<Vec<_>>(), at)
        };
        let image = ("enclosure@type", "image/jpeg");
        assert!(picture(&[("enclosure@url", "a"), ("enclosure@length", "1"), image], 0));
        assert!(picture(&[image, ("enclosure@url", "a")], 1));
        assert!(!picture(&[("enclosure@url", "a"), ("enclosure@type", "audio/mpeg")], 0));
        let (url, medium) = ("media:group/media:content@url", "media:group/media:content@medium");
        assert!(picture(&[(url, "a"), (medium, "image")], 0));
        assert!(!picture(&[(url, "a"), (medium, "video"), (url, "b"), (medium, "image")], 0));
        assert!(picture(&[(url, "a"), (medium, "video"), (url, "b"), (medium, "image")], 2));
        assert!(picture(&[("{http://www.w3.org/1999/xhtml}img@src", "a")], 0));
        assert!(!picture(&[("link[alternate]@href", "a"), ("link[alternate]@type", "image/x")], 0));

        let address = picture_address;
        assert_eq!(address("https://a.example/cdn/1/media/abc?w=1"), "media/abc?w=1");
        assert_eq!(address("//b.example/media/abc/?w=1"), "media/abc?w=1");
        assert_ne!(address("//b.example/media/abd?w=1"), address("//b.example/media/abc?w=1"));
        assert_eq!(address("https://b.example/abc"), "abc");
    }
}
