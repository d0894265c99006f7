//! What administration and pages answer, word for word: the JSON of each answer as it goes out.

use super::*;
use std::collections::HashSet;
use tidegate_core::model::{FeedName, SyncId};
use tidegate_judge::record::LeftOut;

/// A site whose feed has everything that can be said of one.
fn full() -> Site {
    let site = Site::new();
    let feed = |text: &str| FeedName::new(text).unwrap();
    site.store.edit_record("news", |record| {
        record.options.min_interval = Some(Duration::from_secs(300));
        record.options.sharing.sources = vec![feed("other"), feed("new")];
    });
    let left_out = LeftOut {
        source: feed("other"),
        id: SyncId::new("a").unwrap(),
        why: "it is <q>too</q> long".to_owned(),
    };
    let gathered = &site.room.operator.gathered;
    gathered.took(&feed("news"), &HashSet::new(), vec![left_out]);
    gathered.failed(&feed("news"), "the store is <i>full</i>".to_owned());
    site.store.edit("news", |feed| {
        feed.state.hold = Some(doubles::hold("the document is <u>empty</u>"));
    });
    site
}

/// How markup begins that only others wrote, and what no page has.
const NEVER: &str = "<script <u> <s> <i> <b> <q> <tt> <em> <kbd> <samp> <dfn> <code>no <cite> ?<b> \
                     secret style= =\"javascript: <time>";

#[tokio::test]
async fn the_answers_of_administration() {
    let site = full();
    for (name, method, path, body) in [
        ("feeds", "GET", "/feeds", ""),
        ("feed", "GET", "/feeds/news", ""),
        ("item", "GET", "/feeds/news/items/a", ""),
        ("tombstone", "GET", "/feeds/news/items/gone", ""),
        ("conflicts", "GET", "/feeds/news/conflicts", ""),
        ("poll", "POST", "/feeds/radio/poll", ""),
        ("redacted", "POST", "/feeds/news/items/a/redact", ""),
        ("deleted", "DELETE", "/feeds/news/items/b", ""),
    ] {
        // From here on they act.
        if name == "poll" {
            site.store.edit_record("news", |record| record.options.sharing.local = true);
            site.polling.start().await;
        }
        let answer = site.call(method, path, body).await;
        insta::assert_snapshot!(name, text(answer).await);
    }
}

#[tokio::test]
async fn the_pages() {
    let site = full();
    for (name, path) in [
        ("dashboard", "/"),
        ("about", "/feeds/news/about"),
        ("item_page", "/feeds/news/items/a"),
        ("tombstone_page", "/feeds/news/items/gone"),
        ("conflicts_page", "/feeds/news/conflicts"),
    ] {
        let page = text(site.get(path).await).await;
        page.assert_lacks(&NEVER.split(' ').collect::<Vec<_>>());
        insta::assert_snapshot!(name, page);
    }
    let public = site.get_with("/feeds/news/items/gone", &[("accept", "application/json")]).await;
    insta::assert_snapshot!("tombstone_for_everybody", text(public).await);
    // The values of a label stand in no order.
    let metrics = text(site.get("/metrics").await).await;
    // Nor is the process the same each time; and what pages weigh is no matter of this.
    let varies = ["process_", "tidegate_cache_bytes", "tidegate_http_sent_bytes_total"];
    let without_value = |line: &str| {
        let (name, value) = line.rsplit_once(' ')?;
        varies.iter().find(|varies| name.starts_with(**varies))?;
        assert!(value.parse::<f64>().is_ok_and(|value| value >= 0.0), "{line}");
        Some(format!("{name} …"))
    };
    let lines = metrics.lines().map(|line| without_value(line).unwrap_or_else(|| line.to_owned()));
    let mut lines: Vec<String> = lines.collect();
    lines.sort_unstable();
    insta::assert_snapshot!("metrics", lines.join("\n"));
}
