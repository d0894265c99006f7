//! Local feeds, and feeds of several.

use super::*;

#[test]
fn local_feeds_and_aggregates_say_how_they_share() {
    let text = "[[feed]]\nname=\"notes\"\nlocal=true\ntitle=\"Our notes\"\n\
                shares_with=[\"news\"]\nconflicts=\"prefer:gate.example\"\n\
                [[feed]]\nname=\"news\"\nurl=\"http://a\"\nconflicts=\"winner\"\n\
                [[aggregate]]\nname=\"inner\"\nsources=[\"news\"]\n\
                [[aggregate]]\nname=\"all\"\nsources=[\"notes\",\"inner\"]\ntitle=\"All\"";
    let config = good(text);
    let (notes, news) = (&config.feeds[0].record, &config.feeds[1].record);
    assert!(!notes.has_upstream() && notes.options.sharing.local);
    assert_eq!(notes.options.sharing.title.as_deref(), Some("Our notes"));
    assert_eq!(notes.options.sharing.shares_with, std::slice::from_ref(&news.name));
    assert_eq!(notes.options.sharing.conflicts.to_string(), "prefer:gate.example");
    assert_eq!(news.options.sharing.conflicts, ConflictPolicy::Winner);
    let all = &config.feeds[3].record;
    assert!(!all.has_upstream() && all.options.sharing.is_aggregate());
    assert_eq!(all.options.sharing.sources.len(), 2);
}

#[test]
fn what_a_feed_without_an_upstream_does_not_do_is_named() {
    let text = "[[feed]]\nname=\"own\"\nlocal=true\ndeletions=\"eager\"\nmin_interval=\"1h\"\n\
                [[feed]]\nname=\"both\"\nlocal=true\nurl=\"http://a\"\nmin_interval=\"1h\"";
    let Checked { config, warnings, .. } = check("f", text).unwrap();
    assert_eq!(config.feeds.len(), 2);
    let said: Vec<String> = warnings.iter().map(Fault::to_string).collect();
    let words = "does nothing: a feed with local = true and no url has no upstream to poll";
    let expected =
        [format!("f:4: feed.deletions: {words}"), format!("f:5: feed.min_interval: {words}")];
    assert_eq!(said, expected);
}
