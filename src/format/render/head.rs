//! What surrounds the entries: the skeleton with our declarations, links and `sx:sharing`.

use super::base::Bases;
use super::scope::Prefixes;
use super::{Dialect, Page, ViewKind};
use std::fmt::Write;
use std::ops::Range;
use tidegate_core::model::{Family, Skeleton, Tick, Time};
use tidegate_core::sup;
use tidegate_core::xml::doc::{Doc, DocElement};
use tidegate_core::xml::edits::{Edit, Edits};
use tidegate_core::xml::{self, push_attribute, tag};

/// What stands around the entries of a document.
#[derive(Debug)]
pub struct Surroundings {
    /// Everything up to the first entry.
    pub before: String,
    /// Everything behind the last one.
    pub after: String,
}

impl Surroundings {
    /// Prepares a skeleton of the page's family for `page`.
    pub fn new(page: &Page<'_>, skeleton: &Skeleton, prefixes: &Prefixes) -> Self {
        let family = skeleton.format.family();
        let slots = &skeleton.slots;
        let text = skeleton.text.as_str();
        let mut edits = Vec::new();
        let mut add = |range, with: String| edits.push(Edit { range, with: with.into() });

        let before = text.get(..slots.root_attributes).unwrap_or(text);
        // The prefix of the feed's own elements.
        let own = tag::prefix_of(tag::name_before(before));
        for range in stylesheets(before) {
            add(range, String::new());
        }
        let mut declarations = String::new();
        for (prefix, namespace) in &prefixes.declarations {
            push_attribute(&mut declarations, &format!("xmlns:{prefix}"), namespace);
        }
        for Edit { range, with } in based(skeleton, &page.addresses.upstream) {
            add(range, with.into_owned());
        }
        if family == Family::Rss {
            match &slots.version {
                Some(version) => add(version.clone(), "2.0".to_owned()),
                None => push_attribute(&mut declarations, "version", "2.0"),
            }
        }
        add(slots.root_attributes..slots.root_attributes, declarations);
        if !page.addresses.keeps_new_feed_url {
            for place in new_feed_urls(text) {
                let mut own = String::new();
                xml::push_text(&mut own, &page.addresses.reader);
                add(place, own);
            }
        }

        let mut feed_level = String::new();
        let (name, shown) = match family {
            Family::Atom => ("updated", page.state.updated_at.to_string()),
            Family::Rss => ("lastBuildDate", page.state.updated_at.rfc822()),
        };
        match &slots.updated {
            Some(updated) => add(updated.clone(), shown),
            None => {
                let _ = write!(feed_level, "<{own}{name}>{shown}</{own}{name}>");
            }
        }
        if family == Family::Atom && slots.id.is_none() {
            xml::push_element(&mut feed_level, &format!("{own}id"), &page.addresses.reader);
        }
        if let (Some(mark), Some(prefix)) = (page.history.mark(), &prefixes.history) {
            let _ = write!(feed_level, "<{prefix}:{mark}/>");
        }
        let link = match &prefixes.atom {
            Some(prefix) => format!("{prefix}:link"),
            None => format!("{own}link"),
        };
        push_links(&mut feed_level, page, &link);
        if let (Family::Rss, None, Some(cloud)) =
            (family, &page.history.archive, &page.addresses.cloud)
        {
            let _ = write!(feed_level, "<{own}cloud");
            push_attribute(&mut feed_level, "domain", &cloud.domain);
            push_attribute(&mut feed_level, "port", &cloud.port.to_string());
            push_attribute(&mut feed_level, "path", &cloud.path);
            feed_level.push_str(" registerProcedure=\"\" protocol=\"http-post\"/>");
        }
        push_sharing(&mut feed_level, page, &prefixes.sharing);
        Self::edited(skeleton, edits, &feed_level)
    }

    /// A skeleton that stands by itself, from wherever: its references lead where they led in
    /// `document`.
    pub fn alone(skeleton: &Skeleton, document: &str) -> Self {
        Self::edited(skeleton, based(skeleton, document), "")
    }

    fn edited(skeleton: &Skeleton, edits: Vec<Edit>, feed_level: &str) -> Self {
        let (text, entries) = (skeleton.text.as_str(), skeleton.slots.entries);
        let before = Edits::new(0..entries, edits.clone()).apply(text);
        let after = Edits::new(entries..text.len(), edits).apply(text).into_owned();
        Self { before: format!("{before}{feed_level}\n"), after }
    }
}

/// What must be written otherwise in a skeleton so that its references lead where they led in
/// `document`.
fn based(skeleton: &Skeleton, document: &str) -> Vec<Edit> {
    let (text, start) = (skeleton.text.as_str(), skeleton.slots.root_attributes);
    let Some(base) = text.get(start..).and_then(|rest| tag::find(rest, "xml:base")) else {
        return Bases { document, channel: skeleton.link.as_deref() }.head_edits(text);
    };
    let value = xml::plain_value(base.value);
    if url::Url::parse(&value).is_ok() {
        return Vec::new();
    }
    let mut absolute = String::new();
    xml::push_value(&mut absolute, &resolve(document, &value));
    vec![Edit { range: start + base.range.start..start + base.range.end, with: absolute.into() }]
}

/// Where a head says that the feed has moved (`itunes:new-feed-url`): applications that follow it would
/// leave the gateway.
fn new_feed_urls(text: &str) -> Vec<Range<usize>> {
    const NAME: &str = "new-feed-url";
    let doc = text.contains(NAME).then(|| Doc::read_whole(text)).flatten();
    let elements = doc.iter().filter_map(Doc::root).flat_map(DocElement::descendants);
    let said = elements.filter(|element| element.local() == NAME && !element.is_empty_tag());
    said.map(DocElement::content).collect()
}

/// Where a prolog has `xml-stylesheet`. These are left out: their references are relative to an
/// address that the document does not have any more, and a browser that cannot fetch one, or may
/// not because it is of another origin, shows nothing of the document.
///
/// So they are for the publisher's own host too: the same bytes are answered at `/feeds/NAME`,
/// where a relative reference leads to something of ours. That could be a feed, which can be a
/// stylesheet (XSLT 1.0 section 2.3), and its scripts would be ours.
fn stylesheets(prolog: &str) -> impl Iterator<Item = Range<usize>> {
    prolog.match_indices("<?xml-stylesheet").filter_map(|(start, _)| {
        let length = prolog.get(start..)?.find("?>")? + "?>".len();
        Some(start..start + length)
    })
}

/// A reference against a base; the reference itself where either cannot be read.
pub fn resolve(base: &str, reference: &str) -> String {
    let resolved = url::Url::parse(base).and_then(|base| base.join(reference));
    resolved.map_or_else(|_| reference.to_owned(), Into::into)
}

/// The address of the view that is rendered.
pub const fn own_address<'a>(page: &Page<'a>) -> &'a String {
    if let Some(archive) = &page.history.archive {
        return &archive.own;
    }
    match page.kind {
        ViewKind::Reader => &page.addresses.reader,
        ViewKind::Sync => &page.addresses.sync,
        ViewKind::Complete => &page.addresses.complete,
    }
}

/// A link of a document.
#[derive(Debug, Clone, Copy)]
pub struct Link<'a> {
    /// Its relation.
    pub relation: &'static str,
    /// The media type of what it leads to, where that is known.
    pub media: Option<&'static str>,
    /// The address.
    pub address: &'a str,
}

/// The links of a document. Those to other documents of the feed lead to them in its container.
pub fn links<'a>(page: &Page<'a>) -> Vec<Link<'a>> {
    let media = page.container.media_range();
    let mut links = Vec::new();
    let mut push = |relation, media, address| links.push(Link { relation, media, address });
    push("self", Some(media), own_address(page));
    if let Some(via) = &page.addresses.via {
        push("via", None, via);
    }
    for (relation, address) in page.history.links(&page.addresses.reader) {
        push(relation, Some(media), address);
    }
    // An archive never changes and is nothing to subscribe to: it names neither hub nor SUP.
    if page.history.archive.is_some() {
        return links;
    }
    if page.kind == ViewKind::Reader {
        push("related", Some(media), &page.addresses.sync);
    }
    if let Some(sup) = &page.addresses.sup {
        push(sup::RELATION, Some("application/json"), sup);
    }
    if let Some(hub) = &page.addresses.hub {
        push("hub", None, hub);
    }
    links
}

/// Adds the links as elements of this name.
pub fn push_links(out: &mut String, page: &Page<'_>, name: &str) {
    for Link { relation, media, address } in links(page) {
        let said = [("rel", Some(relation)), ("type", media), ("href", Some(address))];
        xml::push_empty(out, name, &said);
    }
}

/// What a view says of the changes that it lists (SSE 1.0 section 2.2).
#[derive(Debug, Clone, Copy, Default)]
pub struct ViewBounds {
    /// `since` and `until`: together, and only where the view lists every change.
    pub bounds: Option<(Tick, Tick)>,
    /// `expires`.
    pub expires: Option<Time>,
    /// Whether there is a complete feed beside it.
    pub has_complete: bool,
}

impl ViewBounds {
    /// Of a page.
    pub fn of(page: &Page<'_>) -> Self {
        let bounds = page.since.zip(page.until).filter(|_| page.kind != ViewKind::Reader);
        let expires = page.expires.filter(|_| page.kind == ViewKind::Sync);
        Self { bounds, expires, has_complete: page.kind != ViewKind::Complete }
    }
}

/// A day, in seconds.
const DAY: u64 = 86_400;

/// Adds `sx:sharing` (SSE 1.0 section 2.2; SSE 0.91 section 2.1).
pub fn push_sharing(out: &mut String, page: &Page<'_>, prefix: &str) {
    let sharing = ViewBounds::of(page);
    let is_091 = page.dialect == Dialect::Sse091;
    let _ = write!(out, "<{prefix}:sharing");
    if let Some((since, until)) = sharing.bounds {
        // Who has read up to an `until` has what has that very time: that it is left out behind an
        // equal `since` loses nobody anything, although 0.91 counts it in.
        let shown = |tick: Tick| if is_091 { tick.time().rfc822() } else { tick.to_string() };
        let _ = write!(out, " since=\"{}\" until=\"{}\"", shown(since), shown(until));
    }
    if is_091 {
        out.push_str(" version=\"0.91\"");
        // Rounded down, so that who reads once in that time misses nothing.
        let days = page.window.map_or(0, |window| window.as_secs() / DAY);
        if days > 0 && page.kind == ViewKind::Sync {
            let _ = write!(out, " window=\"{days}\"");
        }
    } else if let Some(expires) = sharing.expires {
        let _ = write!(out, " expires=\"{expires}\"");
    }
    let aggregated = &page.addresses.aggregated;
    if !sharing.has_complete && aggregated.is_empty() {
        out.push_str("/>");
        return;
    }
    out.push('>');
    let mut related = |link: &str, kind, title| {
        let said = [("link", Some(link)), ("type", Some(kind)), ("title", title)];
        xml::push_empty(out, &format!("{prefix}:related"), &said);
    };
    if sharing.has_complete {
        related(&page.addresses.complete, "complete", None);
    }
    for (title, link) in aggregated {
        related(link, "aggregated", Some(title.as_str()));
    }
    let _ = write!(out, "</{prefix}:sharing>");
}
