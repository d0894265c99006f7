//! Views in every container and dialect, read back: the same items, histories and words.

use super::{Compared, page_addresses};
use crate::support::{page, shared_items};
use tidegate_core::model::{Markup, Shared, Version};
use tidegate_core::xml;
use tidegate_core::xml::html::plain_text;
use tidegate_core::xml::ns::ATOM;
use tidegate_format::parse::{self, Limits};
use tidegate_format::render::{self, Container, Dialect, Page};
use tidegate_store::View;
use url::Url;

/// The most items of one feed that are looked at.
const ITEMS: usize = 20;

const CONTAINERS: [Container; 4] =
    [Container::Atom, Container::Rss, Container::Pox, Container::Json];
const DIALECTS: [Dialect; 3] = [Dialect::Sse, Dialect::FeedSync, Dialect::Sse091];

fn bare<D>(version: &Version<D>) -> String {
    let Version { id, updates, deleted, noconflicts, history, .. } = version;
    format!("{id} {updates:?} {deleted} {noconflicts:?} {history:?}")
}

/// The items of a document from `upstream`; why they cannot be read.
fn read(text: &str, upstream: &Url) -> Result<Vec<Shared<Markup>>, String> {
    let limits = Limits::default();
    let decoded =
        parse::decode(text.as_bytes(), None, &limits).map_err(|error| error.to_string())?;
    let document = parse::document(&decoded.text, Some(upstream), &limits);
    let document = document.map_err(|error| error.to_string())?;
    if !document.flaws.is_empty() {
        return Err(format!("{:?}", document.warnings));
    }
    let unshared = || "an item without sync markup".to_owned();
    let entries = document.entries.iter();
    entries.map(|entry| shared_items::shared(&document, entry).ok_or_else(unshared)).collect()
}

/// The id that an entry has.
fn id(markup: &Markup) -> Option<String> {
    let id = markup.slots.id.clone()?;
    Some(xml::plain(markup.xml.get(id)?).trim().to_owned())
}

/// The words of an entry's text, however often it is escaped: where elements stand beside escaped ones, one container
/// has it as markup and another as text.
fn text(markup: &Markup) -> Option<String> {
    shared_items::text(markup).map(|text| plain_text(&plain_text(&text)))
}

/// The title of an entry as it is written.
fn title(markup: &Markup) -> Option<String> {
    let fields = parse::again(markup)?;
    let written = fields.into_iter().find(|field| field.path == "title");
    Some(written.map_or_else(|| markup.card.title.clone(), |field| field.value.into_owned()))
}

/// What is told of an item in both documents and must be the same.
fn differs(own: &Markup, other: &Markup) -> Option<String> {
    // Markup may be spelled otherwise.
    let words = |text: &Option<String>| {
        let text = text.clone().unwrap_or_default();
        // These are read as they are written in XHTML, and as what they are elsewhere.
        let text = if text.contains("<!--") || text.contains("<![CDATA[") { "" } else { &text };
        let (mut words, mut inside) = (String::new(), None);
        for c in text.chars() {
            match (inside, c) {
                (None, '<') => inside = Some('>'),
                (None, '&') => inside = Some(';'),
                (Some(end), c) if c == end => inside = None,
                (None, c) if c.is_alphanumeric() => words.push(c),
                _ => {}
            }
        }
        words
    };
    for (name, one, two) in [
        ("id", id(own), id(other)),
        ("title", title(own), title(other)),
        ("text", text(own), text(other)),
    ] {
        let (one, two) = (words(&one), words(&two));
        // A collection may say in elements of Atom what RSS does not.
        if one != two && !one.is_empty() {
            let shown = |text: &str| text.chars().take(120).collect::<String>();
            return Some(format!("{name} {:?}, not {:?}", shown(&two), shown(&one)));
        }
    }
    (own.card.link.is_some() && other.card.link.is_none()).then(|| "no link".to_owned())
}

/// Compares a window in its own container with the same in all others.
pub fn compare(window: &View, all: &mut Compared) {
    let addresses = page_addresses();
    let upstream = Url::parse(&addresses.upstream).unwrap();
    let items = &window.items[..window.items.len().min(ITEMS)];
    let own = Container::of(window.state.format);
    let rendered = |container, dialect| {
        render::document(&Page {
            container,
            dialect,
            items,
            since: window.state.window_start,
            until: window.state.tick,
            ..page(window, &addresses)
        })
    };
    let wanted: Vec<_> = items.iter().map(|item| bare(&item.shared.winner)).collect();
    // No endpoint of SSE reads Atom whose root is in no namespace.
    if own == Container::Atom && !window.skeleton.text.contains(ATOM) {
        return;
    }
    let Ok(said) = read(&rendered(own, Dialect::Sse), &upstream) else { return };
    for container in CONTAINERS {
        for dialect in DIALECTS {
            let form = format!("{container:?} with {dialect:?}");
            let back = match read(&rendered(container, dialect), &upstream) {
                Ok(back) => back,
                Err(error) => {
                    all.differences.push(format!("{form} cannot be read: {error}"));
                    continue;
                }
            };
            let found: Vec<_> = back.iter().map(|item| bare(&item.winner)).collect();
            if found != wanted {
                all.differences.push(format!("{form} has other items or histories"));
            }
            // The other family has other words for some of it.
            let is_whole = container == own || container.family().is_none();
            for (own, other) in said.iter().zip(&back).filter(|_| is_whole) {
                let (own, other) = (&own.winner.data, &other.winner.data);
                if let Some(what) = differs(own, other) {
                    all.differences.push(format!("{form} has the {what}"));
                }
                let (own, other) = (&own.card.link, &other.card.link);
                if own.is_some() && other.is_some() && own != other {
                    all.differences.push(format!("{form} leads to {other:?}, not {own:?}"));
                }
            }
            all.round_trips += 1;
        }
    }
}
