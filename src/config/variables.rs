//! Settings of the environment: `TIDEGATE_TABLE_KEY` for each key of the tables that stand once.

use super::nearest::nearest;
use super::{External, Fault, Overrides, single_tables};
use std::collections::BTreeMap;

/// How the name of each variable begins.
const PREFIX: &str = "TIDEGATE_";
/// Variables that are read elsewhere: the file, what is logged, and the gateway that commands ask.
const OTHERS: [&str; 3] = ["CONFIG", "LOG", "URL"];
/// What Kubernetes and container links set of their own accord for a service that is called `tidegate`.
const LINKS: [&str; 3] = ["PORT_", "SERVICE_", "ENV_"];

/// The variables of the environment whose names begin like ours, without empty ones; and the options of the command
/// line, which go before them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Variables {
    environment: BTreeMap<String, String>,
    options: BTreeMap<&'static str, (&'static str, String)>,
}

impl Variables {
    /// Those of ours among `all`. An empty one is as good as none.
    pub fn new(all: impl IntoIterator<Item = (String, String)>) -> Self {
        let is_ours =
            |(name, value): &(String, String)| name.starts_with(PREFIX) && !value.is_empty();
        Self { environment: all.into_iter().filter(is_ours).collect(), options: BTreeMap::new() }
    }

    /// The same below what the command line says.
    pub fn below(self, overrides: &Overrides) -> Self {
        Self { options: overrides.settings().collect(), ..self }
    }

    /// The option or the variable for a key of a table that stands once, and what it says.
    pub(super) fn get(&self, table: &str, key: &str) -> Option<(&str, &str)> {
        let is_single = single_tables().any(|(single, _)| single == table);
        if let Some((option, said)) = self.options.get(&*format!("{table}.{key}")) {
            return Some((*option, said.as_str()));
        }
        let name = is_single.then(|| format!("{PREFIX}{}", variable(table, key)))?;
        let found = self.environment.get_key_value(&name);
        found.map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// A warning for each that nothing reads; `externals`: what the configuration takes from the
    /// environment.
    pub(super) fn unknown(&self, externals: &[(Fault, External)]) -> Vec<Fault> {
        let named: Vec<&str> = externals.iter().filter_map(|(_, it)| it.variable()).collect();
        let keys = single_tables()
            .flat_map(|(table, rows)| rows.iter().map(move |row| variable(table, row.name)));
        let known: Vec<String> = keys.chain(OTHERS.map(str::to_owned)).collect();
        let mut warnings = Vec::new();
        for name in self.environment.keys().filter(|name| !named.contains(&name.as_str())) {
            let own = name.strip_prefix(PREFIX).unwrap_or(name);
            let is_link = own == "PORT" || LINKS.iter().any(|link| own.starts_with(link));
            if is_link || known.iter().any(|known| known == own) {
                continue;
            }
            // The name of a key with its table, or without it.
            let is_inner = |outer: &str, inner: &str| {
                outer.strip_suffix(inner).is_some_and(|table| table.ends_with('_'))
            };
            let same = known.iter().find(|known| is_inner(own, known) || is_inner(known, own));
            let lower: Vec<String> = known.iter().map(|name| name.to_lowercase()).collect();
            let near = || nearest(own, lower.iter().map(String::as_str)).map(str::to_uppercase);
            let message = match same.cloned().or_else(near) {
                Some(meant) => format!("no key has this variable; did you mean {PREFIX}{meant}?"),
                None => format!(
                    "no key has this variable; a setting is {PREFIX}TABLE_KEY, like {PREFIX}SERVER_PUBLIC_URL"
                ),
            };
            warnings.push(Fault { file: name.clone(), line: 0, key: String::new(), message });
        }
        warnings
    }
}

/// The variable for a key, without what all have in common.
fn variable(table: &str, key: &str) -> String {
    match (table, key) {
        ("server", "admin_token") => "ADMIN_TOKEN".to_owned(),
        _ => format!("{table}_{key}").to_uppercase(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Config, StoreKind, check_with};
    use std::path::PathBuf;
    use std::time::Duration;
    use tidegate_net::fetch::AllowPrivate;

    fn variables(pairs: &[(&str, &str)]) -> Variables {
        Variables::new(pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())))
    }

    fn read(text: &str, pairs: &[(&str, &str)]) -> Result<Config, String> {
        let checked = check_with("f", text, &variables(pairs));
        checked.map(|checked| checked.config).map_err(|faults| faults.to_string())
    }

    fn warnings(text: &str, pairs: &[(&str, &str)]) -> Vec<String> {
        let checked = check_with("f", text, &variables(pairs)).unwrap();
        checked.warnings.iter().map(Fault::to_string).collect()
    }

    #[test]
    fn every_kind_of_key_has_its_variable_over_the_file() {
        let text = "[store]\nkind = \"memory\"\npath = \"a\"\n[polling]\nmin_interval = \"2m\"\n";
        let config = read(
            text,
            &[
                ("TIDEGATE_SERVER_LISTEN", "0.0.0.0:8080"),
                ("TIDEGATE_SERVER_PUBLIC_URL", "https://feeds.example.org"),
                ("TIDEGATE_SERVER_TRUSTED_PROXIES", "[\"10.0.0.0/8\", \"127.0.0.1\"]"),
                ("TIDEGATE_STORE_PATH", "true"),
                ("TIDEGATE_STORE_MIN_FREE", "1GiB"),
                ("TIDEGATE_POLLING_ALLOW_PRIVATE", "true"),
                ("TIDEGATE_PUBLISH_ARCHIVE_ENTRIES", "7"),
                ("TIDEGATE_WEBSUB_HUB", "false"),
                ("TIDEGATE_SUP_PERIODS", "[\"1m\", \"5m\"]"),
                ("TIDEGATE_STORE_KIND", ""),
                ("HOME", "/"),
            ],
        )
        .unwrap();
        assert_eq!(config.server.listen.to_string(), "0.0.0.0:8080");
        assert_eq!(config.server.public_url.as_deref(), Some("https://feeds.example.org"));
        assert_eq!(config.server.trusted_proxies.len(), 2);
        assert_eq!(config.store.kind, StoreKind::Memory, "an empty variable is none");
        assert_eq!(config.store.path, PathBuf::from("true"), "a path may be a word of TOML");
        assert_eq!(config.store.space.min_free, 1 << 30);
        assert_eq!(config.polling.min_interval, Duration::from_secs(120));
        assert_eq!(config.polling.allow_private, AllowPrivate::All);
        assert_eq!(config.publish.archives.entries, 7);
        assert!(!config.websub.hub);
        assert_eq!(config.sup.periods, [60, 300]);
    }

    #[test]
    fn a_fault_names_the_variable() {
        for (name, value, said) in [
            ("TIDEGATE_POLLING_MIN_INTERVAL", "often", "polling.min_interval: \"often\""),
            ("TIDEGATE_POLLING_MIN_INTERVAL", "5", "polling.min_interval: \"5\""),
            (
                "TIDEGATE_PUBLISH_VERSIONS",
                "0",
                "publish.versions: 0 is out of bounds; write a whole",
            ),
            (
                "TIDEGATE_PUBLISH_VERSIONS",
                "many",
                "publish.versions: is a text; write a whole number",
            ),
            ("TIDEGATE_WEBSUB_HUB", "yes", "websub.hub: is a text; write true or false"),
            ("TIDEGATE_STORE_KIND", "redis", "store.kind: \"redis\" is unknown; write one of"),
            ("TIDEGATE_SUP_PERIODS", "[\"1m\"]", "sup.periods: write 2 periods or more"),
            // What is checked against another key.
            ("TIDEGATE_POLLING_MIN_INTERVAL", "9d", "polling.min_interval: \"9d\" is above"),
        ] {
            let faults = read("", &[(name, value)]).unwrap_err();
            assert!(faults.starts_with(&format!("{name}: {said}")), "{name}={value}: {faults}");
            assert_eq!(faults.lines().count(), 1, "{faults}");
        }
        // A fault of the file that a variable covers is one all the same.
        let faults = read("[store]\nkind = \"redis\"", &[("TIDEGATE_STORE_KIND", "sled")]);
        assert!(faults.unwrap_err().starts_with("f:2: store.kind: "));
    }

    #[test]
    fn one_of_two_keys_in_the_environment_covers_the_other_in_the_file() {
        use tidegate_core::model::SecretSource;
        let token = ("TIDEGATE_ADMIN_TOKEN", "a-token-of-enough-letters");
        let file = ("TIDEGATE_SERVER_ADMIN_TOKEN_FILE", "/t");
        let config = read("[server]\nadmin_token_file = \"/other\"", &[token]).unwrap();
        assert!(matches!(config.server.admin_token, Some(SecretSource::Literal(_))));
        let config = read("[server]\nadmin_token = \"hunter2-hunter2-hunter2\"", &[file]).unwrap();
        assert_eq!(config.server.admin_token, Some(SecretSource::File("/t".to_owned())));
        let faults = read("", &[token, file]).unwrap_err();
        assert!(faults.starts_with("TIDEGATE_SERVER_ADMIN_TOKEN_FILE: server.admin_token_file: "));
    }

    #[test]
    fn each_key_has_one_variable() {
        let faults = read("", &[("TIDEGATE_ADMIN_TOKEN", "a token with spaces")]).unwrap_err();
        assert!(
            faults.starts_with("TIDEGATE_ADMIN_TOKEN: server.admin_token: a token is")
                && !faults.contains("with spaces"),
            "{faults}"
        );
        for (name, meant) in [
            ("TIDEGATE_SERVER_ADMIN_TOKEN", "TIDEGATE_ADMIN_TOKEN"),
            ("TIDEGATE_PUBLIC_URL", "TIDEGATE_SERVER_PUBLIC_URL"),
        ] {
            let said = warnings("", &[(name, "x")]);
            assert_eq!(said, [format!("{name}: no key has this variable; did you mean {meant}?")]);
        }
    }

    /// A text is one where the key takes texts alone, whatever it looks like.
    #[test]
    fn a_secret_of_the_environment_is_a_text_or_says_where_it_is() {
        use tidegate_core::model::SecretSource;
        let url = |text: &str| {
            let kind = ("TIDEGATE_STORE_KIND", "postgres");
            read("", &[kind, ("TIDEGATE_STORE_URL", text)]).map(|config| config.store.url.unwrap())
        };
        assert_eq!(url("{ file = \"/u\" }"), Ok(SecretSource::File("/u".to_owned())));
        assert_eq!(url(" { env = \"U\" }"), Ok(SecretSource::Env("U".to_owned())));
        assert!(matches!(url("postgresql://db/feeds"), Ok(SecretSource::Literal(_))));
        assert!(url("{ fiel = \"/u\" }").unwrap_err().contains("has the unknown key \"fiel\""));
        let agent = "{ a = 1 }";
        let config = read("", &[("TIDEGATE_POLLING_USER_AGENT", agent)]).unwrap();
        assert_eq!(config.polling.user_agent, agent);
    }

    #[test]
    fn a_variable_that_nothing_reads_is_a_warning_with_the_nearest() {
        let said = warnings("", &[("TIDEGATE_SERVER_PUBLIC_URI", "x")]);
        let expected = "TIDEGATE_SERVER_PUBLIC_URI: no key has this variable; did you mean \
                        TIDEGATE_SERVER_PUBLIC_URL?";
        assert_eq!(said, [expected]);
        let said = warnings("", &[("TIDEGATE_COLOUR", "x")]);
        assert!(said[0].contains("a setting is TIDEGATE_TABLE_KEY"), "{said:?}");
        let others = [
            ("TIDEGATE_ADMIN_TOKEN", "a-token-of-enough-letters"),
            ("TIDEGATE_LOG", "debug"),
            ("TIDEGATE_URL", "http://127.0.0.1:8080"),
            // Kubernetes, for a service of that name.
            ("TIDEGATE_PORT", "tcp://10.0.0.1:80"),
            ("TIDEGATE_PORT_80_TCP_ADDR", "10.0.0.1"),
            ("TIDEGATE_SERVICE_HOST", "10.0.0.1"),
        ];
        assert!(warnings("", &others).is_empty());
        // What the configuration takes from the environment is read.
        let text = "[[feed]]\nname=\"a\"\nurl=\"https://a.example/\"\n\
                    bearer={ env = \"TIDEGATE_NEWS_TOKEN\" }";
        assert!(warnings(text, &[("TIDEGATE_NEWS_TOKEN", "secret")]).is_empty());
        let reader = "[[reader]]\nname = \"ann\"\nall_private = true\ntoken = { env = \"TIDEGATE_ANN_TOKEN\" }";
        assert!(warnings(reader, &[("TIDEGATE_ANN_TOKEN", "secret")]).is_empty());
        let database = "[store]\nkind = \"postgres\"\nurl = { env = \"TIDEGATE_DATABASE\" }";
        assert!(warnings(database, &[("TIDEGATE_DATABASE", "postgresql://db/feeds")]).is_empty());
        assert_eq!(warnings("", &[("TIDEGATE_NEWS_TOKEN", "secret")]).len(), 1);
    }

    #[test]
    fn a_secret_address_of_the_environment_is_in_no_message() {
        let read = |key: &str| {
            let said = format!("postgresql://gateway:{key}@db/feeds");
            let pairs = [("TIDEGATE_STORE_KIND", "postgres"), ("TIDEGATE_STORE_URL", &*said)];
            check_with("f", "", &variables(&pairs)).unwrap()
        };
        let (started, again) = (read("hunter2"), read("hunter3"));
        let kept = again.config.clone().keep_store(&started.config);
        assert_eq!(kept, ["store.url"]);
        let warned = again.restart_warnings(&kept)[0].to_string();
        assert!(warned.contains("what it was stays in force"), "{warned}");
        assert!(!format!("{:?}", started.places).contains("hunter"), "{:?}", started.places);
    }
}
