//! What a feed's head says to a reader, and when a change of that is told to those who follow changes.

use super::draft::ChangeDraft;
use super::rate_limited::{admits, count};
use crate::{DAY, news};
use tidegate_core::model::{FeedDocument, Head, Time};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

/// A fingerprint of what a reader sees of a head: title, subtitle, link, language, image and author.
/// Stamps, generator, intervals and counters are no part of it; never 0.
pub(super) fn print(head: &Head) -> u64 {
    joined(head, |title| xxh3_64(title.as_bytes()))
}

/// The same but for numbers, dates and tokens in the title.
fn shape(head: &Head) -> u64 {
    joined(head, news::text_shape)
}

fn joined(head: &Head, title: impl Fn(&str) -> u64) -> u64 {
    let seen = |text: &Option<String>| news::visible(text.as_deref().unwrap_or_default());
    let mut hash = Xxh3::new();
    hash.update(&title(&seen(&head.title)).to_le_bytes());
    // A number alone in the line below the title is a counter or a date.
    hash.update(&news::text_shape(&seen(&head.subtitle)).to_le_bytes());
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
    let now = draft.observation.running_now;
    let (print, shape) = (print(head), shape(head));
    let told = &mut draft.state.told;
    // Fingerprints of another scheme say nothing of a change.
    if told.told == 0 || told.scheme != news::SCHEME {
        told.scheme = news::SCHEME;
        (told.told, told.latest, told.shape) = (print, print, shape);
        return;
    }
    if print != told.latest {
        let in_a_row = told.last.is_some_and(|last| now.since(last) <= news::ROW_GAP);
        if shape == told.shape {
            told.row = if in_a_row { told.row.saturating_add(1) } else { 1 };
            told.last = Some(now);
        } else {
            (told.row, told.last) = (0, None);
        }
        (told.latest, told.shape) = (print, shape);
        if told.row >= news::PROOF {
            told.told = print;
        }
    }
    tell(draft);
}

/// Tells what the head says where that is not told yet and the day has not had as many changes as a
/// day may have.
pub(super) fn tell(draft: &mut ChangeDraft<'_>) {
    let (now, limit) = (draft.observation.running_now, draft.observation.versions_per_day);
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
        assert_eq!(same, head(|h| h.link = text("http://example.org/")));
        assert_eq!(same, head(|h| h.title = text("<b>News</b>")));
        assert_eq!(same, head(|h| h.image = text("https://example.org/a.png?v=2")));
    }
}
