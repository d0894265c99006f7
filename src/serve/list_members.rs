//! What a feed's page says of the subscription list that added it, and a list's page of its feeds.

use super::html::text;
use maud::{Markup, html};
use tidegate_core::model::counted;
use tidegate_status::{FeedStatus, ListNote, MemberNote};

/// What there is to say of lists.
pub(super) fn part(status: &FeedStatus) -> Markup {
    html! {
        @if let Some(note) = &status.list { p.quiet { "Of lists: " (membership(note)) "." } }
        @if let Some(note) = &status.feeds_of_list { (feeds(note)) }
    }
}

/// The list that added a feed; a private one is not named.
fn membership(note: &MemberNote) -> Markup {
    let (before, after) = note.around();
    html! {
        (before)
        @if note.is_private { "a private list" } @else {
            "the list " a href={ "/feeds/" (note.list) "/about" } { (note.list) }
        }
        (after)
    }
}

fn feeds(note: &ListNote) -> Markup {
    html! {
        h2 #feeds { "The feeds of the list" }
        @if let Some(error) = &note.error {
            p.bad { "They could not be brought up to date: " (text(error)) "." }
        }
        p {
            (counted(note.following, "feed")) @if note.following == 1 { " follows" } @else { " follow" }
            " the list: new ones are added, and what it renames or moves is renamed or moved."
            @if note.dropped > 0 {
                " " (note.dropped) " of them " @if note.dropped == 1 { "is" } @else { "are" }
                " paused, since the list no longer has "
                @if note.dropped == 1 { "it." } @else { "them." }
            }
            @if note.known > 0 {
                " " (note.known) " more "
                @if note.known == 1 { "was here already, and stays as it is." }
                @else { "were here already, and stay as they are." }
            }
        }
        @if !note.feeds.is_empty() {
            ul.found { @for name in &note.feeds {
                li { a href={ "/feeds/" (name) "/about" } { (name) } }
            } }
            @if note.following > note.feeds.len() {
                p.quiet { (note.feeds.len()) " of " (note.following) " are shown." }
            }
        }
        @if note.not_taken > 0 {
            h2 #not-added { "Not added" }
            div.wide { table {
                thead { tr { th { "Address" } th { "Why" } } }
                tbody { @for refused in &note.refused { tr {
                    td { (text(refused.address.as_deref().unwrap_or("none"))) }
                    td { (text(&refused.why)) "." }
                } } }
            } }
            @if note.not_taken > note.refused.len() {
                p.quiet { (note.refused.len()) " of " (note.not_taken) " are shown." }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_core::model::{FeedName, MemberStanding};
    use tidegate_status::RefusedFeed;

    #[test]
    fn a_private_list_is_neither_named_nor_linked() {
        let mut note = MemberNote {
            list: FeedName::new("ours").unwrap(),
            standing: MemberStanding::Dropped,
            is_followed: true,
            is_private: false,
        };
        let shown = membership(&note).into_string();
        assert_eq!(shown, "the list <a href=\"/feeds/ours/about\">ours</a> no longer has it");
        note.is_private = true;
        assert_eq!(membership(&note).into_string(), "a private list no longer has it");
    }

    #[test]
    fn what_is_refused_is_text() {
        let refused = RefusedFeed {
            address: Some("http://x/<script>".to_owned()),
            why: "it has <b>".to_owned(),
        };
        let note = ListNote {
            following: 60,
            dropped: 1,
            known: 2,
            not_taken: 9,
            refused: vec![refused],
            feeds: vec![FeedName::new("a").unwrap()],
            error: None,
        };
        let shown = feeds(&note).into_string();
        assert!(!shown.contains("<script>") && !shown.contains("<b>"), "{shown}");
        for part in
            ["60 feeds follow", "1 of them is paused", "2 more were", "1 of 60 are", "1 of 9 are"]
        {
            assert!(shown.contains(part), "{part}: {shown}");
        }
    }

    /// Whatever a list is called, also by a word of what is said.
    #[test]
    fn a_list_is_linked_where_it_is_named_and_a_private_one_is_not() {
        for name in ["it", "list", "private", "ours"] {
            let list = FeedName::new(name).unwrap();
            let standing = MemberStanding::Own;
            let mut note = MemberNote { list, standing, is_followed: true, is_private: false };
            let said = membership(&note).into_string();
            let link = format!(
                "the list <a href=\"/feeds/{name}/about\">{name}</a> added it; it was changed"
            );
            assert!(said.starts_with(&link), "{said}");
            note.is_private = true;
            assert_eq!(membership(&note).into_string(), note.words());
        }
    }
}
