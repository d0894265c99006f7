//! `tidegate check`: the configuration's mistakes, or a short summary.

use super::print_lines;
use crate::app::{AppError, ConfigSource, startup};
use std::io::Write;
use std::path::Path;
use tidegate_config::{Checked, Overrides, StoreKind, written};
use tidegate_core::model::counted;
use tidegate_net::fetch::AllowPrivate;

/// Checks a configuration file and writes a short summary to `out`, warnings first.
///
/// `None`: there is no file, and the defaults are what holds.
pub fn check(file: Option<&Path>, out: &mut impl Write) -> Result<(), AppError> {
    let path = file.map(Path::to_path_buf);
    let source = ConfigSource::File { path, overrides: Overrides::default() };
    let checked = startup::load(&source)?;
    let name = file.map_or_else(
        || "no configuration file, so every key has its default".to_owned(),
        |file| file.display().to_string(),
    );
    let summary = summary(&name, &checked);
    print_lines(&summary, out)
}

fn summary(name: &str, checked: &Checked) -> String {
    let config = &checked.config;
    let warnings = startup::warnings(checked).into_iter();
    let mut lines: Vec<String> = warnings.map(|warning| format!("warning: {warning}")).collect();
    lines.push(format!("{name}: good"));
    let server = &config.server;
    let shown = server.public_url.clone().unwrap_or_else(|| server.origin(server.listen));
    lines.push(format!("  listens on {}, known as {shown}", server.listen));
    lines.push(match config.store.kind {
        StoreKind::Sled => format!("  keeps its data in {}", config.store.path.display()),
        StoreKind::Postgres => "  keeps its data in a PostgreSQL database".to_owned(),
        StoreKind::Memory => "  keeps its data in memory, until it stops".to_owned(),
    });
    let polling = &config.polling;
    let private = match &polling.allow_private {
        AllowPrivate::No => "no private addresses".to_owned(),
        AllowPrivate::All => "private addresses too".to_owned(),
        AllowPrivate::Only(only) => {
            format!("{} allowed private", counted(only.len(), "address"))
        }
    };
    let (least, most) = (written(polling.min_interval), written(polling.max_interval));
    let polled = config.feeds.iter().filter(|feed| feed.has_upstream()).count();
    let feeds = counted(polled, "feed");
    lines.push(format!("  polls {feeds}, each every {least} to {most}, {private}"));
    if let Some(proxy) = &polling.proxy {
        lines.push(format!("  goes out by the proxy {}", proxy.url));
    }
    let local = || config.feeds.iter().filter(|feed| feed.options.sharing.local);
    if local().next().is_some() {
        let shared = match local().filter(|feed| feed.has_upstream()).count() {
            0 => String::new(),
            shared => format!(", {shared} of them polled as well"),
        };
        lines.push(format!("  makes items of {} here{shared}", counted(local().count(), "feed")));
    }
    let gathered = config.feeds.iter().filter(|feed| feed.options.sharing.is_aggregate()).count();
    if gathered > 0 {
        lines.push(format!("  gathers {}", counted(gathered, "aggregate")));
    }
    let is_private = config.feeds.iter().filter(|feed| feed.private).count();
    if !config.readers.is_empty() || is_private > 0 {
        let readers = counted(config.readers.len(), "reader");
        lines.push(format!("  has {} for {readers}", counted(is_private, "private feed")));
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_config as config;

    /// Of each good file of the configuration's own tests, and of the example of CONTRACT.
    #[test]
    fn a_summary_says_what_will_happen() {
        let cases = include_str!("../config/tests/good.toml").split("# ---\n");
        let all = cases.chain([include_str!("../config/tests/contract.toml")]).map(|case| {
            let summary = summary("f.toml", &config::check("f.toml", case).unwrap());
            assert!(!summary.contains("p%40ss") && !summary.contains("p@ss"), "{summary}");
            format!("{case}=> {}\n", summary.replace('\n', "\n=> "))
        });
        insta::assert_snapshot!(all.collect::<Vec<_>>().join("\n"));
    }

    #[test]
    fn what_a_start_cannot_use_is_not_good() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let token = "0123456789abcdef0123456789abcdef";
        for (name, text) in [("one", token), ("two", token), ("spaces", "a token with some spaces")]
        {
            std::fs::write(path(name), text).unwrap();
        }
        std::fs::create_dir(path("data")).unwrap();
        std::fs::write(path("data").join("admin-token"), "short").unwrap();
        let data = |name: &str| format!("[store]\npath = {:?}\n", path(name));
        let reader = |name: &str, token: &str| {
            format!("[[reader]]\nname = {name:?}\nall_private = true\n{token}\n")
        };
        let file = |name: &str| format!("{{ file = {:?} }}", path(name));
        let in_file = |name: &str| format!("token = {}", file(name));
        let (ann, twice) =
            (reader("ann", &in_file("one")), "f.toml:8: reader.token: is the token of line 4");
        let database = |url: &str| format!("[store]\nkind = \"postgres\"\nurl = {url}\n");
        let admin = |name: &str| format!("[server]\nadmin_token_file = {:?}\n", path(name));
        for (text, said) in [
            (admin("none"), "f.toml:2: server.admin_token_file: the administration token cannot"),
            (admin("spaces"), "f.toml:2: server.admin_token_file: a token is made of"),
            (ann.clone() + &reader("bob", &in_file("two")), twice),
            (ann + &reader("bob", &format!("token = {token:?}")), twice),
            (database("\"{ file = /nowhere }\""), "f.toml:3: store.url: "),
            (database("\"postgresql:///feeds\""), "f.toml:3: store.url: "),
            (database(&file("none")), "f.toml:3: store.url: the file"),
            (database(&file("spaces")), "f.toml:3: store.url: "),
            (data("data"), "of no use: data/admin-token: a token is 16 to 512"),
        ] {
            let file = path("f.toml");
            std::fs::write(&file, &text).unwrap();
            let error = check(Some(&file), &mut Vec::new()).unwrap_err();
            let found = error.report().replace(&format!("{}/", folder.path().display()), "");
            assert!(error.exit_status() == 2 && found.contains(said), "{text}: {found}");
            assert!(!found.contains(token) && !found.contains("some spaces"), "{found}");
        }
        for good in [admin("one"), data("none"), database("\"postgresql://db/feeds\"")] {
            std::fs::write(path("f.toml"), &good).unwrap();
            assert!(check(Some(&path("f.toml")), &mut Vec::new()).is_ok(), "{good}");
        }
        // Nor is an address that nobody can use.
        let file = folder.path().join("f.toml");
        for (text, good) in [
            ("listen = \"0.0.0.0:8080\"", false),
            ("listen = \"[::]:8080\"", false),
            ("listen = \"0.0.0.0:8080\"\npublic_url = \"https://a.example\"", true),
            ("listen = \"127.0.0.1:8080\"", true),
        ] {
            std::fs::write(&file, format!("[server]\n{text}\n")).unwrap();
            let checked = check(Some(&file), &mut Vec::new());
            assert_eq!(checked.is_ok(), good, "{text}");
            if let Err(error) = checked {
                assert_eq!(error.exit_status(), 2);
                for part in ["f.toml:2: server.listen: ", "TIDEGATE_SERVER_PUBLIC_URL"] {
                    assert!(error.report().contains(part), "{}", error.report());
                }
            }
        }
    }
}
