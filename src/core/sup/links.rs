//! The `Link` header (RFC 8288).

/// The longest header that is parsed, in bytes.
pub(super) const HEADER_LIMIT: usize = 8 * 1024;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeaderLink<'a> {
    /// The target, verbatim.
    pub target: &'a str,
    /// Its relations, verbatim.
    pub relations: String,
    /// The media type of the target, if stated.
    pub kind: String,
}

impl HeaderLink<'_> {
    /// Whether it has a relation. Registered relations are case-insensitive (section 2.1.1).
    pub fn is(&self, relation: &str) -> bool {
        self.relations.split_ascii_whitespace().any(|one| one.eq_ignore_ascii_case(relation))
    }
}

/// Parses the links of a header, in order.
pub fn links(value: &str) -> impl Iterator<Item = HeaderLink<'_>> {
    let mut rest = value.get(..HEADER_LIMIT).unwrap_or(value);
    std::iter::from_fn(move || {
        let (_, after) = rest.split_once('<')?;
        let (target, after) = after.split_once('>')?;
        let (parameters, next) = parameters(after);
        rest = next;
        let said = |wanted: &str| {
            let found = parameters.iter().find(|(name, _)| name.eq_ignore_ascii_case(wanted));
            found.map(|(_, value)| value.clone()).unwrap_or_default()
        };
        Some(HeaderLink { target, relations: said("rel"), kind: said("type") })
    })
}

/// Parses the parameters of a link up to the comma that ends it; also returns the rest.
fn parameters(text: &str) -> (Vec<(String, String)>, &str) {
    let mut found = Vec::new();
    let (mut name, mut value) = (String::new(), String::new());
    let (mut in_value, mut quoted, mut escaped) = (false, false, false);
    let mut rest = "";
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => {
                value.push(c);
                escaped = false;
            }
            '\\' if quoted => escaped = true,
            '"' if in_value => quoted = !quoted,
            ';' | ',' if !quoted => {
                found.push((name.trim().to_owned(), value.trim().to_owned()));
                (name, value, in_value) = (String::new(), String::new(), false);
                if c == ',' {
                    rest = text.get(at + 1..).unwrap_or_default();
                    return (found, rest);
                }
            }
            '=' if !in_value => in_value = true,
            _ if in_value => value.push(c),
            _ => name.push(c),
        }
    }
    found.push((name.trim().to_owned(), value.trim().to_owned()));
    (found, rest)
}
