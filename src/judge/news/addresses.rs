//! Addresses that a reader can follow, and what of one is only how it is written.

use super::field::{FieldKind, FieldPath};
use tidegate_core::xml::plain_address::{hostless, plain_link, telling_path};

/// Elements that lead to the entry.
pub(super) const LINKS: [&str; 3] = ["link", "atom:link", "url"];
/// Attributes of outlines that are addresses.
pub(super) const OUTLINE_ADDRESSES: [&str; 3] = ["xmlurl", "htmlurl", "url"];
/// Attributes that lead somewhere.
pub(super) const FOLLOWED_ATTRIBUTES: [&str; 3] = ["href", "url", "src"];

/// Whether a field that is no noise is an address.
pub(super) fn is_address(field: &FieldPath<'_>, value: &str) -> bool {
    match field.kind {
        FieldKind::Core => LINKS.contains(&field.name),
        FieldKind::Element => looks_like_address(value),
        FieldKind::Link => true,
        FieldKind::Outline => field.is_outline(&OUTLINE_ADDRESSES),
        FieldKind::Attribute(name) => FOLLOWED_ATTRIBUTES.contains(&name),
    }
}

pub(super) fn looks_like_address(value: &str) -> bool {
    (value.starts_with("http://") || value.starts_with("https://") || value.starts_with("//"))
        && !value.contains(char::is_whitespace)
}

/// An address with only what says where it leads: no scheme, host, tracking parameters or signature.
pub(crate) fn address(value: &str) -> String {
    let plain = hostless(value).or_else(|| rootless(value));
    unsigned(plain.unwrap_or_else(|| plain_link(value)))
}

/// An address that is written from the root of its host, as [`hostless`] makes it of one with a host.
fn rootless(value: &str) -> Option<String> {
    let rest = value.trim().strip_prefix('/').filter(|rest| !rest.starts_with('/'))?;
    Some(telling_path(&plain_link(rest))?.to_owned())
}

/// Query parameters that sign an address, or say until when it holds.
const SIGNATURES: [&[&str]; 2] = [
    &["signature", "sig", "expires", "expiry", "exp", "policy", "token-hash", "token-time"],
    &["key-pair-id", "awsaccesskeyid", "googleaccessid", "hdnts", "hdnea"],
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
            || SIGNATURES.iter().any(|names| names.contains(&name.as_str()))
            || has_sig && SIGNED_WITH_SIG.contains(&name.as_str())
    };
    let kept: Vec<&str> = query.split(['&', '?']).filter(|pair| !is_signature(pair)).collect();
    format!("{path}?{}#{fragment}", kept.join("&"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_the_same_whoever_signed_it_until_when() {
        let of = |query: &str| address(&format!("https://e.org/a.mp3?{query}"));
        for (one, other, same) in [
            ("id=1&X-Amz-Date=1&X-Amz-Signature=a", "id=1&X-Amz-Date=2&X-Amz-Signature=b", true),
            ("Expires=1&Signature=a&Key-Pair-Id=K", "Expires=2&Signature=b&Key-Pair-Id=K", true),
            ("sv=1&se=2&sig=a", "sv=1&se=3&sig=b", true),
            ("token-time=1&token-hash=a", "token-time=2&token-hash=b", true),
            ("se=2", "se=3", false),
            ("id=1&Expires=1", "id=2&Expires=1", false),
        ] {
            assert_eq!(of(one) == of(other), same, "{one}");
        }
        assert_eq!(address("/a.mp3?id=1"), of("id=1"));
    }
}
