//! Addresses in documents (RFC 3986): schemes, references made absolute, percent-encoding.

use crate::xml::trimmed;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use std::borrow::Cow;
use url::Url;

/// The longest address that is resolved against a base, in bytes.
pub const ADDRESS_LIMIT: usize = 8192;

/// What is encoded where a text stands within an address: everything but unreserved characters
/// (section 2.3).
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A text with everything but unreserved characters written as percent and hexadecimal.
pub fn percent_encoded(text: &str) -> String {
    utf8_percent_encode(text, RESERVED).to_string()
}

/// A text with what is percent-encoded decoded once.
pub fn percent_decoded(text: &str) -> Cow<'_, str> {
    percent_decode_str(text).decode_utf8_lossy()
}

/// Whether a reference names its scheme, and something behind it, so that no base changes it (sections
/// 3.1 and 4.3).
pub fn has_scheme(reference: &str) -> bool {
    behind_scheme(reference).is_some_and(|rest| !rest.is_empty())
}

/// What stands behind the scheme and its colon.
pub fn behind_scheme(reference: &str) -> Option<&str> {
    let (scheme, rest) = reference.split_once(':')?;
    let is_scheme = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'));
    is_scheme.then_some(rest)
}

/// Whether a text is an absolute address without white space, as `atom:link` wants it.
pub fn is_address(text: &str) -> bool {
    has_scheme(text) && !text.contains(|c: char| c.is_whitespace() || matches!(c, '<' | '>' | '"'))
}

/// An absolute address as one: what may not stand in it is percent-encoded, as a browser does that
/// follows it. What names no scheme, or is not one even so, stays as it is.
pub fn encoded(address: String) -> String {
    let address = match address.trim() {
        trimmed if trimmed.len() < address.len() => trimmed.to_owned(),
        _ => address,
    };
    if is_address(&address) || !has_scheme(&address) || address.len() > ADDRESS_LIMIT {
        return address;
    }
    Url::parse(&address).map_or(address, Into::into)
}

/// Whether an address is one that a browser opens.
pub fn is_web(address: &str) -> bool {
    let begins = |scheme: &str| {
        address.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme))
    };
    begins("http://") || begins("https://")
}

/// The address that a reference leads to: as it is written where it is absolute or where there is
/// no base to resolve it against. `None` where it is empty.
pub fn resolve<'a>(reference: Cow<'a, str>, base: Option<&Url>) -> Option<Cow<'a, str>> {
    let reference = trimmed(reference);
    if reference.is_empty() {
        return None;
    }
    let reference = if reference.contains(['\n', '\r', '\t']) {
        Cow::Owned(reference.replace(['\n', '\r', '\t'], ""))
    } else {
        reference
    };
    if has_scheme(&reference) || reference.len() > ADDRESS_LIMIT {
        return Some(reference);
    }
    match base.and_then(|base| base.join(&reference).ok()) {
        Some(url) => Some(Cow::Owned(url.into())),
        None => Some(reference),
    }
}

/// The mail address and the name in `mail@example.org (Name)`, as RSS has people.
pub fn mail_and_name(text: &str) -> Option<(&str, &str)> {
    let (mail, name) = text.trim().strip_suffix(')')?.split_once('(')?;
    let (mail, name) = (mail.trim(), name.trim());
    (mail.contains('@') && !name.is_empty()).then_some((mail, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_have_a_mail_and_a_name() {
        let ada = Some(("a@example.org", "Ada L."));
        assert_eq!(mail_and_name(" a@example.org (Ada L.) "), ada);
        assert_eq!(mail_and_name("Ada (the first)"), None);
        assert_eq!(mail_and_name("a@example.org"), None);
    }

    #[test]
    fn absolute_ones_stay_as_they_are() {
        let base = Url::parse("https://example.org/a/feed.xml").ok();
        let to = |r: &'static str| resolve(Cow::Borrowed(r), base.as_ref()).unwrap().into_owned();
        assert_eq!(to(" HTTP://Example.org "), "HTTP://Example.org");
        assert_eq!(to("tag:example.org,2026:1"), "tag:example.org,2026:1");
        assert_eq!(to("b?x=1#y"), "https://example.org/a/b?x=1#y");
        assert_eq!(to("//other.example/c"), "https://other.example/c");
        assert_eq!(to("/p\n/q"), "https://example.org/p/q");
        assert_eq!(resolve(Cow::Borrowed("b"), None).unwrap(), "b");
        assert_eq!(resolve(Cow::Borrowed(" \n"), None), None);
    }

    #[test]
    fn what_is_reserved_is_encoded() {
        assert_eq!(percent_encoded("aZ09-._~ /?&%\u{e9}"), "aZ09-._~%20%2F%3F%26%25%C3%A9");
    }

    #[test]
    fn schemes_are_told_from_paths_and_addresses_from_other_texts() {
        for (text, is_scheme, is_whole) in [
            ("mailto:a@b", true, true),
            ("urn:x:y", true, true),
            ("tag:a,2026:1", true, true),
            ("https://a/b c", true, false),
            ("a b:c", false, false),
            ("a/b:c", false, false),
            ("3a:b", false, false),
            ("x:", false, false),
            ("12", false, false),
            ("", false, false),
        ] {
            assert_eq!((has_scheme(text), is_address(text)), (is_scheme, is_whole), "{text}");
        }
        assert!(is_web("HTTPS://a") && !is_web("ftp://a") && !is_web("http"));
    }

    #[test]
    fn addresses_with_blanks_are_encoded_and_not_lost() {
        let made = |text: &str| encoded(text.to_owned());
        assert_eq!(made(" https://a.example/x y "), "https://a.example/x%20y");
        assert_eq!(made("https://a.example/ü"), "https://a.example/ü");
        assert_eq!(made("no scheme"), "no scheme");
    }
}
