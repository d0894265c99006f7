//! Real subscription lists: every address that another lenient way of looking finds is found.
//!
//! Runs over the folder `opml/` of the corpus that `TIDEGATE_CORPUS` names, where it is set.

use crate::support::prelude::*;
use crate::support::{self, corpus};
use regex::Regex;
use tidegate_format::parse::opml::{OutlineKind, OutlineList, read};
use tidegate_format::parse::{Limits, characters};
use tidegate_format::render::{self, Addresses, Dialect, Page, ViewKind};

/// The fewest lists, and the fewest of them that are ill-formed.
const LISTS_WANTED: usize = 48;
const ILL_FORMED_WANTED: usize = 14;

/// The addresses as one finds them who knows nothing of outlines, folders or tags: comments are cut out, then every
/// attribute xmlUrl is one, in whatever case and quotes.
fn addresses(text: &str) -> Vec<String> {
    let text = Regex::new("(?s)<!--.*?-->").unwrap().replace_all(text, "");
    let attribute = r#"(?i)\bxmlurl\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s>"']+))"#;
    let found = Regex::new(attribute).unwrap();
    let found = found.captures_iter(&text).map(|found| {
        let value = found.iter().skip(1).flatten().next().unwrap().as_str();
        [("&quot;", "\""), ("&lt;", "<"), ("&gt;", ">"), ("&#38;", "&"), ("&amp;", "&")]
            .into_iter()
            .fold(value.to_owned(), |value, (reference, is)| value.replace(reference, is))
            .trim()
            .to_owned()
    });
    found.filter(|address| !address.is_empty()).collect()
}

#[test]
fn every_address_is_found() {
    let Some(lists) = corpus("opml") else { return };
    assert!(lists.len() >= LISTS_WANTED);
    let mut ill_formed = 0;
    for path in &lists {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let bytes = std::fs::read(path).unwrap();
        let decoded = characters(&bytes, None, &Limits::default()).unwrap();
        let list = read(&decoded.text).unwrap();
        let mut found: Vec<String> = Vec::new();
        for outline in &list.outlines {
            if let OutlineKind::Feed(address) = outline.kind() {
                found.push(address.to_owned());
            }
            assert!(outline.line >= 1 && outline.line <= decoded.text.lines().count());
        }
        assert_eq!(found, addresses(&decoded.text), "{name}");
        ill_formed += usize::from(!list.problems.is_empty());
        for problem in &list.problems {
            assert!(problem.line >= 1 && !problem.message.is_empty());
        }
    }
    assert!(ill_formed >= ILL_FORMED_WANTED, "{ill_formed} lists have problems");
}

/// What a list says of each outline, in their order: how deep it stands, and its attributes.
fn said(list: &OutlineList) -> Vec<(usize, BTreeMap<String, String>)> {
    // What is no name in XML cannot be written, and is told as a warning.
    let is_name = |name: &str| name.starts_with(|c: char| c.is_alphabetic() || c == '_');
    let plain =
        |name: &str| is_name(name) && !name.contains(':') && !name.eq_ignore_ascii_case("text");
    let outlines = list.outlines.iter().map(|outline| {
        let own = outline.attributes.iter().filter(|(name, _)| plain(name));
        let mut own: BTreeMap<String, String> = own
            .map(|(name, value)| {
                // The address of the site is written as OPML 2.0 writes it.
                let is_site = name.eq_ignore_ascii_case("htmlUrl");
                let name = if is_site { "htmlUrl" } else { name };
                let value = if is_site { value.trim() } else { value };
                // Control characters cannot stand in XML.
                let value = value.chars().filter(|c| !c.is_control() || c.is_whitespace());
                (name.to_owned(), value.collect())
            })
            .collect();
        own.insert("text".to_owned(), outline.text().unwrap_or_default().to_owned());
        (list.folder(outline).len(), own)
    });
    outlines.collect()
}

/// Every list, as an upstream, is served as the list that it is, and read again it is the same.
#[tokio::test]
async fn every_list_comes_through() {
    let Some(lists) = corpus("opml") else { return };
    let addresses = Addresses {
        upstream: "https://publisher.example/list.opml".to_owned(),
        ..support::addresses("https://gate.example/feeds/news")
    };
    for path in &lists {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let bytes = std::fs::read(path).unwrap();
        let text = characters(&bytes, None, &Limits::default()).unwrap().text.into_owned();
        let own = read(&text).unwrap();
        if own.outlines.is_empty() {
            continue;
        }
        let mut gate = Gate::new().await;
        gate.take(&text).await;
        let view = gate.store.view(&gate.feed, Select::Current).await.unwrap().unwrap();
        let told = render::document(&Page {
            kind: ViewKind::Reader,
            dialect: Dialect::Sse091,
            ..support::page(&view, &addresses)
        });
        let again = read(&told).unwrap();
        assert!(again.problems.is_empty() && again.is_whole, "{name}: {:?}", again.problems);
        let (own, again) = (said(&own), said(&again));
        for (at, (one, two)) in own.iter().zip(&again).enumerate() {
            assert_eq!(one, two, "{name}: the outline {at}");
        }
        assert_eq!(own.len(), again.len(), "{name}");
    }
}
