//! Views in every container and dialect, read back: the same items, histories and words.

use super::{Compared, page_addresses};
use tidegate_core::model::{Shared, Version};
use tidegate_format::parse::collection::transcoded;
use tidegate_format::parse::sse::{self, Payload, Values};
use tidegate_format::render::{self, Container, Dialect, HistoryPlace, Page, ViewKind};
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

/// The items of a document; why they cannot be read.
fn read(text: &str) -> Result<Vec<Shared<Payload>>, String> {
    let atom = transcoded(text).map_err(|error| error.to_string())?;
    let feed = sse::read(atom.as_deref().unwrap_or(text)).map_err(|error| error.to_string())?;
    let items = feed.items.iter().map(|item| match item.any() {
        Some(item) => item.map_err(|error| error.to_string()),
        None => Err("an item without sync markup".to_owned()),
    });
    items.collect()
}

/// What is told of an item in both documents and must be the same.
fn differs(own: &Values, other: &Values) -> Option<String> {
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
        ("id", &own.id, &other.id),
        ("title", &own.title, &other.title),
        ("text", &own.text, &other.text),
    ] {
        let (one, two) = (words(one), words(two));
        // A collection may say in elements of Atom what RSS does not.
        if one != two && !one.is_empty() {
            let shown = |text: &str| text.chars().take(120).collect::<String>();
            return Some(format!("{name} {:?}, not {:?}", shown(&two), shown(&one)));
        }
    }
    (own.link.is_some() && other.link.is_none()).then(|| "no link".to_owned())
}

/// Where an item of a document from `upstream` leads, by the base that it stands in.
fn link(payload: &Payload, upstream: &Url) -> Option<Url> {
    let link = payload.values.link.as_deref()?;
    let base = payload.values.base.as_deref().or(payload.base.as_deref());
    if payload.has_base && base.is_none() {
        return None;
    }
    upstream.join(base.unwrap_or_default()).and_then(|base| base.join(link)).ok()
}

/// Compares a window in its own container with the same in all others.
pub fn compare(window: &View, all: &mut Compared) {
    let addresses = page_addresses();
    let upstream = Url::parse(&addresses.upstream).unwrap();
    let items = &window.items[..window.items.len().min(ITEMS)];
    let own = Container::of(window.state.format);
    let rendered = |container, dialect| {
        render::document(&Page {
            kind: ViewKind::Complete,
            container,
            dialect,
            addresses: &addresses,
            state: &window.state,
            skeleton: &window.skeleton,
            items,
            deleted: &[],
            history: &HistoryPlace::default(),
            since: window.state.window_start,
            until: window.state.tick,
            expires: None,
            window: None,
        })
    };
    let wanted: Vec<_> = items.iter().map(|item| bare(&item.shared.winner)).collect();
    let said = match read(&rendered(own, Dialect::Sse)) {
        Ok(said) => said,
        // Atom whose root is in no namespace of Atom, say: no endpoint of SSE reads that.
        Err(_) => return,
    };
    for container in CONTAINERS {
        for dialect in DIALECTS {
            let form = format!("{container:?} with {dialect:?}");
            let back = match read(&rendered(container, dialect)) {
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
                if let Some(what) = differs(&own.values, &other.values) {
                    all.differences.push(format!("{form} has the {what}"));
                }
                let (own, other) = (link(own, &upstream), link(other, &upstream));
                // A relative base stays one where nobody knows the document's address.
                if own.is_some() && other.is_some() && own != other {
                    all.differences.push(format!(
                        "{form} leads to {:?}, not {:?}",
                        other.map(String::from),
                        own.map(String::from)
                    ));
                }
            }
            all.round_trips += 1;
        }
    }
}
