//! The HTML of conflicts. No scripts: what is chosen is sent as a form.

use super::{
    ConflictList, ConflictVersion, ConflictsForm, ITEMS_SHOWN, ItemInConflict, LOSERS_SHOWN,
    LosingVersion,
};
use crate::html::{cut, moment, outward, text};
use crate::{
    Problem, Reply, SentForm, ServedFeed, SharedState, Viewer, edit, item_page, items,
    sign_in_address,
};
use maud::{Markup, html};
use serde_json::Value;
use tidegate_core::model::{
    FeedName, Field, Format, Item, Markup as Bytes, SyncId, Version, counted,
};
use tidegate_core::xml::address::percent_encoded;
use tidegate_core::xml::doc::Doc;
use tidegate_format::parse::Amendment;
use tidegate_judge::news::{beginning, text_field};
use tidegate_judge::record::local::{Act, CheckedEntry, Resolution};

/// How much of a version's text is shown, in characters.
const EXCERPT: usize = 600;
/// The longest text that is put into the form for a new one, in bytes.
const PREFILLED: usize = 64 * 1024;

pub(super) fn conflicts(list: &ConflictList, form: ConflictsForm) -> Markup {
    let (feed, shown) = (&list.feed, &list.conflicts);
    html! {
        @if list.count == 0 {
            p { "No item of this feed is in conflict." }
        } @else {
            p.lead {
                (counted(list.count, "item"))
                @if list.count == 1 { " is" } @else { " are" } " in conflict. Somebody changed each of \
                 them elsewhere without knowing of the other change. Readers are shown the winner until \
                 it is decided; what you decide is a new version, so that nobody is asked again."
            }
            @if !form.may_decide {
                p.quiet { "The operator of this gateway decides." }
            } @else if form.is_signed_in {
                @if shown.len() > 1 { (all_winners(list)) }
            } @else {
                p.quiet {
                    a href=(sign_in_address(&format!("/feeds/{feed}/conflicts"))) { "Sign in once" }
                    " to decide without sending the token each time."
                }
            }
        }
        @for item in shown { (one(feed, item, form)) }
        @if let Some(last) = &list.last {
            p.links { a href={ "/feeds/" (feed) "/conflicts?after=" (percent_encoded(last.as_str())) } { "More" } }
        }
        p.quiet {
            "The same as data: this address with " code { "Accept: application/json" } "."
        }
    }
}

/// What names an item in a form, as it was when it was shown.
fn named(item: &ItemInConflict) -> Markup {
    html! {
        input type="hidden" name="item" value=(item.sync_id);
        input type="hidden" name="etag" value=(item.etag);
    }
}

/// What keeps the winner of every item that is shown.
fn all_winners(list: &ConflictList) -> Markup {
    html! {
        form.choices method="post" action={ "/feeds/" (list.feed) "/conflicts" } {
            @for item in &list.conflicts { (named(item)) }
            div.buttons {
                button name="keep" value="winners" { "Keep the winners of the " (list.conflicts.len()) " shown here" }
            }
            p.quiet { "Every item stays as readers see it now; what the others said is not kept here." }
        }
    }
}

fn one(feed: &FeedName, item: &ItemInConflict, form: ConflictsForm) -> Markup {
    html! {
        section.contest id={ "item-" (item.etag) } {
            h2 {
                a href=(item_page(feed, &item.sync_id)) { (title(&item.winner)) } " "
                span.badge.deleted { (counted(item.count, "conflict")) }
            }
            div.sides {
                div.side.winner {
                    p.quiet { "The winner, which readers are shown" }
                    (version(&item.winner))
                }
                @for loser in &item.conflicts {
                    div.side {
                        p.quiet { "In conflict, number " (loser.n + 1) }
                        (version(&loser.version))
                    }
                }
            }
            @if item.count > LOSERS_SHOWN {
                p.quiet {
                    "The first " (LOSERS_SHOWN) " are shown; what you decide is about all of them."
                }
            }
            @for loser in item.conflicts.iter().filter(|loser| loser.is_compared) {
                details open[loser.n == 0] {
                    summary { "From the winner to number " (loser.n + 1) }
                    (differing(&item.winner, loser))
                }
            }
            @if form.may_decide { (choices(feed, item, form)) }
        }
    }
}

fn differing(winner: &ConflictVersion, loser: &LosingVersion) -> Markup {
    let note = match (winner.deleted, loser.version.deleted) {
        (false, true) => "It is a deletion: taken, the item goes.",
        (true, false) => "The winner is a deletion: taken, the item lives again.",
        _ => return items::differing(loser.differences.as_ref()),
    };
    html! { p.note { (note) } }
}

/// A version: who made it and when, and what it says.
fn version(version: &ConflictVersion) -> Markup {
    let text = excerpt(&version.markup);
    html! {
        p.title { strong { (title(version)) } @if version.deleted { " " span.badge.deleted { "deleted" } } }
        p.when.quiet {
            "Update " (version.updates)
            @if let Some(by) = &version.by { " by " strong { (by) } }
            @if let Some(when) = version.when { " at " (moment(when)) }
        }
        @if version.link.is_some() || version.author.is_some() {
            p.quiet {
                @if let Some(author) = &version.author { (crate::html::text(author)) " " }
                @if let Some(link) = &version.link { (outward(Some(link), link)) }
            }
        }
        @if !text.is_empty() && !version.deleted { p.excerpt { (text) } }
    }
}

/// What can be done, each with what comes of it.
fn choices(feed: &FeedName, item: &ItemInConflict, form: ConflictsForm) -> Markup {
    // An outline's address and place are none of what a form asks for.
    let begins = item.begins.as_ref().filter(|begins| begins.format != Format::Opml);
    html! {
        form.choices method="post" action={ "/feeds/" (feed) "/conflicts" } {
            (named(item))
            @if !form.is_signed_in {
                label.token {
                    span { "Admin token" }
                    input type="password" name="token" required autocomplete="off" spellcheck="false";
                }
            }
            div.buttons {
                button name="keep" value="winner" { "Keep the winner" }
                @for loser in &item.conflicts {
                    button name="keep" value=(loser.n) {
                        @if loser.version.deleted { "Take the deletion, number " (loser.n + 1) }
                        @else { "Take number " (loser.n + 1) }
                    }
                }
            }
            p.quiet {
                "Keep the winner: it stays as it is, and the "
                @if item.count > 1 { "others go" } @else { "other goes" } ". "
                "Take a number: the item says what that version says. "
                "Either way a new version is made that knows of all of them, so that no endpoint sees a \
                 conflict in them any more. What the others said is not kept here."
            }
            @if item.begins.is_none() || begins.is_some() {
                @let written = begins.map(source).unwrap_or_default();
                details {
                    summary { "Write a new one" }
                    label { span { "Title" }
                        input type="text" name="title" value=(begins.map(|it| it.card.title.as_str()).unwrap_or_default()); }
                    label { span { "Text" } textarea name="content" rows="8" { (written.text) } }
                    label.inline {
                        input type="checkbox" name="html" value="yes" checked[written.is_html];
                        span { "The text is HTML" }
                    }
                    p.quiet { "The item says this from now on; everything else that it says stays." }
                    button name="keep" value="new" { "Publish this" }
                }
            }
        }
    }
}

/// The text of a version as it can be written anew.
#[derive(Default)]
pub(super) struct EditableText {
    pub(super) text: String,
    pub(super) is_html: bool,
}

pub(super) fn source(markup: &Bytes) -> EditableText {
    let fields = tidegate_format::parse::again(markup).unwrap_or_default();
    let Some((field, is_html)) = text_field(&fields) else { return EditableText::default() };
    if field.value.len() > PREFILLED {
        return EditableText { text: String::new(), is_html };
    }
    let text = as_written(markup, field).unwrap_or_else(|| field.value.clone().into_owned());
    EditableText { text, is_html }
}

/// The beginning of the text that a reader sees of a version, of plain text with its lines.
pub(crate) fn excerpt(markup: &Bytes) -> String {
    let source = source(markup);
    match source.is_html {
        true => beginning(markup, EXCERPT),
        false => cut(&source.text, EXCERPT),
    }
}

fn title(version: &ConflictVersion) -> String {
    match version.title.as_str() {
        "" => "without a title".to_owned(),
        title => text(title),
    }
}

// `POST /feeds/NAME/conflicts`: what a person chose on the page. Who is not signed in sends the admin token in the body,
// over the page's own origin; it is kept nowhere.

/// `POST /feeds/NAME/conflicts`.
pub(crate) async fn resolve(
    viewer: Viewer,
    record: ServedFeed,
    form: Result<SentForm, Problem>,
) -> Reply {
    let (feed, address) = (&record.name, format!("/feeds/{}/conflicts", record.name));
    let done = match form {
        Ok(form) if form.get("keep") == "winners" => keep_winners(&viewer.app, feed, &form).await,
        Ok(form) => resolve_one(&viewer.app, feed, &form).await,
        Err(problem) => Err(problem),
    };
    viewer.answer_form(feed, (&address, "Conflicts"), &address, done)
}

/// Does what a form says of one item.
async fn resolve_one(
    app: &SharedState,
    feed: &FeedName,
    form: &SentForm,
) -> Result<String, Problem> {
    let unknown = || Problem::not_found("there is no item of that sync id");
    let id = SyncId::new(form.get("item")).map_err(|_| unknown())?;
    let keep = match form.get("keep") {
        "winner" => Resolution::Winner,
        "new" => {
            let item = app.store.item(feed, &id).await?.ok_or_else(unknown)?;
            if is_outline(&item) {
                let detail = "an outline says more than a title and a text, which would be lost";
                return Err(Problem::parameter("keep", detail));
            }
            Resolution::New(written(form, &item)?)
        }
        number => match number.parse() {
            Ok(number) => Resolution::Conflict(number),
            Err(_) => return Err(Problem::parameter("keep", "nothing was chosen")),
        },
    };
    let expected = Some(form.get("etag").to_owned());
    let notice = format!("Resolved. The item {id} has a new version.");
    edit::apply_act(app, feed, Act::Resolve { id, keep, conflicts: None, expected }).await?;
    Ok(notice)
}

/// Keeps the winner of each item that the page showed, as it showed it, and says what came of it. An item that
/// changed since is left as it is.
async fn keep_winners(
    app: &SharedState,
    feed: &FeedName,
    form: &SentForm,
) -> Result<String, Problem> {
    let (mut kept, mut left) = (0_usize, 0_usize);
    for (id, etag) in form.all("item").zip(form.all("etag")).take(ITEMS_SHOWN) {
        let Ok(id) = SyncId::new(id) else { continue };
        let (keep, expected) = (Resolution::Winner, Some(etag.to_owned()));
        let act = Act::Resolve { id, keep, conflicts: None, expected };
        match edit::apply_act(app, feed, act).await {
            Ok(_) => kept += 1,
            Err(problem) if problem.status.is_client_error() => left += 1,
            Err(problem) => return Err(problem),
        }
    }
    let left = match left {
        0 => String::new(),
        left => format!(" {} changed meanwhile, or need nothing any more.", counted(left, "item")),
    };
    Ok(format!("The winners of {} were kept.{left}", counted(kept, "item")))
}

/// What a person wrote over the version that the form began with: what was not edited stays as it is.
fn written(form: &SentForm, item: &Item) -> Result<CheckedEntry, Problem> {
    let before = &first_living_version(item).unwrap_or(&item.shared.winner).data;
    let shown = source(before);
    let lines = |text: &str| text.trim().replace("\r\n", "\n");
    let (content, is_html) = (form.get("content"), form.get("html") == "yes");
    let is_same = lines(content) == lines(&shown.text) && is_html == shown.is_html;
    let text = (!is_same).then(|| (content.replace("\r\n", "\n"), is_html));
    let title = form.get("title").trim();
    let title = (title != before.card.title.trim()).then(|| title.to_owned());
    Ok(CheckedEntry::amended(before, Amendment { title, text, ..Amendment::default() })?)
}

// What kind of text a version has, and how it was written. Pure.

/// The version whose text a new one begins with: the winner, or, where that is a deletion, the first
/// of the others that is none.
pub(crate) fn first_living_version(item: &Item) -> Option<&Version<Bytes>> {
    let shared = &item.shared;
    std::iter::once(&shared.winner).chain(&shared.conflicts).find(|version| !version.deleted)
}

/// Whether an item is an outline of a list: its address and its place are none of what a form asks for.
pub(crate) fn is_outline(item: &Item) -> bool {
    first_living_version(item).is_some_and(|version| version.data.format == Format::Opml)
}

/// The text at a path as its author wrote it, with its lines: a field has the white space of its value
/// collapsed. `None` where that cannot be told.
fn as_written(markup: &Bytes, field: &Field<'_>) -> Option<String> {
    let text = match markup.format {
        Format::JsonFeed => {
            let item: Value = serde_json::from_str(&markup.xml).ok()?;
            item.get(&*field.path)?.as_str()?.to_owned()
        }
        _ => {
            let (doc, local) = (Doc::read_whole(&markup.xml)?, field.path.rsplit(':').next()?);
            doc.root()?.children().find(|child| child.local() == local)?.all_text()
        }
    };
    // Whatever was not read as the field was is not what it says.
    let is_same = text.split_whitespace().eq(field.value.split_whitespace());
    is_same.then(|| text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_format::parse;

    #[test]
    fn a_text_keeps_its_lines() {
        let atom = |content: &str| {
            let entry = format!("<entry><id>urn:1</id>{content}</entry>");
            format!("<feed xmlns='http://www.w3.org/2005/Atom'>{entry}</feed>")
        };
        let plain =
            atom("<content>\n One &amp; two\n\n  three &#x2014; <![CDATA[<four>]]>\n</content>");
        let html = atom("<content type='html'>&lt;pre&gt;a\nb&lt;/pre&gt;</content>");
        let xhtml = "<div xmlns='http://www.w3.org/1999/xhtml'><p>a\nb</p></div>";
        let xhtml = atom(&format!("<content type='xhtml'>{xhtml}</content>"));
        let rss = "<rss version='2.0'><channel><item><description>a\nb</description></item></channel></rss>";
        let media =
            "<item xmlns:m='http://search.yahoo.com/mrss/'><m:description>no</m:description>";
        let json = "{\"version\":\"https://jsonfeed.org/version/1.1\",\"title\":\"t\",\"items\":\
                    [{\"id\":\"1\",\"content_text\":\"a\\n b\"}]}";
        for (document, path, expected) in [
            (&*plain, "content", Some("One & two\n\n  three — <four>")),
            (&html, "content", Some("<pre>a\nb</pre>")),
            // Markup is not written as its text.
            (&xhtml, "content", None),
            (rss, "description", Some("a\nb")),
            // Another element stands before it.
            (&rss.replace("<item>", media), "description", None),
            (json, "content_text", Some("a\n b")),
        ] {
            let markup = crate::tests::first_entry(document);
            let fields = parse::again(&markup).unwrap();
            let field = fields.iter().find(|field| field.path == path).unwrap();
            assert!(!field.value.contains('\n'), "{field:?}");
            assert_eq!(as_written(&markup, field).as_deref(), expected, "{document}");
        }
    }
}
