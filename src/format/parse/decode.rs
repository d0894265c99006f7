//! Bytes to text.

use super::{Limits, ParseError, collection, opml, without_garbage};
use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, REPLACEMENT, UTF_8, UTF_16BE, UTF_16LE};
use std::borrow::Cow;
use tidegate_core::model::{FeedDocument, Flaw, Flaws, Warning};
use tidegate_core::xml::cut;

/// How far into a document its XML declaration is looked for, in bytes.
const DECLARATION_LIMIT: usize = 1024;
/// How much of a document is looked at to guess its charset, in bytes.
const SNIFF_LIMIT: usize = 1 << 20;

/// How a feed's earlier documents were read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Before<'a> {
    /// The name of their charset, as the WHATWG Encoding Standard spells it.
    pub charset: &'a str,
    /// Whether bytes that are malformed in it are new to the feed: then they are no reason at all
    /// to take it for another. Else another charset must explain the document better.
    pub is_firm: bool,
}

/// A document's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decoded<'a> {
    /// The text, without byte order mark; borrowed where the bytes are UTF-8.
    pub text: Cow<'a, str>,
    /// The name of its charset, as the WHATWG Encoding Standard spells it.
    pub encoding: &'static str,
    /// What was wrong.
    pub warnings: Vec<Warning>,
    /// What of it keeps the document from being well-formed.
    pub flaws: Flaws,
}

impl Decoded<'_> {
    /// Notes in the document of this text how its bytes were read.
    pub fn describe(&self, document: &mut FeedDocument<'_>) {
        document.charset = Some(self.encoding);
        document.flaws.join(self.flaws);
    }
}

/// Decodes a body: by its byte order mark, as UTF-8 where its bytes show that, by the charset of
/// HTTP, by the XML declaration, as UTF-8 where it is valid, and else by a guess. A charset that is
/// declared but under which the bytes are malformed is not believed where another reading is whole.
/// JSON is UTF-8 (RFC 8259 section 8.1). A collection of FeedSync as JSON comes out as plain XML
/// ([`collection::transcoded`]), and a list as Atom ([`opml::transcoded`]).
pub fn decode<'a>(
    bytes: &'a [u8],
    content_type: Option<&str>,
    limits: &Limits,
) -> Result<Decoded<'a>, ParseError> {
    decode_as(bytes, content_type, None, limits)
}

/// The same of a feed that was read `before`: some bad bytes make no other charset of it, or every
/// text of it would change for a few bytes in one of them.
pub fn decode_as<'a>(
    bytes: &'a [u8],
    content_type: Option<&str>,
    before: Option<Before<'_>>,
    limits: &Limits,
) -> Result<Decoded<'a>, ParseError> {
    let mut decoded = read_characters(bytes, content_type, before, limits)?;
    // These are read as the XML documents that say the same.
    if let Some(text) = collection::within(&decoded.text, limits)? {
        decoded.text = Cow::Owned(text);
    } else if let Some((text, mut problems)) = opml::within(&decoded.text, limits)? {
        decoded.text = Cow::Owned(text);
        decoded.warnings.append(&mut problems);
    }
    Ok(decoded)
}

/// The same, whatever kind of document it is: its own text, in no other form.
pub fn characters<'a>(
    bytes: &'a [u8],
    content_type: Option<&str>,
    limits: &Limits,
) -> Result<Decoded<'a>, ParseError> {
    read_characters(bytes, content_type, None, limits)
}

fn read_characters<'a>(
    bytes: &'a [u8],
    content_type: Option<&str>,
    before: Option<Before<'_>>,
    limits: &Limits,
) -> Result<Decoded<'a>, ParseError> {
    let limit = limits.decoded;
    let within =
        |found| if found > limit { Err(ParseError::TooLarge { found, limit }) } else { Ok(()) };
    within(bytes.len())?;
    let mut decoded = choose(bytes, content_type, before);
    within(decoded.text.len())?;
    replace_lone_surrogates(&mut decoded);
    Ok(decoded)
}

/// Replaces each escape of JSON that is half of a surrogate pair, which no string can hold (RFC 8259
/// section 8.2), by that of U+FFFD. Both have the same length, so that no offset changes.
fn replace_lone_surrogates(decoded: &mut Decoded<'_>) {
    let text = decoded.text.as_ref();
    if !without_garbage(text).starts_with('{') {
        return;
    }
    let unit = |at: usize| {
        let digits = text.get(at..)?.strip_prefix("\\u")?.get(..4)?;
        u16::from_str_radix(digits, 16).ok()
    };
    let (mut replaced, mut copied, mut at) = (String::new(), 0, 0);
    while let Some(found) = memchr::memchr(b'\\', text.as_bytes().get(at..).unwrap_or_default()) {
        let start = at + found;
        at = match unit(start) {
            Some(0xD800..=0xDBFF) if matches!(unit(start + 6), Some(0xDC00..=0xDFFF)) => start + 12,
            Some(0xD800..=0xDFFF) => {
                replaced.push_str(cut(text, copied..start));
                replaced.push_str("\\ufffd");
                copied = start + 6;
                copied
            }
            _ => start + 2,
        };
    }
    if copied > 0 {
        replaced.push_str(cut(text, copied..text.len()));
        decoded.text = Cow::Owned(replaced);
        warn(&mut decoded.warnings, "halves of surrogate pairs are replaced".to_owned());
    }
}

fn choose<'a>(
    bytes: &'a [u8],
    content_type: Option<&str>,
    before: Option<Before<'_>>,
) -> Decoded<'a> {
    let mut warnings = Vec::new();
    let (http, inside) = (content_type.and_then(charset), declaration(bytes));
    // Borrowed, and found faster than by the standard library.
    let utf8 = match UTF_8.decode_without_bom_handling_and_without_replacement(bytes) {
        Some(Cow::Borrowed(text)) => Some(text),
        _ => None,
    };
    if let Some((encoding, mark)) = evident(bytes, utf8, content_type, inside.as_deref()) {
        let is_other = |label: &String| known(label).is_some_and(|said| said != encoding);
        if let Some(label) = http.filter(|label| encoding == UTF_8 && is_other(label)) {
            warn(&mut warnings, format!("HTTP says {label:?}, and the bytes are UTF-8"));
        }
        if let Some(text) = utf8.and_then(|text| text.get(mark..)).filter(|_| encoding == UTF_8) {
            return whole(encoding, Cow::Borrowed(text), warnings);
        }
        return read(encoding, bytes.get(mark..).unwrap_or_default(), warnings);
    }
    let mut declared: Option<&'static Encoding> = None;
    for label in [http, inside].into_iter().flatten() {
        let Some(encoding) = known(&label) else {
            warn(&mut warnings, format!("the charset {label:?} is not known and is passed over"));
            continue;
        };
        let (text, malformed) = encoding.decode_without_bom_handling(bytes);
        if !malformed {
            return whole(encoding, text, warnings);
        }
        warn(&mut warnings, format!("the bytes are malformed under the declared {label:?}"));
        // It is what the feed was read as, and the next authority may admit any bytes.
        let is_same = |before: Before<'_>| before.charset.eq_ignore_ascii_case(encoding.name());
        if before.is_some_and(|before| is_same(before) && before.explains(bytes)) {
            return read(encoding, bytes, warnings);
        }
        declared = declared.or(Some(encoding));
    }
    if let Some(text) = utf8 {
        return whole(UTF_8, Cow::Borrowed(text), warnings);
    }
    let earlier = before.filter(|before| before.explains(bytes));
    if let Some(encoding) = earlier.and_then(|b| Encoding::for_label(b.charset.as_bytes())) {
        return read(encoding, bytes, warnings);
    }
    match declared {
        Some(encoding) if encoding != UTF_8 || mostly_utf8(bytes) => {
            read(encoding, bytes, warnings)
        }
        None if mostly_utf8(bytes) => read(UTF_8, bytes, warnings),
        _ => {
            let sample = bytes.get(..SNIFF_LIMIT).unwrap_or(bytes);
            let mut detector = EncodingDetector::new(Iso2022JpDetection::Allow);
            detector.feed(sample, sample.len() == bytes.len());
            let encoding = detector.guess(None, Utf8Detection::Deny);
            warn(&mut warnings, format!("the charset is guessed to be {}", encoding.name()));
            read(encoding, bytes, warnings)
        }
    }
}

/// So many characters beyond ASCII that are whole in UTF-8, and none that is broken, are no chance.
const TELLING_CHARACTERS: usize = 4;

/// What the bytes themselves show, whatever HTTP says, with the length of their byte order mark.
/// `utf8`: their text, where they are UTF-8.
fn evident(
    bytes: &[u8],
    utf8: Option<&str>,
    content_type: Option<&str>,
    declared: Option<&str>,
) -> Option<(&'static Encoding, usize)> {
    if let Some(marked) = Encoding::for_bom(bytes) {
        return Some(marked);
    }
    let is_json = content_type.is_some_and(|value| value.to_ascii_lowercase().contains("json"))
        || bytes.iter().find(|b| !b.is_ascii_whitespace()) == Some(&b'{');
    if is_json && !bytes.contains(&0) {
        return Some((UTF_8, 0));
    }
    if let Some(encoding) = sixteen_bits(bytes) {
        return Some((encoding, 0));
    }
    let text = utf8.filter(|text| !text.is_ascii())?;
    let says_so = declared.is_some_and(|label| known(label) == Some(UTF_8));
    let needed = if says_so { 1 } else { TELLING_CHARACTERS };
    let found = text.bytes().filter(|byte| *byte >= 0xC0).take(needed).count();
    (found == needed).then_some((UTF_8, 0))
}

/// A text in which nothing is malformed.
fn whole<'a>(
    encoding: &'static Encoding,
    text: Cow<'a, str>,
    warnings: Vec<Warning>,
) -> Decoded<'a> {
    Decoded { text, encoding: encoding.name(), warnings, flaws: Flaws::default() }
}

fn read<'a>(
    encoding: &'static Encoding,
    bytes: &'a [u8],
    mut warnings: Vec<Warning>,
) -> Decoded<'a> {
    let (text, malformed) = encoding.decode_without_bom_handling(bytes);
    let mut flaws = Flaws::default();
    if malformed {
        let name = encoding.name();
        flaws.insert(Flaw::Bytes);
        warn(&mut warnings, format!("some bytes are malformed {name} and are replaced"));
    }
    Decoded { text, encoding: encoding.name(), warnings, flaws }
}

fn warn(warnings: &mut Vec<Warning>, message: String) {
    warnings.push(Warning { offset: 0, message });
}

/// The encoding of a label. A document whose label could be read as ASCII is not UTF-16, whatever
/// the label says, and is UTF-8 then, as for HTML.
fn known(label: &str) -> Option<&'static Encoding> {
    let encoding = Encoding::for_label(label.as_bytes())?;
    if encoding == REPLACEMENT {
        None
    } else if encoding == UTF_16BE || encoding == UTF_16LE {
        Some(UTF_8)
    } else {
        Some(encoding)
    }
}

/// UTF-16 without a byte order mark: every other byte of what must be ASCII is zero.
fn sixteen_bits(bytes: &[u8]) -> Option<&'static Encoding> {
    match bytes.get(..4)? {
        [b'<', 0, _, 0] => Some(UTF_16LE),
        [0, b'<', 0, _] => Some(UTF_16BE),
        _ => None,
    }
}

/// The `charset` parameter of a media type.
fn charset(content_type: &str) -> Option<String> {
    content_type.split(';').skip(1).find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        let value = value.trim().trim_matches(['"', '\'']).trim();
        let wanted = name.trim().eq_ignore_ascii_case("charset") && !value.is_empty();
        wanted.then(|| value.to_owned())
    })
}

/// The `encoding` of the XML declaration, which may stand behind white space or garbage.
fn declaration(bytes: &[u8]) -> Option<String> {
    let window = bytes.get(..DECLARATION_LIMIT).unwrap_or(bytes);
    let start = memchr::memmem::find(window, b"<?xml")?;
    let rest = window.get(start..)?;
    let declaration = rest.get(..memchr::memchr(b'>', rest)?)?;
    let at = memchr::memmem::find(declaration, b"encoding")? + "encoding".len();
    let value = declaration.get(at..)?.trim_ascii_start().strip_prefix(b"=")?.trim_ascii_start();
    let (quote, value) = value.split_first()?;
    let label = value.get(..memchr::memchr(*quote, value)?)?;
    (matches!(quote, b'"' | b'\'')).then(|| String::from_utf8_lossy(label).trim().to_owned())
}

impl Before<'_> {
    /// Whether bytes that no authority explains can be what they were before, with some of them
    /// bad.
    fn explains(&self, bytes: &[u8]) -> bool {
        let Some(encoding) = Encoding::for_label(self.charset.as_bytes()) else { return false };
        // Other bytes, read as sixteen bits each, are a document of no kind, which nobody could
        // ever see a second time.
        let shows_markup = encoding.is_ascii_compatible() || shows_markup(encoding, bytes);
        if self.is_firm || !shows_markup {
            return shows_markup;
        }
        if encoding == UTF_8 {
            // In another charset hardly a character beyond ASCII looks like UTF-8.
            let (whole, broken) = utf8(bytes);
            return whole > 0 && whole.saturating_mul(BROKEN_FOR_WHOLE) >= broken;
        }
        !encoding.decode_without_bom_handling(bytes).1
    }
}

/// Whether bytes have in them what a document begins with.
fn shows_markup(encoding: &'static Encoding, bytes: &[u8]) -> bool {
    let sample = bytes.get(..SNIFF_LIMIT).unwrap_or(bytes);
    encoding.decode_without_bom_handling(sample).0.contains(['<', '{'])
}

/// A feed that was UTF-8 still is where no more than so many places are broken for each character
/// beyond ASCII that is whole.
const BROKEN_FOR_WHOLE: usize = 8;

/// Whether bytes that are not UTF-8 are so only in few places: at least as many characters beyond
/// ASCII are whole as are broken.
fn mostly_utf8(bytes: &[u8]) -> bool {
    let (whole, broken) = utf8(bytes);
    whole >= broken
}

/// How many characters beyond ASCII are whole in UTF-8, and how many places are broken.
fn utf8(bytes: &[u8]) -> (usize, usize) {
    let mut whole = 0usize;
    let mut broken = 0usize;
    for chunk in bytes.utf8_chunks() {
        whole += chunk.valid().bytes().filter(|byte| *byte >= 0xC0).count();
        broken += usize::from(!chunk.invalid().is_empty());
    }
    (whole, broken)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text, its charset, and how many warnings there are.
    fn decoded(bytes: &[u8], content_type: Option<&str>) -> (String, &'static str, usize) {
        let decoded = decode(bytes, content_type, &Limits::default()).unwrap();
        (decoded.text.into_owned(), decoded.encoding, decoded.warnings.len())
    }

    fn wide(text: &str, bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
        text.encode_utf16().flat_map(bytes).collect()
    }

    #[test]
    fn follows_the_order_of_authorities() {
        let latin = |text: &str| -> Vec<u8> {
            text.chars().map(|character| u8::try_from(character).unwrap()).collect()
        };
        let utf8 = |text: &str| text.as_bytes().to_vec();
        let plain = "<?xml version='1.0' encoding='ISO-8859-1'?><a>é</a>";
        let sixteen = "<?xml version='1.0' encoding='UTF-16'?><a>é☃</a>";
        let marked = |text: &str| format!("\u{FEFF}{text}");
        let windows = "text/xml; Charset=\"windows-1252\"";
        let japanese = "<?xml version='1.0' encoding='shift_jis'?><a>ét ☃</a>";
        let unknown = "<?xml version='1.0' encoding='klingon'?><a>é</a>";
        let (broken, read) = ("<a>\u{C3}\u{A9}t\u{C3}\u{A9} \u{FF}</a>", "<a>été \u{FFFD}</a>");
        let (guessed, nul) = ("<a>L'été à la plage</a>", "<a>été été\u{0}</a>");
        let json = "{\"a\":\"é\"}";
        // A pair is whole, and an escaped backslash escapes nothing.
        let halves = r#" {"\ud83d":"\uDC00\ud83d\ud83d\ude00 \\ud83d \n\u00e9\ud83"}"#;
        let mended = r#" {"\ufffd":"\ufffd\ufffd\ud83d\ude00 \\ud83d \n\u00e9\ud83"}"#;
        let xml = "<a>\\ud83d</a>";
        for (bytes, http, text, charset, warnings) in [
            (latin(plain), "", plain, "windows-1252", 0),
            (latin(plain), windows, plain, "windows-1252", 0),
            // HTTP says UTF-8, which it is not; the declaration is right.
            (latin(plain), "text/xml; charset=utf-8", plain, "windows-1252", 1),
            (utf8(&marked(plain)), "", plain, "UTF-8", 0),
            (utf8(&marked(plain)), windows, plain, "UTF-8", 1),
            (wide(sixteen, u16::to_le_bytes), "", sixteen, "UTF-16LE", 0),
            (wide(sixteen, u16::to_be_bytes), "", sixteen, "UTF-16BE", 0),
            (wide(&marked(sixteen), u16::to_le_bytes), "", sixteen, "UTF-16LE", 0),
            (wide(&marked(sixteen), u16::to_be_bytes), "", sixteen, "UTF-16BE", 0),
            // The label is a lie that anyone can see.
            (utf8(sixteen), "", sixteen, "UTF-8", 0),
            // A declared charset that is malformed or unknown gives way to valid UTF-8.
            (utf8(japanese), "", japanese, "UTF-8", 1),
            (utf8(unknown), "", unknown, "UTF-8", 1),
            (utf8(json), "application/json; charset=iso-8859-1", json, "UTF-8", 1),
            (utf8(halves), "", mended, "UTF-8", 1),
            (utf8(xml), "", xml, "UTF-8", 0),
            // Where nothing is said it is guessed; mostly UTF-8 with one byte gone wrong stays UTF-8.
            (latin(guessed), "", guessed, "windows-1252", 1),
            (utf8(nul), "", nul, "UTF-8", 0),
            (latin(broken), "", read, "UTF-8", 1),
        ] {
            let found = decoded(&bytes, Some(http).filter(|http| !http.is_empty()));
            assert_eq!(found, (text.to_owned(), charset, warnings), "{http}");
        }
    }

    #[test]
    fn bytes_that_show_that_they_are_utf8_are_it() {
        let document = |declared: &str, text: &str| {
            format!("<?xml version='1.0' encoding='{declared}'?><a>{text}</a>")
        };
        for charset in ["ISO-8859-1", "windows-1252", "us-ascii", "koi8-r"] {
            let http = format!("text/xml; charset={charset}");
            for (declared, text, is_it) in [
                ("UTF-8", "Café", true),
                ("utf8", "Café", true),
                ("windows-1251", "Привет", true),
                ("ISO-8859-1", "ééé", false),
                ("ISO-8859-1", "éééé", true),
            ] {
                let document = document(declared, text);
                let (read, encoding, warnings) = decoded(document.as_bytes(), Some(&http));
                let seen = (read == document, encoding == "UTF-8", warnings);
                assert_eq!(seen, (is_it, is_it, usize::from(is_it)), "{charset} {document}");
            }
            // One character that is broken, and they show nothing.
            let broken = [document("UTF-8", "éééé").as_bytes(), b"\xE9"].concat();
            assert_ne!(decoded(&broken, Some(&http)).1, "UTF-8", "{charset}");
        }
        let document = document("windows-1251", "Привет");
        assert_eq!(decoded(document.as_bytes(), None), (document.clone(), "UTF-8", 0));
    }

    #[test]
    fn a_feed_stays_what_it_was_read_as_unless_it_shows_another_charset() {
        let garbage = b"<?xml version='1.0' encoding='UTF-8'?><a>\xC3\xBC \xFF\xFE<<& \xFF</a>";
        let ascii = b"<?xml version='1.0' encoding='UTF-8'?><a>caf\xE9</a>";
        let both = b"<?xml version='1.0' encoding='ISO-8859-1'?><a>\xC3\xBC\xC3\xBC \xFF</a>";
        let turkish = encoding_rs::WINDOWS_1254.encode("<a>L'\u{2019}\u{E9}t\u{E9}</a>").0;
        let latin = b"<a>L'\xE9t\xE9 \xE0 la plage.</a>".as_slice();
        let declared = [b"<?xml version='1.0' encoding='windows-1252'?>", latin].concat();
        let mut wide = wide(" \u{e9}<a>\u{e9}</a>", u16::to_le_bytes);
        wide.extend([0x00, 0xD8, 0x41]);
        let (utf8, windows) = ("text/xml; charset=utf-8", "text/xml; charset=windows-1252");
        for (bytes, http, charset, is_firm, expected) in [
            (garbage.as_slice(), None, "UTF-8", true, "UTF-8"),
            (garbage, None, "UTF-8", false, "UTF-8"),
            // Without any character beyond ASCII nothing but the first look says that it is UTF-8.
            (ascii, None, "UTF-8", true, "UTF-8"),
            (ascii, None, "UTF-8", false, "windows-1252"),
            // What was guessed once is not guessed anew.
            (&turkish, None, "windows-1254", false, "windows-1254"),
            // The next authority takes any bytes, and says nothing of a feed that was UTF-8.
            (both, Some(utf8), "UTF-8", false, "UTF-8"),
            // A charset that is declared and right is taken at once, whatever was before.
            (both, None, "UTF-8", false, "windows-1252"),
            (&declared, None, "UTF-16LE", true, "windows-1252"),
            (&declared, None, "ISO-2022-JP", true, "windows-1252"),
            (latin, Some(windows), "UTF-16LE", false, "windows-1252"),
            (latin, Some(windows), "ISO-2022-JP", true, "windows-1252"),
            // A feed that becomes another charset is not unreadable.
            (latin, None, "UTF-16LE", true, "windows-1252"),
            (latin, None, "UTF-16LE", false, "windows-1252"),
            (latin, None, "UTF-16BE", true, "windows-1252"),
            // Here the markup is there, and the second look guesses.
            (latin, None, "ISO-2022-JP", true, "ISO-2022-JP"),
            (latin, None, "ISO-2022-JP", false, "windows-1252"),
            // Some bad bytes make no other charset of one that is what it was.
            (&wide, None, "UTF-16LE", true, "UTF-16LE"),
        ] {
            let before = Some(Before { charset, is_firm });
            let read = decode_as(bytes, http, before, &Limits::default()).unwrap();
            assert_eq!(read.encoding, expected, "{charset} {is_firm}: {}", read.text);
            assert!(read.text.contains("</a>"), "{}", read.text);
            if bytes == garbage {
                assert!(read.flaws.contains(Flaw::Bytes));
                assert!(read.text.contains("\u{FC} \u{FFFD}\u{FFFD}<<&"), "{}", read.text);
            }
        }
        assert_ne!(decoded(garbage, None).1, "UTF-8");
    }

    #[test]
    fn sizes_are_limited_before_and_after() {
        let limits = Limits { decoded: 10, ..Limits::default() };
        let refused = decode(&[b'a'; 11], None, &limits);
        assert_eq!(refused, Err(ParseError::TooLarge { found: 11, limit: 10 }));
        let grown = decode(&[0xE9; 8], Some("text/xml; charset=latin1"), &limits);
        assert_eq!(grown, Err(ParseError::TooLarge { found: 16, limit: 10 }));
    }
}
