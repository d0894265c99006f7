//! What never rests, templates, caps and what the operator ignores: readers and subscribers see
//! every edit and none of the noise.

use crate::e2e::support::{Format, Post, Stage, post, posts};

/// The posts with a counter in the title of one of them.
fn counted(views: u32) -> Vec<Post> {
    let mut all = posts(1..=6);
    all[2].title = format!("Post 4 ({views} views)");
    all
}

#[tokio::test]
async fn a_view_counter_in_a_title() {
    for format in Format::BOTH {
        let mut stage = Stage::new(format).await;
        stage.compares_payloads = false;
        stage.posts(&counted(0)).await;
        let mut told = Vec::new();
        for views in 1..9 {
            stage.hours(1);
            told.push(stage.posts(&counted(views)).await.events);
        }
        assert_eq!(told[..2], ["updated 1", "updated 1"]);
        assert!(told[2..].iter().all(String::is_empty), "{told:?}");
        let titles = stage.reader.titles();
        assert_eq!(titles[2], "Post 4 (8 views)", "what is shown is the newest");
        // A real edit in the same title, and one beside it, come out at once.
        let mut edited = counted(9);
        edited[2].title = "Post 4, corrected (9 views)".to_owned();
        assert_eq!(stage.posts(&edited).await.events, "updated 1");
        edited[2].title = "Post 4, corrected (10 views)".to_owned();
        edited[2].text.push_str(" More is known now.");
        assert_eq!(stage.posts(&edited).await.events, "updated 1");
        // When the counter rests, subscribers learn its last state as well.
        edited[2].title = "Post 4, corrected (11 views)".to_owned();
        assert_eq!(stage.posts(&edited).await.events, "");
        stage.hours(73);
        assert_eq!(stage.poll().await.events, "updated 1");
        assert_eq!(stage.subscriber.item("Post 4, corrected (11 views)").0, 6);
        stage.compares_payloads = true;
        assert_eq!(stage.polls(3, 24).await[2].events, "");
        stage.end().await;
    }
}

#[tokio::test]
async fn counters_in_every_description() {
    let mut stage = Stage::new(Format::Rss20).await;
    stage.compares_payloads = false;
    let read = |n: u32, newest: u32| {
        let mut all = posts(1..=newest);
        for (at, p) in all.iter_mut().enumerate() {
            let people = n * 7 + at as u32;
            p.text = format!("{} Rated {}.{} by {people} people.", p.text, n % 5, people % 10);
        }
        all
    };
    stage.posts(&read(1, 6)).await;
    let mut told = Vec::new();
    for n in 2..14 {
        stage.hours(1);
        told.push(stage.posts(&read(n, 6)).await.events);
    }
    let versions = told.iter().filter(|events| !events.is_empty()).count();
    assert!(versions <= 2, "{told:?}");
    assert!(told[6..].iter().all(String::is_empty), "{told:?}");
    // New posts come at once, and their counters are known for what they are.
    stage.hours(1);
    let step = stage.posts(&read(14, 7)).await;
    assert_eq!(step.events, "created 1");
    assert!(step.reader.starts_with("new: Post 7; changed: Post 6"), "{}", step.reader);
    stage.hours(1);
    let step = stage.posts(&read(15, 7)).await;
    assert_eq!((step.events.as_str(), step.held), ("", None));
    stage.end().await;
}

#[tokio::test]
async fn a_template_change_with_one_real_edit_inside() {
    for format in Format::BOTH {
        let mut stage = Stage::new(format).await;
        stage.compares_payloads = false;
        let mut all = posts(1..=6);
        stage.posts(&all).await;
        for p in &mut all {
            p.text = format!("&lt;p class=\"lead\"&gt;{}&lt;/p&gt;", p.text);
        }
        all[3].text = all[3].text.replace("came to pass", "really came to pass");
        stage.hours(1);
        let step = stage.posts(&all).await;
        assert_eq!((step.events.as_str(), step.held), ("updated 1", None));
        // A template that everybody sees is confirmed first; the edit comes out with it.
        for p in &mut all {
            p.text.push_str(" Subscribe now!");
        }
        all[1].title = "Post 5, corrected".to_owned();
        let held = stage.posts(&all).await;
        assert!(held.held.is_some_and(|held| held.starts_with("mass-changed")));
        assert_eq!((held.events.as_str(), held.reader.as_str()), ("", ""));
        let last = stage.polls(3, 1).await.pop().unwrap();
        assert_eq!(last.held, None);
        assert_eq!(stage.reader.titles()[1], "Post 5, corrected");
        assert_eq!(stage.subscriber.item("Post 5, corrected").0, 2);
        assert_eq!(stage.subscriber.item("Post 3").0, 3);
        stage.end().await;
    }
}

#[tokio::test]
async fn the_cap_on_versions_a_day() {
    let mut stage = Stage::with(Format::Atom10, "", "[publish]\nversions_per_day = 2\n").await;
    stage.compares_payloads = false;
    let mut all = posts(1..=5);
    stage.posts(&all).await;
    let mut told = Vec::new();
    for text in ["one", "two", "three", "four"] {
        stage.hours(1);
        all[1] = post(4).edited(text);
        let step = stage.posts(&all).await;
        told.push((step.events, step.until));
    }
    // The third is told once as a change without a version, so that the tick stays.
    let events: Vec<&str> = told.iter().map(|(events, _)| events.as_str()).collect();
    assert_eq!(events, ["updated 1", "updated 1", "updated 1", ""]);
    assert_eq!((&told[1].1, &told[1].1), (&told[2].1, &told[3].1));
    let text = stage.net.text("http://gateway.example/feeds/news").await;
    assert!(text.contains(">four<"), "{text}");
    assert_eq!(stage.subscriber.item("Post 4").0, 3);
    stage.hours(24);
    let step = stage.poll().await;
    assert_eq!(step.events, "updated 1");
    assert_eq!(stage.subscriber.item("Post 4").0, 4);
    stage.compares_payloads = true;
    assert_eq!(stage.polls(2, 24).await[1].events, "");
    stage.end().await;
}

#[tokio::test]
async fn what_the_operator_ignores() {
    let ignore = "ignore = [\"category\", { field = \"description\", pattern = \"Read by .*\" }]\n";
    let mut stage = Stage::with(Format::Rss20, ignore, "").await;
    stage.compares_payloads = false;
    let read_by = |who: &str| {
        let mut all = posts(1..=5);
        all[0].text = format!("{} Read by {who}", all[0].text);
        all[0].extra = format!("<category>{who}</category>");
        all
    };
    stage.posts(&read_by("nobody")).await;
    for who in ["few", "many", "all"] {
        stage.hours(1);
        assert_eq!(stage.posts(&read_by(who)).await.events, "", "{who}");
        assert!(stage.net.text("http://gateway.example/feeds/news").await.contains(who));
    }
    let mut edited = read_by("all");
    edited[0].title = "Post 5, corrected".to_owned();
    assert_eq!(stage.posts(&edited).await.events, "updated 1");
    stage.end().await;
}
