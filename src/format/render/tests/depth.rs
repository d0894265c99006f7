//! However deep markup is nested, an entry takes a small multiple of its size.

use super::build::Feed;
use crate::memory;
use crate::render::{Container, ViewKind};
use proptest::prelude::*;
use tidegate_core::model::Format;

/// The most bytes that are taken for each byte of an entry, and for whatever else.
const MULTIPLE: usize = 64;
const SPARE: usize = 8 << 20;
/// The most elements that a document may have inside each other (`DocLimits::depth`), without the four around
/// them here and the one within.
const DEEPEST: usize = 256 - 5;

fn document(format: Format, content: &str) -> String {
    let (space, attributes) = match format {
        Format::Atom03 => ("http://purl.org/atom/ns#", "type='application/xhtml+xml' mode='xml'"),
        _ => ("http://www.w3.org/2005/Atom", "type='xhtml'"),
    };
    format!(
        "<feed xmlns='{space}'><title>t</title><id>urn:f</id><updated>2026-11-01T00:00:00Z</updated>\
         <entry><id>urn:e</id><title>e</title><updated>2026-11-01T00:00:00Z</updated>\
         <content {attributes}><div xmlns='http://www.w3.org/1999/xhtml'>{content}</div></content>\
         </entry></feed>"
    )
}

#[cfg(target_os = "linux")]
#[test]
fn nested_markup_takes_a_small_multiple_of_its_size() {
    if !memory::is_alone("render::tests::depth::nested_markup_takes_a_small_multiple_of_its_size") {
        return;
    }
    let formats = vec![Format::Atom10, Format::Atom03];
    let containers =
        vec![Container::Atom, Container::Rss, Container::Pox, Container::Json, Container::JsonFeed];
    let ways = (prop::sample::select(formats), prop::sample::select(containers));
    proptest!(ProptestConfig::with_cases(32), |((format, container) in ways, depth in 0..=DEEPEST, width in 1..5_000_usize)| {
        let (open, close) = ("<b>".repeat(depth), "</b>".repeat(depth));
        let mut feed = Feed::read(&document(format, &format!("{open}{}{close}", "<i>§</i>".repeat(width))));
        feed.container = Some(container);
        let size = feed.items[0].shared.winner.data.xml.len();
        let (text, taken) = memory::peak(|| feed.render_unchecked(ViewKind::Reader));
        prop_assert!(text.matches('§').count() >= width, "text is lost");
        prop_assert!(taken < SPARE + MULTIPLE * size, "{taken} bytes for {size}");
    });
}

/// What is made absolute grows with each reference.
#[test]
fn a_long_base_before_many_references_has_an_end() {
    let base = format!("https://pub.example/{}/", "b".repeat(4_000));
    let division = "<div xmlns='http://www.w3.org/1999/xhtml'>";
    let inline = document(Format::Atom10, &"<a href='x'/>".repeat(20_000));
    let escaped = document(Format::Atom10, &"&lt;a href=x>".repeat(20_000));
    let escaped = escaped.replace(division, "").replace("</div>", "").replace("xhtml", "html");
    for text in [inline, escaped] {
        let based = text.replace("<content", &format!("<content xml:base='{base}'"));
        let mut feed = Feed::new(Format::Atom10, &based);
        feed.container = Some(Container::Rss);
        let text = feed.render_unchecked(ViewKind::Reader);
        assert!(text.contains(&format!("{base}x")) && text.len() < 20 << 20, "{}", text.len());
    }
}
