//! The folder of a replica: `replica.xml`, and `state.json` beside it.
//!
//! The two are written so that a crash at any point leaves a pair that belongs together: the new
//! replica first, under another name; then the state, which bears its digest, in one step, from
//! where on the new pair counts; then the replica takes its name. Opening a folder finishes a step
//! that was not.

use crate::app::AppError;
use crate::pull::{Complete, Gap, Kept, State};
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::xxh3_128;

/// The replica.
pub(super) const REPLICA: &str = "replica.xml";
const STATE: &str = "state.json";
const LOCK: &str = "lock";
/// What a file is called until it counts.
const NEW: &str = "new";
/// What a replica is called that does not belong to the state; the second one of them bears a number.
const OLD: &str = "old";
/// The most of them in a folder.
const OLD_LIMIT: usize = 100;
/// The layout of the state file.
const VERSION: u32 = 1;
/// The longest state file and replica that are read, in bytes.
const STATE_LIMIT: u64 = 64 * 1024 * 1024;
const REPLICA_LIMIT: u64 = 64 * 1024 * 1024;

/// A folder that nobody else uses while this stands.
pub(super) struct Folder {
    path: PathBuf,
    _lock: File,
}

/// What a folder holds.
pub(super) struct Held {
    /// The state and the replica of the last pull.
    pub(super) saved: Option<(State, String)>,
    /// What was odd about it.
    pub(super) warning: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct Written {
    version: u32,
    /// The address that was given.
    url: String,
    /// The digest of the replica that this belongs to.
    replica: String,
    subscription: String,
    etag: Option<String>,
    last_modified: Option<String>,
    answered_by: Option<String>,
    kept: WrittenKept,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "by")]
enum WrittenKept {
    Sse {
        until: Option<String>,
        complete: Option<WrittenComplete>,
    },
    History {
        archive: Option<String>,
        #[serde(default)]
        missing: Vec<WrittenGap>,
        #[serde(default)]
        deleted: Vec<String>,
    },
}

#[derive(Serialize, Deserialize)]
struct WrittenComplete {
    url: String,
    etag: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct WrittenGap {
    url: String,
    until: Option<String>,
    above: Option<Vec<String>>,
}

impl Folder {
    /// Takes a folder, or makes one.
    pub(super) fn take(path: &Path) -> Result<Self, AppError> {
        let failed = |error: io::Error| {
            AppError::run(format!("the folder {} cannot be used", path.display()), error)
        };
        fs::create_dir_all(path).map_err(failed)?;
        // What stands there already may be somebody's.
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false);
        let lock = options.open(path.join(LOCK)).map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { path: path.to_owned(), _lock: lock }),
            Err(TryLockError::WouldBlock) => Err(AppError::Input(format!(
                "the folder {} is in use by another pull; wait for it, or use another --into",
                path.display()
            ))),
            Err(TryLockError::Error(error)) => Err(failed(error)),
        }
    }

    /// Reads what the last pull of `url` left, and finishes what it began.
    pub(super) fn open(&self, url: &str) -> Result<Held, AppError> {
        let Some(bytes) = self.read(STATE, STATE_LIMIT)? else {
            let there = self.read(REPLICA, REPLICA_LIMIT)?.is_some();
            let why = "there is no state beside it";
            let warning = if there { Some(self.set_aside(why)?) } else { None };
            return Ok(Held { saved: None, warning });
        };
        let written: Option<Written> = serde_json::from_slice(&bytes).ok();
        let Some(written) = written.filter(|written| written.version == VERSION) else {
            return Err(AppError::Input(format!(
                "the folder {} holds a {STATE} that is not of a replica; use another --into, or \
                 remove that file",
                self.path.display()
            )));
        };
        if written.url != url {
            return Err(AppError::Input(format!(
                "the folder {} holds the replica of {}; use another --into",
                self.path.display(),
                written.url
            )));
        }
        let belongs = |bytes: &Vec<u8>| digest(bytes) == written.replica;
        let mut replica = self.read(REPLICA, REPLICA_LIMIT)?.filter(belongs);
        if replica.is_none() {
            replica = self.read(&new(REPLICA), REPLICA_LIMIT)?.filter(belongs);
            if replica.is_some() {
                self.rename(&new(REPLICA), REPLICA)?;
            }
        }
        match replica.map(String::from_utf8) {
            Some(Ok(text)) => Ok(Held { saved: Some((written.into(), text)), warning: None }),
            _ => {
                let warning = Some(self.set_aside("it is not the one that its state is about")?);
                Ok(Held { saved: None, warning })
            }
        }
    }

    /// Writes the state, and the replica where it is another one than before.
    pub(super) fn save(
        &self,
        url: &str,
        state: &State,
        (before, replica): (Option<&str>, Option<&str>),
    ) -> Result<(), AppError> {
        let Some(text) = replica.or(before) else { return Ok(()) };
        if let Some(replica) = replica {
            self.write(&new(REPLICA), replica.as_bytes())?;
        }
        let written = Written::new(url, state, digest(text.as_bytes()));
        let json = serde_json::to_vec_pretty(&written)
            .map_err(|error| AppError::run("the state cannot be written", error))?;
        self.write(&new(STATE), &json)?;
        self.rename(&new(STATE), STATE)?;
        if replica.is_some() {
            self.rename(&new(REPLICA), REPLICA)?;
        }
        Ok(())
    }

    /// Puts a replica that does not belong to the state out of the way; says so.
    fn set_aside(&self, why: &str) -> Result<String, AppError> {
        let shown = self.path.join(REPLICA);
        let shown = shown.display();
        if self.read(REPLICA, REPLICA_LIMIT)?.is_some() {
            let kept = self.free_name()?;
            self.rename(REPLICA, &kept)?;
            Ok(format!("{shown} is kept as {kept} and read anew, because {why}"))
        } else {
            Ok(format!("{shown} is read anew, because it is not there"))
        }
    }

    /// A name for a replica that is put out of the way, which nothing there has.
    fn free_name(&self) -> Result<String, AppError> {
        let first = format!("{REPLICA}.{OLD}");
        let others = (2..=OLD_LIMIT).map(|number| format!("{first}.{number}"));
        let mut names = std::iter::once(first.clone()).chain(others);
        // Whatever has the name, a link that leads nowhere too.
        let is_free = |name: &String| fs::symlink_metadata(self.path.join(name)).is_err();
        names.find(is_free).ok_or_else(|| {
            AppError::Input(format!(
                "the folder {} holds {OLD_LIMIT} files like {first}, which is the limit; remove \
                 those that are not needed",
                self.path.display()
            ))
        })
    }

    fn read(&self, name: &str, limit: u64) -> Result<Option<Vec<u8>>, AppError> {
        let path = self.path.join(name);
        let failed = |error| AppError::run(format!("{} cannot be read", path.display()), error);
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        let mut bytes = Vec::new();
        file.take(limit).read_to_end(&mut bytes).map_err(failed)?;
        Ok(Some(bytes))
    }

    /// Writes a file to the disk itself.
    fn write(&self, name: &str, bytes: &[u8]) -> Result<(), AppError> {
        let path = self.path.join(name);
        let write = || {
            let mut file = File::create(&path)?;
            file.write_all(bytes)?;
            file.sync_all()
        };
        let written: io::Result<()> = write();
        written
            .map_err(|error| AppError::run(format!("{} cannot be written", path.display()), error))
    }

    fn rename(&self, from: &str, to: &str) -> Result<(), AppError> {
        let path = self.path.join(to);
        let renamed = fs::rename(self.path.join(from), &path);
        // A folder that cannot be opened like a file keeps its names without this.
        let synced = renamed.map(|()| File::open(&self.path).and_then(|folder| folder.sync_all()));
        match synced {
            Ok(_) => Ok(()),
            Err(error) => {
                Err(AppError::run(format!("{} cannot be written", path.display()), error))
            }
        }
    }
}

fn new(name: &str) -> String {
    format!("{name}.{NEW}")
}

fn digest(bytes: &[u8]) -> String {
    format!("{:032x}", xxh3_128(bytes))
}

impl Written {
    fn new(url: &str, state: &State, replica: String) -> Self {
        let kept = match &state.kept {
            Kept::Sse { until, complete } => WrittenKept::Sse {
                until: until.clone(),
                complete: complete.as_ref().map(|complete| WrittenComplete {
                    url: complete.url.clone(),
                    etag: complete.etag.clone(),
                }),
            },
            Kept::History { archive, gaps, deleted } => {
                let gap = |gap: &Gap| WrittenGap {
                    url: gap.url.clone(),
                    until: gap.until.clone(),
                    above: gap.above.clone(),
                };
                WrittenKept::History {
                    archive: archive.clone(),
                    missing: gaps.iter().map(gap).collect(),
                    deleted: deleted.clone(),
                }
            }
        };
        Self {
            version: VERSION,
            url: url.to_owned(),
            replica,
            subscription: state.subscription.clone(),
            etag: state.etag.clone(),
            last_modified: state.last_modified.clone(),
            answered_by: state.answered_by.clone(),
            kept,
        }
    }
}

impl From<Written> for State {
    fn from(written: Written) -> Self {
        let kept = match written.kept {
            WrittenKept::Sse { until, complete } => {
                let complete = complete.map(|c| Complete { url: c.url, etag: c.etag });
                Kept::Sse { until, complete }
            }
            WrittenKept::History { archive, missing, deleted } => {
                let gaps =
                    missing.into_iter().map(|g| Gap { url: g.url, until: g.until, above: g.above });
                Kept::History { archive, gaps: gaps.collect(), deleted }
            }
        };
        Self {
            subscription: written.subscription,
            etag: written.etag,
            last_modified: written.last_modified,
            answered_by: written.answered_by,
            kept,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const URL: &str = "https://example.org/feed";

    fn state(n: u32) -> State {
        State {
            subscription: URL.to_owned(),
            etag: Some(format!("\"{n}\"")),
            last_modified: None,
            answered_by: Some(URL.to_owned()),
            kept: Kept::History {
                archive: Some("https://example.org/3".to_owned()),
                gaps: vec![Gap {
                    url: "https://example.org/2".to_owned(),
                    until: None,
                    above: None,
                }],
                deleted: vec!["urn:x".to_owned()],
            },
        }
    }

    fn open(path: &Path) -> Held {
        Folder::take(path).unwrap().open(URL).unwrap()
    }

    fn save(path: &Path, n: u32, replica: &str) {
        let folder = Folder::take(path).unwrap();
        folder.save(URL, &state(n), (None, Some(replica))).unwrap();
    }

    #[test]
    fn what_is_saved_is_there_again() {
        let folder = tempfile::tempdir().unwrap();
        assert!(open(folder.path()).saved.is_none());
        save(folder.path(), 1, "<one/>");
        assert_eq!(open(folder.path()).saved, Some((state(1), "<one/>".to_owned())));
        let taken = Folder::take(folder.path()).unwrap();
        taken.save(URL, &state(2), (Some("<one/>"), None)).unwrap();
        let again = Folder::take(folder.path()).map(|_| ()).unwrap_err();
        assert!(again.to_string().contains("in use by another pull"), "{again}");
        drop(taken);
        assert_eq!(open(folder.path()).saved, Some((state(2), "<one/>".to_owned())));
        let sse = State {
            kept: Kept::Sse {
                until: Some("2026".to_owned()),
                complete: Some(Complete { url: URL.to_owned(), etag: None }),
            },
            ..state(3)
        };
        let taken = Folder::take(folder.path()).unwrap();
        taken.save(URL, &sse, (None, Some("<two/>"))).unwrap();
        drop(taken);
        assert_eq!(open(folder.path()).saved, Some((sse, "<two/>".to_owned())));
    }

    /// After every step of a save, the folder opens as it was before it or as it is after it.
    #[test]
    fn a_crash_leaves_a_pair_that_belongs_together() {
        let names = [REPLICA, STATE, "replica.xml.new", "state.json.new"];
        let folder = tempfile::tempdir().unwrap();
        let contents = |path: &Path| names.map(|name| fs::read(path.join(name)).ok());
        save(folder.path(), 1, "<one/>");
        let [one, state_one, ..] = contents(folder.path());
        save(folder.path(), 2, "<two/>");
        let [two, state_two, ..] = contents(folder.path());
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
        let full = Folder::take(folder.path()).unwrap().open(URL).err().unwrap().to_string();
        assert!(full.contains("100 files like replica.xml.old"), "{full}");
        save(folder.path(), 1, "<one/>");
        fs::remove_file(&path).unwrap();
        assert!(open(folder.path()).warning.unwrap().ends_with("because it is not there"));
    }

    #[test]
    fn what_others_keep_in_a_folder_stays() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(LOCK), "theirs").unwrap();
        drop(Folder::take(folder.path()).unwrap());
        assert_eq!(fs::read(folder.path().join(LOCK)).unwrap(), b"theirs");
        for foreign in ["{}", "{\"state\": 1}", "nothing", ""] {
            fs::write(folder.path().join(STATE), foreign).unwrap();
            let error = Folder::take(folder.path()).unwrap().open(URL).err().unwrap();
            assert_eq!(error.exit_status(), 2);
            assert!(error.to_string().contains("that is not of a replica"), "{error}");
            assert_eq!(fs::read_to_string(folder.path().join(STATE)).unwrap(), foreign);
        }
    }

    #[test]
    fn a_folder_is_for_one_feed() {
        let folder = tempfile::tempdir().unwrap();
        save(folder.path(), 1, "<one/>");
        let taken = Folder::take(folder.path()).unwrap();
        let error = taken.open("https://example.org/other").err().unwrap();
        assert_eq!(error.exit_status(), 2);
        assert!(error.to_string().contains("holds the replica of https://example.org/feed"));
    }
}
