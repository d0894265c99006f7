//! What was said is still there, byte for byte, until it is redacted.

use super::make::*;
use crate::limits::WHOLE_EVERY;

on_every_store! {
    every_version_has_its_own_bytes
    a_view_of_the_past_is_what_it_was
    many_documents_of_the_past_are_read_back
    a_redacted_item_leaves_no_text
}

fn count(number: u32) -> Count {
    Count::new(number).unwrap()
}

/// Long enough to be packed, and mostly the same from one version to the next.
pub(super) fn telling(number: i64) -> String {
    let words: Vec<String> = (0..400).map(|word| format!("word{word}")).collect();
    format!("{} and {number} {}", words.join(" "), words.join("-"))
}

async fn every_version_has_its_own_bytes(mut store: StoreFixture) {
    let news = feed("news");
    let many = i64::from(WHOLE_EVERY) * 3 + 2;
    for seconds in 1..=many {
        let draft = edit(&store, seconds).await;
        let large = if seconds == 7 { "x".repeat(90_000) } else { telling(seconds) };
        let draft = if seconds % 5 == 0 { draft.tombstone("a") } else { draft.item("a", &large) };
        // A neighbour in the order of keys must not be taken for a version.
        let draft = draft.item("a1", "neighbour");
        draft.commit(&store).await;
    }
    for _ in 0..2 {
        let notes = store.versions(&news, &id("a"), usize::MAX).await.unwrap();
        assert_eq!(notes.len(), usize::try_from(many).unwrap());
        for (note, seconds) in notes.iter().rev().zip(1..) {
            let found = store.version(&news, &id("a"), note.updates).await.unwrap().unwrap();
            assert_eq!(found.note, *note);
            let text = if seconds == 7 { "x".repeat(90_000) } else { telling(seconds) };
            let bytes = (seconds % 5 != 0).then(|| markup(&text));
            let size = bytes.as_ref().map_or(0, |markup| markup.xml.len());
            assert_eq!(found.markup, bytes, "version {seconds}");
            assert_eq!(note.size, u64::try_from(size).unwrap());
            assert_eq!(note.shown, time(seconds));
            assert_eq!((&*note.title, &*note.reason), (&*format!("a {seconds}"), "a test"));
        }
        assert!(store.version(&news, &id("a"), count(9_999)).await.unwrap().is_none());
        assert!(store.version(&news, &id("b"), count(1)).await.unwrap().is_none());
        let kept = store.holdings(&news).await.unwrap();
        assert_eq!(kept.versions, u64::try_from(many).unwrap() * 2);
        assert!(kept.version_bytes > 0);
        store = store.reopen().await;
    }
}

async fn shown(store: &Store, select: PastSelect, seconds: i64) -> Vec<String> {
    let past = store.past(&feed("news"), select, time(seconds)).await.unwrap().unwrap();
    let Past::Then(view) = past else { panic!("{seconds}: {past:?}") };
    let around = view.skeleton.text.clone();
    let items = view.items.into_iter().map(|item| {
        let winner = item.shared.winner;
        assert_eq!(winner.history.topmost().sequence, winner.updates);
        let said = format!("{:?}", item.standing).to_lowercase();
        let standing = said.split([' ', '{']).next().filter(|word| *word != "current");
        let standing = standing.map_or_else(String::new, |word| format!(" {word}"));
        assert_eq!(winner.deleted, standing == " deleted");
        let title = winner.data.card.title.trim_start_matches("title ");
        format!("{}.{}{standing} {title}", winner.id, winner.updates.value())
    });
    std::iter::once(around).chain(items).collect()
}

async fn a_view_of_the_past_is_what_it_was(mut store: StoreFixture) {
    edit(&store, 10).await.item("a", "A").item("b", "B").order(&["b", "a"]).commit(&store).await;
    edit(&store, 15).await.latest("a", "latest").commit(&store).await;
    edit(&store, 20).await.item("a", "A2").around("other").commit(&store).await;
    let draft = edit(&store, 30).await.touch("b", ItemStatus::Retired { since: time(30) });
    let draft = draft.item("c", "C").order(&["c", "a"]);
    draft.commit(&store).await;
    edit(&store, 40).await.tombstone("a").order(&["c"]).commit(&store).await;
    edit(&store, 45).await.tombstone("a").commit(&store).await;
    edit(&store, 50).await.item("a", "A5").order(&["a", "c"]).commit(&store).await;
    for _ in 0..2 {
        for (at, around, current, all) in [
            (10, "<feed/>", "b.1 of B|a.1 of A", "a.1 of A|b.1 of B"),
            (19, "<feed/>", "b.1 of B|a.1 of A", "a.1 of A|b.1 of B"),
            (20, "other", "b.1 of B|a.2 of A2", "b.1 of B|a.2 of A2"),
            (35, "other", "c.1 of C|a.2 of A2", "b.1 retired of B|a.2 of A2|c.1 of C"),
            (40, "other", "c.1 of C", "b.1 retired of B|c.1 of C|a.3 deleted of A2"),
            (45, "other", "c.1 of C", "b.1 retired of B|c.1 of C|a.4 deleted of A2"),
            (9_999, "other", "a.5 of A5|c.1 of C", "b.1 retired of B|c.1 of C|a.5 of A5"),
        ] {
            let (current, all) = (format!("{around}|{current}"), format!("{around}|{all}"));
            assert_eq!(shown(&store, PastSelect::Current, at).await.join("|"), current, "{at}");
            assert_eq!(shown(&store, PastSelect::All, at).await.join("|"), all, "{at}");
        }
        // Bytes without a version are none of those before and after them.
        for (number, text) in [(1, "A"), (2, "A2")] {
            let version = store.version(&feed("news"), &id("a"), count(number)).await.unwrap();
            assert_eq!(version.unwrap().markup, Some(markup(text)));
        }
        let past = store.past(&feed("news"), PastSelect::All, time(35)).await.unwrap();
        let Some(Past::Then(view)) = past else { panic!("{past:?}") };
        assert_eq!((view.state.updated_at, view.state.tick), (time(30), Some(tick(30))));
        for select in [PastSelect::Current, PastSelect::All] {
            let past = store.past(&feed("news"), select, time(9)).await.unwrap();
            assert_eq!(past, Some(Past::Unknown { back_to: Some(time(10)) }));
        }
        store = store.reopen().await;
    }
}

async fn many_documents_of_the_past_are_read_back(store: StoreFixture) {
    let names: Vec<String> = (0..60).map(|n| format!("item-number-{n}")).collect();
    let rounds = i64::from(WHOLE_EVERY) * 2 + 5;
    let listed = |round: i64| -> Vec<&str> {
        let from = usize::try_from(round).unwrap();
        names.iter().skip(from % 20).take(30).map(String::as_str).collect()
    };
    for round in 1..=rounds {
        let mut draft = edit(&store, round * 10).await;
        if round == 1 {
            draft = names.iter().fold(draft, |draft, name| draft.item(name, name));
        }
        let draft = draft.around(&telling(round)).order(&listed(round));
        draft.commit(&store).await;
    }
    let store = store.reopen().await;
    for round in 1..=rounds {
        let past = store.past(&feed("news"), PastSelect::Current, time(round * 10 + 9)).await;
        let Some(Past::Then(view)) = past.unwrap() else { panic!("{round}") };
        assert_eq!(ids(&view), listed(round), "{round}");
        assert_eq!(view.skeleton.text, telling(round), "{round}");
    }
    let kept = store.holdings(&feed("news")).await.unwrap();
    assert_eq!(kept.documents, u64::try_from(rounds - 1).unwrap());
    assert_eq!(kept.back_to, Some(time(10)));
}

/// Everything that a store answers of `news`, as text.
async fn everything(store: &Store) -> String {
    let news = feed("news");
    let mut all = format!(
        "{:?} {:?} {:?}",
        store.snapshot(&news).await.unwrap(),
        store.view(&news, Select::All).await.unwrap(),
        store.events(&news, usize::MAX).await.unwrap(),
    );
    for name in ["a", "b", "dead"] {
        for note in store.versions(&news, &id(name), usize::MAX).await.unwrap() {
            let version = store.version(&news, &id(name), note.updates).await.unwrap();
            all.push_str(&format!("{note:?} {version:?}"));
        }
    }
    for seconds in 1..30 {
        for select in [PastSelect::Current, PastSelect::All] {
            let past = store.past(&news, select, time(seconds)).await.unwrap();
            all.push_str(&format!("{past:?}"));
        }
    }
    all
}

async fn a_redacted_item_leaves_no_text(store: StoreFixture) {
    edit(&store, 1).await.item("dead", "secret").commit(&store).await;
    edit(&store, 2).await.tombstone("dead").commit(&store).await;
    for (seconds, text) in (3..).zip(["secret one", "secret two", "latest secret", "secret four"]) {
        let draft = edit(&store, seconds).await.item("b", &format!("open {text}"));
        let draft = match text {
            "latest secret" => draft.latest("a", text),
            _ => draft.item("a", &format!("{text} {}", telling(seconds))),
        };
        let mut change = draft.order(&["a", "b"]).done();
        for event in change.events.iter_mut().filter(|event| event.id == id("a")) {
            event.title = text.to_owned();
            event.native_id = "title:secret".to_owned();
            event.old_native_id = Some("title:older secret".to_owned());
        }
        for known in change.known.iter_mut().filter(|known| known.id == id("a")) {
            known.title = text.to_owned();
        }
        store.commit(change).await.unwrap();
    }
    let before = everything(&store).await;
    assert!(before.contains("secret two") && before.contains("older secret"));
    let draft = edit(&store, 9).await.redact("a", "").redact("dead", "");
    draft.order(&["b"]).commit(&store).await;
    let store = store.reopen().await;
    let after = everything(&store).await;
    let rest = after.replace("open secret", "").replace("open latest secret", "");
    assert!(!rest.contains("secret"), "{rest}");
    assert!(after.contains("open secret two"), "another item lost its text");
    let item = store.item(&feed("news"), &id("a")).await.unwrap().unwrap();
    assert_eq!(item.standing, ItemStatus::Redacted { since: time(9) });
    assert!(item.shared.winner.deleted);
    let notes = store.versions(&feed("news"), &id("a"), 9).await.unwrap();
    assert_eq!(notes.len(), 4);
    assert!(notes.iter().all(|note| note.title.is_empty() && note.size == 0));
    // The past goes without them, the present has their tombstones.
    assert_eq!(shown(&store, PastSelect::Current, 5).await.len(), 2);
    assert_eq!(ids(&store.view(&feed("news"), Select::All).await.unwrap().unwrap()).len(), 3);
    // The feed goes on, and so does pruning.
    for seconds in 10..14 {
        edit(&store, seconds).await.item("b", &telling(seconds)).commit(&store).await;
    }
    let least = Retention { versions: 1, ..Retention::default() };
    store.prune(&feed("news"), &least, time(20)).await.unwrap();
    for name in ["a", "dead"] {
        let item = store.item(&feed("news"), &id(name)).await.unwrap().unwrap();
        assert_eq!(item.shared.winner.data, markup(""), "{name}");
    }
}
