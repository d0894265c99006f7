//! Rust source as words and signs, without comments, strings and test code.

/// A word or a sign, with its line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// The word, or one character.
    pub text: String,
    /// Its line, from 1.
    pub line: usize,
}

/// The code of one file.
#[derive(Debug)]
pub struct Code {
    /// Its tokens, in order.
    pub tokens: Vec<Token>,
}

impl Code {
    /// Everything but comments and strings.
    pub fn of(text: &str) -> Self {
        Self { tokens: tokens(text) }
    }

    /// The same without what stands under `#[cfg(test)]`.
    pub fn shipped(text: &str) -> Self {
        Self { tokens: without_tests(&tokens(text)) }
    }

    /// Whether a word occurs.
    pub fn has_word(&self, word: &str) -> bool {
        self.tokens.iter().any(|token| token.text == word)
    }

    /// The lines on which a path (`a::b`) or a word begins.
    pub fn lines_with(&self, path: &str) -> Vec<usize> {
        let wanted = tokens(path);
        let alike = |at: &[Token]| at.iter().zip(&wanted).all(|(a, b)| a.text == b.text);
        let found = self.tokens.windows(wanted.len()).filter(|at| alike(at));
        found.map(|at| at[0].line).collect()
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn tokens(text: &str) -> Vec<Token> {
    let chars: Vec<char> = text.chars().collect();
    let mut found: Vec<Token> = Vec::new();
    let (mut at, mut line) = (0, 1);
    let peek = |at: usize| chars.get(at).copied().unwrap_or('\0');
    while at < chars.len() {
        let start = at;
        let c = chars[at];
        if c.is_whitespace() {
            at += 1;
        } else if c == '/' && peek(at + 1) == '/' {
            while at < chars.len() && chars[at] != '\n' {
                at += 1;
            }
        } else if c == '/' && peek(at + 1) == '*' {
            let mut depth = 0;
            loop {
                match (peek(at), peek(at + 1)) {
                    ('/', '*') => (depth, at) = (depth + 1, at + 2),
                    ('*', '/') => (depth, at) = (depth - 1, at + 2),
                    _ => at += 1,
                }
                if depth == 0 || at >= chars.len() {
                    break;
                }
            }
        } else if c == '"' {
            at = after_string(&chars, at);
        } else if c == '\'' {
            at = after_quote(&chars, at);
        } else if is_word(c) {
            while is_word(peek(at)) {
                at += 1;
            }
            let word: String = chars[start..at].iter().collect();
            let raw = matches!(word.as_str(), "r" | "br" | "cr");
            if raw && (peek(at) == '"' || (peek(at) == '#' && matches!(peek(at + 1), '"' | '#'))) {
                at = after_raw_string(&chars, at);
            } else if !(matches!(word.as_str(), "b" | "c") && matches!(peek(at), '"' | '\'')) {
                found.push(Token { text: word, line });
            }
        } else {
            at += 1;
            found.push(Token { text: c.to_string(), line });
        }
        line += chars[start..at.min(chars.len())].iter().filter(|c| **c == '\n').count();
    }
    found
}

/// The place after a string that begins at `at`.
fn after_string(chars: &[char], at: usize) -> usize {
    let mut at = at + 1;
    while at < chars.len() && chars[at] != '"' {
        at += if chars[at] == '\\' { 2 } else { 1 };
    }
    at + 1
}

/// The place after a raw string whose `#` or quote is at `at`.
fn after_raw_string(chars: &[char], at: usize) -> usize {
    let hashes = chars[at..].iter().take_while(|c| **c == '#').count();
    let mut at = at + hashes + 1;
    while at < chars.len() {
        let closing = chars[at] == '"'
            && chars[at + 1..].iter().take(hashes).filter(|c| **c == '#').count() == hashes;
        at += 1;
        if closing {
            return at + hashes;
        }
    }
    at
}

/// The place after a character, or after a lifetime, whose quote is at `at`.
fn after_quote(chars: &[char], at: usize) -> usize {
    let next = |k: usize| chars.get(at + k).copied().unwrap_or('\0');
    if next(1) == '\\' {
        // The escaped character itself may be a quote.
        let rest = chars.get(at + 3..).unwrap_or_default();
        at + 3 + rest.iter().position(|c| *c == '\'').unwrap_or(0) + 1
    } else if next(2) == '\'' {
        at + 3
    } else {
        let rest = chars.get(at + 1..).unwrap_or_default();
        at + 1 + rest.iter().take_while(|c| is_word(**c)).count()
    }
}

/// Leaves out every item under `#[cfg(test)]`: to its closing brace or its semicolon.
fn without_tests(tokens: &[Token]) -> Vec<Token> {
    const MARK: [&str; 7] = ["#", "[", "cfg", "(", "test", ")", "]"];
    let mut kept = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let is_mark = tokens[at..].iter().map(|token| token.text.as_str()).take(7).eq(MARK);
        if !is_mark {
            kept.push(tokens[at].clone());
            at += 1;
            continue;
        }
        at += MARK.len();
        let mut depth = 0;
        while at < tokens.len() {
            let text = tokens[at].text.as_str();
            at += 1;
            match text {
                "{" | "(" | "[" => depth += 1,
                "}" | ")" | "]" => depth -= 1,
                _ => {}
            }
            // A closing bracket ends an attribute in between, not the item.
            if depth == 0 && matches!(text, "}" | ";") {
                break;
            }
        }
    }
    kept
}
