//! What makes a version and what does not: counters, masks, the cap, the operator's own.

use crate::support::prelude::*;

use proptest::prelude::*;
use tidegate_core::model::EventKind::*;

async fn begun() -> (Gate, Vec<Post>) {
    let mut gate = Gate::new().await;
    let posts = days(1..=8);
    gate.posts(&posts).await;
    (gate, posts)
}

/// By its published id what is served of each item.
async fn shown(gate: &Gate) -> HashMap<String, String> {
    let items = gate.items(Select::All).await.into_iter();
    items.map(|item| (item.published_id, item.shared.winner.data.xml)).collect()
}

#[tokio::test]
async fn what_waits_comes_out_with_a_document_and_before_an_item_leaves() {
    let (mut gate, mut posts) = begun().await;
    gate.versions_per_day = 1;
    for title in ["one", "two"] {
        posts[0].title = title.to_owned();
        posts[7].title = title.to_owned();
        gate.later(1).posts(&posts).await;
    }
    let oldest = posts.pop().unwrap();
    posts.insert(0, post(9));
    let verdict = gate.later(1).posts(&posts).await;
    // Nobody would see it later: it is told, and in an archive, before it leaves.
    assert_eq!(kinds(&verdict), [Created, Updated, Retired]);
    let known = gate.known(&oldest.id).await;
    assert_eq!((known.updates.value(), known.title.as_str()), (3, "two"));
    assert!(gate.store_state().await.archives.is_sealed(known.tick));
    gate.later(24);
    posts[3].title.push_str(", corrected");
    assert_eq!(kinds(&gate.posts(&posts).await), [Updated, Updated]);
    let known = gate.known(&oldest.id).await;
    assert_eq!((known.updates.value(), known.title.as_str()), (3, "two"));
    assert!(matches!(known.standing, tidegate_core::model::ItemStatus::Retired { .. }));
}

#[tokio::test]
async fn another_list_of_the_operators_is_no_change() {
    let (mut gate, mut posts) = begun().await;
    let lists = [
        vec![Ignore::new("title", None).unwrap()],
        vec![Ignore::new("content", Some("[0-9]+")).unwrap()],
        vec![],
        vec![Ignore::new("content", Some("day [0-9]+")).unwrap()],
    ];
    for (n, list) in lists.into_iter().enumerate() {
        gate.options.ignore = list;
        // One of the posts changes in what nobody sees, one in what everybody sees.
        posts[6].extra = format!("<rights type=\"{n}\"/>");
        posts[7].title = format!("{} corrected", posts[7].title);
        posts[7].text.push_str(" Corrected.");
        assert_eq!(kinds(&gate.later(1).posts(&posts).await), [Updated], "list {n}");
        assert_eq!(gate.known(&posts[6].id).await.updates.value(), 1);
    }
}

#[tokio::test]
async fn a_template_change_with_one_real_edit_inside() {
    // A template that no reader sees: the edit comes out alone, at once.
    let (mut gate, mut posts) = begun().await;
    for p in &mut posts {
        p.text = format!("&lt;span class=\"new\"&gt;{}&lt;/span&gt;", p.text);
    }
    posts[5].text.push_str(" It was otherwise.");
    let verdict = gate.later(1).posts(&posts).await;
    assert_eq!((kinds(&verdict), verdict.held.clone()), (vec![Updated], None));
    assert_eq!(verdict.events()[0].title, posts[5].title);
    let unseen = gate.known(&posts[0].id).await.noise.unseen.unwrap();
    assert_eq!(unseen.classes.iter().collect::<Vec<_>>(), [NoiseClass::Markup]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// The latest bytes are always served, version or not; and what a subscriber was told last is
    /// the item as it stands, when everything has rested.
    #[test]
    fn the_newest_bytes_are_served_and_the_last_state_comes_out(
        steps in proptest::collection::vec((0_usize..8, 0_u8..7, 0_u32..4, 0_i64..30), 1..40),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (mut gate, mut posts) = begun().await;
            gate.versions_per_day = 2;
            for (at, what, n, hours) in steps {
                let p = &mut posts[at];
                match what {
                    0 => p.title = format!("Title ({n} views)"),
                    1 => p.title = format!("Title {}", ["a", "b", "c", "d"][n as usize]),
                    2 => p.text = format!("Rated {n} by {} people", n * 7 % 5),
                    3 => p.text = format!("It says {}", ["a", "b", "c", "d"][n as usize]),
                    4 => p.extra = format!("<views xmlns=\"urn:v\">{n}</views>"),
                    5 => p.link = format!("http://publisher.example/read?session=x{n}"),
                    _ => p.extra = format!("<rights>{n}</rights>"),
                }
                let verdict = gate.later(hours).posts(&posts).await;
                assert_eq!(verdict.held, None);
                let shown = shown(&gate).await;
                for p in &posts {
                    let xml = &shown[&p.id];
                    let parts = [&p.title, &p.text, &p.link, &p.extra];
                    assert!(parts.iter().all(|part| xml.contains(part.as_str())), "{p:?}: {xml}");
                }
            }
            for _ in 0..40 {
                gate.later(24).same().await;
            }
            for p in &posts {
                assert_eq!(gate.known(&p.id).await.noise.waiting, None);
            }
            let ripens = gate.store_state().await.next_decision_at;
            assert_eq!(ripens, None, "nothing is pending");
        });
    }

    /// An edit of words in any state of learning makes a version or waits for one.
    #[test]
    fn an_edit_among_noise_is_never_lost(
        noise in proptest::collection::vec((0_u32..30, 0_i64..10), 1..20),
        field in 0_u8..3,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (mut gate, mut posts) = begun().await;
            for (n, hours) in noise {
                posts[4].title = format!("Title ({n} views)");
                posts[4].text = format!("Rated {n} by {} people", n * 7 % 5);
                gate.later(hours).posts(&posts).await;
            }
            match field {
                0 => posts[4].title.push_str(" corrected"),
                1 => posts[4].text.push_str(" and more"),
                _ => posts[4].text = posts[4].text.replace("people", "readers and people"),
            }
            assert_eq!(kinds(&gate.later(1).posts(&posts).await), [Updated]);
        });
    }
}
