mod reference;

use super::*;
use proptest::prelude::*;
use reference::{annotated_file, documented};
use std::path::PathBuf;
use tidegate_core::model::{FeedOptions, IGNORE_LIMIT, SecretSource};

/// Every fault of a text, one a line.
fn faults(text: &str) -> String {
    check("tidegate.toml", text).map_or_else(|faults| faults.to_string(), |_| String::new())
}

fn file(path: &Path) -> Result<Checked, ConfigError> {
    load(Some(path), Variables::default(), &Overrides::default())
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn an_empty_file_is_all_defaults() {
    for text in ["", "\u{feff}", "# nothing\n", "[server]\n[store]\n[polling]\n[publish]\n"] {
        assert_eq!(check("tidegate.toml", text).unwrap().config, Config::default(), "{text:?}");
    }
    // So is the annotated one.
    let checked = file(&root().join("config/tidegate.toml")).unwrap();
    assert_eq!(Checked { places: BTreeMap::new(), ..checked }, Checked::default());
    // Beside them one feed is enough.
    let Checked { config, .. } = file(&root().join("config/minimal.toml")).unwrap();
    assert_eq!(config.feeds[0].name.as_str(), "news");
    assert_eq!(Config { feeds: Vec::new(), ..config }, Config::default());
}

/// The annotated file and the tables of the documentation are those of the table of keys;
/// `TIDEGATE_GOLDEN=write` writes them anew.
#[test]
fn the_documentation_is_that_of_the_keys() {
    let root = root();
    let check = |name: &str, expected: String| {
        let path = root.join(name);
        if std::env::var("TIDEGATE_GOLDEN").as_deref() == Ok("write") {
            std::fs::write(&path, &expected).unwrap();
        }
        let said = "TIDEGATE_GOLDEN=write cargo test -p tidegate-config writes it anew";
        assert_eq!(std::fs::read_to_string(&path).unwrap(), expected, "{name}: {said}");
    };
    check("config/tidegate.toml", annotated_file());
    let name = "docs/operators/configuration.md";
    let mut text = std::fs::read_to_string(root.join(name)).unwrap();
    for (table, _) in TABLES {
        let section = text.find(&format!("\n## {table}\n")).unwrap();
        let after = |from: usize, what: &str| Some(from + text.get(from..)?.find(what)? + 1);
        let start = after(section, "\n| ").unwrap();
        let end = after(start, "\n\n").unwrap_or(text.len());
        text.replace_range(start..end, &documented(table).unwrap());
    }
    check(name, text);
}

/// Every default and every example that is documented can be read.
#[test]
fn presets_are_values() {
    fn reads<T: Default>(keys: &keys::KeyTable<T>) {
        for (row, read) in keys.iter() {
            let texts = match row.preset {
                keys::Preset::Value(text) | keys::Preset::Words(_, text) => [text, text],
                keys::Preset::Shown(text, _, example) => [text, example],
            };
            for text in texts {
                let value = toml::de::DeValue::parse(text).unwrap();
                let mut mistakes = Vec::new();
                let node = value::ConfigNode::from_toml(&value);
                let is_read = read(&node, &mut mistakes, &mut T::default());
                assert!(is_read && mistakes.is_empty(), "{} = {text}: {mistakes:?}", row.name);
            }
        }
    }
    reads(&server::KEYS);
    reads(&store::KEYS);
    reads(&polling::KEYS);
    reads(&publish::KEYS);
    reads(&websub::SUP_KEYS);
    reads(&websub::KEYS);
    reads(&polling::HOST_KEYS);
    reads(&feeds::FEED_KEYS);
    reads(&feeds::AGGREGATE_KEYS);
    reads(&readers::KEYS);
    reads(&origins::ORIGIN_KEYS);
    reads(&origins::ALLOW_KEYS);
    let mut preset = FeedSettings::default();
    feeds::FEED_KEYS.preset(&mut preset);
    assert_eq!(preset.options, FeedOptions::default());
    assert_eq!(Publish::default().versions_per_day, tidegate_core::model::VERSIONS_PER_DAY);
}

/// Each good file with what it says that the first one does not; and what it is warned of, and names elsewhere. The last
/// is the example of CONTRACT, "Configuration", with the other source that its aggregate names.
#[test]
fn what_is_good_is_read_as_it_is_meant() {
    let cases = include_str!("tests/good.toml").split("# ---\n");
    let (mut usual, mut all) = (Vec::new(), String::new());
    for case in cases.chain([include_str!("tests/contract.toml")]) {
        let checked = check("f", case).unwrap_or_else(|faults| panic!("{case}\n{faults}"));
        let read = values(&checked);
        let own: Vec<_> = read.iter().filter(|line| !usual.contains(*line)).cloned().collect();
        all.push_str(&format!("{case}=> {}\n\n", own.join("\n=> ")));
        if usual.is_empty() {
            usual = read;
        }
    }
    insta::assert_snapshot!(all);
}

/// Each value of a configuration behind the names of the fields that lead to it, and how many a list has.
pub(crate) fn values(checked: &Checked) -> Vec<String> {
    let checked = Checked { places: BTreeMap::new(), ..checked.clone() };
    let (mut path, mut values) = (Vec::<(String, usize)>::new(), Vec::<String>::new());
    for line in format!("{checked:#?}").lines() {
        let said = line.trim_start();
        let depth = (line.len() - said.len()) / 4;
        let names: Vec<&str> = path.iter().take(depth).map(|(name, _)| name.as_str()).collect();
        let place = names.join(".");
        if let Some((list, begun)) = path.get(depth).filter(|_| said.starts_with(']')) {
            values.push(format!("{place}.{list}: {} values", values.len() - begun));
        }
        path.truncate(depth);
        match said.strip_suffix(['{', '(', '[']) {
            Some(name) => path.push((name.trim_end().replace(": ", "."), values.len())),
            None if said.starts_with(['}', ')', ']']) => {}
            None => values.push(format!("{place}.{}", said.trim_end_matches(','))),
        }
    }
    values
}

#[test]
fn every_mistake_is_named_at_once() {
    insta::assert_snapshot!(faults(include_str!("tests/mistakes.toml")));
}

/// Each wrong file with all that is said of it, which repeats no secret.
#[test]
fn what_is_wrong_is_said_at_its_place() {
    let mut all = String::new();
    for case in include_str!("tests/wrong.toml").split("# ---\n") {
        let said = faults(case);
        assert!(!said.is_empty() && !said.contains("hush"), "{case}\n{said}");
        all.push_str(&format!("{case}=> {}\n\n", said.replace('\n', "\n=> ")));
    }
    insta::assert_snapshot!(all);
}

#[test]
fn what_is_not_toml_is_named_with_its_line_beside_the_other_mistakes() {
    insta::assert_snapshot!(faults(include_str!("tests/not-toml.toml")));
}

/// The administration API takes the same keys as JSON.
#[test]
fn mistakes_in_json_say_where() {
    use serde_json::json;
    for (value, said) in [
        (json!("title"), "ignore: is a text; write a list of fields"),
        (json!(["title", 7]), "entry 2 of ignore: has a number; write a list of fields"),
        (json!([{ "pattern": "a" }]), "entry 1 of ignore: has an entry without a field"),
        (json!([{ "field": "a", "pattern": null }]), "entry 1 of ignore: pattern is a null; write"),
        (json!([{ "field": "a", "patern": "" }]), "entry 1 of ignore: \"patern\": unknown key"),
        (json!([{ "field": "a", "pattern": "[" }]), "entry 1 of ignore: the pattern \"[\" is no"),
        (json!([""]), "entry 1 of ignore: \"\" is no field"),
        (json!(vec!["a"; IGNORE_LIMIT + 1]), "ignore: has 65 entries, the limit is 64"),
    ] {
        let settings = json!({ "ignore": value });
        let (key, message) = feed_settings(settings.as_object().unwrap()).unwrap_err();
        assert_eq!(key, "ignore");
        assert!(message.starts_with(said), "{message}");
    }
    let settings = json!({ "local": true, "title": null, "url": null, "secret": null });
    let read = feed_settings(settings.as_object().unwrap()).unwrap();
    assert!(read.options.sharing.local && read.url.is_none() && read.options.secret.is_none());
    for key in ["name", "sources", "path"] {
        let settings = json!({ key: "a" });
        let said = feed_settings(settings.as_object().unwrap()).unwrap_err();
        assert_eq!(said, (key.to_owned(), format!("the key {key:?} is unknown")));
    }
}

/// Neither a configuration shows a secret, nor the warning that one was changed.
#[test]
fn no_secret_is_shown() {
    let address = |host: &str| format!("postgresql://gate:hush@{host}/feeds");
    let in_file = |host: &str| {
        let store = format!("[store]\nkind = \"postgres\"\nurl = \"{}\"\n", address(host));
        let server = "[server]\nadmin_token = \"hush-hush-hush-hush\"\n";
        let reader = "[[reader]]\nname = \"ann\"\ntoken = \"hush_0123456789-abcdefgh\"\n";
        check("f", &format!("{server}{store}{reader}all_private = true")).unwrap()
    };
    let in_variables = |host: &str| {
        let url = address(host);
        let pairs = [("TIDEGATE_STORE_KIND", "postgres"), ("TIDEGATE_STORE_URL", &url)];
        let owned = pairs.map(|(name, value)| (name.to_owned(), value.to_owned()));
        check_with("f", "", &Variables::new(owned)).unwrap()
    };
    for (started, again) in [(in_file("a"), in_file("b")), (in_variables("a"), in_variables("b"))] {
        let kept = again.config.clone().keep_store(&started.config);
        assert_eq!(kept, ["store.url"]);
        let warned = again.restart_warnings(&kept)[0].to_string();
        assert!(warned.contains("store.url: was changed and needs a restart"), "{warned}");
        assert!(!format!("{warned} {started:?}").contains("hush"), "{warned} {started:?}");
    }
    let token = in_file("a").config.server.admin_token;
    let Some(SecretSource::Literal(token)) = token else { panic!("no token") };
    assert_eq!(token.reveal(), "hush-hush-hush-hush");
}

#[test]
fn lists_have_their_limits() {
    // There are no more circles than are named.
    let own = (0..105).map(|n| format!("[[aggregate]]\nname = \"n{n}\"\nsources = [\"n{n}\"]\n"));
    assert_eq!(faults(&own.collect::<String>()).lines().count(), 100);
    let many = vec!["\"a\""; IGNORE_LIMIT + 1].join(",");
    let said = faults(&format!("[[feed]]\nname=\"a\"\nurl=\"http://a\"\nignore = [{many}]"));
    assert!(said.starts_with("tidegate.toml:4: feed.ignore: has 65 entries, the limit is 64"));
    let sources = vec!["\"a\""; SOURCE_LIMIT + 1].join(",");
    let text = format!("[[aggregate]]\nname = \"all\"\nsources = [{sources}]");
    let Err(found) = check("f", &text) else { panic!("taken") };
    assert!(found.to_string().contains("has 10001 entries, the limit is 10000"));
    assert_eq!(found.iter().count(), FAULTS_SHOWN);
    assert!(found.count() > FAULTS_SHOWN);
    assert!(found.to_string().ends_with(&format!("and {} more", found.count() - FAULTS_SHOWN)));
}

#[test]
fn files_that_cannot_be_read_say_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.toml");
    assert!(matches!(file(&path), Err(ConfigError::Read { .. })));
    std::fs::write(&path, b"# one\n# two \xff\n").unwrap();
    let said = file(&path).unwrap_err().to_string();
    assert!(said.ends_with("x.toml:2: the configuration is not UTF-8; save it as UTF-8"), "{said}");
    std::fs::File::create(&path).unwrap().set_len(FILE_LIMIT + 1).unwrap();
    assert!(file(&path).unwrap_err().to_string().contains("is larger than 16777216 bytes"));
    std::fs::write(&path, "[server]\nlisten = 1").unwrap();
    let said = file(&path).unwrap_err().to_string();
    assert!(said.starts_with(&format!("{}:2: server.listen: ", path.display())), "{said}");
}

proptest! {
    /// A key that nobody knows is refused wherever it stands.
    #[test]
    fn unknown_keys_are_refused(key in "[a-z]{1,12}_x", table in 0..TABLES.len()) {
        let (name, _) = TABLES[table];
        let is_single = single_tables().any(|(single, _)| single == name);
        let head = if is_single { format!("[{name}]") } else { format!("[[{name}]]") };
        let said = faults(&format!("{head}\n{key} = 1\n"));
        let place = format!("tidegate.toml:2: {name}.{key}: unknown key");
        prop_assert!(said.contains(&place), "{}", said);
    }
}
