//! Addresses: made absolute where that is possible.

use crate::xml::trim;
use std::borrow::Cow;
use url::Url;

/// The longest address that is resolved against a base, in bytes.
pub(super) const ADDRESS_LIMIT: usize = 8192;

/// Whether a reference names its scheme, so that no base changes it (RFC 3986 section 4.3).
pub(super) fn has_scheme(address: &str) -> bool {
    let Some((scheme, rest)) = address.split_once(':') else { return false };
    !rest.is_empty()
        && scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
}

/// Whether an address is one that a browser opens.
pub(super) fn is_web(address: &str) -> bool {
    let begins = |scheme: &str| {
        address.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme))
    };
    begins("http://") || begins("https://")
}

/// The address that a reference leads to: as it is written where it is absolute or where there is
/// no base to resolve it against. `None` where it is empty.
pub(super) fn resolve<'a>(reference: Cow<'a, str>, base: Option<&Url>) -> Option<Cow<'a, str>> {
    let reference = match reference {
        Cow::Borrowed(text) => Cow::Borrowed(trim(text)),
        Cow::Owned(text) => Cow::Owned(trim(&text).to_owned()),
    };
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

#[cfg(test)]
mod tests {
    use super::*;

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
    fn schemes_are_told_from_paths() {
        assert!(has_scheme("mailto:a@b") && has_scheme("urn:x"));
        assert!(
            !has_scheme("a/b:c") && !has_scheme("3a:b") && !has_scheme("x:") && !has_scheme("")
        );
        assert!(is_web("HTTPS://a") && !is_web("ftp://a") && !is_web("http"));
    }
}
