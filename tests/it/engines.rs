//! A store goes from one engine to the other and back, and each says whose folder it is.

use crate::compact::tidegate;
use std::path::Path;
use std::sync::Arc;
use tidegate::clock::SystemClock;
use tidegate::store::portable::ExportDigest;
use tidegate::store::{DiskKind, DiskRequest, EmbeddedStore, Store};

const LIST: &str = r#"<opml version="2.0"><body>
<outline text="One" type="rss" xmlUrl="https://one.example/feed"/>
<outline text="Folder"><outline text="Two" type="rss" xmlUrl="https://two.example/feed"/></outline>
</body></opml>"#;

fn done(folder: &Path, args: &[&str]) -> String {
    let output = tidegate(folder, args);
    let text = |bytes| String::from_utf8(bytes).unwrap();
    assert!(output.status.success(), "{args:?}: {}", text(output.stderr));
    text(output.stdout)
}

fn refused(folder: &Path, args: &[&str]) -> String {
    let output = tidegate(folder, args);
    assert!(!output.status.success(), "{args:?} was done");
    String::from_utf8(output.stderr).unwrap()
}

fn configure(folder: &Path, kind: &str, data: &str) {
    let text = format!("[store]\nkind = \"{kind}\"\npath = \"{data}\"\n");
    std::fs::write(folder.join(format!("{kind}.toml")), text).unwrap();
}

/// The fingerprint of everything in a store.
async fn digest(kind: DiskKind, path: &Path) -> ExportDigest {
    let request = DiskRequest::new(kind, path, None);
    let store = EmbeddedStore::open_on_disk(request, Arc::new(SystemClock)).unwrap();
    let (to, mut pieces) = tokio::sync::mpsc::channel(64);
    let reading = async {
        let mut digest = ExportDigest::default();
        while let Some(piece) = pieces.recv().await {
            digest.put(&piece).unwrap();
        }
        digest
    };
    let (read, digest) = tokio::join!(store.export(to), reading);
    read.unwrap();
    store.close().await.unwrap();
    digest
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_is_carried_from_one_engine_to_the_other() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::write(folder.join("list.opml"), LIST).unwrap();
    configure(folder, "sled", "one");
    configure(folder, "fjall", "two");
    assert!(done(folder, &["check", "-c", "fjall.toml"]).contains("keeps its data in two"));
    done(folder, &["import", "list.opml", "-c", "sled.toml"]);
    let before = digest(DiskKind::Sled, &folder.join("one")).await;
    done(folder, &["export", "a.tg", "-c", "sled.toml", "--move"]);
    done(folder, &["import", "a.tg", "-c", "fjall.toml"]);
    assert_eq!(digest(DiskKind::Fjall, &folder.join("two")).await, before);
    assert!(done(folder, &["compact", "-c", "fjall.toml"]).contains("written anew"));
    assert_eq!(digest(DiskKind::Fjall, &folder.join("two")).await, before);
    let left: Vec<_> = std::fs::read_dir(folder.join("two")).unwrap().collect();
    assert!(left.iter().all(|entry| {
        !entry.as_ref().unwrap().file_name().to_string_lossy().starts_with("compact")
    }));

    done(folder, &["export", "b.tg", "-c", "fjall.toml", "--move"]);
    configure(folder, "sled", "three");
    done(folder, &["import", "b.tg", "-c", "sled.toml"]);
    assert_eq!(digest(DiskKind::Sled, &folder.join("three")).await, before);
    configure(folder, "sled", "two");
    let said = refused(folder, &["compact", "-c", "sled.toml"]);
    assert!(said.contains("was made with store.kind = \"fjall\""), "{said}");
}
