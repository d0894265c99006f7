//! `tidegate export --move` that is ended by force at any moment: either the store goes on, or it is sealed
//! and the file has everything.
//!
//! `TIDEGATE_KILLS` sets how many times it is killed; a few where it is not set.

use crate::compact::{Gate, kept, tidegate};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use tidegate_core::clock::SystemClock;
use tidegate_store::{EmbeddedStore, Store as _, StoreError};
use tokio::time::Instant;

const MOVE: [&str; 5] = ["export", "--move", "gate.tg", "-c", "t.toml"];

/// A copy of a gateway's folder.
fn copy(from: &Path) -> tempfile::TempDir {
    let to = tempfile::tempdir().unwrap();
    let copied = Command::new("cp").arg("-r").arg(from.join(".")).arg(to.path()).status().unwrap();
    assert!(copied.success());
    to
}

/// Whether the store of this folder was sealed.
async fn is_sealed(folder: &Path) -> bool {
    match EmbeddedStore::on_disk(&folder.join("data"), None, Arc::new(SystemClock)) {
        Ok(store) => {
            store.close().await.unwrap();
            false
        }
        Err(StoreError::Moved { .. }) => true,
        Err(error) => panic!("{error}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_is_never_sealed_without_its_file() {
    let gate = Gate::new(300).await;
    let gateway = gate.start().await;
    gateway.poll("news").await;
    gateway.stop().await;
    let before = kept(&gate.data).await;
    let whole = copy(gate.folder.path());
    let began = Instant::now();
    assert!(tidegate(whole.path(), &MOVE).status.success());
    let took = began.elapsed();
    let kills: u32 = std::env::var("TIDEGATE_KILLS").ok().map_or(12, |n| n.parse().unwrap());
    let mut sealed = Vec::new();
    for n in 0..=kills {
        let folder = copy(gate.folder.path());
        let mut child = Command::new(env!("CARGO_BIN_EXE_tidegate"))
            .current_dir(folder.path())
            .args(MOVE)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        if n < kills {
            // The first one at once, and most of them about when it is done.
            let part = (f64::from(n) / f64::from(kills)).sqrt();
            std::thread::sleep(took.mul_f64(part * 1.1));
            child.kill().unwrap();
        }
        child.wait().unwrap();
        let is_sealed = is_sealed(folder.path()).await;
        if !is_sealed {
            assert_eq!(kept(&folder.path().join("data")).await, before, "kill {n}");
        }
        // A file of that name is whole, whether the store was sealed or not.
        if is_sealed || folder.path().join("gate.tg").exists() {
            let taken = tidegate(folder.path(), &["import", "gate.tg", "--data", "other"]);
            assert!(taken.status.success(), "kill {n}: {}", String::from_utf8_lossy(&taken.stderr));
            assert_eq!(kept(&folder.path().join("other")).await, before, "kill {n}");
        }
        sealed.push(is_sealed);
    }
    eprintln!("sealed: {sealed:?}");
    assert!(sealed.contains(&false) && sealed.last() == Some(&true));
}
