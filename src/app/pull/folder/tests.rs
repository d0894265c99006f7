use super::*;
use tidegate_format::pull::{ArchiveGap, Complete, ReplicaBasis};

const URL: &str = "https://example.org/feed";

fn state(n: u32) -> State {
    let gap = ArchiveGap { url: "https://example.org/2".to_owned(), until: None, above: None };
    State {
        subscription: URL.to_owned(),
        etag: Some(format!("\"{n}\"")),
        last_modified: None,
        answered_by: Some(URL.to_owned()),
        kept: ReplicaBasis::History {
            archive: Some("https://example.org/3".to_owned()),
            gaps: vec![gap],
            deleted: vec!["urn:x".to_owned()],
        },
    }
}

fn open(path: &Path) -> FolderContent {
    ReplicaFolder::lock(path).unwrap().open(URL).unwrap()
}

fn save(path: &Path, state: &State, replica: &str) {
    ReplicaFolder::lock(path).unwrap().save(URL, state, replica).unwrap();
}

#[test]
fn what_is_saved_is_there_again() {
    let folder = tempfile::tempdir().unwrap();
    assert!(open(folder.path()).saved.is_none());
    save(folder.path(), &state(1), "<one/>");
    assert_eq!(open(folder.path()).saved, Some((state(1), "<one/>\n".to_owned())));
    let taken = ReplicaFolder::lock(folder.path()).unwrap();
    taken.save(URL, &state(2), "<one/>\n").unwrap();
    let again = ReplicaFolder::lock(folder.path()).map(|_| ()).unwrap_err();
    assert!(again.to_string().contains("in use by another pull"), "{again}");
    drop(taken);
    assert_eq!(open(folder.path()).saved, Some((state(2), "<one/>\n".to_owned())));
    let complete = Some(Complete { url: URL.to_owned(), etag: None });
    let kept = ReplicaBasis::Sse { until: Some("2026".to_owned()), complete };
    let sse = State { kept, ..state(3) };
    save(folder.path(), &sse, "<two/>");
    assert_eq!(open(folder.path()).saved, Some((sse, "<two/>\n".to_owned())));
    // What a state says may look like the end of its own note, or like another one.
    let odd = State { etag: Some("?>\n<?tidegate-pull {}?>\n".to_owned()), ..state(1) };
    save(folder.path(), &odd, "<one><?tidegate-pull {}?>\n</one>\n");
    let saved = open(folder.path()).saved;
    assert_eq!(saved, Some((odd, "<one><?tidegate-pull {}?>\n</one>\n".to_owned())));
    let written = fs::read_to_string(folder.path().join(REPLICA)).unwrap();
    assert!(roxmltree::Document::parse(&written).is_ok(), "{written}");
    // A folder is for one feed.
    save(folder.path(), &state(1), "<one/>");
    let taken = ReplicaFolder::lock(folder.path()).unwrap();
    let error = taken.open("https://example.org/other").err().unwrap();
    assert_eq!(error.exit_status(), 2);
    assert!(error.to_string().contains("holds the replica of https://example.org/feed"));
}

#[test]
fn what_a_pull_did_not_leave_so_is_read_anew_and_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(REPLICA);
    save(folder.path(), &state(1), "<one/>");
    let edited = fs::read_to_string(&path).unwrap().replace("<one/>", "<edited/>");
    let torn = edited.get(..edited.len() - 3).unwrap();
    // Each under a name of its own.
    for (number, spoiled) in [&*edited, torn, "<other/>", ""].into_iter().enumerate() {
        let number = if number == 0 { String::new() } else { format!(".{}", number + 1) };
        let old = format!("replica.xml.old{number}");
        fs::write(&path, spoiled).unwrap();
        let held = open(folder.path());
        let warning = held.warning.unwrap();
        assert!(held.saved.is_none() && warning.contains(&format!("{old} ")), "{warning}");
        assert_eq!(fs::read_to_string(folder.path().join(old)).unwrap(), spoiled);
        assert!(!path.exists());
    }
    for number in 5..=OLD_LIMIT {
        fs::write(folder.path().join(format!("replica.xml.old.{number}")), "").unwrap();
    }
    fs::write(&path, "<other/>").unwrap();
    let full = ReplicaFolder::lock(folder.path()).unwrap().open(URL).err().unwrap().to_string();
    assert!(full.contains("100 files like replica.xml.old"), "{full}");
}

/// Others may keep files of any name there, and links that lead elsewhere.
#[test]
fn foreign_files_with_names_like_ours_stay() {
    let folder = tempfile::tempdir().unwrap();
    let names = ["replica.xml.new", "state.json", "notes.new", "replica.xml.00.new", LOCK];
    for name in names {
        fs::write(folder.path().join(name), "theirs").unwrap();
    }
    for n in 1..4 {
        save(folder.path(), &state(n), &format!("<replica n='{n}'/>"));
        assert!(open(folder.path()).saved.is_some());
    }
    for name in names {
        assert_eq!(fs::read(folder.path().join(name)).unwrap(), b"theirs", "{name}");
    }
    // Nothing else is left there.
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), names.len() + 1);
    // What cannot be finished leaves nothing behind.
    fs::remove_file(folder.path().join(REPLICA)).unwrap();
    fs::create_dir(folder.path().join(REPLICA)).unwrap();
    let taken = ReplicaFolder::lock(folder.path()).unwrap();
    taken.save(URL, &state(5), "<five/>").unwrap_err();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), names.len() + 1);
}
