//! Two versions of an item field by field, which is pure; and what comparing them may take.

use super::text_diff::{CompareBudget, TextPiece, VALUE_LIMIT, compare};
use super::{Subject, VersionChoice, bytes_of};
use crate::{AppState, Problem};
use http::StatusCode;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::model::{Field, Markup};
use tidegate_judge::news::{is_html, visible};
use tidegate_store::VersionNote;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, timeout};
use utoipa::ToSchema;

/// The most fields that a comparison shows.
const FIELDS_LIMIT: usize = 60;

/// A field that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = DifferentField)]
pub(crate) struct FieldDifference {
    /// What it is, for people.
    pub(crate) name: &'static str,
    /// Its path in the entry; the name where several are one.
    pub(super) path: String,
    /// Whether only markup differs that a reader does not see; the pieces are then markup.
    pub(super) is_markup: bool,
    /// Which limit of comparing was met, as a sentence.
    pub(super) limit: Option<String>,
    pub(super) pieces: Vec<TextPiece>,
}

/// What differs between two versions.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Differences {
    /// The fields, in the order to show them.
    pub(crate) fields: Vec<FieldDifference>,
    /// Fields that differ and are not shown because there are too many.
    pub(crate) more: usize,
    /// Fields that are the same.
    pub(crate) same: usize,
}

/// What kind of field a path names: its place in the order to show them, its name, and whether it is a text for people.
fn kind(path: &str) -> (u8, &'static str, bool) {
    let element = path.split('@').next().unwrap_or(path);
    // A link's relation stands in brackets behind its name.
    let top = element.split(['/', '[']).next().unwrap_or(element);
    if path.starts_with("media:") || path.contains("enclosure") || top == "attachments" {
        return (4, "Enclosure", false);
    }
    match top.trim_end_matches(|c: char| c.is_ascii_digit()) {
        "title" => (0, "Title", false),
        "content" | "content:encoded" | "description" | "content_html" | "content_text" => {
            (1, "Text", true)
        }
        "summary" | "itunes:summary" | "itunes:subtitle" => (2, "Summary", true),
        "link" | "url" | "external_url" | "comments" | "source" => (3, "Link", false),
        "updated" | "published" | "pubDate" | "dc:date" | "dcterms:modified" | "modified"
        | "issued" | "created" | "date_published" | "date_modified" => (5, "Date", false),
        "author" | "dc:creator" | "authors" | "contributor" | "itunes:author" => {
            (6, "Author", true)
        }
        "category" | "dc:subject" | "tags" | "itunes:keywords" => (7, "Category", true),
        "id" | "guid" => (8, "Id", false),
        _ => (9, "Other", false),
    }
}

/// Compares two versions within what is left of a budget; `None` where one of them cannot be read.
pub(super) fn versions(
    old: &Markup,
    new: &Markup,
    budget: &mut CompareBudget,
) -> Option<Differences> {
    let (begun, time) = (Instant::now(), budget.time);
    let (old, new) = (version_fields(old)?, version_fields(new)?);
    let differences = fields(&old, &new, budget);
    budget.time = time.saturating_sub(begun.elapsed());
    Some(differences)
}

/// The fields of a version. Its title is that of its card, for only a look at the whole entry tells
/// whether a title is markup.
fn version_fields(markup: &Markup) -> Option<Vec<Field<'static>>> {
    let mut fields = tidegate_format::parse::again(markup)?;
    let mut titles = fields.iter_mut().filter(|field| field.path == "title");
    if let (Some(title), None) = (titles.next(), titles.next()) {
        title.value = markup.card.title.clone().into();
    }
    Some(fields)
}

/// The values of each path, in document order.
fn by_path<'a>(fields: &'a [Field<'_>]) -> BTreeMap<&'a str, Vec<&'a str>> {
    let mut paths: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for field in fields {
        paths.entry(&field.path).or_default().push(&field.value);
    }
    paths
}

fn fields(old: &[Field<'_>], new: &[Field<'_>], budget: &mut CompareBudget) -> Differences {
    let is_html = |path: &str| (is_html(path, old), is_html(path, new));
    let (old, new) = (by_path(old), by_path(new));
    let mut paths: Vec<&str> = old.keys().chain(new.keys()).copied().collect();
    paths.sort_unstable_by_key(|path| (kind(path).0, *path));
    paths.dedup();
    let mut differences = Differences::default();
    for path in paths {
        let values = |side: &BTreeMap<&str, Vec<&str>>| {
            side.get(path).map(|values| values.join("\n")).unwrap_or_default()
        };
        let (old, new) = (values(&old), values(&new));
        if old == new {
            differences.same += 1;
        } else if differences.fields.len() >= FIELDS_LIMIT {
            differences.more += 1;
        } else {
            differences.fields.push(field(path, (&old, &new), is_html(path), budget));
        }
    }
    differences
}

/// A field that differs. `is_html`: whether each of the two values is HTML, where it is a text for
/// people.
fn field(
    path: &str,
    (old, new): (&str, &str),
    is_html: (bool, bool),
    budget: &mut CompareBudget,
) -> FieldDifference {
    let (_, name, is_text) = kind(path);
    let read = |value: &str, is_html: bool| {
        if is_text && is_html { visible(value) } else { value.to_owned() }
    };
    let (is_markup, (pieces, limit)) = match budget.allows(old, new, VALUE_LIMIT) {
        Err(limit) => (false, (Vec::new(), Some(limit))),
        Ok(()) => match (read(old, is_html.0), read(new, is_html.1)) {
            (before, after) if is_text && before == after => (true, compare(old, new, budget)),
            (before, after) => (false, compare(&before, &after, budget)),
        },
    };
    FieldDifference { name, path: path.to_owned(), is_markup, limit, pieces }
}

// What differs between two versions of an item, and what comparing them may take.

/// How long a comparison waits for its permit.
const PERMIT_WAIT: Duration = Duration::from_secs(15);

/// Two versions and what differs between them.
pub(super) struct VersionDifference {
    /// The older; `None`: the newest bytes, which are no version's.
    pub(super) old: Option<VersionNote>,
    /// The newer; `None` as for the older.
    pub(super) new: Option<VersionNote>,
    /// What differs; `None` where one of the two cannot be read.
    pub(super) differences: Option<Differences>,
}

impl VersionDifference {
    /// The same as data: what differs, field by field; null where one of the two cannot be read.
    pub(super) fn as_data(&self, subject: &Subject) -> Value {
        let differences = self.differences.as_ref();
        json!({
            "feed": subject.feed,
            "sync_id": subject.known.id,
            "old": version_name(self.old.as_ref()),
            "new": version_name(self.new.as_ref()),
            "fields": differences.map(|it| &it.fields),
            "same_fields": differences.map(|it| it.same),
            "more_fields": differences.map(|it| it.more),
        })
    }
}

/// Compares two versions. Nothing of them is read before there is a permit.
pub(super) async fn compare_versions(
    app: &AppState,
    subject: &Subject,
    old: VersionChoice,
    new: VersionChoice,
) -> Result<VersionDifference, Problem> {
    let permit = acquire_permit(app).await?;
    let (old_note, old) = bytes_of(app, subject, old).await?;
    let (new_note, new) = bytes_of(app, subject, new).await?;
    if let Some(tombstone) = [&old_note, &new_note].into_iter().flatten().find(|n| n.deleted) {
        let detail = format!(
            "version {} is a tombstone: the item was deleted, and no text of it is left to compare",
            tombstone.updates.value()
        );
        return Err(Problem::not_found(detail));
    }
    let (differences, _) = compare_on_thread(permit, (old, new), CompareBudget::WHOLE).await?;
    Ok(VersionDifference { old: old_note, new: new_note, differences })
}

/// What differs between two versions, where both can be read, within what is left of a budget.
pub(crate) async fn compared(
    app: &AppState,
    versions: (Markup, Markup),
    budget: &mut CompareBudget,
) -> Result<Option<Differences>, Problem> {
    let (differences, left) =
        compare_on_thread(acquire_permit(app).await?, versions, *budget).await?;
    *budget = left;
    Ok(differences)
}

/// Waits for a permit to compare, at most [`PERMIT_WAIT`].
async fn acquire_permit(app: &AppState) -> Result<OwnedSemaphorePermit, Problem> {
    let permit = Arc::clone(&app.comparisons).acquire_owned();
    let busy = |_| Problem::later("too many versions are compared just now; ask again soon");
    timeout(PERMIT_WAIT, permit).await.map_err(busy)?.map_err(|_| broken_off())
}

fn broken_off() -> Problem {
    Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "the comparison broke off")
}

/// Compares two versions on a blocking thread. Returns the rest of the budget as well.
async fn compare_on_thread(
    permit: OwnedSemaphorePermit,
    (old, new): (Markup, Markup),
    mut budget: CompareBudget,
) -> Result<(Option<Differences>, CompareBudget), Problem> {
    let comparing = tokio::task::spawn_blocking(move || {
        let _permit = permit;
        (versions(&old, &new, &mut budget), budget)
    });
    comparing.await.map_err(|_| broken_off())
}

/// What one of the two is called.
pub(super) fn version_name(note: Option<&VersionNote>) -> String {
    note.map_or_else(|| "newest".to_owned(), |note| note.updates.value().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(inner: &str) -> Markup {
        let names = "xmlns='http://www.w3.org/2005/Atom' xmlns:m='http://search.yahoo.com/mrss/'";
        crate::tests::first_entry(&format!("<feed {names}><entry>{inner}</entry></feed>"))
    }

    fn told(old: &str, new: &str) -> Vec<String> {
        let mut budget = CompareBudget::WHOLE;
        let differences = versions(&entry(old), &entry(new), &mut budget).unwrap();
        let told = differences.fields.iter().map(|field| {
            let pieces = field.pieces.iter().map(|piece| match piece {
                TextPiece::Same(text) => text.clone(),
                TextPiece::Deleted(text) => format!("[-{text}-]"),
                TextPiece::Inserted(text) => format!("[+{text}+]"),
                TextPiece::SkippedWords(words) => format!("[{words}]"),
            });
            let markup = if field.is_markup { " (markup)" } else { "" };
            format!("{}{markup}: {}", field.name, pieces.collect::<String>())
        });
        told.collect()
    }

    #[test]
    fn fields_are_told_apart_and_in_order() {
        let old = "<id>urn:1</id><updated>2026-01-01T00:00:00Z</updated><title>One two</title>\
                   <link href='http://a.example/'/><content>Some text</content>";
        let new = "<id>urn:1</id><updated>2026-01-02T00:00:00Z</updated><title>One three</title>\
                   <link href='http://b.example/'/><content>Some text</content>\
                   <link rel='enclosure' href='http://a.example/a.mp3'/>";
        let told = told(old, new);
        assert_eq!(told[0], "Title: One [-two-][+three+]");
        assert!(told.iter().any(|line| line.starts_with("Link: ")), "{told:?}");
        assert!(told.iter().any(|line| line.starts_with("Date: ")), "{told:?}");
        assert!(told.iter().all(|line| !line.starts_with("Text") && !line.starts_with("Id")));
        // Many fields are bounded.
        let many = |value: &str| {
            let fields = (0..FIELDS_LIMIT + 9).map(|n| format!("<m:x{n}>{value}</m:x{n}>"));
            fields.collect::<String>()
        };
        let mut budget = CompareBudget::WHOLE;
        let differences = versions(&entry(&many("a")), &entry(&many("b")), &mut budget).unwrap();
        assert_eq!((differences.fields.len(), differences.more), (FIELDS_LIMIT, 9));
    }

    #[test]
    fn text_is_compared_as_it_is_read_and_markup_only_where_nothing_else_differs() {
        let html = |text: &str| format!("<content type='html'>{text}</content>");
        let old = html("&lt;p&gt;a b&lt;/p&gt;");
        let new = html("&lt;p&gt;a &lt;i&gt;c&lt;/i&gt;&lt;/p&gt;");
        assert_eq!(told(&old, &new), ["Text: a [-b-][+c+]"]);
        let told = told(&old, &html("&lt;div&gt;a b&lt;/div&gt;"));
        assert_eq!(told.len(), 1);
        assert!(told[0].starts_with("Text (markup): ") && told[0].contains("<div>a"), "{told:?}");
        // Plain text is compared as it is written.
        let plain = |text: &str| format!("<content>{text}</content>");
        let (old, new) = (plain("if a &lt;b&gt; c"), plain("if a &lt;d&gt; c"));
        assert_eq!(self::told(&old, &new), ["Text: if a [-<b>-][+<d>+] c"]);
        // What was HTML and is plain text now, or the other way round.
        let html = "<content type='html'>&lt;p&gt;a b&lt;/p&gt;</content>";
        let told = self::told(html, &plain("a c"));
        assert!(told.contains(&"Text: a [-b-][+c+]".to_owned()), "{told:?}");
    }
}
