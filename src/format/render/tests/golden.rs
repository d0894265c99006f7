//! Golden documents of each format and view, in `tests/golden`.

use super::build::{Feed, deleted};
use super::fixtures;
use crate::render::ViewKind;
use tidegate_core::model::{Format, Time};

/// The JSON Feed of the fixtures.
pub fn json_feed() -> Feed {
    Feed::new(Format::JsonFeed, fixtures::JSON)
}

/// The feed of every format.
pub fn all() -> Vec<(&'static str, Feed)> {
    vec![
        ("atom10", Feed::new(Format::Atom10, fixtures::ATOM10)),
        ("rss20", Feed::new(Format::Rss20, fixtures::RSS20)),
        ("rss091", Feed::new(Format::Rss09x, fixtures::RSS091)),
        ("rss10", Feed::new(Format::Rss10, fixtures::RSS10)),
        ("rss090", Feed::new(Format::Rss090, fixtures::RSS090)),
        ("atom03", Feed::new(Format::Atom03, fixtures::ATOM03)),
        ("json", json_feed()),
    ]
}

#[test]
fn every_format_and_view() {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("../../../../tests/golden");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| {
        for (name, mut feed) in all() {
            insta::assert_snapshot!(format!("{name}-reader"), feed.render(ViewKind::Reader));
            let last = feed.items.pop().unwrap();
            feed.items.push(deleted(last));
            feed.deleted = feed.items.last().cloned().into_iter().collect();
            insta::assert_snapshot!(format!("{name}-sync"), feed.render(ViewKind::Sync));
            feed.deleted.clear();
            insta::assert_snapshot!(format!("{name}-complete"), feed.render(ViewKind::Complete));
            let gone = feed.items.pop().unwrap();
            (feed.deleted, feed.history) = (vec![gone], super::history::place());
            insta::assert_snapshot!(format!("{name}-archive"), feed.reader());
        }
    });
}

#[test]
fn nothing_depends_on_anything_but_the_page() {
    for (_, mut feed) in all() {
        let before = feed.reader();
        feed.state.updated_at = Time::from_unix(super::build::NOW + 1);
        let after = feed.reader();
        let differ = before.bytes().zip(after.bytes()).filter(|(a, b)| a != b).count();
        assert_eq!((before.len(), differ), (after.len(), 1));
    }
}
