use super::*;
use tidegate_format::pull::{ArchiveGap, Complete, ReplicaBasis};

const URL: &str = "https://example.org/feed";

fn state(n: u32) -> State {
    State {
        subscription: URL.to_owned(),
        etag: Some(format!("\"{n}\"")),
        last_modified: None,
        answered_by: Some(URL.to_owned()),
        kept: ReplicaBasis::History {
            archive: Some("https://example.org/3".to_owned()),
            gaps: vec![ArchiveGap {
                url: "https://example.org/2".to_owned(),
                until: None,
                above: None,
            }],
            deleted: vec!["urn:x".to_owned()],
        },
    }
}

fn open(path: &Path) -> FolderContent {
    ReplicaFolder::lock(path).unwrap().open(URL).unwrap()
}

fn save(path: &Path, n: u32, replica: &str) {
    let folder = ReplicaFolder::lock(path).unwrap();
    folder.save(URL, &state(n), (None, Some(replica))).unwrap();
}

#[test]
fn what_is_saved_is_there_again() {
    let folder = tempfile::tempdir().unwrap();
    assert!(open(folder.path()).saved.is_none());
    save(folder.path(), 1, "<one/>");
    assert_eq!(open(folder.path()).saved, Some((state(1), "<one/>".to_owned())));
    let taken = ReplicaFolder::lock(folder.path()).unwrap();
    taken.save(URL, &state(2), (Some("<one/>"), None)).unwrap();
    let again = ReplicaFolder::lock(folder.path()).map(|_| ()).unwrap_err();
    assert!(again.to_string().contains("in use by another pull"), "{again}");
    drop(taken);
    assert_eq!(open(folder.path()).saved, Some((state(2), "<one/>".to_owned())));
    let sse = State {
        kept: ReplicaBasis::Sse {
            until: Some("2026".to_owned()),
            complete: Some(Complete { url: URL.to_owned(), etag: None }),
        },
        ..state(3)
    };
    let taken = ReplicaFolder::lock(folder.path()).unwrap();
    taken.save(URL, &sse, (None, Some("<two/>"))).unwrap();
    drop(taken);
    assert_eq!(open(folder.path()).saved, Some((sse, "<two/>".to_owned())));
}

/// After every step of a save, the folder opens as it was before it or as it is after it.
#[test]
fn a_crash_leaves_a_pair_that_belongs_together() {
    let folder = tempfile::tempdir().unwrap();
    let contents = |path: &Path| [REPLICA, STATE].map(|name| fs::read(path.join(name)).ok());
    save(folder.path(), 1, "<one/>");
    let [one, state_one] = contents(folder.path());
    save(folder.path(), 2, "<two/>");
    let [two, state_two] = contents(folder.path());
    let written: WrittenFile = serde_json::from_slice(state_two.as_ref().unwrap()).unwrap();
    let (new, new_state) = (written.new.unwrap(), format!("{STATE}.0123.new"));
    assert!(is_new(&new), "{new}");
    let names = [REPLICA, STATE, &new, &new_state];
    let torn = Some(b"<tw".to_vec());
    let old = Some((state(1), "<one/>".to_owned()));
    let new = Some((state(2), "<two/>".to_owned()));
    for (files, expected) in [
        ([&one, &state_one, &torn, &None], &old),
        ([&one, &state_one, &two, &None], &old),
        ([&one, &state_one, &two, &torn], &old),
        ([&one, &state_one, &two, &state_two], &old),
        ([&one, &state_two, &two, &None], &new),
        ([&two, &state_two, &None, &None], &new),
    ] {
        let folder = tempfile::tempdir().unwrap();
        for (name, bytes) in names.iter().zip(files) {
            if let Some(bytes) = bytes {
                fs::write(folder.path().join(name), bytes).unwrap();
            }
        }
        for _ in 0..2 {
            let held = open(folder.path());
            assert_eq!((&held.saved, held.warning), (expected, None));
        }
    }
}

#[test]
fn what_does_not_belong_together_is_read_anew_and_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(REPLICA);
    let spoils = [
        |path: &Path| fs::write(path.join(REPLICA), "<edited/>").unwrap(),
        |path: &Path| fs::remove_file(path.join(STATE)).unwrap(),
    ];
    // Each under a name of its own.
    for (spoil, old) in spoils.iter().zip(["replica.xml.old", "replica.xml.old.2"]) {
        save(folder.path(), 1, "<one/>");
        spoil(folder.path());
        let held = open(folder.path());
        let warning = held.warning.unwrap();
        assert!(held.saved.is_none() && warning.contains(&format!("{old} ")), "{warning}");
        assert!(!path.exists() && folder.path().join(old).exists());
    }
    assert_eq!(fs::read(folder.path().join("replica.xml.old")).unwrap(), b"<edited/>");
    for number in 3..=OLD_LIMIT {
        fs::write(folder.path().join(format!("replica.xml.old.{number}")), "").unwrap();
    }
    fs::write(&path, "<other/>").unwrap();
    let full = ReplicaFolder::lock(folder.path()).unwrap().open(URL).err().unwrap().to_string();
    assert!(full.contains("100 files like replica.xml.old"), "{full}");
    save(folder.path(), 1, "<one/>");
    fs::remove_file(&path).unwrap();
    assert!(open(folder.path()).warning.unwrap().ends_with("because it is not there"));
}

#[test]
fn what_others_keep_in_a_folder_stays() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(LOCK), "theirs").unwrap();
    drop(ReplicaFolder::lock(folder.path()).unwrap());
    assert_eq!(fs::read(folder.path().join(LOCK)).unwrap(), b"theirs");
    for foreign in ["{}", "{\"state\": 1}", "nothing", ""] {
        fs::write(folder.path().join(STATE), foreign).unwrap();
        let error = ReplicaFolder::lock(folder.path()).unwrap().open(URL).err().unwrap();
        assert_eq!(error.exit_status(), 2);
        assert!(error.to_string().contains("that is not of a replica"), "{error}");
        assert_eq!(fs::read_to_string(folder.path().join(STATE)).unwrap(), foreign);
    }
}

/// Others may keep files of any name there, and links that lead elsewhere.
#[test]
fn foreign_files_with_names_like_ours_stay() {
    let folder = tempfile::tempdir().unwrap();
    let names = ["replica.xml.new", "state.json.new", "notes.new", "replica.xml.00.new"];
    for name in names {
        fs::write(folder.path().join(name), "theirs").unwrap();
    }
    for n in 1..4 {
        save(folder.path(), n, &format!("<replica n='{n}'/>"));
        assert!(open(folder.path()).saved.is_some());
    }
    for name in names {
        assert_eq!(fs::read(folder.path().join(name)).unwrap(), b"theirs", "{name}");
    }
    // Nothing else is left there.
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), names.len() + 3);
    // What cannot be finished leaves nothing behind.
    fs::remove_file(folder.path().join(STATE)).unwrap();
    fs::create_dir(folder.path().join(STATE)).unwrap();
    let taken = ReplicaFolder::lock(folder.path()).unwrap();
    taken.save(URL, &state(5), (None, Some("<five/>"))).unwrap_err();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), names.len() + 3);
}

/// Whoever writes a state does not say which file becomes the replica.
#[test]
fn only_a_name_of_ours_is_taken_for_the_new_replica() {
    let chance = "0123456789abcdef0123456789abcdef";
    assert!(is_new(&format!("replica.xml.{chance}.new")));
    for name in [
        "replica.xml.new".to_owned(),
        "replica.xml..new".to_owned(),
        "replica.xml.../456789abcdef0123456789abcdef.new".to_owned(),
        format!("state.json.{chance}.new"),
        format!("../replica.xml.{chance}.new"),
        "/etc/passwd".to_owned(),
    ] {
        assert!(!is_new(&name), "{name}");
    }
}

#[test]
fn a_folder_is_for_one_feed() {
    let folder = tempfile::tempdir().unwrap();
    save(folder.path(), 1, "<one/>");
    let taken = ReplicaFolder::lock(folder.path()).unwrap();
    let error = taken.open("https://example.org/other").err().unwrap();
    assert_eq!(error.exit_status(), 2);
    assert!(error.to_string().contains("holds the replica of https://example.org/feed"));
}
