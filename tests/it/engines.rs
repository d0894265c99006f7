//! What readers get does not depend on where it is stored.

use crate::compact::tidegate;
use crate::support::gateways::Paper;
use crate::support::process::Process;
use std::path::Path;

fn done(folder: &Path, args: &[&str]) -> String {
    let output = tidegate(folder, args);
    let text = |bytes| String::from_utf8(bytes).unwrap();
    assert!(output.status.success(), "{args:?}: {}", text(output.stderr));
    text(output.stdout)
}

/// A document of posts with these texts.
fn posts(texts: &[&str]) -> String {
    let post = |(n, text): (usize, &&str)| {
        format!(
            "<item><guid isPermaLink='false'>p{n}</guid><title>Post {n}</title><link>/posts/{n}</link>\
             <description>&lt;p&gt;{text} &lt;a href=&quot;more/{n}&quot;&gt;more&lt;/a&gt;&lt;/p&gt;\
             </description></item>"
        )
    };
    let posts: String = texts.iter().enumerate().filter(|(_, t)| !t.is_empty()).map(post).collect();
    format!("<rss version='2.0'><channel><title>T</title><link>/</link>{posts}</channel></rss>")
}

/// A document as it is sent: its view and encoding, its tag and its bytes.
type SentDocument = (String, Option<String>, Vec<u8>);

/// All views of the feed, plain and packed.
async fn sent(gateway: &Process) -> Vec<SentDocument> {
    let mut all = Vec::new();
    for view in ["", "/sync", "/complete", "?as=json"] {
        for encoding in ["identity", "gzip"] {
            let request = gateway.client.get(format!("{}/feeds/news{view}", gateway.address));
            let answer = request.header("accept-encoding", encoding).send().await.unwrap();
            assert_eq!(answer.status(), 200, "{view}");
            let packed = answer.headers().get("content-encoding").map(|v| v.to_str().unwrap());
            assert_eq!(packed.unwrap_or("identity"), encoding, "{view}");
            let tag = answer.headers().get("etag").map(|tag| tag.to_str().unwrap().to_owned());
            assert!(tag.is_some(), "{view}");
            let bytes = answer.bytes().await.unwrap().to_vec();
            all.push((format!("{view} {encoding}"), tag, bytes));
        }
    }
    all
}

/// The bytes that readers get follow from what is stored, never from the way to it: not from what was
/// rendered before, nor a restart, nor a compaction.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn documents_are_the_same_bytes_after_a_restart_and_a_compaction() {
    let long = "The keeper noted the wind and wound the clock. ".repeat(30);
    let paper = Paper::start("application/rss+xml", &posts(&["one", "two", &long])).await;
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let text = format!(
        "[server]\nlisten = \"127.0.0.1:0\"\npublic_url = \"https://gate.example\"\n[store]\n\
         path = \"one\"\n[publish]\nendpoint = \"gate.example\"\n[polling]\n\
         allow_private = true\nhost_spacing = \"0s\"\nmin_interval = \"1d\"\n[websub]\nhub = false\n\
         subscribe = false\n[[feed]]\nname = \"news\"\nurl = \"{}\"\n",
        paper.url
    );
    std::fs::write(folder.join("t.toml"), text).unwrap();
    let gateway = Process::configured(folder).await;
    gateway.poll("news").await;
    let first = sent(&gateway).await;
    for texts in [["one", "two, corrected", &long, "four"], ["one", "", &long, "four"]] {
        paper.print(&posts(&texts));
        gateway.poll("news").await;
        // What was rendered of the state before may be of use for this one.
        sent(&gateway).await;
    }
    let before = sent(&gateway).await;
    assert_ne!(before, first);
    gateway.stop().await;

    let gateway = Process::configured(folder).await;
    assert_eq!(sent(&gateway).await, before, "after a restart");
    gateway.stop().await;

    done(folder, &["compact", "-c", "t.toml"]);
    let gateway = Process::configured(folder).await;
    assert_eq!(sent(&gateway).await, before, "after a compaction");
    gateway.stop().await;
}
