//! Where links of items lead, resolved as three kinds of readers do: FreshRSS (SimplePie: what
//! `xml:base` says, else the item's link, else the channel's), feedparser (what `xml:base` says, else
//! the address that was read) and newsboat (the nearest `xml:base` of content, item and root as it is
//! written, else the address that was read).

use quick_xml::events::{BytesStart, Event};
use quick_xml::reader::Reader;
use std::collections::{HashMap, HashSet};
use url::Url;

/// A document as readers see its links.
#[derive(Debug, Default)]
pub struct Document {
    /// The channel's link, as written, with the base around it.
    link: Option<(String, Bases)>,
    own: Option<String>,
    items: Vec<Item>,
}

#[derive(Debug, Default)]
struct Item {
    id: Option<String>,
    link: Option<(String, Bases)>,
    /// References in its content, each with the bases around it.
    references: Vec<(String, Bases)>,
}

/// The values of `xml:base` around an element, the outermost first.
type Bases = Vec<String>;

const CONTENT: [&str; 4] = ["description", "encoded", "content", "summary"];

impl Document {
    /// Reads a feed. What a reader would not get through ends it.
    pub fn read(text: &str) -> Self {
        let mut document = Self::default();
        let mut reader = Reader::from_str(text);
        reader.config_mut().allow_dangling_amp = true;
        reader.config_mut().check_end_names = false;
        let mut path: Vec<(String, Option<String>)> = Vec::new();
        let mut text = String::new();
        while let Ok(event) = reader.read_event() {
            let is_empty = matches!(event, Event::Empty(_));
            match event {
                Event::Start(tag) | Event::Empty(tag) => {
                    let whole = tag.name().0.to_owned();
                    let inside = content_at(&path).is_some();
                    let base = attribute(&tag, "xml:base");
                    path.push((whole, base));
                    if inside {
                        text.push_str(&format!(
                            "<{} {}>",
                            path.last().unwrap().0,
                            attributes(&tag)
                        ));
                    } else {
                        text.clear();
                        document.open(&path, &tag);
                    }
                    if is_empty {
                        path.pop();
                    }
                }
                Event::End(_) => {
                    document.close(&path, &text);
                    path.pop();
                }
                Event::Text(piece) => text.push_str(&piece.xml10_content()),
                Event::CData(piece) => text.push_str(&piece.xml10_content()),
                Event::GeneralRef(name) => {
                    let reference = format!("&{};", &*name);
                    text.push_str(&unescaped(&reference));
                }
                Event::Eof => break,
                _ => {}
            }
        }
        document
    }

    fn open(&mut self, path: &[(String, Option<String>)], tag: &BytesStart<'_>) {
        let (name, _) = path.last().unwrap();
        if matches!(local(name), "item" | "entry") {
            let id = attribute(tag, "rdf:about");
            self.items.push(Item { id, ..Item::default() });
        }
        if local(name) == "link" && path.len() > 1 {
            let Some(href) = attribute(tag, "href") else { return };
            let relation = attribute(tag, "rel").unwrap_or_else(|| "alternate".to_owned());
            let link = Some((href.clone(), bases(path)));
            let parent = local(&path[path.len() - 2].0);
            match (parent, relation.as_str(), self.items.last_mut()) {
                ("item" | "entry", "alternate", Some(item)) if name == "link" => {
                    item.link = item.link.take().or(link);
                }
                ("feed", "alternate", None) => self.link = self.link.take().or(link),
                ("feed" | "channel", "self", None) => self.own = Some(href),
                _ => {}
            }
        }
    }

    fn close(&mut self, path: &[(String, Option<String>)], text: &str) {
        let [.., (parent, _), (name, _)] = path else { return };
        let text_is = || (text.trim().to_owned(), bases(path));
        match (local(parent), name.as_str()) {
            ("item" | "entry", "guid" | "id") => {
                if let Some(item) = self.items.last_mut() {
                    item.id.get_or_insert_with(|| text.trim().to_owned());
                }
            }
            ("item", "link") if !text.trim().is_empty() => {
                if let Some(item) = self.items.last_mut() {
                    item.link.get_or_insert_with(text_is);
                }
            }
            ("channel", "link") if !text.trim().is_empty() => {
                self.link.get_or_insert_with(text_is);
            }
            ("item" | "entry", name) if CONTENT.contains(&local(name)) => {
                if let Some(item) = self.items.last_mut() {
                    let around = bases(path);
                    let found = references(text).into_iter();
                    item.references.extend(found.map(|found| (found, around.clone())));
                }
            }
            _ => {}
        }
    }

    /// The address that the document most likely has.
    pub fn address(&self) -> String {
        let http = |address: &String| address.starts_with("http");
        let page = self.link.as_ref().map(|(link, _)| link).filter(|link| http(link));
        let page = page.and_then(|page| Url::parse(page).ok()?.join("feed.xml").ok());
        let own = self.own.clone().filter(http).filter(|own| Url::parse(own).is_ok());
        own.or(page.map(Into::into)).unwrap_or_else(|| "https://publisher.example/feed".to_owned())
    }

    fn by_id(&self) -> HashMap<String, &Item> {
        let mut seen = HashSet::new();
        let mut twice = HashSet::new();
        let key =
            |item: &Item| item.id.clone().or(item.link.as_ref().map(|(link, _)| link.clone()));
        for id in self.items.iter().filter_map(key) {
            if !seen.insert(id.clone()) {
                twice.insert(id);
            }
        }
        let items = self.items.iter().filter_map(|item| Some((key(item)?, item)));
        items.filter(|(id, _)| !twice.contains(id)).collect()
    }

    /// Where a reference leads for FreshRSS, feedparser and newsboat, with the document at `address`.
    fn ways(&self, item: &Item, reference: &(String, Bases), address: &Url) -> [Option<Url>; 3] {
        let (value, around) = reference;
        let chain = |bases: &Bases, start: Url| {
            bases.iter().fold(start, |base, next| base.join(next).unwrap_or(base))
        };
        let channel = self
            .link
            .as_ref()
            .and_then(|(link, bases)| chain(bases, address.clone()).join(link).ok());
        let channel = channel.unwrap_or_else(|| address.clone());
        let link = item.link.as_ref().and_then(|(link, bases)| {
            let start = if bases.is_empty() { channel.clone() } else { address.clone() };
            chain(bases, start).join(link).ok()
        });
        let simple_pie = if around.is_empty() {
            link.unwrap_or(channel)
        } else {
            chain(around, address.clone())
        };
        let newsboat =
            around.last().map_or_else(|| Some(address.clone()), |base| Url::parse(base).ok());
        [
            simple_pie.join(value).ok(),
            chain(around, address.clone()).join(value).ok(),
            newsboat.and_then(|base| base.join(value).ok()),
        ]
    }
}

/// What came of a comparison of links.
#[derive(Debug, Default)]
pub struct Links {
    /// Items with references that need a base.
    pub items: usize,
    /// References that were looked at.
    pub references: usize,
    /// Those that readers resolve otherwise than each other without a gateway.
    pub ambiguous: usize,
    /// What differs, in words.
    pub differences: Vec<String>,
}

/// Compares where references of a publisher's document lead directly with where they lead in a view.
pub fn compare(direct: &Document, address: &str, view: &Document, own: &str) -> Links {
    let mut links = Links::default();
    let (at, here) = (Url::parse(address).unwrap(), Url::parse(own).unwrap());
    let views = view.by_id();
    for (id, item) in direct.by_id() {
        let Some(shown) = views.get(&id) else { continue };
        if shown.references.len() != item.references.len() {
            continue;
        }
        links.items += usize::from(!item.references.is_empty());
        let link = item.link.clone();
        let both = item.references.iter().zip(&shown.references);
        let both = both.map(|(a, b)| (a, b, false));
        let pair = link.as_ref().zip(shown.link.as_ref()).map(|(a, b)| (a, b, true));
        for (before, after, is_link) in both.chain(pair) {
            // An item's own link is no reason for its own base.
            let bare = Item::default();
            let (from, to) = if is_link { (&bare, &bare) } else { (item, *shown) };
            links.references += 1;
            let wanted = direct.ways(from, before, &at);
            let found = view.ways(to, after, &here);
            let is_fragment = before.0.starts_with('#');
            let agree = wanted.iter().all(|one| *one == wanted[0]);
            links.ambiguous += usize::from(!agree);
            for (reader, (wanted_here, found)) in
                ["FreshRSS", "feedparser", "newsboat"].iter().zip(wanted.iter().zip(&found))
            {
                // A fragment leads to the feed's file for the others, as it does directly.
                let passes = wanted_here == found
                    || is_fragment && *reader != "FreshRSS"
                    || !agree && !is_fragment && wanted.contains(found)
                    || wanted_here.is_none();
                if !passes {
                    let show =
                        |url: &Option<Url>| url.as_ref().map_or("nothing", Url::as_str).to_owned();
                    links.differences.push(format!(
                        "{reader}, {id}: {:?} leads to {} instead of {}",
                        before.0,
                        show(found),
                        show(wanted_here)
                    ));
                }
            }
        }
    }
    links
}

fn content_at(path: &[(String, Option<String>)]) -> Option<usize> {
    let at = path.iter().position(|(name, _)| matches!(local(name), "item" | "entry"))?;
    let (name, _) = path.get(at + 1)?;
    CONTENT.contains(&local(name)).then_some(at + 1)
}

fn bases(path: &[(String, Option<String>)]) -> Bases {
    path.iter().filter_map(|(_, base)| base.clone()).collect()
}

fn local(name: &str) -> &str {
    name.rsplit_once(':').map_or(name, |(_, local)| local)
}

fn unescaped(value: &str) -> String {
    let known = quick_xml::escape::unescape_with(value, |name| {
        quick_xml::escape::resolve_html5_entity(name)
    });
    known.map_or_else(|_| value.to_owned(), |text| text.into_owned())
}

fn attribute(tag: &BytesStart<'_>, name: &str) -> Option<String> {
    let mut all = tag.attributes();
    let all = all.with_checks(false).flatten();
    let mut found = all.filter(|attribute| attribute.key.0 == name);
    found.next().map(|attribute| unescaped(&attribute.value))
}

fn attributes(tag: &BytesStart<'_>) -> String {
    let mut all = tag.attributes();
    let all = all.with_checks(false).flatten();
    all.map(|a| format!(" {}=\"{}\"", a.key.0, unescaped(&a.value))).collect()
}

/// The references of HTML: `href` and `src` of its tags.
fn references(html: &str) -> Vec<String> {
    let mut found = Vec::new();
    for piece in html.split('<').skip(1) {
        if !piece.starts_with(|c: char| c.is_ascii_alphabetic()) {
            continue;
        }
        for name in [" href=", " src="] {
            let Some((_, rest)) = piece.split_once(name) else { continue };
            let Some(quote) = rest.chars().next().filter(|c| matches!(c, '"' | '\'')) else {
                continue;
            };
            let Some(value) = rest.split(quote).nth(1).filter(|_| rest.matches(quote).count() > 1)
            else {
                continue;
            };
            let value = unescaped(value.trim());
            if !value.is_empty() && !value.contains("://") && !value.contains(':') {
                found.push(value);
            }
        }
    }
    found
}
