//! The `sx:sharing` of a feed (SSE 1.0 section 2.2).

use tidegate_core::model::{Sharing, Time};
use tidegate_core::xml::doc::DocElement;
use tidegate_core::xml::ns::Ns;
use tidegate_core::xml::trimmed;
use url::Url;

/// Reads the `sx:sharing` of a document at `url`, which is one of these elements: it stands in the
/// channel, or in the root, where that of the authors of SSE 0.91 stands (READINGS 2, row 11). Also
/// until when the feed is to be read.
pub(in crate::parse) fn read_sharing(
    head: &[DocElement<'_, '_>],
    is_container: impl Fn(DocElement<'_, '_>) -> bool,
    url: Option<&Url>,
) -> Option<(Sharing, Option<Time>)> {
    let is_sharing = |element: &&DocElement<'_, '_>| {
        element.ns().is_sync_markup() && element.local() == "sharing"
    };
    let mut found = head.iter().filter(is_sharing).copied();
    let mut outside = head.iter().filter(is_sharing).copied();
    let element = found
        .find(|element| element.parent().is_some_and(&is_container))
        .or_else(|| outside.find(|element| element.parent().is_some_and(|root| root.id == 0)))?;
    let expires = element.attribute("expires");
    let sharing = Sharing { bounds: bounds(element), complete: complete(element, url) };
    Some((sharing, expires.and_then(|at| Time::parse_rfc3339(at.trim()).ok())))
}

/// Its `since` and `until`, as texts that can be compared. SSE 0.91 (section 2.1) writes dates,
/// whose letters are in no order; without its `since` the feed is there from the beginning.
fn bounds(sharing: DocElement<'_, '_>) -> Option<(String, String)> {
    let (since, until) = (sharing.attribute("since"), sharing.attribute("until")?);
    if sharing.ns() != Ns::Sx091 {
        return Some((since?.into_owned(), until.into_owned()));
    }
    let date = |text: &str| Time::parse_rfc2822(text).map(|time| time.to_string());
    let until = date(&until)?;
    match since.filter(|since| !since.trim().is_empty()) {
        None => Some((String::new(), until)),
        Some(since) => Some((date(&since)?, until)),
    }
}

/// Where the complete feed is, where it names one (section 2.2.1). A relative link needs the
/// document's `url`.
fn complete(sharing: DocElement<'_, '_>, url: Option<&Url>) -> Option<String> {
    let link = sharing.children().find_map(|related| {
        let is_complete = related.local() == "related"
            && related.attribute("type").map(trimmed).as_deref() == Some("complete");
        let link = related.attribute("link").filter(|_| is_complete)?;
        match url {
            Some(url) => url.join(link.trim()).ok(),
            None => Url::parse(link.trim()).ok(),
        }
    });
    link.map(bare).map(String::from)
}

/// A link as it is followed and kept: what a document says of credentials is neither.
pub fn bare(mut link: Url) -> Url {
    // Both fail only for addresses that cannot have any.
    let _ = link.set_username("");
    let _ = link.set_password(None);
    link.set_fragment(None);
    link
}
