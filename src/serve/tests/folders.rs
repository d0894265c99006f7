//! Folders of a list that was imported, on pages.

use super::*;
use tidegate_core::model::{ListFolder, ListPlace, OutlineLabel};

/// A reader's own list says where feeds stand and what they are called.
#[tokio::test]
async fn the_dashboard_has_the_folders_of_the_list() {
    let label = |text: &'static str| OutlineLabel::new(|name| (name == "text").then_some(text));
    let place = |folder, position| ListPlace {
        number: 0,
        folders: vec![ListFolder { position, label: label(folder) }],
        position: 0,
        label: label("My <news>"),
        site: None,
    };
    let store = TestStore::with_news();
    store.edit_record("news", |record| {
        record.enrolment.set_places(vec![place("Else", 1), place("A & <b>", 0)]);
    });
    let site = Site::over(store);
    let page = text(site.get("/").await).await;
    page.assert_shows(&[
        "<th class=\"folder\" colspan=\"6\" scope=\"colgroup\">A &amp; &lt;b&gt;</th>",
        "<a class=\"title\" href=\"/feeds/news/about\">My &lt;news&gt;</a>",
        "also in Else",
    ]);
    let told = json(site.call("GET", "/feeds/news", "").await).await;
    assert_eq!(told["listed"]["places"][1]["folder"][0], "A & <b>");
    assert_eq!(told["listed"]["places"][0]["title"], "My <news>");
}
