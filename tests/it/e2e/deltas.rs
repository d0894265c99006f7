//! Deltas over restarts and what else happens to a gateway; that they tell all is checked at every
//! step of every other scenario.

use crate::e2e::support::{Followers, Format, Stage, on_disk, posts};
use std::path::Path;

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to);
        } else {
            std::fs::copy(entry.path(), to).unwrap();
        }
    }
}

/// What came after the copy was made is not known to it, and revisions are given out anew.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tag_from_after_the_copy_gets_the_whole_document() {
    let folder = tempfile::tempdir().unwrap();
    let (data, backup) = (folder.path().join("data"), folder.path().join("backup"));
    let mut stage = Stage::with(Format::Atom10, "", &on_disk(folder.path())).await;
    let mut readers = Followers::new(&stage.net, "news");
    let original = posts(1..=8);
    stage.posts(&original).await;
    readers.visit(|_| false).await;
    stage.restart_after(|| copy(&data, &backup)).await;
    let mut edited = original.clone();
    edited[2] = edited[2].clone().edited("Taken back before anybody asks again.");
    stage.publishes(&edited);
    stage.poll_alone().await;
    readers.visit(|_| false).await;
    assert_eq!(readers.answers(), (1, 1));
    let replace = || {
        std::fs::remove_dir_all(&data).unwrap();
        copy(&backup, &data);
    };
    stage.restart_after(replace).await;
    // The edit is gone, for the publisher and for the copy; other changes take its revision.
    for last in 9..=11 {
        stage.publishes(&posts(1..=last));
        stage.poll_alone().await;
    }
    readers.visit(|_| false).await;
    assert_eq!(readers.answers(), (1, 2), "a delta would leave the edit standing");
    stage.publishes(&posts(1..=12));
    stage.poll_alone().await;
    readers.visit(|_| false).await;
    assert_eq!(readers.answers(), (2, 2));
    stage.stop().await;
}
