//! What RFC 4287 asks of one entry (sections 3.2, 3.3 and 4.1.2), as far as a reader would go wrong
//! without it. Walks the text once and keeps next to nothing of it.

use quick_xml::XmlVersion;
use quick_xml::events::{BytesStart, Event};
use quick_xml::name::ResolveResult;
use quick_xml::reader::NsReader;
use tidegate_core::model::Time;
use tidegate_core::xml::ns::ATOM;
use url::{ParseError, Url};

/// Elements that an entry has once at most.
const ONCE: [&str; 8] =
    ["id", "title", "updated", "published", "content", "summary", "rights", "source"];
/// The longest date that is read, in bytes.
const DATE_LIMIT: usize = 128;
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

/// What was seen of an entry.
#[derive(Debug, Default)]
pub(super) struct Facts {
    /// Whether it has an `updated`.
    pub(super) is_dated: bool,
}

/// Checks the one entry in the element around it, whose content is `inner`. `Err(None)`: its XML
/// cannot be walked, which whoever reads it as a document can say better.
pub(super) fn entry(
    around: &str,
    inner: std::ops::Range<usize>,
) -> Result<Facts, Option<EntryFault>> {
    let body = around.get(inner.clone()).unwrap_or_default();
    if !body.trim_start().starts_with('<') {
        let found = if body.trim().is_empty() { "the body is empty" } else { "the body is no XML" };
        return Err(Some(EntryFault { at: inner.start, message: rooted(found) }));
    }
    let mut reader = NsReader::from_str(around);
    let mut walk = EntryCheck::default();
    loop {
        let at = usize::try_from(reader.buffer_position()).map_err(|_| None)?;
        let Ok((resolved, event)) = reader.read_resolved_event() else { return Err(None) };
        match event {
            Event::Start(tag) => {
                walk.open(&tag, &Space::new(&resolved), at)?;
                walk.depth += 1;
            }
            Event::Empty(tag) => {
                walk.open(&tag, &Space::new(&resolved), at)?;
                walk.depth += 1;
                walk.close()?;
            }
            Event::End(_) if walk.depth == 1 => {
                if at != inner.end {
                    return Err(None);
                }
                let message = || rooted("the body holds no element");
                return match walk.seen {
                    true => Ok(walk.facts),
                    false => Err(Some(EntryFault { at: inner.start, message: message() })),
                };
            }
            Event::End(_) => walk.close()?,
            Event::Text(text) => walk.text(&text, at)?,
            Event::CData(text) => walk.text(&text, at)?,
            Event::GeneralRef(reference) => {
                let character = reference.resolve_char_ref().map_err(|_| None)?;
                walk.text(character.unwrap_or('&').encode_utf8(&mut [0; 4]), at)?;
            }
            Event::Eof | Event::DocType(_) => return Err(None),
            Event::Comment(_) | Event::PI(_) | Event::Decl(_) => {}
        }
    }
}

/// Whether an address can be that of a page: http or https.
pub(super) fn is_page(address: &str) -> bool {
    Url::parse(address).is_ok_and(|url| matches!(url.scheme(), "http" | "https"))
}

/// The same, or relative.
fn leads(address: &str) -> bool {
    is_page(address) || Url::parse(address) == Err(ParseError::RelativeUrlWithoutBase)
}

/// What is said of a body that is something else.
pub(super) fn rooted(found: &str) -> String {
    format!(
        "{found}; the root must be an Atom entry, <entry xmlns=\"{ATOM}\">…</entry>, and nothing but \
         it stands in the body"
    )
}

/// Whose an element is.
#[derive(Debug, PartialEq, Eq)]
enum Space {
    /// Atom's, spelled as it must be.
    Atom,
    /// Something that readers take for Atom's.
    NearlyAtom,
    /// That of SSE or FeedSync.
    Sync,
    /// That of XHTML.
    Xhtml,
    /// Another, or none.
    Other,
}

impl Space {
    fn new(resolved: &ResolveResult<'_>) -> Self {
        let ResolveResult::Bound(space) = resolved else { return Self::Other };
        if space.0 == ATOM {
            return Self::Atom;
        }
        let short = space.0.trim().trim_end_matches(['/', '#']).to_ascii_lowercase();
        match short.split_once("://").map_or(short.as_str(), |(_, rest)| rest) {
            "www.w3.org/2005/atom" | "purl.org/atom/ns" => Self::NearlyAtom,
            "www.microsoft.com/schemas/sse"
            | "www.microsoft.com/schemas/rss/sse"
            | "feedsync.org/2007/feedsync" => Self::Sync,
            "www.w3.org/1999/xhtml" => Self::Xhtml,
            _ => Self::Other,
        }
    }

    const fn is_atom(&self) -> bool {
        matches!(self, Self::Atom | Self::NearlyAtom)
    }
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

/// An element of the entry.
#[derive(Debug)]
struct EntryChild {
    name: String,
    at: usize,
    kind: Option<TextKind>,
    /// The beginning of its own text.
    text: String,
    /// Its elements: all, those that are XHTML's `div`, and the names of a person.
    elements: usize,
    divs: usize,
    names: usize,
    /// Whether the element in it that is open is a name, and whether one has a text.
    in_name: bool,
    is_named: bool,
}

/// The walk.
#[derive(Debug, Default)]
struct EntryCheck {
    /// How many elements are open, the one around the entry included.
    depth: usize,
    seen: bool,
    facts: Facts,
    once: Vec<&'static str>,
    child: Option<EntryChild>,
}

impl EntryCheck {
    fn open(
        &mut self,
        tag: &BytesStart<'_>,
        space: &Space,
        at: usize,
    ) -> Result<(), Option<EntryFault>> {
        let local = tag.local_name();
        let local = local.as_ref();
        let fault = |message: String| Some(EntryFault { at, message });
        match self.depth {
            1 if self.seen => Err(None),
            1 if *space != Space::Atom || local != "entry" => {
                let name: String = tag.name().as_ref().chars().take(ECHO).collect();
                let found = match (local, space) {
                    ("entry", _) => "<entry> is in another namespace".to_owned(),
                    _ => format!("the root is <{name}>"),
                };
                Err(fault(rooted(&found)))
            }
            1 => {
                self.seen = true;
                Ok(())
            }
            2 if *space == Space::Sync && local == "sync" => Err(fault(unsynced())),
            2 if space.is_atom() => self.child(tag, local, at),
            3 => {
                if let Some(child) = &mut self.child {
                    child.elements += 1;
                    child.divs += usize::from(*space == Space::Xhtml && local == "div");
                    child.in_name = space.is_atom() && local == "name";
                    child.names += usize::from(child.in_name);
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// A child of Atom's opens.
    fn child(
        &mut self,
        tag: &BytesStart<'_>,
        name: &str,
        at: usize,
    ) -> Result<(), Option<EntryFault>> {
        let fault = |message: String| Err(Some(EntryFault { at, message }));
        if let Some(once) = ONCE.iter().find(|once| **once == name) {
            if self.once.contains(once) {
                return fault(format!("an entry has one <{name}>; leave this second one out"));
            }
            self.once.push(once);
        }
        self.facts.is_dated |= name == "updated";
        let mut attributes: Vec<(String, String)> = Vec::new();
        for attribute in tag.attributes() {
            let attribute = attribute.map_err(|_| None)?;
            let value = attribute.normalized_value(XmlVersion::Implicit1_0).map_err(|_| None)?;
            attributes.push((attribute.key.as_ref().to_owned(), value.into_owned()));
        }
        let said = |wanted: &str| {
            let found = attributes.iter().find(|(key, _)| key == wanted);
            found.map(|(_, value)| value.as_str())
        };
        let mut kind = None;
        match name {
            "link" => match said("href").map(str::trim).filter(|href| !href.is_empty()) {
                None => return fault("a <link> says with href where it leads; add it".to_owned()),
                Some(href) if !leads(href) => return fault(unled("the href of a <link>", href)),
                Some(_) => {}
            },
            "category" if said("term").is_none_or(|term| term.trim().is_empty()) => {
                return fault("a <category> says with term what it is called; add it".to_owned());
            }
            "content" | "summary" | "title" | "rights" => {
                let source = said("src").filter(|_| name == "content");
                kind = Some(match source {
                    Some(src) if src.trim().is_empty() || !leads(src) => {
                        return fault(unled("the src of <content>", src));
                    }
                    _ => typed(name, said("type"), source.is_some())
                        .map_err(|message| Some(EntryFault { at, message }))?,
                });
            }
            _ => {}
        }
        self.child = Some(EntryChild {
            name: name.to_owned(),
            at,
            kind,
            text: String::new(),
            elements: 0,
            divs: 0,
            names: 0,
            in_name: false,
            is_named: false,
        });
        Ok(())
    }

    fn text(&mut self, text: &str, at: usize) -> Result<(), Option<EntryFault>> {
        if text.trim().is_empty() && self.depth < 3 {
            return Ok(());
        }
        match self.depth {
            0 | 1 => return Err(None),
            2 => {
                let message = "text stands between the elements of the entry; put it into \
                               <content>, or take it out";
                let at = at + (text.len() - text.trim_start().len());
                return Err(Some(EntryFault { at, message: message.to_owned() }));
            }
            _ => {}
        }
        let Some(child) = &mut self.child else { return Ok(()) };
        if self.depth == 3 && child.text.trim_start().len() <= DATE_LIMIT {
            let start = text.char_indices().nth(DATE_LIMIT).map_or(text, |(end, _)| {
                text.get(..end).filter(|start| !start.trim().is_empty()).unwrap_or(text)
            });
            child.text.push_str(start);
        } else if self.depth == 4 && child.in_name {
            child.is_named |= !text.trim().is_empty();
        }
        Ok(())
    }

    fn close(&mut self) -> Result<(), Option<EntryFault>> {
        self.depth = self.depth.saturating_sub(1);
        if self.depth != 2 {
            return Ok(());
        }
        let Some(child) = self.child.take() else { return Ok(()) };
        match child.wrong() {
            Some(message) => Err(Some(EntryFault { at: child.at, message })),
            None => Ok(()),
        }
    }
}

impl EntryChild {
    /// What is wrong with it as a whole.
    fn wrong(&self) -> Option<String> {
        let name = &self.name;
        let text = self.text.trim();
        match (name.as_str(), self.kind) {
            ("updated" | "published", _) if self.elements > 0 || !is_date(text) => Some(format!(
                "{:?} is no date that <{name}> takes; write one such as 2026-11-20T16:20:05Z",
                text.chars().take(ECHO).collect::<String>()
            )),
            ("id", _) if text.is_empty() => {
                Some("the <id> is empty; leave it out, or write one such as urn:uuid:…".to_owned())
            }
            ("author" | "contributor", _) if self.names != 1 || !self.is_named => {
                Some(format!("<{name}> has one <name>, with a text; write it"))
            }
            (_, Some(TextKind::Plain)) if self.elements > 0 => Some(format!(
                "elements stand in <{name}>, which is no xhtml; write their < as &lt; and \
                 type=\"html\", or type=\"xhtml\" and a <div> around them"
            )),
            (_, Some(TextKind::Xhtml))
                if self.elements != 1 || self.divs != 1 || !text.is_empty() =>
            {
                Some(format!(
                    "<{name}> of the type xhtml holds one <div \
                     xmlns=\"http://www.w3.org/1999/xhtml\"> and nothing else; put all of it in one"
                ))
            }
            (_, Some(TextKind::Elsewhere)) if self.elements > 0 || !text.is_empty() => {
                Some("<content> with src is empty; leave out its text, or src".to_owned())
            }
            _ => None,
        }
    }
}

/// What stands in place of the gateway's own markup.
pub(super) fn unsynced() -> String {
    "leave sx:sync out: it is made here".to_owned()
}

fn unled(what: &str, address: &str) -> String {
    let address: String = address.chars().take(ECHO).collect();
    format!("{what} is {address:?}; it must be an http or https address, or a relative one")
}

/// What the type of a text makes of it (RFC 4287 sections 3.1.1 and 4.1.3.1).
fn typed(name: &str, said: Option<&str>, is_elsewhere: bool) -> Result<TextKind, String> {
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
    shaped(day, "0000-00-00")
        && shaped(clock, "00:00:00")
        && (zone == "Z" || shaped(zone, "+00:00") || shaped(zone, "-00:00"))
        && Time::parse_rfc3339(text).is_ok()
}

/// Whether a text is as long as the other, with a digit for each `0` and else the same.
fn shaped(text: &str, shape: &str) -> bool {
    let same = |(t, s): (u8, u8)| if s == b'0' { t.is_ascii_digit() } else { t == s };
    text.len() == shape.len() && text.bytes().zip(shape.bytes()).all(same)
}
