//! What the author of an entry must do about what the parser had to repair. The parser speaks of
//! publishers whose documents are taken all the same; here nothing is.

/// How much of a message that is not known here is said back, in characters.
const SAID: usize = 300;

/// What a message of the parser holds, and what to do then; what begins with a semicolon is said behind it.
const ADVICE: &[(&str, &str)] = &[
    ("taken for a plain one", "leave sx:sync out: it is made here"),
    ("bare '&'", "a bare & stands here; write it as &amp;"),
    ("']]>'", "]]> stands in a text; write it as ]]&gt;"),
    ("a '<' that begins no tag", "a < stands here that begins no tag; write it as &lt;"),
    (
        "only HTML knows",
        "a reference stands here that only HTML knows, as &nbsp; is; write it as a number, such as \
         &#160;",
    ),
    ("that XML forbids", "a character stands here that XML forbids; take it out"),
    ("without white space", "an attribute has no white space before it; put a space there"),
    ("without quotes", "an attribute has no quotes; write it as name=\"value\""),
    ("is there already", "an attribute stands twice in one tag; leave one of the two out"),
    ("a comment with '--'", "a comment has -- in it; take that out"),
    ("processing instruction", "a processing instruction has no name; take it out"),
    ("XML declaration", "an XML declaration stands only at the very beginning; take this one out"),
    ("an end tag with more than its name", "an end tag has more than its name; take the rest out"),
    ("around:", "a tag here does not fit the one it closes; close each element, innermost first"),
    ("is cut", "something here is not closed; close it"),
    ("that has no end", "a tag, comment or CDATA section that begins here has no end; close it"),
    ("xml:base that is too long", "an xml:base is too long; write a shorter one"),
    ("is not declared", "; declare it with xmlns in the entry"),
    ("is not closed", "; close it"),
    ("closes nothing", "; take it out, or open what it closes"),
];

/// What to do about a message of the parser.
pub(super) fn advise(message: &str) -> String {
    let found = ADVICE.iter().find(|(held, _)| message.contains(held)).map(|(_, advice)| *advice);
    let said = || message.chars().take(SAID).collect::<String>();
    match found {
        Some(advice) if advice.starts_with(';') => said() + advice,
        Some(advice) => advice.to_owned(),
        None => said(),
    }
}
