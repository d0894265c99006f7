//! References in HTML, where they stand. What leads nowhere stays byte for byte.

use super::Base;
use std::borrow::Cow;

/// Attributes whose value is a reference, or several (`srcset`).
pub const ATTRIBUTES: &[&str] = &[
    "href",
    "src",
    "srcset",
    "poster",
    "cite",
    "action",
    "formaction",
    "longdesc",
    "background",
    "data",
    "usemap",
];
/// References by name that HTML reads without their semicolon, as far as addresses have them.
const UNENDED: [&str; 4] = ["amp", "gt", "lt", "quot"];
/// The longest reference to a character that is read, in bytes.
const NAME_LIMIT: usize = 40;
/// Elements whose content is no markup.
const RAW: [&str; 5] = ["script", "style", "textarea", "title", "xmp"];

/// HTML with its references absolute; `None` where nothing changes.
///
/// Reads each byte once: a tag or comment that does not end reaches to the end of the text, as the
/// tokenizer of HTML has it (HTML section 13.2.5).
pub fn absolute(html: &str, base: &Base) -> Option<String> {
    let mut out = String::new();
    // Up to where the text was copied, and where it is being read.
    let (mut copied, mut at) = (0, 0);
    while let Some(found) = html.get(at..).and_then(|rest| memchr::memchr(b'<', rest.as_bytes())) {
        let start = at + found + 1;
        let rest = html.get(start..).unwrap_or_default();
        if rest.starts_with("!--") {
            at = start + rest.find("-->").map_or(rest.len(), |end| end + "-->".len());
            continue;
        }
        if !rest.starts_with(|c: char| c.is_ascii_alphabetic()) {
            at = start;
            continue;
        }
        let length = rest
            .find(|c: char| c.is_ascii_whitespace() || matches!(c, '/' | '>'))
            .unwrap_or(rest.len());
        let name = rest.get(..length).unwrap_or_default();
        let mut tag = Tag { html, at: start + length };
        while let Some(attribute) = tag.next() {
            let Some(value) = new_value(html, &attribute, base) else { continue };
            out.push_str(html.get(copied..attribute.start).unwrap_or_default());
            push_quoted(&mut out, attribute.quote, &value);
            copied = attribute.end;
        }
        at = tag.at;
        if RAW.iter().any(|raw| raw.eq_ignore_ascii_case(name)) {
            at += end_of_raw(html.get(at..).unwrap_or_default(), name);
        }
    }
    if copied == 0 {
        return None;
    }
    out.push_str(html.get(copied..).unwrap_or_default());
    Some(out)
}

/// An attribute: where its value stands, and the quote that is written there.
struct Written<'a> {
    name: &'a str,
    start: usize,
    end: usize,
    quote: Option<char>,
}

/// The attributes of a tag, read from behind its name.
struct Tag<'a> {
    html: &'a str,
    at: usize,
}

impl<'a> Tag<'a> {
    fn rest(&self) -> &'a str {
        self.html.get(self.at..).unwrap_or_default()
    }

    fn skip(&mut self, what: impl Fn(char) -> bool) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start_matches(what).len();
    }

    /// The next attribute that has a value; `None` behind the tag.
    fn next(&mut self) -> Option<Written<'a>> {
        loop {
            self.skip(|c| c.is_ascii_whitespace() || c == '/');
            let rest = self.rest();
            if rest.is_empty() {
                return None;
            }
            if rest.starts_with('>') {
                self.at += 1;
                return None;
            }
            // A '=' where a name begins is part of that name.
            let name = rest
                .char_indices()
                .find(|(at, c)| {
                    c.is_ascii_whitespace() || matches!(c, '/' | '>') || (*c == '=' && *at > 0)
                })
                .map_or(rest, |(at, _)| rest.get(..at).unwrap_or_default());
            self.at += name.len();
            self.skip(|c| c.is_ascii_whitespace());
            if !self.rest().starts_with('=') {
                continue;
            }
            self.at += 1;
            self.skip(|c| c.is_ascii_whitespace());
            let quote = self.rest().chars().next().filter(|c| matches!(c, '"' | '\''));
            self.at += usize::from(quote.is_some());
            let rest = self.rest();
            let length = match quote {
                Some(quote) => rest.find(quote),
                None => rest.find(|c: char| c.is_ascii_whitespace() || c == '>'),
            };
            let (start, end) = (self.at, self.at + length.unwrap_or(rest.len()));
            self.at = end + usize::from(quote.is_some() && length.is_some());
            return Some(Written { name, start, end, quote });
        }
    }
}

/// The value, its references to characters resolved, where it leads elsewhere.
fn new_value(html: &str, attribute: &Written<'_>, base: &Base) -> Option<String> {
    let known = ATTRIBUTES.iter().find(|known| known.eq_ignore_ascii_case(attribute.name))?;
    let value = decoded(html.get(attribute.start..attribute.end)?);
    if *known == "srcset" { absolute_candidates(&value, base) } else { base.resolve(&value) }
}

/// The value of an attribute with its references to characters resolved (HTML section 13.2.5.72).
/// What is none stands as it is.
pub fn decoded(value: &str) -> Cow<'_, str> {
    if !value.contains('&') {
        return Cow::Borrowed(value);
    }
    let mut out = String::with_capacity(value.len());
    let mut rest = value;
    while let Some((before, behind)) = rest.split_once('&') {
        out.push_str(before);
        rest = behind;
        match character(behind) {
            Some((text, length)) => {
                out.push_str(&text);
                rest = behind.get(length..).unwrap_or_default();
            }
            None => out.push('&'),
        }
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// What stands for the reference behind whose `&` this text begins, and how long the reference is.
fn character(text: &str) -> Option<(Cow<'static, str>, usize)> {
    let run = |from: usize, is_part: fn(&u8) -> bool| {
        let bytes = text.as_bytes().get(from..).unwrap_or_default();
        from + bytes.iter().take(NAME_LIMIT).take_while(|byte| is_part(byte)).count()
    };
    let ended = |end: usize| text.as_bytes().get(end) == Some(&b';');
    if text.starts_with('#') {
        let (from, radix) =
            if text.starts_with("#x") || text.starts_with("#X") { (2, 16) } else { (1, 10) };
        let end = if radix == 16 {
            run(from, u8::is_ascii_hexdigit)
        } else {
            run(from, u8::is_ascii_digit)
        };
        let digits = text.get(from..end).filter(|digits| !digits.is_empty())?;
        let number = u32::from_str_radix(digits, radix).ok().filter(|number| *number > 0);
        let c = number.and_then(char::from_u32).unwrap_or(char::REPLACEMENT_CHARACTER);
        return Some((c.to_string().into(), end + usize::from(ended(end))));
    }
    let end = run(0, u8::is_ascii_alphanumeric);
    let name = text.get(..end)?;
    let is_one = ended(end)
        || UNENDED.contains(&name) && text.as_bytes().get(end).is_none_or(|b| *b != b'=');
    let found = crate::xml::reference::named(name).filter(|_| is_one)?;
    Some((found.into(), end + usize::from(ended(end))))
}

/// Writes a value, escaped, between the quotes that stand there, or between new ones.
fn push_quoted(out: &mut String, quote: Option<char>, value: &str) {
    let end = quote.unwrap_or('"');
    if quote.is_none() {
        out.push(end);
    }
    for c in value.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '"' if end == '"' => out.push_str("&quot;"),
            '\'' if end == '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    if quote.is_none() {
        out.push(end);
    }
}

/// The candidates of a `srcset` with their addresses absolute (HTML section 4.8.4.2.1); `None` where
/// nothing changes.
pub fn absolute_candidates(srcset: &str, base: &Base) -> Option<String> {
    let (mut out, mut changed, mut rest) = (String::new(), false, srcset);
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == ',');
        if rest.is_empty() {
            return changed.then_some(out);
        }
        let length = rest.find(|c: char| c.is_ascii_whitespace()).unwrap_or(rest.len());
        let (whole, behind) = rest.split_at(length);
        let address = whole.trim_end_matches(',');
        let (descriptor, next) = if address.len() < whole.len() {
            ("", behind)
        } else {
            behind.split_once(',').unwrap_or((behind, ""))
        };
        if !out.is_empty() {
            out.push_str(", ");
        }
        let absolute = base.resolve(address);
        changed |= absolute.is_some();
        out.push_str(absolute.as_deref().unwrap_or(address));
        if !descriptor.trim().is_empty() {
            out.push(' ');
            out.push_str(descriptor.trim());
        }
        rest = next;
    }
}

/// How long the content of an element is whose content is no markup.
fn end_of_raw(rest: &str, name: &str) -> usize {
    let mut at = 0;
    while let Some(found) =
        rest.get(at..).and_then(|rest| memchr::memmem::find(rest.as_bytes(), b"</"))
    {
        at += found;
        let behind = rest.get(at + 2..).unwrap_or_default();
        if behind.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name)) {
            return at;
        }
        at += 2;
    }
    rest.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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
            "<",
            "<a",
            "<a href",
            "<a href=",
            "<a href=\"",
            "<!--",
            "<img src='data:,x'>",
            "text",
        ] {
            assert_eq!(absolute(same, &Base::new("https://a.example/")), None, "{same}");
        }
    }

    #[test]
    fn references_to_characters_are_read_as_html_reads_them() {
        for (written, read) in [
            ("a&amp;b&lt;&#65;&#x42;&#X43&#68", "a&b<ABCD"),
            ("?a&amp=1&ampb&amp", "?a&amp=1&ampb&"),
            ("&nosuch; &; & &# &#x; &#0; &copy", "&nosuch; &; & &# &#x; \u{FFFD} &copy"),
            ("&#99999999999999999999999\u{e9}&", "\u{FFFD}\u{e9}&"),
        ] {
            assert_eq!(decoded(written), read, "{written}");
        }
    }

    #[test]
    fn many_tags_that_do_not_end_are_read_once() {
        for piece in ["<a ", "<a href=", "<!--", "<script>", "<a href='", "<img srcset=','"] {
            let hostile = piece.repeat(200_000);
            absolute(&hostile, &Base::new("https://a.example/"));
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
