use super::support::{Gate, kinds};

fn feed(head: &str) -> String {
    let item = "<item><title>A</title><guid isPermaLink=\"false\">a</guid></item>";
    format!("<rss version=\"2.0\"><channel>{head}{item}</channel></rss>")
}

async fn tick(gate: &mut Gate, head: &str) -> bool {
    gate.later(1);
    let before = gate.store_state().await;
    let verdict = gate.take(&feed(head)).await;
    assert_eq!(kinds(&verdict), []);
    let after = gate.store_state().await;
    let ticked = after.tick > before.tick;
    assert_eq!(verdict.change.and_then(|change| change.tick).is_some(), ticked);
    assert!(!ticked || after.render_revision > before.render_revision);
    assert!(!ticked || after.updated_at > before.updated_at);
    ticked
}

#[tokio::test]
async fn a_head_is_told_no_more_often_than_a_day_may_have() {
    let mut gate = Gate::new().await;
    gate.versions_per_day = 1;
    gate.take(&feed("<title>One</title>")).await;
    assert!(tick(&mut gate, "<title>Two words</title>").await);
    assert!(!tick(&mut gate, "<title>Three other words</title>").await);
    assert_eq!(gate.later(1).same().await.change, None);
    let verdict = gate.later(24).same().await;
    assert!(verdict.change.unwrap().tick.is_some());
    assert_eq!(gate.same().await.change, None);
}

#[tokio::test]
async fn a_number_in_a_title_that_never_rests_is_no_news() {
    let mut gate = Gate::new().await;
    gate.take(&feed("<title>Inbox (1)</title>")).await;
    assert!(tick(&mut gate, "<title>Inbox (2)</title>").await);
    assert!(tick(&mut gate, "<title>Inbox (3)</title>").await);
    assert!(!tick(&mut gate, "<title>Inbox (4)</title>").await);
    assert!(!tick(&mut gate, "<title>Inbox (5)</title>").await);
    assert!(tick(&mut gate, "<title>Outbox (5)</title>").await);
}
