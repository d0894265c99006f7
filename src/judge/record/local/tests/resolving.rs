//! Resolving conflicts (SSE 1.0 section 3.4).

use super::*;

fn resolve(id: &SyncId, keep: Resolution) -> Act {
    Act::Resolve { id: id.clone(), keep, conflicts: None, expected: None }
}

fn titles(item: &Shared<Markup>) -> (String, Vec<String>) {
    let title = |version: &Version<Markup>| version.data.card.title.clone();
    (title(&item.winner), item.conflicts.iter().map(title).collect())
}

/// Whoever has a version that was resolved is not asked again.
async fn is_settled(bench: &Bench, id: &SyncId, before: &Shared<Markup>) {
    let now = bench.shared(id).await;
    for version in std::iter::once(&before.winner).chain(&before.conflicts) {
        let merged = sync::merge(now.clone(), Shared::new(version.clone())).unwrap();
        assert_eq!(merged, now, "{:?}", version.history);
        let there = sync::merge(Shared::new(version.clone()), now.clone()).unwrap();
        assert_eq!(there, now);
    }
}

#[tokio::test]
async fn the_winner_is_kept_and_nobody_is_asked_twice() {
    let bench = Bench::new().await;
    let id = bench.contested().await;
    let before = bench.shared(&id).await;
    assert_eq!(titles(&before).1.len(), 2, "{:?}", titles(&before));
    assert_eq!(bench.known(&id).await.conflicts, 2);
    let done = bench.act(resolve(&id, Resolution::Winner)).await.unwrap();
    assert_eq!((done.conflicts, done.updates), (0, before.winner.updates.next().unwrap()));
    let after = bench.shared(&id).await;
    assert_eq!(titles(&after), (titles(&before).0, Vec::new()));
    assert_eq!(bench.known(&id).await.conflicts, 0);
    assert!(bench.snapshot().await.unwrap().conflicts.is_empty());
    is_settled(&bench, &id, &before).await;
    assert_eq!(bench.act(resolve(&id, Resolution::Winner)).await, Err(ActError::NoConflict));
    let events = bench.store.events(&bench.feed, 1).await.unwrap();
    assert_eq!(events[0].reason, "a conflict with 2 versions was resolved: the winner was kept");
}

#[tokio::test]
async fn a_loser_is_taken_or_a_new_text_written() {
    for number in 0..2 {
        let bench = Bench::new().await;
        let id = bench.contested().await;
        let before = bench.shared(&id).await;
        let wanted = before.conflicts[number].data.clone();
        bench.act(resolve(&id, Resolution::Conflict(number))).await.unwrap();
        // It says when it came to say so, and else what it said.
        let taken = bench.item(&id).await.shared.winner.data;
        let updated = bench.known(&id).await.updated;
        assert!(updated > wanted.card.updated, "{updated:?}");
        let dated = tidegate_format::parse::Amendment { updated, ..Default::default() };
        assert_eq!(Some(taken), tidegate_format::parse::amended_markup(&wanted, &dated));
        assert_eq!(bench.known(&id).await.title, wanted.card.title);
        is_settled(&bench, &id, &before).await;
    }
    let bench = Bench::new().await;
    let id = bench.contested().await;
    let before = bench.shared(&id).await;
    bench.act(resolve(&id, Resolution::New(written("agreed")))).await.unwrap();
    assert_eq!(bench.titles().await, ["agreed"]);
    assert_eq!(bench.known(&id).await.title, "agreed");
    is_settled(&bench, &id, &before).await;
}

#[tokio::test]
async fn a_part_is_resolved_and_the_others_stay() {
    let bench = Bench::new().await;
    let id = bench.contested().await;
    let before = bench.shared(&id).await;
    let part = Act::Resolve {
        id: id.clone(),
        keep: Resolution::Winner,
        conflicts: Some(vec![0]),
        expected: None,
    };
    let done = bench.act(part).await.unwrap();
    assert_eq!(done.conflicts, 1);
    let after = bench.shared(&id).await;
    assert_eq!(after.conflicts, before.conflicts[1..]);
    assert_eq!(bench.known(&id).await.conflicts, 1);
    let events = bench.store.events(&bench.feed, 1).await.unwrap();
    assert!(events[0].reason.ends_with("; 1 more stay in conflict"), "{}", events[0].reason);
}

#[tokio::test]
async fn a_page_that_is_old_resolves_nothing() {
    let bench = Bench::new().await;
    let id = bench.contested().await;
    let seen = tag(&bench.shared(&id).await);
    let act = |tag: &str| Act::Resolve {
        id: id.clone(),
        keep: Resolution::Winner,
        conflicts: None,
        expected: Some(tag.to_owned()),
    };
    // Somebody else's loser comes in, and the winner stays as it was.
    let start = bench.shared(&id).await;
    let mut fork = Shared::new(start.conflicts[1].clone());
    sync::update(&mut fork, text("of four"), Stamp::By(EndpointId::new("a").unwrap())).unwrap();
    bench.merge(fork).await;
    let refused = bench.act(act(&seen)).await;
    assert!(matches!(refused, Err(ActError::Stale { .. })), "{refused:?}");
    let seen = tag(&bench.shared(&id).await);
    bench.act(act(&seen)).await.unwrap();
    let wrong = bench.act(resolve(&bench.contested().await, Resolution::Conflict(9))).await;
    assert!(matches!(wrong, Err(ActError::Sync(SyncError::NoSuchConflict { .. }))));
}

#[tokio::test]
async fn a_deletion_in_conflict_can_be_taken_and_a_winner_that_is_one_undone() {
    let bench = Bench::new().await;
    let id = bench.create("first").await;
    let start = bench.shared(&id).await;
    let mut fork = start.clone();
    sync::delete(&mut fork, stamp(&bench.clock, "one")).unwrap();
    let act = change(&id, ItemAct::Update(written("ours")));
    bench.act(act).await.unwrap();
    bench.merge(fork).await;
    let before = bench.shared(&id).await;
    assert!(!before.winner.deleted && before.conflicts[0].deleted);
    let done = bench.act(resolve(&id, Resolution::Conflict(0))).await.unwrap();
    assert!(done.deleted);
    assert!(bench.titles().await.is_empty());
    assert_eq!(bench.item(&id).await.shared.winner.data.card.title, "ours", "the last bytes stay");
    is_settled(&bench, &id, &before).await;

    // The other way round: a deletion wins, and the loser is taken.
    let bench = Bench::new().await;
    let id = bench.create("first").await;
    let mut fork = bench.shared(&id).await;
    sync::update(&mut fork, text("of one"), stamp(&bench.clock, "one")).unwrap();
    bench.act(change(&id, ItemAct::Delete)).await.unwrap();
    bench.merge(fork).await;
    assert!(bench.titles().await.is_empty());
    let done = bench.act(resolve(&id, Resolution::Conflict(0))).await.unwrap();
    assert!(!done.deleted);
    assert_eq!(bench.titles().await, ["of one"]);
    let events = bench.store.events(&bench.feed, 1).await.unwrap();
    assert_eq!(events[0].kind, EventKind::Undeleted);
}

/// FeedSync section 3.2 step 4.
#[tokio::test]
async fn an_update_takes_in_what_this_endpoint_lost_itself() {
    let bench = Bench::new().await;
    let id = bench.create("first").await;
    let start = bench.shared(&id).await;
    let update = |title: &str| change(&id, ItemAct::Update(written(title)));
    bench.act(update("ours")).await.unwrap();
    let mut fork = start;
    for title in ["of one", "of one again"] {
        sync::update(&mut fork, text(title), stamp(&bench.clock, "one")).unwrap();
    }
    bench.merge(fork).await;
    let before = bench.shared(&id).await;
    assert_eq!(titles(&before), ("of one again".to_owned(), vec!["ours".to_owned()]));
    let done = bench.act(update("after all")).await.unwrap();
    assert_eq!(done.conflicts, 0);
    is_settled(&bench, &id, &before).await;
}

/// What is in conflict with an item of another publisher can be resolved too.
#[tokio::test]
async fn conflicts_of_every_feed_can_be_resolved() {
    let mut bench = Bench::new().await;
    let id = bench.contested().await;
    bench.options.sharing.local = false;
    let before = bench.shared(&id).await;
    let mut snapshot = bench.snapshot().await.unwrap();
    snapshot.known[0].origin = Origin::Upstream;
    let (verdict, _) =
        super::super::act(&bench.round(Some(&snapshot)), &resolve(&id, Resolution::Winner))
            .unwrap();
    bench.store.commit(verdict.change.unwrap()).await.unwrap();
    is_settled(&bench, &id, &before).await;
}
