mod reference;

use super::*;
use proptest::prelude::*;
use reference::{annotated_file, documented};
use std::path::PathBuf;
use std::time::Duration;
use tidegate_core::model::{
    ConflictPolicy, Deletions, FeedOptions, IGNORE_LIMIT, Order, Probing, SecretSource,
};
use tidegate_net::fetch::AllowPrivate;

/// Every fault of a text, one a line.
fn faults(text: &str) -> String {
    check("tidegate.toml", text).map_or_else(|faults| faults.to_string(), |_| String::new())
}

fn file(path: &Path) -> Result<Checked, ConfigError> {
    load(Some(path), Variables::default(), &Overrides::default())
}

fn good(text: &str) -> Config {
    check("tidegate.toml", text).map(|checked| checked.config).unwrap()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn an_empty_file_is_all_defaults() {
    for text in ["", "\u{feff}", "# nothing\n", "[server]\n[store]\n[polling]\n[publish]\n"] {
        assert_eq!(good(text), Config::default(), "{text:?}");
    }
}

#[test]
fn the_annotated_file_shows_the_defaults() {
    let checked = file(&root().join("config/tidegate.toml")).unwrap();
    assert_eq!(Checked { places: BTreeMap::new(), ..checked }, Checked::default());
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

#[test]
fn the_minimal_file_is_one_feed() {
    let Checked { config, .. } = file(&root().join("config/minimal.toml")).unwrap();
    assert_eq!(config.feeds[0].name.as_str(), "news");
    assert_eq!(Config { feeds: Vec::new(), ..config }, Config::default());
}

/// The example of CONTRACT, "Configuration", with the other source that its aggregate names.
#[test]
fn the_contract_s_own_example() {
    let config = good(include_str!("tests/contract.toml"));
    assert_eq!(config.server.public_url.as_deref(), Some("https://feeds.example.org"));
    assert_eq!(
        config.server.admin_token,
        Some(SecretSource::File("/run/secrets/tidegate".to_owned()))
    );
    let endpoint = config.publish.endpoint.as_ref().map(|id| id.as_str());
    assert_eq!(endpoint, Some("feeds.example.org"));
    assert_eq!(config.publish.history_links, Publish::default().history_links);
    assert_eq!(config.publish.window, Duration::from_secs(30 * 86_400));
    assert_eq!(config.publish.tombstones, Duration::from_secs(180 * 86_400));
    assert_eq!(config.feeds.last().unwrap().options.sharing.sources.len(), 2);
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

/// What each key makes of what is written; what it refuses stands in `tests/wrong.toml`.
#[test]
fn values_are_read_as_they_are_meant() {
    let proxies = |value: &str| {
        let config = good(&format!("[server]\ntrusted_proxies = {value}"));
        config.server.trusted_proxies.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(proxies("[]"), [""; 0]);
    let all = proxies(r#"["127.0.0.1", "10.0.0.0/8", "::1", "fd00::/8"]"#);
    assert_eq!(all, ["127.0.0.1/32", "10.0.0.0/8", "::1/128", "fd00::/8"]);

    let private = |value: &str| good(&format!("[polling]\nallow_private = {value}")).polling;
    assert_eq!(private("false").allow_private, AllowPrivate::No);
    assert_eq!(private("true").allow_private, AllowPrivate::All);
    let only = private(r#"["LocalHost:80", "[0:0::1]:8000", "0x7f.1:9"]"#).allow_private;
    assert_eq!(only, AllowPrivate::only(["127.0.0.1:9", "[::1]:8000", "localhost:80"]).unwrap());

    let options = |text: &str| {
        let text = format!("[[feed]]\nname=\"a\"\nurl=\"http://a\"\n{text}");
        good(&text).feeds[0].options.clone()
    };
    for order in Order::ALL {
        assert_eq!(options(&format!("order = {:?}", order.name())).order, order);
    }
    for (written, probing) in [
        ("probe = false", Probing::Off),
        ("probe = true", Probing::All),
        ("probe = \"doubts\"", Probing::Doubts),
        ("", Probing::Doubts),
    ] {
        assert_eq!(options(written).probe, probing);
    }
    assert!(options("backfill = true").backfill && !options("").backfill);
    // The intervals of a feed stand over those of all.
    good(
        "[polling]\nmin_interval = \"1h\"\n[[feed]]\nname = \"a\"\nurl = \"http://a\"\n\
         min_interval = \"1s\"\nmax_interval = \"1m\"",
    );
    let said = options("deletions = \"off\"\ncomplete = true");
    assert!(said.complete && said.deletions == Deletions::Off);
    let said = options(
        "ignore = [\n\"media:keywords\",\n{ field = 'description', pattern = '\\d+ views' },\n\
         { field = \"{urn:x}a\" }]",
    );
    let expected =
        [("media:keywords", None), ("description", Some(r"\d+ views")), ("{urn:x}a", None)];
    assert!(said.ignore.iter().map(|i| (i.field(), i.pattern())).eq(expected), "{said:?}");
    let many = vec!["\"a\""; IGNORE_LIMIT + 1].join(",");
    let said = faults(&format!("[[feed]]\nname=\"a\"\nurl=\"http://a\"\nignore = [{many}]"));
    assert!(said.starts_with("tidegate.toml:4: feed.ignore: has 65 entries, the limit is 64"));
}

/// The administration API takes the same keys as JSON.
#[test]
fn mistakes_in_json_say_where() {
    use serde_json::json;
    for (value, said) in [
        (json!("title"), "ignore: is a text; write a list of fields"),
        (json!(["title", 7]), "entry 2 of ignore: has a number; write a list of fields"),
        (json!([{ "pattern": "a" }]), "entry 1 of ignore: has an entry without a field"),
        (
            json!([{ "field": "title", "pattern": null }]),
            "entry 1 of ignore: pattern is a null; write a text",
        ),
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

#[test]
fn what_has_no_effect_is_warned_of_and_stops_nothing() {
    let own = "[[feed]]\nname = \"own\"\nlocal = true\n";
    for (text, expected) in [
        (
            "[store]\nurl = \"postgresql://db/feeds\"\nrequire_standby = true".to_owned(),
            "f:2: store.url: has no effect: store.kind is \"sled\"\n\
             f:3: store.require_standby: has no effect: store.kind is \"sled\"",
        ),
        ("[store]\nkind = \"postgres\"\nurl = { env = \"DATABASE\" }".to_owned(), ""),
        (
            format!("{own}deletions = \"eager\"\nmin_interval = \"1h\""),
            "f:4: feed.deletions: does nothing: a feed with local = true and no url has no upstream to \
             poll\nf:5: feed.min_interval: does nothing: a feed with local = true and no url has no \
             upstream to poll",
        ),
        (format!("{own}url = \"http://a\"\nmin_interval = \"1h\""), ""),
        (
            "[[feed]]\nname=\"a\"\nurl=\"http://a\"\n[[aggregate]]\nname=\"all\"\nsources=[\"a\"]"
                .to_owned(),
            "",
        ),
    ] {
        let warnings = check("f", &text).unwrap().warnings;
        let said: Vec<String> = warnings.iter().map(Fault::to_string).collect();
        assert_eq!(said.join("\n"), expected, "{text}");
    }
}

#[test]
fn local_feeds_and_aggregates_say_how_they_share() {
    let text = "[[feed]]\nname=\"notes\"\nlocal=true\ntitle=\"Our notes\"\n\
                shares_with=[\"news\"]\nconflicts=\"prefer:gate.example\"\n\
                [[feed]]\nname=\"news\"\nurl=\"http://a\"\nconflicts=\"winner\"\n\
                [[aggregate]]\nname=\"inner\"\nsources=[\"news\"]\n\
                [[aggregate]]\nname=\"all\"\nsources=[\"notes\",\"inner\"]\ntitle=\"All\"";
    let config = good(text);
    let [notes, news, _, all] = [0, 1, 2, 3].map(|at| &config.feeds[at].record);
    assert!(!notes.has_upstream() && notes.options.sharing.local);
    assert_eq!(notes.options.sharing.title.as_deref(), Some("Our notes"));
    assert_eq!(notes.options.sharing.shares_with, std::slice::from_ref(&news.name));
    assert_eq!(notes.options.sharing.conflicts.to_string(), "prefer:gate.example");
    assert_eq!(news.options.sharing.conflicts, ConflictPolicy::Winner);
    assert!(!all.has_upstream() && all.options.sharing.is_aggregate());
    assert_eq!(all.options.sharing.sources.len(), 2);
}

#[test]
fn a_token_is_not_shown_by_accident() {
    let config = good("[server]\nadmin_token = \"hunter2-hunter2-hunter2\"");
    assert!(!format!("{config:?}").contains("hunter2"));
    let Some(SecretSource::Literal(token)) = config.server.admin_token else { panic!("no token") };
    assert_eq!(token.reveal(), "hunter2-hunter2-hunter2");
}

#[test]
fn lists_have_their_limits() {
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
    /// Whatever is written, the answer is a configuration or faults within the file's lines.
    #[test]
    fn no_text_is_too_strange(text in "([\\[\\]=\".,{}#\n a-z0-9_-]|\\PC){0,200}") {
        if let Err(faults) = check("f", &text) {
            let lines = text.matches('\n').count() + 1;
            prop_assert!(faults.iter().all(|fault| (1..=lines).contains(&fault.line)));
        }
    }

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
