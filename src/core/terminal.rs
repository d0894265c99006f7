//! Foreign text on a terminal: what publishers, gateways and files say does nothing there but be read.

use std::fmt::Write;

/// Whether a character acts on a terminal: it controls it, ends a line, turns the direction of text, or is not
/// seen where it stands.
fn acts(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{206f}')
        || matches!(c, '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}

/// A text as one line for a terminal.
pub fn printable(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for c in text.chars() {
        if !acts(c) {
            line.push(c);
        } else if c.is_whitespace() && !line.ends_with(' ') {
            line.push(' ');
        }
    }
    line
}

/// Lines of ours, with foreign text in them that is no line of its own.
pub fn printable_lines(text: &str) -> String {
    text.split('\n').map(printable).collect::<Vec<_>>().join("\n")
}

/// The same JSON, in which characters that act on a terminal are escaped (RFC 8259 section 7).
pub fn printable_json(json: &str) -> String {
    let mut shown = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '\n' => shown.push(c),
            // Between values; in one they are escaped already.
            '\r' | '\t' => shown.push(' '),
            c if acts(c) => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    let _ = write!(shown, "\\u{unit:04x}");
                }
            }
            c => shown.push(c),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HOSTILE: &str = "a\u{1b}[2J\u{0}\u{7}\u{9b}31m\u{202e}\u{2066}\u{61c}\r\n\n\u{2028}b\u{85}\u{feff}\u{e0041}c\td";

    #[test]
    fn foreign_text_is_one_line_that_does_nothing() {
        assert_eq!(printable(HOSTILE), "a[2J31m b c d");
        // Words of other scripts and joined emoji stay as they are.
        for text in ["Über  alles", "می\u{200c}خواهم", "👩\u{200d}🚀", "שלום"] {
            assert_eq!(printable(text), text);
        }
        assert_eq!(printable_lines("x\u{1b}[1m\ny\n"), "x[1m\ny\n");
    }

    proptest! {
        #[test]
        fn json_says_the_same(text in any::<String>()) {
            let text = format!("{text}{HOSTILE}");
            let json = serde_json::json!({ &text: [text] });
            let shown = printable_json(&serde_json::to_string_pretty(&json).unwrap());
            prop_assert!(!shown.chars().any(|c| c != '\n' && acts(c)), "{shown:?}");
            prop_assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), json);
        }
    }
}
