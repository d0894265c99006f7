//! What a feed's head says to a reader, and when a change of that is told to those who follow changes.

use super::draft::ChangeDraft;
use super::rate_limited::{DAY, admits, count};
use crate::news;
use tidegate_core::model::{FeedDocument, Head, Time};
use xxhash_rust::xxh3::Xxh3;

/// A fingerprint of what a reader sees of a head: title, subtitle, link, language, image and author.
/// Stamps, generator, intervals and counters are no part of it, and neither is a number, a date or a token in the
/// title or the line below it; never 0.
pub(super) fn print(head: &Head) -> u64 {
    let seen = |text: &Option<String>| news::visible(text.as_deref().unwrap_or_default());
    let mut hash = Xxh3::new();
    for text in [&head.title, &head.subtitle] {
        hash.update(&news::text_shape(&seen(text)).to_le_bytes());
    }
    let image = head.image.as_deref().unwrap_or_default();
    // Behind the path of an image stand its size and its version.
    let image = image.split(['?', '#']).next().unwrap_or_default();
    for address in [head.link.as_deref().unwrap_or_default(), image] {
        hash.update(news::address(address).as_bytes());
        hash.update(&[0]);
    }
    hash.update(head.language.as_deref().unwrap_or_default().to_ascii_lowercase().as_bytes());
    hash.update(&[0]);
    hash.update(seen(&head.author).as_bytes());
    hash.digest().max(1)
}

/// Takes in the head of a document, and tells a change of it where that may be told now.
pub(super) fn take_in(draft: &mut ChangeDraft<'_>, head: &Head) {
    let told = &mut draft.state.told;
    told.latest = print(head);
    // Fingerprints of another scheme say nothing of a change.
    if told.told == 0 || told.scheme != news::SCHEME {
        (told.scheme, told.told) = (news::SCHEME, told.latest);
    }
    tell(draft);
}

/// Tells what the head says where that is not told yet and the day has not had as many changes as a
/// day may have.
pub(super) fn tell(draft: &mut ChangeDraft<'_>) {
    let (now, limit) = (draft.round.aged, draft.round.versions_per_day);
    let told = &mut draft.state.told;
    if told.told == told.latest || !admits(told.made, now, limit) {
        return;
    }
    told.made = Some(count(told.made, now));
    told.told = told.latest;
    draft.tells_head = true;
}

/// When a change of the head that waits is told.
pub(super) fn due(draft: &ChangeDraft<'_>) -> Option<Time> {
    let told = &draft.state.told;
    told.made.filter(|_| told.told != told.latest).map(|made| made.since.plus(DAY))
}

/// What the skeleton says, without the stamp that the gateway replaces.
pub(super) fn skeleton_print(document: &FeedDocument<'_>) -> u64 {
    let skeleton = &document.skeleton;
    let text = skeleton.text.as_str();
    let mut hash = Xxh3::new();
    match &skeleton.slots.updated {
        Some(stamp) => {
            hash.update(text.get(..stamp.start).unwrap_or(text).as_bytes());
            hash.update(text.get(stamp.end..).unwrap_or_default().as_bytes());
        }
        None => hash.update(text.as_bytes()),
    }
    hash.digest()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn head(change: impl Fn(&mut Head)) -> u64 {
        let text = |text: &str| Some(text.to_owned());
        let mut head = Head {
            title: text("News"),
            subtitle: text("1203 readers"),
            link: text("https://example.org/"),
            language: text("en"),
            image: text("https://example.org/a.png?v=1"),
            author: text("Ann"),
            ..Head::default()
        };
        change(&mut head);
        print(&head)
    }

    #[test]
    fn what_a_reader_sees_counts_and_the_rest_does_not() {
        let same = head(|_| {});
        let text = |text: &str| Some(text.to_owned());
        for (what, other) in [
            ("title", head(|h| h.title = text("Olds"))),
            ("subtitle", head(|h| h.subtitle = text("1203 writers"))),
            ("link", head(|h| h.link = text("https://example.org/news"))),
            ("language", head(|h| h.language = text("de"))),
            ("image", head(|h| h.image = text("https://example.org/b.png"))),
            ("author", head(|h| h.author = None)),
        ] {
            assert_ne!(same, other, "{what}");
        }
        assert_eq!(same, head(|h| h.updated = Some(Time::from_unix(1))));
        assert_eq!(same, head(|h| h.generator = text("x")));
        assert_eq!(same, head(|h| h.hints.ttl = Some(Duration::from_secs(60))));
        assert_eq!(same, head(|h| h.subtitle = text("1204 readers")));
        assert_eq!(head(|h| h.title = text("3 new")), head(|h| h.title = text("4 new")));
        assert_eq!(same, head(|h| h.link = text("http://example.org/")));
        assert_eq!(same, head(|h| h.title = text("<b>News</b>")));
        assert_eq!(same, head(|h| h.image = text("https://example.org/a.png?v=2")));
    }
}
