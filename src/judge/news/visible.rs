//! The text that a reader would see of a value that may be HTML.

use super::addresses::address;
use tidegate_core::xml::html::{Piece, Pieces, TagRule, attribute};
use tidegate_core::xml::reference::html;

/// What stands before the address that a link leads to.
pub(super) const LINK: char = '→';
/// What stands for a picture, or for something else that is embedded.
pub(super) const PICTURE: char = '▣';

/// Elements whose content nobody sees.
const UNSEEN: [&str; 3] = ["script", "style", "template"];
/// Elements that are pictures, or something else that is embedded.
const PICTURES: [&str; 6] = ["img", "video", "audio", "iframe", "embed", "object"];

/// What a reader would see: tags taken out, references resolved, white space collapsed; where links
/// lead (without scheme, host and tracking parameters) and that there are images stands in
/// for their tags. Prefixes, attributes and their order, and the spelling of references leave
/// no trace.
pub fn visible(value: &str) -> String {
    read(value, false)
}

/// What of a value counts where it is compared: what is [`visible`] without pictures before the first and behind the
/// last of what else there is to see, which are previews, and without the places in pages that links lead to.
pub fn comparable(value: &str) -> String {
    read(value, true)
}

fn read(value: &str, is_counted: bool) -> String {
    let text = String::with_capacity(value.len());
    let mut out = VisibleText { text, gap: false, is_counted, pictures: 0 };
    let mut pieces = Pieces::new(value, TagRule::All);
    while let Some(piece) = pieces.next() {
        match piece {
            Piece::Text(text) => out.push_text(text),
            Piece::Reference(name) => reference(&mut out, name),
            Piece::Tag(inside) => tag(&mut out, inside, &mut pieces),
            Piece::Comment => {}
        }
    }
    out.text
}

/// Text with its white space collapsed.
struct VisibleText {
    text: String,
    gap: bool,
    /// Whether only what counts in a comparison is wanted.
    is_counted: bool,
    /// Pictures behind some text, which count if there is more behind them.
    pictures: usize,
}

impl VisibleText {
    fn push_text(&mut self, text: &str) {
        let mut words =
            text.split(|c: char| c.is_whitespace() || matches!(c, '\u{200b}' | '\u{feff}'));
        self.push_word(words.next().unwrap_or_default());
        for word in words {
            self.gap = true;
            self.push_word(word);
        }
    }

    fn push_word(&mut self, word: &str) {
        if word.is_empty() {
            return;
        }
        for _ in 0..std::mem::take(&mut self.pictures) {
            self.text.push(' ');
            self.text.push(PICTURE);
        }
        if self.gap && !self.text.is_empty() {
            self.text.push(' ');
        }
        self.gap = false;
        self.text.push_str(word);
    }
}

fn reference(out: &mut VisibleText, name: &str) {
    match html(name) {
        Some(text) => out.push_text(&text),
        None => ["&", name, ";"].into_iter().for_each(|text| out.push_text(text)),
    }
}

fn tag(out: &mut VisibleText, inside: &str, pieces: &mut Pieces<'_>) {
    let name_end = inside.find(|c: char| c.is_whitespace() || c == '/').unwrap_or(inside.len());
    let name = inside.get(..name_end).unwrap_or_default();
    let is = |other: &&str| name.eq_ignore_ascii_case(other);
    if !is_inline(name, inside) {
        out.gap = true;
    }
    if UNSEEN.iter().any(is) && !inside.ends_with('/') {
        return pieces.skip_content(name);
    }
    if is(&"a") {
        let target = attribute(inside, "href");
        let page = target.as_deref().map(|t| if out.is_counted { without_anchor(t) } else { t });
        marked(out, LINK, page);
    } else if is(&"img") && out.is_counted {
        out.gap = true;
        out.pictures += usize::from(!out.text.is_empty());
    } else if PICTURES.iter().any(is) {
        marked(out, PICTURE, None);
    }
}

/// An address without the place in the page. What begins like a path or `#!` names a page of a program.
fn without_anchor(target: &str) -> &str {
    match target.split_once('#') {
        Some((page, anchor)) if !anchor.starts_with(['/', '!']) => page,
        _ => target,
    }
}

fn marked(out: &mut VisibleText, mark: char, target: Option<&str>) {
    out.gap = true;
    out.push_word(mark.encode_utf8(&mut [0; 4]));
    if let Some(target) = target {
        out.push_text(&address(target));
    }
    out.gap = true;
}

/// Elements that do not part words.
const INLINE: [&str; 19] = [
    "a", "b", "i", "em", "strong", "span", "u", "s", "code", "tt", "sub", "sup", "small", "font",
    "abbr", "q", "wbr", "mark", "cite",
];

/// Tags that do not part words. Closing tags of links are among them; opening ones bear a mark.
fn is_inline(name: &str, inside: &str) -> bool {
    let name = if name.is_empty() { inside } else { name };
    let bare = name.trim_start_matches('/');
    INLINE.iter().any(|inline| inline.eq_ignore_ascii_case(bare))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_leaves_no_trace_and_references_are_what_they_stand_for() {
        for (written, seen) in [
            ("<p class='a' id=\"b\">One <b>two</b>\n&nbsp;&amp; three</p>", "One two & three"),
            ("<div id=b class=a>One <i>two</i> &#38; three</div>", "One two & three"),
            ("ma&iacute;z", "maíz"),
            ("&Iacute;&Ntilde;&euro;&bull;&#x20AC;", "ÍÑ€•€"),
            ("&CounterClockwiseContourIntegral;", "∳"),
            ("a&nbsp;b&ensp;c", "a b c"),
            ("&lt;b&gt;", "<b>"),
            // Images are seen, but not their addresses.
            ("<img src='a.png'>", "▣"),
            ("<p>One <img src=a> two</p><img src=b>", "One ▣ two ▣"),
            // Less-than signs and broken markup are text.
            ("1 < 2 & 3", "1 < 2 & 3"),
            ("a <b unclosed", "a <b unclosed"),
            ("a<script>x < y</script>b", "a b"),
            ("<!-- built 12:00 -->a", "a"),
        ] {
            assert_eq!(visible(written), seen, "{written}");
        }
    }

    #[test]
    fn links_count_by_where_they_lead() {
        let old = visible("<a href=\"http://a.example/page/one?utm_source=x\">it</a>");
        assert_eq!(old, visible("<a rel=x href='https://b.example/page/one'>it</a>"));
        assert_ne!(old, visible("<a href='https://b.example/page/two'>it</a>"));
        let odd = "<a data-href='/x' HREF = 'https://b.example/page&#47;one'>it</a>";
        assert_eq!(old, visible(odd));
    }

    #[test]
    fn places_in_pages_do_not_count() {
        let link = |target: &str| comparable(&format!("<a href=\"{target}\">it</a> and 5 of #6"));
        assert_eq!(link("/page#one"), link("/page"));
        assert_eq!(link("https://e.org/page/?a=1#c-7"), link("http://e.org/page?a=1#c-8"));
        assert_eq!(link("#top"), "→ it and 5 of #6");
        assert_ne!(link("/page#one"), link("/other#one"));
        for route in ["/app#/page", "/app#!page"] {
            assert_ne!(link(route), link("/app"), "{route}");
        }
        assert_eq!(visible("<a href='/page#one'>it</a>"), "→page#one it");
        // Words that look like a link are words.
        assert_ne!(comparable("→page#one"), comparable("→page#two"));
    }

    #[test]
    fn pictures_count_only_among_words() {
        for preview in ["<img src=a>One two", "One two<p><img src=a><IMG src=b/></p>", "One two"] {
            assert_eq!(comparable(preview), "One two", "{preview}");
        }
        assert_eq!(comparable("<p><img src=a> <img src=b></p>"), "");
        let among = "<img src=a>One<img src=b> <img src=c> two<img src=d>";
        assert_eq!(comparable(among), "One ▣ ▣ two");
        assert_eq!(comparable("One<a href=/there><img src=a></a>"), "One →there");
        // What is embedded is no preview, nor is a sign that somebody wrote.
        for shown in ["One<iframe src=a></iframe>", "<video src=a></video>One", "▣ One ▣"] {
            assert_eq!(comparable(shown), visible(shown), "{shown}");
        }
        assert_eq!(comparable("<img src=a><iframe src=b></iframe><img src=c>"), "▣");
    }
}
