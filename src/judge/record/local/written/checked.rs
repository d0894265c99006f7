//! What RFC 4287 asks of one entry (sections 3.2, 3.3 and 4.1.2), as far as a reader would go wrong
//! without it.

use tidegate_core::model::Time;
use tidegate_core::xml::doc::{Doc, DocElement, WalkStep};
use tidegate_core::xml::ns::{ATOM, Ns};
use tidegate_core::xml::split_name;
use tidegate_core::xml::tag::prefix_of;
use url::{ParseError, Url};

/// Elements that an entry has once at most.
const ONCE: [&str; 8] =
    ["id", "title", "updated", "published", "content", "summary", "rights", "source"];
/// How much of what somebody wrote is said back, in characters.
const ECHO: usize = 60;

/// What is wrong, and where.
#[derive(Debug)]
pub(super) struct EntryFault {
    /// The offset into the text.
    pub(super) at: usize,
    /// What the author must do.
    pub(super) message: String,
}

/// Checks the one entry in the element around it, whose content is `inner`; answers the prefix of its elements where it
/// has no `updated`.
/// `Err(None)`: its XML cannot be walked, which whoever reads it as a document can say better.
pub(super) fn entry(
    around: &str,
    inner: std::ops::Range<usize>,
) -> Result<Option<String>, Option<EntryFault>> {
    let body = around.get(inner.clone()).unwrap_or_default();
    if !body.trim_start().starts_with('<') {
        let found = if body.trim().is_empty() { "the body is empty" } else { "the body is no XML" };
        return Err(Some(EntryFault { at: inner.start, message: describe_wrong_root(found) }));
    }
    let Some(doc) = Doc::read_whole(around) else { return Err(None) };
    let Some(around) = doc.root().filter(|root| root.content() == inner) else { return Err(None) };
    let Some(entry) = around.children().next() else {
        let message = describe_wrong_root("the body holds no element");
        return Err(Some(EntryFault { at: inner.start, message }));
    };
    let is_alone = around.children().count() == 1 && around.text().trim().is_empty();
    check_root(entry)?;
    if !is_alone {
        return Err(None);
    }
    check_text(entry)?;
    let mut once: Vec<&str> = Vec::new();
    for child in entry.children() {
        let at = child.span().start;
        let fault = |message: String| Some(EntryFault { at, message });
        if child.ns().is_sync_markup() && child.local() == "sync" {
            return Err(fault(describe_sync_markup()));
        }
        if is_atom(child) {
            if ONCE.contains(&child.local()) && once.contains(&child.local()) {
                let name = child.local();
                let message = format!("an entry has one <{name}>; leave this second one out");
                return Err(fault(message));
            }
            once.push(child.local());
            check_child(child).map_err(fault)?;
        }
    }
    let is_dated = once.contains(&"updated");
    Ok((!is_dated).then(|| prefix_of(entry.name()).to_owned()))
}

/// Checks that the root is an entry of Atom, its namespace spelled as it must be.
fn check_root(entry: DocElement<'_, '_>) -> Result<(), Option<EntryFault>> {
    let prefix = split_name(entry.name()).0;
    let mut declared = entry.ancestors().flat_map(DocElement::declarations);
    let bound = declared.find(|declaration| declaration.declared_prefix() == prefix);
    let is_atom = bound.is_some_and(|bound| bound.value() == ATOM);
    let found = match entry.local() {
        "entry" if is_atom => return Ok(()),
        "entry" => "<entry> is in another namespace".to_owned(),
        _ => format!("the root is <{}>", entry.name().chars().take(ECHO).collect::<String>()),
    };
    Err(Some(EntryFault { at: entry.span().start, message: describe_wrong_root(&found) }))
}

/// Checks that no text stands between the elements of the entry.
fn check_text(entry: DocElement<'_, '_>) -> Result<(), Option<EntryFault>> {
    let mut walk = entry.walk();
    while let Some(step) = walk.next() {
        match step {
            WalkStep::Open(element) if element.id != entry.id => walk.leave_out(),
            WalkStep::Text(text) if !text.trim().is_empty() => {
                let message = "text stands between the elements of the entry; put it into \
                               <content>, or take it out";
                let at = walk.place() + (text.len() - text.trim_start().len());
                return Err(Some(EntryFault { at, message: message.to_owned() }));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Whether an element is Atom's, or readers take it for that.
fn is_atom(element: DocElement<'_, '_>) -> bool {
    matches!(element.ns(), Ns::Atom | Ns::Atom03)
}

/// Whether an address can be that of a page: http or https.
pub(super) fn is_page(address: &str) -> bool {
    Url::parse(address).is_ok_and(|url| matches!(url.scheme(), "http" | "https"))
}

/// Whether an address can be that of a page, or is relative.
fn is_page_or_relative(address: &str) -> bool {
    is_page(address) || Url::parse(address) == Err(ParseError::RelativeUrlWithoutBase)
}

/// Describes the fault of a body whose root is no Atom entry.
pub(super) fn describe_wrong_root(found: &str) -> String {
    format!(
        "{found}; the root must be an Atom entry, <entry xmlns=\"{ATOM}\">…</entry>, and nothing but \
         it stands in the body"
    )
}

/// What a text is, by its `type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TextKind {
    /// Text or HTML: no elements in it.
    Plain,
    /// One `div`.
    Xhtml,
    /// XML of a media type.
    Xml,
    /// Elsewhere, so that there is nothing in it.
    Elsewhere,
}

/// Checks an element of the entry; what is wrong with it.
fn check_child(child: DocElement<'_, '_>) -> Result<(), String> {
    let name = child.local();
    let attribute = |wanted: &str| child.attribute(wanted);
    let mut kind = None;
    match name {
        "link" => {
            let href = attribute("href").unwrap_or_default();
            match href.trim() {
                "" => return Err("a <link> says with href where it leads; add it".to_owned()),
                href if !is_page_or_relative(href) => {
                    return Err(describe_bad_address("the href of a <link>", href));
                }
                _ => {}
            }
        }
        "category" if attribute("term").is_none_or(|term| term.trim().is_empty()) => {
            return Err("a <category> says with term what it is called; add it".to_owned());
        }
        "content" | "summary" | "title" | "rights" => {
            let source = attribute("src").filter(|_| name == "content");
            if let Some(src) =
                source.as_deref().filter(|src| src.trim().is_empty() || !is_page_or_relative(src))
            {
                return Err(describe_bad_address("the src of <content>", src));
            }
            kind = Some(parse_text_kind(name, attribute("type").as_deref(), source.is_some())?);
        }
        _ => {}
    }
    find_fault(child, kind).map_or(Ok(()), Err)
}

/// Describes what is wrong with an element as a whole, if anything is.
fn find_fault(child: DocElement<'_, '_>, kind: Option<TextKind>) -> Option<String> {
    let (name, text) = (child.local(), child.text());
    let (text, has_elements) = (text.trim(), !child.is_leaf());
    let is_div = |e: &DocElement<'_, '_>| e.ns() == Ns::Named("xhtml") && e.local() == "div";
    match (name, kind) {
        ("updated" | "published", _) if has_elements || !is_date(text) => Some(format!(
            "{:?} is no date that <{name}> takes; write one such as 2026-11-20T16:20:05Z",
            text.chars().take(ECHO).collect::<String>()
        )),
        ("id", _) if text.is_empty() => {
            Some("the <id> is empty; leave it out, or write one such as urn:uuid:…".to_owned())
        }
        ("author" | "contributor", _) => {
            let names = child.children().filter(|e| is_atom(*e) && e.local() == "name");
            let names: Vec<_> = names.map(|name| name.text()).collect();
            let is_named = matches!(names.as_slice(), [name] if !name.trim().is_empty());
            (!is_named).then(|| format!("<{name}> has one <name>, with a text; write it"))
        }
        (_, Some(TextKind::Plain)) if has_elements => Some(format!(
            "elements stand in <{name}>, which is no xhtml; write their < as &lt; and \
             type=\"html\", or type=\"xhtml\" and a <div> around them"
        )),
        (_, Some(TextKind::Xhtml))
            if child.children().count() != 1
                || !child.children().all(|e| is_div(&e))
                || !text.is_empty() =>
        {
            Some(format!(
                "<{name}> of the type xhtml holds one <div \
                 xmlns=\"http://www.w3.org/1999/xhtml\"> and nothing else; put all of it in one"
            ))
        }
        (_, Some(TextKind::Elsewhere)) if has_elements || !text.is_empty() => {
            Some("<content> with src is empty; leave out its text, or src".to_owned())
        }
        _ => None,
    }
}

/// Describes the fault of an entry with sync markup.
pub(super) fn describe_sync_markup() -> String {
    "leave sx:sync out: it is made here".to_owned()
}

fn describe_bad_address(what: &str, address: &str) -> String {
    let address: String = address.chars().take(ECHO).collect();
    format!("{what} is {address:?}; it must be an http or https address, or a relative one")
}

/// What the type of a text makes of it (RFC 4287 sections 3.1.1 and 4.1.3.1).
fn parse_text_kind(name: &str, said: Option<&str>, is_elsewhere: bool) -> Result<TextKind, String> {
    let wrong = |said: &str| {
        let said: String = said.chars().take(ECHO).collect();
        let media = if name == "content" { ", or a media type such as image/png" } else { "" };
        format!("the type of <{name}> is {said:?}; it must be text, html or xhtml{media}")
    };
    match said {
        None if is_elsewhere => Ok(TextKind::Elsewhere),
        None | Some("text" | "html") if !is_elsewhere => Ok(TextKind::Plain),
        Some("xhtml") if !is_elsewhere => Ok(TextKind::Xhtml),
        Some(media) if name == "content" && is_media(media) => Ok(match is_elsewhere {
            true => TextKind::Elsewhere,
            false if is_xml(media) => TextKind::Xml,
            false => TextKind::Plain,
        }),
        Some(_) if is_elsewhere => {
            Err("<content> with src has a media type such as image/png; write that".to_owned())
        }
        other => Err(wrong(other.unwrap_or_default())),
    }
}

fn is_media(media: &str) -> bool {
    let essence = media.split(';').next().unwrap_or_default().trim();
    let is_token = |text: &str| {
        !text.is_empty()
            && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$&^_.+-".contains(&b))
    };
    essence.split_once('/').is_some_and(|(kind, sub)| is_token(kind) && is_token(sub))
}

fn is_xml(media: &str) -> bool {
    let essence = media.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    essence.ends_with("+xml") || essence.ends_with("/xml")
}

/// Whether this is a date of RFC 3339, spelled as RFC 4287 section 3.3 wants it.
fn is_date(text: &str) -> bool {
    let Some((day, time)) = text.split_once('T') else { return false };
    let Some((clock, rest)) = time.split_at_checked(8) else { return false };
    let zone = rest.strip_prefix('.').map_or(rest, |rest| {
        let zone = rest.trim_start_matches(|c: char| c.is_ascii_digit());
        if zone.len() == rest.len() { "" } else { zone }
    });
    matches_pattern(day, "0000-00-00")
        && matches_pattern(clock, "00:00:00")
        && (zone == "Z" || matches_pattern(zone, "+00:00") || matches_pattern(zone, "-00:00"))
        && Time::parse_rfc3339(text).is_ok()
}

/// Whether a text is as long as the other, with a digit for each `0` and else the same.
fn matches_pattern(text: &str, shape: &str) -> bool {
    let same = |(t, s): (u8, u8)| if s == b'0' { t.is_ascii_digit() } else { t == s };
    text.len() == shape.len() && text.bytes().zip(shape.bytes()).all(same)
}
