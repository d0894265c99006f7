//! The command as it is typed: output, where it goes, and the exit status.

use assert_cmd::Command;
use std::path::Path;

fn tidegate(folder: &Path, args: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_tidegate"))
        .current_dir(folder)
        .args(args)
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[test]
fn a_good_configuration_is_summed_up() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let minimal = (&["check", "-c", "config/minimal.toml"][..], "polls 1 feed,");
    for (args, part) in [(&["check"][..], "config/tidegate.toml: good"), minimal] {
        let (status, out, err) = tidegate(root, args);
        assert_eq!((status, err.as_str()), (0, ""), "{args:?}");
        assert!(out.contains(part), "{out}");
    }
}

#[test]
fn every_mistake_is_on_a_line_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let text = "[server]\nlisten = 5\nlisen = 6\n[[feed]]\nname = \"a\"\n";
    std::fs::write(folder.path().join("t.toml"), text).unwrap();
    for command in ["check", "serve"] {
        let (status, out, err) = tidegate(folder.path(), &[command, "-c", "t.toml"]);
        assert_eq!((status, out.as_str()), (2, ""), "{command}");
        let places: Vec<&str> =
            err.lines().filter_map(|line| line.strip_prefix("t.toml:")).collect();
        assert_eq!(places.len(), 3, "{err}");
        assert!(places[0].starts_with("2: server.listen: "), "{err}");
        assert!(places[1].starts_with("3: server.lisen: "), "{err}");
        assert!(places[2].starts_with("4: feed.url: "), "{err}");
    }
}

#[test]
fn what_a_configuration_names_must_be_there() {
    let folder = tempfile::tempdir().unwrap();
    let secret = "hush-7d1f";
    let text = format!(
        "[polling]\nca_file = \"nowhere.pem\"\n[[feed]]\nname = \"a\"\nurl = \"http://a.example/\"\n\
         cookie = {{ file = \"nowhere\" }}\nheaders = {{ X-A = \"{secret}\" }}\n\
         bearer = {{ env = \"TIDEGATE_NO_SUCH_VARIABLE\" }}\n"
    );
    std::fs::write(folder.path().join("t.toml"), text).unwrap();
    for command in ["check", "serve"] {
        let (status, out, err) = tidegate(folder.path(), &[command, "-c", "t.toml"]);
        assert_eq!((status, out.as_str()), (2, ""), "{err}");
        for said in [
            "t.toml:2: polling.ca_file: the file nowhere.pem cannot be read: ",
            "t.toml:6: feed.cookie: the file nowhere cannot be read: ",
            "t.toml:8: feed.bearer: the variable TIDEGATE_NO_SUCH_VARIABLE of the environment is not set",
        ] {
            assert!(err.contains(said), "{said}: {err}");
        }
        assert!(!err.contains(secret), "{err}");
    }
}

#[test]
fn a_file_that_is_named_must_be_there_the_default_need_not() {
    let folder = tempfile::tempdir().unwrap();
    let (status, _, err) = tidegate(folder.path(), &["check", "-c", "gone.toml"]);
    assert_eq!(status, 2);
    assert!(err.contains("gone.toml") && err.contains("No such file"), "{err}");
    assert_eq!(tidegate(folder.path(), &["check"]).0, 0);
}

#[test]
fn wrong_arguments_are_status_2_and_help_is_0() {
    let folder = tempfile::tempdir().unwrap();
    for args in [&[][..], &["fly"], &["serve", "not a url"], &["replay"], &["check", "extra"]] {
        let (status, out, err) = tidegate(folder.path(), args);
        assert_eq!((status, out.as_str()), (2, ""), "{args:?}");
        assert!(!err.is_empty(), "{args:?}");
    }
    for args in [&["--help"][..], &["--version"], &["serve", "--help"]] {
        let (status, out, err) = tidegate(folder.path(), args);
        assert_eq!((status, err.as_str()), (0, ""), "{args:?}");
        assert!(out.contains("tidegate"), "{args:?}");
    }
}
