use super::features::{Feature, TellingText};
use super::pairs::{CandidatePair, DISTINCTIVE_WEIGHT, UNIQUE_WEIGHT};
use crate::rules::Rule;

pub(super) const RULE: Rule =
    Rule { name: "text", sentence: "a text of 60 units or more (of an entry without a title, 10)" };

/// Weighs the text of both that says most.
pub(super) fn weigh(candidate: &CandidatePair<'_>, texts: &[TellingText]) -> u8 {
    let shared = texts.iter().filter(|text| candidate.old.prints.contains(&text.print));
    let weigh = |TellingText { print, is_long, is_title, .. }: &TellingText| {
        let own = if *is_long { DISTINCTIVE_WEIGHT } else { UNIQUE_WEIGHT };
        // Whose texts are listed no more cannot be asked who else bears them.
        match candidate.is_own(&Feature::Text(*print)) {
            Some(true) if candidate.is_listed() => own,
            // Nor is a title then a second sign: what was announced long ago is announced again.
            Some(true) if !is_title => own - 1,
            _ => 0,
        }
    };
    shared.map(weigh).max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use crate::news;
    use crate::same_item::{entry_keys, item_keys, matching};
    use crate::testing::{read, rss};
    use tidegate_core::model::{
        FeedOptions, Format, Ignore, ItemStatus, LedgerEntry, Snapshot, Time,
    };

    #[test]
    fn a_text_is_told_by_what_the_operator_does_not_ignore() {
        let text = |id: &str, views: u32| {
            let words = "Some words that say what nothing else says. ".repeat(6);
            rss(&format!(
                "<item><guid isPermaLink='false'>{id}</guid>\
                 <pubDate>Thu, 01 Jan 2026 00:00:00 GMT</pubDate>\
                 <description>{words}{views} views</description></item>"
            ))
        };
        let (old, new) = (text("urn:a", 1), text("urn:b", 2));
        let (old, new) = (read(&old), read(&new));
        let ignore = vec![Ignore::new("description", Some("[0-9]+ views")).unwrap()];
        let options = FeedOptions { ignore, ..FeedOptions::default() };
        let known = LedgerEntry {
            standing: ItemStatus::Current,
            prints: news::fingerprint(&old.entries[0], &options.ignore).prints,
            ..LedgerEntry::left("urn:a")
        };
        let keys = item_keys(&known);
        let finds = |ignore: &[Ignore]| {
            entry_keys(&new.entries[0], "urn:b", ignore).iter().any(|key| keys.contains(key))
        };
        assert!(finds(&options.ignore) && !finds(&[]));
        let first = Snapshot::untouched(Format::Rss20, Time::from_unix(1_767_300_000));
        let order = vec![known.id.clone()];
        let snapshot = Snapshot { known: vec![known], order, ..first };
        let pairs = |options: &FeedOptions| matching(&snapshot, &new, options).pairs.len();
        assert_eq!((pairs(&options), pairs(&FeedOptions::default())), (1, 0));
    }
}
