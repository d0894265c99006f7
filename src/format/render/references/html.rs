//! References in HTML, where they stand. What leads nowhere stays byte for byte.

use super::Base;
use crate::parse::references::{CANDIDATES, HTML_ATTRIBUTES, candidates};
use tidegate_core::xml::cut;
use tidegate_core::xml::html::{
    HtmlAttribute, Piece, Pieces, TagRule, attributes, decoded_value, push_quoted, tag_name,
};

/// Elements whose content is no markup.
const RAW: [&str; 5] = ["script", "style", "textarea", "title", "xmp"];

/// HTML with its references absolute; `None` where nothing changes.
pub fn absolute(html: &str, base: &Base) -> Option<String> {
    let mut out = String::new();
    // Up to where the text was copied.
    let mut copied = 0;
    let mut pieces = Pieces::new(html, TagRule::All);
    while let Some(piece) = pieces.next() {
        let Piece::Tag(tag) = piece else { continue };
        let name = tag_name(tag);
        if !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
            continue;
        }
        let start = pieces.position().saturating_sub(tag.len() + 1);
        for attribute in attributes(tag) {
            let Some(value) = new_value(tag, &attribute, base) else { continue };
            out.push_str(cut(html, copied..start + attribute.value.start));
            push_quoted(&mut out, attribute.quote, &value);
            copied = start + attribute.value.end;
        }
        if RAW.iter().any(|raw| raw.eq_ignore_ascii_case(name)) {
            pieces.skip_content(name);
        }
    }
    if copied == 0 {
        return None;
    }
    out.push_str(cut(html, copied..html.len()));
    Some(out)
}

/// The value, its references to characters resolved, where it leads elsewhere.
fn new_value(tag: &str, attribute: &HtmlAttribute<'_>, base: &Base) -> Option<String> {
    let known = HTML_ATTRIBUTES.iter().find(|known| known.eq_ignore_ascii_case(attribute.name))?;
    let value = decoded_value(cut(tag, attribute.value.clone()));
    if *known == CANDIDATES { absolute_candidates(&value, base) } else { base.resolve(&value) }
}

/// The candidates of a `srcset` with their addresses absolute; `None` where nothing changes.
pub fn absolute_candidates(srcset: &str, base: &Base) -> Option<String> {
    let (mut out, mut is_changed) = (String::new(), false);
    for (address, descriptor) in candidates(srcset) {
        if !out.is_empty() {
            out.push_str(", ");
        }
        let absolute = base.resolve(address);
        is_changed |= absolute.is_some();
        out.push_str(absolute.as_deref().unwrap_or(address));
        if !descriptor.is_empty() {
            out.push(' ');
            out.push_str(descriptor);
        }
    }
    is_changed.then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::references::References;
    use proptest::prelude::*;
    use tidegate_core::xml::doc::Doc;

    fn made(html: &str) -> String {
        absolute(html, &Base::new("https://a.example/b/feed")).unwrap_or_else(|| html.to_owned())
    }

    #[test]
    fn references_are_resolved_where_they_stand() {
        for (old, new) in [
            ("<a href=\"c\">x</a>", "<a href=\"https://a.example/b/c\">x</a>"),
            ("<A HREF = '/c?x=1&amp;y'>", "<A HREF = 'https://a.example/c?x=1&amp;y'>"),
            ("<img src=c/d.png alt=x>", "<img src=\"https://a.example/b/c/d.png\" alt=x>"),
            ("<img/src='c'/>", "<img/src='https://a.example/b/c'/>"),
            (
                "<a href='&#46;&#x2F;c?x=1&y=&quot;&amp;z&#39;'>",
                "<a href='https://a.example/b/c?x=1&amp;y=%22&amp;z%27'>",
            ),
            (
                "<video poster=../p src=//o.example/v>",
                "<video poster=\"https://a.example/p\" src=\"https://o.example/v\">",
            ),
            (
                "<img srcset='a.png 1x,b.png 2x, https://o/c 3x'>",
                "<img srcset='https://a.example/b/a.png 1x, https://a.example/b/b.png 2x, https://o/c 3x'>",
            ),
            ("< a href=c> <b <a href=c>", "< a href=c> <b <a href=\"https://a.example/b/c\">"),
            (
                "<script>'<a href=c>'</SCRIPT><a href=d>",
                "<script>'<a href=c>'</SCRIPT><a href=\"https://a.example/b/d\">",
            ),
        ] {
            assert_eq!(made(old), new);
        }
    }

    #[test]
    fn what_leads_nowhere_else_stays_as_it_is() {
        for same in [
            "<a href='#n'>",
            "<a href>",
            "<a href=''>",
            "<a href='mailto:x@y'>",
            "<a href='&#109;&#97;&#105;lto:x@y'>",
            "<a href='&#109&#x61&#X69;lto&#58x@y'>",
            "<a href='mailto&#58;x@y'><a href='mailto&colon;x@y'>",
            "<a href='java&#10;script:x'>",
            "<a href='&#35;fn1'><a href=' &num;fn1'>",
            "<img srcset='https&#58;//o.example/a 1x'>",
            "<p title=c>",
            "<!-- <a href=c> -->",
            "<a href=\"https://x/ü?a&b\">",
            "a < b && c",
            "<img src='data:,x'>",
            "text",
        ] {
            assert_eq!(absolute(same, &Base::new("https://a.example/")), None, "{same}");
        }
        assert_eq!(absolute("<a href=c>", &Base::new("no address")), None);
    }

    #[test]
    fn many_tags_that_do_not_end_are_read_once() {
        let mut texts = ["<a ", "<a href=", "<!--", "<script>", "<a href='", "<img srcset=','"]
            .map(|piece| piece.repeat(200_000))
            .to_vec();
        texts.push(format!("<img srcset='{}'>", "a 1x,".repeat(200_000)));
        for hostile in texts {
            absolute(&hostile, &Base::new("https://a.example/"));
            let item = format!("<item><description><![CDATA[{hostile}]]></description></item>");
            References::of(Doc::read_whole(&item).unwrap().root());
        }
    }

    proptest! {
        #[test]
        fn nothing_is_lost_and_twice_is_once(html in "([<>='\"/ a-c#!-]|href|src|srcset|<a |<img ){0,60}") {
            let once = made(&html);
            prop_assert_eq!(made(&once), once);
        }
    }
}
