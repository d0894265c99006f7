//! A database that was restored from a copy, beside a gateway that starts too early.

use super::*;

/// A gateway that starts while the store is made a new incarnation.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_change_is_lost_to_a_new_incarnation() {
    let Some(schema) = TestSchema::new() else { return };
    let (one, two) = (open(&schema), open(&schema));
    let names: Vec<String> = (0..20).map(|number| format!("feed-{number:02}")).collect();
    for name in &names {
        commit(&two, name, "one").await;
    }
    one.catch_up().await.unwrap();
    let changing = async {
        let mut stored = BTreeSet::new();
        for name in &names {
            let draft = Draft::on(&two, name, 50).await;
            match two.commit(draft.item("a", "two").order(&["a"]).done()).await {
                Ok(_) => drop(stored.insert(name)),
                Err(error) => assert!(matches!(error, CommitError::Conflict(_)), "{error:?}"),
            }
        }
        stored
    };
    let (restarted, stored) = tokio::join!(one.reincarnate(), changing);
    assert_eq!(restarted.unwrap(), names.len());
    two.catch_up().await.unwrap();
    for name in &names {
        let state = two.state(&feed(name)).await.unwrap().unwrap();
        assert_eq!(state.revision.0, 1 + u64::from(stored.contains(name)), "{name}");
        let view = two.view(&feed(name), Select::All).await.unwrap().unwrap();
        let text = if stored.contains(name) { "<entry>two</entry>" } else { "<entry>one</entry>" };
        assert_eq!(view.items[0].shared.winner.data.xml, text, "{name}");
    }
}
