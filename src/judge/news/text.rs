//! The text of an entry: which of its fields it is, and how it begins.

use super::visible::{LINK, PICTURE, visible};
use tidegate_core::model::{Field, Markup};
use tidegate_core::xml::shortened;

/// The fields that are the text of an entry, the fullest first.
const TEXTS: [&str; 7] = [
    "content",
    "content:encoded",
    "content_html",
    "description",
    "summary",
    "content_text",
    "itunes:summary",
];
/// How much of a text is read for its beginning, in bytes.
const READ: usize = 64 * 1024;
/// The longest title made from an entry's text, in characters.
const TITLE: usize = 80;

/// Whether the text at a path is HTML, as its format or its `type` says.
pub fn is_html(path: &str, fields: &[Field<'_>]) -> bool {
    match path {
        "content_text" => false,
        "content" | "summary" => {
            let named = |field: &&Field<'_>| field.path.strip_suffix("@type") == Some(path);
            fields.iter().find(named).is_some_and(|field| is_html_type(&field.value))
        }
        _ => true,
    }
}

fn is_html_type(said: &str) -> bool {
    let essence = said.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    matches!(essence.as_str(), "html" | "xhtml" | "text/html" | "application/xhtml+xml")
}

/// The field that is the text of an entry, of all that it has, and whether that is HTML.
pub fn text_field<'f, 'a>(fields: &'f [Field<'a>]) -> Option<(&'f Field<'a>, bool)> {
    let is_said = |field: &&Field<'_>| !field.value.trim().is_empty();
    let find = |path: &&str| fields.iter().filter(is_said).find(|field| field.path == **path);
    TEXTS.iter().find_map(find).map(|field| (field, is_html(&field.path, fields)))
}

/// The beginning of the text that a reader sees of an entry, at most so many characters; empty where it has none.
pub fn beginning(markup: &Markup, most: usize) -> String {
    let fields = tidegate_format::parse::again(markup).unwrap_or_default();
    let Some((field, is_html)) = text_field(&fields) else { return String::new() };
    let start = shortened(&field.value, READ);
    let whole = if is_html { words(&visible(start)) } else { start.trim().to_owned() };
    let mut shown: String = whole.chars().take(most).collect();
    if shown.len() < whole.len() {
        shown.push('…');
    }
    shown
}

/// The words of what is visible, without where links lead and what pictures show.
fn words(visible: &str) -> String {
    let words = visible.split_whitespace().filter(|word| !word.starts_with([LINK, PICTURE]));
    words.collect::<Vec<_>>().join(" ")
}

/// What stands for the title of an entry that has none: the beginning of its words.
pub fn stand_in_title(markup: &Markup) -> String {
    let mut title = String::new();
    for word in beginning(markup, 4 * TITLE).split_whitespace() {
        if title.chars().count() + word.chars().count() > TITLE {
            title.push('…');
            break;
        }
        title.extend((!title.is_empty()).then_some(' '));
        title.push_str(word);
    }
    title
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_format::parse;

    fn entry(inner: &str) -> Markup {
        let text =
            format!("<feed xmlns='http://www.w3.org/2005/Atom'><entry>{inner}</entry></feed>");
        let document = crate::testing::read(&text);
        parse::own(&document, &document.entries[0])
    }

    #[test]
    fn an_entry_without_a_title_is_called_by_the_beginning_of_its_text() {
        let long = "word ".repeat(40);
        let cut = format!("{}…", long.get(..79).unwrap());
        for (content, title) in [
            ("&lt;p&gt;Good &lt;b&gt;morning&lt;/b&gt;, all!&lt;/p&gt;", "Good morning, all!"),
            ("&lt;a href='http://x/'&gt;See&lt;/a&gt; this &lt;img src='a.png'&gt;", "See this"),
            (&long, &cut),
            ("", ""),
        ] {
            let markup = entry(&format!("<content type='html'>{content}</content>"));
            assert_eq!(stand_in_title(&markup), title, "{content}");
        }
        assert_eq!(stand_in_title(&entry("<summary>1 &lt; 2</summary>")), "1 < 2");
        let podcast =
            "<i:summary xmlns:i='http://www.itunes.com/dtds/podcast-1.0.dtd'>A</i:summary>";
        assert_eq!(stand_in_title(&entry(podcast)), "A");
    }
}
