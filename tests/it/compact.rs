//! `tidegate compact`: what was redacted or pruned is in no file of the data folder any more, and everything else is as it
//! was.

mod search;

use crate::support::gateways::Paper;
use crate::support::prelude::*;
use crate::support::process::{Process, run};
use crate::support::sharing::document;
use search::search;
use tidegate_core::clock::{Clock, SystemClock};
use tidegate_store::portable::ExportDigest;
use tidegate_store::{Epoch, Retention};

/// In the text that is redacted, which is easy to compress.
const SMOOTH: &str = "smooth xylophone";
/// In the text that is redacted, which is hard to compress.
const ROUGH: &str = "rough marimba";
/// In a version that another one took the place of, and that was pruned.
const PRUNED: &str = "pruned vibraphone";
/// In a text that stays: the search finds what is there.
const STAYS: &str = "lasting celesta";

/// Words that follow from `seed` and are hard to compress.
fn noise(seed: u64, words: u64) -> String {
    let word = |n: u64| format!("{:x} ", (n + seed * 1000 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    (0..words).map(word).collect()
}

fn feed(posts: &[(u32, String)]) -> String {
    let entry = |(n, text): &(u32, String)| {
        let date = format!("2026-06-01T00:{:02}:{:02}Z", n / 60, n % 60);
        format!(
            "<entry><id>urn:{n}</id><title>Post {n} {}</title><updated>{date}</updated>\
             <content>{text}</content></entry>",
            text.split_once(';').map_or("", |(title, _)| title)
        )
    };
    document("", &posts.iter().map(entry).collect::<Vec<_>>())
}

async fn with_store<T>(data: &Path, work: impl AsyncFnOnce(&Store) -> T) -> T {
    let store = Store::on_disk(data, None, Arc::new(SystemClock)).unwrap();
    let done = work(&store).await;
    store.close().await.unwrap();
    done
}

async fn kept(data: &Path) -> (u128, Epoch, String) {
    with_store(data, async |store| {
        let (to, mut pieces) = tokio::sync::mpsc::channel(64);
        let reading = async {
            let mut digest = ExportDigest::default();
            while let Some(piece) = pieces.recv().await {
                digest.put(&piece).unwrap();
            }
            digest.value()
        };
        let (read, digest) = tokio::join!(store.export(to), reading);
        read.unwrap();
        let epoch = *store.watch_epochs().borrow();
        (digest, epoch, format!("{} {:?}", store.endpoint(), store.sup_ids()))
    })
    .await
}

struct Gate {
    folder: tempfile::TempDir,
    config: String,
    data: PathBuf,
    paper: Paper,
    posts: Vec<(u32, String)>,
}

impl Gate {
    async fn new(posts: u32) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let posts: Vec<_> =
            (1..=posts).map(|n| (n, format!("; text of {n}: {}", noise(n.into(), 30)))).collect();
        let paper = Paper::start("application/atom+xml", &feed(&posts)).await;
        let config = format!(
            "[server]\npublic_url = \"https://gate.example\"\n[store]\npath = \"data\"\n\
             [[feed]]\nname = \"news\"\nurl = \"{}\"\n",
            paper.url
        );
        let data = folder.path().join("data");
        Self { folder, config, data, paper, posts }
    }

    async fn start(&self) -> Process {
        Process::configured(self.folder.path(), &self.config).await
    }

    async fn write(&mut self, gateway: &Process, n: usize, text: String) {
        self.posts[n - 1].1 = text;
        self.paper.print(&feed(&self.posts));
        gateway.poll("news").await;
    }

    fn found(&self) -> BTreeSet<&'static str> {
        search(&self.data, &[SMOOTH, ROUGH, PRUNED, STAYS])
    }
}

async fn id_of(gateway: &Process, title: &str) -> String {
    let text = gateway.text("/feeds/news/complete").await;
    let entry = text.split("<entry").find(|entry| entry.contains(title)).unwrap();
    entry.split("id=\"").nth(1).unwrap().split('"').next().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_taken_out_is_in_no_file() {
    let mut gate = Gate::new(40).await;
    let gateway = gate.start().await;
    gateway.poll("news").await;
    let smooth = format!("{SMOOTH}; {}", format!("the {SMOOTH} again, ").repeat(40));
    gate.write(&gateway, 5, smooth).await;
    let rough = format!("{ROUGH}; {ROUGH} {}", noise(5000, 90));
    gate.write(&gateway, 6, rough).await;
    // In no title, which events have, and followed by others before an archive is sealed.
    for round in 0..3 {
        gate.write(&gateway, 7, format!("; {PRUNED} {}", noise(6000 + round, 60))).await;
    }
    for round in 0..12 {
        gate.write(&gateway, 7, format!("; harmless {round} {}", noise(7000 + round, 60))).await;
    }
    gate.write(&gateway, 8, format!("{STAYS}; {STAYS} {}", noise(8000, 60))).await;
    assert_eq!(gate.found().len(), 4);

    for title in [SMOOTH, ROUGH] {
        let path = format!("/feeds/news/items/{}/redact", id_of(&gateway, title).await);
        let told = gateway.call("POST", &path, json!({})).await;
        assert_eq!(told["was_redacted"], false, "{told}");
    }
    gateway.stop().await;
    let name = crate::support::name("news");
    with_store(&gate.data, async |store| {
        let retention = Retention { versions: 1, ..Retention::default() };
        let pruned = store.prune(&name, &retention, SystemClock.now()).await.unwrap();
        assert!(pruned.versions > 0, "{pruned:?}");
    })
    .await;
    for round in 0..3 {
        let gateway = gate.start().await;
        for n in 20..30 {
            let text = format!("; another text in round {round} {}", noise(9000 + round, 40));
            gate.write(&gateway, n, text).await;
        }
        gateway.stop().await;
    }
    assert!(gate.found().len() > 1, "the engine cleans up by itself: the documents say otherwise");

    let before = kept(&gate.data).await;
    let compact = ["compact", "-c", "t.toml"];
    let (status, said) = run(gate.folder.path(), &compact).await;
    assert!(status == 0 && said.starts_with("the store was written anew with "), "{said}");
    assert_eq!(gate.found(), [STAYS].into());
    assert_eq!(kept(&gate.data).await, before);
    // It goes on.
    let gateway = gate.start().await;
    gate.write(&gateway, 9, "; goes on".to_owned()).await;
    let (status, said) = run(gate.folder.path(), &compact).await;
    assert!(status == 1 && said.contains("is running with this store; stop it first"), "{said}");
    gateway.stop().await;
}
