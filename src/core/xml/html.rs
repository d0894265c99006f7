//! HTML as readers take it apart: text, references, tags and comments (HTML, sections 13.2.5.6 to
//! 13.2.5.52, as far as feeds need them). The one scanner for whatever is read of foreign HTML.
//!
//! Each byte is looked at a bounded number of times ([`LOOKS_LIMIT`]), whatever the text is: what
//! was looked for up to the end of the text and not found is not looked for again.

mod attributes;

use super::reference::{self, REFERENCE_LIMIT};
use super::text::{collapsed, cut, is_char};
pub use attributes::{
    HtmlAttribute, attribute, attributes, attributes_from, decoded_value, push_quoted, tag_name,
};
use std::borrow::Cow;

/// How often a byte is looked at, at most, on average over a text.
pub const LOOKS_LIMIT: usize = 12;

/// A piece of HTML.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece<'a> {
    /// Characters that stand for themselves.
    Text(&'a str),
    /// What stands between the `&` and the `;` of something with the form of a reference.
    Reference(&'a str),
    /// What stands between the `<` and the `>` of a tag; of an end tag with its `/`.
    Tag(&'a str),
    /// A comment, which without an end goes on to the end of the text; or a delimiter of a CDATA
    /// section, which somebody escaped: what stands in it is text and markup like any other.
    Comment,
}

/// What is taken for a tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TagRule {
    /// Whatever HTML takes for one.
    #[default]
    All,
    /// The tags of well-known elements and whole comments alone, in a text that does not say
    /// whether it is HTML: `Vec<T>` in a title is no tag.
    Known,
}

/// What a CDATA section begins with, and what ends it.
pub(super) const SECTION: &str = "<![CDATA[";
const SECTION_END: &[u8] = b"]]>";

/// The elements that [`TagRule::Known`] knows.
const KNOWN: &[&str] = &[
    "a", "abbr", "b", "big", "br", "cite", "code", "del", "div", "em", "font", "h1", "h2", "h3",
    "i", "img", "ins", "kbd", "li", "mark", "nobr", "p", "pre", "q", "s", "small", "span",
    "strike", "strong", "sub", "sup", "tt", "u", "ul", "wbr",
];

/// The pieces of a text, in order. Together they are the whole text but for what delimits them.
#[derive(Debug, Default)]
pub struct Pieces<'a> {
    text: &'a str,
    tags: TagRule,
    /// Where the next piece begins.
    at: usize,
    /// Whether no `>` stands at `at` or later.
    is_out_of_ends: bool,
    /// Whether no `-->` stands at `at` or later.
    is_out_of_comments: bool,
    /// Where the CDATA section ends that was begun and not reached the end of.
    section_end: Option<usize>,
    /// Whether no `]]>` stands at `at` or later.
    is_out_of_sections: bool,
    /// Of each byte, once there is one: whether it is a quote that opens a value from which no tag's end is
    /// reached.
    hopeless: Vec<bool>,
    looked: usize,
}

impl<'a> Pieces<'a> {
    /// The pieces of `text`.
    pub fn new(text: &'a str, tags: TagRule) -> Self {
        Self { text, tags, ..Self::default() }
    }

    /// Passes over everything up to the end tag of the element `name`; to the end of the text where
    /// it has none.
    pub fn skip_content(&mut self, name: &str) {
        let rest = self.rest(self.at).as_bytes();
        let is_end = |at: &usize| {
            let tag = rest.get(at + 1..).and_then(|rest| rest.strip_prefix(b"/"));
            let spelled = tag.and_then(|tag| tag.get(..name.len()));
            spelled.is_some_and(|spelled| spelled.eq_ignore_ascii_case(name.as_bytes()))
        };
        let skipped = memchr::memchr_iter(b'<', rest).find(is_end).unwrap_or(rest.len());
        self.looked += skipped;
        self.at += skipped;
    }

    /// Where the next piece begins.
    pub const fn position(&self) -> usize {
        self.at
    }

    /// How many bytes were looked at so far, each as often as it was.
    pub const fn looked(&self) -> usize {
        self.looked
    }

    fn rest(&self, at: usize) -> &'a str {
        cut(self.text, at..self.text.len())
    }

    /// Finds something at `from` or later.
    fn seek(&mut self, from: usize, find: impl Fn(&[u8]) -> Option<usize>) -> Option<usize> {
        let rest = self.text.as_bytes().get(from..).unwrap_or_default();
        let found = find(rest);
        self.looked += found.map_or(rest.len(), |at| at + 1);
        found.map(|at| from + at)
    }

    /// Everything up to `end` as a text.
    fn text_to(&mut self, end: usize) -> Piece<'a> {
        let start = std::mem::replace(&mut self.at, end);
        Piece::Text(cut(self.text, start..end))
    }

    /// What begins with the `&` at which the scan stands.
    fn reference(&mut self) -> Piece<'a> {
        let window = self.rest(self.at + 1).as_bytes();
        let part = |byte: &&u8| byte.is_ascii_alphanumeric() || **byte == b'#';
        let length = window.iter().take(REFERENCE_LIMIT).take_while(part).count();
        self.looked += length + 1;
        if length == 0 || window.get(length) != Some(&b';') {
            return self.text_to(self.at + 1);
        }
        let name = self.at + 1..self.at + 1 + length;
        self.at = name.end + 1;
        Piece::Reference(cut(self.text, name))
    }

    /// What begins with the `<` at which the scan stands.
    fn markup(&mut self) -> Piece<'a> {
        let rest = self.rest(self.at);
        if rest.starts_with("<!--") {
            return self.comment();
        }
        if rest.starts_with(SECTION) && self.begins_section() {
            return Piece::Comment;
        }
        let end = if self.begins_tag(rest) { self.tag_end(self.at) } else { None };
        let Some(end) = end else { return self.text_to(self.at + 1) };
        let inside = self.at + 1..end;
        self.at = end + 1;
        Piece::Tag(cut(self.text, inside))
    }

    /// Passes over the beginning of a CDATA section that has an end.
    fn begins_section(&mut self) -> bool {
        if self.is_out_of_sections || self.section_end.is_some() {
            return false;
        }
        self.section_end = self.seek(self.at, |rest| memchr::memmem::find(rest, SECTION_END));
        self.is_out_of_sections = self.section_end.is_none();
        if !self.is_out_of_sections {
            self.at += SECTION.len();
        }
        !self.is_out_of_sections
    }

    fn comment(&mut self) -> Piece<'a> {
        let end = match self.is_out_of_comments {
            true => None,
            false => self.seek(self.at, |rest| memchr::memmem::find(rest, b"-->")),
        };
        self.is_out_of_comments = end.is_none();
        match (end, self.tags) {
            (Some(end), _) => self.at = end + 3,
            (None, TagRule::All) => self.at = self.text.len(),
            // It may be a text that tells of comments.
            (None, TagRule::Known) => return self.text_to(self.at + 1),
        }
        Piece::Comment
    }

    /// Whether a text that begins with `<` begins like a tag.
    fn begins_tag(&mut self, rest: &str) -> bool {
        let inside = rest.get(1..).unwrap_or_default();
        match self.tags {
            TagRule::All => inside
                .starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '/' | '!' | '?')),
            TagRule::Known => {
                let inside = inside.strip_prefix('/').unwrap_or(inside);
                let longest = KNOWN.iter().map(|name| name.len()).max().unwrap_or_default();
                let bytes = inside.bytes().take(longest + 1);
                let length = bytes.take_while(u8::is_ascii_alphanumeric).count();
                self.looked += length;
                let name = inside.get(..length).unwrap_or_default();
                // `<a@example.org>` is an address.
                let end = inside.as_bytes().get(length);
                end.is_none_or(|end| end.is_ascii_whitespace() || matches!(end, b'/' | b'>'))
                    && KNOWN.iter().any(|known| known.eq_ignore_ascii_case(name))
            }
        }
    }

    /// Where the tag that begins at `start` ends: its `>` outside of quotes; else its first `>`.
    fn tag_end(&mut self, start: usize) -> Option<usize> {
        if self.is_out_of_ends {
            return None;
        }
        let Some(first) = self.seek(start, |rest| memchr::memchr(b'>', rest)) else {
            self.is_out_of_ends = true;
            return None;
        };
        let end = self.end_outside_quotes(start, false);
        if end.is_none() {
            self.end_outside_quotes(start, true);
        }
        Some(end.unwrap_or(first))
    }

    /// Whether the quote at `at` opens the value of an attribute: others are part of a name or a
    /// value without quotes (section 13.2.5.36). What stands between it and the quote before is no
    /// other's.
    fn opens_value(&mut self, at: usize) -> bool {
        let before = self.text.as_bytes().get(..at).unwrap_or_default();
        let trimmed = before.trim_ascii_end();
        self.looked += before.len() - trimmed.len();
        trimmed.last() == Some(&b'=')
    }

    /// The first `>` outside of quotes. With `mark` the quotes on the way are marked as those from
    /// which there is none: whatever comes by one of them later fails without another look. A quote
    /// is on such a way once, and what lies between it and the next on the way is no other's: so
    /// the looks of all of them together are a few for each byte.
    fn end_outside_quotes(&mut self, start: usize, mark: bool) -> Option<usize> {
        let mut from = start;
        loop {
            let at = self.seek(from, |rest| memchr::memchr3(b'>', b'"', b'\'', rest))?;
            let quote = *self.text.as_bytes().get(at)?;
            if quote == b'>' {
                return Some(at);
            }
            if !self.opens_value(at) {
                from = at + 1;
                continue;
            }
            if self.hopeless.get(at) == Some(&true) {
                return None;
            }
            if mark {
                self.hopeless.resize(self.text.len(), false);
                self.hopeless.get_mut(at).into_iter().for_each(|known| *known = true);
            }
            from = self.seek(at + 1, |rest| memchr::memchr(quote, rest))? + 1;
        }
    }
}

impl<'a> Iterator for Pieces<'a> {
    type Item = Piece<'a>;

    fn next(&mut self) -> Option<Piece<'a>> {
        if self.at >= self.text.len() {
            return None;
        }
        self.section_end = self.section_end.filter(|end| *end >= self.at);
        if self.section_end == Some(self.at) {
            self.section_end = None;
            self.at += SECTION_END.len();
            return Some(Piece::Comment);
        }
        let found = self.seek(self.at, |rest| memchr::memchr2(b'<', b'&', rest));
        let end = self.section_end.filter(|end| found.is_none_or(|found| *end < found));
        match end.or(found) {
            Some(at) if end.is_some() => Some(self.text_to(at)),
            Some(at) if at > self.at => Some(self.text_to(at)),
            Some(at) if self.text.as_bytes().get(at) == Some(&b'&') => Some(self.reference()),
            Some(_) => Some(self.markup()),
            None => Some(self.text_to(self.text.len())),
        }
    }
}

/// The plain text of HTML: tags out, references resolved, white space collapsed.
pub fn plain_text(html: &str) -> String {
    plain(html, TagRule::All)
}

/// The same of a text that does not say whether it is HTML: only the tags of well-known elements
/// are taken out.
pub fn plain_text_if_html(text: &str) -> String {
    plain(text, TagRule::Known)
}

fn plain(html: &str, tags: TagRule) -> String {
    let mut out = String::with_capacity(html.len());
    for piece in Pieces::new(html, tags) {
        match piece {
            Piece::Text(text) => out.push_str(text),
            Piece::Reference(name) => match reference::html(name) {
                Some(text) => out.extend(text.chars().filter(|c| is_char(*c))),
                None => out.extend(["&", name, ";"]),
            },
            Piece::Tag(_) | Piece::Comment => {}
        }
    }
    collapsed(Cow::Owned(out)).into_owned()
}

/// A text that is one CDATA section, which somebody escaped, without its delimiters; others as they
/// are.
pub fn without_section(text: &str) -> &str {
    let inside = text.trim().strip_prefix(SECTION).and_then(|rest| rest.strip_suffix("]]>"));
    inside.unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Vec<Piece<'_>> {
        Pieces::new(text, TagRule::All).collect()
    }

    #[test]
    fn a_text_is_taken_apart() {
        use Piece::{Comment, Reference, Tag, Text};
        let text = [Text("a"), Tag("b x='>'"), Text("c"), Reference("amp"), Text("d "), Text("&")];
        let rest = [Text(" e"), Comment, Text("<"), Text(" f"), Tag("/b")];
        let read = all("a<b x='>'>c&amp;d & e<!-- > -->< f</b>");
        assert_eq!(read, [&text[..], &rest].concat());
        assert_eq!(all("<a title=\"5\" tall\">b"), [Tag("a title=\"5\" tall\""), Text("b")]);
        assert_eq!(all("<a b=c\"d>e\">f"), [Tag("a b=c\"d"), Text("e\">f")]);
        assert_eq!(all("<a it's>b<c d = 'e>'>"), [Tag("a it's"), Text("b"), Tag("c d = 'e>'")]);
        assert_eq!(all("<a"), [Text("<"), Text("a")]);
        assert_eq!(all("<!-- a"), [Comment]);
        let known: Vec<Piece<'_>> = Pieces::new("Vec<T> <!-- <br>", TagRule::Known).collect();
        let texts = ["Vec", "<", "T> ", "<", "!-- "].map(Text);
        assert_eq!(known, [&texts[..], &[Tag("br")]].concat());
    }

    #[test]
    fn what_is_not_shown_is_skipped_in_any_spelling() {
        let mut pieces = Pieces::new("<script>a < b</SCRIPT>c", TagRule::All);
        assert_eq!(pieces.next(), Some(Piece::Tag("script")));
        pieces.skip_content("script");
        assert_eq!(pieces.next(), Some(Piece::Tag("/SCRIPT")));
        pieces.skip_content("script");
        assert_eq!(pieces.next(), None);
    }

    #[test]
    fn html_becomes_plain_text() {
        assert_eq!(plain_text("<b>A</b> &amp; B&nbsp;<br/>C"), "A & B\u{A0}C");
        assert_eq!(plain_text_if_html("Vec<T> & <em>x</em> &lt;y"), "Vec<T> & x <y");
        assert_eq!(plain_text("1 < 2 &unknown; &"), "1 < 2 &unknown; &");
        assert_eq!(
            plain_text("it&#146;s &#x93;&#0;&#xD800;"),
            "it\u{2019}s \u{201C}\u{FFFD}\u{FFFD}"
        );
        assert_eq!(plain_text_if_html("A <a@b.example>"), "A <a@b.example>");
        assert_eq!(plain_text_if_html("a<!-- no -->b"), "ab");
        assert_eq!(plain_text_if_html("a<!-- a > b -->b"), "ab");
        for plain in [plain_text, plain_text_if_html] {
            assert_eq!(plain("<![CDATA[Tom & <b>Jerry</b>]]>"), "Tom & Jerry");
            assert_eq!(plain("a <![CDATA[b]]> c <![CDATA[d &amp; e]]>"), "a b c d & e");
            assert_eq!(plain("x[y[0]]> 1"), "x[y[0]]> 1");
        }
        assert_eq!(plain_text("<![CDATA[<a title=']]>'>b"), "b");
        assert_eq!(plain_text_if_html("<![CDATA[a"), "<![CDATA[a");
    }

    #[test]
    fn hostile_texts_take_a_few_looks_at_each_byte() {
        const PIECES: &str = "<![CDATA[|]]>|<a|<a |<|>|\"|'|<a \">\"|<a '>'|<a \"'>|<!--|-->|<!|</|&|&a|&amp;|\
            &#|<script>|</script>|x ";
        let assert_linear = |text: &str, tags: TagRule| {
            let mut pieces = Pieces::new(text, tags);
            let mut count = 0;
            while let Some(piece) = pieces.next() {
                count += 1;
                if piece == Piece::Tag("script") {
                    pieces.skip_content("script");
                }
            }
            let limit = LOOKS_LIMIT * (text.len() + 8);
            assert!(pieces.looked() <= limit, "{} looks at {} bytes", pieces.looked(), text.len());
            assert!(count <= text.len());
        };
        let pairs = PIECES.split('|').flat_map(|one| PIECES.split('|').map(move |it| (one, it)));
        for (one, other) in pairs {
            for text in [
                format!("{one}{other}").repeat(1_000),
                one.repeat(1_000) + &other.repeat(1_000),
                one.repeat(1_000) + other,
            ] {
                assert_linear(&text, TagRule::All);
                assert_linear(&text, TagRule::Known);
            }
        }
    }
}
