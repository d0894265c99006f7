//! Subscription lists (OPML) as upstreams: compared, enriched and merged like feeds, and served as
//! lists.

use crate::support::gateways::{Paper, Running, gateway, items, until};
use crate::support::prelude::*;
use tidegate_format::parse::opml::{OutlineList, read};

/// An outline as a test writes it: its text, and those in it.
#[derive(Debug, Clone, PartialEq)]
enum Node {
    Feed(&'static str),
    Folder(&'static str, Vec<Node>),
}
use Node::{Feed, Folder};

impl Node {
    fn inside(&mut self) -> &mut Vec<Self> {
        match self {
            Folder(_, inside) => inside,
            Feed(text) => panic!("{text} is no folder"),
        }
    }
}

/// The publisher's list is this one, and so is the list that is served.
async fn becomes(gate: &Running, paper: &Paper, nodes: &[Node]) {
    paper.print(&list(nodes));
    gate.poll("news").await;
    assert_eq!(outlines(&gate.text("/feeds/news").await), outlines(&list(nodes)));
}

fn list(nodes: &[Node]) -> String {
    format!(
        "<?xml version=\"1.0\"?>\n<opml version=\"2.0\">\n<head><title>Ours</title>\
         <dateModified>Thu, 01 Jan 2026 00:00:00 GMT</dateModified><ownerName>Ann</ownerName></head>\n\
         <body>\n{}</body>\n</opml>\n",
        nodes.iter().map(written).collect::<String>()
    )
}

fn written(node: &Node) -> String {
    match node {
        Feed(text) => {
            let (name, host) = (text.replace('&', "&amp;"), text.to_lowercase());
            let host: String = host.chars().filter(|c| c.is_alphanumeric()).collect();
            format!(
                "<outline text=\"{name}\" title=\"{name}\" type=\"rss\" version=\"RSS\" \
                 xmlUrl=\"http://{host}.example/feed\" htmlUrl=\"http://{host}.example/\"/>\n"
            )
        }
        Folder(text, inside) => {
            let inside: String = inside.iter().map(written).collect();
            format!("<outline text=\"{text}\">\n{inside}</outline>\n")
        }
    }
}

fn two_folders() -> Vec<Node> {
    vec![
        Folder("News", vec![Feed("Alpha"), Feed("Beta"), Feed("R&D")]),
        Feed("Delta"),
        Folder("Tech", vec![Feed("Gamma"), Feed("Alpha"), Folder("Deep", vec![Feed("Epsilon")])]),
    ]
}

/// What a list says of its outlines, in their order: how deep each stands, and its attributes but
/// for those of ours.
fn outlines(text: &str) -> Vec<(usize, BTreeMap<String, String>)> {
    let list = read(text).unwrap();
    assert!(list.problems.is_empty(), "{:?} in {text}", list.problems);
    let own = |(name, value): &(String, String)| {
        (!name.contains(':')).then(|| (name.clone(), value.clone()))
    };
    let said = list.outlines.iter().map(|outline| {
        (list.folder(outline).len(), outline.attributes.iter().filter_map(own).collect())
    });
    said.collect()
}

fn texts(text: &str) -> Vec<String> {
    let of = |(depth, said): (usize, BTreeMap<String, String>)| {
        format!("{}{}", "  ".repeat(depth), said["text"])
    };
    outlines(text).into_iter().map(of).collect()
}

/// By the texts of outlines their versions; `x` for what is deleted.
fn versions(text: &str) -> BTreeMap<String, String> {
    let list: OutlineList = read(text).unwrap();
    let said = list.outlines.iter().map(|outline| {
        let sync = &outline.sync.as_ref().unwrap().item.winner;
        let gone = if sync.deleted { "x" } else { "" };
        let folder = list.folder(outline).join("/");
        (format!("{folder}/{}", outline.text().unwrap()), format!("{}{gone}", sync.updates.value()))
    });
    said.collect()
}

const EAGER: &str = "deletions = \"eager\"\n";

#[tokio::test]
async fn a_list_is_served_as_the_list_that_it_is() {
    let nodes = two_folders();
    let paper = Paper::start("text/x-opml", &list(&nodes)).await;
    let gate = gateway("one.example", &paper.url, "").await;
    gate.poll("news").await;
    let answer = reqwest::get(gate.url("/feeds/news")).await.unwrap();
    assert_eq!(answer.headers()["content-type"], "text/x-opml; charset=utf-8");
    let text = answer.text().await.unwrap();
    assert_eq!(outlines(&text), outlines(&list(&nodes)));
    assert!(text.contains("<ownerName>Ann</ownerName>") && text.contains("<title>Ours</title>"));
    assert_eq!(versions(&text).values().collect::<Vec<_>>(), vec!["1"; 10], "{text}");
    for view in ["/feeds/news/sync", "/feeds/news/complete"] {
        assert_eq!(outlines(&gate.text(view).await), outlines(&list(&nodes)), "{view}");
    }
    // As a feed it has an entry for each outline, with an id of its own.
    let feed = feed_rs::parser::parse(gate.text("/feeds/news?as=atom").await.as_bytes()).unwrap();
    let all: HashSet<_> = feed.entries.iter().map(|entry| &entry.id).collect();
    assert_eq!((feed.entries.len(), all.len()), (10, 10));
    // Nothing of it changes, so nothing is written.
    let before = gate.store().state(&name("news")).await.unwrap().unwrap().revision;
    gate.poll("news").await;
    paper.print(&list(&nodes).replace("Thu, 01 Jan", "Fri, 02 Jan"));
    gate.poll("news").await;
    let state = gate.store().state(&name("news")).await.unwrap().unwrap();
    assert_eq!(texts(&gate.text("/feeds/news").await).len(), 10);
    assert!(versions(&gate.text("/feeds/news").await).values().all(|version| version == "1"));
    assert!(state.revision.0 <= before.0 + 1, "one stamp of the list, and no version");
    gate.stop().await;
}

/// Section 3.2: what is moved, in order or to another folder, is updated; what merely shifts is not.
#[tokio::test]
async fn what_is_moved_is_updated_and_nothing_else() {
    let mut nodes = two_folders();
    let paper = Paper::start("text/x-opml", &list(&nodes)).await;
    let gate = gateway("one.example", &paper.url, EAGER).await;
    gate.poll("news").await;
    let mut now = versions(&gate.text("/feeds/news/complete").await);
    let mut expect = async |nodes: &[Node], changed: &[(&str, &str)]| {
        becomes(&gate, &paper, nodes).await;
        let said = versions(&gate.text("/feeds/news/complete").await);
        let other: Vec<(&str, &str)> = said
            .iter()
            .filter(|(text, version)| now.get(*text) != Some(version))
            .map(|(text, version)| (text.as_str(), version.as_str()))
            .collect();
        assert_eq!(other, changed);
        now = said;
    };
    // A new one at the head of a folder shifts the others.
    nodes[0].inside().insert(0, Feed("Zeta"));
    expect(&nodes, &[("News/Zeta", "1")]).await;
    // The last of them to the head.
    nodes[0].inside().rotate_right(1);
    expect(&nodes, &[("News/R&D", "2")]).await;
    // One to the root.
    let beta = nodes[0].inside().pop().unwrap();
    assert_eq!(beta, Feed("Beta"));
    nodes.push(beta);
    expect(&nodes, &[("/Beta", "2")]).await;
    // A folder goes in front of the feed at the root: one of the two has moved.
    nodes.swap(1, 2);
    let before = items(&gate).await;
    becomes(&gate, &paper, &nodes).await;
    let after = items(&gate).await;
    let moved: Vec<_> = after.iter().filter(|(id, said)| before[*id] != **said).collect();
    assert_eq!(moved.len(), 1, "{moved:?}");
    // One is gone, for good.
    nodes.retain(|node| *node != Feed("Delta"));
    becomes(&gate, &paper, &nodes).await;
    let complete = versions(&gate.text("/feeds/news/complete").await);
    let gone: Vec<_> = complete.iter().filter(|(_, version)| version.ends_with('x')).collect();
    assert!(matches!(gone[..], [(name, _)] if name == "/Delta"), "{gone:?}");
    let events = gate.store().events(&name("news"), 100).await.unwrap();
    let reasons: Vec<String> = events.into_iter().map(|event| event.reason).collect();
    assert!(reasons.iter().any(|reason| reason.contains("its position")), "{reasons:?}");
    let parents = reasons.iter().filter(|reason| reason.contains("outline:parent"));
    assert_eq!(parents.count(), 1, "{reasons:?}");
    gate.stop().await;
}

/// A gateway behind another one: by any container the outlines stand where they stood, with their
/// ids and histories; and so do they behind the next.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_pass_through_gateways() {
    let mut nodes = two_folders();
    let paper = Paper::start("text/x-opml", &list(&nodes)).await;
    let mut first = gateway("one.example", &paper.url, EAGER).await;
    first.poll("news").await;
    let of = |gateway: &Running, view: &str| gateway.url(&format!("/feeds/news{view}"));
    let mut others = Vec::new();
    for view in
        ["", "/sync", "/complete", "?as=atom", "/sync?as=rss", "/sync?as=pox", "/sync?as=json"]
    {
        let other = gateway("two.example", &of(&first, view), "").await;
        other.poll("news").await;
        others.push((view, other));
    }
    // The reader view has no tombstones: what it does not list any more is asked of the complete feed.
    for (number, view) in
        [(0, "behind another, by the reader view"), (1, "behind another, by the sync view")]
    {
        let between = &others[number];
        let third = gateway("three.example", &of(&between.1, between.0), "").await;
        third.poll("news").await;
        others.push((view, third));
    }
    let all = items(&first).await;
    assert!(all.keys().all(|id| id.starts_with("one.example.")), "{all:?}");
    let same = async |nodes: &[Node], step: &str| {
        for (view, other) in &others {
            let text = other.text("/feeds/news?as=opml").await;
            assert_eq!(outlines(&text), outlines(&list(nodes)), "{step}, by {view:?}: {text}");
        }
    };
    same(&nodes, "at first").await;
    for (view, other) in &others {
        assert_eq!(items(other).await, all, "{view}");
    }
    // A move between folders, a new text and a deletion.
    let moved = nodes[0].inside().remove(1);
    nodes[2].inside().insert(1, moved);
    nodes.remove(1);
    let text = list(&nodes).replace("text=\"Gamma\"", "text=\"Gamma rays\"");
    paper.print(&text);
    first.pass(2);
    first.poll("news").await;
    let all = items(&first).await;
    assert_eq!(all.values().filter(|said| said.1).count(), 1, "{all:?}");
    for (view, other) in &others {
        other.poll("news").await;
        assert_eq!(items(other).await, all, "{view}");
        assert_eq!(texts(&other.text("/feeds/news?as=opml").await), texts(&text), "{view}");
    }
    // The whole list is sorted anew, which is a version of nothing.
    nodes.reverse();
    for node in &mut nodes {
        if let Folder(_, inside) = node {
            inside.reverse();
        }
    }
    paper.print(&list(&nodes).replace("text=\"Gamma\"", "text=\"Gamma rays\""));
    first.poll("news").await;
    let text = first.text("/feeds/news").await;
    for (view, other) in &others {
        other.poll("news").await;
        assert_eq!(texts(&other.text("/feeds/news?as=opml").await), texts(&text), "{view}");
        // What is at rest stays so: no version, no write.
        let state = async || other.store().state(&name("news")).await.unwrap().unwrap();
        let before = state().await.revision;
        other.poll("news").await;
        assert_eq!(state().await.revision, before, "{view}");
        let known = other.store().snapshot(&name("news")).await.unwrap().unwrap().known;
        assert!(known.iter().all(|known| known.origin == Origin::Upstream), "{view}");
    }
    first.stop().await;
    for (_, other) in others {
        other.stop().await;
    }
}

/// An aggregate of lists alone is a list: their outlines one behind the other, each where it stood, though both have a
/// folder of the same name.
#[tokio::test]
async fn lists_are_merged_to_one() {
    let first = Paper::start("text/x-opml", &list(&two_folders())).await;
    let more = [Feed("Eta"), Folder("News", vec![Feed("Theta"), Feed("Alpha")])];
    let second = Paper::start("text/x-opml", &list(&more)).await;
    let config = format!(
        "[[feed]]\nname = \"more\"\nurl = \"{}\"\n[[aggregate]]\nname = \"both\"\n\
         sources = [\"news\", \"more\"]\n",
        second.url
    );
    let gate = gateway("one.example", &first.url, &config).await;
    gate.poll("news").await;
    gate.poll("more").await;
    let wanted = outlines(&list(&[two_folders(), more.to_vec()].concat()));
    until("both are one list", async || {
        let (_, headers, text) = gate.get("/feeds/both").await;
        headers["content-type"] == "text/x-opml; charset=utf-8" && outlines(&text) == wanted
    })
    .await;
    gate.stop().await;
}

/// What is called otherwise is held by nobody, and a folder that is moved is the same folder.
#[tokio::test]
async fn folders_are_renamed_and_moved() {
    let all = ["A", "B", "C", "D", "E"].map(Feed).to_vec();
    let mut nodes = vec![Folder("All", all), Folder("More", vec![Feed("F")])];
    let paper = Paper::start("text/x-opml", &list(&nodes)).await;
    let gate = gateway("one.example", &paper.url, EAGER).await;
    gate.poll("news").await;
    nodes[0] = Folder("Everything", std::mem::take(nodes[0].inside()));
    becomes(&gate, &paper, &nodes).await;
    let before = items(&gate).await;
    assert_eq!(before.values().filter(|said| said.1).count(), 1, "the folder of that name");
    nodes[0].inside().push(Folder("More", vec![Feed("F")]));
    nodes.truncate(1);
    becomes(&gate, &paper, &nodes).await;
    let after = items(&gate).await;
    assert_eq!(after.len(), before.len());
    let changed: Vec<_> = after.iter().filter(|(id, said)| before[*id] != **said).collect();
    assert_eq!(changed.len(), 1, "{changed:?}");
    gate.stop().await;
}
