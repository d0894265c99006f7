//! What a feed reader sees of what publishers do, from the first visit to the last: nothing twice,
//! nothing falsely new, and nothing vanish that its publisher still has.

use crate::e2e::support::{Answer, Format, Post, Stage, post, posts};

const EIGHT: &str = "Post 8, Post 7, Post 6, Post 5, Post 4, Post 3, Post 2, Post 1";

/// A feed of eight posts, its reader, and all that the reader was told.
struct Show {
    stage: Stage,
    format: Format,
    told: Vec<String>,
}

impl Show {
    async fn new(format: Format) -> Self {
        let mut stage = Stage::new(format).await;
        // What is shown without a version is no change to tell subscribers of.
        stage.compares_payloads = false;
        let mut show = Self { stage, format, told: Vec::new() };
        show.posts(&posts(1..=8)).await;
        assert_eq!(show.told, [format!("new: {EIGHT}")]);
        show.told.clear();
        show
    }

    /// An hour later the publisher has these posts.
    async fn posts(&mut self, posts: &[Post]) {
        self.text(&self.format.document(posts)).await;
    }

    /// An hour later the publisher sends this document.
    async fn text(&mut self, text: &str) {
        self.answer(Answer::document(self.format.media_type(), text)).await;
    }

    /// An hour later the publisher answers so.
    async fn answer(&mut self, answer: Answer) {
        self.stage.answers(answer);
        self.quiet(1, 1).await;
    }

    /// So many polls, so many hours apart; the reader visits after each.
    async fn quiet(&mut self, polls: u32, hours: u64) {
        let steps = self.stage.polls(polls, hours).await;
        self.told.extend(steps.into_iter().map(|s| s.reader).filter(|told| !told.is_empty()));
    }

    /// The reader was told this and nothing else, and has these posts.
    async fn ends(self, told: &[&str], titles: &str) {
        let Self { stage, format, told: all } = self;
        assert_eq!(all, told, "{format:?}");
        assert_eq!(stage.reader.titles().join(", "), titles, "{format:?}");
        stage.end().await;
    }
}

fn without(mut posts: Vec<Post>, day: u32) -> Vec<Post> {
    posts.retain(|p| p.day != day);
    posts
}

fn renamed(posts: Vec<Post>, from: &str, to: &str) -> Vec<Post> {
    let rename = |mut p: Post| {
        p.id = p.id.map(|id| id.replace(from, to));
        p.link = p.link.replace(from, to);
        p
    };
    posts.into_iter().map(rename).collect()
}

#[tokio::test]
async fn a_scroll() {
    for format in Format::BOTH {
        let mut show = Show::new(format).await;
        show.posts(&posts(2..=9)).await;
        show.posts(&posts(4..=11)).await;
        show.quiet(6, 12).await;
        let told = ["new: Post 9; gone: Post 1", "new: Post 11, Post 10; gone: Post 3, Post 2"];
        let titles = "Post 11, Post 10, Post 9, Post 8, Post 7, Post 6, Post 5, Post 4";
        show.ends(&told, titles).await;
    }
}

#[tokio::test]
async fn a_deletion_in_the_middle() {
    for format in Format::BOTH {
        let mut show = Show::new(format).await;
        show.posts(&without(posts(1..=8), 5)).await;
        show.quiet(6, 6).await;
        assert!(show.stage.subscriber.item("Post 5").1, "it is a tombstone to subscribers");
        let titles = "Post 8, Post 7, Post 6, Post 4, Post 3, Post 2, Post 1";
        show.ends(&["gone: Post 5"], titles).await;
    }
}

#[tokio::test]
async fn a_deletion_with_backfill() {
    for format in Format::BOTH {
        let mut show = Show::new(format).await;
        show.posts(&posts(3..=10)).await;
        show.posts(&without(posts(2..=10), 6)).await;
        show.quiet(6, 6).await;
        assert!(show.stage.subscriber.item("Post 6").1);
        assert!(!show.stage.subscriber.item("Post 1").1);
        let told = ["new: Post 10, Post 9; gone: Post 2, Post 1", "gone: Post 6; back: Post 2"];
        let titles = "Post 10, Post 9, Post 8, Post 7, Post 5, Post 4, Post 3, Post 2";
        show.ends(&told, titles).await;
    }
}

#[tokio::test]
async fn an_un_deletion() {
    for format in Format::BOTH {
        let mut show = Show::new(format).await;
        show.posts(&without(posts(1..=8), 5)).await;
        show.quiet(6, 6).await;
        assert!(show.stage.subscriber.item("Post 5").1);
        show.posts(&posts(1..=8)).await;
        show.quiet(3, 12).await;
        assert!(!show.stage.subscriber.item("Post 5").1);
        show.ends(&["gone: Post 5", "back: Post 5"], EIGHT).await;
    }
}

#[tokio::test]
async fn a_move_from_http_to_https() {
    for format in Format::BOTH {
        let mut show = Show::new(format).await;
        let ids = show.stage.reader.current.clone();
        let moved = renamed(posts(1..=8), "http://", "https://");
        show.text(&format.of_site("https://publisher.example/", &moved)).await;
        show.quiet(6, 4).await;
        assert_eq!(show.stage.reader.current, ids, "published ids are for ever");
        show.ends(&[], EIGHT).await;
    }
}

#[tokio::test]
async fn a_retitled_post_with_an_id_made_of_its_title() {
    for format in Format::BOTH {
        let mut show = Show::new(format).await;
        let mut all = posts(1..=8);
        all[3].title = "Post five, corrected".to_owned();
        all[3].id = Some("http://publisher.example/2026/post-five-corrected".to_owned());
        let ids = show.stage.reader.current.clone();
        show.posts(&all).await;
        show.quiet(6, 6).await;
        assert_eq!(show.stage.reader.current, ids);
        assert_eq!(show.stage.subscriber.living().len(), 8);
        let titles = EIGHT.replace("Post 5", "Post five, corrected");
        show.ends(&["changed: Post five, corrected"], &titles).await;
    }
}

#[tokio::test]
async fn an_empty_document_that_heals() {
    for format in Format::BOTH {
        let mut show = Show::new(format).await;
        show.posts(&[]).await;
        show.quiet(4, 4).await;
        show.posts(&posts(1..=8)).await;
        show.quiet(4, 8).await;
        show.ends(&[], EIGHT).await;
    }
}

#[tokio::test]
async fn an_empty_document_that_stays() {
    for format in Format::BOTH {
        let mut show = Show::new(format).await;
        show.posts(&[]).await;
        show.quiet(5, 4).await;
        assert!(show.told.is_empty(), "nothing vanishes within the day: {:?}", show.told);
        show.quiet(5, 4).await;
        assert!(show.stage.subscriber.living().len() == 8, "nothing is deleted");
        show.posts(&posts(1..=8)).await;
        let told = [format!("gone: {EIGHT}"), format!("back: {EIGHT}")];
        show.ends(&[&told[0], &told[1]], EIGHT).await;
    }
}

#[tokio::test]
async fn a_login_page() {
    for format in Format::BOTH {
        let mut show = Show::new(format).await;
        let page = "<!DOCTYPE html><html><head><title>Sign in</title></head><body><form></form>\
                    </body></html>";
        show.answer(Answer::document("text/html", page)).await;
        let why = show.stage.status().await["why"].as_str().unwrap().to_owned();
        assert!(why.contains("HTML page titled \"Sign in\""), "{why}");
        show.quiet(4, 12).await;
        show.posts(&posts(1..=8)).await;
        show.ends(&[], EIGHT).await;
    }
}

#[tokio::test]
async fn a_feed_moved_to_another_sites_feed() {
    for format in Format::BOTH {
        let mut show = Show::new(format).await;
        let strange = |mut p: Post| {
            p.title = format!("Strange {}", p.day);
            p.link = format!("http://other.example/articles/{}-something-else", p.day);
            p.id = Some(p.link.clone());
            p.text = format!("Something entirely different, number {}.", p.day);
            p
        };
        let theirs: Vec<Post> = posts(1..=8).into_iter().map(strange).collect();
        show.text(&format.of_site("http://other.example/", &theirs)).await;
        show.quiet(1, 4).await;
        assert!(show.told.is_empty(), "{:?}", show.told);
        show.quiet(6, 4).await;
        assert_eq!(show.stage.subscriber.living().len(), 16, "nothing is deleted");
        let new = EIGHT.replace("Post", "Strange");
        show.ends(&[&format!("new: {new}; gone: {EIGHT}")], &new).await;
    }
}

#[tokio::test]
async fn view_counters() {
    for format in Format::BOTH {
        let mut show = Show::new(format).await;
        for visit in 1..6_u32 {
            let mut all = posts(1..=8);
            for (at, p) in (0..).zip(&mut all) {
                p.extra = format!(
                    "<media:community xmlns:media=\"http://search.yahoo.com/mrss/\">\
                     <media:statistics views=\"{}\"/></media:community>\
                     <slash:comments xmlns:slash=\"http://purl.org/rss/1.0/modules/slash/\">{}\
                     </slash:comments>",
                    visit * 1000 + at,
                    visit + at
                );
            }
            show.posts(&all).await;
        }
        let status = show.stage.status().await;
        let why = status["why"].as_str().unwrap();
        assert!(why.contains("8 rewritten in nothing that a reader would see"), "{why}");
        let quiet = status["no_news"].as_array().unwrap();
        assert_eq!(quiet.len(), 8, "{status}");
        assert!(quiet[0]["words"][0].as_str().unwrap().contains("counters"), "{quiet:?}");
        show.ends(&[], EIGHT).await;
    }
}

#[tokio::test]
async fn a_template_change_with_one_real_edit_inside() {
    for format in Format::BOTH {
        let mut show = Show::new(format).await;
        let mut all = posts(1..=8);
        for p in &mut all {
            p.text.push_str(" Sponsored by our new partner.");
        }
        all[3] = post(5).edited("An edit of substance. Sponsored by our new partner.");
        show.posts(&all).await;
        assert!(show.told.is_empty(), "it is held: {:?}", show.told);
        show.quiet(6, 4).await;
        let text = show.stage.net.text("http://gateway.example/feeds/news").await;
        assert!(text.contains("An edit of substance"), "{text}");
        assert_eq!(show.stage.subscriber.item("Post 5").0, 2, "one version");
        show.ends(&[&format!("changed: {EIGHT}")], EIGHT).await;
    }
}

/// How much of a publisher's restlessness makes versions is the operator's to say.
#[tokio::test]
async fn the_cap_on_versions_and_what_is_ignored_are_as_configured() {
    let ignore = "ignore = [\"category\", { field = \"description\", pattern = \"Read by .*\" }]\n";
    let tables = "[publish]\nversions_per_day = 2\n";
    let mut stage = Stage::with(Format::Rss20, ignore, tables).await;
    stage.compares_payloads = false;
    let mut all = posts(1..=5);
    let mut told = Vec::new();
    for (edit, who) in [
        ("", "few"),
        ("", "many"),
        ("", "all"),
        ("1", "all"),
        ("2", "all"),
        ("3", "all"),
        ("4", "all"),
    ] {
        all[0] = post(5).edited(&format!("What came to pass. {edit} Read by {who}"));
        all[0].extra = format!("<category>{who}</category>");
        told.push(stage.posts(&all).await.events);
        stage.hours(1);
    }
    // The third is told once as a change without a version.
    assert_eq!(told, ["created 5", "", "", "updated 1", "updated 1", "updated 1", ""]);
    assert_eq!(stage.subscriber.item("Post 5").0, 3);
    stage.end().await;
}
